//! What a permission becomes: a view of the ids on which the caller holds it, and a function with the same ids.
//!
//! An inheriting permission's view is the read form that won by measurement (`docs/ARCHITECTURE.md`, "The read form"):
//! while a statement has checked few rows it probes the row's ancestors by key, whatever the caller holds; later it
//! tests them against what the caller holds, hashed once. The rules add the third form, everything reached, hashed once.

use crate::compiler::model::{Expr, GraphId, Inheritance, PermId, TypeId};

use super::context::{Asker, Emit, Form, Policy, Scope, owner_function};
use super::names;
use super::nodes::Nodes;
use super::relations::indented;
use super::views::{Made, View};

impl Policy<'_> {
    /// The views and functions of every permission of one type.
    pub fn permission_objects(&self, ty: TypeId, made: &mut Made) -> Emit<()> {
        for at in 0..self.ty(ty)?.permissions.len() {
            let permission = PermId(at);
            let found = self.permission(ty, permission)?;
            match &found.inherits {
                Some(inherits) => {
                    self.inherited_view(ty, permission, inherits, made)?;
                    self.held_function(ty, permission, inherits, made)?;
                    self.reach_function(ty, permission, inherits, made)?;
                }
                None => self.plain_permission(ty, permission, made)?,
            }
        }
        Ok(())
    }

    /// A permission that does not inherit: the rows on which its expression holds.
    fn plain_permission(&self, ty: TypeId, permission: PermId, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        let key = self.key(ty)?;
        let id = key.of_row("this");
        let counts = self.counts(ty, "this")?;
        let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Probe);
        let check = self.check(&mut scope, &found.expr)?;
        let query = format!("SELECT {} FROM {} AS this WHERE {check}{counts}", scope.ids(key, &id), def.table);
        made.view(View::new(&names::view(def, &found.name), query, scope));
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let check = self.check(&mut scope, &found.expr)?;
        let query = format!("SELECT {} FROM {} AS this WHERE {check}{counts}", scope.ids(key, &id), def.table);
        self.set_function(ty, &found.name, &scope, &query, made)
    }

    fn inherited_view(&self, ty: TypeId, permission: PermId, inherits: &Inheritance, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        let graph = inherits.graph;
        let nodes = self.nodes(graph, ty)?;
        let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Probe);
        let probes = self.start_probes(&mut scope, inherits, "p.path")?;
        let path = nodes.path();
        let checked = self.checked_rows([graph])?;
        let held = names::function("held", def, &found.name);
        let allowed = self.not_denied(&mut scope, ty, inherits, &nodes.id())?;
        let query = format!(
            "SELECT {ids} FROM {from}\n\
             WHERE CASE WHEN {checked} < {first_rows} THEN\n  (SELECT {probes}\n   FROM (SELECT {path} AS path OFFSET 0) p)\n\
             ELSE\n  (SELECT bool_or(a IN (SELECT {held}())) FROM unnest({path}) a)\nEND{allowed}",
            ids = self.key(ty)?.plain(&nodes.id(), "id"),
            from = nodes.from(),
            first_rows = self.options.first_rows,
            probes = probes.join("\n    OR ")
        );
        made.view(View::new(&names::view(def, &found.name), query, scope).over(graph));
        Ok(())
    }

    /// How many nodes of these graphs the statement has looked up so far, as SQL. The counter is the transaction's own,
    /// less what it showed when this statement first asked.
    pub fn checked_rows(&self, graphs: impl IntoIterator<Item = GraphId>) -> Emit<String> {
        let counters: Vec<String> = graphs
            .into_iter()
            .map(|graph| {
                let name = self.graph_name(graph)?;
                Ok(format!("pg_stat_get_xact_numscans('authz_int.{name}_node_pkey'::regclass)"))
            })
            .collect::<Emit<_>>()?;
        let sum = counters.join(" + ");
        Ok(format!("({sum} - (SELECT {sum}))"))
    }

    /// Each of `terms`, as a condition that it holds on some object of the array `path`.
    pub fn path_terms(&self, scope: &mut Scope, terms: &[Expr], nodes: &Nodes<'_>, path: &str) -> Emit<Vec<String>> {
        let mut rows = Vec::new();
        let mut probes = Vec::new();
        let mut cheap = Vec::new();
        for term in terms {
            match term {
                // The object itself is on the path; an object of another type need not be.
                Expr::Anyone(_) | Expr::SignedIn(_) if !nodes.of_several_types() => {
                    cheap.push(self.check(scope, term)?)
                }
                Expr::Relation(relation, _) => {
                    for source in &self.relation(scope.ty, *relation)?.sources {
                        if let Some(named) = self.named_in_row(scope.ty, source, "this")? {
                            let holder = self.is_caller(scope, source.subject, Some(&named.id))?;
                            rows.push(named.when(holder));
                        }
                    }
                    probes.extend(self.path_probes(scope, *relation, nodes, path)?);
                }
                other => rows.push(self.check(scope, other)?),
            }
        }
        if !rows.is_empty() {
            cheap.push(self.path_row_probe(scope.ty, &rows, nodes, path)?);
        }
        cheap.extend(probes);
        Ok(cheap)
    }

    /// `held__TYPE__PERMISSION()`: the objects on which the permission starts for the caller, as the index holds them.
    fn held_function(&self, ty: TypeId, permission: PermId, inherits: &Inheritance, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        let (queries, mine) = self.start_rows(inherits)?;
        let name = names::function("held", def, &found.name);
        let body = format!("  RETURN QUERY\n{};", indented(&queries.join("\nUNION ALL\n")));
        let returns = format!("SETOF {}", self.nodes(inherits.graph, ty)?.held_type());
        made.function(&name, owner_function(self, &name, "", &returns, &mine, &body)?, true);
        Ok(())
    }

    /// `set__TYPE__PERMISSION()`: everything reached from what is held, by descending the index. An id may come twice.
    fn reach_function(&self, ty: TypeId, permission: PermId, inherits: &Inheritance, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        let held = names::function("held", def, &found.name);
        let nodes = self.nodes(inherits.graph, ty)?;
        let g = nodes.name();
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let (back, id) = nodes.back("x");
        let allowed = self.not_denied(&mut scope, ty, inherits, &id)?;
        // In a cluster where something is held, a node is reached when it or an ancestor inside is held; clusters that
        // hang below such a node are reached whole.
        let query = format!(
            "WITH RECURSIVE piece AS MATERIALIZED (\n  SELECT n.id\n  FROM (\n    SELECT n.cluster, array_agg(h) AS ids\n    \
             FROM {held}() h JOIN authz_int.{g}_node n ON n.id = h\n    GROUP BY n.cluster\n  ) t\n  \
             JOIN authz_int.{g}_node n ON n.cluster = t.cluster\n  WHERE n.id = ANY (t.ids) OR n.local && t.ids\n),\n\
             below(cluster) AS (\n  SELECT e.child FROM piece p JOIN authz_int.{g}_edge e ON e.parent = p.id\n  UNION\n  \
             SELECT e.child FROM below b JOIN authz_int.{g}_edge e ON e.parent_cluster = b.cluster\n)\n"
        );
        let reached = format!(
            "SELECT p.id FROM piece p\nUNION ALL\nSELECT n.id FROM below b JOIN authz_int.{g}_node n ON n.cluster = b.cluster"
        );
        let query = if back.is_empty() && allowed.is_empty() {
            query + &reached
        } else {
            let ids = self.key(ty)?.typed(&id, "id");
            format!("{query}SELECT {ids} FROM (\n{}\n) x{back} WHERE true{allowed}", indented(&reached))
        };
        self.set_function(ty, &found.name, &scope, &query, made)
    }
}
