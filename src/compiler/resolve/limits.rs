//! Scopes, caveats and invariants: what limits a session, a share, and the policy itself.

use std::collections::{HashMap, HashSet};

use super::{Resolver, Symbol};
use crate::compiler::ast::{Block, InvariantDecl, Name, ScopeDecl, ScopePart};
use crate::compiler::ident::QualName;
use crate::compiler::model::{Caveat, Invariant, PermId, ScopeDef, ScopeId, ScopeItem, TypeId, Verb};
use crate::compiler::span::{Span, Spanned};

/// The scope that is there unless the policy writes its own.
const READ: &str = "read";

/// The types that have a permission of each name.
type ByName = HashMap<String, Vec<(TypeId, PermId)>>;

impl<'p> Resolver<'p> {
    pub(super) fn caveats(&mut self) -> Vec<Caveat> {
        let policy = self.policy;
        let mut names: HashSet<&str> = HashSet::new();
        let mut out = Vec::new();
        for block in &policy.blocks {
            let Block::Caveat(caveat) = block else { continue };
            let name = &caveat.name;
            self.check_other_name(name);
            if !names.insert(&name.value) {
                self.error(109, name.span, format!("caveat \"{}\" is declared twice", name.value));
            }
            let condition = caveat.condition.as_ref().and_then(|sql| self.caveat_condition(sql));
            out.extend(condition.map(|condition| Caveat { name: name.value.clone(), condition, span: name.span }));
        }
        out
    }

    pub(super) fn scopes(&mut self) -> Vec<ScopeDef> {
        let policy = self.policy;
        let mut permissions = ByName::new();
        for (at, def) in self.types.iter().enumerate() {
            for (id, permission) in def.permissions.iter().enumerate() {
                permissions.entry(permission.name.clone()).or_default().push((TypeId(at), PermId(id)));
            }
        }
        let mut items = vec![ScopeItem::Command(Verb::Select)];
        items.extend(of_name(&permissions, "view"));
        let mut out = vec![ScopeDef { name: READ.to_owned(), items, span: Span::default() }];
        self.scopes.insert(READ, ScopeId(0));
        let mut own_read = false;
        for block in &policy.blocks {
            let Block::Scope(scope) = block else { continue };
            let name = &scope.name;
            self.check_other_name(name);
            let items = self.scope_items(scope, &permissions);
            let def = ScopeDef { name: name.value.clone(), items, span: name.span };
            let again = self.scopes.contains_key(name.value.as_str());
            if name.value == READ && !own_read {
                own_read = true;
                out.splice(0..1, [def]);
            } else if again {
                self.error(109, name.span, format!("scope \"{}\" is declared twice", name.value));
            } else {
                self.scopes.insert(&name.value, ScopeId(out.len()));
                out.push(def);
            }
        }
        out
    }

    fn scope_items(&mut self, scope: &ScopeDecl, permissions: &ByName) -> Vec<ScopeItem> {
        let mut items: Vec<ScopeItem> = Vec::new();
        for written in &scope.items {
            for item in self.scope_item(written, permissions) {
                if !items.contains(&item) {
                    items.push(item);
                }
            }
        }
        items
    }

    fn scope_item(&mut self, item: &[Spanned<ScopePart>], permissions: &ByName) -> Vec<ScopeItem> {
        match item {
            [one] => {
                let name = one.value.name.as_str();
                let found: Vec<ScopeItem> =
                    verb(name).map(ScopeItem::Command).into_iter().chain(of_name(permissions, name)).collect();
                if found.is_empty() {
                    self.error(404, one.span, format!("\"{name}\" is neither a command nor a permission of some type"));
                }
                found
            }
            [ty, permission] => {
                let name: Name = Spanned::new(ty.value.name.clone(), ty.span);
                let Some(id) = self.find_type(&name, 404) else { return Vec::new() };
                let wanted = permission.value.name.as_str();
                if let Some(Symbol::Permission(found)) = self.symbol(id, wanted) {
                    return vec![ScopeItem::Permission(id, found)];
                }
                let hint = self.suggest_member(id, wanted);
                self.error(404, permission.span, format!("{} has no permission \"{wanted}\"{hint}", name.value));
                Vec::new()
            }
            [schema, table, command] => {
                let name = QualName { schema: schema.value.ident.clone(), name: table.value.ident.clone() };
                if !self.types.iter().any(|t| t.table == name) {
                    self.error(404, schema.span.to(table.span), format!("no type has the table {}", name.plain()));
                }
                let found = verb(command.value.name.as_str());
                if found.is_none() {
                    self.error(404, command.span, format!("\"{}\" is no command", command.value.name));
                }
                found.map(|verb| ScopeItem::TableCommand(name, verb)).into_iter().collect()
            }
            _ => {
                if let (Some(first), Some(last)) = (item.first(), item.last()) {
                    self.error(
                        404,
                        first.span.to(last.span),
                        "a scope names a command, schema.table.command, type.permission or a permission",
                    );
                }
                Vec::new()
            }
        }
    }

    pub(super) fn invariants(&mut self) -> Vec<Invariant> {
        let policy = self.policy;
        let blocks = policy.blocks.iter().filter_map(|block| match block {
            Block::Invariants(_, invariants) => Some(invariants),
            _ => None,
        });
        blocks.flatten().filter_map(|decl| self.invariant(decl)).collect()
    }

    fn invariant(&mut self, decl: &InvariantDecl) -> Option<Invariant> {
        let ty = self.type_of(&decl.ty)?;
        let expr = self.expr(ty, &decl.expr)?;
        Some(Invariant { ty, expr, span: decl.span })
    }
}

fn verb(word: &str) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| verb.word() == word)
}

fn of_name(permissions: &ByName, name: &str) -> impl Iterator<Item = ScopeItem> {
    permissions.get(name).into_iter().flatten().map(|(ty, id)| ScopeItem::Permission(*ty, *id))
}
