//! What the console promises, one test each.

use rowdeck::app::command::{Changes, Command, PLACES, Place, TABLE, keys_page};
use rowdeck::app::effect::Effect;
use rowdeck::app::keymap::{Key, lookup};
use rowdeck::app::message::{BenchNews, Message, SaveProblem};
use rowdeck::app::model::apply::{NotApplied, Stage};
use rowdeck::app::model::verify::Mode;
use rowdeck::app::model::{Overlay, Screen};
use rowdeck::app::theme::{THEMES, Theme};
use rowdeck::db::progress::Progress;

use crate::fixture::*;

fn planned(console: &mut Console) {
    console.compiled(Vec::new(), Some(emitted()));
    console.keys("<f5>");
    console.send(Message::Planned(Ok(Box::new(plan(console.model.policy.revision)))));
}

fn applies(console: &Console) -> bool {
    console.effects.iter().any(|effect| matches!(effect, Effect::Apply { .. }))
}

#[test]
fn the_keys_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/keys.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, keys_page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == keys_page(), "docs/keys.md is old: run UPDATE_DOCS=1 cargo test --test ui");
}

#[test]
fn the_command_table_is_sound() {
    for row in TABLE {
        assert!(PLACES.contains(&row.place), "{} is listed nowhere", row.name);
        assert!(row.hint.len() <= 14 && !row.words.is_empty(), "{}", row.name);
        assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1, "{} is there twice", row.name);
        for key in row.keys {
            let read = Key::parse(key).unwrap_or_else(|| panic!("{}: no key is called {key}", row.name));
            assert_eq!(&read.to_string(), key, "{}", row.name);
            assert_eq!(lookup(read, &[row.place]), Some(row.id), "{key} means two things in {:?}", row.place);
            assert!(
                !read.alt && !["ctrl-a", "ctrl-b"].contains(key),
                "{} needs {key}, which tmux or screen take",
                row.name
            );
        }
    }
    let dangerous: Vec<&str> = TABLE.iter().filter(|row| row.dangerous).map(|row| row.name).collect();
    assert_eq!(
        dangerous,
        ["session.allow-changes", "apply.run", "verify.repair", "bench.start", "activity.cancel", "activity.end"]
    );
}

#[test]
fn a_screens_own_keys_hide_no_key_that_works_on_every_screen() {
    let own = |place: &&Place| Screen::ALL.iter().any(|screen| screen.place() == **place);
    for place in PLACES.iter().filter(own).copied() {
        for row in TABLE.iter().filter(|row| matches!(row.place, Place::Screens | Place::Anywhere)) {
            for key in row.keys {
                let hidden = lookup(Key::parse(key).unwrap(), &[place]);
                assert_eq!(hidden, None, "{key} on {place:?} hides {}", row.name);
            }
        }
    }
}

#[test]
fn read_only_refuses_everything_that_changes_the_database() {
    for row in TABLE.iter().filter(|row| row.changes == Changes::Database) {
        let mut console = Console::connected(80, 24);
        planned(&mut console);
        console.model.read_only = true;
        console.effects.clear();
        console.effects = rowdeck::app::update::run(&mut console.model, row.id);
        assert!(console.effects.is_empty() && console.model.overlay.is_none(), "{} ran", row.name);
        let said = console.model.notice.clone().unwrap().text;
        assert!(said.contains("read-only"), "{}: {said}", row.name);
        assert!(!console.model.palette_matches("").contains(&row.id), "{} is offered", row.name);
    }
}

#[test]
fn nothing_dangerous_happens_without_a_second_answer() {
    let mut console = Console::connected(80, 24);
    planned(&mut console);
    console.keys("a<enter>");
    assert!(!applies(&console), "enter takes the marked answer, which is Cancel");
    console.keys("a<esc>");
    assert!(!applies(&console));
    console.keys("a<tab><enter>");
    assert!(applies(&console));
    assert_eq!(console.model.apply.stage, Stage::Running);
}

