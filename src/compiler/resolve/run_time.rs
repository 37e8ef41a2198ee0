//! What the run time asks for by name: roles people make, and permissions such as `share`.

use std::collections::HashSet;

use super::{NOT_BUILT, Resolver, Symbol};
use crate::compiler::ast::{self, Member, Name, RolesDecl};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Expr, Permission, Place, RelId, TypeDef, TypeId};
use crate::compiler::span::Span;

/// Permissions the run time of the whole language asks for and this release does not.
const RUN_TIME: [&str; 4] = ["break_glass", "impersonate", "manage_keys", "manage_roles"];

impl Resolver<'_> {
    /// `roles` in an expression: the type must have a `roles` line.
    pub(super) fn roles_term(&mut self, ty: TypeId, span: Span) -> Option<Expr> {
        let decl = self.decls.get(ty.0)?;
        if !decl.members.iter().any(|m| matches!(m, Member::Roles(_))) {
            let message = format!("{} has no \"roles :\" line saying who may hold roles", self.type_name(ty));
            self.error(210, span, message);
        }
        None
    }

    /// `roles : SUBJECTS [from REL]`
    pub(super) fn roles(&mut self, ty: TypeId, decl: &RolesDecl) {
        self.not_built(decl.span, "roles made at run time are");
        for subject in &decl.subjects {
            if matches!(
                subject,
                ast::SubjectDecl::Anyone(_) | ast::SubjectDecl::Link(_) | ast::SubjectDecl::Everyone(_)
            ) {
                self.error(210, subject.span(), "roles are held by people and groups, not by anyone");
            } else {
                self.subject(subject, true);
            }
        }
        let Some(from) = &decl.from else { return };
        match self.symbol(ty, &from.value) {
            Some(Symbol::Relation(id)) => {
                self.used.insert((ty, id));
                self.role_owner(ty, id, from);
            }
            _ => {
                let message = format!("{} has no relation \"{}\" to the roles' owner", self.type_name(ty), from.value);
                self.error(211, from.span, message);
            }
        }
    }

    fn role_owner(&mut self, ty: TypeId, id: RelId, from: &Name) {
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
            return;
        };
        let column = matches!(one.source, ast::SourceDecl::Columns(_));
        if !column || one.subjects.len() != 1 || !matches!(one.subjects.first(), Some(ast::SubjectDecl::Type(_))) {
            self.error(211, from.span, format!("\"{}\" is not a column that names one owner", from.value));
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
            let sharers: Vec<_> = (def.relations.iter().flat_map(|r| &r.sources))
                .filter_map(|s| if let Place::Shared { by, .. } = s.place { Some(by) } else { None })
                .collect();
            for (at, permission) in def.permissions.iter().enumerate() {
                let name = permission.name.as_str();
                if name == "share" && !sharers.iter().any(|by| by.0 == at) && !unsure {
                    let message =
                        format!("nothing asks for \"share\" of {}: it has no relation that \"share\" shares", def.name);
                    found.push(Diagnostic::error(307, permission.span, message));
                } else if RUN_TIME.contains(&name) {
                    let owns_roles = owners.contains(def.name.as_str());
                    found.push(run_time_permission(def, permission, !sharers.is_empty(), owns_roles));
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

/// A permission only the run time asks for, which it does nowhere yet.
fn run_time_permission(def: &TypeDef, permission: &Permission, shares: bool, owns_roles: bool) -> Diagnostic {
    let (asked, place) = match permission.name.as_str() {
        "break_glass" => (shares, "a type with shared relations"),
        "impersonate" => (def.name == "user", "user"),
        "manage_keys" => (def.signs_in, "a type that signs in"),
        _ => (owns_roles, "the type that owns roles"),
    };
    if asked {
        let message = format!("what \"{}\" allows at run time is not built yet", permission.name);
        return Diagnostic::error(NOT_BUILT, permission.span, message);
    }
    let message = format!("nothing asks for \"{}\" of {}; it belongs on {place}", permission.name, def.name);
    Diagnostic::error(307, permission.span, message)
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
