//! Which branches of permissions and rules the passing checks of a policy's tests made true.
//!
//! Each branch (what stands between the `or`s) is given to the evaluator as a permission of its own, in a copy of the
//! policy; so what a branch means is worked out apart from the SQL that is being tested. A check of a permission counts for
//! its branches on that object, and for those of the object's permissions that it names. An allowed write counts for the
//! rules on the rows it changed; where no column changed that the policy looks at, and for rows seen, on the rows of the
//! tables named that the rule lets the caller at.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::error::DbError;
use super::facts::{Snapshot, unknown};
use crate::compiler::Compiled;
use crate::compiler::ast::{Block, CommandDecl, Expr, Member, PermissionDecl, Policy};
use crate::compiler::evaluate::World;
use crate::compiler::evaluate::facts::{Caller, Facts, Key};
use crate::compiler::ident::QualName;
use crate::compiler::model::{Model, PermId, TypeId};
use crate::compiler::resolve::resolve;
use crate::compiler::span::{Span, Spanned};
use crate::compiler::sql::{PieceKind, meaningful};
use crate::compiler::symbols::members;

/// Rows that may be looked at again for every check.
const MOST_ROWS: usize = 20_000;

/// What was made true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// How many branches.
    pub reached: usize,
    /// All of them, in the order of the text.
    pub branches: Vec<Branch>,
}

/// A branch of a permission or a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// The file.
    pub file: String,
    /// Its line.
    pub line: usize,
    /// Whose branch: `file.view`, or `app.files insert`.
    pub of: String,
    /// As the policy says it.
    pub text: String,
    /// A passing check made it true.
    pub reached: bool,
}

/// The branches of one permission or rule.
struct Part {
    /// Their numbers.
    branches: Vec<usize>,
    /// The permissions of the same type that it names.
    names: Vec<String>,
}

/// Watches the tests of a policy.
pub(super) struct Watch {
    /// The policy, with each branch as a permission.
    model: Model,
    branches: Vec<Branch>,
    places: Vec<(TypeId, PermId)>,
    permissions: BTreeMap<(usize, String), Part>,
    rules: Vec<(QualName, TypeId, CommandDecl, Part)>,
}

/// The branches found so far, which are not placed yet.
struct Found {
    prefix: String,
    branches: Vec<Unplaced>,
}

/// A branch, its type, and the name of its permission.
struct Unplaced {
    branch: Branch,
    ty: String,
    name: String,
}

/// What the names of branches begin with, and no name of the policy does.
fn prefix(policy: &Policy) -> String {
    let mut prefix = "branch".to_owned();
    while policy.types().any(|ty| members(ty).any(|(name, _)| name.starts_with(&prefix))) {
        prefix.push('x');
    }
    prefix
}

impl Watch {
    /// Prepares it.
    pub(super) fn new(compiled: &Compiled) -> Result<Watch, DbError> {
        let mut whole = compiled.ast.clone();
        let mut found = Found { prefix: prefix(&whole), branches: Vec::new() };
        let mut permissions = Vec::new();
        let mut rules = Vec::new();
        let types: BTreeMap<QualName, String> = compiled
            .ast
            .types()
            .filter_map(|ty| Some((ty.header.as_ref()?.table.value.clone(), ty.name.value.clone())))
            .collect();
        for block in &compiled.ast.blocks {
            match block {
                Block::Type(ty) => {
                    for member in &ty.members {
                        let Member::Permission(decl) = member else { continue };
                        let of = format!("{}.{}", ty.name.value, decl.name.value);
                        let part = part(compiled, &ty.name.value, &of, decl.span, &decl.expr, &mut found, &mut whole);
                        permissions.push((ty.name.value.clone(), decl.name.value.clone(), part));
                    }
                }
                Block::Rules(block) => {
                    let Some(ty) = types.get(&block.table.value) else { continue };
                    for rule in block.rules.iter().filter(|rule| !matches!(rule.command, CommandDecl::Cascade(..))) {
                        let of = format!("{} {}", block.table.value.plain(), rule.command.title());
                        let part = part(compiled, ty, &of, rule.span, &rule.expr, &mut found, &mut whole);
                        rules.push((block.table.value.clone(), ty.clone(), rule.command.clone(), part));
                    }
                }
                _ => {}
            }
        }
        let (model, mistakes) = resolve(&whole, true);
        let Some(model) = model else {
            let words: Vec<String> = mistakes.into_iter().map(|m| m.message).collect();
            return Err(DbError::Unexpected(format!("the branches cannot be told apart: {}", words.join("; "))));
        };
        let type_id = |name: &str| model.types.iter().position(|ty| ty.name == name).map(TypeId);
        let mut places = Vec::with_capacity(found.branches.len());
        let mut branches = Vec::with_capacity(found.branches.len());
        for Unplaced { branch, ty, name } in found.branches {
            let place = type_id(&ty).and_then(|id| {
                let at = model.ty(id)?.permissions.iter().position(|p| p.name == name)?;
                Some((id, PermId(at)))
            });
            places.push(place.ok_or_else(|| DbError::Unexpected(format!("the branch {} is lost", branch.text)))?);
            branches.push(branch);
        }
        let permissions =
            permissions.into_iter().filter_map(|(ty, name, part)| Some(((type_id(&ty)?.0, name), part))).collect();
        let rules = rules
            .into_iter()
            .filter_map(|(table, ty, command, part)| Some((table, type_id(&ty)?, command, part)))
            .collect();
        Ok(Watch { model, branches, places, permissions, rules })
    }

