//! Relations: whom each source names and where its rows are.

use std::collections::{HashMap, HashSet};

use super::{Resolver, Symbol};
use crate::compiler::ast::{Column, Member, Name, RelationBody, RelationDecl, SourceDecl, Sql, SubjectDecl};
use crate::compiler::ident::Ident;
use crate::compiler::model::{PermId, Place, RelId, Source, Subject, TypeId};
use crate::compiler::span::{Span, Spanned};

impl Resolver<'_> {
    pub(super) fn relations(&mut self) {
        for (at, decl) in self.decls.clone().into_iter().enumerate() {
            let ty = TypeId(at);
            for member in &decl.members {
                match member {
                    Member::Relation(relation) => self.relation(ty, relation),
                    Member::Roles(roles) => self.roles(ty, roles),
                    Member::Permission(_) => {}
                }
            }
        }
        self.people_or_objects();
        self.groups();
    }

    /// One line of a relation: adds its sources, or marks it broken.
    fn relation(&mut self, ty: TypeId, decl: &RelationDecl) {
        let Some(Symbol::Relation(id)) = self.symbol(ty, &decl.name.value) else { return };
        let Some(sources) = decl.body.as_ref().and_then(|body| self.sources(ty, body, decl.span)) else {
            self.broken.relations.insert((ty, id));
            return;
        };
        for source in sources {
            self.add_source(ty, id, source, &decl.name);
        }
    }

    fn add_source(&mut self, ty: TypeId, id: RelId, source: Source, name: &Name) {
        if !self.sources_seen.insert((ty, id, source.subject, place_key(&source.place))) {
            return self.error(109, name.span, format!("\"{}\" already comes from there", name.value));
        }
        if let Some(relation) = self.types.get_mut(ty.0).and_then(|t| t.relations.get_mut(id.0)) {
            relation.sources.push(source);
        }
    }

    fn sources(&mut self, ty: TypeId, body: &RelationBody, span: Span) -> Option<Vec<Source>> {
        let shared = matches!(body.source, SourceDecl::Shared { .. });
        // Every subject is looked at, also after one that is wrong.
        let subjects: Vec<Option<Subject>> = body.subjects.iter().map(|s| self.subject(s, shared)).collect();
        let place = self.place(ty, body, &subjects);
        let subjects: Vec<Subject> = subjects.into_iter().collect::<Option<_>>()?;
        let place = place?;
        Some(subjects.into_iter().map(|subject| Source { subject, place: place.clone(), span }).collect())
    }

    pub(super) fn subject(&mut self, decl: &SubjectDecl, shared: bool) -> Option<Subject> {
        if let (false, SubjectDecl::Everyone(_) | SubjectDecl::Anyone(_) | SubjectDecl::Link(_)) = (shared, decl) {
            let message = "only a shared relation can name anyone, link or everyone of a type";
            self.error(204, decl.span(), message);
            return None;
        }
        match decl {
            SubjectDecl::Type(name) => self.type_of(name).map(Subject::Type),
            SubjectDecl::Group(name, relation) => self.group(name, relation),
            SubjectDecl::Everyone(name) => {
                let ty = self.type_of(name)?;
                if !self.types.get(ty.0).is_some_and(|t| t.signs_in) {
                    self.error(204, name.span, format!("nobody signs in as a {}, so there is no {0}:*", name.value));
                    return None;
                }
                Some(Subject::Everyone(ty))
            }
            SubjectDecl::Anyone(_) => Some(Subject::Anyone),
            SubjectDecl::Link(_) => Some(Subject::Link),
        }
    }

    fn group(&mut self, name: &Name, relation: &Name) -> Option<Subject> {
        let ty = self.type_of(name)?;
        match self.symbol(ty, &relation.value) {
            Some(Symbol::Relation(id)) => {
                self.used.insert((ty, id));
                Some(Subject::Group(ty, id))
            }
            Some(Symbol::Permission(_)) => {
                let message =
                    format!("\"{}\" is a permission of {}; a group is named by a relation", relation.value, name.value);
                self.error(205, relation.span, message);
                None
            }
            None if self.broken.types.contains(&ty) => None,
            None => {
                let hint = self.suggest_member(ty, &relation.value);
                self.error(203, relation.span, format!("{} has no relation \"{}\"{hint}", name.value, relation.value));
                None
            }
        }
    }

    fn place(&mut self, ty: TypeId, body: &RelationBody, subjects: &[Option<Subject>]) -> Option<Place> {
        match &body.source {
            SourceDecl::Columns(columns) => {
                self.one_subject(body)?;
                self.fits_key(columns, subjects.first().copied().flatten())?;
                Some(Place::Column { columns: idents(columns) })
            }
            SourceDecl::Table { table, object, subject, condition } => {
                self.one_subject(body)?;
                let fits = self.fits_key(&subject.value, subjects.first().copied().flatten());
                self.fits_own_key(ty, object)?;
                fits?;
                let condition = condition.as_ref().map(|sql| self.row_condition(sql, 103));
                Some(Place::Table {
                    table: table.value.clone(),
                    object: idents(&object.value),
                    subject: idents(&subject.value),
                    condition: transpose(condition)?,
                })
            }
            SourceDecl::Polymorphic(type_column, id_column) => {
                self.one_of_each_type(body, subjects);
                Some(Place::Polymorphic { type_column: type_column.value.clone(), id_column: id_column.value.clone() })
            }
            SourceDecl::Shared { span, by, condition } => self.shared(ty, *span, by.as_ref(), condition.as_ref()),
        }
    }

    /// A column or a link table holds ids of one type, without their type's name.
    fn one_subject(&mut self, body: &RelationBody) -> Option<()> {
        let second = match body.subjects.get(1) {
            None => return Some(()),
            Some(second) => second.span(),
        };
        let message = "ids of several types cannot be told apart here; write a line for each type, or use a pair of columns (type, id)";
        self.error(205, second, message);
        None
    }

    fn one_of_each_type(&mut self, body: &RelationBody, subjects: &[Option<Subject>]) {
        let mut seen = HashSet::new();
        for (written, subject) in body.subjects.iter().zip(subjects) {
            let Some(Subject::Type(ty) | Subject::Group(ty, _)) = subject else { continue };
            if self.types.get(ty.0).is_some_and(|def| def.key.len() > 1) {
                let message = format!(
                    "a pair of columns has one column for an id, and the key of {} has several",
                    self.type_name(*ty)
                );
                self.error(205, written.span(), message);
            }
            if !seen.insert(*ty) {
                self.error(205, written.span(), "a pair of columns says which type, so each type can stand here once");
            }
        }
    }

    /// As many columns as the key of whom they name.
    fn fits_key(&mut self, columns: &[Column], subject: Option<Subject>) -> Option<()> {
        let Some(Subject::Type(ty) | Subject::Group(ty, _)) = subject else { return Some(()) };
        self.fits(columns, ty)
    }

    fn fits_own_key(&mut self, ty: TypeId, columns: &Spanned<Vec<Column>>) -> Option<()> {
        self.fits(&columns.value, ty)
    }

    fn fits(&mut self, columns: &[Column], ty: TypeId) -> Option<()> {
        let def = self.types.get(ty.0)?;
        let (first, last) = (columns.first()?, columns.last()?);
        if self.broken.types.contains(&ty) || columns.len() == def.key.len() {
            return Some(());
        }
        let key: Vec<String> = def.key.iter().map(|k| k.column.plain()).collect();
        let message = format!("the key of {} is ({}), and {} here", def.name, key.join(", "), count(columns.len()));
        self.error(206, first.span.to(last.span), message);
        None
    }

    fn shared(&mut self, ty: TypeId, span: Span, by: Option<&Name>, condition: Option<&Sql>) -> Option<Place> {
        let name = by.map_or("share", |name| name.value.as_str());
        let place = match self.symbol(ty, name) {
            Some(Symbol::Permission(by)) => Some(by),
            found => {
                let what = if found.is_some() { "a relation, not a permission" } else { "not there" };
                let message =
                    format!("a shared relation needs the permission that may share it, and \"{name}\" is {what}");
                self.error(207, by.map_or(span, |name| name.span), message);
                None
            }
        };
        let condition = transpose(condition.map(|sql| self.row_condition(sql, 103)))?;
        place.map(|by: PermId| Place::Shared { by, condition })
    }

    /// Decides for each relation whether it names people or objects to follow, which a relation cannot mix.
    fn people_or_objects(&mut self) {
        for at in 0..self.types.len() {
            let count = self.types.get(at).map_or(0, |t| t.relations.len());
            for id in (0..count).map(RelId) {
                self.kind_of(TypeId(at), id);
            }
        }
    }

    fn kind_of(&mut self, ty: TypeId, id: RelId) {
        let Some(relation) = self.types.get(ty.0).and_then(|t| t.relation(id)) else { return };
        let signs_in = |ty: &TypeId| self.types.get(ty.0).is_some_and(|t| t.signs_in);
        let object = |s: &Source| matches!(&s.subject, Subject::Type(ty) if !signs_in(ty));
        let to_objects = relation.sources.iter().any(object);
        let odd = relation.sources.iter().find(|s| object(s) != to_objects);
        let message = odd.map(|s| (s.span, format!("\"{}\" names people and objects at once", relation.name)));
        if let Some(relation) = self.types.get_mut(ty.0).and_then(|t| t.relations.get_mut(id.0)) {
            relation.to_objects = to_objects;
        }
        if let Some((span, message)) = message {
            self.error(205, span, message);
            self.broken.relations.insert((ty, id));
        }
    }

    /// A group names people through other groups; somewhere a source must name somebody.
    fn groups(&mut self) {
        let mut grounded: HashSet<(TypeId, RelId)> = self.broken.relations.clone();
        let all: Vec<(TypeId, RelId)> = (self.types.iter().enumerate())
            .flat_map(|(at, ty)| (0..ty.relations.len()).map(move |id| (TypeId(at), RelId(id))))
            .collect();
        let mut waiting: HashMap<(TypeId, RelId), Vec<(TypeId, RelId)>> = HashMap::new();
        let mut ready: Vec<(TypeId, RelId)> = grounded.iter().copied().collect();
        for node in &all {
            for source in self.types.get(node.0.0).and_then(|t| t.relation(node.1)).iter().flat_map(|r| &r.sources) {
                match source.subject {
                    Subject::Group(ty, id) => waiting.entry((ty, id)).or_default().push(*node),
                    _ => ready.push(*node),
                }
            }
        }
        while let Some(node) = ready.pop() {
            grounded.insert(node);
            let next = waiting.remove(&node).unwrap_or_default();
            ready.extend(next.into_iter().filter(|n| !grounded.contains(n)));
        }
        for (ty, id) in all.into_iter().filter(|node| !grounded.contains(node)) {
            let Some(relation) = self.types.get(ty.0).and_then(|t| t.relation(id)) else { continue };
            let (span, message) =
                (relation.span, format!("\"{}\" is a group made only of groups; nobody is ever in it", relation.name));
            self.error(209, span, message);
        }
        self.group_subjects_are_people();
    }

    fn group_subjects_are_people(&mut self) {
        let mut wrong = Vec::new();
        let shown = self.types.iter().flat_map(|t| &t.relations).flat_map(|r| &r.sources).map(|s| (s.subject, s.span));
        let roles = self.types.iter().filter_map(|t| t.roles.as_ref());
        let held = roles.flat_map(|roles| roles.subjects.iter().map(|subject| (*subject, roles.span)));
        for (subject, span) in shown.chain(held) {
            if let Subject::Group(ty, id) = subject
                && let Some(group) = self.types.get(ty.0).and_then(|t| t.relation(id))
                && group.to_objects
            {
                let message = format!("{}#{} names objects, not people", self.type_name(ty), group.name);
                wrong.push((span, message));
            }
        }
        for (span, message) in wrong {
            self.error(301, span, message);
        }
    }
}

fn idents(columns: &[Column]) -> Vec<Ident> {
    columns.iter().map(|c| c.value.clone()).collect()
}

fn count(columns: usize) -> String {
    if columns == 1 { "one column is".to_owned() } else { format!("{columns} columns are") }
}

/// Nothing where nothing was written, and `None` where what was written is wrong.
fn transpose<T>(written: Option<Option<T>>) -> Option<Option<T>> {
    match written {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}

/// The same for two sources that read the same rows, wherever they are written.
fn place_key(place: &Place) -> String {
    let list = |columns: &[Ident]| columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(",");
    match place {
        Place::Column { columns } => list(columns),
        Place::Table { table, object, subject, condition } => {
            let condition = condition.as_ref().map_or("", |c| c.sql.trim());
            format!("{table}({} -> {}) {condition}", list(object), list(subject))
        }
        Place::Polymorphic { type_column, id_column } => format!("({type_column}, {id_column})"),
        Place::Shared { .. } => "shared".to_owned(),
        Place::Role { permission } => format!("role {}", permission.0),
    }
}
