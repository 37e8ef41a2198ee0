//! Rules, scopes, caveats and invariants.

use std::collections::HashMap;

use super::Resolver;
use crate::compiler::ast::{
    Block, Column, CommandDecl, InvariantDecl, Name, RuleDecl, RulesDecl, ScopeDecl, ScopePart,
};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Command, Rule, TableRules, TypeId};
use crate::compiler::span::Spanned;
use crate::compiler::suggest;

const COMMANDS: [&str; 4] = ["select", "insert", "update", "delete"];

impl<'p> Resolver<'p> {
    pub(super) fn rules(&mut self) -> Vec<TableRules> {
        let policy = self.policy;
        let mut governed: HashMap<&QualName, ()> = HashMap::new();
        let mut out = Vec::new();
        for block in &policy.blocks {
            let Block::Rules(decl) = block else { continue };
            if governed.insert(&decl.table.value, ()).is_some() {
                self.error(109, decl.table.span, format!("{} has rules already", decl.table.value.plain()));
            }
            let Some(ty) = self.ruled_type(decl) else { continue };
            if let Some(view) = &decl.view {
                self.not_built(view.span, "a masked view is");
            }
            let rules = decl.rules.iter().filter_map(|rule| self.rule(ty, rule, decl.view.is_some())).collect();
            self.repeated_rules(decl);
            let view = decl.view.as_ref().map(|v| v.value.clone());
            out.push(TableRules { ty, view, rules, span: decl.table.span });
        }
        out
    }

    /// The one type whose table it is.
    fn ruled_type(&mut self, decl: &RulesDecl) -> Option<TypeId> {
        let table = &decl.table.value;
        let of: Vec<TypeId> =
            (self.types.iter().enumerate()).filter(|(_, t)| t.table == *table).map(|(at, _)| TypeId(at)).collect();
        match of.as_slice() {
            [one] => Some(*one),
            [] if self.broken.types.is_empty() => {
                let tables: Vec<String> = self.types.iter().map(|t| t.table.plain()).collect();
                let all: Vec<&str> = tables.iter().map(String::as_str).collect();
                let near = suggest::nearest(&table.plain(), all.iter().copied());
                let hint = suggest::or_list(near, "types have the tables", &all);
                self.error(401, decl.table.span, format!("no type has the table {}{hint}", table.plain()));
                None
            }
            [] => None,
            [first, second, ..] => {
                let (first, second) = (self.type_name(*first), self.type_name(*second));
                let message = format!(
                    "{} is the table of {first} and of {second}; rules are for the table of one type",
                    table.plain()
                );
                self.error(401, decl.table.span, message);
                None
            }
        }
    }

    fn rule(&mut self, ty: TypeId, decl: &RuleDecl, has_view: bool) -> Option<Rule> {
        let command = match &decl.command {
            CommandDecl::Select => Command::Select,
            CommandDecl::Insert => Command::Insert,
            CommandDecl::Update => Command::Update,
            CommandDecl::Delete => Command::Delete,
            CommandDecl::UpdateBefore(columns) => Command::UpdateBefore(idents(columns)),
            CommandDecl::UpdateAfter(columns) => Command::UpdateAfter(idents(columns)),
            CommandDecl::Mask(columns) => {
                if has_view {
                    self.not_built(decl.span, "a masked column is");
                } else {
                    self.error(
                        402,
                        decl.span,
                        "a mask needs the view that shows it: write \"rules schema.table view schema.view\"",
                    );
                }
                Command::Mask(idents(columns))
            }
            CommandDecl::Cascade(..) => {
                self.not_built(decl.span, "a cascade that is meant is");
                return None;
            }
        };
        let expr = self.expr(ty, &decl.expr)?;
        Some(Rule { command, expr, span: decl.span })
    }

