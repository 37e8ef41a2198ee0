//! As much of SQL's own lexical structure as the policy language needs: where a `{...}` ends, and which words,
//! strings and variables stand in it. What the SQL means is PostgreSQL's business.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while1};
use nom::character::complete::{anychar, char, one_of, satisfy};
use nom::combinator::{map, opt, peek, recognize, rest};
use nom::multi::many0_count;
use nom::sequence::{delimited, pair};
use nom::{IResult, Parser};

/// What a piece of SQL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// An unquoted identifier or a keyword.
    Word,
    /// `"..."`
    Quoted,
    /// `'...'`, with any prefix.
    Text,
    /// `$tag$...$tag$`
    DollarText,
    /// `$name`
    Variable,
    /// Digits and what belongs to them.
    Number,
    /// White space.
    Space,
    /// `-- ...` or `/* ... */`
    Comment,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// Any other character.
    Punctuation,
    /// A string, name or comment that never ends; it reaches to the end of the text.
    Unclosed,
}

/// A piece of SQL, where it stands and what is written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it is.
    pub kind: PieceKind,
    /// As written.
    pub text: &'a str,
    /// Byte offset in the text given to [`pieces`].
    pub at: usize,
}

impl Piece<'_> {
    /// Whether it is this keyword, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == PieceKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this one character.
    pub fn is_punctuation(&self, text: &str) -> bool {
        self.kind == PieceKind::Punctuation && self.text == text
    }
}

/// The pieces of `sql`, without gaps: their texts joined are `sql` again.
pub fn pieces(sql: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        let at = sql.len() - rest.len();
        let (after, (kind, text)) = piece(rest).ok()?;
        rest = after;
        Some(Piece { kind, text, at })
    })
}

/// The pieces that mean something: no space, no comments.
pub fn meaningful(sql: &str) -> impl Iterator<Item = Piece<'_>> {
    pieces(sql).filter(|p| !matches!(p.kind, PieceKind::Space | PieceKind::Comment))
}

/// The length of the SQL before the brace that closes an already opened one, if it is closed at all.
pub fn length_to_close(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for piece in pieces(text) {
        match piece.kind {
            PieceKind::OpenBrace => depth += 1,
            PieceKind::CloseBrace if depth == 0 => return Some(piece.at),
            PieceKind::CloseBrace => depth -= 1,
            PieceKind::Unclosed => return None,
            _ => {}
        }
    }
    None
}

/// Whether a character may start an unquoted SQL identifier.
pub fn starts_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// Whether a character may go on in an unquoted SQL identifier (`$` aside, which PostgreSQL allows and nobody uses).
pub fn continues_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

type Scan<'a, O = &'a str> = IResult<&'a str, O>;

/// The piece that `input` starts with. The first character says which few forms it can have; this is the innermost
/// loop of the compiler.
fn piece(input: &str) -> Scan<'_, (PieceKind, &str)> {
    use PieceKind as K;
    let kind = |kind: PieceKind| move |text| (kind, text);
    let other = || map(recognize(anychar), kind(K::Punctuation));
    match input.chars().next().unwrap_or_default() {
        'e' | 'E' => alt((map(escape_text, kind(K::Text)), map(word, kind(K::Word)))).parse(input),
        c if starts_word(c) => map(word, kind(K::Word)).parse(input),
        c if c.is_whitespace() => map(take_while1(char::is_whitespace), kind(K::Space)).parse(input),
        c if c.is_ascii_digit() => map(number, kind(K::Number)).parse(input),
        '\'' => alt((map(|i| quoted('\'', i), kind(K::Text)), map(rest, kind(K::Unclosed)))).parse(input),
        '"' => alt((map(|i| quoted('"', i), kind(K::Quoted)), map(rest, kind(K::Unclosed)))).parse(input),
        '-' => alt((map(line_comment, kind(K::Comment)), other())).parse(input),
        '/' => alt((map(block_comment, kind(K::Comment)), map(unclosed, kind(K::Unclosed)), other())).parse(input),
        '$' => {
            let variable = recognize(pair(char('$'), word));
            let dollar = alt((map(dollar_text, kind(K::DollarText)), map(unclosed, kind(K::Unclosed))));
            alt((dollar, map(variable, kind(K::Variable)), other())).parse(input)
        }
        '{' => map(tag("{"), kind(K::OpenBrace)).parse(input),
        '}' => map(tag("}"), kind(K::CloseBrace)).parse(input),
        _ => other().parse(input),
    }
}

/// An unquoted SQL identifier or keyword.
pub fn word(input: &str) -> Scan<'_> {
    recognize(pair(satisfy(starts_word), take_while(continues_word))).parse(input)
}

/// A number with its fraction, exponent or base, and whatever sticks to it.
pub fn number(input: &str) -> Scan<'_> {
    let digit = satisfy(|c| c.is_ascii_digit());
    recognize(pair(digit, take_while(|c| continues_word(c) || c == '.'))).parse(input)
}

/// Text between two of `quote`, inside which a doubled one stands for itself.
pub fn quoted(quote: char, input: &str) -> Scan<'_> {
    let plain = recognize(take_while1(move |c| c != quote));
    let body = many0_count(alt((plain, recognize(pair(char(quote), char(quote))))));
    recognize(delimited(char(quote), body, char(quote))).parse(input)
}

/// `--` to the end of the line.
pub fn line_comment(input: &str) -> Scan<'_> {
    recognize(pair(tag("--"), take_while(|c| c != '\n'))).parse(input)
}

/// `E'...'`, where a backslash takes the next character with it.
fn escape_text(input: &str) -> Scan<'_> {
    let plain = recognize(take_while1(|c| c != '\'' && c != '\\'));
    let escaped = recognize(pair(char('\\'), anychar));
    let body = many0_count(alt((plain, escaped, tag("''"))));
    recognize((one_of("eE"), char('\''), body, char('\''))).parse(input)
}

/// `/* ... */`; PostgreSQL nests them.
fn block_comment(input: &str) -> Scan<'_> {
    let plain = recognize(take_while1(|c| c != '/' && c != '*'));
    let mut step = alt((tag("/*"), tag("*/"), plain, recognize(anychar)));
    let (mut after, _) = tag("/*").parse(input)?;
    let mut depth = 1usize;
    while depth > 0 {
        let (next, mark) = step.parse(after)?;
        match mark {
            "/*" => depth += 1,
            "*/" => depth -= 1,
            _ => {}
        }
        after = next;
    }
    let length = input.len() - after.len();
    Ok((after, input.get(..length).unwrap_or_default()))
}

/// `$$...$$` or `$tag$...$tag$`.
fn dollar_text(input: &str) -> Scan<'_> {
    let (_, mark) = dollar_mark(input)?;
    recognize((tag(mark), take_until(mark), tag(mark))).parse(input)
}

fn dollar_mark(input: &str) -> Scan<'_> {
    recognize(delimited(char('$'), opt(word), char('$'))).parse(input)
}

/// What is left when a comment or a dollar-quoted text that opens here never closes. It must be tried after the closed
/// forms.
fn unclosed(input: &str) -> Scan<'_> {
    let (_, _) = peek(alt((tag("/*"), dollar_mark))).parse(input)?;
    rest(input)
}
