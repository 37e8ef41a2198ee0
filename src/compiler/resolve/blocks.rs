//! Rules, scopes, caveats and invariants.

use std::collections::{HashMap, HashSet};

use super::{Resolver, Symbol};
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
        let mut by_table: HashMap<QualName, Vec<TypeId>> = HashMap::new();
        for (at, ty) in self.types.iter().enumerate() {
            by_table.entry(ty.table.clone()).or_default().push(TypeId(at));
        }
        let mut governed: HashSet<&QualName> = HashSet::new();
        let mut out = Vec::new();
        for block in &policy.blocks {
            let Block::Rules(decl) = block else { continue };
            if !governed.insert(&decl.table.value) {
                self.error(109, decl.table.span, format!("{} has rules already", decl.table.value.plain()));
            }
            let of = by_table.get(&decl.table.value).map(Vec::as_slice).unwrap_or_default();
            let Some(ty) = self.ruled_type(decl, of) else { continue };
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

    /// The one type, of those whose table it is.
    fn ruled_type(&mut self, decl: &RulesDecl, of: &[TypeId]) -> Option<TypeId> {
        let table = &decl.table.value;
        match of {
            [one] => Some(*one),
            [] if self.broken.types.is_empty() => {
                let hint = self.suggest_table(table);
                self.error(401, decl.table.span, format!("no type has the table {}{hint}", table.plain()));
                None
            }
            [] => None,
            [first, second, ..] => {
                let message = format!(
                    "{} is the table of {} and of {}; rules are for the table of one type",
                    table.plain(),
                    self.type_name(*first),
                    self.type_name(*second)
                );
                self.error(401, decl.table.span, message);
                None
            }
        }
    }

    fn suggest_table(&mut self, table: &QualName) -> String {
        if !self.may_hint() {
            return String::new();
        }
        let tables: Vec<String> = self.types.iter().map(|t| t.table.plain()).collect();
        let all: Vec<&str> = tables.iter().map(String::as_str).collect();
        suggest::or_list(suggest::nearest(&table.plain(), all.iter().copied()), "types have the tables", &all)
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
        let mut seen = HashSet::new();
        for rule in &decl.rules {
            if !seen.insert(rule.command.title()) {
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
        let mut caveats: HashSet<&str> = HashSet::new();
        let permissions: HashSet<String> =
            self.types.iter().flat_map(|t| &t.permissions).map(|p| p.name.clone()).collect();
        for block in &policy.blocks {
            match block {
                Block::Caveat(caveat) => {
                    self.check_other_name(&caveat.name);
                    if !caveats.insert(&caveat.name.value) {
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
                Block::Scope(scope) => self.scope(scope, &permissions),
                Block::Invariants(_, invariants) => invariants.iter().for_each(|i| self.invariant(i)),
                _ => {}
            }
        }
    }

    fn scope(&mut self, scope: &'p ScopeDecl, permissions: &HashSet<String>) {
        self.check_other_name(&scope.name);
        if scope.name.value == "read" {
            self.error(109, scope.name.span, "the scope \"read\" is built in");
        } else if !self.scopes.insert(&scope.name.value) {
            self.error(109, scope.name.span, format!("scope \"{}\" is declared twice", scope.name.value));
        }
        for item in &scope.items {
            self.scope_item(item, permissions);
        }
        self.not_built(scope.name.span, "a scope is");
    }

    fn scope_item(&mut self, item: &[Spanned<ScopePart>], permissions: &HashSet<String>) {
        match item {
            [one] => {
                let name = one.value.name.as_str();
                let known = COMMANDS.contains(&name) || permissions.contains(name);
                if !known {
                    self.error(404, one.span, format!("\"{name}\" is neither a command nor a permission of some type"));
                }
            }
            [ty, permission] => {
                let name: Name = Spanned::new(ty.value.name.clone(), ty.span);
                let Some(id) = self.find_type(&name, 404) else { return };
                let wanted = permission.value.name.as_str();
                if !matches!(self.symbol(id, wanted), Some(Symbol::Permission(_))) {
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
