//! Where a space stands between two tokens of a line.

use crate::compiler::lexer::{Token, TokenKind};

/// Whether a space stands before the token `at` of a line.
pub(super) fn space_before(tokens: &[Token<'_>], at: usize, block: &str, header: bool) -> bool {
    use TokenKind as K;
    let (Some(next), Some(previous)) = (tokens.get(at), at.checked_sub(1).and_then(|at| tokens.get(at))) else {
        return false;
    };
    match (previous.kind, next.kind) {
        // Ids in tests are several tokens without space; what was apart stays apart.
        (K::Number | K::Word | K::Dash, K::Number | K::Word | K::Dash) => previous.span.end != next.span.start,
        (K::Open | K::OpenBracket | K::Dot | K::Hash, _) => false,
        (_, K::Close | K::CloseBracket | K::Comma | K::Dot | K::Hash) => false,
        (K::Colon, K::Star) => false,
        (_, K::Colon) => {
            let everyone = tokens.get(at + 1).is_some_and(|t| t.kind == K::Star);
            let invariant = block == "invariants";
            !everyone && !invariant && depth(tokens, at) == 0
        }
        // The columns of a link table belong to its name; a key is a part of its own.
        (K::Word | K::Quoted, K::Open) => {
            let table = at.checked_sub(2).and_then(|at| tokens.get(at)).is_some_and(|t| t.kind == K::Dot);
            let relation = block == "type" && !header && tokens.get(1).is_some_and(|t| t.kind == K::Colon);
            !(table && relation)
        }
        _ => true,
    }
}

/// How many parentheses are open before the token `at`.
fn depth(tokens: &[Token<'_>], at: usize) -> usize {
    tokens.iter().take(at).fold(0usize, |depth, token| match token.kind {
        TokenKind::Open => depth + 1,
        TokenKind::Close => depth.saturating_sub(1),
        _ => depth,
    })
}
