//! Expressions. `and` and `or` have no precedence over each other: where they meet, parentheses are required.

use nom::{Err, Input};

use super::input::{Parsed, Tokens, at, at_word, kind};
use super::names::{name, spanned, sql_of};
use crate::compiler::ast::Expr;
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::lexer::{Token, TokenKind};

/// How deep parentheses and `not` may nest. Everything after the parser walks expressions by recursion, and this is
/// what makes that safe.
pub(super) const DEEPEST: usize = 100;

/// An expression to the end of the line; on a mistake reports it and gives [`Expr::Broken`].
pub(super) fn expression(input: Tokens<'_>) -> Expr {
    let whole = or_and(input, 0).and_then(|(rest, expr)| match rest.peek() {
        None => Ok(expr),
        Some(token) if token.kind == TokenKind::Close => {
            rest.fail("an \"or\" or \"and\" (this parenthesis closes nothing)").map(|(_, e)| e)
        }
        Some(token) if token.kind == TokenKind::Dot => rest
            .fail("\"or\", \"and\" or the end of the line (following goes one step; name a permission there that goes on)")
            .map(|(_, e)| e),
        Some(_) => rest.fail("\"or\", \"and\" or the end of the line").map(|(_, e)| e),
    });
    match whole {
        Ok(expr) => expr,
        Err(Err::Error(mistake) | Err::Failure(mistake)) => {
            input.report(mistake.diagnostic(102));
            Expr::Broken
        }
        Err(Err::Incomplete(_)) => Expr::Broken,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    Or,
    And,
}

fn join(input: Tokens<'_>) -> Option<(Join, Token<'_>)> {
    let token = input.peek().filter(|t| t.kind == TokenKind::Word)?;
    match token.text {
        "or" => Some((Join::Or, token)),
        "and" => Some((Join::And, token)),
        _ => None,
    }
}

/// Terms joined by one of `or` and `and`. A mixture is reported once and read with `and` binding tighter, so that the
/// rest of the line is still checked.
fn or_and(input: Tokens<'_>, depth: usize) -> Parsed<'_, Expr> {
    let (mut rest, first) = term(input, depth)?;
    let mut alternatives: Vec<Vec<Expr>> = vec![vec![first]];
    let mut used: Option<Join> = None;
    let mut reported = false;
    while let Some((join, token)) = join(rest) {
        let (after, next) = term(rest.take_from(1), depth)?;
        if used.is_some_and(|used| used != join) && !reported {
            reported = true;
            let message = "\"and\" and \"or\" meet here without parentheses";
            let help = "put parentheses around the part that belongs together, such as (a and b) or c";
            input.report(Diagnostic::error(102, token.span, message).with_help(help));
        }
        used = Some(join);
        match alternatives.last_mut() {
            Some(all) if join == Join::And => all.push(next),
            _ => alternatives.push(vec![next]),
        }
        rest = after;
    }
    let all = alternatives.into_iter().map(|terms| joined(terms, Expr::And)).collect();
    Ok((rest, joined(all, Expr::Or)))
}

fn joined(mut terms: Vec<Expr>, join: impl Fn(Vec<Expr>) -> Expr) -> Expr {
    match (terms.len(), terms.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            terms.push(last);
            join(terms)
        }
        (_, None) => Expr::Broken,
    }
}

fn term(input: Tokens<'_>, depth: usize) -> Parsed<'_, Expr> {
    if depth > DEEPEST {
        return input.fail("something simpler (parentheses and \"not\" may nest 100 deep)");
    }
    if at_word(input, "not") {
        let (rest, inner) = term(input.take_from(1), depth + 1)?;
        return Ok((rest, Expr::Not(Box::new(inner))));
    }
    if at(input, TokenKind::Open) {
        let (rest, inner) = or_and(input.take_from(1), depth + 1)?;
        let (rest, _) = kind(TokenKind::Close, "a closing parenthesis, \"or\" or \"and\"")(rest)?;
        return Ok((rest, inner));
    }
    leaf(input)
}

fn leaf(input: Tokens<'_>) -> Parsed<'_, Expr> {
    let expected = "a relation, a permission or a condition";
    let Some(token) = input.peek() else { return input.fail(expected) };
    let rest = input.take_from(1);
    match (token.kind, token.text) {
        (TokenKind::Sql, _) => Ok((rest, Expr::Sql(sql_of(token)))),
        (TokenKind::Word, "or" | "and") => input.fail(expected),
        (TokenKind::Word, _) if at(rest, TokenKind::Dot) => {
            let (rest, target) = name("what to ask there, as in parent.view")(rest.take_from(1))?;
            Ok((rest, Expr::Follow(spanned(token), target)))
        }
        (TokenKind::Word, "signed_in") => Ok((rest, Expr::SignedIn(token.span))),
        (TokenKind::Word, "anyone") => Ok((rest, Expr::Anyone(token.span))),
        (TokenKind::Word, "nobody") => Ok((rest, Expr::Nobody(token.span))),
        (TokenKind::Word, "roles") => Ok((rest, Expr::Roles(token.span))),
        (TokenKind::Word, _) => Ok((rest, Expr::Name(spanned(token)))),
        _ => input.fail(expected),
    }
}