    /// What was made true.
    pub(super) fn report(self) -> Coverage {
        Coverage { reached: self.branches.iter().filter(|branch| branch.reached).count(), branches: self.branches }
    }

    /// A check that passed with a yes.
    pub(super) fn check(
        &mut self,
        now: &Snapshot,
        caller: &Caller,
        ty: TypeId,
        permission: &str,
        key: &Key,
    ) -> Result<(), DbError> {
        let wanted = self.branches_of(ty, &[permission.to_owned()]);
        self.mark(now, caller, &wanted, std::slice::from_ref(key))
    }

    /// The branches of these permissions of a type, and of those they name.
    fn branches_of(&self, ty: TypeId, names: &[String]) -> Vec<usize> {
        let mut open = names.to_vec();
        let mut seen = BTreeSet::new();
        let mut wanted = Vec::new();
        while let Some(name) = open.pop() {
            let Some(part) = self.permissions.get(&(ty.0, name.clone())) else { continue };
            if seen.insert(name) {
                wanted.extend(&part.branches);
                open.extend(part.names.iter().cloned());
            }
        }
        wanted
    }

    /// A statement that passed, with what there was before and after it.
    pub(super) fn statement(
        &mut self,
        before: &Snapshot,
        after: &Snapshot,
        caller: &Caller,
        sql: &str,
    ) -> Result<(), DbError> {
        let words: Vec<String> = meaningful(sql)
            .filter(|piece| matches!(piece.kind, PieceKind::Word | PieceKind::Quoted))
            .map(|piece| piece.text.trim_matches('"').to_lowercase())
            .collect();
        let verbs = ["insert", "update", "delete"];
        let verb = verbs.into_iter().find(|verb| words.iter().any(|word| word == verb)).unwrap_or("select");
        let mut marks = Vec::new();
        for (table, ty, command, part) in &self.rules {
            if !words.contains(&table.name.as_str().to_lowercase()) {
                continue;
            }
            let (old, new) = (self.rows(*ty, &before.facts), self.rows(*ty, &after.facts));
            let differ = |key: &&Key| old.get(*key) != new.get(*key);
            let (then, keys): (&Snapshot, Vec<Key>) = match (command, verb) {
                (CommandDecl::Select, "select") => (after, new.keys().cloned().collect()),
                (CommandDecl::Select, "update" | "delete") => (before, old.keys().filter(differ).cloned().collect()),
                (CommandDecl::Insert, "insert") => {
                    (after, new.keys().filter(|key| !old.contains_key(*key)).cloned().collect())
                }
                (CommandDecl::Delete, "delete") => {
                    (before, old.keys().filter(|key| !new.contains_key(*key)).cloned().collect())
                }
                (CommandDecl::Update, "update") => {
                    let changed: Vec<Key> = old.keys().filter(differ).cloned().collect();
                    (before, if changed.is_empty() { old.keys().cloned().collect() } else { changed })
                }
                (CommandDecl::UpdateBefore(_), "update") => (before, old.keys().filter(differ).cloned().collect()),
                (CommandDecl::UpdateAfter(_), "update") => (after, new.keys().filter(differ).cloned().collect()),
                _ => continue,
            };
            let mut wanted = part.branches.clone();
            wanted.extend(self.branches_of(*ty, &part.names));
            marks.push((then, wanted, keys));
        }
        marks.into_iter().try_for_each(|(then, wanted, keys)| self.mark(then, caller, &wanted, &keys))
    }

