//! Tests: who asks, for what, and which `$name` is there by then.

use std::collections::HashSet;

use super::{Resolver, Symbol};
use crate::compiler::ast::{Block, Name, Sql, StepDecl, StepKind, TestDecl, ValueDecl, WhoDecl};
use crate::compiler::model::{Condition, KeyType, ScopeId, Test, TestStep, TypeId, Value, Who};
use crate::compiler::span::Span;
use crate::compiler::sql::{PieceKind, meaningful};
use crate::compiler::suggest;

/// The names given so far in a test.
type Given<'p> = HashSet<&'p str>;

impl<'p> Resolver<'p> {
    pub(super) fn tests(&mut self) -> Vec<Test> {
        let policy = self.policy;
        let mut names: HashSet<&str> = HashSet::new();
        let mut out = Vec::new();
        for block in &policy.blocks {
            let Block::Test(decl) = block else { continue };
            if let Some(name) = &decl.name
                && !names.insert(&name.value)
            {
                self.error(109, name.span, format!("test \"{}\" is there twice", name.value));
            }
            out.push(self.test(decl));
        }
        out
    }

    fn test(&mut self, decl: &'p TestDecl) -> Test {
        let mut given = Given::new();
        let steps = decl.steps.iter().filter_map(|step| self.step(decl, step, &mut given)).collect();
        Test { name: decl.name.as_ref().map(|n| n.value.clone()), steps, span: decl.span }
    }

    fn step(&mut self, test: &TestDecl, step: &'p StepDecl, given: &mut Given<'p>) -> Option<TestStep> {
        let span = step.span;
        if test.name.is_none() && matches!(step.kind, StepKind::Given(..) | StepKind::Run(..)) {
            let message = "a test without a name only looks at data that is there; give it a name, and it brings its own and is rolled back";
            self.error(106, span, message);
        }
        match &step.kind {
            StepKind::Given(name, sql) => {
                let sql = self.statement(sql, given);
                if let Some(name) = name {
                    self.check_other_name(name);
                    given.insert(&name.value);
                }
                Some(TestStep::Given { name: name.as_ref().map(|n| n.value.clone()), sql })
            }
            StepKind::Broken(name) => {
                given.extend(name.as_ref().map(|n| n.value.as_str()));
                None
            }
            StepKind::Check { who, allowed, permission, ty, id } => {
                let scopes = self.under(who);
                let who = self.who(who, given);
                let ty = self.type_of(ty)?;
                self.tested_permission(ty, permission);
                let id = self.value(ty, id, given);
                Some(TestStep::Check {
                    who: who?,
                    scopes: scopes?,
                    allowed: *allowed,
                    permission: permission.value.clone(),
                    ty,
                    id: id?,
                    span,
                })
            }
            StepKind::Run(who, allowed, sql) => {
                let (scopes, who, sql) = (self.under(who), self.who(who, given), self.statement(sql, given));
                Some(TestStep::Run { who: who?, scopes: scopes?, allowed: *allowed, sql, span })
            }
            StepKind::Sees(who, rows, sql) => {
                let (scopes, who, sql) = (self.under(who), self.who(who, given), self.statement(sql, given));
                Some(TestStep::Sees { who: who?, scopes: scopes?, rows: *rows, sql, span })
            }
        }
    }

    /// The scopes named after `with`; `None` when one of them is unknown.
    fn under(&mut self, who: &WhoDecl) -> Option<Vec<ScopeId>> {
        let mut found = Some(Vec::new());
        for scope in &who.scopes {
            match (self.scopes.get(scope.value.as_str()), &mut found) {
                (Some(id), Some(all)) => all.push(*id),
                (Some(_), None) => {}
                (None, _) => {
                    let near = match self.may_hint() {
                        true => suggest::nearest(&scope.value, self.scopes.keys().copied()),
                        false => None,
                    };
                    let hint = suggest::or_list(near, "", &[]);
                    self.error(503, scope.span, format!("unknown scope \"{}\"{hint}", scope.value));
                    found = None;
                }
            }
        }
        found
    }

    fn who(&mut self, who: &WhoDecl, given: &Given<'_>) -> Option<Who> {
        let Some((ty, id)) = &who.principal else { return Some(Who::Anyone) };
        let found = self.type_of(ty)?;
        if !self.types.get(found.0).is_some_and(|t| t.signs_in) && !self.broken.types.contains(&found) {
            self.error(502, ty.span, format!("nobody signs in as a {}", ty.value));
            return None;
        }
        self.value(found, id, given).map(|id| Who::Principal(found, id))
    }

    fn tested_permission(&mut self, ty: TypeId, permission: &Name) {
        match self.symbol(ty, &permission.value) {
            Some(Symbol::Permission(_)) => {}
            Some(Symbol::Relation(_)) => {
                let message = format!(
                    "\"{}\" is a relation of {}; a test asks for a permission",
                    permission.value,
                    self.type_name(ty)
                );
                self.error(203, permission.span, message);
            }
            None if self.broken.types.contains(&ty) => {}
            None => {
                let hint = self.suggest_member(ty, &permission.value);
                let message = format!("{} has no permission \"{}\"{hint}", self.type_name(ty), permission.value);
                self.error(203, permission.span, message);
            }
        }
    }

    fn value(&mut self, ty: TypeId, value: &ValueDecl, given: &Given<'_>) -> Option<Value> {
        if value.given {
            self.known(&value.text, value.span, given);
            return Some(Value::Given(value.text.clone()));
        }
        if let [key] = self.types.get(ty.0)?.key.as_slice()
            && !fits(key.ty, &value.text)
        {
            let message = format!("\"{}\" is no id of {}: its key is {}", value.text, self.type_name(ty), key.ty.sql());
            self.error(106, value.span, message);
            return None;
        }
        Some(Value::Literal(value.text.clone()))
    }

    fn statement(&mut self, sql: &Sql, given: &Given<'_>) -> Condition {
        for piece in meaningful(&sql.text).filter(|p| p.kind == PieceKind::Variable) {
            let span = super::conditions::span_of(sql, &piece);
            self.known(piece.text.trim_start_matches('$'), span, given);
        }
        Condition { sql: sql.text.clone(), span: sql.span }
    }

    fn known(&mut self, name: &str, span: Span, given: &Given<'_>) {
        if given.contains(name) {
            return;
        }
        let mut all: Vec<&str> = if self.may_hint() { given.iter().copied().collect() } else { Vec::new() };
        all.sort_unstable();
        let near = suggest::nearest(name, all.iter().copied());
        let hint = match (near, all.is_empty()) {
            (None, true) => String::new(),
            (Some(near), _) => format!("; did you mean \"${near}\"?"),
            (None, false) => suggest::or_list(None, "given so far are", &all),
        };
        self.error(501, span, format!("${name} is not given before this line{hint}"));
    }
}

/// Whether text can be a key of this type.
fn fits(ty: KeyType, text: &str) -> bool {
    match ty {
        KeyType::Bigint => text.parse::<i64>().is_ok(),
        KeyType::Integer => text.parse::<i32>().is_ok(),
        KeyType::Smallint => text.parse::<i16>().is_ok(),
        KeyType::Text | KeyType::Varchar => true,
        KeyType::Uuid => {
            let digits = text.chars().filter(char::is_ascii_hexdigit).count();
            digits == 32 && text.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '-' | '{' | '}'))
        }
    }
}
