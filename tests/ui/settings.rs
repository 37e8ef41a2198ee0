//! The user's own keys and looks, tables written to files, and the tree and matrix of Inspect.

use std::collections::BTreeMap;

use rowdeck::app::command::{Command, TABLE};
use rowdeck::app::effect::Effect;
use rowdeck::app::keymap::Keymap;
use rowdeck::app::message::Message;
use rowdeck::app::model::Screen;
use rowdeck::app::model::inspect::{Ask, BrowseRow, BrowseView, Children, Holder, ObjectRef, Told, TypeRow};
use rowdeck::app::settings::Settings;
use rowdeck::app::theme::{Depth, THEMES, Theme, xterm};

use crate::fixture::*;

fn with_keys(changes: &[(&str, &[&str])]) -> Result<Keymap, Vec<String>> {
    let list = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let changes: BTreeMap<_, _> = changes.iter().map(|(name, keys)| ((*name).to_owned(), list(keys))).collect();
    Keymap::with(&changes)
}

#[test]
fn a_key_of_ones_own_works_and_is_the_one_shown() {
    let mut console = Console::connected(80, 24);
    console.model.keymap = with_keys(&[("go.verify", &["v", "5"]), ("verify.run", &["ctrl-e"])]).unwrap();
    console.keys("v");
    assert_eq!(console.model.screen, Screen::Verify);
    let shown = console.screen();
    assert!(shown.lines().last().unwrap().contains("ctrl-e run"), "{shown}");
    console.keys("r");
    assert!(console.model.jobs.is_empty(), "the usual key is free");
    console.keys("<ctrl-e>");
    assert!(!console.model.jobs.is_empty());
    console.keys("?");
    assert!(console.screen().contains("ctrl-e"), "{}", console.screen());
    console.keys("<esc><ctrl-p>check batch after");
    assert!(console.screen().contains("ctrl-e"), "{}", console.screen());
}

#[test]
fn an_unbound_command_is_no_hint_but_still_in_the_list_of_commands() {
    let mut console = Console::connected(80, 24);
    console.model.keymap = with_keys(&[("verify.run", &[])]).unwrap();
    console.keys("5");
    assert!(!console.screen().lines().last().unwrap().contains("run"), "{}", console.screen());
    console.keys("<ctrl-p>verify.run<enter>");
    assert!(!console.model.jobs.is_empty());
}

#[test]
fn keys_that_cannot_be_are_named() {
    for (changes, wanted) in [
        (&[("verify.ron", &["r"][..])][..], "did you mean verify.run?"),
        (&[("verify.run", &["hyper-r"])], "no key is called \"hyper-r\""),
        (&[("verify.run", &["alt-r"])], "cannot tell alt-r"),
        (&[("verify.run", &["n"])], "n would mean both verify.step and verify.run"),
        (&[("verify.run", &["q"])], "q would mean both quit and verify.run"),
        (&[("dialog.cancel", &[])], "dialog.cancel cannot be without a key"),
        (&[("interrupt", &[])], "interrupt cannot be without a key"),
    ] {
        let problems = with_keys(changes).unwrap_err().join("\n");
        assert!(problems.contains(wanted), "{changes:?}: {problems}");
    }
    assert_eq!(with_keys(&[("verify.run", &["n"]), ("verify.step", &["r"])]).map(|_| ()), Ok(()), "two are exchanged");
}

#[test]
fn the_usual_keys_clash_nowhere_and_every_name_can_be_set() {
    assert_eq!(with_keys(&[]), Ok(Keymap::default()));
    for row in TABLE {
        let keys: Vec<&str> = row.keys.to_vec();
        assert_eq!(with_keys(&[(row.name, &keys)]), Ok(Keymap::default()), "{}", row.name);
    }
    let text = "theme = \"dark\"\ncolours = \"256\"\n[keys]\n\"quit\" = \"Q\"\n\"verify.run\" = [\"r\", \"ctrl-e\"]\n";
    let settings = Settings::parse(text).unwrap();
    assert_eq!(settings.problems(), Vec::<String>::new());
    assert_eq!(settings.keymap().unwrap().key(Command::Quit), "Q");
    assert_eq!(settings.colours, Some(Depth::Xterm));
}

#[test]
fn colours_are_as_many_as_the_terminal_has() {
    let environment = |set: &'static [(&'static str, &'static str)]| {
        move |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let depth = |set| Depth::of(&environment(set));
    assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
    assert_eq!(depth(&[("TERM", "screen-256color")]), Depth::Xterm);
    assert_eq!(depth(&[("TERM", "linux")]), Depth::Sixteen);
    let plain = Theme::choose(Some("dark"), None, &environment(&[("TERM", "linux")])).unwrap();
    assert_eq!(plain.name, "ansi16");
    assert!(plain.words().unwrap().contains("not dark"));
    let mut theme = plain;
    for _ in 0..THEMES.len() {
        theme = theme.next();
        assert!(["ansi16", "mono"].contains(&theme.name.as_str()), "{}", theme.name);
    }
    let forced = Theme::choose(Some("dark"), Some(Depth::True), &environment(&[("TERM", "linux")])).unwrap();
    assert_eq!(forced.name, "dark");
}

fn luminance(colour: ratatui::style::Color) -> Option<f64> {
    let (r, g, b) = match colour {
        ratatui::style::Color::Rgb(r, g, b) => (r, g, b),
        ratatui::style::Color::Indexed(index) => xterm(index)?,
        _ => return None,
    };
    let part = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    Some(0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b))
}

