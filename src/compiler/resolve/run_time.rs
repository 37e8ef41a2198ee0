//! What the run time asks for by name: roles people make, and permissions such as `share`.

use std::collections::HashSet;

use super::{Resolver, Symbol};
use crate::compiler::ast::{self, Member, Name, RolesDecl};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Expr, Permission, Place, RelId, Relation, Roles, Source, Subject, TypeDef, TypeId};
use crate::compiler::span::Span;

/// Permissions that only the run time asks for.
const RUN_TIME: [&str; 4] = ["break_glass", "impersonate", "manage_keys", "manage_roles"];

impl Resolver<'_> {
    /// `roles` in an expression: the caller holds a role that includes the permission the expression is of. It becomes a
    /// relation made for it.
    pub(super) fn roles_term(&mut self, ty: TypeId, span: Span) -> Option<Expr> {
        let decl = self.decls.get(ty.0)?;
        if !decl.members.iter().any(|m| matches!(m, Member::Roles(_))) {
            let message = format!("{} has no \"roles :\" line saying who may hold roles", self.type_name(ty));
            self.error(210, span, message);
            return None;
        }
        let Some(permission) = self.within else {
            self.error(210, span, "a role gives permissions; name the permission here, and write \"roles\" in it");
            return None;
        };
        let def = self.types.get_mut(ty.0)?;
        let roles = def.roles.as_ref()?;
        if let Some(known) = def.roles_relation(permission) {
            return Some(Expr::Relation(known, span));
        }
        let place = Place::Role { permission };
        let sources =
            roles.subjects.iter().map(|subject| Source { subject: *subject, place: place.clone(), span: roles.span });
        let relation = Relation {
            name: format!("roles__{}", def.permission(permission)?.name),
            sources: sources.collect(),
            to_objects: false,
            span: roles.span,
        };
        let id = RelId(def.relations.len());
        def.relations.push(relation);
        self.used.insert((ty, id));
        Some(Expr::Relation(id, span))
    }

    /// `roles : SUBJECTS [from REL]`
    pub(super) fn roles(&mut self, ty: TypeId, decl: &RolesDecl) {
        let before = self.diagnostics.len();
        if self.types.get(ty.0).is_some_and(|def| def.roles.is_some()) || self.broken.roles.contains(&ty) {
            self.error(109, decl.span, format!("{} has a \"roles :\" line already", self.type_name(ty)));
        }
        let subjects: Vec<Option<Subject>> = decl.subjects.iter().map(|s| self.role_holder(s)).collect();
        let owner = match &decl.from {
            None => Some((None, ty)),
            Some(from) => match self.symbol(ty, &from.value) {
                Some(Symbol::Relation(id)) => {
                    self.used.insert((ty, id));
                    self.role_owner(ty, id, from).map(|owner| (Some(id), owner))
                }
                _ => {
                    let message =
                        format!("{} has no relation \"{}\" to the roles' owner", self.type_name(ty), from.value);
                    self.error(211, from.span, message);
                    None
                }
            },
        };
        let by = match self.symbol(ty, "share") {
            Some(Symbol::Permission(by)) => Some(by),
            _ => {
                let message = format!("roles are shared, and {} has no permission \"share\"", self.type_name(ty));
                self.error(207, decl.span, message);
                None
            }
        };
        let subjects: Option<Vec<Subject>> = subjects.into_iter().collect();
        match (subjects, owner, by) {
            (Some(subjects), Some((from, owner)), Some(by)) if self.diagnostics.len() == before => {
                if let Some(def) = self.types.get_mut(ty.0) {
                    def.roles = Some(Roles { subjects, from, owner, by, span: decl.span });
                }
            }
            _ => drop(self.broken.roles.insert(ty)),
        }
    }

    fn role_holder(&mut self, decl: &ast::SubjectDecl) -> Option<Subject> {
        use ast::SubjectDecl::{Anyone, Everyone, Link};
        if matches!(decl, Anyone(_) | Link(_) | Everyone(_)) {
            self.error(210, decl.span(), "roles are held by people and groups, not by anyone");
            return None;
        }
        let subject = self.subject(decl, true)?;
        if let Subject::Type(ty) = subject
            && !self.types.get(ty.0).is_some_and(|t| t.signs_in)
        {
            let message = format!("nobody signs in as a {}, so it can hold no role", self.type_name(ty));
            self.error(210, decl.span(), message);
            return None;
        }
        Some(subject)
    }

    /// The type of the objects that own roles: what a relation of one column and one type names.
    fn role_owner(&mut self, ty: TypeId, id: RelId, from: &Name) -> Option<TypeId> {
        let lines = self.decls.get(ty.0).into_iter().flat_map(|decl| &decl.members);
        let mut bodies = lines.filter_map(|member| match member {
            Member::Relation(r) if r.name.value == from.value => r.body.as_ref(),
            _ => None,
        });
        let one = bodies.next().filter(|_| bodies.next().is_none());
        let Some(one) = one else {
            if !self.broken.relations.contains(&(ty, id)) {
                self.error(211, from.span, format!("\"{}\" has several sources and cannot name one owner", from.value));
            }
            return None;
        };
        match (&one.source, one.subjects.as_slice()) {
            (ast::SourceDecl::Columns(_), [ast::SubjectDecl::Type(name)]) => {
                self.type_names.get(name.value.as_str()).copied()
            }
            _ => {
                self.error(211, from.span, format!("\"{}\" is not a column that names one owner", from.value));
                None
            }
        }
    }

    /// Permissions the run time asks for by name must stand where it asks for them.
    pub(super) fn run_time_permissions(&mut self) {
        let mut found = Vec::new();
        let owners = self.role_owners();
        let broken: HashSet<TypeId> = self.broken.relations.iter().map(|(ty, _)| *ty).collect();
        for (at, def) in self.types.iter().enumerate() {
            // A line that could not be read may be the one that shares.
            let unsure = broken.contains(&TypeId(at));
            let with_roles =
                self.decls.get(at).is_some_and(|d| d.members.iter().any(|m| matches!(m, Member::Roles(_))));
            let sharers: Vec<_> = (def.relations.iter().flat_map(|r| &r.sources))
                .filter_map(|s| if let Place::Shared { by, .. } = s.place { Some(by) } else { None })
                .collect();
            for (at, permission) in def.permissions.iter().enumerate() {
                let name = permission.name.as_str();
                let asked = sharers.iter().any(|by| by.0 == at) || with_roles;
                if name == "share" && !asked && !unsure {
                    let message =
                        format!("nothing asks for \"share\" of {}: it has no relation that \"share\" shares", def.name);
                    found.push(Diagnostic::error(307, permission.span, message));
                } else if RUN_TIME.contains(&name) && !unsure {
                    let owns_roles = owners.contains(def.name.as_str());
                    found.extend(run_time_permission(def, permission, !sharers.is_empty(), owns_roles));
                }
            }
        }
        for def in self.types.iter().filter(|def| owners.contains(def.name.as_str())) {
            if def.permission_named("manage_roles").is_none() {
                let message = format!("{} owns roles and has no permission \"manage_roles\" to manage them", def.name);
                found.push(Diagnostic::error(307, def.span, message));
            }
        }
        self.diagnostics.extend(found);
    }

    /// The names of the types whose objects own custom roles: those with a `roles` line, or those its `from` names.
    fn role_owners(&self) -> HashSet<&str> {
        let mut owners = HashSet::new();
        for decl in &self.decls {
            for member in &decl.members {
                let Member::Roles(roles) = member else { continue };
                match &roles.from {
                    None => drop(owners.insert(decl.name.value.as_str())),
                    Some(from) => owners.extend(subject_types(decl, &from.value)),
                }
            }
        }
        owners
    }
}

/// A permission that only the run time asks for, where it does not.
fn run_time_permission(def: &TypeDef, permission: &Permission, shares: bool, owns_roles: bool) -> Option<Diagnostic> {
    let (asked, place) = match permission.name.as_str() {
        "break_glass" => (shares, "a type with shared relations"),
        "impersonate" => (def.name == "user", "user"),
        "manage_keys" => (def.signs_in, "a type that signs in"),
        _ => (owns_roles, "the type that owns roles"),
    };
    let message = format!("nothing asks for \"{}\" of {}; it belongs on {place}", permission.name, def.name);
    (!asked).then(|| Diagnostic::error(307, permission.span, message))
}

/// The types a relation names, as written.
fn subject_types<'d>(decl: &'d ast::TypeDecl, relation: &'d str) -> impl Iterator<Item = &'d str> {
    let lines = decl.members.iter().filter_map(move |member| match member {
        Member::Relation(line) if line.name.value == relation => line.body.as_ref(),
        _ => None,
    });
    lines.flat_map(|body| &body.subjects).filter_map(|subject| match subject {
        ast::SubjectDecl::Type(name) => Some(name.value.as_str()),
        _ => None,
    })
}