#[test]
fn production_takes_no_answer_without_the_databases_name() {
    let mut console = Console::connected(80, 24);
    planned(&mut console);
    console.model.production = true;
    console.keys("a<tab><enter>");
    assert!(!applies(&console));
    console.keys("apq<enter>");
    assert!(!applies(&console), "a wrong name");
    console.keys("<backspace>p<enter>");
    assert!(applies(&console));
}

#[test]
fn production_refuses_the_benchmark_and_the_tests_before_it_asks_anything() {
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    console.model.production = true;
    for (keys, what) in [("8s", "the benchmark writes"), ("2t", "tests write")] {
        console.effects.clear();
        console.keys(keys);
        assert!(console.effects.is_empty() && console.model.overlay.is_none(), "{keys}");
        let said = console.model.notice.clone().unwrap().text;
        assert!(said.contains("marked as production") && said.contains(what), "{said}");
    }
}

#[test]
fn a_plan_that_cannot_be_applied_does_not_offer_it() {
    for (unchanged, refused) in [(true, false), (false, true), (false, false)] {
        let mut console = Console::connected(80, 24);
        console.compiled(Vec::new(), Some(emitted()));
        console.keys("<f5>");
        let mut plan = plan(console.model.policy.revision);
        plan.unchanged = unchanged;
        plan.refusals = if refused { vec!["the column app.files.x is missing".into()] } else { Vec::new() };
        console.send(Message::Planned(Ok(Box::new(plan))));
        let shown = console.screen();
        assert_eq!(shown.lines().last().unwrap().contains("a apply"), !unchanged && !refused, "{shown}");
        assert_eq!(shown.contains("Plan: unchanged, v14 is in force"), unchanged, "{shown}");
    }
}

#[test]
fn a_changed_text_is_never_applied_with_an_old_plan() {
    let mut console = Console::connected(80, 24);
    planned(&mut console);
    console.keys("2ix<esc>4");
    console.effects.clear();
    console.keys("a");
    assert!(console.model.overlay.is_none());
    assert!(matches!(console.effects.as_slice(), [Effect::Plan { .. }]), "{:?}", console.effects);
}

#[test]
fn a_retry_for_a_lock_replaces_its_rows_and_keeps_who_holds_it() {
    let mut console = Console::connected(80, 24);
    planned(&mut console);
    console.keys("a<tab><enter>");
    let waiting = || {
        let blockers = vec!["pid 4602 (psql) holds app.folders".to_owned()];
        Message::Applying(Progress::Waiting { seconds: 2.0, blockers })
    };
    for _ in 0..3 {
        console.send(phase(1, "tables", ""));
        console.send(phase(2, "switch rules", "ACCESS EXCLUSIVE on app.folders"));
        console.send(waiting());
    }
    console.send(phase(1, "tables", ""));
    console.send(batch());
    let shown = console.screen();
    assert_eq!(shown.matches("1/4 tables").count(), 1, "{shown}");
    assert!(!shown.contains("2/4") && shown.contains("pid 4602"), "{shown}");
    console.send(phase(2, "switch rules", "ACCESS EXCLUSIVE on app.folders"));
    assert!(console.screen().contains("pid 4602"), "{}", console.screen());
    console.send(phase(3, "tests", ""));
    let shown = console.screen();
    assert!(!shown.contains("pid 4602") && shown.contains("✓ 2/4"), "{shown}");
    console.send(Message::Applied(Err("cancelled".into())));
    let shown = console.screen();
    assert!(!shown.contains('✓') && shown.contains("✗ 3/4") && shown.contains("rolled back"), "{shown}");
}

#[test]
fn an_apply_that_ended_in_its_commit_is_not_called_rolled_back() {
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    console.keys("<f5>");
    let revision = console.model.policy.revision;
    console.send(Message::Planned(Ok(Box::new(plan(revision)))));
    console.send(phase(1, "tables", ""));
    console.send(Message::Applied(Err(NotApplied::Unknown("the outcome is unknown: the server is gone".into()))));
    let shown = console.screen();
    assert!(!shown.contains("rolled back") && !shown.contains('✓'), "{shown}");
    assert!(shown.contains("? unknown") && shown.contains("? 1/4"), "{shown}");
}

