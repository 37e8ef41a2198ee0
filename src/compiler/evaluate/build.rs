//! From a model and facts to a world: objects that count, the subjects of every source, conditions that say the same to
//! every caller.

use std::collections::{BTreeMap, HashMap};

use super::facts::{Datum, Facts, Holder, Key, RoleHeld, Share, Table};
use super::sql::{self, Asked, Scope, Sql};
use super::{CannotEvaluate, Definition, Edge, Evaluated, Guard, Objects, Term, To, Var, Varying, World, order};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{
    Condition, Expr, KeyColumn, Model, Permission, Place, RelId, Relation, Source, Subject, Target, TypeDef, TypeId,
};
use crate::compiler::span::Span;

/// A world being put together.
struct Builder<'a> {
    model: &'a Model,
    facts: &'a Facts,
    now: i64,
    objects: Vec<Objects>,
    first: Vec<usize>,
    edges: Vec<Vec<Vec<Edge>>>,
    /// Where the edges of a source are.
    sources: HashMap<(TypeId, RelId, usize), usize>,
    same: Vec<Vec<bool>>,
    varying: Vec<Varying>,
    /// Conditions seen before, so that one written in many places is worked out once.
    conditions: HashMap<(TypeId, String), Term>,
}

pub(super) fn world<'a>(model: &'a Model, facts: &'a Facts, now: i64) -> Evaluated<World<'a>> {
    let mut builder = Builder {
        model,
        facts,
        now,
        objects: Vec::new(),
        first: Vec::new(),
        edges: Vec::new(),
        sources: HashMap::new(),
        same: Vec::new(),
        varying: Vec::new(),
        conditions: HashMap::new(),
    };
    let mut count = 0;
    for def in &model.types {
        builder.first.push(count);
        count += def.relations.len() + def.permissions.len();
        let objects = builder.objects_of(def)?;
        builder.objects.push(objects);
    }
    builder.all_sources()?;
    let vars = builder.definitions()?;
    let rules = builder.rules()?;
    let invariants =
        model.invariants.iter().map(|never| builder.term(never.ty, &never.expr)).collect::<Evaluated<_>>()?;
    let strata = order::strata(&vars, &builder.edges)?;
    let Builder { objects, first, edges, same, varying, .. } = builder;
    Ok(World { model, facts, now, objects, vars, first, edges, same, varying, strata, rules, invariants })
}

/// A condition's expression.
pub(super) fn parsed(condition: &Condition) -> Evaluated<Sql> {
    sql::parse(&condition.sql).map_err(|what| CannotEvaluate::new(condition.span, format!("\"{what}\" in a condition")))
}

