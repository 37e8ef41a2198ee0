//! Conditions written in SQL.
//!
//! Row-level security policies and views are evaluated as the app role, so a condition's own text may stand in them only
//! when all it does is compute: a sub-select would run under the rules and without the owner's privileges, and so would
//! a function that reads. A condition is *simple* when its words show that it computes only: columns of the row,
//! literals, operators and a few functions of PostgreSQL's, none of them qualified. Objects are made under the search
//! path `pg_catalog, pg_temp`, so an unqualified operator or function can only be PostgreSQL's own; `db::plan` asks the
//! server all the same. Any other condition becomes a function of the row that runs as the owner.

use std::cell::RefCell;
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::Condition;
use crate::compiler::sql::{Piece, PieceKind, meaningful, pieces};

use super::context::Policy;
use super::names;
use super::views::Made;

/// Functions of PostgreSQL's that compute and read nothing.
const COMPUTE: [&str; 25] = [
    "abs",
    "array_length",
    "btrim",
    "cardinality",
    "ceil",
    "char_length",
    "coalesce",
    "date_trunc",
    "floor",
    "greatest",
    "least",
    "left",
    "length",
    "lower",
    "ltrim",
    "mod",
    "now",
    "nullif",
    "replace",
    "right",
    "round",
    "rtrim",
    "starts_with",
    "substr",
    "upper",
];
/// Types of PostgreSQL's that are one word.
const TYPES: [&str; 14] = [
    "bigint",
    "bool",
    "boolean",
    "date",
    "int",
    "integer",
    "interval",
    "jsonb",
    "numeric",
    "smallint",
    "text",
    "timestamptz",
    "uuid",
    "varchar",
];
/// Words that join operands.
const JOINING: [&str; 20] = [
    "and", "or", "not", "is", "null", "true", "false", "distinct", "from", "in", "between", "like", "ilike", "case",
    "when", "then", "else", "end", "isnull", "notnull",
];
/// Words that are no column where they stand bare: PostgreSQL's reserved words, but for the joining ones.
const RESERVED: [&str; 66] = [
    "all",
    "analyse",
    "analyze",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "cast",
    "check",
    "collate",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "do",
    "except",
    "exists",
    "fetch",
    "for",
    "foreign",
    "full",
    "grant",
    "group",
    "having",
    "inner",
    "intersect",
    "into",
    "join",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "offset",
    "on",
    "only",
    "order",
    "overlaps",
    "row",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "union",
    "user",
    "using",
    "where",
    "with",
];

/// A piece of a simple condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As written.
    Text(String),
    /// A column of the row.
    Column(Ident),
    /// `authz.uid()`
    Caller,
    /// `authz.ctx('...')` with its literal.
    Context(String),
}

/// Whether the text of a condition can stand in a policy or a view as it is.
pub fn is_simple(sql: &str) -> bool {
    simple(sql).is_some()
}

/// The parts of a simple condition; `None` when its words do not show that it computes only.
fn simple(sql: &str) -> Option<Vec<Part>> {
    let mut reader = Reader { pieces: pieces(sql).collect(), at: 0, parts: Vec::new(), operand: false };
    while reader.at < reader.pieces.len() {
        reader.step()?;
    }
    Some(reader.parts)
}

struct Reader<'s> {
    pieces: Vec<Piece<'s>>,
    at: usize,
    parts: Vec<Part>,
    /// Whether the last part was an operand: two in a row are more syntax than is known here.
    operand: bool,
}