#[test]
fn a_success_takes_away_the_old_failure_of_its_kind_and_no_other() {
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    let planned = |console: &mut Console| Message::Planned(Ok(Box::new(plan(console.model.policy.revision))));
    console.keys("<f5>");
    console.send(Message::Planned(Err("too many clients".into())));
    console.keys("p");
    assert!(console.model.notice.is_some(), "a key alone does not hide a failure");
    let good = planned(&mut console);
    console.send(good);
    assert_eq!(console.model.notice, None);
    console.keys("5n");
    console.send(Message::Verified(Err("the connection was lost".into())));
    let good = planned(&mut console);
    console.send(good);
    assert!(console.model.notice.is_some(), "a plan says nothing about a batch");
    console.keys("n");
    console.send(checked(Some("c1"), Vec::new()));
    assert_eq!(console.model.notice, None);
}

#[test]
fn a_load_that_is_too_much_says_so_in_words() {
    let mut console = Console::connected(80, 24);
    console.keys("8");
    for (reads, writes, words) in
        [(1_600, 0, None), (1_700, 0, Some("lower it with -")), (0, 1_700, Some("lower it with <"))]
    {
        let Message::Bench(BenchNews::Snapshot(mut snapshot)) = measured() else { panic!() };
        (snapshot.reads.missed, snapshot.writes.missed) = (reads, writes);
        console.send(Message::Bench(BenchNews::Snapshot(snapshot)));
        let shown = console.screen();
        assert_eq!(shown.contains("does not keep up"), words.is_some(), "{shown}");
        assert!(words.is_none_or(|words| shown.contains(words)), "{shown}");
    }
}

#[test]
fn a_paste_presses_no_key() {
    let paste = || Message::Paste("q\ny\nDROP TABLE users;\n\u{1b}[31m".into());
    let mut console = Console::connected(80, 24);
    console.compiled(Vec::new(), Some(emitted()));
    for screen in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "?"] {
        console.keys(screen);
        console.effects.clear();
        console.send(paste());
        assert!(console.effects.is_empty() && !console.model.done, "on {screen}");
        assert!(console.model.notice.clone().unwrap().text.contains("paste"));
    }
    planned(&mut console);
    console.keys("a<tab>");
    console.send(paste());
    assert!(matches!(console.model.overlay, Some(Overlay::Dialog(_))) && !applies(&console));
    console.keys("<esc>2");
    let before = console.model.policy.text();
    console.keys("i");
    console.send(paste());
    let text = console.model.policy.text();
    assert_eq!(text, format!("q\ny\nDROP TABLE users;\n[31m{before}"));
    assert!(!console.model.done && console.model.screen == Screen::Policy);
}

#[test]
fn in_the_editor_letters_are_text_and_screens_stay_in_reach() {
    let mut console = Console::connected(80, 24);
    console.keys("iq123");
    assert_eq!(console.model.screen, Screen::Policy);
    assert!(console.model.policy.text().starts_with("q123"));
    console.keys("<esc>5");
    assert_eq!(console.model.screen, Screen::Verify);
    console.keys("2i<f8>");
    assert_eq!(console.model.screen, Screen::Sql);
    console.keys("2i<ctrl-p>bench<enter>");
    assert_eq!(console.model.screen, Screen::Bench);
    console.keys("<ctrl-p>verify<enter>");
    assert_eq!(console.model.screen, Screen::Verify);
}

#[test]
fn every_keystroke_is_compiled_and_kept() {
    let mut console = Console::connected(80, 24);
    console.effects.clear();
    console.keys("ix");
    assert!(matches!(console.effects.as_slice(), [Effect::Compile { .. }, Effect::Keep { .. }]));
    assert!(console.model.policy.stale() && console.model.policy.unsaved());
}

