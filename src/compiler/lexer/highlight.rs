//! Colours for the editor: what each stretch of text is, from its tokens and the line and block they stand in.

use std::ops::Range;

use super::{HEADERS, Token, TokenKind, lex};
use crate::compiler::span::{FileId, Span};
use crate::compiler::sql::{self, PieceKind};

/// What a stretch of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenClass {
    /// A word of the language.
    Keyword,
    /// A name where it is declared.
    Declaration,
    /// Any other name.
    Name,
    /// SQL between braces, with them.
    Sql,
    /// Quoted text.
    Text,
    /// A number.
    Number,
    /// `$name`
    Variable,
    /// A mark such as `->`.
    Mark,
    /// A comment.
    Comment,
    /// Something that makes no sense where it stands.
    Wrong,
}

/// The classified stretches of a text, in order, without overlaps. Space is in none of them.
pub fn highlight(text: &str) -> Vec<(Range<usize>, TokenClass)> {
    let lexed = lex(FileId::default(), text);
    let mut out = Vec::with_capacity(lexed.tokens.len() + lexed.comments.len());
    let mut at = Place::default();
    let mut comments = lexed.comments.iter().peekable();
    for (index, token) in lexed.tokens.iter().enumerate() {
        while let Some(comment) = comments.next_if(|c| c.span.start < token.span.start) {
            out.push((range(comment.span), TokenClass::Comment));
        }
        at.enter(token);
        match token.kind {
            TokenKind::Sql => inside_braces(token, &mut out),
            _ => out.push((range(token.span), at.class(token, lexed.tokens.get(index + 1)))),
        }
        at.previous = token.text;
    }
    out.extend(comments.map(|comment| (range(comment.span), TokenClass::Comment)));
    out
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// Where in the policy a token stands.
#[derive(Debug, Default)]
struct Place<'a> {
    /// The word that started the block.
    block: &'a str,
    /// The line is the block's header.
    in_header: bool,
    first_on_line: bool,
    previous: &'a str,
}

impl<'a> Place<'a> {
    fn enter(&mut self, token: &Token<'a>) {
        self.first_on_line = token.starts_line;
        if token.starts_line {
            self.previous = "";
            self.in_header = token.at_margin;
        }
        if token.at_margin {
            self.block = token.text;
        }
    }

    fn class(&self, token: &Token<'_>, next: Option<&Token<'_>>) -> TokenClass {
        match token.kind {
            TokenKind::Word if self.is_keyword(token.text) => TokenClass::Keyword,
            TokenKind::Word if self.declares(next) => TokenClass::Declaration,
            TokenKind::Word => TokenClass::Name,
            TokenKind::Quoted | TokenKind::Text => TokenClass::Text,
            TokenKind::Number => TokenClass::Number,
            TokenKind::Variable => TokenClass::Variable,
            TokenKind::Unclosed | TokenKind::Stray => TokenClass::Wrong,
            _ => TokenClass::Mark,
        }
    }

    fn is_keyword(&self, word: &str) -> bool {
        if self.first_on_line && self.in_header {
            return HEADERS.contains(&word) || matches!(word, "or" | "and" | "if" | "where");
        }
        if matches!(word, "or" | "and" | "not" | "anyone" | "nobody" | "signed_in") {
            return true;
        }
        match (self.block, self.in_header, self.first_on_line) {
            ("app", true, _) => self.previous == "app" && word == "role",
            ("type", true, _) => matches!(word, "principal" | "where"),
            ("type", false, true) => matches!(word, "can" | "roles" | "if" | "where"),
            ("type", false, false) => matches!(word, "shared" | "by" | "if" | "where" | "from" | "link" | "roles"),
            ("rules", true, _) => word == "view",
            ("rules", false, true) => matches!(word, "select" | "insert" | "update" | "delete" | "mask" | "cascade"),
            ("rules", false, false) => matches!(word, "before" | "after" | "from"),
            ("invariants", false, true) => word == "never",
            ("test", false, true) => matches!(word, "given" | "as"),
            ("test", false, false) => {
                matches!(word, "can" | "cannot" | "allowed" | "refused" | "sees" | "with" | "scope")
            }
            _ => false,
        }
    }

    fn declares(&self, next: Option<&Token<'_>>) -> bool {
        let colon = next.is_some_and(|t| t.kind == TokenKind::Colon);
        match self.previous {
            "type" | "caveat" | "scope" => self.in_header,
            "can" => self.block == "type",
            "given" => self.block == "test",
            "" => self.block == "type" && colon && !self.in_header,
            _ => false,
        }
    }
}

/// The strings, comments and variables of a condition stand out from the rest of it.
fn inside_braces(token: &Token<'_>, out: &mut Vec<(Range<usize>, TokenClass)>) {
    for piece in sql::pieces(token.text) {
        let class = match piece.kind {
            PieceKind::Text | PieceKind::DollarText => TokenClass::Text,
            PieceKind::Comment => TokenClass::Comment,
            PieceKind::Variable => TokenClass::Variable,
            _ => TokenClass::Sql,
        };
        let start = token.span.start as usize + piece.at;
        let end = start + piece.text.len();
        match out.last_mut() {
            Some((last, known)) if *known == class && last.end == start => last.end = end,
            _ => out.push((start..end, class)),
        }
    }
}