    /// The same command twice, and refinements of an update that is not allowed at all.
    fn repeated_rules(&mut self, decl: &RulesDecl) {
        let updates = decl.rules.iter().any(|r| r.command == CommandDecl::Update);
        for (at, rule) in decl.rules.iter().enumerate() {
            if decl.rules.iter().take(at).any(|earlier| earlier.command == rule.command) {
                self.error(109, rule.span, "this rule is declared twice; join the two with \"or\" or \"and\"");
            }
            let refines = matches!(rule.command, CommandDecl::UpdateBefore(_) | CommandDecl::UpdateAfter(_));
            if refines && !updates {
                self.error(
                    403,
                    rule.span,
                    "this only narrows \"update\", and there is no \"update\" line, so nobody may update at all",
                );
            }
        }
    }

    pub(super) fn caveats_and_scopes(&mut self) {
        let policy = self.policy;
        let mut caveats: HashMap<&str, ()> = HashMap::new();
        for block in &policy.blocks {
            match block {
                Block::Caveat(caveat) => {
                    self.check_other_name(&caveat.name);
                    if caveats.insert(&caveat.name.value, ()).is_some() {
                        self.error(
                            109,
                            caveat.name.span,
                            format!("caveat \"{}\" is declared twice", caveat.name.value),
                        );
                    }
                    if let Some(condition) = &caveat.condition {
                        self.caveat_condition(condition);
                    }
                    self.not_built(caveat.name.span, "a caveat is");
                }
                Block::Scope(scope) => self.scope(scope),
                Block::Invariants(_, invariants) => invariants.iter().for_each(|i| self.invariant(i)),
                _ => {}
            }
        }
    }

    fn scope(&mut self, scope: &'p ScopeDecl) {
        self.check_other_name(&scope.name);
        if scope.name.value == "read" {
            self.error(109, scope.name.span, "the scope \"read\" is built in");
        } else if !self.scopes.insert(&scope.name.value) {
            self.error(109, scope.name.span, format!("scope \"{}\" is declared twice", scope.name.value));
        }
        for item in &scope.items {
            self.scope_item(item);
        }
        self.not_built(scope.name.span, "a scope is");
    }

    fn scope_item(&mut self, item: &[Spanned<ScopePart>]) {
        match item {
            [one] => {
                let name = one.value.name.as_str();
                let known = COMMANDS.contains(&name) || self.types.iter().any(|t| t.permission_named(name).is_some());
                if !known {
                    self.error(404, one.span, format!("\"{name}\" is neither a command nor a permission of some type"));
                }
            }
            [ty, permission] => {
                let name: Name = Spanned::new(ty.value.name.clone(), ty.span);
                let Some(id) = self.find_type(&name, 404) else { return };
                let wanted = permission.value.name.as_str();
                if self.types.get(id.0).is_some_and(|t| t.permission_named(wanted).is_none()) {
                    let hint = self.suggest_member(id, wanted);
                    self.error(404, permission.span, format!("{} has no permission \"{wanted}\"{hint}", name.value));
                }
            }
            [schema, table, command] => {
                let name = QualName { schema: schema.value.ident.clone(), name: table.value.ident.clone() };
                if !self.types.iter().any(|t| t.table == name) {
                    self.error(404, schema.span.to(table.span), format!("no type has the table {}", name.plain()));
                }
                if !COMMANDS.contains(&command.value.name.as_str()) {
                    self.error(404, command.span, format!("\"{}\" is no command", command.value.name));
                }
            }
            _ => {
                if let (Some(first), Some(last)) = (item.first(), item.last()) {
                    self.error(
                        404,
                        first.span.to(last.span),
                        "a scope names a command, schema.table.command, type.permission or a permission",
                    );
                }
            }
        }
    }

    fn invariant(&mut self, decl: &InvariantDecl) {
        self.not_built(decl.span, "an invariant is");
        if let Some(ty) = self.type_of(&decl.ty) {
            self.expr(ty, &decl.expr);
        }
    }
}

fn idents(columns: &[Column]) -> Vec<Ident> {
    columns.iter().map(|c| c.value.clone()).collect()
}
