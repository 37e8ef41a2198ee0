//! Overview, Try it, Activity and Targets: what they promise, one test each.

use rowdeck::app::effect::Effect;
use rowdeck::app::message::Message;
use rowdeck::app::model::activity::End;
use rowdeck::app::model::link::Link;
use rowdeck::app::model::overview::{Weight, items};
use rowdeck::app::model::{Overlay, Screen, Watched};

use crate::fixture::*;

fn notice(console: &Console) -> String {
    console.model.notice.clone().map(|notice| notice.text).unwrap_or_default()
}

#[test]
fn what_is_wrong_comes_first_and_enter_goes_where_it_is_mended() {
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    console.send(overview());
    let found = items(&console.model);
    assert!(found.windows(2).all(|pair| pair[0].weight <= pair[1].weight), "{found:?}");
    assert_eq!(found[0].weight, Weight::Wrong);
    let at = found.iter().position(|item| item.words.starts_with("pid 4711 waits")).unwrap();
    console.keys("1");
    console.keys(&"<down>".repeat(at));
    console.keys("<enter>");
    assert_eq!(console.model.screen, Screen::Activity);
    assert!(notice(&console).contains("held by 4602"), "{}", notice(&console));
}

#[test]
fn an_open_text_that_is_not_in_force_is_said() {
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    let says =
        |console: &Console| items(&console.model).iter().any(|item| item.words.contains("not the policy in force"));
    assert!(says(&console));
    let mut facts = facts();
    facts.policy.as_mut().unwrap().digest = emitted().digest;
    console.send(Message::LinkUp(Box::new(facts)));
    assert!(!says(&console));
}

#[test]
fn only_what_is_on_the_screen_is_read_again_and_again() {
    let mut console = Console::connected(80, 24);
    assert_eq!(console.model.watching(), None);
    console.keys("1");
    assert_eq!(console.model.watching(), Some(Watched::Overview));
    console.keys("9");
    assert_eq!(console.model.watching(), Some(Watched::Sessions));
    console.send(Message::LinkDown { reason: "gone".into(), retry_in: None });
    assert_eq!(console.model.watching(), None);
}

#[test]
fn the_mark_stays_on_its_session_when_the_order_changes() {
    let mut console = Console::connected(80, 24);
    console.keys("9");
    console.send(sessions());
    console.keys("<down>");
    assert_eq!(console.model.activity.here().unwrap().pid, 4602);
    let Message::Sessions(Ok(mut other)) = sessions() else { panic!() };
    other.rows.rotate_left(1);
    console.send(Message::Sessions(Ok(other)));
    assert_eq!(console.model.activity.here().unwrap().pid, 4602);
    let Message::Sessions(Ok(mut other)) = sessions() else { panic!() };
    other.rows.retain(|row| row.pid != 4602);
    console.send(Message::Sessions(Ok(other)));
    assert!(console.model.activity.here().is_some());
}

#[test]
fn a_session_is_ended_only_after_a_second_answer_and_never_another_one() {
    let mut console = Console::connected(80, 24);
    console.keys("9");
    console.send(sessions());
    console.keys("b");
    console.keys("x<enter>");
    assert!(!console.effects.iter().any(|effect| matches!(effect, Effect::EndSession { .. })), "Cancel is marked");
    console.keys("x");
    assert!(console.screen().contains("1 session waits for it"), "{}", console.screen());
    // The list changes while the question is open.
    let Message::Sessions(Ok(mut other)) = sessions() else { panic!() };
    other.rows.retain(|row| row.pid != 4602);
    console.send(Message::Sessions(Ok(other)));
    console.keys("<tab><enter>");
    let ended = Effect::EndSession { pid: 4602, started: 1.5, how: End::Terminate };
    assert_eq!(console.effects.last(), Some(&ended));
    console.model.read_only = true;
    console.keys("c");
    assert!(notice(&console).contains("read-only") && console.model.overlay.is_none());
}

