//! Names, columns, tables and SQL: the leaves of the grammar.

use nom::branch::alt;
use nom::combinator::cut;
use nom::multi::separated_list1;
use nom::sequence::{delimited, preceded, separated_pair};
use nom::{Err, Input, Parser};

use super::input::{Parsed, Tokens, kind};
use crate::compiler::ast::{Column, Name, Sql, Table};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::lexer::{Token, TokenKind};
use crate::compiler::span::{Span, Spanned};

/// A name of the policy language.
pub(super) fn name<'a>(expected: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Name> {
    move |input| {
        let (rest, token) = kind(TokenKind::Word, expected)(input)?;
        Ok((rest, spanned(token)))
    }
}

/// The token's text as a name.
pub(super) fn spanned(token: Token<'_>) -> Name {
    Spanned::new(token.text.to_owned(), token.span)
}

/// A name of SQL's: folded to lower case unless quoted.
pub(super) fn identifier<'a>(expected: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Column> {
    move |input| match input.peek() {
        Some(token) if token.kind == TokenKind::Word => {
            Ok((input.take_from(1), Spanned::new(Ident::new(token.text.to_ascii_lowercase()), token.span)))
        }
        Some(token) if token.kind == TokenKind::Quoted && token.text.len() > 2 => {
            Ok((input.take_from(1), Spanned::new(Ident::new(unquoted(token.text)), token.span)))
        }
        _ => Err(Err::Error(input.mistake(expected))),
    }
}

/// What stands between quotes, a doubled quote being one.
pub(super) fn unquoted(text: &str) -> String {
    let Some(quote) = text.chars().next() else { return String::new() };
    let inside = text.get(1..text.len() - 1).unwrap_or_default();
    inside.replace(&format!("{quote}{quote}"), &quote.to_string())
}

/// `a, b`
pub(super) fn columns<'a>(expected: &'static str) -> impl FnMut(Tokens<'a>) -> Parsed<'a, Vec<Column>> {
    move |input| separated_list1(comma, cut(identifier(expected))).parse(input)
}

/// `a` or `[a, b]`
pub(super) fn key_columns(input: Tokens<'_>) -> Parsed<'_, Spanned<Vec<Column>>> {
    let one = |input| {
        let (rest, column) = identifier("a column, or columns in brackets")(input)?;
        let span = column.span;
        Ok((rest, Spanned::new(vec![column], span)))
    };
    alt((bracketed, one)).parse(input)
}

fn bracketed(input: Tokens<'_>) -> Parsed<'_, Spanned<Vec<Column>>> {
    let open = kind(TokenKind::OpenBracket, "a column, or columns in brackets");
    let close = kind(TokenKind::CloseBracket, "a comma or a closing bracket");
    let (rest, (first, inside, last)) = (open, cut(columns("a column")), cut(close)).parse(input)?;
    Ok((rest, Spanned::new(inside, first.span.to(last.span))))
}

/// `schema.table`
pub(super) fn table<'a>(expected: &'static str) -> impl FnMut(Tokens<'a>) -> Parsed<'a, Table> {
    move |input| {
        let dot = kind(TokenKind::Dot, "a dot and the table's name: tables are written schema.table");
        let (rest, (schema, name)) =
            separated_pair(identifier(expected), cut(dot), cut(identifier("a table's name after the dot")))
                .parse(input)?;
        let span = schema.span.to(name.span);
        Ok((rest, Spanned::new(QualName { schema: schema.value, name: name.value }, span)))
    }
}

/// `{sql}`
pub(super) fn sql<'a>(expected: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Sql> {
    move |input| {
        let (rest, token) = kind(TokenKind::Sql, expected)(input)?;
        Ok((rest, sql_of(token)))
    }
}

/// What stands inside the braces of a token of SQL.
pub(super) fn sql_of(token: Token<'_>) -> Sql {
    let text = token.text.get(1..token.text.len() - 1).unwrap_or_default().to_owned();
    let span = Span { start: token.span.start + 1, end: token.span.end - 1, ..token.span };
    Sql { text, span }
}

pub(super) fn comma(input: Tokens<'_>) -> Parsed<'_, Token<'_>> {
    kind(TokenKind::Comma, "a comma")(input)
}

/// `( inside )`
pub(super) fn in_parentheses<'a, O>(
    inside: impl Parser<Tokens<'a>, Output = O, Error = super::input::Mistake<'a>>,
) -> impl Parser<Tokens<'a>, Output = O, Error = super::input::Mistake<'a>> {
    let open = kind(TokenKind::Open, "an opening parenthesis");
    let close = kind(TokenKind::Close, "a closing parenthesis");
    delimited(open, inside, cut(close))
}

/// `= inside`, where nothing else can follow.
pub(super) fn after_equals<'a, O>(
    expected: &'static str,
    inside: impl Parser<Tokens<'a>, Output = O, Error = super::input::Mistake<'a>>,
) -> impl Parser<Tokens<'a>, Output = O, Error = super::input::Mistake<'a>> {
    preceded(cut(kind(TokenKind::Equals, expected)), cut(inside))
}