impl Reader<'_> {
    fn step(&mut self) -> Option<()> {
        let piece = *self.pieces.get(self.at)?;
        self.at += 1;
        match piece.kind {
            PieceKind::Space => self.text(piece.text),
            PieceKind::Text if piece.text.starts_with('\'') => self.operand(Part::Text(piece.text.to_owned()))?,
            PieceKind::Number => self.operand(Part::Text(piece.text.to_owned()))?,
            PieceKind::Quoted => self.operand(Part::Column(ident(&piece)))?,
            PieceKind::Word => self.word(&piece)?,
            PieceKind::Punctuation => self.punctuation(&piece)?,
            _ => return None,
        }
        Some(())
    }

    fn text(&mut self, text: &str) {
        self.parts.push(Part::Text(text.to_owned()));
    }

    fn operand(&mut self, part: Part) -> Option<()> {
        if self.operand || self.is(0, ".") {
            return None;
        }
        self.operand = true;
        self.parts.push(part);
        Some(())
    }

    /// Whether the next piece but `skip` is this punctuation, with nothing between.
    fn is(&self, skip: usize, mark: &str) -> bool {
        self.pieces.get(self.at + skip).is_some_and(|piece| piece.is_punctuation(mark))
    }

    fn punctuation(&mut self, piece: &Piece<'_>) -> Option<()> {
        match piece.text {
            "(" if self.operand => return None,
            "(" | ")" => {
                self.operand = piece.text == ")";
                self.text(piece.text);
            }
            ":" if self.is(0, ":") && self.operand => {
                let ty = self.pieces.get(self.at + 1).filter(|p| TYPES.iter().any(|ty| p.is_word(ty)))?;
                let text = format!("::{}", ty.text);
                self.at += 2;
                self.text(&text);
            }
            "," | "=" | "<" | ">" | "!" | "+" | "-" | "*" | "/" | "%" | "|" | "~" => {
                self.operand = false;
                self.text(piece.text);
            }
            _ => return None,
        }
        Some(())
    }

    fn word(&mut self, piece: &Piece<'_>) -> Option<()> {
        let word = piece.text.to_lowercase();
        if word == "authz" {
            return self.helper();
        }
        if word == "this" {
            let column = *self.pieces.get(self.at + 1).filter(|_| self.is(0, "."))?;
            self.at += 2;
            return matches!(column.kind, PieceKind::Word | PieceKind::Quoted)
                .then(|| self.operand(Part::Column(ident(&column))))?;
        }
        if self.is(0, "(") && !JOINING.contains(&word.as_str()) {
            if self.operand || !COMPUTE.contains(&word.as_str()) {
                return None;
            }
            self.text(piece.text);
            return Some(());
        }
        let after_is = || self.last_word().is_some_and(|last| last == "is" || last == "not");
        if JOINING.contains(&word.as_str()) || word == "unknown" && after_is() {
            self.operand =
                matches!(word.as_str(), "null" | "true" | "false" | "end" | "unknown" | "isnull" | "notnull");
            self.text(piece.text);
            return Some(());
        }
        (!RESERVED.contains(&word.as_str())).then(|| self.operand(Part::Column(ident(piece))))?
    }

    /// The last part that is no space, in lower case.
    fn last_word(&self) -> Option<String> {
        let texts = self.parts.iter().rev().map(|part| match part {
            Part::Text(text) => text.trim().to_lowercase(),
            _ => ".".to_owned(),
        });
        texts.into_iter().find(|text| !text.is_empty())
    }

    /// `authz.uid()` and `authz.ctx('...')`, behind `authz`.
    fn helper(&mut self) -> Option<()> {
        let rest: Vec<Piece<'_>> = self.pieces.get(self.at..)?.iter().take(5).copied().collect();
        match rest.as_slice() {
            [dot, name, open, close, ..]
                if dot.is_punctuation(".")
                    && name.is_word("uid")
                    && open.is_punctuation("(")
                    && close.is_punctuation(")") =>
            {
                self.at += 4;
                self.operand(Part::Caller)
            }
            [dot, name, open, key, close]
                if dot.is_punctuation(".")
                    && name.is_word("ctx")
                    && open.is_punctuation("(")
                    && key.kind == PieceKind::Text
                    && key.text.starts_with('\'')
                    && close.is_punctuation(")") =>
            {
                let key = key.text.to_owned();
                self.at += 5;
                self.operand(Part::Context(key))
            }
            _ => None,
        }
    }
}

