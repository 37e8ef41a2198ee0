//! Declaring types and the names under them.

use std::collections::{HashMap, HashSet};

use super::{Resolver, Symbol};
use crate::compiler::ast::{KeyDecl, Member, Name, TypeDecl};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Expr, KeyColumn, KeyType, PermId, Permission, RelId, Relation, TypeDef, TypeId};
use crate::compiler::span::{Span, Spanned};
use crate::compiler::suggest;

/// Words that mean something inside an expression, and so can name nothing there.
const EXPRESSION_WORDS: [&str; 9] = ["and", "or", "not", "anyone", "nobody", "signed_in", "roles", "this", "can"];
/// Words that mean something where a type is named.
const SUBJECT_WORDS: [&str; 2] = ["anyone", "link"];
/// SQL commands; a rule line or a scope that names one would be ambiguous.
const COMMANDS: [&str; 4] = ["select", "insert", "update", "delete"];
/// The key types the language knows, as written.
const KEY_TYPES: [(&str, KeyType); 6] = [
    ("bigint", KeyType::Bigint),
    ("integer", KeyType::Integer),
    ("smallint", KeyType::Smallint),
    ("text", KeyType::Text),
    ("varchar", KeyType::Varchar),
    ("uuid", KeyType::Uuid),
];
/// Usual other spellings of key types.
const KEY_TYPE_ALIASES: [(&str, &str); 8] = [
    ("int8", "bigint"),
    ("bigserial", "bigint"),
    ("int", "integer"),
    ("int4", "integer"),
    ("serial", "integer"),
    ("int2", "smallint"),
    ("string", "text"),
    ("character", "varchar"),
];

/// What a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    Type,
    Relation,
    Permission,
    Other,
}

impl<'p> Resolver<'p> {
    /// Whether this can be a name at all; reports it when not.
    pub(super) fn check_name(&mut self, name: &Name, naming: Naming) {
        let text = name.value.as_str();
        if text.starts_with("authz__") {
            return self.error(
                113,
                name.span,
                format!("\"{text}\" begins with authz__, which generated names begin with"),
            );
        }
        if text.contains("__") {
            return self.error(
                107,
                name.span,
                format!("\"{text}\" has two underscores in a row, which separate generated names"),
            );
        }
        if !text.is_ascii() {
            return self.error(107, name.span, format!("\"{text}\" has letters other than a to z"));
        }
        let words: &[&str] = match naming {
            Naming::Type => &SUBJECT_WORDS,
            Naming::Relation | Naming::Permission => &EXPRESSION_WORDS,
            Naming::Other => &[],
        };
        if words.contains(&text) {
            return self.error(107, name.span, format!("\"{text}\" is a word of the language and cannot be a name"));
        }
        if naming == Naming::Permission && COMMANDS.contains(&text) {
            self.error(107, name.span, format!("\"{text}\" is a command's name and cannot be a permission's"));
        }
    }

    pub(super) fn declare_types(&mut self) {
        for decl in self.decls.clone() {
            self.check_name(&decl.name, Naming::Type);
            let id = TypeId(self.types.len());
            if let Some(first) = self.type_names.get(decl.name.value.as_str()).copied() {
                self.error(109, decl.name.span, format!("type \"{}\" is declared twice", decl.name.value));
                self.broken.types.insert(first);
            } else {
                self.type_names.insert(&decl.name.value, id);
            }
            let def = self.type_def(decl, id);
            self.types.push(def);
        }
        self.user = self.type_names.get("user").copied();
        match self.user.and_then(|id| self.decls.get(id.0)) {
            None => self.error(202, Span::default(), "no type \"user\": a policy says which table holds its users"),
            Some(decl) => {
                if let Some(key) = decl.header.as_ref().and_then(|h| h.key.as_ref()).filter(|k| k.value.len() > 1) {
                    self.error(
                        206,
                        key.span,
                        "the key of \"user\" is one column, so that authz.uid() can be one value",
                    );
                }
            }
        }
    }

