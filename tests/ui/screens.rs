//! Every screen at five sizes, as it is and after what usually happens on it.

use rowdeck::app::message::Message;

use crate::fixture::*;

/// Draws the same console at 80x24, 120x40, 20x5, 44x12 and 200x50 and compares each with its picture.
macro_rules! pictures {
    ($name:literal, $console:expr) => {{
        let mut console = $console;
        for (width, height) in [(80, 24), (120, 40), (20, 5), (44, 12), (200, 50)] {
            console.send(Message::Resize(width, height));
            insta::with_settings!({snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(format!("{}@{width}x{height}", $name), console.screen());
            });
        }
    }};
}

fn with_policy() -> Console {
    let mut console = Console::connected(80, 24);
    console.compiled(vec![lint()], Some(emitted()));
    console
}

#[test]
fn policy_with_a_mistake_under_its_line() {
    let mut console = with_policy();
    console.keys("jjjjjjj<enter><end>x");
    console.compiled(vec![lint(), mistake()], None);
    pictures!("policy", console);
}

#[test]
fn sql_object_by_object() {
    let mut console = with_policy();
    console.keys("3<down>");
    pictures!("sql", console);
}

#[test]
fn sql_search() {
    let mut console = with_policy();
    console.keys("3/policy");
    pictures!("sql-search", console);
}

#[test]
fn apply_planned() {
    let mut console = with_policy();
    console.keys("<f5>");
    console.send(Message::Planned(Ok(Box::new(plan(console.model.policy.revision)))));
    pictures!("apply-planned", console);
}

#[test]
fn apply_asks_with_cancel_marked() {
    let mut console = with_policy();
    console.keys("<f5>");
    console.send(Message::Planned(Ok(Box::new(plan(console.model.policy.revision)))));
    console.keys("a");
    pictures!("apply-asks", console);
}

#[test]
fn apply_running() {
    let mut console = with_policy();
    console.keys("<f5>");
    console.send(Message::Planned(Ok(Box::new(plan(console.model.policy.revision)))));
    console.keys("a<tab><enter>");
    console.send(phase(1, "tables", ""));
    console.send(clock(1));
    console.send(phase(2, "build folder.parent", "SHARE ROW EXCLUSIVE on app.folders"));
    console.send(batch());
    console.send(clock(2));
    pictures!("apply-running", console);
}

#[test]
fn apply_done() {
    let mut console = with_policy();
    console.keys("<f5>");
    console.send(Message::Planned(Ok(Box::new(plan(console.model.policy.revision)))));
    console.keys("a<tab><enter>");
    console.send(phase(1, "tables", ""));
    console.send(clock(3));
    console.send(Message::Applied(Ok(report())));
    pictures!("apply-done", console);
}

#[test]
fn verify_step_by_step() {
    let mut console = with_policy();
    console.send(Message::VerifyTotal(54_593));
    console.keys("5n");
    console.send(checked(Some("g1:1000"), Vec::new()));
    console.keys("n");
    console.send(checked(Some("g1:2000"), vec![wrong()]));
    pictures!("verify", console);
}

#[test]
fn inspect_an_object_and_why() {
    let mut console = with_policy();
    console.keys("6/file 88<enter>");
    console.send(Message::Told { asked: 1, told: Box::new(file_88()) });
    console.keys("<down>w");
    console.send(Message::Told { asked: 2, told: Box::new(why()) });
    pictures!("inspect-object", console);
}

#[test]
fn inspect_a_person() {
    let mut console = with_policy();
    console.keys("6u31<enter>");
    console.send(Message::Told { asked: 1, told: Box::new(person_31()) });
    pictures!("inspect-person", console);
}

#[test]
fn bench_while_it_runs() {
    let mut console = with_policy();
    console.keys("8s<tab><enter>");
    console.send(measured());
    pictures!("bench", console);
}

#[test]
fn help_with_this_screen_first() {
    let mut console = with_policy();
    console.keys("5?");
    pictures!("help", console);
}

#[test]
fn palette_by_words() {
    let mut console = with_policy();
    console.keys("<ctrl-p>verify");
    pictures!("palette", console);
}

#[test]
fn not_connected_says_why_and_for_how_long() {
    let mut console = with_policy();
    let down = || Message::LinkDown {
        reason: "terminating connection due to administrator command".into(),
        retry_in: Some(std::time::Duration::from_secs(2)),
    };
    console.send(down());
    console.send(clock(12));
    console.send(down());
    console.keys("6");
    pictures!("not-connected", console);
}

#[test]
fn production_wants_the_name_typed() {
    let mut console = with_policy();
    console.model.production = true;
    console.keys("<f5>");
    console.send(Message::Planned(Ok(Box::new(plan(console.model.policy.revision)))));
    console.keys("aap");
    pictures!("production", console);
}

#[test]
fn overview_with_what_needs_the_operator() {
    let mut console = with_policy();
    overviews().for_each(|message| console.send(message));
    console.keys("1<down>");
    pictures!("overview", console);
}

#[test]
fn activity_with_who_waits_for_whom() {
    let mut console = with_policy();
    console.keys("9");
    console.send(sessions());
    console.keys("b");
    pictures!("activity", console);
}

#[test]
fn try_it_with_rows() {
    let mut console = with_policy();
    console.keys("7u31<enter>iselect *<ctrl-j>from app.files<enter>");
    console.send(tried(1));
    console.keys("<down>");
    pictures!("try-rows", console);
}

#[test]
fn try_it_tells_why_no_row_was_touched() {
    let mut console = with_policy();
    console.keys("7u31<enter>iupdate app.files set name = 'x' where id = 88<enter>");
    console.send(not_allowed(1));
    pictures!("try-not-allowed", console);
}

#[test]
fn try_it_while_a_statement_is_typed() {
    let mut console = with_policy();
    console.keys("7iselect 1,<ctrl-j>  '日本'");
    pictures!("try-typing", console);
}

#[test]
fn targets_with_their_marks() {
    let mut console = with_policy();
    console.model.targets.rows = targets();
    console.model.targets.file = Some("/p/rowdeck.toml".into());
    console.keys("0<down>");
    pictures!("targets", console);
}

#[test]
fn policy_with_words_that_fit() {
    let mut console = with_policy();
    console.keys("i<ctrl-f>can view<enter><end><enter>can edit = <tab><down>");
    pictures!("policy-words", console);
}
