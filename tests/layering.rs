//! Who may use whom. The names in `use` lines and paths are read from the source; what is not allowed fails here, not in
//! a review.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::{Path, PathBuf};

/// A part of the program, the parts of it that it may not use, and the libraries that it may not use.
struct Layer {
    folder: &'static str,
    parts: &'static [&'static str],
    libraries: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    // No input or output, no runtime, no driver, no terminal.
    Layer {
        folder: "compiler",
        parts: &["app", "bench", "cli", "db", "policy_file", "text", "views"],
        libraries: &[
            "tokio",
            "tokio_postgres",
            "ratatui",
            "tui_textarea",
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
        ],
    },
    // Everything about a server; nothing of a screen or of the command line.
    Layer { folder: "db", parts: &["app", "bench", "cli", "views"], libraries: &["ratatui", "tui_textarea", "clap"] },
    // Answers editors from the compiler; one thread, no server.
    Layer {
        folder: "lsp",
        parts: &["app", "bench", "cli", "views"],
        libraries: &["ratatui", "tui_textarea", "clap", "tokio", "tokio_postgres"],
    },
    // Measures from outside.
    Layer { folder: "bench", parts: &["app", "cli", "views"], libraries: &["ratatui", "tui_textarea", "clap"] },
    // Draws what the model holds.
    Layer {
        folder: "views",
        parts: &["bench", "cli", "policy_file"],
        libraries: &["tokio", "tokio_postgres", "clap", "std::fs", "std::net", "std::process"],
    },
    // The pure part of the console.
    Layer {
        folder: "app/update",
        parts: &["cli", "views"],
        libraries: &["tokio", "tokio_postgres", "clap", "std::fs", "std::net", "std::process", "ratatui::Terminal"],
    },
    Layer { folder: "app", parts: &["cli"], libraries: &["clap"] },
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// True when `code` holds `path` as a whole path, not as a part of a longer name.
fn names(code: &str, path: &str) -> bool {
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + path.len()..].chars().next();
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !word(before) && before != Some(':') && !word(after)
    })
}

#[test]
fn every_part_uses_only_what_it_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for layer in LAYERS {
        let mut found = Vec::new();
        sources(&root.join(layer.folder), &mut found);
        assert!(!found.is_empty(), "nothing in {}", layer.folder);
        for path in found {
            let text = std::fs::read_to_string(&path).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap();
                let parts = layer.parts.iter().map(|part| format!("crate::{part}"));
                let libraries = layer.libraries.iter().map(|library| format!("{library}::"));
                for forbidden in parts.chain(libraries) {
                    if names(code, forbidden.trim_end_matches("::")) && code.contains(&forbidden) {
                        wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "uses what it may not:\n{}", wrong.join("\n"));
}