/// The identifier a piece writes, as the catalog stores it.
fn ident(piece: &Piece<'_>) -> Ident {
    match piece.kind {
        PieceKind::Quoted => {
            let inner = piece.text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(piece.text);
            Ident::new(inner.replace("\"\"", "\""))
        }
        _ => Ident::new(piece.text.to_lowercase()),
    }
}

/// A simple condition on the row called `row`.
fn write(parts: &[Part], row: &str) -> String {
    let mut out = String::from("(");
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Column(column) => out.push_str(&format!("{row}.{column}")),
            // Sub-selects without outer references run once a statement, not once a row.
            Part::Caller => out.push_str("(SELECT authz.uid())"),
            Part::Context(key) => out.push_str(&format!("(SELECT authz.ctx({key}))")),
        }
    }
    out.truncate(out.trim_end().len());
    out.push(')');
    out
}

/// Functions of a row that conditions became, by their names.
#[derive(Debug, Default)]
pub struct RowFunctions(RefCell<BTreeMap<String, String>>);

impl RowFunctions {
    /// Hands them over to what is made. They come before everything that calls them.
    pub fn make(&self, made: &mut Made) {
        for (name, sql) in self.0.borrow().iter().rev() {
            made.function_first(name, sql.clone());
        }
    }
}

impl Policy<'_> {
    /// A condition on the row of `table` that is called `row`, as SQL in parentheses.
    pub fn on_row(&self, table: &QualName, condition: &Condition, row: &str) -> String {
        let sql = condition.sql.trim();
        if let Some(parts) = simple(sql) {
            return write(&parts, row);
        }
        let hash = Sha256::digest(format!("{table}\u{0}{sql}").as_bytes());
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = names::condition(&hash);
        let (body, asks) = with_caller(sql);
        // A whole row keeps its type only from unnest; columns come cheaper from a sub-select.
        let from = if names_whole_row(sql) { "unnest(ARRAY[$1])" } else { "(SELECT ($1).*)" };
        let user = self.key(self.model.user).map(|key| key.sql()).unwrap_or_default();
        let caller = if asks { format!(", {user}") } else { String::new() };
        let function = format!(
            "CREATE FUNCTION {name}({table}{caller}) RETURNS boolean\nLANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER\n\
             SET search_path = pg_catalog, pg_temp\nSET plan_cache_mode = force_generic_plan\nAS $authz$\n\
             #variable_conflict use_column\nBEGIN\n  RETURN (SELECT (\n{body}\n  ) FROM {from} AS this);\nEND $authz$"
        );
        self.row_functions.0.borrow_mut().entry(format!("{name}({table}{caller})")).or_insert(function);
        let caller = if asks { ", (SELECT authz.uid())" } else { "" };
        format!("{name}({row}.*{caller})")
    }
}

/// The condition with `authz.uid()` as the function's second argument, and whether it names it.
fn with_caller(sql: &str) -> (String, bool) {
    let all: Vec<Piece<'_>> = pieces(sql).collect();
    let mut out = String::with_capacity(sql.len());
    let mut asks = false;
    let mut at = 0;
    while let Some(piece) = all.get(at) {
        let rest = all.get(at + 1..at + 5).unwrap_or_default();
        let uid = piece.is_word("authz")
            && matches!(rest, [dot, name, open, close] if dot.is_punctuation(".") && name.is_word("uid")
                && open.is_punctuation("(") && close.is_punctuation(")"));
        out.push_str(if uid { "$2" } else { piece.text });
        asks |= uid;
        at += if uid { 5 } else { 1 };
    }
    (out, asks)
}

/// Whether a condition names `this` other than to name a column of it.
fn names_whole_row(sql: &str) -> bool {
    let all: Vec<Piece<'_>> = meaningful(sql).collect();
    let dot = |at: Option<usize>| at.and_then(|at| all.get(at)).is_some_and(|piece| piece.is_punctuation("."));
    let star = |at: usize| all.get(at).is_some_and(|piece| piece.is_punctuation("*"));
    let whole = |at: usize| !dot(Some(at + 1)) || star(at + 2);
    all.iter().enumerate().any(|(at, piece)| piece.is_word("this") && !dot(at.checked_sub(1)) && whole(at))
}

