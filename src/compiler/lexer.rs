//! Text to tokens. Layout is kept as two marks on each token (does it start a line, does it stand at the left margin);
//! [`super::layout`] turns those into lines and blocks.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{anychar, char};
use nom::combinator::{map, recognize};
use nom::sequence::pair;
use nom::{IResult, Parser};

use super::span::{FileId, Span};
use super::sql;

mod highlight;

pub use highlight::{TokenClass, highlight};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or a word of the language.
    Word,
    /// `"..."`: a quoted SQL name, a test's name, a file's name.
    Quoted,
    /// `'...'`: an id in a test.
    Text,
    /// Starts with a digit.
    Number,
    /// `$name`
    Variable,
    /// `{...}`: SQL, with its braces.
    Sql,
    /// `:`
    Colon,
    /// `=`
    Equals,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `->`
    Arrow,
    /// `#`
    Hash,
    /// `*`
    Star,
    /// `-`
    Dash,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// A brace or quote that is never closed, with the text it was given up on.
    Unclosed,
    /// A character that means nothing here.
    Stray,
}

/// A token of policy text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// As written.
    pub text: &'a str,
    /// Where it is written.
    pub span: Span,
    /// It is the first on its line.
    pub starts_line: bool,
    /// It is the first on its line and has nothing before it, not even space.
    pub at_margin: bool,
}

/// A comment, without its end of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment<'a> {
    /// As written, with its dashes.
    pub text: &'a str,
    /// Where it is written.
    pub span: Span,
    /// Nothing else stands on its line.
    pub own_line: bool,
}

/// What a text is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lexed<'a> {
    /// Its tokens in order.
    pub tokens: Vec<Token<'a>>,
    /// Its comments in order.
    pub comments: Vec<Comment<'a>>,
}

/// The words that start a block.
pub const HEADERS: [&str; 8] = ["app", "include", "type", "caveat", "scope", "rules", "invariants", "test"];

/// Cuts a text into tokens. Never fails: what makes no sense becomes [`TokenKind::Stray`] or [`TokenKind::Unclosed`].
pub fn lex(file: FileId, text: &str) -> Lexed<'_> {
    let mut lexer =
        Lexer { file, text, at: 0, line_end: 0, block_end: 0, gave_up: GaveUp::Never, out: Lexed::default() };
    lexer.run();
    lexer.out
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    /// Ends of the line and the block that `at` is in, when they were last looked for: looking again for every brace
    /// or quote of a long line would take quadratic time.
    line_end: usize,
    block_end: usize,
    gave_up: GaveUp,
    out: Lexed<'a>,
}

/// How far the end of a brace is looked for. An unclosed one must not swallow the rest of the policy, and looking for
/// its end again and again must not take quadratic time: the first is looked for to the end of the text, later ones to
/// the end of their block, and after one failed there, to the end of their line while that block lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GaveUp {
    Never,
    InBlockUntil(usize),
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        let mut line_start = true;
        let mut margin = true;
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            if let Some(space) = space(rest) {
                if space.contains('\n') {
                    (line_start, margin) = (true, space.ends_with('\n'));
                } else {
                    margin = false;
                }
                self.at += space.len();
                continue;
            }
            if let Ok((_, comment)) = sql::line_comment(rest) {
                let text = comment.trim_end();
                self.out.comments.push(Comment { text, span: self.span(text.len()), own_line: line_start });
                self.at += comment.len();
                continue;
            }
            let (kind, length) = self.token(rest);
            let text = rest.get(..length).unwrap_or(rest);
            let token = Token {
                kind,
                text,
                span: self.span(text.len()),
                starts_line: line_start,
                at_margin: line_start && margin,
            };
            self.out.tokens.push(token);
            self.at += text.len();
            (line_start, margin) = (false, false);
        }
    }

    fn span(&self, length: usize) -> Span {
        Span::new(self.file, self.at, self.at + length)
    }

    /// The token at the start of `rest`, which is neither space nor comment nor empty.
    fn token(&mut self, rest: &'a str) -> (TokenKind, usize) {
        if rest.starts_with('{') {
            return self.braces(rest);
        }
        if rest.starts_with(['"', '\'']) {
            let line = self.line_end() - self.at;
            return quotes(rest.get(..line).unwrap_or(rest));
        }
        plain(rest).map_or((TokenKind::Stray, rest.len()), |(_, (kind, text))| (kind, text.len()))
    }

    fn line_end(&mut self) -> usize {
        if self.line_end <= self.at {
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.line_end = self.at + rest.find('\n').unwrap_or(rest.len());
        }
        self.line_end
    }

    fn block_end(&mut self) -> usize {
        if self.block_end <= self.at {
            self.block_end = self.at + next_header(self.text.get(self.at..).unwrap_or_default());
        }
        self.block_end
    }

    fn braces(&mut self, rest: &'a str) -> (TokenKind, usize) {
        let limit = match self.gave_up {
            GaveUp::Never => self.text.len(),
            GaveUp::InBlockUntil(end) if self.at < end => self.line_end(),
            GaveUp::InBlockUntil(_) => self.block_end(),
        };
        let inside = rest.get(1..limit - self.at).unwrap_or_default();
        if let Some(length) = sql::length_to_close(inside) {
            return (TokenKind::Sql, length + 2);
        }
        // What does not close by the end of the text does not close in its block either.
        self.gave_up = GaveUp::InBlockUntil(self.block_end());
        let inside = rest.get(1..).unwrap_or_default();
        let given_up = inside.get(..recovery(inside)).unwrap_or_default().trim_end();
        (TokenKind::Unclosed, 1 + given_up.len())
    }
}

