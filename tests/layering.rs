//! Who may use whom, read off the `use` lines and paths: the compiler does no input or output and knows no runtime,
//! terminal or driver; the database side does not know the console; views only read the model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::{Path, PathBuf};

/// A folder under `src`, and what its files may not name.
const RULES: &[(&str, &[&str])] = &[
    (
        "compiler",
        &[
            "tokio",
            "ratatui",
            "crossterm",
            "rustls",
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "crate::db",
            "crate::app",
            "crate::views",
            "crate::cli",
            "crate::bench",
            "crate::text",
        ],
    ),
    ("db", &["ratatui", "crossterm", "tui_textarea", "crate::app", "crate::views", "crate::cli"]),
    ("bench", &["ratatui", "crossterm", "tui_textarea", "crate::app", "crate::views", "crate::cli"]),
    ("views", &["tokio", "tokio_postgres", "std::fs", "std::net", "crate::cli"]),
    ("cli", &["ratatui", "crossterm", "tui_textarea", "crate::views"]),
    ("app/update", &["tokio", "tokio_postgres", "std::fs", "std::net", "crate::views", "crate::cli"]),
    ("app/model", &["tokio", "tokio_postgres", "std::fs", "std::net", "crate::views", "crate::cli"]),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The file without comments and without its own test module, which may use anything.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap().to_owned();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Whether `text` names the path `name`: as a whole word, followed by `::` or `;` or ` as `.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = &text[at + name.len()..];
        let whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        whole && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

#[test]
fn nobody_reaches_past_their_layer() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut broken = Vec::new();
    for (folder, forbidden) in RULES {
        let mut found = Vec::new();
        files(&src.join(folder), &mut found);
        assert!(!found.is_empty(), "src/{folder} has no files: the rule is out of date");
        for path in found.iter().filter(|path| !path.ends_with("tests.rs")) {
            let text = code(path);
            for name in *forbidden {
                if names(&text, name) {
                    broken.push(format!("{} names {name}", path.strip_prefix(&src).unwrap().display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "docs/ARCHITECTURE.md, \"Layers\", forbids:\n{}", broken.join("\n"));
}

#[test]
fn the_reader_of_names_sees_whole_paths_only() {
    assert!(names("use tokio::sync;", "tokio"));
    assert!(names("use crate::db as d;", "crate::db"));
    assert!(!names("use my_tokio::sync;", "tokio"));
    assert!(!names("use crate::dbx::y;", "crate::db"));
    assert!(!names("use a::tokio::b;", "tokio"));
}
