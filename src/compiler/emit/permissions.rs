//! What a permission becomes: a view of the ids on which the caller holds it, and a function with the same ids.
//!
//! An inheriting permission's view is the read form that won by measurement (`docs/ARCHITECTURE.md`, "The read form"):
//! while a statement has checked few rows it probes the row's ancestors by key, whatever the caller holds; later it
//! tests them against what the caller holds, hashed once. The rules add the third form, everything reached, hashed once.

use crate::compiler::model::{Expr, GraphId, PermId, TypeId};

use super::context::{Asker, Emit, Form, Policy, Scope, owner_function};
use super::logic;
use super::names;
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
                    let terms = logic::base_terms(self.model, ty, inherits.graph, &inherits.base);
                    self.inherited_view(ty, permission, inherits.graph, &terms, made)?;
                    self.held_function(ty, permission, &terms, made)?;
                    self.reach_function(ty, permission, inherits.graph, made)?;
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

    fn inherited_view(
        &self,
        ty: TypeId,
        permission: PermId,
        graph: GraphId,
        terms: &[Expr],
        made: &mut Made,
    ) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        self.single_key(ty)?;
        let g = self.graph_name(graph)?;
        let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Probe);
        let probes = self.path_terms(&mut scope, terms, "p.path")?;
        let path = format!("n.id || n.local || (SELECT c.above FROM authz_int.{g}_cluster c WHERE c.id = n.cluster)");
        let checked = self.checked_rows([graph])?;
        let held = names::function("held", def, &found.name);
        let query = format!(
            "SELECT n.id FROM authz_int.{g}_node n\n\
             WHERE CASE WHEN {checked} < {first_rows} THEN\n  (SELECT {probes}\n   FROM (SELECT {path} AS path OFFSET 0) p)\n\
             ELSE\n  (SELECT bool_or(a IN (SELECT {held}())) FROM unnest({path}) a)\nEND",
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
    pub fn path_terms(&self, scope: &mut Scope, terms: &[Expr], path: &str) -> Emit<Vec<String>> {
        let mut rows = Vec::new();
        let mut probes = Vec::new();
        let mut cheap = Vec::new();
        for term in terms {
            match term {
                Expr::Anyone(_) | Expr::SignedIn(_) => cheap.push(self.check(scope, term)?),
                Expr::Relation(relation, _) => {
                    for source in &self.relation(scope.ty, *relation)?.sources {
                        if let Some(named) = self.named_in_row(scope.ty, source, "this")? {
                            let holder = self.is_caller(scope, source.subject, Some(&named.id))?;
                            rows.push(named.when(holder));
                        }
                    }
                    probes.extend(self.path_probes(scope, *relation, path)?);
                }
                other => rows.push(self.check(scope, other)?),
            }
        }
        if !rows.is_empty() {
            cheap.push(self.path_row_probe(scope.ty, &rows, path)?);
        }
        cheap.extend(probes);
        if cheap.is_empty() {
            cheap.push("false".to_owned());
        }
        Ok(cheap)
    }

    /// `held__TYPE__PERMISSION()`: the objects on which the permission starts for the caller.
    fn held_function(&self, ty: TypeId, permission: PermId, terms: &[Expr], made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        let key = self.key(ty)?;
        let id = key.of_row("this");
        let counts = self.counts(ty, "this")?;
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let mut queries = Vec::new();
        for term in terms {
            if let Expr::Relation(relation, _) = term {
                queries.extend(self.held_rows(&mut scope, ty, *relation, |_| true)?);
            } else {
                let check = self.check(&mut scope, term)?;
                let ids = scope.ids(key, &id);
                queries.push(format!("SELECT {ids} FROM {} AS this WHERE {check}{counts}", def.table));
            }
        }
        if queries.is_empty() {
            queries.push(format!("SELECT {} WHERE false", key.plain(&key.null(), "id")));
        }
        let name = names::function("held", def, &found.name);
        let body = format!("  RETURN QUERY\n{};", indented(&queries.join("\nUNION ALL\n")));
        made.function(&name, owner_function(self, &name, "", &key.set_of(), &scope.mine, &body)?, true);
        Ok(())
    }

    /// `set__TYPE__PERMISSION()`: everything reached from what is held, by descending the index. An id may come twice.
    fn reach_function(&self, ty: TypeId, permission: PermId, graph: GraphId, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.permission(ty, permission)?;
        let held = names::function("held", def, &found.name);
        let g = self.graph_name(graph)?;
        // In a cluster where something is held, a node is reached when it or an ancestor inside is held; clusters that
        // hang below such a node are reached whole.
        let query = format!(
            "WITH RECURSIVE piece AS MATERIALIZED (\n  SELECT n.id\n  FROM (\n    SELECT n.cluster, array_agg(h) AS ids\n    \
             FROM {held}() h JOIN authz_int.{g}_node n ON n.id = h\n    GROUP BY n.cluster\n  ) t\n  \
             JOIN authz_int.{g}_node n ON n.cluster = t.cluster\n  WHERE n.id = ANY (t.ids) OR n.local && t.ids\n),\n\
             below(cluster) AS (\n  SELECT e.child FROM piece p JOIN authz_int.{g}_edge e ON e.parent = p.id\n  UNION\n  \
             SELECT e.child FROM below b JOIN authz_int.{g}_edge e ON e.parent_cluster = b.cluster\n)\n\
             SELECT p.id FROM piece p\nUNION ALL\n\
             SELECT n.id FROM below b JOIN authz_int.{g}_node n ON n.cluster = b.cluster"
        );
        let scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        self.set_function(ty, &found.name, &scope, &query, made)
    }
}
