//! The views and functions of one policy as they are collected, put in an order in which they can be made, and counted
//! as PostgreSQL's rewriter would expand them.

use std::collections::{BTreeMap, BTreeSet};

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::GraphId;
use crate::compiler::objects::{Object, ObjectKind, Phase};

use super::context::Scope;
use super::key::Key;

/// A generated view.
#[derive(Debug, Clone)]
pub struct View {
    /// `schema.name`.
    pub name: String,
    /// Its query.
    pub query: String,
    /// The views it names, as often as it names them.
    pub reads: Vec<String>,
    /// The graph whose nodes its own query looks up.
    pub graph: Option<GraphId>,
    /// Whether the app role may read it; a part of another view is for that view alone.
    pub readable: bool,
}

impl View {
    /// A view whose query was written in `scope`.
    pub fn new(name: &str, query: String, scope: Scope) -> Self {
        View { name: name.to_owned(), query, reads: scope.views, graph: None, readable: true }
    }

    /// The same, looking up nodes of a graph.
    pub fn over(mut self, graph: GraphId) -> Self {
        self.graph = Some(graph);
        self
    }
}

/// Everything generated so far.
#[derive(Debug, Default)]
pub struct Made {
    /// Views by name.
    pub views: BTreeMap<String, View>,
    /// Functions, in the order made.
    pub functions: Vec<Object>,
    /// Functions the app role may call.
    pub callable: Vec<String>,
}

impl Made {
    /// Adds a function made by `sql`; `callable` when the app role may call it (its views and policies do).
    pub fn function(&mut self, name: &str, sql: String, callable: bool) {
        if callable {
            self.callable.push(name.to_owned());
        }
        self.functions.push(Object {
            kind: ObjectKind::Function,
            name: name.to_owned(),
            sql,
            locks: Vec::new(),
            phase: Phase::Functions,
            graph: None,
        });
    }

    /// Adds a function that the app role may call, before all others; `signature` holds its arguments.
    pub fn function_first(&mut self, signature: &str, sql: String) {
        self.function(signature, sql, true);
        self.functions.rotate_right(1);
    }

    /// Adds a view.
    pub fn view(&mut self, view: View) {
        self.views.insert(view.name.clone(), view);
    }

    /// Adds a view of all that `parts` select, each a query on the ids of `key` and the scope it was written in.
    ///
    /// PostgreSQL flattens a UNION ALL into the query around it, security barrier or not, and a function of the caller's
    /// then meets rows that a part's own condition hides. So each part stands behind a barrier of its own.
    pub fn union_view(&mut self, name: &str, key: Key<'_>, parts: Vec<(String, Scope)>) {
        let mut parts = parts;
        if parts.len() == 1
            && let Some((query, scope)) = parts.pop()
        {
            return self.view(View::new(name, query, scope));
        }
        let mut arms = Vec::new();
        let mut reads = Vec::new();
        for (at, (query, scope)) in parts.into_iter().enumerate() {
            let part = super::names::part(name, at);
            arms.push(format!("SELECT {} FROM {part} a", key.of_view("a").list()));
            reads.push(part.clone());
            self.view(View { readable: false, ..View::new(&part, query, scope) });
        }
        let query = arms.join("\nUNION ALL\n");
        self.view(View { name: name.to_owned(), query, reads, graph: None, readable: true });
    }

    /// Whether a view of this name was made.
    pub fn has(&self, name: &str) -> bool {
        self.views.contains_key(name)
    }

    /// The views in an order in which each one's views come before it.
    pub fn ordered_views(&self) -> Result<Vec<&View>, Diagnostic> {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        let mut order = Vec::with_capacity(self.views.len());
        let mut waiting: Vec<&View> = self.views.values().collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for view in waiting {
                let ready = view
                    .reads
                    .iter()
                    .all(|read| done.contains(read.as_str()) || !self.views.contains_key(read.as_str()));
                if ready {
                    done.insert(&view.name);
                    order.push(view);
                } else {
                    later.push(view);
                }
            }
            waiting = later;
            if waiting.len() == before {
                let names: Vec<&str> = waiting.iter().map(|view| view.name.as_str()).collect();
                return Err(super::context::not_built(
                    Default::default(),
                    format!("permissions that name each other through relations ({})", names.join(", ")),
                ));
            }
        }
        Ok(order)
    }

    /// The views PostgreSQL expands for a query that names `reads`: each as often as it is named, with the views inside
    /// it, outermost first. Stops at `most`, so that a policy that multiplies cannot exhaust memory here.
    pub fn expanded(&self, reads: &[String], most: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut stack: Vec<&str> = reads.iter().rev().map(String::as_str).collect();
        while let Some(next) = stack.pop() {
            if all.len() >= most {
                break;
            }
            all.push(next.to_owned());
            if let Some(view) = self.views.get(next) {
                stack.extend(view.reads.iter().rev().map(String::as_str));
            }
        }
        all
    }

    /// The graphs whose nodes are looked up by a query that names `reads`.
    pub fn graphs(&self, reads: &[String]) -> BTreeSet<GraphId> {
        let mut graphs = BTreeSet::new();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut stack: Vec<&str> = reads.iter().map(String::as_str).collect();
        while let Some(next) = stack.pop() {
            if let Some(view) = self.views.get(next)
                && seen.insert(next)
            {
                graphs.extend(view.graph);
                stack.extend(view.reads.iter().map(String::as_str));
            }
        }
        graphs
    }

    /// The statements that make the views, in order.
    pub fn view_objects(&self) -> Result<Vec<Object>, Diagnostic> {
        Ok(self
            .ordered_views()?
            .into_iter()
            .map(|view| Object {
                kind: ObjectKind::View,
                name: view.name.clone(),
                sql: format!("CREATE VIEW {} WITH (security_barrier) AS\n{}", view.name, view.query),
                locks: Vec::new(),
                phase: Phase::Functions,
                graph: None,
            })
            .collect())
    }
}
