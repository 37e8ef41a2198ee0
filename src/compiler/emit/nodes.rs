//! Reading an inheritance graph: between the ids of a type's objects, their nodes, and the arrays of ancestors called
//! paths. A graph over one type with a key of one column holds the keys themselves; in any other, objects have numbers.
//! The rest of the emitter does not tell them apart.

use std::collections::BTreeSet;

use crate::compiler::model::{Expr, GraphId, Inheritance, RelId, Target, TypeId};
use crate::compiler::objects::GraphTables;

use super::context::{Asker, Emit, Form, Policy, Scope, not_built};
use super::graph::numbered::id_in;
use super::key::{Id, Key};
use super::logic;

/// The name of a number table in a statement.
const NUMBERS: &str = "authz__m";

/// The relations of which a statement needs the caller's ids.
type Groups = BTreeSet<(TypeId, RelId)>;

/// The objects of one type in a graph.
pub struct Nodes<'p> {
    graph: &'p GraphTables,
    key: Key<'p>,
    numbers: Option<&'p str>,
}

/// A type whose objects start an inherited permission.
pub struct Start {
    /// The type.
    pub ty: TypeId,
    /// It holds where one of these does.
    pub terms: Vec<Expr>,
}

impl Policy<'_> {
    /// How a graph is read for the objects of a type.
    pub fn nodes(&self, graph: GraphId, ty: TypeId) -> Emit<Nodes<'_>> {
        let key = self.key(ty)?;
        let foreign = || not_built(Default::default(), "a graph without this type");
        let graph = self.graphs.get(graph.0).ok_or_else(foreign)?;
        let numbers = match graph.numbers.iter().find(|n| n.ty == ty) {
            Some(found) => Some(found.table.as_str()),
            None if graph.numbers.is_empty() => None,
            None => return Err(foreign()),
        };
        Ok(Nodes { graph, key, numbers })
    }

    /// What starts an inherited permission, type by type.
    pub fn starts(&self, inherits: &Inheritance) -> Emit<Vec<Start>> {
        let mut starts = Vec::new();
        for &(ty, permission) in &inherits.members {
            if let Some(member) = &self.permission(ty, permission)?.inherits {
                starts.push(Start { ty, terms: logic::base_terms(self.model, ty, member) });
            }
        }
        Ok(starts)
    }

    /// ` AND (...)`: none of the permission's denies holds on the object `id`.
    pub fn not_denied(&self, scope: &mut Scope, ty: TypeId, inherits: &Inheritance, id: &Id) -> Emit<String> {
        let mut text = String::new();
        for deny in &inherits.denies {
            let denied = match deny {
                Expr::Permission(permission, _) => self.reached(scope, ty, Target::Permission(*permission), id)?,
                _ => return Err(not_built(Default::default(), "a deny that is no permission")),
            };
            text.push_str(&format!(" AND {denied} IS NOT TRUE"));
        }
        Ok(text)
    }

    /// Any of what starts an inherited permission, as conditions on the array `path`.
    pub fn start_probes(&self, scope: &mut Scope, inherits: &Inheritance, path: &str) -> Emit<Vec<String>> {
        let mut probes = Vec::new();
        for start in self.starts(inherits)? {
            let mut own = Scope::new(start.ty, "this", scope.asker, scope.form);
            probes.extend(self.path_terms(&mut own, &start.terms, &self.nodes(inherits.graph, start.ty)?, path)?);
            scope.views.append(&mut own.views);
            scope.mine.append(&mut own.mine);
        }
        if probes.is_empty() {
            probes.push("false".to_owned());
        }
        Ok(probes)
    }

    /// Queries of what the index holds for the objects on which an inherited permission starts for the caller, and the
    /// relations of which they need the caller's ids.
    pub fn start_rows(&self, inherits: &Inheritance) -> Emit<(Vec<String>, Groups)> {
        let mut queries = Vec::new();
        let mut mine = BTreeSet::new();
        for Start { ty, terms } in self.starts(inherits)? {
            let nodes = self.nodes(inherits.graph, ty)?;
            let (key, table) = (self.key(ty)?, &self.ty(ty)?.table);
            let counts = self.counts(ty, "this")?;
            let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
            let mut own = Vec::new();
            for term in &terms {
                if let Expr::Relation(relation, _) = term {
                    own.extend(self.held_rows(&mut scope, ty, *relation, true, |_| true)?);
                } else {
                    let check = self.check(&mut scope, term)?;
                    let ids = scope.ids(key, &key.of_row("this"));
                    own.push(format!("SELECT {ids} FROM {table} AS this WHERE {check}{counts}"));
                }
            }
            queries.extend(own.iter().map(|query| nodes.held(query)));
            mine.append(&mut scope.mine);
        }
        if queries.is_empty() {
            let ty = self.graphs.get(inherits.graph.0).map_or("bigint", |g| g.key_type);
            queries.push(format!("SELECT NULL::{ty} AS id WHERE false"));
        }
        Ok((queries, mine))
    }
}

