//! Tokens to logical lines, and lines to blocks. A block is a line at the left margin with the indented lines below it.

use super::lexer::{Token, TokenKind};

/// One logical line: at least one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t, 'a> {
    /// Its tokens.
    pub tokens: &'t [Token<'a>],
    /// It stands at the left margin.
    pub at_margin: bool,
}

/// Words that continue the line before them when they start one.
const CONTINUING: [&str; 4] = ["or", "and", "if", "where"];

/// Cuts tokens into logical lines. A line goes on over the next one when that starts with `or`, `and`, `if` or `where`,
/// and also while a parenthesis is open or the line ends in `or`, `and`, `not` or a comma, unless what comes next can only
/// be a new declaration: one forgotten parenthesis must not swallow the block.
pub fn lines<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<Line<'t, 'a>> {
    let mut lines = Vec::new();
    let mut rest = tokens;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(line_length(rest));
        lines.push(Line { tokens: line, at_margin: line.first().is_some_and(|t| t.at_margin) });
        rest = after;
    }
    lines
}

/// How many tokens the first logical line has; at least one of the non-empty `tokens`.
fn line_length(tokens: &[Token<'_>]) -> usize {
    let mut open = 0i32;
    let mut last: Option<&Token<'_>> = None;
    for (at, token) in tokens.iter().enumerate() {
        let following = tokens.get(at + 1);
        if let Some(last) = last
            && token.starts_line
            && !continues(token, following, open > 0, last)
        {
            return at;
        }
        match token.kind {
            TokenKind::Open | TokenKind::OpenBracket => open += 1,
            TokenKind::Close | TokenKind::CloseBracket => open -= 1,
            _ => {}
        }
        last = Some(token);
    }
    tokens.len()
}

fn continues(token: &Token<'_>, following: Option<&Token<'_>>, open: bool, last: &Token<'_>) -> bool {
    let named = following.is_some_and(|t| t.kind == TokenKind::Colon && !t.starts_line);
    if token.kind == TokenKind::Word && CONTINUING.contains(&token.text) && !named {
        return true;
    }
    let unfinished = match last.kind {
        TokenKind::Comma => true,
        TokenKind::Word => matches!(last.text, "or" | "and" | "not"),
        _ => false,
    };
    let link_column = open && matches!(token.text, "object" | "subject");
    let declares = token.at_margin || token.text == "can" || (named && !link_column);
    (open || unfinished) && !declares
}
