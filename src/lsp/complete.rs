//! Names and words that fit where the cursor is.

use lsp_types::{CompletionItem, CompletionItemKind, CompletionResponse};

use super::project::Project;
use crate::compiler::ast::{Block, Policy, StepKind, TypeDecl};
use crate::compiler::layout::lines;
use crate::compiler::lexer::{HEADERS, Token, TokenKind, lex};
use crate::compiler::span::FileId;
use crate::compiler::symbols::{members, subject_types};

/// Where the cursor stands: the tokens of its line before it, and the header of its block.
struct Place<'t, 'a> {
    header: &'t [Token<'a>],
    before: &'t [Token<'a>],
    at_margin: bool,
}

pub(super) fn complete(project: &Project, file: FileId, at: usize) -> Option<CompletionResponse> {
    let policy = &project.analysis.compiled.ast;
    let text = project.analysis.compiled.sources.file(file)?.text.get(..at)?;
    let lexed = lex(file, text);
    let mut tokens = lexed.tokens.as_slice();
    // A comment, or SQL whose end is not written yet.
    let in_comment = lexed
        .comments
        .last()
        .and_then(|comment| text.get(comment.span.start as usize..))
        .is_some_and(|rest| !rest.contains('\n'));
    if in_comment || tokens.last().is_some_and(|t| t.kind == TokenKind::Unclosed) {
        return None;
    }
    // The word being typed.
    let typing = matches!(tokens.last(), Some(t) if t.kind == TokenKind::Word && t.span.end as usize == at);
    let start = if typing { tokens.last().map_or(at, |t| t.span.start as usize) } else { at };
    if typing {
        tokens = tokens.split_last().map_or(tokens, |(_, rest)| rest);
    }
    let between = text.get(tokens.last().map_or(0, |t| t.span.end as usize)..start)?;
    let new_line = tokens.is_empty() || between.contains('\n');
    let known = lines(tokens);
    let header = known.iter().rev().find(|line| line.at_margin).map_or(&[][..], |line| line.tokens);
    let before = if new_line { &[][..] } else { known.last().map_or(&[][..], |line| line.tokens) };
    let at_margin = new_line && between.rsplit('\n').next().is_some_and(str::is_empty);
    let place = Place { header, before, at_margin };
    let mut items = Items(Vec::new());
    place.fill(policy, at, file, &mut items);
    Some(CompletionResponse::Array(items.0))
}

struct Items(Vec<CompletionItem>);

impl Items {
    fn add(&mut self, label: &str, kind: CompletionItemKind) {
        if !self.0.iter().any(|item| item.label == label) {
            self.0.push(CompletionItem { label: label.to_owned(), kind: Some(kind), ..CompletionItem::default() });
        }
    }

    fn words(&mut self, words: &[&str]) {
        words.iter().for_each(|word| self.add(word, CompletionItemKind::KEYWORD));
    }

    fn types(&mut self, policy: &Policy) {
        policy.types().for_each(|ty| self.add(&ty.name.value, CompletionItemKind::CLASS));
    }

    fn members(&mut self, ty: &TypeDecl, permissions_only: bool) {
        for (name, permission) in members(ty) {
            match permission {
                true => self.add(name, CompletionItemKind::METHOD),
                false if !permissions_only => self.add(name, CompletionItemKind::FIELD),
                false => {}
            }
        }
    }
}

fn type_named<'p>(policy: &'p Policy, name: &str) -> Option<&'p TypeDecl> {
    policy.types().find(|ty| ty.name.value == name)
}

