//! What is in a policy, for the editor's side bar. It reads the syntax tree, so it works while the text has mistakes.

use super::ast::{Block, Member, Policy, TypeDecl};
use super::span::Span;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineItem {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: OutlineKind,
    /// Where it is declared.
    pub span: Span,
    /// What is under it.
    pub children: Vec<OutlineItem>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutlineKind {
    /// `type`
    Type,
    /// A relation, where first written.
    Relation,
    /// `can`
    Permission,
    /// `caveat`
    Caveat,
    /// `scope`
    Scope,
    /// `rules`
    Rules,
    /// A line of rules.
    Rule,
    /// `invariants`
    Invariants,
    /// `test`
    Test,
}

/// The outline of a policy.
pub fn outline(policy: &Policy) -> Vec<OutlineItem> {
    policy.blocks.iter().filter_map(item).collect()
}

fn item(block: &Block) -> Option<OutlineItem> {
    let leaf = |name: &str, kind, span| OutlineItem { name: name.to_owned(), kind, span, children: Vec::new() };
    Some(match block {
        Block::AppRole(_) | Block::Include(_) => return None,
        Block::Type(ty) => {
            OutlineItem { children: members(ty), ..leaf(&ty.name.value, OutlineKind::Type, ty.name.span) }
        }
        Block::Caveat(caveat) => leaf(&caveat.name.value, OutlineKind::Caveat, caveat.name.span),
        Block::Scope(scope) => leaf(&scope.name.value, OutlineKind::Scope, scope.name.span),
        Block::Rules(rules) => OutlineItem {
            children: rules
                .rules
                .iter()
                .map(|rule| leaf(&rule.command.title(), OutlineKind::Rule, rule.span))
                .collect(),
            ..leaf(&rules.table.value.plain(), OutlineKind::Rules, rules.table.span)
        },
        Block::Invariants(span, _) => leaf("invariants", OutlineKind::Invariants, *span),
        Block::Test(test) => {
            let name = test.name.as_ref().map_or("test", |name| name.value.as_str());
            leaf(name, OutlineKind::Test, test.span)
        }
    })
}

fn members(ty: &TypeDecl) -> Vec<OutlineItem> {
    let mut out: Vec<OutlineItem> = Vec::new();
    for member in &ty.members {
        let (name, kind) = match member {
            Member::Relation(relation) => (&relation.name, OutlineKind::Relation),
            Member::Permission(permission) => (&permission.name, OutlineKind::Permission),
            Member::Roles(_) => continue,
        };
        let again = out.last().is_some_and(|last| last.kind == kind && last.name == name.value);
        if !again {
            out.push(OutlineItem { name: name.value.clone(), kind, span: name.span, children: Vec::new() });
        }
    }
    out
}