    /// The rows of a type's table by their keys, as far as the policy looks at them.
    fn rows<'f>(&self, ty: TypeId, facts: &'f Facts) -> BTreeMap<Key, &'f [crate::compiler::evaluate::facts::Datum]> {
        let mut rows = BTreeMap::new();
        let Some(def) = self.model.ty(ty) else { return rows };
        let Some(table) = facts.tables.get(&def.table) else { return rows };
        let places: Option<Vec<usize>> = def.key.iter().map(|key| table.column(&key.column)).collect();
        for row in &table.rows {
            let key: Option<Key> =
                places.as_ref().and_then(|places| places.iter().map(|at| row.get(*at).cloned()).collect());
            rows.extend(key.map(|key| (key, row.as_slice())));
        }
        rows
    }

    /// Marks those of the branches that hold for the caller on one of these objects.
    fn mark(&mut self, then: &Snapshot, caller: &Caller, wanted: &[usize], keys: &[Key]) -> Result<(), DbError> {
        let rows: usize = then.facts.tables.values().map(|table| table.rows.len()).sum();
        if rows > MOST_ROWS {
            let shown = crate::text::count(u64::try_from(rows).unwrap_or(u64::MAX));
            return Err(DbError::Usage(format!(
                "coverage looks at all rows for every check, and the policy decides from {shown} here; run it on a small database"
            )));
        }
        let open: Vec<usize> =
            wanted.iter().copied().filter(|at| self.branches.get(*at).is_some_and(|b| !b.reached)).collect();
        if open.is_empty() || keys.is_empty() {
            return Ok(());
        }
        let world = World::new(&self.model, &then.facts, then.now).map_err(unknown)?;
        let held = world.ask(caller).map_err(unknown)?;
        let mut reached = Vec::new();
        for at in open {
            let Some((ty, permission)) = self.places.get(at) else { continue };
            if keys.iter().any(|key| held.can(*ty, *permission, key)) {
                reached.push(at);
            }
        }
        for at in reached {
            if let Some(branch) = self.branches.get_mut(at) {
                branch.reached = true;
            }
        }
        Ok(())
    }
}

/// Takes an expression apart, and adds its branches to their type as permissions.
fn part(
    compiled: &Compiled,
    ty: &str,
    of: &str,
    line: Span,
    expr: &Expr,
    found: &mut Found,
    whole: &mut Policy,
) -> Part {
    let mut terms = Vec::new();
    alternatives(expr, &mut terms);
    let mut part = Part { branches: Vec::new(), names: Vec::new() };
    for term in terms {
        let span = first_span(term).unwrap_or(line);
        let name = format!("{}{}", found.prefix, found.branches.len());
        if let Expr::Name(named) = term {
            part.names.push(named.value.clone());
        }
        let file = compiled.sources.file(span.file).map_or_else(String::new, |file| file.name.clone());
        let branch = Branch {
            file,
            line: compiled.sources.places(span).0.line,
            of: of.to_owned(),
            text: words(term),
            reached: false,
        };
        part.branches.push(found.branches.len());
        found.branches.push(Unplaced { branch, ty: ty.to_owned(), name: name.clone() });
        let decl = PermissionDecl { name: Spanned::new(name, span), expr: term.clone(), span };
        let types = whole.blocks.iter_mut().filter_map(|block| match block {
            Block::Type(decl) if decl.name.value == ty => Some(decl),
            _ => None,
        });
        types.take(1).for_each(|owner| owner.members.push(Member::Permission(decl.clone())));
    }
    part
}

fn alternatives<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Or(all) => all.iter().for_each(|part| alternatives(part, out)),
        other => out.push(other),
    }
}

fn first_span(expr: &Expr) -> Option<Span> {
    match expr {
        Expr::Or(all) | Expr::And(all) => all.first().and_then(first_span),
        Expr::Not(inner) => first_span(inner),
        Expr::Name(name) | Expr::Follow(name, _) => Some(name.span),
        Expr::SignedIn(span) | Expr::Anyone(span) | Expr::Nobody(span) | Expr::Roles(span) => Some(*span),
        Expr::Sql(sql) => Some(sql.span),
        Expr::Broken => None,
    }
}

/// An expression as the policy says it.
fn words(expr: &Expr) -> String {
    let inner = |part: &Expr| match part {
        Expr::Or(_) | Expr::And(_) => format!("({})", words(part)),
        other => words(other),
    };
    match expr {
        Expr::Or(all) => all.iter().map(inner).collect::<Vec<_>>().join(" or "),
        Expr::And(all) => all.iter().map(inner).collect::<Vec<_>>().join(" and "),
        Expr::Not(part) => format!("not {}", inner(part)),
        Expr::Name(name) => name.value.clone(),
        Expr::Follow(relation, target) => format!("{}.{}", relation.value, target.value),
        Expr::SignedIn(_) => "signed_in".to_owned(),
        Expr::Anyone(_) => "anyone".to_owned(),
        Expr::Nobody(_) => "nobody".to_owned(),
        Expr::Roles(_) => "roles".to_owned(),
        Expr::Sql(sql) => format!("{{{}}}", sql.text),
        Expr::Broken => String::new(),
    }
}
