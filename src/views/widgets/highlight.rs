//! Colours for policy text, line by line, by its look alone: it must also work while the text does not compile.

use crate::app::theme::Role;

const KEYWORDS: &[&str] = &[
    "app",
    "role",
    "type",
    "rules",
    "view",
    "test",
    "scope",
    "caveat",
    "invariants",
    "include",
    "can",
    "or",
    "and",
    "not",
    "where",
    "shared",
    "by",
    "if",
    "given",
    "as",
    "with",
    "sees",
    "allowed",
    "refused",
    "cannot",
    "never",
    "select",
    "insert",
    "update",
    "delete",
    "mask",
    "after",
    "before",
    "cascade",
    "from",
    "principal",
    "signed_in",
    "anyone",
    "nobody",
    "roles",
];

/// Braces open at the start of line `top`, found from the nearest block header above it (at most 400 lines up).
pub fn start_depth(lines: &[String], top: usize) -> usize {
    let floor = top.saturating_sub(400);
    let from = (floor..top)
        .rev()
        .find(|at| lines.get(*at).is_some_and(|l| l.starts_with(|c: char| c.is_ascii_lowercase())))
        .unwrap_or(floor);
    let mut depth = 0;
    for text in lines.iter().take(top).skip(from) {
        highlight(text, &mut depth);
    }
    depth
}

/// The pieces of a line and their roles; `depth` counts the braces open before it and is left at those open after it.
pub fn highlight(text: &str, depth: &mut usize) -> Vec<(String, Role)> {
    let mut pieces: Vec<(String, Role)> = Vec::new();
    let mut push = |piece: &str, role: Role| match pieces.last_mut() {
        Some((last, known)) if *known == role => last.push_str(piece),
        _ => pieces.push((piece.to_owned(), role)),
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if *depth == 0 && rest.starts_with("--") {
            push(rest, Role::Comment);
            break;
        }
        let length = match first {
            '\'' | '"' => quoted(rest, first),
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        match first {
            '{' => *depth += 1,
            '}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        let role = match () {
            () if *depth > 0 || first == '}' => Role::Sql,
            () if KEYWORDS.contains(&piece) => Role::Keyword,
            () if first.is_alphabetic() || first == '"' => Role::Name,
            () => Role::Text,
        };
        push(piece, role);
        rest = after;
    }
    pieces
}

/// Bytes of a quoted piece, to the end of the line when it does not end.
fn quoted(text: &str, quote: char) -> usize {
    text.char_indices().skip(1).find(|(_, c)| *c == quote).map_or(text.len(), |(at, c)| at + c.len_utf8())
}