/// Whether a condition may depend on who asks or on the request: it names anything of schema `authz`, a setting or the
/// role, or calls a function that may do so.
pub fn depends_on_asker(sql: &str) -> bool {
    const ASKERS: [&str; 6] =
        ["authz", "current_setting", "current_user", "session_user", "current_role", "system_user"];
    let all: Vec<Piece<'_>> = meaningful(sql).collect();
    let called = |at: usize| all.get(at + 1).is_some_and(|piece| piece.is_punctuation("("));
    let qualified = |at: usize| at > 0 && all.get(at - 1).is_some_and(|piece| piece.is_punctuation("."));
    all.iter().enumerate().any(|(at, piece)| {
        ASKERS.iter().any(|name| piece.is_word(name))
            || (piece.kind == PieceKind::Quoted && piece.text == "\"authz\"")
            || (matches!(piece.kind, PieceKind::Word | PieceKind::Quoted) && called(at) && qualified(at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_row(sql: &str) -> Option<String> {
        simple(sql.trim()).map(|parts| write(&parts, "r"))
    }

    #[test]
    fn columns_of_a_simple_condition_are_qualified() {
        for (written, expected) in [
            ("draft", "(r.\"draft\")"),
            ("not this.Draft", "(not r.\"draft\")"),
            ("this.\"A \"\"b\" = 'this.b' and x is not null", "(r.\"A \"\"b\" = 'this.b' and r.\"x\" is not null)"),
            ("owner_id = authz.uid()", "(r.\"owner_id\" = (SELECT authz.uid()))"),
            ("authz.ctx('ip') = lower(ip)", "((SELECT authz.ctx('ip')) = lower(r.\"ip\"))"),
            ("until::date >= now() or n in (1, 2)", "(r.\"until\"::date >= now() or r.\"n\" in (1, 2))"),
            ("ok is unknown", "(r.\"ok\" is unknown)"),
            ("case when a then b else false end", "(case when r.\"a\" then r.\"b\" else false end)"),
        ] {
            assert_eq!(on_row(written).as_deref(), Some(expected), "{written}");
        }
    }

    #[test]
    fn what_may_read_or_be_somebody_elses_is_not_simple() {
        for sql in [
            "EXISTS (SELECT 1)",
            "app.is_open(this.id)",
            "is_open(status)",
            "a OPERATOR(app.=) b",
            "current_user = name",
            "pg_sleep(1) is null",
            "query_to_xml('select 1', true, true, '') is null",
            "this is not null",
            "(this.address).city = 'x'",
            "kind::app.kind = 'x'",
            "date '2030-01-01' < day",
            "at at time zone 'utc' < now()",
            "tags[1] = 'x'",
            "authz.ctx(name) = 'x'",
            "authz.principal() = 'x'",
            "\"authz\".uid() = 1",
            "files.draft",
            "a = $1",
            "E'\\'' = a",
            "lower (a) = b (c)",
        ] {
            assert_eq!(on_row(sql), None, "{sql}");
        }
    }

    #[test]
    fn the_caller_of_a_row_function_is_its_argument() {
        assert_eq!(with_caller("a = authz.uid() and 'authz.uid()' = b"), ("a = $2 and 'authz.uid()' = b".into(), true));
        assert_eq!(with_caller("authz.uid = 1"), ("authz.uid = 1".into(), false));
    }

    #[test]
    fn whole_rows_are_told_from_columns() {
        assert!(names_whole_row("app.f(this)"));
        assert!(names_whole_row("app.f(this.*)"));
        assert!(!names_whole_row("app.f(this.a) and x.this"));
    }

    #[test]
    fn what_depends_on_the_asker_is_seen_outside_strings_only() {
        assert!(depends_on_asker("owner = authz.uid()"));
        assert!(depends_on_asker("app.visible(this.id)"));
        assert!(!depends_on_asker("note = 'authz' and lower(note) = 'x'"));
        assert!(!depends_on_asker("EXISTS (SELECT 1 FROM app.x WHERE x.id = this.id)"));
    }
}
