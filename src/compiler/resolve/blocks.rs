//! Rules.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use crate::compiler::ast::{Block, Column, CommandDecl, RuleDecl, RulesDecl};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Cascade, Command, Rule, TableRules, TypeId};
use crate::compiler::suggest;

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
            let rules = decl.rules.iter().filter_map(|rule| self.rule(ty, rule, decl.view.is_some())).collect();
            self.repeated_rules(decl);
            let view = decl.view.as_ref().map(|v| v.value.clone());
            let cascades = decl.rules.iter().filter_map(|rule| match &rule.command {
                CommandDecl::Cascade(from, columns) => {
                    Some(Cascade { from: from.value.clone(), columns: idents(columns), span: rule.span })
                }
                _ => None,
            });
            out.push(TableRules { ty, view, rules, cascades: cascades.collect(), span: decl.table.span });
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
                if !has_view {
                    self.error(
                        402,
                        decl.span,
                        "a mask needs the view that shows it: write \"rules schema.table view schema.view\"",
                    );
                }
                Command::Mask(idents(columns))
            }
            CommandDecl::Cascade(..) => return None,
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
}

fn idents(columns: &[Column]) -> Vec<Ident> {
    columns.iter().map(|c| c.value.clone()).collect()
}
