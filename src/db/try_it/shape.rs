//! The one table and the condition of a simple statement, found without PostgreSQL's parser: enough to ask for the same
//! rows in another way, and to say so where it is not enough.

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Select,
    /// Makes rows.
    Insert,
    /// Changes rows.
    Update,
    /// Removes rows.
    Delete,
}

/// A statement on one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What it does.
    pub verb: Verb,
    /// The table's name as written.
    pub table: String,
    /// The table and what the statement calls it, as written.
    pub from: String,
    /// What stands after WHERE.
    pub condition: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Quoted,
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    start: usize,
    end: usize,
    /// Parentheses open before it.
    depth: usize,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }
}

/// Words before a parenthesis that call no function.
const NO_CALL: &[&str] = &[
    "in", "any", "all", "some", "and", "or", "not", "values", "exists", "between", "is", "like", "ilike", "select",
    "where", "from", "coalesce", "nullif", "greatest", "least", "cast", "array", "row", "lower", "upper", "length",
    "now", "case", "when", "then", "else", "on", "distinct", "by", "using",
];

/// Reads a statement.
///
/// # Errors
/// Why it is not of the simple kind, as the end of a sentence.
pub fn read(statement: &str) -> Result<Shape, &'static str> {
    let tokens = tokens(statement);
    let first = tokens.first().ok_or("there is no statement")?;
    let at = |word: &str| tokens.iter().position(|t| t.depth == 0 && t.is(word));
    let (verb, from) = match first.text.to_ascii_lowercase().as_str() {
        "select" => (Verb::Select, at("from").ok_or("it reads no table")? + 1),
        "table" => (Verb::Select, 1),
        "update" => (Verb::Update, 1),
        "delete" => (Verb::Delete, at("from").ok_or("it names no table")? + 1),
        "insert" => (Verb::Insert, at("into").ok_or("it names no table")? + 1),
        _ => return Err("only a SELECT, UPDATE or DELETE of one table is told apart"),
    };
    let (table, from_end) = name(statement, &tokens, from)?;
    if verb == Verb::Insert {
        return Ok(Shape { verb, from: table.clone(), table, condition: None });
    }
    let after = alias(&tokens, from_end);
    let start = tokens.get(from).map_or(0, |t| t.start);
    let end = tokens.get(after.wrapping_sub(1)).map_or(start, |t| t.end);
    let from_text = statement.get(start..end).unwrap_or("").to_owned();
    let rest = tokens.get(after..).unwrap_or_default();
    let shared = ["from", "using", "union", "intersect", "except", "join", "offset", "having", "fetch", "current"];
    if rest
        .iter()
        .any(|t| t.depth == 0 && (t.any(&shared) || (verb == Verb::Select && t.text == "," && before_where(rest, t))))
    {
        return Err("it is about more than the rows of one table");
    }
    let condition = rest.iter().position(|t| t.depth == 0 && t.is("where")).map(|at| {
        let words = rest.get(at + 1..).unwrap_or_default();
        let ends = ["group", "window", "order", "limit", "for", "returning"];
        let last = words.iter().position(|t| t.depth == 0 && t.any(&ends)).unwrap_or(words.len());
        words.get(..last).unwrap_or_default()
    });
    if let Some(words) = condition
        && words.windows(2).any(|pair| matches!(pair, [a, b] if b.text == "(" && calls(a)))
    {
        return Err("its condition calls a function, which is not run with this session's rights");
    }
    let condition = condition.and_then(|words| {
        let (first, last) = (words.first()?, words.last()?);
        statement.get(first.start..last.end).map(str::to_owned)
    });
    Ok(Shape { verb, table, from: from_text, condition })
}