#[test]
fn the_real_compiler_shows_a_mistake_under_its_line_and_clears_it() {
    let mut console = Console::connected(100, 30);
    let compile = |console: &mut Console| {
        let text = console.model.policy.text();
        let outcome = rowdeck::app::compile::outcome(console.model.policy.revision, "docs.authz".as_ref(), &text);
        console.send(Message::Compiled(Box::new(outcome)));
    };
    compile(&mut console);
    let shown = console.screen();
    let lines: Vec<&str> = shown.lines().collect();
    let at = lines.iter().position(|line| line.contains("owner  : persn")).unwrap();
    assert!(lines[at].contains('✗'), "{shown}");
    assert!(lines[at + 1].contains("~~~~~"), "{shown}");
    assert!(lines[at + 2].contains("AZ") && lines[at + 2].contains("persn"), "{shown}");
    console.keys("<enter><ctrl-f>persn<enter><delete><delete><delete><delete><delete>user");
    compile(&mut console);
    assert_eq!(console.model.policy.counts().0, 0, "{}", console.screen());
}

#[test]
fn leaving_asks_when_something_would_be_lost() {
    let mut console = Console::connected(80, 24);
    console.keys("ix<esc>q");
    assert!(console.screen().contains("is not saved"), "{}", console.screen());
    console.keys("<enter>");
    assert!(!console.model.done, "Cancel is marked");
    console.keys("q<tab><enter>");
    let Some(Effect::Save { revision, .. }) = console.effects.last().cloned() else { panic!("{:?}", console.effects) };
    console.send(Message::Saved { revision, result: Err(SaveProblem::Other("disk full".into())) });
    assert!(!console.model.done, "what could not be saved is not thrown away");
    console.keys("5r2q");
    assert!(console.screen().contains("verify runs"), "{}", console.screen());
    console.keys("<tab><tab><enter>");
    assert!(console.model.done);
}

#[test]
fn a_file_changed_on_disk_is_not_overwritten_unasked() {
    let mut console = Console::connected(80, 24);
    console.keys("ix<ctrl-s>");
    let Some(Effect::Save { revision, expect, .. }) = console.effects.last().cloned() else { panic!() };
    assert!(expect.is_some());
    console.send(Message::Saved { revision, result: Err(SaveProblem::ChangedOnDisk) });
    console.keys("<enter>");
    assert!(!matches!(console.effects.last(), Some(Effect::Save { expect: None, .. })));
    console.send(Message::Saved { revision, result: Err(SaveProblem::ChangedOnDisk) });
    console.keys("<tab><enter>");
    assert!(matches!(console.effects.last(), Some(Effect::Save { expect: None, .. })));
}

#[test]
fn verify_steps_pauses_stops_and_resumes() {
    let mut console = Console::connected(80, 24);
    console.keys("5n");
    console.send(checked(Some("c1"), Vec::new()));
    assert_eq!(console.model.verify.mode, Mode::Paused);
    console.keys("r");
    console.send(checked(Some("c2"), Vec::new()));
    assert_eq!(console.model.verify.mode, Mode::Running);
    let last = |console: &Console| console.effects.last().cloned();
    assert_eq!(last(&console), Some(Effect::VerifyBatch { cursor: Some("c2".into()), size: 1_000 }));
    console.keys("p");
    console.send(checked(Some("c3"), Vec::new()));
    assert_eq!(console.model.verify.mode, Mode::Paused);
    console.keys("rs");
    console.send(checked(Some("c4"), vec![wrong()]));
    assert_eq!(console.model.verify.mode, Mode::Stopped);
    console.keys("u");
    assert_eq!(last(&console), Some(Effect::VerifyBatch { cursor: Some("c4".into()), size: 1_000 }));
    console.send(Message::Verified(Err("the connection was lost".into())));
    assert_eq!(console.model.verify.mode, Mode::Failed);
    console.keys("u");
    assert_eq!(last(&console), Some(Effect::VerifyBatch { cursor: Some("c4".into()), size: 1_000 }));
    console.send(checked(None, Vec::new()));
    assert_eq!(console.model.verify.mode, Mode::Done);
    assert_eq!(console.model.verify.checked, 5_000);
    console.keys("R<tab><enter>");
    assert_eq!(last(&console), Some(Effect::Repair(vec![wrong()])));
}

#[test]
fn an_answer_to_an_older_question_is_dropped() {
    let mut console = Console::connected(80, 24);
    console.keys("6/file 87<enter>/file 88<enter>");
    console.send(Message::Told { asked: 1, told: Box::new(person_31()) });
    assert!(!console.screen().contains("user 31"));
    console.send(Message::Told { asked: 2, told: Box::new(file_88()) });
    assert!(console.screen().contains("Q3 plan"));
}

