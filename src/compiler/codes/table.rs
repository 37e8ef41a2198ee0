//! The table of codes, in the order of their numbers: a file for each kind.

mod around;
mod inheritance;
mod later;
mod names;
mod rules;
mod text;

use super::{CodeInfo, Example};

const fn plain(code: u16, title: &'static str, help: &'static str) -> CodeInfo {
    CodeInfo { code, title, help, example: None }
}

const fn shown(code: u16, title: &'static str, help: &'static str, bad: &'static str, good: &'static str) -> CodeInfo {
    CodeInfo { code, title, help, example: Some(Example { bad, good }) }
}

/// Every code, by its number.
pub fn codes() -> impl Iterator<Item = &'static CodeInfo> {
    [text::TEXT, names::NAMES, inheritance::INHERITANCE, rules::RULES, later::LATER, around::AROUND]
        .into_iter()
        .flatten()
}