fn ready_to_try(statement: &str) -> Console {
    let mut console = Console::connected(80, 24);
    console.keys("7u31<enter>");
    console.effects.clear();
    console.keys(&format!("i{statement}<enter>"));
    console
}

fn tries(console: &Console) -> Option<bool> {
    console.effects.iter().find_map(|effect| match effect {
        Effect::Try { writes, .. } => Some(*writes),
        _ => None,
    })
}

#[test]
fn a_statement_needs_somebody_and_a_read_only_console_lets_it_write_nothing() {
    let mut console = Console::connected(80, 24);
    console.keys("7iupdate x set y = 1<enter>");
    assert_eq!(tries(&console), None);
    console.keys("31<enter>");
    assert_eq!(tries(&console), Some(true));
    console.send(tried(1));
    console.effects.clear();
    console.model.read_only = true;
    console.keys("r");
    assert_eq!(tries(&console), Some(false));
}

#[test]
fn on_production_what_may_write_wants_the_name_and_what_reads_runs_read_only() {
    let mut console = Console::connected(80, 24);
    console.model.production = true;
    console.keys("7u31<enter>iselect 1<enter>");
    assert_eq!(tries(&console), Some(false));
    console.send(tried(1));
    console.effects.clear();
    console.keys("i<ctrl-u>delete from app.files<enter>");
    assert!(matches!(console.model.overlay, Some(Overlay::Dialog(_))) && tries(&console).is_none());
    console.keys("<tab><enter>");
    assert_eq!(tries(&console), None, "the name is not typed");
    console.keys("app<enter>");
    assert_eq!(tries(&console), Some(true));
}

#[test]
fn a_pasted_statement_keeps_its_lines_and_does_not_run() {
    let mut console = ready_to_try("");
    console.keys("i");
    console.send(Message::Paste("select 1 -- one\r\nfrom t\nwhere \u{1b}x".into()));
    assert_eq!(tries(&console), None);
    console.keys("<enter>");
    assert_eq!(console.model.try_it.statement, "select 1 -- one\nfrom t\nwhere  x");
    assert_eq!(tries(&console), Some(true));
}

#[test]
fn an_older_run_does_not_replace_a_newer_one() {
    let mut console = ready_to_try("select 1");
    console.send(tried(1));
    console.keys("r");
    console.send(Message::Tried { asked: 1, result: Err("old".into()) });
    assert!(console.model.try_it.waiting.is_some() && console.model.try_it.failure.is_none());
    console.send(Message::Tried { asked: 2, result: Err("new".into()) });
    assert!(console.screen().contains("not run: new"), "{}", console.screen());
}

#[test]
fn nothing_read_from_one_target_is_shown_for_another() {
    let mut console = Console::connected(80, 24);
    console.model.targets.rows = targets();
    console.keys("6/file 88<enter>");
    console.send(Message::Told { asked: 1, told: Box::new(file_88()) });
    console.send(overview());
    console.keys("0<enter>");
    assert!(notice(&console).contains("DOCS_URL"), "a target that cannot be used says why");
    console.keys("<down><enter>");
    assert_eq!(console.effects.last(), Some(&Effect::SwitchTarget("prod-eu".into())));
    assert_eq!(console.model.link, Link::Connecting);
    assert!(console.model.production && console.model.read_only);
    for screen in ["1", "6", "9"] {
        console.keys(screen);
        let shown = console.screen();
        assert!(!shown.contains("Q3 plan") && !shown.contains("4711") && shown.contains("connecting"), "{shown}");
    }
}

#[test]
fn the_target_is_not_changed_under_work_that_runs() {
    let mut console = Console::connected(80, 24);
    console.model.targets.rows = targets();
    console.keys("5r0<down><enter>");
    assert!(!console.effects.iter().any(|effect| matches!(effect, Effect::SwitchTarget(_))));
    assert!(notice(&console).contains("wait for what runs"), "{}", notice(&console));
}
