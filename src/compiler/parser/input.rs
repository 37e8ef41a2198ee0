//! Parsing tokens with nom: the input, the error, and the small parsers the grammar is written in.

use std::cell::RefCell;
use std::iter::{Copied, Enumerate};
use std::slice::Iter;

use nom::error::{ErrorKind, ParseError};
use nom::{Err, IResult, Input, Needed, Parser};

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::lexer::{Token, TokenKind};
use crate::compiler::span::Span;

/// Where parsers put mistakes they can go on after.
pub(super) type Sink = RefCell<Vec<Diagnostic>>;

/// The tokens of one logical line that are still to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens<'a> {
    tokens: &'a [Token<'a>],
    /// Just past the line: where something is missing when tokens run out.
    end: Span,
    sink: &'a Sink,
}

/// What a parser gives.
pub(super) type Parsed<'a, O> = IResult<Tokens<'a>, O, Mistake<'a>>;

/// What was expected where, and what stands there instead.
#[derive(Debug, Clone)]
pub(super) struct Mistake<'a> {
    at: Span,
    found: Option<Token<'a>>,
    expected: Expected,
}

/// What was expected.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Something, in words.
    Described(&'static str),
    /// This word itself.
    Word(&'static str),
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expected::Described(words) => f.write_str(words),
            Expected::Word(word) => write!(f, "\"{word}\""),
        }
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn new(tokens: &'a [Token<'a>], sink: &'a Sink) -> Self {
        let end = tokens.last().map(|t| Span { start: t.span.end, ..t.span }).unwrap_or_default();
        Tokens { tokens, end, sink }
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.first().copied()
    }

    /// The token after the next one.
    pub(super) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(1).copied()
    }

    /// From the next token to the end of the line.
    pub(super) fn span(&self) -> Span {
        self.peek().map_or(self.end, |first| first.span.to(self.end))
    }

    /// Reports a mistake and lets parsing go on.
    pub(super) fn report(&self, diagnostic: Diagnostic) {
        self.sink.borrow_mut().push(diagnostic);
    }

    pub(super) fn mistake(&self, expected: &'static str) -> Mistake<'a> {
        let found = self.peek();
        Mistake { at: found.map_or(self.end, |t| t.span), found, expected: Expected::Described(expected) }
    }

    /// A mistake here that no other alternative can mend.
    pub(super) fn fail<O>(&self, expected: &'static str) -> Parsed<'a, O> {
        Err(Err::Failure(self.mistake(expected)))
    }
}

impl<'a> Input for Tokens<'a> {
    type Item = Token<'a>;
    type Iter = Copied<Iter<'a, Token<'a>>>;
    type IterIndices = Enumerate<Self::Iter>;

    fn input_len(&self) -> usize {
        self.tokens.len()
    }

    fn take(&self, index: usize) -> Self {
        self.take_split(index).1
    }

    fn take_from(&self, index: usize) -> Self {
        self.take_split(index).0
    }

    fn take_split(&self, index: usize) -> (Self, Self) {
        let (before, after) = self.tokens.split_at_checked(index).unwrap_or((self.tokens, &[]));
        (Tokens { tokens: after, ..*self }, Tokens { tokens: before, ..*self })
    }

    fn position<P: Fn(Self::Item) -> bool>(&self, predicate: P) -> Option<usize> {
        self.tokens.iter().position(|token| predicate(*token))
    }

    fn iter_elements(&self) -> Self::Iter {
        self.tokens.iter().copied()
    }

    fn iter_indices(&self) -> Self::IterIndices {
        self.iter_elements().enumerate()
    }

    fn slice_index(&self, count: usize) -> Result<usize, Needed> {
        if count <= self.tokens.len() { Ok(count) } else { Err(Needed::new(count - self.tokens.len())) }
    }
}

impl<'a> ParseError<Tokens<'a>> for Mistake<'a> {
    fn from_error_kind(input: Tokens<'a>, _: ErrorKind) -> Self {
        input.mistake("something else")
    }

    fn append(_: Tokens<'a>, _: ErrorKind, other: Self) -> Self {
        other
    }

    /// Of two alternatives, the one that got further knew better what the line is.
    fn or(self, other: Self) -> Self {
        if self.at.start > other.at.start { self } else { other }
    }
}

impl Mistake<'_> {
    /// In words, under the code of the kind of line it is in.
    pub(super) fn diagnostic(&self, code: u16) -> Diagnostic {
        let expected = self.expected;
        let message = match self.found {
            None => format!("expected {expected}, and the line ends here"),
            Some(token) if token.kind == TokenKind::Unclosed => unclosed(token.text),
            Some(token) if token.kind == TokenKind::Sql => format!("expected {expected}, found a condition"),
            Some(token) => format!("expected {expected}, found {}", quote(token.text)),
        };
        Diagnostic::error(code, self.at, message)
    }
}

fn unclosed(text: &str) -> String {
    let (open, close) = match text.chars().next() {
        Some('{') => ('{', '}'),
        Some(quote) => (quote, quote),
        None => ('"', '"'),
    };
    if open == close {
        format!("this {open} has no second {close} on its line")
    } else {
        format!("this {open} is never closed by a {close}")
    }
}

/// Found text as it appears in a message: quoted and of bounded length.
pub(super) fn quote(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return format!("\"{text}\"");
    }
    let start: String = text.chars().take(MOST).collect();
    format!("\"{start}...\"")
}

/// A token of this kind; `expected` says it in words.
pub(super) fn kind<'a>(kind: TokenKind, expected: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Token<'a>> {
    move |input| match input.peek() {
        Some(token) if token.kind == kind => Ok((input.take_from(1), token)),
        _ => Err(Err::Error(input.mistake(expected))),
    }
}

/// This word of the language.
pub(super) fn word<'a>(word: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Token<'a>> {
    move |input| match input.peek() {
        Some(token) if token.kind == TokenKind::Word && token.text == word => Ok((input.take_from(1), token)),
        _ => Err(Err::Error(Mistake { expected: Expected::Word(word), ..input.mistake(word) })),
    }
}

/// Whether the next token is this word.
pub(super) fn at_word(input: Tokens<'_>, word: &str) -> bool {
    input.peek().is_some_and(|t| t.kind == TokenKind::Word && t.text == word)
}

/// Whether the next token is of this kind.
pub(super) fn at(input: Tokens<'_>, kind: TokenKind) -> bool {
    input.peek().is_some_and(|t| t.kind == kind)
}

/// What `parser` reads, when the next token is this word; nothing otherwise. Once the word is there, the rest must be.
pub(super) fn after_word<'a, O>(
    first: &'static str,
    mut parser: impl Parser<Tokens<'a>, Output = O, Error = Mistake<'a>>,
) -> impl FnMut(Tokens<'a>) -> Parsed<'a, Option<O>> {
    move |input| {
        if !at_word(input, first) {
            return Ok((input, None));
        }
        let (rest, output) = must(&mut parser, input.take_from(1))?;
        Ok((rest, Some(output)))
    }
}

/// `parser`, without a way back.
pub(super) fn must<'a, O>(
    parser: &mut impl Parser<Tokens<'a>, Output = O, Error = Mistake<'a>>,
    input: Tokens<'a>,
) -> Parsed<'a, O> {
    parser.parse(input).map_err(|error| match error {
        Err::Error(mistake) => Err::Failure(mistake),
        other => other,
    })
}

/// Nothing may follow.
pub(super) fn end_of_line<'a>(expected: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, ()> {
    move |input| if input.peek().is_none() { Ok((input, ())) } else { input.fail(expected) }
}
