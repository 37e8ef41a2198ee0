//! Random keys, sizes and messages: every screen draws at every size, and nothing panics.

use proptest::prelude::*;
use rowdeck::app::keymap::Key;
use rowdeck::app::message::{BenchNews, Message};
use rowdeck::app::model::Level;
use rowdeck::app::model::inspect::Told;

use crate::fixture::*;

fn key() -> impl Strategy<Value = Message> {
    let named = prop::sample::select(vec![
        "enter",
        "esc",
        "tab",
        "shift-tab",
        "up",
        "down",
        "left",
        "right",
        "pgup",
        "pgdn",
        "home",
        "end",
        "backspace",
        "delete",
        "ctrl-p",
        "ctrl-f",
        "ctrl-s",
        "ctrl-u",
        "ctrl-r",
        "ctrl-x",
        "ctrl-y",
        "ctrl-c",
        "F1",
        "F2",
        "F3",
        "F4",
        "ctrl-g",
        "ctrl-o",
        "y",
        "F5",
        "F7",
        "F8",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "0",
        "c",
        "ctrl-j",
        "?",
        "n",
        "r",
        "p",
        "s",
        "w",
        "u",
        "/",
        "a",
        "m",
        "R",
        "W",
        "b",
        "x",
        "l",
        "h",
        "E",
        "Y",
        "i",
    ]);
    let typed = prop::sample::select(vec!['x', '{', '}', '日', '\u{301}', '🇩', '\'', '-', ' ', '\u{202e}']);
    prop_oneof![
        4 => named.prop_map(|name| Message::Key(Key::parse(name).unwrap())),
        1 => typed.prop_map(|c| Message::Key(Key::parse(&c.to_string()).unwrap())),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let told = prop_oneof![Just(file_88()), Just(person_31()), Just(why()), Just(Told::Failed("no".into()))];
    prop_oneof![
        20 => key(),
        4 => (1_u16..=130, 1_u16..=45).prop_map(|(w, h)| Message::Resize(w, h)),
        1 => any::<String>().prop_map(Message::Paste),
        1 => "\\PC*".prop_map(|text| Message::Said(Level::Error, text)),
        1 => Just(Message::LinkDown { reason: "gone".into(), retry_in: None }),
        1 => Just(Message::LinkUp(Box::new(facts()))),
        1 => (0_u64..40).prop_map(|revision| Message::Planned(Ok(Box::new(plan(revision))))),
        1 => Just(phase(3, "build", "none")),
        1 => Just(batch()),
        1 => Just(Message::Applied(Ok(report()))),
        1 => Just(Message::Applied(Err("refused".into()))),
        1 => prop::bool::ANY.prop_map(|more| checked(more.then_some("c"), vec![wrong(), wrong()])),
        1 => Just(Message::VerifyTotal(9_999_999)),
        1 => Just(Message::Tables(vec![rowdeck::policy_text::Table { name: "app.x".into(), columns: vec!["id".into()] }])),
        1 => (1_u64..5, told).prop_map(|(asked, told)| Message::Told { asked, told: Box::new(told) }),
        1 => Just(measured()),
        1 => Just(overview()),
        1 => Just(sessions()),
        1 => (1_u64..5).prop_map(tried),
        1 => Just(Message::Sessions(Err("gone".into()))),
        1 => Just(Message::Bench(BenchNews::Ended(Ok(())))),
        1 => (0_u64..99_999).prop_map(clock),
        1 => (0_u64..40).prop_map(|revision| {
            let outcome = rowdeck::app::model::policy::Outcome {
                revision,
                findings: vec![mistake(), lint()],
                emitted: Some(std::sync::Arc::new(emitted())),
                seconds: 0.1,
                failure: None,
            };
            Message::Compiled(Box::new(outcome))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(messages in prop::collection::vec(message(), 1..120), sizes in prop::collection::vec((1_u16..=130, 1_u16..=45), 12)) {
        let mut console = Console::new(80, 24);
        let mut at = 0;
        for message in messages {
            console.send(message);
            console.effects.clear();
            if console.model.done {
                console = Console::connected(80, 24);
            }
            at += 1;
            if at % 8 == 0 {
                // Drawn at a size the model does not know of yet, as between a resize and its message.
                let (width, height) = sizes[at / 8 % sizes.len()];
                console.screen_at(width, height);
            }
        }
        console.screen();
    }
}

#[test]
fn every_screen_draws_at_every_small_size() {
    let mut console = Console::connected(80, 24);
    console.compiled(vec![mistake(), lint()], Some(emitted()));
    console.send(measured());
    console.send(overview());
    console.send(sessions());
    console.keys("7u31<enter>iselect 1<enter>");
    console.send(tried(1));
    for keys in [
        "1",
        "2",
        "2i",
        "<esc>3",
        "4",
        "5",
        "6",
        "7",
        "7u",
        "<esc>7i",
        "<esc>8",
        "9",
        "0",
        "?",
        "<esc>3/",
        "<esc>2<ctrl-p>",
        "<esc>8s",
    ] {
        console.keys(keys);
        for height in 1..=26 {
            for width in [1, 2, 3, 7, 20, 43, 44, 45, 60, 69, 70, 76, 99, 100, 130] {
                console.screen_at(width, height);
            }
        }
    }
}