    fn type_def(&mut self, decl: &'p TypeDecl, id: TypeId) -> TypeDef {
        let mut def = TypeDef {
            name: decl.name.value.clone(),
            table: QualName::new("", ""),
            key: vec![KeyColumn { column: Ident::new("id"), ty: KeyType::Bigint }],
            condition: None,
            signs_in: decl.name.value == "user",
            relations: Vec::new(),
            permissions: Vec::new(),
            roles: None,
            span: decl.name.span,
        };
        let Some(header) = &decl.header else {
            self.broken.types.insert(id);
            return def;
        };
        def.table = header.table.value.clone();
        if let Some(key) = &header.key {
            def.key = self.key(key, id);
        }
        def.signs_in |= header.principal.is_some();
        def.condition = header.condition.as_ref().and_then(|sql| self.row_condition(sql, 101));
        def
    }

    fn key(&mut self, key: &Spanned<Vec<KeyDecl>>, id: TypeId) -> Vec<KeyColumn> {
        if key.value.is_empty() {
            self.broken.types.insert(id);
        }
        let mut columns: Vec<KeyColumn> = Vec::new();
        let mut seen = HashSet::new();
        for written in &key.value {
            if !seen.insert(&written.column.value) {
                self.error(206, written.column.span, format!("{} is in the key twice", written.column.value.plain()));
                continue;
            }
            let ty = written.ty.as_ref().map_or(KeyType::Bigint, |name| self.key_type(name));
            columns.push(KeyColumn { column: written.column.value.clone(), ty });
        }
        columns
    }

    fn key_type(&mut self, name: &Name) -> KeyType {
        let written = name.value.to_lowercase();
        if let Some((_, ty)) = KEY_TYPES.iter().find(|(known, _)| *known == written) {
            return *ty;
        }
        let known: Vec<&str> = KEY_TYPES.iter().map(|(known, _)| *known).collect();
        let alias = KEY_TYPE_ALIASES.iter().find(|(alias, _)| *alias == written).map(|(_, known)| *known);
        let near = alias.or_else(|| suggest::nearest(&written, known.iter().copied()));
        let message = format!("a key cannot be {}{}", name.value, suggest::or_list(near, "it can be", &known));
        self.error(206, name.span, message);
        KeyType::Bigint
    }

    /// Declares the relations and permissions of every type, without looking into them.
    pub(super) fn declare_members(&mut self) {
        for (at, decl) in self.decls.clone().into_iter().enumerate() {
            let mut names: HashMap<&'p str, Symbol> = HashMap::new();
            let mut relations: Vec<Relation> = Vec::new();
            let mut permissions: Vec<Permission> = Vec::new();
            for member in &decl.members {
                match member {
                    Member::Relation(relation) => {
                        let name = &relation.name;
                        match names.get(name.value.as_str()) {
                            Some(Symbol::Relation(_)) => {}
                            Some(Symbol::Permission(_)) => self.both(name),
                            None => {
                                self.check_name(name, Naming::Relation);
                                names.insert(&name.value, Symbol::Relation(RelId(relations.len())));
                                relations.push(empty_relation(name));
                            }
                        }
                    }
                    Member::Permission(permission) => {
                        let name = &permission.name;
                        match names.get(name.value.as_str()) {
                            Some(Symbol::Permission(_)) => {
                                self.error(109, name.span, format!("permission \"{}\" is declared twice", name.value));
                            }
                            Some(Symbol::Relation(_)) => self.both(name),
                            None => {
                                self.check_name(name, Naming::Permission);
                                names.insert(&name.value, Symbol::Permission(PermId(permissions.len())));
                                permissions.push(empty_permission(name));
                            }
                        }
                    }
                    Member::Roles(_) => {}
                }
            }
            self.symbols.push(names);
            if let Some(def) = self.types.get_mut(at) {
                def.relations = relations;
                def.permissions = permissions;
            }
        }
    }

    fn both(&mut self, name: &Name) {
        self.error(109, name.span, format!("\"{}\" is a relation and a permission of one type", name.value));
    }
}

fn empty_relation(name: &Name) -> Relation {
    Relation { name: name.value.clone(), sources: Vec::new(), to_objects: false, span: name.span }
}

/// A permission that nobody has, until its expression is looked at.
fn empty_permission(name: &Name) -> Permission {
    Permission { name: name.value.clone(), expr: Expr::Nobody(name.span), inherits: None, span: name.span }
}
