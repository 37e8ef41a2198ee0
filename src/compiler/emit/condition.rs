//! Conditions written in SQL: where `this` is replaced by the row's name in the statement they are put into.

/// One piece of SQL text: a word, or anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// An unquoted identifier or keyword.
    Word(&'a str),
    /// A quoted name, string, comment, number, operator or space.
    Other(&'a str),
}

/// Splits SQL into words and everything else; strings, quoted names, comments and dollar quotes are one piece each.
fn pieces(sql: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => quoted(rest, '\''),
            '"' => quoted(rest, '"'),
            '-' if rest.starts_with("--") => rest.find('\n').map_or(rest.len(), |at| at + 1),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '$' => dollar_quoted(rest),
            c if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len())
            }
            // Digits run on into letters (1e5, 0x1F), so that no part of a number is taken for a word.
            c if c.is_ascii_digit() => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        let word = first.is_alphabetic() || first == '_';
        pieces.push(if word { Piece::Word(piece) } else { Piece::Other(piece) });
        rest = after;
    }
    pieces
}

/// The length of a quoted piece; a doubled quote stands for itself.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return at + quote.len_utf8();
            }
        }
    }
    text.len()
}

/// The length of `$tag$...$tag$`, or 1 for a `$` that opens none.
fn dollar_quoted(text: &str) -> usize {
    let Some(tag_end) = text.char_indices().skip(1).find(|(_, c)| !(c.is_alphanumeric() || *c == '_')) else { return 1 };
    let (at, '$') = tag_end else { return 1 };
    let (tag, body) = text.split_at(at + 1);
    body.find(tag).map_or(text.len(), |end| tag.len() + end + tag.len())
}

/// The condition with every `this.` replaced by `row.`; `row` is SQL text that names the row.
pub fn on_row(sql: &str, row: &str) -> String {
    let pieces = pieces(sql);
    let mut out = String::with_capacity(sql.len() + 16);
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Word(word) if word.eq_ignore_ascii_case("this") && follows_dot(&pieces, at) => out.push_str(row),
            Piece::Word(text) | Piece::Other(text) => out.push_str(text),
        }
    }
    out
}

fn follows_dot(pieces: &[Piece<'_>], at: usize) -> bool {
    let dot_before = at.checked_sub(1).and_then(|i| pieces.get(i)) == Some(&Piece::Other("."));
    !dot_before && pieces.get(at + 1) == Some(&Piece::Other("."))
}

/// Whether the condition looks at other rows: it holds a sub-select.
pub fn reads_rows(sql: &str) -> bool {
    pieces(sql).iter().any(|piece| matches!(piece, Piece::Word(w) if w.eq_ignore_ascii_case("select")))
}

/// Whether the condition depends on who asks or on the request (anything in schema `authz`).
pub fn depends_on_asker(sql: &str) -> bool {
    pieces(sql).iter().any(|piece| {
        matches!(piece, Piece::Word(w) if ["authz", "current_setting", "current_user", "session_user"]
            .iter().any(|name| w.eq_ignore_ascii_case(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_is_the_row_outside_strings_names_and_comments() {
        assert_eq!(on_row("this.a = 'this.b' AND x.this.c -- this.d", "r"), "r.a = 'this.b' AND x.this.c -- this.d");
        assert_eq!(on_row("\"this\".a or THIS.b or $q$this.c$q$ or 'it''s this.d'", "r"), "\"this\".a or r.b or $q$this.c$q$ or 'it''s this.d'");
        assert_eq!(on_row("nothis.a = /* this.b */ this.c", "\"t\""), "nothis.a = /* this.b */ \"t\".c");
    }

    #[test]
    fn sub_selects_and_askers_are_seen_outside_strings_only() {
        assert!(reads_rows("EXISTS (SeLeCt 1)"));
        assert!(!reads_rows("note = 'select' and selected"));
        assert!(depends_on_asker("owner = authz.uid()"));
        assert!(!depends_on_asker("note = 'authz'"));
    }
}
