//! What a relation becomes: a view of the ids on which the caller is in it, a function with the same ids, and for
//! memberships and groups a function that gives them as an array.

use crate::compiler::model::{Place, RelId, Source, Subject, Target, TypeId};

use super::check::{on_row, one};
use super::context::{Asker, Emit, Form, Policy, Scope, not_built, owner_function};
use super::names::{self, ShareSubject};
use super::views::Made;

/// A share that counts now: started and not expired, as the clock stands at the statement's start.
pub fn live(share: &str) -> String {
    format!(
        "({share}.starts IS NULL OR {share}.starts <= statement_timestamp()) \
         AND ({share}.expires IS NULL OR {share}.expires > statement_timestamp())"
    )
}

/// A source as rows: a FROM item and the columns with the object's and the subject's key in it.
pub struct Rows {
    /// `schema.table alias`.
    pub from: String,
    /// The object's key, SQL text.
    pub object: String,
    /// The subject's key, SQL text; `None` where there is none (everyone).
    pub subject: Option<String>,
    /// Which rows count, SQL text without AND; `None` when all.
    pub condition: Option<String>,
}

impl Policy<'_> {
    /// The rows of a source of `relation`.
    pub fn rows(&self, ty: TypeId, relation: RelId, source: &Source) -> Emit<Rows> {
        let def = self.ty(ty)?;
        match &source.place {
            Place::Column { columns } => Ok(Rows {
                from: format!("{} AS this", def.table),
                object: format!("this.{}", self.key(ty)?.0),
                subject: Some(format!("this.{}", one(columns, source)?)),
                condition: match &def.condition {
                    Some(condition) => Some(on_row(condition, "this")?),
                    None => None,
                },
            }),
            Place::Table { table, object, subject, condition } => {
                let object = format!("l.{}", one(object, source)?);
                let mut conditions = Vec::new();
                if let Some(condition) = condition {
                    conditions.push(on_row(condition, "l")?);
                }
                conditions.extend(self.counted(ty, &object)?);
                Ok(Rows {
                    from: format!("{table} AS l"),
                    object,
                    subject: Some(format!("l.{}", one(subject, source)?)),
                    condition: joined(conditions),
                })
            }
            Place::Shared { condition: None, .. } => {
                let name = &self.relation(ty, relation)?.name;
                let kind = ShareSubject::of(self.model, source.subject)
                    .ok_or_else(|| not_built(source.span, "share links"))?;
                let named = matches!(source.subject, Subject::Type(_) | Subject::Group(..));
                let mut conditions = vec![live("l")];
                conditions.extend(self.counted(ty, "l.object")?);
                Ok(Rows {
                    from: format!("{} AS l", names::shares(def, name, &kind)),
                    object: "l.object".to_owned(),
                    subject: named.then(|| "l.subject".to_owned()),
                    condition: joined(conditions),
                })
            }
            Place::Shared { .. } => Err(not_built(source.span, "`shared if`")),
            Place::Role { .. } => Err(not_built(source.span, "roles made at run time")),
            Place::Polymorphic { .. } => Err(not_built(source.span, "polymorphic relations")),
        }
    }

    /// The condition that the object of type `ty` called `key` counts; `None` when every row of the type does.
    fn counted(&self, ty: TypeId, key: &str) -> Emit<Option<String>> {
        let def = self.ty(ty)?;
        let Some(condition) = &def.condition else { return Ok(None) };
        let condition = on_row(condition, "this")?;
        let column = self.key(ty)?.0;
        Ok(Some(format!(
            "(SELECT true FROM {} AS this WHERE this.{column} = {key} AND {condition} LIMIT 1)",
            def.table
        )))
    }

    /// `SELECT id` of the objects on which the caller is in the relation, from the sources that `keep` takes.
    pub fn held_rows(
        &self,
        scope: &mut Scope,
        ty: TypeId,
        relation: RelId,
        keep: impl Fn(&Source) -> bool,
    ) -> Emit<Vec<String>> {
        let found = self.relation(ty, relation)?;
        found
            .sources
            .iter()
            .filter(|source| keep(source))
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let holder = self.is_caller(scope, source.subject, rows.subject.as_deref().unwrap_or("NULL"))?;
                let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
                Ok(format!("SELECT {} AS id FROM {} WHERE {holder}{condition}", rows.object, rows.from))
            })
            .collect()
    }

    /// The views and functions of every relation to people of one type.
    pub fn relation_objects(&self, ty: TypeId, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        for (at, found) in def.relations.iter().enumerate().filter(|(_, r)| !r.to_objects) {
            let relation = RelId(at);
            let is_listed = |s: &Source| !matches!(s.place, Place::Column { .. });
            self.relation_pair(ty, relation, &found.name, |_| true, made)?;
            let listed = self.listed_part(ty, relation)?;
            if listed != found.name && found.sources.iter().any(is_listed) {
                self.relation_pair(ty, relation, &listed, is_listed, made)?;
            }
            self.mine_function(ty, relation, made)?;
        }
        Ok(())
    }

    /// The view and the set, called `part`, of the sources of a relation that `keep` takes.
    fn relation_pair(
        &self,
        ty: TypeId,
        relation: RelId,
        part: &str,
        keep: impl Fn(&Source) -> bool,
        made: &mut Made,
    ) -> Emit<()> {
        let def = self.ty(ty)?;
        let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Probe);
        let rows = self.held_rows(&mut scope, ty, relation, &keep)?;
        // Such a row names no view, so its parts have nothing of the scope to divide.
        made.union_view(&names::view(def, part), rows.into_iter().map(|row| (row, scope.clone())).collect());
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let rows = self.held_rows(&mut scope, ty, relation, &keep)?;
        self.set_function(ty, part, &scope, &rows.join("\nUNION ALL\n"), made)
    }

    /// The function `set__TYPE__PART` that returns what `query` selects.
    pub fn set_function(&self, ty: TypeId, part: &str, scope: &Scope, query: &str, made: &mut Made) -> Emit<()> {
        let name = names::function("set", self.ty(ty)?, part);
        let body = format!("  RETURN QUERY\n{};", indented(query));
        let returns = format!("SETOF {}", self.key(ty)?.1);
        made.function(&name, owner_function(self, &name, "", &returns, &scope.mine, &body)?, true);
        Ok(())
    }

    /// The ids of the objects in whose relation the caller is, through groups in groups, as an array.
    fn mine_function(&self, ty: TypeId, relation: RelId, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.relation(ty, relation)?;
        let own_group = |s: &Source| s.subject == Subject::Group(ty, relation);
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let start = self.held_rows(&mut scope, ty, relation, |s| !own_group(s))?;
        let steps: Vec<String> = found
            .sources
            .iter()
            .filter(|s| own_group(s))
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let condition = rows.condition.map(|c| format!(" WHERE {c}")).unwrap_or_default();
                let subject = rows.subject.unwrap_or_default();
                Ok(format!("SELECT {} AS member, {} AS id FROM {}{condition}", subject, rows.object, rows.from))
            })
            .collect::<Emit<_>>()?;
        if start.is_empty() {
            return Err(not_built(found.span, format!("\"{}\", a group made only of itself", found.name)));
        }
        let start = start.join("\nUNION ALL\n");
        let query = if steps.is_empty() {
            start
        } else {
            // A step is an id and the ids it is a member of; UNION ends loops of groups.
            let step = steps.join("\nUNION ALL\n");
            format!(
                "WITH RECURSIVE mine(id) AS (\n  (\n{}\n  )\n  UNION\n  SELECT s.id FROM mine m JOIN (\n{}\n  ) s ON s.member = m.id\n)\n\
                 SELECT m.id FROM mine m",
                indented(&start),
                indented(&step)
            )
        };
        let name = names::function("mine", def, &found.name);
        let body = format!("  RETURN ARRAY(\n{}\n  );", indented(&query));
        let returns = format!("{}[]", self.key(ty)?.1);
        made.function(&name, owner_function(self, &name, "", &returns, &scope.mine, &body)?, true);
        Ok(())
    }

    /// The view and the set from which a relation to objects that is kept in a link table, followed, finds `target`.
    pub fn followed_objects(
        &self,
        ty: TypeId,
        relation: RelId,
        targets: &[(TypeId, Target)],
        made: &mut Made,
    ) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.relation(ty, relation)?;
        let mut name = None;
        let mut view = Vec::new();
        let mut set = Vec::new();
        let mut setting = Scope::new(ty, "this", Asker::Variables, Form::Set);
        for source in found.sources.iter().filter(|s| matches!(s.place, Place::Table { .. })) {
            let Subject::Type(reached) = source.subject else { continue };
            let Some((_, target)) = targets.iter().find(|(ty, _)| *ty == reached) else { continue };
            let rows = self.rows(ty, relation, source)?;
            let value = rows.subject.unwrap_or_default();
            let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
            name = Some(self.target_name(reached, *target)?);
            let query =
                |reached: &str| format!("SELECT {} AS id FROM {} WHERE {reached}{condition}", rows.object, rows.from);
            let mut probing = Scope::new(ty, "this", Asker::Statement, Form::Probe);
            let probe = query(&self.reached(&mut probing, reached, *target, &value)?);
            view.push((probe, probing));
            set.push(query(&self.reached(&mut setting, reached, *target, &value)?));
        }
        let Some(target) = name else { return Ok(()) };
        let view_name = names::followed(def, &found.name, target);
        if made.has(&view_name) {
            return Ok(());
        }
        made.union_view(&view_name, view);
        self.set_function(ty, &format!("{}__{target}", found.name), &setting, &set.join("\nUNION ALL\n"), made)
    }

    /// A probe of the relation over a path: any object whose id is in the array `path` on which the caller is in it
    /// through a listed source.
    pub fn path_probes(&self, scope: &mut Scope, relation: RelId, path: &str) -> Emit<Vec<String>> {
        let ty = scope.ty;
        let found = self.relation(ty, relation)?;
        found
            .sources
            .iter()
            .filter(|s| !matches!(s.place, Place::Column { .. }))
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let holder = self.is_caller(scope, source.subject, rows.subject.as_deref().unwrap_or("NULL"))?;
                let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
                Ok(format!(
                    "(SELECT true FROM {} WHERE {} = ANY ({path}) AND {holder}{condition} LIMIT 1)",
                    rows.from, rows.object
                ))
            })
            .collect()
    }

    /// A look-up of a row of the type itself, for terms that need its columns: any object of the path on which one of
    /// `tests` (SQL text on `this`) holds.
    pub fn path_row_probe(&self, ty: TypeId, tests: &[String], path: &str) -> Emit<String> {
        let def = self.ty(ty)?;
        let key = self.key(ty)?.0;
        Ok(format!(
            "(SELECT true FROM {} AS this WHERE this.{key} = ANY ({path}) AND ({}){} LIMIT 1)",
            def.table,
            tests.join(" OR "),
            self.counts(ty, "this")?
        ))
    }
}

fn joined(conditions: Vec<String>) -> Option<String> {
    (!conditions.is_empty()).then(|| conditions.join(" AND "))
}

/// Text moved two columns to the right.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
