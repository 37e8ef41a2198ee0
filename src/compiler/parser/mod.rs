//! Tokens to syntax tree. A mistake spoils its line and nothing else: every line is parsed on its own, a header that
//! goes on wrongly still opens its block, and a declaration that is half right keeps its name.

mod blocks;
mod expr;
mod input;
mod names;
mod types;

use std::cell::RefCell;

use nom::Input;

use super::ast::{Allow, Block, Policy};
use super::diagnostic::Diagnostic;
use super::layout::{Line, lines};
use super::lexer::{Comment, HEADERS, TokenKind, lex};
use super::span::FileId;
use super::suggest;
use input::{Sink, Tokens, at_word, quote};
use types::recover;

/// Parses one file. Includes stay [`Block::Include`]; bringing them in is the caller's.
pub fn parse(file: FileId, text: &str) -> (Policy, Vec<Diagnostic>) {
    let lexed = lex(file, text);
    let sink: Sink = RefCell::new(Vec::new());
    let mut blocks = Blocks { sink: &sink, done: Vec::new(), open: None };
    for line in lines(&lexed.tokens) {
        blocks.line(line);
    }
    let policy = Policy { blocks: blocks.done, allows: lexed.comments.iter().filter_map(allow).collect() };
    (policy, sink.into_inner())
}

/// The block whose lines are being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Its lines go to the last block.
    Block,
    /// Its header was not understood, so its lines cannot be either.
    Unknown,
}

struct Blocks<'t> {
    sink: &'t Sink,
    done: Vec<Block>,
    open: Option<Open>,
}

impl<'t> Blocks<'t> {
    fn line(&mut self, line: Line<'t, 't>) {
        let input = Tokens::new(line.tokens, self.sink);
        let Some(first) = input.peek() else { return };
        let header = first.kind == TokenKind::Word && HEADERS.contains(&first.text);
        match (line.at_margin, header && starts_header(input)) {
            (true, true) => self.header(first.text, input.take_from(1)),
            (false, true) if !self.belongs(input) => {
                let message = format!("{} starts a block, and a block starts at the left margin", quote(first.text));
                input.report(Diagnostic::error(101, first.span, message));
                self.header(first.text, input.take_from(1));
            }
            (false, _) => self.inside(input),
            (true, false) => self.stray(input),
        }
    }

    /// Whether an indented line that starts with a header's word may still be a line of the open block.
    fn belongs(&self, input: Tokens<'t>) -> bool {
        match self.done.last() {
            // `type 3 can view file 1` asks as a principal whose type has a header's name.
            Some(Block::Test(_)) => !input.iter_elements().any(|t| t.kind == TokenKind::Equals),
            _ => false,
        }
    }

    fn header(&mut self, word: &str, rest: Tokens<'t>) {
        let block = match word {
            "app" => recover(rest, 101, blocks::app_role).map(|(_, role)| Block::AppRole(role)),
            "include" => recover(rest, 101, blocks::include).map(|(_, file)| Block::Include(file)),
            "type" => types::type_decl(rest).map(Block::Type),
            "caveat" => blocks::caveat(rest).map(Block::Caveat),
            "scope" => blocks::scope(rest).map(Block::Scope),
            "rules" => recover(rest, 101, blocks::rules_header).map(|(_, rules)| Block::Rules(rules)),
            "invariants" => {
                let end = input::end_of_line("the end of the line");
                recover(rest, 101, end).map(|_| Block::Invariants(rest.span(), Vec::new()))
            }
            _ => blocks::test_header(rest).map(Block::Test),
        };
        self.open = Some(if block.is_some() { Open::Block } else { Open::Unknown });
        self.done.extend(block);
    }

    /// An indented line.
    fn inside(&mut self, input: Tokens<'t>) {
        if self.open == Some(Open::Unknown) {
            return;
        }
        match self.done.last_mut() {
            Some(Block::Type(ty)) => ty.members.extend(types::member(input)),
            Some(Block::Rules(rules)) => rules.rules.extend(blocks::rule(input)),
            Some(Block::Invariants(_, invariants)) => invariants.extend(blocks::invariant(input)),
            Some(Block::Test(test)) => test.steps.extend(blocks::step(input)),
            Some(Block::AppRole(_) | Block::Include(_) | Block::Caveat(_) | Block::Scope(_)) | None => {
                let message = "this line is indented and belongs to no block";
                input.report(Diagnostic::error(101, input.span(), message));
            }
        }
    }

    /// A line at the margin that starts no block: either a line of the block above that lost its indentation, or a
    /// header with its word misspelt.
    fn stray(&mut self, input: Tokens<'t>) {
        let Some(first) = input.peek() else { return };
        let member = at_word(input, "can") || input.peek_second().is_some_and(|t| t.kind == TokenKind::Colon);
        if member && matches!(self.done.last(), Some(Block::Type(_) | Block::Rules(_))) {
            let message = "this line starts no block; indent it to make it part of the block above";
            input.report(Diagnostic::error(101, first.span, message));
            return self.inside(input);
        }
        let meant = suggest::nearest(first.text, HEADERS);
        let message = format!(
            "{} starts no block{}",
            quote(first.text),
            suggest::or_list(meant, "a block starts with", &HEADERS)
        );
        input.report(Diagnostic::error(101, first.span, message));
        match meant {
            Some(word) => self.header(word, input.take_from(1)),
            None => self.open = Some(Open::Unknown),
        }
    }
}

/// Whether a line that starts with a header's word is meant as one: `type : kind = type_id` declares a relation.
fn starts_header(input: Tokens<'_>) -> bool {
    !input.peek_second().is_some_and(|t| matches!(t.kind, TokenKind::Colon))
}

/// `-- allow AZ803: reason`
fn allow(comment: &Comment<'_>) -> Option<Allow> {
    let words = comment.text.trim_start_matches('-').trim_start().strip_prefix("allow ")?;
    let (code, reason) = words.split_once(':')?;
    let code = code.trim().strip_prefix("AZ")?.parse().ok()?;
    let reason = reason.trim();
    (!reason.is_empty()).then(|| Allow {
        code,
        reason: reason.to_owned(),
        span: comment.span,
        own_line: comment.own_line,
    })
}
