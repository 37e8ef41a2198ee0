//! Writing the policy: finding, replacing, completing, going to a declaration, undoing to what is saved.

use rowdeck::app::effect::Effect;
use rowdeck::app::message::Message;
use rowdeck::app::model::Screen;
use rowdeck::app::model::policy::DiskStamp;
use rowdeck::policy_text::Table;

use crate::fixture::*;

fn editing() -> Console {
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    console.keys("i");
    console
}

fn line(console: &Console) -> String {
    console.model.policy.area.lines()[console.model.policy.cursor().0].clone()
}

#[test]
fn undone_to_the_saved_text_nothing_is_unsaved() {
    let mut console = editing();
    console.keys("abc");
    assert!(console.model.policy.unsaved());
    console.effects.clear();
    console.keys("<ctrl-u><ctrl-u><ctrl-u>");
    assert!(!console.model.policy.unsaved(), "{}", console.screen());
    assert!(console.effects.contains(&Effect::DropKept), "what was kept for a crash is thrown away");
    console.keys("<esc>q");
    assert!(console.model.done, "and leaving asks nothing");
}

#[test]
fn a_save_that_ends_late_is_still_known_by_its_text() {
    let mut console = editing();
    console.keys("a<ctrl-s>b");
    let saved = console.effects.iter().find_map(|effect| match effect {
        Effect::Save { revision, .. } => Some(*revision),
        _ => None,
    });
    let stamp = DiskStamp { bytes: 2, modified: 2 };
    console.send(Message::Saved { revision: saved.unwrap(), result: Ok(stamp) });
    assert!(console.model.policy.unsaved());
    console.keys("<ctrl-u>");
    assert!(!console.model.policy.unsaved());
    console.keys("<ctrl-u>");
    assert!(console.model.policy.unsaved(), "the text before is not what is on disk any more");
}

#[test]
fn undo_has_no_limit() {
    let mut console = editing();
    let before = console.model.policy.text();
    console.keys(&"x<backspace>".repeat(3_000));
    console.keys(&"y".repeat(3_000));
    console.keys(&"<ctrl-u>".repeat(9_000));
    assert_eq!(console.model.policy.text(), before);
}

#[test]
fn replacing_asks_one_by_one_and_one_round_is_the_end() {
    let mut console = editing();
    let before = console.model.policy.text();
    let count = before.matches("folder").count();
    assert!(count > 3);
    console.keys("<f4>folder<enter>box<enter>");
    assert!(console.screen().contains("replace folder at the cursor with \"box\"?"), "{}", console.screen());
    console.keys("yn");
    assert_eq!(console.model.policy.text(), before.replacen("folder", "box", 1));
    console.keys("a");
    assert!(console.model.policy.replacing.is_none());
    assert_eq!(console.model.policy.text().matches("folder").count(), 1, "the one that was left stays");
    assert!(console.screen().contains(&format!("replaced in {} places", count - 1)), "{}", console.screen());
}

#[test]
fn replacing_by_something_that_holds_it_ends() {
    let mut console = editing();
    let count = console.model.policy.text().matches("folder").count();
    console.keys("<down><down><down><down><down><f4>folder<enter>folder folder<enter>a");
    assert_eq!(console.model.policy.text().matches("folder").count(), 2 * count);
    assert!(console.model.policy.replacing.is_none());
}

#[test]
fn find_next_goes_round_and_back_returns() {
    let mut console = editing();
    console.keys("<ctrl-f>PARENT<enter>");
    let first = console.model.policy.cursor();
    console.keys("<f3>");
    let second = console.model.policy.cursor();
    assert!(second > first);
    console.keys("<f3><f3>");
    assert!(console.model.policy.cursor() <= second);
    console.keys("<ctrl-o><ctrl-o><ctrl-o><ctrl-o>");
    assert_eq!(console.model.policy.cursor(), (0, 0));
    console.keys("<ctrl-f>nowhere<enter>");
    assert!(console.screen().contains("nowhere is not in this text"));
}

#[test]
fn a_name_leads_to_its_declaration_and_back() {
    let mut console = editing();
    console.keys("<ctrl-f>parent.view<enter>");
    let from = console.model.policy.cursor();
    console.keys("<right><right><right><right><right><right><right><ctrl-g>");
    assert!(line(&console).contains("can view"), "{}", line(&console));
    console.keys("<ctrl-o>");
    assert_eq!(console.model.policy.cursor().0, from.0);
    console.keys("<esc>/<ctrl-u>owner or<enter><esc>d");
    assert!(line(&console).starts_with("  owner  :"), "{}", line(&console));
}

#[test]
fn tab_completes_from_the_text_and_the_database_or_indents() {
    let mut console = editing();
    console.send(Message::Tables(vec![Table {
        name: "app.folders".into(),
        columns: vec!["id".into(), "owner_id".into()],
    }]));
    // Before any word it indents.
    console.keys("<ctrl-f>can view<enter><end><enter><tab>");
    assert_eq!(line(&console), "    ");
    console.keys("<backspace><backspace>x : fo<tab>");
    assert_eq!(line(&console), "  x : folder");
    console.keys(" = own<tab>");
    assert_eq!(line(&console), "  x : folder = owner_id");
    console.keys("<enter>can edit = <tab>");
    let shown = console.screen();
    assert!(shown.contains("permission") && shown.contains("relation"), "{shown}");
    console.keys("ow<tab>");
    assert_eq!(line(&console), "  can edit = owner");
    console.keys(" or parent.<tab><down><enter>");
    assert!(line(&console).starts_with("  can edit = owner or parent."), "{}", line(&console));
    assert!(!line(&console).ends_with('.'), "{}", line(&console));
    console.keys(" zzz<tab>");
    assert!(console.screen().contains("no name that is known here fits"));
}

#[test]
fn f1_in_the_editor_returns_to_editing() {
    let mut console = editing();
    console.compiled(vec![mistake()], None);
    console.keys("<down><down><down><down><down><down><down><f1>");
    assert_eq!(console.model.screen, Screen::Help);
    assert!(console.screen().contains("AZ201"), "{}", console.screen());
    console.keys("<esc>");
    assert!(console.model.screen == Screen::Policy && console.model.policy.editing);
    console.keys("<esc>?<esc>");
    assert!(console.model.screen == Screen::Policy && !console.model.policy.editing);
}
