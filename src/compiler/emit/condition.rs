//! Conditions written in SQL: where `this` is replaced by the row's name in the statement they are put into.

use crate::compiler::sql::{Piece, PieceKind, meaningful, pieces};

/// The condition with every `this.` replaced by `row.`; `row` is SQL text that names the row.
pub fn on_row(sql: &str, row: &str) -> String {
    let pieces: Vec<Piece<'_>> = pieces(sql).collect();
    let is_dot = |at: Option<usize>| at.and_then(|at| pieces.get(at)).is_some_and(|piece| piece.is_punctuation("."));
    let mut out = String::with_capacity(sql.len() + 16);
    for (at, piece) in pieces.iter().enumerate() {
        let names_row = piece.is_word("this") && is_dot(Some(at + 1)) && !is_dot(at.checked_sub(1));
        out.push_str(if names_row { row } else { piece.text });
    }
    out
}

/// Whether the condition looks at other rows: it holds a sub-select.
pub fn reads_rows(sql: &str) -> bool {
    meaningful(sql).any(|piece| piece.is_word("select"))
}

/// Whether the condition depends on who asks or on the request: it names anything of schema `authz`, or a setting.
pub fn depends_on_asker(sql: &str) -> bool {
    const ASKERS: [&str; 5] = ["authz", "current_setting", "current_user", "session_user", "current_role"];
    meaningful(sql).any(|piece| {
        ASKERS.iter().any(|name| piece.is_word(name)) || (piece.kind == PieceKind::Quoted && piece.text == "\"authz\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_is_the_row_outside_strings_names_and_comments() {
        assert_eq!(on_row("this.a = 'this.b' AND x.this.c -- this.d", "r"), "r.a = 'this.b' AND x.this.c -- this.d");
        assert_eq!(
            on_row("\"this\".a or THIS.b or $q$this.c$q$ or 'it''s this.d'", "r"),
            "\"this\".a or r.b or $q$this.c$q$ or 'it''s this.d'"
        );
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