impl Nodes<'_> {
    /// The graph's name.
    pub fn name(&self) -> &str {
        &self.graph.name
    }

    /// The SQL type of what the index holds.
    pub fn held_type(&self) -> &'static str {
        self.graph.key_type
    }

    /// Whether objects of other types may be on its paths.
    pub fn of_several_types(&self) -> bool {
        self.graph.numbers.len() > 1
    }

    /// `FROM`: the nodes `n` of the type's objects.
    pub fn from(&self) -> String {
        let node = format!("authz_int.{}_node n", self.graph.name);
        match self.numbers {
            None => node,
            Some(numbers) => format!("{numbers} {NUMBERS} JOIN {node} ON n.id = {NUMBERS}.authz__n"),
        }
    }

    /// The id of the object whose node is `n`.
    pub fn id(&self) -> Id {
        match self.numbers {
            None => Id::one("n.id"),
            Some(_) => id_in(self.key, NUMBERS),
        }
    }

    /// The array of the object with the node `n` and its ancestors.
    pub fn path(&self) -> String {
        let name = &self.graph.name;
        format!("n.id || n.local || (SELECT c.above FROM authz_int.{name}_cluster c WHERE c.id = n.cluster)")
    }

    /// `FROM` and condition: rows of `from` whose `id` is of this type and on the path.
    pub fn rows_on(&self, from: &str, id: &Id, path: &str) -> (String, String) {
        match self.numbers {
            None => (from.to_owned(), self.key.among(id, path)),
            Some(numbers) => {
                let same = id_in(self.key, NUMBERS).equals(id);
                (format!("{numbers} AS {NUMBERS} JOIN {from} ON {same}"), format!("{NUMBERS}.authz__n = ANY ({path})"))
            }
        }
    }

    /// The ids of this type on a path, as an array of the key's type.
    pub fn ids_on(&self, path: &str) -> String {
        match self.numbers {
            None => path.to_owned(),
            Some(numbers) => format!(
                "ARRAY(SELECT {} FROM {numbers} {NUMBERS} WHERE {NUMBERS}.authz__n = ANY ({path}))",
                self.key.value(&id_in(self.key, NUMBERS))
            ),
        }
    }

    /// A query of ids (in columns `id ..`) as a query of what the index holds.
    pub fn held(&self, query: &str) -> String {
        match self.numbers {
            None => query.to_owned(),
            Some(numbers) => format!(
                "SELECT {NUMBERS}.authz__n AS id FROM (\n{query}\n) q JOIN {numbers} {NUMBERS} ON {}",
                id_in(self.key, NUMBERS).equals(&self.key.of_view("q"))
            ),
        }
    }

    /// What the index holds for one id, SQL text.
    pub fn held_one(&self, id: &Id) -> String {
        match self.numbers {
            None => id.list(),
            Some(numbers) => format!(
                "(SELECT {NUMBERS}.authz__n FROM {numbers} {NUMBERS} WHERE {})",
                id_in(self.key, NUMBERS).equals(id)
            ),
        }
    }

    /// From rows `x(id)` of what the index holds: a FROM item that goes on from `x`, and the id.
    pub fn back(&self, x: &str) -> (String, Id) {
        match self.numbers {
            None => (String::new(), Id::one(format!("{x}.id"))),
            Some(numbers) => {
                (format!(" JOIN {numbers} {NUMBERS} ON {NUMBERS}.authz__n = {x}.id"), id_in(self.key, NUMBERS))
            }
        }
    }
}
