//! What may limit inheritance: a condition that is the same for everyone at any time.

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::Condition;
use crate::compiler::resolve::NOT_BUILT;
use crate::compiler::sql::{Piece, PieceKind, meaningful};

/// Words PostgreSQL writes before a parenthesis that are no function of anybody's.
const NOT_FUNCTIONS: [&str; 27] = [
    "and", "or", "not", "in", "is", "any", "all", "some", "between", "like", "ilike", "similar", "case", "when",
    "then", "else", "coalesce", "nullif", "greatest", "least", "row", "array", "numeric", "varchar", "char",
    "distinct", "from",
];
/// Functions and values that differ from moment to moment or from reader to reader.
const NOT_THE_SAME: [&str; 32] = [
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "timeofday",
    "age",
    "random",
    "gen_random_uuid",
    "uuid_generate_v4",
    "uuidv4",
    "uuidv7",
    "nextval",
    "currval",
    "lastval",
    "setval",
    "current_user",
    "session_user",
    "user",
    "current_role",
    "system_user",
    "current_setting",
    "current_schema",
    "current_database",
    "inet_client_addr",
    "pg_backend_pid",
    "txid_current",
    "pg_current_xact_id",
];

/// What limits inheritance is stored, so it must be the same for everyone at any time; and this release stores only
/// what the row's own columns say.
pub(super) fn check_condition(condition: &Condition) -> Option<Diagnostic> {
    let pieces: Vec<Piece<'_>> = meaningful(&condition.sql).collect();
    let next = |at: usize| pieces.get(at + 1);
    let reads = pieces.iter().any(|piece| piece.is_word("select"));
    for (at, piece) in pieces.iter().enumerate().filter(|(_, p)| p.kind == PieceKind::Word) {
        let word = piece.text.to_lowercase();
        let qualifies = next(at).is_some_and(|p| p.is_punctuation("."));
        let qualified = at > 0 && pieces.get(at - 1).is_some_and(|p| p.is_punctuation("."));
        if qualifies && word == "authz" {
            return Some(varies(condition, "authz's functions"));
        }
        if !qualified && !qualifies && NOT_THE_SAME.contains(&word.as_str()) {
            return Some(varies(condition, &word));
        }
        let called = next(at).is_some_and(|p| p.is_punctuation("("));
        if called && !reads && !NOT_FUNCTIONS.contains(&word.as_str()) {
            let message = format!("an inheritance condition that calls a function is not built yet: {}", piece.text);
            return Some(Diagnostic::error(NOT_BUILT, condition.span, message));
        }
    }
    reads.then(|| {
        let message = "an inheritance condition that reads other tables is not built yet";
        Diagnostic::error(NOT_BUILT, condition.span, message)
    })
}

fn varies(condition: &Condition, what: &str) -> Diagnostic {
    let message = format!("what limits inheritance must be the same for everyone at any time, unlike {what}");
    Diagnostic::error(305, condition.span, message)
}
