//! `type` and the lines under it.

use nom::branch::alt;
use nom::combinator::{cut, opt};
use nom::multi::separated_list1;
use nom::{Err, Input, Parser};

use super::expr::expression;
use super::input::{Mistake, Parsed, Tokens, after_word, at, at_word, end_of_line, kind, must, quote, word};
use super::names::{after_equals, columns, comma, identifier, in_parentheses, key_columns, name, spanned, sql, table};
use crate::compiler::ast::{
    Column, Expr, KeyDecl, Member, PermissionDecl, RelationBody, RelationDecl, RolesDecl, SourceDecl, SubjectDecl,
    TypeDecl, TypeHeader,
};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::lexer::{Token, TokenKind};
use crate::compiler::span::{Span, Spanned};

/// `type NAME = ...`, from after the word `type`. A header that goes on wrongly keeps its name.
pub(super) fn type_decl(input: Tokens<'_>) -> Option<TypeDecl> {
    let (rest, name) = recover(input, 101, name("a type's name"))?;
    let header = recover(rest, 101, type_header).map(|(_, header)| header);
    Some(TypeDecl { name, header, members: Vec::new() })
}

/// Runs a parser; on a mistake reports it and gives `None`.
pub(super) fn recover<'a, O>(
    input: Tokens<'a>,
    code: u16,
    mut parser: impl Parser<Tokens<'a>, Output = O, Error = Mistake<'a>>,
) -> Option<(Tokens<'a>, O)> {
    match parser.parse(input) {
        Ok(done) => Some(done),
        Err(Err::Error(mistake) | Err::Failure(mistake)) => {
            input.report(mistake.diagnostic(code));
            None
        }
        Err(Err::Incomplete(_)) => None,
    }
}