/// Leading white space (and a byte order mark), if there is any.
fn space(text: &str) -> Option<&str> {
    let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
    let found: IResult<&str, &str> = take_while1(is_space).parse(text);
    found.ok().map(|(_, space)| space)
}

/// A quoted text, which ends on its line.
fn quotes(line: &str) -> (TokenKind, usize) {
    let (quote, kind) = if line.starts_with('"') { ('"', TokenKind::Quoted) } else { ('\'', TokenKind::Text) };
    match sql::quoted(quote, line) {
        Ok((_, text)) => (kind, text.len()),
        Err(_) => (TokenKind::Unclosed, line.trim_end().len()),
    }
}

/// A token that is neither SQL nor quoted.
fn plain(input: &str) -> IResult<&str, (TokenKind, &str)> {
    let kind = |kind: TokenKind| move |text| (kind, text);
    let number = recognize(pair(take_while1(|c: char| c.is_ascii_digit()), take_while(sql::continues_word)));
    alt((
        map(sql::word, kind(TokenKind::Word)),
        map(number, kind(TokenKind::Number)),
        map(recognize(pair(char('$'), sql::word)), kind(TokenKind::Variable)),
        map(tag("->"), kind(TokenKind::Arrow)),
        map(recognize(anychar), |text| (mark(text), text)),
    ))
    .parse(input)
}

fn mark(text: &str) -> TokenKind {
    match text {
        ":" => TokenKind::Colon,
        "=" => TokenKind::Equals,
        "," => TokenKind::Comma,
        "." => TokenKind::Dot,
        "#" => TokenKind::Hash,
        "*" => TokenKind::Star,
        "-" => TokenKind::Dash,
        "(" => TokenKind::Open,
        ")" => TokenKind::Close,
        "[" => TokenKind::OpenBracket,
        "]" => TokenKind::CloseBracket,
        _ => TokenKind::Stray,
    }
}

/// Where the block ends that `text` stands in: the next line at the margin that starts one.
fn next_header(text: &str) -> usize {
    let starts_block = |line: &str| {
        let word = line.split(|c: char| !sql::continues_word(c)).next().unwrap_or_default();
        HEADERS.contains(&word)
    };
    lines_after_first(text).find(|(_, line)| starts_block(line)).map_or(text.len(), |(at, _)| at)
}

/// How much to skip of what follows an unclosed brace: its line, and the lines after it that start no declaration.
fn recovery(text: &str) -> usize {
    let declares = |line: &str| {
        let words = line.trim_start();
        let after = words.trim_start_matches(sql::continues_word);
        let named = after.len() < words.len() && after.trim_start().starts_with(':');
        let indented = line.starts_with([' ', '\t']);
        words.is_empty() || !indented || named || words.starts_with("can ") || words.starts_with("never ")
    };
    lines_after_first(text).find(|(_, line)| declares(line)).map_or(text.len(), |(at, _)| at)
}

fn lines_after_first(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n')
        .map(move |line| {
            let start = at;
            at += line.len();
            (start, line)
        })
        .skip(1)
}
