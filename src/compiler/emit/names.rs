//! Names of generated objects. Names in a policy hold no `__`, so parts joined by it cannot run into each other.

use crate::compiler::ident::Ident;
use crate::compiler::model::{Model, Subject, TypeDef, TypeId};

/// The schema of what one policy generates.
pub const GEN: &str = "authz_gen";
/// The schema of indexes, keys and state, which the app role cannot enter.
pub const INT: &str = "authz_int";

fn generated(schema: &str, parts: &[&str]) -> String {
    let mut flat: Vec<&str> = Vec::with_capacity(parts.len() * 2);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            // Ident::generated joins by one underscore; an empty part between two makes it two.
            flat.push("");
        }
        flat.push(part);
    }
    format!("{schema}.{}", Ident::generated(&flat))
}

/// The view of ids on which the caller holds a permission or is in a relation.
pub fn view(ty: &TypeDef, name: &str) -> String {
    generated(GEN, &[&ty.name, name])
}

/// A numbered part of a generated view.
pub fn part(view: &str, at: usize) -> String {
    let (schema, name) = view.split_once('.').unwrap_or((GEN, view));
    generated(schema, &[name.trim_matches('"'), &at.to_string()])
}

/// The view of ids from which a relation, followed, finds `target`.
pub fn followed(ty: &TypeDef, relation: &str, target: &str) -> String {
    generated(GEN, &[&ty.name, relation, target])
}

/// A function about one permission or relation; `what` says which (`held`, `set`, `mine`, `who`, `why` ...).
pub fn function(what: &str, ty: &TypeDef, name: &str) -> String {
    generated(GEN, &[what, &ty.name, name])
}

/// The composite type in which one value stands for a key of several columns.
pub fn key_type(ty: &TypeDef) -> String {
    generated(GEN, &["key", &ty.name])
}

/// The function that gives the caller's id of a type that signs in.
pub fn me(model: &Model, ty: TypeId) -> Option<String> {
    if ty == model.user {
        return Some("authz.uid".to_owned());
    }
    Some(generated(GEN, &["me", &model.ty(ty)?.name]))
}

/// The variable of a generated function that holds the caller's id of a type that signs in.
pub fn me_variable(model: &Model, ty: TypeId) -> Option<String> {
    if ty == model.user {
        return Some("authz__me".to_owned());
    }
    Some(Ident::generated(&["authz", "", "as", "", &model.ty(ty)?.name]).to_string())
}

/// The function that a condition on a row became; `hash` is of the condition and its table.
pub fn condition(hash: &str) -> String {
    generated(GEN, &["condition", hash])
}

/// The table of run-time shares of a relation with one kind of subject.
pub fn shares(ty: &TypeDef, relation: &str, subject: &ShareSubject) -> String {
    let mut parts = vec!["share", ty.name.as_str(), relation];
    match subject {
        ShareSubject::One(name) => parts.push(name),
        ShareSubject::Group(name, member) => parts.extend([name.as_str(), member.as_str()]),
        ShareSubject::Everyone(name) if name == "user" => parts.push("all"),
        ShareSubject::Everyone(name) => parts.extend(["all", name.as_str()]),
        ShareSubject::Anyone => parts.push("anyone"),
        ShareSubject::Link => parts.push("link"),
    }
    generated(INT, &parts)
}

/// The table of shared roles of a type with one kind of holder.
pub fn role_shares(ty: &TypeDef, subject: &ShareSubject) -> String {
    let mut parts = vec!["role", ty.name.as_str()];
    match subject {
        ShareSubject::Group(name, member) => parts.extend([name.as_str(), member.as_str()]),
        ShareSubject::One(name) | ShareSubject::Everyone(name) => parts.push(name),
        ShareSubject::Anyone | ShareSubject::Link => {}
    }
    generated(INT, &parts)
}

/// The kinds of subject a share may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShareSubject {
    /// A person: the type's name.
    One(String),
    /// A group's members: the type's and the relation's names.
    Group(String, String),
    /// Everyone signed in as this type.
    Everyone(String),
    /// Everyone, signed in or not.
    Anyone,
    /// Whoever brings a token.
    Link,
}

impl ShareSubject {
    /// The kind of a source's subject; `None` for a subject of another model.
    pub fn of(model: &Model, subject: Subject) -> Option<Self> {
        match subject {
            Subject::Type(ty) => Some(ShareSubject::One(model.ty(ty)?.name.clone())),
            Subject::Group(ty, relation) => {
                let def = model.ty(ty)?;
                Some(ShareSubject::Group(def.name.clone(), def.relation(relation)?.name.clone()))
            }
            Subject::Everyone(ty) => Some(ShareSubject::Everyone(model.ty(ty)?.name.clone())),
            Subject::Anyone => Some(ShareSubject::Anyone),
            Subject::Link => Some(ShareSubject::Link),
        }
    }
}

/// A variable of a generated function that holds the ids of a relation that are the caller's. No policy may use a name
/// that begins with `authz__`, so it cannot be taken for a column.
pub fn mine_variable(ty: &TypeDef, relation: &str) -> String {
    Ident::generated(&["authz", "", "mine", "", &ty.name, "", relation]).to_string()
}
