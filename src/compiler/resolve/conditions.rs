//! What can be said of a condition without asking PostgreSQL.

use super::Resolver;
use crate::compiler::ast::Sql;
use crate::compiler::model::Condition;
use crate::compiler::span::Span;
use crate::compiler::sql::{Piece, PieceKind, meaningful, pieces};

impl Resolver<'_> {
    /// A condition on a row. `code` is that of the line it stands in.
    pub(super) fn row_condition(&mut self, sql: &Sql, code: u16) -> Option<Condition> {
        let before = self.diagnostics.len();
        self.check_condition(sql, code);
        (self.diagnostics.len() == before).then(|| Condition { sql: without_comments(&sql.text), span: sql.span })
    }

    /// A caveat's condition, which has no row.
    pub(super) fn caveat_condition(&mut self, sql: &Sql) -> Option<Condition> {
        let before = self.diagnostics.len();
        self.check_condition(sql, 101);
        if let Some(this) = meaningful(&sql.text).find(|p| p.is_word("this")) {
            self.error(112, span_of(sql, &this), "a caveat has no row, so there is no \"this\"");
        }
        (self.diagnostics.len() == before).then(|| Condition { sql: without_comments(&sql.text), span: sql.span })
    }

    /// A condition is pasted between parentheses, so it must be one whole expression: nothing in it may end the
    /// parentheses or the statement around it.
    fn check_condition(&mut self, sql: &Sql, code: u16) {
        let mut open: Vec<Piece<'_>> = Vec::new();
        let mut empty = true;
        for piece in meaningful(&sql.text) {
            empty = false;
            let at = span_of(sql, &piece);
            match (piece.kind, piece.text) {
                (PieceKind::Text | PieceKind::Quoted, text) if text.contains("$authz") => {
                    self.error(110, at, "a condition cannot hold $authz, which closes the functions it is put into");
                }
                (PieceKind::Variable, text) => {
                    self.error(
                        code,
                        at,
                        format!("{text} stands for nothing in a condition; only tests have such names"),
                    );
                }
                (PieceKind::Punctuation, "$") => {
                    self.error(code, at, "a condition has no parameters");
                }
                (PieceKind::DollarText, _) => {
                    self.error(110, at, "a dollar-quoted string in a condition; write it between single quotes");
                }
                (PieceKind::Word | PieceKind::Quoted, text)
                    if text.trim_matches('"').to_lowercase().starts_with("authz__") =>
                {
                    self.error(113, at, format!("{text} begins with authz__, which generated names begin with"));
                }
                (PieceKind::Punctuation, ";") => {
                    self.error(code, at, "a condition is one expression, without a semicolon")
                }
                (PieceKind::Punctuation, "(" | "[") => open.push(piece),
                (PieceKind::Punctuation, ")" | "]") => {
                    let fits = if piece.text == ")" { "(" } else { "[" };
                    if open.pop().is_none_or(|p| p.text != fits) {
                        return self.error(
                            code,
                            at,
                            format!("this \"{}\" closes nothing in the condition", piece.text),
                        );
                    }
                }
                _ => {}
            }
        }
        if let Some(piece) = open.first() {
            self.error(code, span_of(sql, piece), format!("this \"{}\" is never closed in the condition", piece.text));
        }
        if empty {
            let whole = Span { start: sql.span.start.saturating_sub(1), end: sql.span.end + 1, ..sql.span };
            self.error(code, whole, "an empty condition");
        }
    }
}

/// The SQL with spaces for its comments: a condition is pasted into other SQL, and a comment at its end would take what
/// follows with it. Everything else stays where it is, so places in it are still places in the policy.
fn without_comments(sql: &str) -> String {
    let blank = |c: char| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) };
    pieces(sql)
        .map(|piece| match piece.kind {
            PieceKind::Comment => piece.text.chars().map(blank).collect(),
            _ => piece.text.to_owned(),
        })
        .collect()
}

/// Where a piece of a condition stands in the policy.
pub(super) fn span_of(sql: &Sql, piece: &Piece<'_>) -> Span {
    let start = sql.span.start as usize + piece.at;
    Span::new(sql.span.file, start, start + piece.text.len())
}