fn type_header(input: Tokens<'_>) -> Parsed<'_, TypeHeader> {
    let (rest, table) = after_equals("\"=\" and the type's table", table("the type's table")).parse(input)?;
    let (rest, key) = if at(rest, TokenKind::Open) { key(rest).map(|(r, k)| (r, Some(k)))? } else { (rest, None) };
    let (rest, principal) = opt(word("principal")).parse(rest)?;
    let (rest, condition) = after_word("where", sql("a condition in braces"))(rest)?;
    let (rest, ()) = end_of_line("a key in parentheses, \"principal\", \"where\" or the end of the line")(rest)?;
    Ok((rest, TypeHeader { table, key, principal: principal.map(|t| t.span), condition }))
}

/// `(id uuid, slug)`. A key written wrongly has a code of its own and does not spoil the header.
fn key(input: Tokens<'_>) -> Parsed<'_, Spanned<Vec<KeyDecl>>> {
    let open = input.span();
    let key_column = |input| {
        let (rest, column) = identifier("a key column")(input)?;
        let (rest, ty) = opt(name("the column's type")).parse(rest)?;
        Ok((rest, KeyDecl { column, ty }))
    };
    match in_parentheses(separated_list1(comma, cut(key_column))).parse(input) {
        Ok((rest, columns)) => {
            let end = columns.last().map_or(open, |c| c.ty.as_ref().map_or(c.column.span, |t| t.span));
            Ok((rest, Spanned::new(columns, Span { end: end.end + 1, ..open })))
        }
        Err(Err::Error(mistake) | Err::Failure(mistake)) => {
            input.report(mistake.diagnostic(206));
            let skipped = input.position(|t| t.kind == TokenKind::Close).map_or(input.input_len(), |at| at + 1);
            Ok((input.take_from(skipped), Spanned::new(Vec::new(), open)))
        }
        Err(incomplete) => Err(incomplete),
    }
}

/// A line under a type.
pub(super) fn member(input: Tokens<'_>) -> Option<Member> {
    let first = input.peek()?;
    let rest = input.take_from(1);
    if first.kind != TokenKind::Word {
        input.report(Diagnostic::error(103, first.span, not_a_member(first)));
        return None;
    }
    match first.text {
        "roles" => roles(input),
        "can" if !at(rest, TokenKind::Colon) => permission(input),
        _ if at(rest, TokenKind::Colon) => Some(relation(input)),
        _ if misspelt_can(input) => {
            let message = format!("{}; did you mean \"can\"?", not_a_member(first));
            input.report(Diagnostic::error(104, first.span, message));
            permission(input)
        }
        _ => {
            input.report(rest.mistake("\":\" after the relation's name").diagnostic(103));
            // What it was going to be called is known all the same, unless the line is something else entirely.
            let named = rest.iter_elements().any(|t| t.kind == TokenKind::Equals || t.text == "shared");
            let decl = RelationDecl { name: spanned(first), body: None, span: input.span() };
            named.then_some(Member::Relation(decl))
        }
    }
}

fn not_a_member(found: Token<'_>) -> String {
    format!("a line under a type starts with a relation's name or \"can\", not with {}", quote(found.text))
}

/// `cna view = owner`
fn misspelt_can(input: Tokens<'_>) -> bool {
    let equals = |token: Token<'_>| token.kind == TokenKind::Equals;
    let near = |token: Token<'_>| token.text.len() <= 4 && strsim::damerau_levenshtein(token.text, "can") == 1;
    input.peek().is_some_and(near) && input.take_from(1).peek_second().is_some_and(equals)
}

/// `NAME : SUBJECTS = SOURCE`, of which the name and the colon are there.
fn relation(input: Tokens<'_>) -> Member {
    let name = input.peek().map_or_else(|| Spanned::new(String::new(), input.span()), spanned);
    let body = recover(input.take_from(2), 103, relation_body).map(|(_, body)| body);
    Member::Relation(RelationDecl { name, body, span: input.span() })
}

/// `can NAME = EXPR`
fn permission(input: Tokens<'_>) -> Option<Member> {
    let (rest, name) = recover(input.take_from(1), 104, name("a permission's name"))?;
    let equals = kind(TokenKind::Equals, "\"=\" after the permission's name");
    let expr = match recover(rest, 104, equals) {
        Some((rest, _)) if rest.peek().is_some() => expression(rest),
        Some((rest, _)) => {
            rest.report(rest.mistake("who has this permission").diagnostic(104));
            Expr::Broken
        }
        None => Expr::Broken,
    };
    Some(Member::Permission(PermissionDecl { name, expr, span: input.span() }))
}

fn roles(input: Tokens<'_>) -> Option<Member> {
    let span = input.peek()?.span;
    let line = |input| {
        let (rest, _) = kind(TokenKind::Colon, "\":\" after \"roles\"")(input)?;
        let (rest, subjects) = subjects(rest)?;
        let (rest, from) = after_word("from", name("a relation to the roles' owner"))(rest)?;
        let (rest, ()) = end_of_line("\"from\" or the end of the line")(rest)?;
        Ok((rest, RolesDecl { subjects, from, span }))
    };
    recover(input.take_from(1), 103, line).map(|(_, roles)| Member::Roles(roles))
}

fn relation_body(input: Tokens<'_>) -> Parsed<'_, RelationBody> {
    let (rest, subjects) = subjects(input)?;
    let (rest, source) = if at_word(rest, "shared") {
        shared(rest)?
    } else {
        let source = |input| alt((polymorphic, link_table, own_columns)).parse(input);
        after_equals("a comma, \"shared\", or \"=\" and where it comes from", source).parse(rest)?
    };
    let (rest, ()) = end_of_line("the end of the line")(rest)?;
    Ok((rest, RelationBody { subjects, source }))
}

fn subjects(input: Tokens<'_>) -> Parsed<'_, Vec<SubjectDecl>> {
    must(&mut separated_list1(comma, cut(subject)), input)
}

fn subject(input: Tokens<'_>) -> Parsed<'_, SubjectDecl> {
    let (rest, first) = kind(TokenKind::Word, "a type, \"anyone\" or \"link\"")(input)?;
    if at(rest, TokenKind::Hash) {
        let (rest, relation) = must(&mut name("a relation of the group, such as team#member"), rest.take_from(1))?;
        return Ok((rest, SubjectDecl::Group(spanned(first), relation)));
    }
    if at(rest, TokenKind::Colon) {
        let (rest, _) = must(&mut kind(TokenKind::Star, "\"*\", as in user:*"), rest.take_from(1))?;
        return Ok((rest, SubjectDecl::Everyone(spanned(first))));
    }
    let subject = match first.text {
        "anyone" => SubjectDecl::Anyone(first.span),
        "link" => SubjectDecl::Link(first.span),
        _ => SubjectDecl::Type(spanned(first)),
    };
    Ok((rest, subject))
}

fn shared(input: Tokens<'_>) -> Parsed<'_, SourceDecl> {
    let (rest, shared) = word("shared")(input)?;
    let (rest, by) = after_word("by", name("the permission that may share it"))(rest)?;
    let (rest, condition) = after_word("if", sql("a condition in braces"))(rest)?;
    let (rest, ()) = end_of_line("\"by\", \"if\" or the end of the line")(rest)?;
    Ok((rest, SourceDecl::Shared { span: shared.span, by, condition }))
}

/// `(type column, id column)`
fn polymorphic(input: Tokens<'_>) -> Parsed<'_, SourceDecl> {
    let pair = |input| {
        let (rest, first) = identifier("the column that holds the type's name")(input)?;
        let (rest, _) = comma(rest)?;
        let (rest, second) = identifier("the column that holds the id")(rest)?;
        Ok((rest, SourceDecl::Polymorphic(first, second)))
    };
    in_parentheses(cut(pair)).parse(input)
}

/// `schema.table(object -> subject) [where {sql}]`
fn link_table(input: Tokens<'_>) -> Parsed<'_, SourceDecl> {
    if !input.peek_second().is_some_and(|t| matches!(t.kind, TokenKind::Dot | TokenKind::Open)) {
        return Err(Err::Error(input.mistake("a column or a link table")));
    }
    let (rest, table) = must(&mut table("a link table"), input)?;
    let (rest, (object, subject)) = must(&mut in_parentheses(alt((named_link_columns, link_columns))), rest)?;
    let (rest, condition) = after_word("where", sql("a condition in braces"))(rest)?;
    let (rest, ()) = end_of_line("\"where\" or the end of the line")(rest)?;
    Ok((rest, SourceDecl::Table { table, object, subject, condition }))
}

type Columns = Spanned<Vec<Column>>;

/// `object -> subject`
fn link_columns(input: Tokens<'_>) -> Parsed<'_, (Columns, Columns)> {
    let (rest, object) = key_columns(input)?;
    let arrow = "\"->\": first the column of the object, then the column of whom it names";
    let (rest, _) = must(&mut kind(TokenKind::Arrow, arrow), rest)?;
    let (rest, subject) = must(&mut key_columns, rest)?;
    Ok((rest, (object, subject)))
}

/// `object: a, subject: b`, in either order
fn named_link_columns(input: Tokens<'_>) -> Parsed<'_, (Columns, Columns)> {
    let named = |input, first: &'static str, second: &'static str| {
        let (rest, _) = (word(first), kind(TokenKind::Colon, "\":\"")).parse(input)?;
        let (rest, a) = must(&mut key_columns, rest)?;
        let (rest, _) = must(&mut (comma, word(second), kind(TokenKind::Colon, "\":\"")), rest)?;
        let (rest, b) = must(&mut key_columns, rest)?;
        Ok((rest, (a, b)))
    };
    alt((
        |input| named(input, "object", "subject"),
        |input| named(input, "subject", "object").map(|(rest, (subject, object))| (rest, (object, subject))),
    ))
    .parse(input)
}

/// `a` or `[a, b]`
fn own_columns(input: Tokens<'_>) -> Parsed<'_, SourceDecl> {
    let (rest, columns) = key_columns(input).map_err(|_| {
        Err::Failure(input.mistake("a column, columns in brackets, a link table or two columns in parentheses"))
    })?;
    Ok((rest, SourceDecl::Columns(columns.value)))
}

/// `a, b` as rules write them.
pub(super) fn rule_columns(input: Tokens<'_>) -> Parsed<'_, Vec<Column>> {
    columns("a column")(input)
}