#[test]
fn an_older_compile_never_replaces_a_newer_one() {
    let mut console = Console::connected(80, 24);
    console.compiled(vec![mistake()], None);
    let mut old = rowdeck::app::compile::outcome(0, "x".as_ref(), "");
    old.findings.clear();
    console.send(Message::Compiled(Box::new(old)));
    assert_eq!(console.model.policy.counts().0, 1);
}

#[test]
fn nothing_from_the_server_steers_the_terminal() {
    let mut console = Console::connected(80, 24);
    let evil = "\u{1b}]0;x\u{7}\u{202e}evil\u{9b}2J\r\n";
    let mut facts = facts();
    facts.role = evil.into();
    console.send(Message::LinkUp(Box::new(facts)));
    console.send(Message::Applied(Err(evil.into())));
    console.keys("4");
    let shown = console.screen();
    assert!(shown.contains("<1b>") && shown.contains("<202e>"), "{shown}");
    assert!(shown.chars().all(|c| c == '\n' || !(c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))), "{shown}");
}

#[test]
fn the_header_keeps_what_matters_at_eighty_columns() {
    let mut console = Console::connected(80, 24);
    let mut facts = facts();
    facts.dangers = vec!["SUPERUSER".into(), "bypasses RLS".into()];
    console.send(Message::LinkUp(Box::new(facts)));
    let shown = console.screen();
    let header = shown.lines().next().unwrap();
    for part in ["app", "app_owner", "SUPERUSER", "bypasses RLS", "PG 15.7", "docs.authz v14"] {
        assert!(header.contains(part), "{part} is not in {header}");
    }
}

#[test]
fn without_utf8_everything_is_ascii() {
    let mut console = Console::connected(80, 24);
    console.compiled(vec![mistake()], Some(emitted()));
    console.theme.ascii = true;
    for screen in "1234567890?".chars() {
        console.keys(&screen.to_string());
        assert!(console.screen().is_ascii(), "{}", console.screen());
    }
}

#[test]
fn no_colour_means_mono_and_an_unknown_theme_is_named() {
    let environment = |set: &'static [(&'static str, &'static str)]| {
        move |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let choose = |wanted, set| Theme::choose(wanted, Some(rowdeck::app::theme::Depth::True), &environment(set));
    assert_eq!(choose(None, &[("LANG", "C.UTF-8")]).unwrap().name, "ansi16");
    assert_eq!(choose(Some("dark"), &[("NO_COLOR", "1")]).unwrap().name, "mono");
    assert_eq!(choose(None, &[("TERM", "dumb")]).unwrap().name, "mono");
    assert!(!choose(None, &[("LC_ALL", "de_DE.utf8")]).unwrap().ascii);
    assert!(choose(None, &[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]).unwrap().ascii);
    assert!(choose(Some("pink"), &[]).unwrap_err().contains("ansi16, dark, light, mono, high-contrast"));
}

/// Relative luminance by WCAG.
fn luminance(colour: ratatui::style::Color) -> Option<f64> {
    let ratatui::style::Color::Rgb(r, g, b) = colour else { return None };
    let part = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    Some(0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b))
}

#[test]
fn every_theme_is_readable() {
    for (name, _) in THEMES {
        let theme = Theme::named(name).unwrap();
        let wanted = if *name == "high-contrast" { 7.0 } else { 4.5 };
        for (role, style) in theme.styles() {
            let (Some(fg), Some(bg)) = (style.fg.and_then(luminance), style.bg.and_then(luminance)) else {
                continue;
            };
            let ratio = (fg.max(bg) + 0.05) / (fg.min(bg) + 0.05);
            let wanted = if ["border", "gutter"].contains(&role) { 3.0 } else { wanted };
            assert!(ratio >= wanted, "{name}: {role} has contrast {ratio:.1}, needs {wanted}");
        }
    }
}

#[test]
fn every_command_has_a_row() {
    assert_eq!(Command::ApplyNow.row().name, "apply.run");
    assert!(TABLE.iter().all(|row| row.id.row().name == row.name));
}
