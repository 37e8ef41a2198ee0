//! Every block but `type`: the lines of each kind.

use nom::branch::alt;
use nom::combinator::{cut, opt};
use nom::multi::separated_list1;
use nom::{Err, Input, Parser};

use super::expr::expression;
use super::input::{Parsed, Tokens, after_word, at, at_word, end_of_line, kind, must, word};
use super::names::{after_equals, comma, identifier, in_parentheses, name, spanned, sql, table, unquoted};
use super::types::{recover, rule_columns};
use crate::compiler::ast::{
    CaveatDecl, Column, CommandDecl, Expr, InvariantDecl, Name, RuleDecl, RulesDecl, ScopeDecl, ScopePart, StepDecl,
    StepKind, TestDecl, ValueDecl, WhoDecl,
};
use crate::compiler::lexer::{Token, TokenKind};
use crate::compiler::span::{Span, Spanned};

/// `role NAME`, from after the word `app`.
pub(super) fn app_role(input: Tokens<'_>) -> Parsed<'_, Column> {
    let (rest, _) = must(&mut word("role"), input)?;
    let (rest, role) = must(&mut identifier("the app's role"), rest)?;
    let (rest, ()) = end_of_line("the end of the line")(rest)?;
    Ok((rest, role))
}

/// `"FILE"`, from after the word `include`.
pub(super) fn include(input: Tokens<'_>) -> Parsed<'_, Name> {
    let (rest, file) = kind(TokenKind::Quoted, "a file's name in double quotes")(input)?;
    let (rest, ()) = end_of_line("the end of the line")(rest)?;
    Ok((rest, Spanned::new(unquoted(file.text), file.span)))
}

/// `NAME = {sql}`, from after the word `caveat`.
pub(super) fn caveat(input: Tokens<'_>) -> Option<CaveatDecl> {
    let (rest, name) = recover(input, 101, name("a caveat's name"))?;
    let body = |input| {
        let (rest, condition) =
            after_equals("\"=\" after the caveat's name", sql("a condition in braces")).parse(input)?;
        let (rest, ()) = end_of_line("the end of the line")(rest)?;
        Ok((rest, condition))
    };
    Some(CaveatDecl { name, condition: recover(rest, 101, body).map(|(_, condition)| condition) })
}

/// `NAME = ITEMS`, from after the word `scope`.
pub(super) fn scope(input: Tokens<'_>) -> Option<ScopeDecl> {
    let (rest, name) = recover(input, 404, name("a scope's name"))?;
    let body = |input| {
        let items = separated_list1(comma, cut(scope_item));
        let (rest, items) = after_equals("\"=\" after the scope's name", items).parse(input)?;
        let (rest, ()) = end_of_line("a comma or the end of the line")(rest)?;
        Ok((rest, items))
    };
    Some(ScopeDecl { name, items: recover(rest, 404, body).map(|(_, items)| items).unwrap_or_default() })
}

/// One to three names joined by dots.
fn scope_item(input: Tokens<'_>) -> Parsed<'_, Vec<Spanned<ScopePart>>> {
    separated_list1(kind(TokenKind::Dot, "a dot"), cut(scope_part)).parse(input)
}

fn scope_part(input: Tokens<'_>) -> Parsed<'_, Spanned<ScopePart>> {
    let (rest, column) = identifier("a command, a permission or a table")(input)?;
    let name = match input.peek() {
        Some(token) if token.kind == TokenKind::Word => token.text.to_owned(),
        _ => column.value.as_str().to_owned(),
    };
    Ok((rest, Spanned::new(ScopePart { name, ident: column.value }, column.span)))
}

/// `schema.table [view schema.view]`, from after the word `rules`.
pub(super) fn rules_header(input: Tokens<'_>) -> Parsed<'_, RulesDecl> {
    let (rest, of) = must(&mut table("the table the rules are for"), input)?;
    let (rest, view) = after_word("view", table("the view's name, schema.view"))(rest)?;
    let (rest, ()) = end_of_line("\"view\" or the end of the line")(rest)?;
    Ok((rest, RulesDecl { table: of, view, rules: Vec::new() }))
}

/// A line under `rules`.
pub(super) fn rule(input: Tokens<'_>) -> Option<RuleDecl> {
    let span = input.span();
    let (rest, command) = recover(input, 105, command)?;
    if let CommandDecl::Cascade(..) = command {
        return Some(RuleDecl { command, expr: Expr::Broken, span });
    }
    let expr = match recover(rest, 105, kind(TokenKind::Colon, "\":\" and who may")) {
        Some((rest, _)) if rest.peek().is_some() => expression(rest),
        Some((rest, _)) => {
            rest.report(rest.mistake("who may").diagnostic(105));
            Expr::Broken
        }
        None => Expr::Broken,
    };
    Some(RuleDecl { command, expr, span })
}

fn command(input: Tokens<'_>) -> Parsed<'_, CommandDecl> {
    let expected = "select, insert, update, delete, mask or cascade";
    let Some(first) = input.peek().filter(|t| t.kind == TokenKind::Word) else { return input.fail(expected) };
    let rest = input.take_from(1);
    match first.text {
        "select" => Ok((rest, CommandDecl::Select)),
        "insert" => Ok((rest, CommandDecl::Insert)),
        "delete" => Ok((rest, CommandDecl::Delete)),
        "update" => update(rest),
        "mask" => rule_columns(rest).map(|(rest, columns)| (rest, CommandDecl::Mask(columns))),
        "cascade" => cascade(rest),
        _ => input.fail(expected),
    }
}

fn update(input: Tokens<'_>) -> Parsed<'_, CommandDecl> {
    if at(input, TokenKind::Colon) {
        return Ok((input, CommandDecl::Update));
    }
    let colon_next = input.peek_second().is_some_and(|t| t.kind == TokenKind::Colon);
    if at_word(input, "after") && colon_next {
        return Ok((input.take_from(1), CommandDecl::UpdateAfter(Vec::new())));
    }
    if at_word(input, "before") && colon_next {
        return input.fail("the columns whose change needs this, as in update owner_id before");
    }
    let (rest, columns) = must(&mut rule_columns, input)?;
    let (rest, when) = opt(alt((word("before"), word("after")))).parse(rest)?;
    match when.map(|t| t.text) {
        Some("after") => Ok((rest, CommandDecl::UpdateAfter(columns))),
        _ => Ok((rest, CommandDecl::UpdateBefore(columns))),
    }
}

fn cascade(input: Tokens<'_>) -> Parsed<'_, CommandDecl> {
    let (rest, _) = must(&mut word("from"), input)?;
    let (rest, from) = must(&mut table("the table the foreign key points to"), rest)?;
    let (rest, columns) = opt(in_parentheses(rule_columns)).parse(rest)?;
    let (rest, ()) = end_of_line("columns in parentheses or the end of the line")(rest)?;
    Ok((rest, CommandDecl::Cascade(from, columns.unwrap_or_default())))
}

/// A line under `invariants`.
pub(super) fn invariant(input: Tokens<'_>) -> Option<InvariantDecl> {
    let span = input.span();
    let head = |input| {
        let (rest, _) = must(&mut word("never"), input)?;
        let (rest, ty) = must(&mut name("a type"), rest)?;
        let (rest, _) = must(&mut kind(TokenKind::Colon, "\":\" and what may never hold"), rest)?;
        Ok((rest, ty))
    };
    let (rest, ty) = recover(input, 106, head)?;
    Some(InvariantDecl { ty, expr: expression(rest), span })
}

/// `["name"]`, from after the word `test`.
pub(super) fn test_header(input: Tokens<'_>) -> Option<TestDecl> {
    let span = input.span();
    let header = |input| {
        let (rest, name) = opt(kind(TokenKind::Quoted, "the test's name")).parse(input)?;
        let (rest, ()) = end_of_line("a name in double quotes or the end of the line")(rest)?;
        Ok((rest, name.map(|token: Token<'_>| Spanned::new(unquoted(token.text), token.span))))
    };
    let name = recover(input, 101, header).and_then(|(_, name)| name);
    Some(TestDecl { name, steps: Vec::new(), span })
}

/// A line of a test.
pub(super) fn step(input: Tokens<'_>) -> Option<StepDecl> {
    let span = input.span();
    let kind = if at_word(input, "given") {
        given(input.take_from(1))
    } else if at_word(input, "as") {
        recover(input.take_from(1), 106, run).map(|(_, kind)| kind)
    } else {
        recover(input, 106, check).map(|(_, kind)| kind)
    };
    Some(StepDecl { kind: kind?, span })
}

/// `[NAME =] {SQL}`
fn given(input: Tokens<'_>) -> Option<StepKind> {
    let (rest, name) = if at(input, TokenKind::Sql) {
        (input, None)
    } else {
        let (rest, name) = recover(input, 106, name("a name for what it returns, or a statement in braces"))?;
        (rest, Some(name))
    };
    let body = |input| {
        let equals = kind(TokenKind::Equals, "\"=\" and a statement in braces");
        let (rest, _) = if name.is_some() { equals(input).map(|(r, t)| (r, Some(t)))? } else { (input, None) };
        let (rest, statement) = sql("a statement in braces")(rest)?;
        let (rest, ()) = end_of_line("the end of the line")(rest)?;
        Ok((rest, statement))
    };
    match recover(rest, 106, body) {
        Some((_, statement)) => Some(StepKind::Given(name, statement)),
        None => Some(StepKind::Broken(name)),
    }
}

/// `WHO allowed|refused {SQL}` or `WHO sees N {SQL}`
fn run(input: Tokens<'_>) -> Parsed<'_, StepKind> {
    let (rest, who) = who(input)?;
    let expected = "allowed, refused, or sees and a number";
    let Some(verb) = rest.peek() else { return rest.fail(expected) };
    let after = rest.take_from(1);
    let statement = |input| {
        let (rest, statement) = sql("a statement in braces")(input)?;
        let (rest, ()) = end_of_line("the end of the line")(rest)?;
        Ok((rest, statement))
    };
    match verb.text {
        "allowed" | "refused" => {
            let (rest, statement) = statement(after)?;
            Ok((rest, StepKind::Run(who, verb.text == "allowed", statement)))
        }
        "sees" => {
            let (next, number) = kind(TokenKind::Number, "a number of rows")(after)?;
            let Ok(rows) = number.text.parse() else { return after.fail("a number of rows") };
            let (rest, statement) = statement(next)?;
            Ok((rest, StepKind::Sees(who, rows, statement)))
        }
        _ => rest.fail(expected),
    }
}

/// `WHO can|cannot PERM TYPE ID`
fn check(input: Tokens<'_>) -> Parsed<'_, StepKind> {
    let (rest, who) = who(input)?;
    let (rest, verb) =
        alt((word("can"), word("cannot"))).parse(rest).map_err(|_| Err::Failure(rest.mistake("can or cannot")))?;
    let (rest, permission) = must(&mut name("a permission"), rest)?;
    let (rest, ty) = must(&mut name("the object's type"), rest)?;
    let (rest, id) = value(rest)?;
    let (rest, ()) = end_of_line("the end of the line")(rest)?;
    Ok((rest, StepKind::Check { who, allowed: verb.text == "can", permission, ty, id }))
}

/// `user 3`, `user $ann with scope a, b`, `anyone`
fn who(input: Tokens<'_>) -> Parsed<'_, WhoDecl> {
    let (rest, principal) = if at_word(input, "anyone") {
        (input.take_from(1), None)
    } else {
        let (rest, ty) = name("who asks, such as user 3 or anyone")(input)?;
        let (rest, id) = value(rest)?;
        (rest, Some((ty, id)))
    };
    let scopes = |input| {
        let (rest, _) = word("scope")(input)?;
        separated_list1(comma, cut(name("a scope"))).parse(rest)
    };
    let (rest, scopes) = after_word("with", scopes)(rest)?;
    Ok((rest, WhoDecl { principal, scopes: scopes.unwrap_or_default() }))
}

/// An id: `$name`, quoted text, a composite id in parentheses, or everything up to the next space.
fn value(input: Tokens<'_>) -> Parsed<'_, ValueDecl> {
    let Some(first) = input.peek() else { return input.fail("an id") };
    let one = |text: String, given| Ok((input.take_from(1), ValueDecl { text, given, span: first.span }));
    match first.kind {
        TokenKind::Variable => one(spanned(first).value.trim_start_matches('$').to_owned(), true),
        TokenKind::Text | TokenKind::Quoted => one(unquoted(first.text), false),
        TokenKind::Open => composite(input),
        TokenKind::Number | TokenKind::Word | TokenKind::Dash => Ok(adjacent(input, first)),
        _ => input.fail("an id"),
    }
}

fn composite<'a>(input: Tokens<'a>) -> Parsed<'a, ValueDecl> {
    let part = |input: Tokens<'a>| value_part(input);
    let (rest, parts) = must(&mut in_parentheses(separated_list1(comma, part)), input)?;
    let whole = input.take(input.input_len() - rest.input_len()).span();
    let end = parts.last().map_or(whole.end, |p| p.span.end + 1);
    let text = parts.iter().map(|p| p.text.as_str()).collect::<Vec<_>>().join(",");
    let span = Span { end, ..whole };
    Ok((rest, ValueDecl { text: format!("({text})"), given: false, span }))
}

fn value_part(input: Tokens<'_>) -> Parsed<'_, ValueDecl> {
    match input.peek() {
        Some(token) if token.kind == TokenKind::Open => input.fail("an id"),
        _ => value(input),
    }
}

/// Tokens without space between them, such as a uuid.
fn adjacent<'a>(input: Tokens<'a>, first: Token<'a>) -> (Tokens<'a>, ValueDecl) {
    let mut span = first.span;
    let mut text = String::new();
    let mut count = 0;
    for token in input.iter_elements() {
        let fits = matches!(token.kind, TokenKind::Number | TokenKind::Word | TokenKind::Dash);
        if !fits || (count > 0 && token.span.start != span.end) {
            break;
        }
        text.push_str(token.text);
        span = span.to(token.span);
        count += 1;
    }
    (input.take_from(count), ValueDecl { text, given: false, span })
}