#[test]
fn every_theme_is_readable_in_256_colours_too() {
    for (name, _) in THEMES {
        let theme = Theme::named(name).unwrap().reduced(Depth::Xterm);
        for (role, style) in theme.styles() {
            let (Some(fg), Some(bg)) = (style.fg.and_then(luminance), style.bg.and_then(luminance)) else {
                continue;
            };
            let ratio = (fg.max(bg) + 0.05) / (fg.min(bg) + 0.05);
            let wanted = if ["border", "gutter"].contains(&role) { 3.0 } else { 4.5 };
            assert!(ratio >= wanted, "{name}: {role} has contrast {ratio:.1}, needs {wanted}");
        }
    }
}

#[test]
fn a_table_is_written_to_a_new_file_or_sent_to_the_terminal() {
    let mut console = Console::connected(80, 24);
    console.keys("9");
    console.send(sessions());
    console.keys("E");
    assert!(console.screen().contains("write to a new file: sessions.csv"), "{}", console.screen());
    console.keys("<esc>");
    assert!(console.model.export.is_none());
    console.keys("E<backspace><backspace><backspace>xls<enter>");
    assert!(console.screen().contains("end the name in .csv"), "{}", console.screen());
    console.effects.clear();
    console.keys("E<enter>");
    let [Effect::Export { name, text }] = console.effects.as_slice() else { panic!("{:?}", console.effects) };
    assert_eq!(name, "sessions.csv");
    assert!(
        text.starts_with("pid,role,") && text.contains("4602,ann,psql,10.0.0.7,idle in transaction,372.0"),
        "{text}"
    );
    console.effects.clear();
    console.keys("Y");
    assert!(
        matches!(console.effects.as_slice(), [Effect::Copy(text)] if text.contains("4711")),
        "{:?}",
        console.effects
    );
    console.keys("2E");
    assert!(console.model.export.is_none() && console.screen().contains("no table on this screen"));
}

fn object(ty: &str, id: &str) -> ObjectRef {
    ObjectRef { ty: ty.into(), id: id.into() }
}

fn holder(ty: &str, id: &str, label: &str) -> Holder {
    Holder { who: object(ty, id), label: Some(label.into()) }
}

/// Types are listed, folders are read.
fn browsing() -> Console {
    let mut console = Console::connected(80, 24);
    console.keys("6b");
    let ty = |name: &str, table: &str, signs_in| TypeRow { name: name.into(), table: table.into(), signs_in };
    let types = vec![ty("user", "app.users", true), ty("folder", "app.folders", false)];
    console.send(Message::Told { asked: 1, told: Box::new(Told::Types(types)) });
    console
}

fn folders(console: &mut Console) {
    console.keys("<down><enter>");
    let row = |id: &str, label: &str| {
        let Holder { who, label } = holder("folder", id, label);
        BrowseRow { who, label, ..BrowseRow::default() }
    };
    let rows = vec![row("1", "Company"), row("2", "Finance")];
    let view = BrowseView { title: "folder".into(), ty: "folder".into(), rows, after: None };
    console.send(Message::Told { asked: 2, told: Box::new(Told::Browse(view)) });
}

#[test]
fn types_are_listed_and_objects_unfold_page_by_page() {
    let mut console = browsing();
    assert!(console.screen().contains("app.users") && console.screen().contains("signs in"), "{}", console.screen());
    folders(&mut console);
    let asked = |console: &Console| match console.effects.last() {
        Some(Effect::Ask { ask, .. }) => Some(ask.clone()),
        _ => None,
    };
    assert_eq!(asked(&console), Some(Ask::Browse { ty: "folder".into(), after: None }));
    console.keys("<right>");
    assert_eq!(asked(&console), Some(Ask::Children { of: object("folder", "1"), from: None }));
    let page = |from: Option<&str>, ids: &[&str], more: Option<&str>| Children {
        of: object("folder", "1"),
        from: from.map(str::to_owned),
        rows: ids.iter().map(|id| (holder("file", id, "plan"), "folder".to_owned())).collect(),
        more: more.map(str::to_owned),
    };
    console.send(Message::Told { asked: 3, told: Box::new(Told::Children(page(None, &["8", "9"], Some("0:9")))) });
    let shown = console.screen();
    assert!(shown.contains("▾ 1  Company") && shown.contains("  ▸ file 8  plan  (folder)"), "{shown}");
    assert!(shown.contains("reads more of folder 1"), "{shown}");
    // The rest is read where it stands.
    console.keys("<down><down><down><right>");
    assert_eq!(asked(&console), Some(Ask::Children { of: object("folder", "1"), from: Some("0:9".into()) }));
    console.send(Message::Told { asked: 4, told: Box::new(Told::Children(page(Some("0:9"), &["10"], None))) });
    let shown = console.screen();
    assert!(shown.contains("file 10") && !shown.contains("reads more"), "{shown}");
    // From a child to what it lies under, and folded.
    console.keys("<left>");
    assert_eq!(console.model.inspect.at, 0);
    console.keys("<left>");
    assert!(!console.screen().contains("file 8"), "{}", console.screen());
    console.keys("<down><enter>");
    assert_eq!(asked(&console), Some(Ask::Object(object("folder", "2"))));
}

#[test]
fn people_and_permissions_are_a_matrix() {
    let mut console = Console::connected(100, 24);
    console.keys("6/file 88<enter>");
    console.send(Message::Told { asked: 1, told: Box::new(file_88()) });
    console.keys("x");
    let shown = console.screen();
    let row = shown.lines().find(|line| line.contains("user 31")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().filter(|word| ["yes", "-", "?"].contains(word)).collect();
    assert_eq!(cells, ["-", "-", "yes"], "{shown}");
    console.keys("<down><enter>");
    let person = Ask::Person { person: object("user", "31"), ty: "file".into(), after: None };
    assert!(matches!(console.effects.last(), Some(Effect::Ask { ask, .. }) if *ask == person));
    console.keys("x");
    assert!(console.screen().contains("nobody"), "{}", console.screen());
}