fn before_where(rest: &[Token<'_>], comma: &Token<'_>) -> bool {
    rest.iter().find(|t| t.depth == 0 && t.any(&["where", "group", "order"])).is_none_or(|t| comma.start < t.start)
}

fn calls(before: &Token<'_>) -> bool {
    before.kind == Kind::Quoted || (before.kind == Kind::Word && !before.any(NO_CALL))
}

/// A name with its schema, from token `at`: the text, and the token after it.
fn name(statement: &str, tokens: &[Token<'_>], mut at: usize) -> Result<(String, usize), &'static str> {
    if tokens.get(at).is_some_and(|t| t.is("only")) {
        at += 1;
    }
    let first = tokens.get(at).filter(|t| t.kind != Kind::Other).ok_or("it reads no table by its name")?;
    let mut last = at;
    while tokens.get(last + 1).is_some_and(|t| t.text == ".")
        && tokens.get(last + 2).is_some_and(|t| t.kind != Kind::Other)
    {
        last += 2;
    }
    if tokens.get(last + 1).is_some_and(|t| t.text == "(") && !tokens.first().is_some_and(|t| t.is("insert")) {
        return Err("it reads a function, not a table");
    }
    let end = tokens.get(last).map_or(first.end, |t| t.end);
    Ok((statement.get(first.start..end).unwrap_or("").to_owned(), last + 1))
}

/// The token after what the statement calls the table.
fn alias(tokens: &[Token<'_>], mut at: usize) -> usize {
    const NEXT: &[&str] = &[
        "where",
        "set",
        "group",
        "having",
        "window",
        "order",
        "limit",
        "offset",
        "fetch",
        "for",
        "returning",
        "from",
        "using",
        "union",
        "intersect",
        "except",
        "join",
        "inner",
        "left",
        "right",
        "full",
        "cross",
        "natural",
        "tablesample",
    ];
    if tokens.get(at).is_some_and(|t| t.text == "*") {
        at += 1;
    }
    if tokens.get(at).is_some_and(|t| t.is("as")) {
        return at + 2;
    }
    match tokens.get(at) {
        Some(t) if t.kind != Kind::Other && !t.any(NEXT) => at + 1,
        _ => at,
    }
}

/// True when the statement begins with something that is no query and no change of rows, or is several.
pub fn ends_itself(statement: &str) -> bool {
    let tokens = tokens(statement);
    let allowed = ["select", "insert", "update", "delete", "merge", "values", "with", "table"];
    tokens.iter().any(|t| t.text == ";") || tokens.first().is_none_or(|t| !t.any(&allowed) && t.text != "(")
}

/// True when it begins as something does that a cursor may read.
pub fn may_be_read_by_a_cursor(statement: &str) -> bool {
    reads(statement) || tokens(statement).first().is_some_and(|t| t.is("with") || t.text == "(")
}

/// True when the statement reads only, by its first word.
pub fn reads(statement: &str) -> bool {
    tokens(statement).first().is_some_and(|t| t.any(&["select", "values", "table"]))
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(first) = rest.chars().next() else { break };
        let length = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '-' if rest.starts_with("--") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '/' if rest.starts_with("/*") => {
                at += comment(rest);
                continue;
            }
            '\'' => string(rest, '\'', false),
            '"' => string(rest, '"', false),
            'e' | 'E' if rest.get(1..).is_some_and(|r| r.starts_with('\'')) => {
                1 + string(rest.get(1..).unwrap_or(""), '\'', true)
            }
            '$' => dollar(rest),
            c if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len())
            }
            c if c.is_ascii_digit() => rest.find(|c: char| !(c.is_alphanumeric() || c == '.')).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let kind = match first {
            '"' => Kind::Quoted,
            c if (c.is_alphabetic() || c == '_') && !rest.get(..length).unwrap_or("").ends_with('\'') => Kind::Word,
            _ => Kind::Other,
        };
        let piece = rest.get(..length).unwrap_or("");
        if piece == ")" {
            depth = depth.saturating_sub(1);
        }
        out.push(Token { kind, text: piece, start: at, end: at + length, depth });
        if piece == "(" {
            depth += 1;
        }
        at += length.max(1);
    }
    out
}

/// Bytes of a comment, which may hold comments.
fn comment(text: &str) -> usize {
    let (mut at, mut open) = (0, 0_usize);
    while at < text.len() {
        let rest = text.get(at..).unwrap_or("");
        if rest.starts_with("/*") {
            (at, open) = (at + 2, open + 1);
        } else if rest.starts_with("*/") {
            (at, open) = (at + 2, open - 1);
            if open == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Bytes of a quoted piece, in which a quote is written twice (or after a backslash, where that counts).
fn string(text: &str, quote: char, escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// Bytes of `$tag$ ... $tag$`; of `$1` where it is a parameter.
fn dollar(text: &str) -> usize {
    let body = text.get(1..).unwrap_or("");
    let tag = body.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(body.len());
    if body.get(tag..).is_some_and(|rest| rest.starts_with('$')) && !body.starts_with(|c: char| c.is_ascii_digit()) {
        let mark = text.get(..tag + 2).unwrap_or("$$");
        let inside = text.get(tag + 2..).unwrap_or("");
        return inside.find(mark).map_or(text.len(), |at| at + 2 * mark.len());
    }
    1 + tag
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn parts(statement: &str) -> (Verb, String, String, String) {
        let shape = read(statement).unwrap_or_else(|why| panic!("{statement}: {why}"));
        (shape.verb, shape.table, shape.from, shape.condition.unwrap_or_default())
    }

    #[test]
    fn one_table_and_its_condition_are_found() {
        let own = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        for (statement, verb, (table, from, condition)) in [
            ("SELECT * FROM app.files WHERE id = 88", Verb::Select, own("app.files", "app.files", "id = 88")),
            (
                "select a, (select 1 from x) from files f where f.id in (1, 2) order by 1",
                Verb::Select,
                own("files", "files f", "f.id in (1, 2)"),
            ),
            (
                "UPDATE app.files AS f SET name = 'from where', x = (1) WHERE f.id = 88 RETURNING *",
                Verb::Update,
                own("app.files", "app.files AS f", "f.id = 88"),
            ),
            (
                "DELETE FROM ONLY \"App\".\"my files\" -- where 1\n WHERE /* or */ name = $$where$$",
                Verb::Delete,
                own("\"App\".\"my files\"", "ONLY \"App\".\"my files\"", "name = $$where$$"),
            ),
            ("update files set name = E'it\\'s' where id = 1", Verb::Update, own("files", "files", "id = 1")),
            ("delete from files", Verb::Delete, own("files", "files", "")),
            ("INSERT INTO app.files (id) VALUES (1)", Verb::Insert, own("app.files", "app.files", "")),
        ] {
            assert_eq!(parts(statement), (verb, table, from, condition), "{statement}");
        }
    }

    #[test]
    fn what_is_not_simple_is_said_to_be() {
        for statement in [
            "SELECT 1",
            "SELECT * FROM a, b WHERE a.x = b.x",
            "SELECT * FROM a JOIN b ON true",
            "UPDATE a SET x = 1 FROM b WHERE a.x = b.x",
            "DELETE FROM a USING b WHERE a.x = b.x",
            "SELECT * FROM a UNION SELECT * FROM b",
            "SELECT * FROM f(1) WHERE x = 1",
            "SELECT * FROM a WHERE lo_export(1, '/x') = 1",
            "SELECT * FROM a WHERE \"F\"(1)",
            "WITH x AS (DELETE FROM a) SELECT * FROM x",
            "MERGE INTO a USING b ON true",
            "",
        ] {
            assert!(read(statement).is_err(), "{statement}: {:?}", read(statement));
        }
    }

    #[test]
    fn what_ends_a_transaction_is_known() {
        for statement in ["COMMIT", "/* */ rollback", "SELECT 1; COMMIT", "SET ROLE postgres", "DO $$ $$", ""] {
            assert!(ends_itself(statement), "{statement}");
        }
        for statement in ["select 1", "SELECT ';'", "(select 1)", "with a as (select 1) select * from a"] {
            assert!(!ends_itself(statement), "{statement}");
        }
        assert!(reads("-- x\nSELECT 1") && !reads("UPDATE a SET x = 1"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "\\PC*") {
            let _ = read(&text);
            ends_itself(&text);
        }
    }
}