impl Place<'_, '_> {
    fn last(&self) -> Option<&Token<'_>> {
        self.before.last()
    }

    fn has(&self, kind: TokenKind) -> bool {
        self.before.iter().any(|token| token.kind == kind)
    }

    fn fill(&self, policy: &Policy, at: usize, file: FileId, items: &mut Items) {
        if self.at_margin {
            return items.words(&HEADERS);
        }
        let block = self.header.first().map_or("", |t| t.text);
        // While the header itself is being written its line is the header.
        let in_header = self.before.first().is_some_and(|t| t.at_margin);
        match (block, in_header) {
            ("type", true) => items.words(&["principal", "where"]),
            ("type", false) => self.member(policy, items),
            ("rules", true) => self.rules_header(policy, items),
            ("rules", false) if self.has(TokenKind::Colon) => self.expression(self.ruled(policy), policy, items),
            ("rules", false) if self.before.is_empty() => {
                items.words(&["select", "insert", "update", "delete", "mask", "cascade"]);
            }
            ("rules", false) => items.words(&["before", "after", "from"]),
            ("invariants", false) => self.invariant(policy, items),
            ("scope", true) => self.scope(policy, items),
            ("test", false) => self.step(policy, at, file, items),
            ("app", true) => items.words(&["role"]),
            _ => {}
        }
    }

    fn member(&self, policy: &Policy, items: &mut Items) {
        let ty = self.header.get(1).and_then(|name| type_named(policy, name.text));
        if self.before.is_empty() {
            return items.words(&["can", "roles"]);
        }
        if self.before.first().is_some_and(|t| t.text == "can") {
            if self.has(TokenKind::Equals) {
                self.expression(ty, policy, items);
            }
            return;
        }
        if !self.has(TokenKind::Colon) || self.has(TokenKind::Equals) {
            return;
        }
        let last = self.last().map(|t| (t.kind, t.text));
        match last {
            Some((TokenKind::Hash, _)) => {
                let group = self.before.iter().rev().nth(1).and_then(|name| type_named(policy, name.text));
                group.into_iter().for_each(|ty| items.members(ty, false));
            }
            Some((_, "by")) => ty.into_iter().for_each(|ty| items.members(ty, true)),
            Some((TokenKind::Colon | TokenKind::Comma, _)) => {
                items.types(policy);
                items.words(&["anyone", "link"]);
            }
            _ => items.words(&["shared", "by", "if", "where", "from"]),
        }
    }

    fn expression(&self, ty: Option<&TypeDecl>, policy: &Policy, items: &mut Items) {
        let Some(ty) = ty else { return };
        match self.last().map(|t| t.kind) {
            Some(TokenKind::Dot) => {
                let relation = self.before.iter().rev().nth(1).map_or("", |t| t.text);
                for reached in subject_types(ty, relation) {
                    type_named(policy, reached).into_iter().for_each(|ty| items.members(ty, false));
                }
            }
            Some(TokenKind::Word | TokenKind::Sql | TokenKind::Close)
                if !self.last().is_some_and(|t| matches!(t.text, "or" | "and" | "not")) =>
            {
                items.words(&["or", "and"]);
            }
            _ => {
                items.members(ty, false);
                items.words(&["not", "signed_in", "anyone", "nobody", "roles"]);
            }
        }
    }

    fn rules_header(&self, policy: &Policy, items: &mut Items) {
        if self.before.len() > 1 {
            return items.words(&["view"]);
        }
        for header in policy.types().filter_map(|ty| ty.header.as_ref()) {
            items.add(&header.table.value.plain(), CompletionItemKind::MODULE);
        }
    }

    /// The type whose table the rules are for.
    fn ruled<'p>(&self, policy: &'p Policy) -> Option<&'p TypeDecl> {
        let start = self.header.first()?.span;
        let table = policy.blocks.iter().find_map(|block| match block {
            Block::Rules(rules) if rules.table.span.file == start.file && rules.table.span.start > start.start => {
                Some(&rules.table.value)
            }
            _ => None,
        })?;
        policy.types().find(|ty| ty.header.as_ref().is_some_and(|header| header.table.value == *table))
    }

    fn invariant(&self, policy: &Policy, items: &mut Items) {
        match self.before.len() {
            0 => items.words(&["never"]),
            1 => items.types(policy),
            _ if self.has(TokenKind::Colon) => {
                let ty = self.before.get(1).and_then(|name| type_named(policy, name.text));
                self.expression(ty, policy, items);
            }
            _ => {}
        }
    }

    fn scope(&self, policy: &Policy, items: &mut Items) {
        if !self.has(TokenKind::Equals) {
            return;
        }
        if self.last().is_some_and(|t| t.kind == TokenKind::Dot) {
            let ty = self.before.iter().rev().nth(1).and_then(|name| type_named(policy, name.text));
            return ty.into_iter().for_each(|ty| items.members(ty, true));
        }
        items.words(&["select", "insert", "update", "delete"]);
        items.types(policy);
        policy.types().for_each(|ty| items.members(ty, true));
    }

    fn step(&self, policy: &Policy, at: usize, file: FileId, items: &mut Items) {
        let words: Vec<&str> = self.before.iter().map(|t| t.text).collect();
        let asks = words.iter().position(|word| matches!(*word, "can" | "cannot"));
        match (asks, words.as_slice()) {
            (_, []) => {
                items.words(&["given", "as", "anyone"]);
                items.types(policy);
            }
            (_, ["as"]) => {
                items.types(policy);
                items.words(&["anyone"]);
            }
            (_, [.., "with"]) => items.words(&["scope"]),
            (_, [.., "scope"]) => scopes(policy, items),
            (_, [.., ","]) if words.contains(&"scope") => scopes(policy, items),
            (Some(verb), _) if words.len() == verb + 1 => policy.types().for_each(|ty| items.members(ty, true)),
            (Some(verb), _) if words.len() == verb + 2 => {
                let permission = words.last().copied().unwrap_or_default();
                let having = policy.types().filter(|ty| members(ty).any(|(name, can)| can && name == permission));
                having.for_each(|ty| items.add(&ty.name.value, CompletionItemKind::CLASS));
            }
            (Some(_), _) => given(policy, at, file, items),
            (None, [_]) | (None, ["as", _]) => given(policy, at, file, items),
            (None, ["as", ..]) => items.words(&["allowed", "refused", "sees", "with"]),
            (None, ["given", ..]) => {}
            (None, _) => items.words(&["can", "cannot", "with"]),
        }
    }
}

fn scopes(policy: &Policy, items: &mut Items) {
    items.words(&["read"]);
    for block in &policy.blocks {
        if let Block::Scope(scope) = block {
            items.add(&scope.name.value, CompletionItemKind::ENUM);
        }
    }
}

/// What the test around the cursor was given before it.
fn given(policy: &Policy, at: usize, file: FileId, items: &mut Items) {
    let test = policy.blocks.iter().rev().find_map(|block| match block {
        Block::Test(test) if test.span.file == file && (test.span.start as usize) < at => Some(test),
        _ => None,
    });
    for step in test.into_iter().flat_map(|test| &test.steps) {
        if let StepKind::Given(Some(name), _) = &step.kind
            && (name.span.start as usize) < at
        {
            items.add(&format!("${}", name.value), CompletionItemKind::VARIABLE);
        }
    }
}