impl<'a> Builder<'a> {
    fn ty(&self, id: TypeId) -> Evaluated<&'a TypeDef> {
        self.model.ty(id).ok_or_else(|| CannotEvaluate::new(Span::default(), "a type that is not there"))
    }

    fn table(&self, name: &QualName, span: Span) -> Evaluated<&'a Table> {
        let missing = || CannotEvaluate::new(span, format!("without the rows of {}", name.plain()));
        self.facts.tables.get(name).ok_or_else(missing)
    }

    /// Whether a condition that says the same to everyone holds on a row.
    fn holds(&self, sql: &Sql, span: Span, table: &Table, row: &[Datum]) -> Evaluated<bool> {
        let empty = BTreeMap::new();
        let asked = Asked { facts: self.facts, uid: &Datum::Null, context: &empty, arguments: &empty, now: self.now };
        let scope = Scope { alias: None, table, row, outer: None };
        let value = sql::eval(sql, Some(&scope), &asked).map_err(|what| CannotEvaluate::new(span, what))?;
        Ok(sql::truth(value).map_err(|what| CannotEvaluate::new(span, what))? == Some(true))
    }

    fn objects_of(&self, def: &TypeDef) -> Evaluated<Objects> {
        let table = self.table(&def.table, def.span)?;
        let key: Vec<&Ident> = def.key.iter().map(|k| &k.column).collect();
        let at = columns(table, &key, &def.table, def.span)?;
        let condition = def.condition.as_ref().map(|c| Ok((parsed(c)?, c.span))).transpose()?;
        if let Some((sql, span)) = &condition
            && sql.depends_on_asker()
        {
            return Err(CannotEvaluate::new(*span, "rows that count for some callers only"));
        }
        let mut objects = Objects::default();
        for (number, row) in table.rows.iter().enumerate() {
            let counts = match &condition {
                Some((sql, span)) => self.holds(sql, *span, table, row)?,
                None => true,
            };
            if counts && let Some(key) = key_of(row, &at, &def.key) {
                objects.index.insert(key.clone(), objects.keys.len());
                objects.keys.push(key);
                objects.rows.push(number);
            }
        }
        Ok(objects)
    }

    fn index(&self, ty: TypeId, key: &[Datum]) -> Option<usize> {
        self.objects.get(ty.0)?.index.get(key).copied()
    }

    fn relation_var(&self, ty: TypeId, relation: RelId) -> Var {
        Var(self.first.get(ty.0).copied().unwrap_or_default() + relation.0)
    }

    fn target_var(&self, ty: TypeId, target: Target) -> Evaluated<Var> {
        Ok(match target {
            Target::Relation(relation) => self.relation_var(ty, relation),
            Target::Permission(permission) => {
                let def = self.ty(ty)?;
                Var(self.first.get(ty.0).copied().unwrap_or_default() + def.relations.len() + permission.0)
            }
        })
    }

    fn all_sources(&mut self) -> Evaluated<()> {
        for (at, def) in self.model.types.iter().enumerate() {
            for (rel, relation) in def.relations.iter().enumerate() {
                for (number, source) in relation.sources.iter().enumerate() {
                    let edges = self.source(TypeId(at), RelId(rel), source)?;
                    self.sources.insert((TypeId(at), RelId(rel), number), self.edges.len());
                    self.edges.push(edges);
                }
            }
        }
        Ok(())
    }

    /// The subjects of each object.
    fn source(&self, ty: TypeId, relation: RelId, source: &Source) -> Evaluated<Vec<Vec<Edge>>> {
        let count = self.objects.get(ty.0).map(|objects| objects.keys.len()).unwrap_or_default();
        let mut edges = vec![Vec::new(); count];
        match &source.place {
            Place::Column { columns } => self.columns_source(ty, source, columns, &mut edges)?,
            Place::Polymorphic { type_column, id_column } => {
                self.polymorphic_source(ty, source, type_column, id_column, &mut edges)?;
            }
            Place::Table { table, object, subject, condition } => {
                let (object, subject) = (object.iter().collect(), subject.iter().collect());
                self.table_source(ty, source, (table, object, subject), condition.as_ref(), &mut edges)?;
            }
            Place::Shared { condition, .. } => {
                let shares = self.facts.shares.iter().filter(|share| share.ty == ty && share.relation == relation);
                for share in shares.filter(|share| names(source.subject, &share.with)) {
                    self.share(share, condition.as_ref(), &mut edges)?;
                }
            }
            Place::Role { permission } => {
                for held in self.facts.roles.iter().filter(|held| held.share.ty == ty) {
                    let gives =
                        held.permissions.contains(&(ty, *permission)) && names(source.subject, &held.share.with);
                    if gives && self.owns_roles(ty, held)? {
                        self.share(&held.share, None, &mut edges)?;
                    }
                }
            }
        }
        Ok(edges)
    }

    fn columns_source(&self, ty: TypeId, source: &Source, names: &[Ident], edges: &mut [Vec<Edge>]) -> Evaluated<()> {
        let def = self.ty(ty)?;
        let table = self.table(&def.table, source.span)?;
        let at = columns(table, &names.iter().collect::<Vec<_>>(), &def.table, source.span)?;
        for (number, row) in self.rows_of(ty, table) {
            if let (Some(to), Some(list)) = (self.subject(source, row, &at)?, edges.get_mut(number)) {
                list.push(Edge { to, guards: Vec::new() });
            }
        }
        Ok(())
    }

    fn polymorphic_source(
        &self,
        ty: TypeId,
        source: &Source,
        type_column: &Ident,
        id_column: &Ident,
        edges: &mut [Vec<Edge>],
    ) -> Evaluated<()> {
        let def = self.ty(ty)?;
        let table = self.table(&def.table, source.span)?;
        let at = columns(table, &[type_column, id_column], &def.table, source.span)?;
        let (Subject::Type(named) | Subject::Group(named, _)) = source.subject else {
            return Err(CannotEvaluate::new(source.span, "a pair of columns that names everyone"));
        };
        let name = Datum::Text(self.ty(named)?.name.clone());
        let (type_at, id_at) = (at.first().copied().unwrap_or_default(), at.get(1).copied().unwrap_or_default());
        for (number, row) in self.rows_of(ty, table) {
            if row.get(type_at) == Some(&name)
                && let Some(to) = self.subject(source, row, &[id_at])?
                && let Some(list) = edges.get_mut(number)
            {
                list.push(Edge { to, guards: Vec::new() });
            }
        }
        Ok(())
    }

    fn table_source(
        &self,
        ty: TypeId,
        source: &Source,
        (name, object, subject): (&QualName, Vec<&Ident>, Vec<&Ident>),
        condition: Option<&Condition>,
        edges: &mut [Vec<Edge>],
    ) -> Evaluated<()> {
        let table = self.table(name, source.span)?;
        let object = columns(table, &object, name, source.span)?;
        let subject = columns(table, &subject, name, source.span)?;
        let condition = condition.map(|c| Ok((parsed(c)?, c.span))).transpose()?;
        for (number, row) in table.rows.iter().enumerate() {
            let key = key_of(row, &object, &self.ty(ty)?.key);
            let Some(found) = key.and_then(|key| self.index(ty, &key)) else { continue };
            let Some(to) = self.subject(source, row, &subject)? else { continue };
            let guards = match &condition {
                Some((sql, span)) if sql.depends_on_asker() => {
                    let (row, arguments) = (Some((name.clone(), number)), BTreeMap::new());
                    vec![Guard { row, arguments, sql: sql.clone(), span: *span }]
                }
                Some((sql, span)) if !self.holds(sql, *span, table, row)? => continue,
                _ => Vec::new(),
            };
            if let Some(list) = edges.get_mut(found) {
                list.push(Edge { to, guards });
            }
        }
        Ok(())
    }

    /// The rows of a type's objects.
    fn rows_of(&self, ty: TypeId, table: &'a Table) -> impl Iterator<Item = (usize, &'a Vec<Datum>)> {
        let rows = self.objects.get(ty.0).map(|objects| objects.rows.as_slice()).unwrap_or_default();
        rows.iter().enumerate().filter_map(|(number, row)| Some((number, table.rows.get(*row)?)))
    }

    /// Whom a row names; `None` when there is no such object or it does not count.
    fn subject(&self, source: &Source, row: &[Datum], at: &[usize]) -> Evaluated<Option<To>> {
        let (Subject::Type(ty) | Subject::Group(ty, _)) = source.subject else {
            return Err(CannotEvaluate::new(source.span, "a row that names everyone"));
        };
        let key = key_of(row, at, &self.ty(ty)?.key);
        Ok(key.and_then(|key| self.index(ty, &key)).map(|found| match source.subject {
            Subject::Group(_, relation) => To::Group(ty, self.relation_var(ty, relation), found),
            _ => To::Object(ty, found),
        }))
    }

    /// Adds a share that counts now: one whose times, caveat and condition let it.
    fn share(&self, share: &Share, condition: Option<&Condition>, edges: &mut [Vec<Edge>]) -> Evaluated<()> {
        let live = share.starts.is_none_or(|from| from <= self.now) && share.expires.is_none_or(|to| to > self.now);
        let to = match &share.with {
            Holder::One(ty, key) => self.index(*ty, key).map(|found| To::Object(*ty, found)),
            Holder::Group(ty, relation, key) => {
                self.index(*ty, key).map(|found| To::Group(*ty, self.relation_var(*ty, *relation), found))
            }
            Holder::Everyone(ty) => Some(To::Everyone(*ty)),
            Holder::Anyone => Some(To::Anyone),
            Holder::Link(link) => Some(To::Link(link.clone())),
        };
        let object = self.index(share.ty, &share.object);
        let (true, Some(to), Some(object)) = (live, to, object) else { return Ok(()) };
        let mut guards = Vec::new();
        if let Some((name, arguments)) = &share.caveat {
            // A caveat that the policy has no more is one that nobody can check.
            let Some(caveat) = self.model.caveats.iter().find(|caveat| caveat.name == *name) else { return Ok(()) };
            let (sql, span) = (parsed(&caveat.condition)?, caveat.condition.span);
            guards.push(Guard { row: None, arguments: arguments.clone(), sql, span });
        }
        if let Some(condition) = condition {
            let table = &self.ty(share.ty)?.table;
            let row = self.objects.get(share.ty.0).and_then(|objects| objects.rows.get(object)).copied();
            let row = row.map(|row| (table.clone(), row));
            guards.push(Guard { row, arguments: BTreeMap::new(), sql: parsed(condition)?, span: condition.span });
        }
        if let Some(list) = edges.get_mut(object) {
            list.push(Edge { to, guards });
        }
        Ok(())
    }

    /// Whether a role is one of the object's that it is held on: its own, or of the object it is related to.
    fn owns_roles(&self, ty: TypeId, held: &RoleHeld) -> Evaluated<bool> {
        let def = self.ty(ty)?;
        let Some(roles) = &def.roles else { return Ok(false) };
        let (owner, key) = &held.owner;
        let Some(from) = roles.from else { return Ok(*owner == ty && *key == held.share.object) };
        let (Some(object), Some(owned)) = (self.index(ty, &held.share.object), self.index(*owner, key)) else {
            return Ok(false);
        };
        for source in def.relation(from).map(|r| r.sources.as_slice()).unwrap_or_default() {
            let edges = self.source(ty, from, source)?;
            if edges.get(object).into_iter().flatten().any(|edge| edge.to == To::Object(*owner, owned)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn definitions(&mut self) -> Evaluated<Vec<Definition>> {
        let mut vars = Vec::new();
        for (at, def) in self.model.types.iter().enumerate() {
            let ty = TypeId(at);
            for (rel, relation) in def.relations.iter().enumerate() {
                let term = self.relation_term(ty, RelId(rel), relation)?;
                vars.push(Definition { ty, term });
            }
            for Permission { expr, .. } in &def.permissions {
                let term = self.term(ty, expr)?;
                vars.push(Definition { ty, term });
            }
        }
        Ok(vars)
    }

    fn relation_term(&self, ty: TypeId, id: RelId, relation: &Relation) -> Evaluated<Term> {
        if relation.to_objects {
            return Ok(Term::Never);
        }
        let sources = (0..relation.sources.len()).map(|number| self.edges_of(ty, id, number).map(Term::Among));
        Ok(Term::Any(sources.collect::<Evaluated<_>>()?))
    }

    fn edges_of(&self, ty: TypeId, relation: RelId, source: usize) -> Evaluated<usize> {
        let missing = || CannotEvaluate::new(Span::default(), "a source that is not there");
        self.sources.get(&(ty, relation, source)).copied().ok_or_else(missing)
    }

    fn rules(&mut self) -> Evaluated<Vec<Vec<Term>>> {
        let model = self.model;
        let mut all = Vec::new();
        for table in &model.rules {
            all.push(table.rules.iter().map(|rule| self.term(table.ty, &rule.expr)).collect::<Evaluated<_>>()?);
        }
        Ok(all)
    }

    fn term(&mut self, ty: TypeId, expr: &Expr) -> Evaluated<Term> {
        Ok(match expr {
            Expr::Or(parts) => Term::Any(parts.iter().map(|p| self.term(ty, p)).collect::<Evaluated<_>>()?),
            Expr::And(parts) => Term::All(parts.iter().map(|p| self.term(ty, p)).collect::<Evaluated<_>>()?),
            Expr::Not(inner) => Term::Not(Box::new(self.term(ty, inner)?)),
            Expr::Relation(relation, _) => Term::Var(self.relation_var(ty, *relation)),
            Expr::Permission(permission, _) => Term::Var(self.target_var(ty, Target::Permission(*permission))?),
            Expr::Follow { relation, targets, span } => self.follow(ty, *relation, targets, *span)?,
            Expr::SignedIn(_) => Term::SignedIn,
            Expr::Anyone(_) => Term::Always,
            Expr::Nobody(_) => Term::Never,
            Expr::Sql(condition) => self.condition(ty, condition)?,
        })
    }

    fn follow(&mut self, ty: TypeId, id: RelId, targets: &[(TypeId, Target)], span: Span) -> Evaluated<Term> {
        let relation = self.ty(ty)?.relation(id);
        let sources = relation.map(|r| r.sources.as_slice()).unwrap_or_default();
        let mut ways = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let edges = self.edges_of(ty, id, number)?;
            let Subject::Type(reached) = source.subject else {
                return Err(CannotEvaluate::new(span, "following a relation to groups"));
            };
            for (_, target) in targets.iter().filter(|(ty, _)| *ty == reached) {
                ways.push(Term::Via(edges, reached, self.target_var(reached, *target)?));
            }
        }
        Ok(Term::Any(ways))
    }

    /// A condition on a row: worked out for all objects now if it says the same to everyone.
    fn condition(&mut self, ty: TypeId, condition: &Condition) -> Evaluated<Term> {
        let name = (ty, condition.sql.clone());
        if let Some(term) = self.conditions.get(&name) {
            return Ok(term.clone());
        }
        let sql = parsed(condition)?;
        let term = if sql.depends_on_asker() {
            self.varying.push(Varying { ty, sql, span: condition.span });
            Term::Varies(self.varying.len() - 1)
        } else {
            let table = self.table(&self.ty(ty)?.table, condition.span)?;
            let holds: Vec<bool> = self
                .rows_of(ty, table)
                .map(|(_, row)| self.holds(&sql, condition.span, table, row))
                .collect::<Evaluated<_>>()?;
            self.same.push(holds);
            Term::Same(self.same.len() - 1)
        };
        self.conditions.insert(name, term.clone());
        Ok(term)
    }
}

/// Whether a share is one of those a source speaks of.
fn names(subject: Subject, with: &Holder) -> bool {
    match (subject, with) {
        (Subject::Type(ty), Holder::One(other, _)) | (Subject::Everyone(ty), Holder::Everyone(other)) => ty == *other,
        (Subject::Group(ty, relation), Holder::Group(other, named, _)) => ty == *other && relation == *named,
        (Subject::Anyone, Holder::Anyone) | (Subject::Link, Holder::Link(_)) => true,
        _ => false,
    }
}

/// Where columns are.
fn columns(table: &Table, names: &[&Ident], of: &QualName, span: Span) -> Evaluated<Vec<usize>> {
    let find = |name: &&Ident| {
        let missing = || CannotEvaluate::new(span, format!("without the column {} of {}", name.plain(), of.plain()));
        table.column(name).ok_or_else(missing)
    };
    names.iter().map(find).collect()
}

/// The key in these columns of a row; `None` when a part of it is NULL, which names nothing.
fn key_of(row: &[Datum], at: &[usize], key: &[KeyColumn]) -> Option<Key> {
    let parts: Key = (at.iter().zip(key)).map(|(at, k)| Some(row.get(*at)?.as_key(k.ty))).collect::<Option<_>>()?;
    (!parts.contains(&Datum::Null) && parts.len() == key.len()).then_some(parts)
}
