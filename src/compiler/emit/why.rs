//! `authz.explain`: why a principal holds a permission, as chains of real rows, or what is missing.
//!
//! Each permission gets a function from an id to chains. A chain is a JSON array of steps; a step names the object, the
//! relation, where its row is, and the subject. Chains are asked for as the signed-in principal, so they show what the
//! rules themselves read.

use crate::compiler::ident::literal;
use crate::compiler::model::{Expr, GraphId, Inheritance, Place, RelId, Source, Subject, Target, TypeId};

use super::api::Api;
use super::context::{Asker, Emit, Form, Policy, Scope, owner_function};
use super::describe::describe;
use super::key::Id;
use super::logic;
use super::names;
use super::relations::indented;
use super::views::Made;

/// Chains shown of one answer; one is proof, three show that there are several ways.
const MOST_CHAINS: u32 = 3;

impl Policy<'_> {
    /// The functions behind `authz.explain`, and it.
    pub fn why_objects(&self, made: &mut Made) -> Emit<()> {
        for graph in 0..self.model.graphs.len() {
            self.climb_function(GraphId(graph), made)?;
        }
        for (at, def) in self.model.types.iter().enumerate() {
            let ty = TypeId(at);
            for (rel, relation) in def.relations.iter().enumerate().filter(|(_, r)| !r.to_objects) {
                let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Probe);
                let query = self.why_relation(&mut scope, RelId(rel), &self.key(ty)?.of_value("authz__id"))?;
                self.why_function(ty, &relation.name, &scope, &query, made)?;
            }
            for found in &def.permissions {
                let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Probe);
                let query = match &found.inherits {
                    Some(inherits) => self.why_inherited(&mut scope, inherits)?,
                    None => {
                        let terms = logic::row_terms(self.model, ty, &found.expr);
                        self.why_any(&mut scope, &terms, &self.key(ty)?.of_value("authz__id"))?
                    }
                };
                self.why_function(ty, &found.name, &scope, &query, made)?;
            }
        }
        self.explain_api(made)
    }

    /// From the object up to each ancestor, and from there on by what starts the permission.
    fn why_inherited(&self, scope: &mut Scope, inherits: &Inheritance) -> Emit<String> {
        let own = self.key(scope.ty)?.of_value("authz__id");
        let start = self.nodes(inherits.graph, scope.ty)?.held_one(&own);
        let mut parts = Vec::new();
        for begin in self.starts(inherits)? {
            let mut at = Scope::new(begin.ty, "this", scope.asker, scope.form);
            let (back, id) = self.nodes(inherits.graph, begin.ty)?.back("up");
            let chains = self.why_any(&mut at, &begin.terms, &id)?;
            parts.push(format!(
                "SELECT up.steps || w.chain AS chain FROM {}({start}) up{back}, LATERAL (\n{}\n) w",
                self.climb_name(inherits.graph)?,
                indented(&chains)
            ));
            scope.mine.append(&mut at.mine);
        }
        let chains = parts.join("\nUNION ALL\n");
        let allowed = self.not_denied(scope, scope.ty, inherits, &own)?;
        Ok(if allowed.is_empty() {
            chains
        } else {
            format!("SELECT c.chain FROM (\n{}\n) c WHERE true{allowed}", indented(&chains))
        })
    }

    fn why_function(&self, ty: TypeId, part: &str, scope: &Scope, query: &str, made: &mut Made) -> Emit<()> {
        let name = names::function("why", self.ty(ty)?, part);
        let args = format!("authz__id {}", self.key(ty)?.sql());
        let body = format!("  RETURN QUERY\n{};", indented(query));
        let sql = owner_function(self, &name, &args, "SETOF jsonb", &scope.mine, &body)?;
        made.function(&name, sql, false);
        Ok(())
    }

    fn why_any(&self, scope: &mut Scope, terms: &[Expr], id: &Id) -> Emit<String> {
        let parts: Vec<String> = terms.iter().map(|term| self.why(scope, term, id)).collect::<Emit<_>>()?;
        Ok(if parts.is_empty() {
            "SELECT NULL::jsonb AS chain WHERE false".to_owned()
        } else {
            parts.join("\nUNION ALL\n")
        })
    }

    /// `SELECT chain` of the ways in which `expr` holds on the object `id`.
    fn why(&self, scope: &mut Scope, expr: &Expr, id: &Id) -> Emit<String> {
        let def = self.ty(scope.ty)?;
        match expr {
            Expr::Or(parts) => self.why_any(scope, parts, id),
            Expr::Relation(relation, _) => self.why_call(scope.ty, &self.relation(scope.ty, *relation)?.name, id),
            Expr::Permission(p, _) => self.why_call(scope.ty, &self.permission(scope.ty, *p)?.name, id),
            Expr::Follow { relation, targets, .. } => self.why_follow(scope.ty, *relation, targets, id),
            Expr::And(parts) => {
                let mut from = Vec::new();
                let mut chain = Vec::new();
                for (at, part) in parts.iter().enumerate() {
                    let inner = self.why(scope, part, id)?;
                    from.push(format!(
                        "(\n{}\n  LIMIT 1\n) p{at}(chain)",
                        indented(&format!("SELECT q.chain FROM (\n{inner}\n) q"))
                    ));
                    chain.push(format!("p{at}.chain"));
                }
                Ok(format!("SELECT {} AS chain FROM {}", chain.join(" || "), from.join(", ")))
            }
            Expr::Not(_) | Expr::Sql(_) | Expr::SignedIn(_) | Expr::Anyone(_) | Expr::Nobody(_) => {
                let own = self.key(scope.ty)?.of_row("this");
                let test = self.check(scope, expr)?;
                Ok(format!(
                    "SELECT jsonb_build_array(jsonb_build_object('object', {}, 'condition', {})) AS chain\n\
                     FROM {} AS this WHERE {} AND {test}",
                    self.object_text(scope.ty, &own)?,
                    literal(&describe(self, scope.ty, expr)),
                    def.table,
                    own.equals(id)
                ))
            }
        }
    }

    fn why_call(&self, ty: TypeId, part: &str, id: &Id) -> Emit<String> {
        let id = self.key(ty)?.value(id);
        Ok(format!("SELECT w AS chain FROM {}({id}) w", names::function("why", self.ty(ty)?, part)))
    }

    /// `team (1,42)`: an object as chains name it, SQL text.
    fn object_text(&self, ty: TypeId, id: &Id) -> Emit<String> {
        Ok(format!("{} || {}", literal(&format!("{} ", self.ty(ty)?.name)), self.key(ty)?.text(id)))
    }

    /// How chains name the subject of a source, SQL text.
    fn subject_text(&self, source: &Source, value: Option<&Id>) -> Emit<String> {
        match (source.subject, value) {
            (Subject::Type(to) | Subject::Group(to, _), Some(value)) => self.object_text(to, value),
            (Subject::Everyone(_), _) => Ok(literal("everyone signed in")),
            _ => Ok(literal("anyone")),
        }
    }

    /// One step: the object, the relation, where its row is, and the subject (SQL text).
    fn step(&self, ty: TypeId, relation: &str, source: &Source, object: &Id, subject: &str) -> Emit<String> {
        let def = self.ty(ty)?;
        let place = match &source.place {
            Place::Column { columns } => {
                let columns: Vec<String> = columns.iter().map(|c| c.plain()).collect();
                format!("{}.{}", def.table.plain(), columns.join(", "))
            }
            Place::Table { table, .. } => table.plain(),
            Place::Shared { .. } => "share".to_owned(),
            Place::Role { .. } => "role".to_owned(),
            Place::Polymorphic { .. } => def.table.plain(),
        };
        Ok(format!(
            "jsonb_build_object('object', {}, 'relation', {}, 'from', {}, 'subject', {subject})",
            self.object_text(ty, object)?,
            literal(relation),
            literal(&place)
        ))
    }

    fn why_relation(&self, scope: &mut Scope, relation: RelId, id: &Id) -> Emit<String> {
        let ty = scope.ty;
        let found = self.relation(ty, relation)?;
        if found.sources.iter().any(|s| s.subject == Subject::Group(ty, relation)) {
            return self.why_nested(scope, relation);
        }
        let mut parts = Vec::new();
        for source in &found.sources {
            let rows = self.rows(ty, relation, source)?;
            let holder = self.is_caller(scope, source.subject, rows.subject.as_ref())?;
            let subject = self.subject_text(source, rows.subject.as_ref())?;
            let step = self.step(ty, &found.name, source, &rows.object, &subject)?;
            let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
            let from = format!("FROM {} WHERE {} AND {holder}{condition}", rows.from, rows.object.equals(id));
            parts.push(match (source.subject, &rows.subject) {
                (Subject::Group(group, member), Some(value)) => {
                    let inner = names::function("why", self.ty(group)?, &self.relation(group, member)?.name);
                    let value = self.key(group)?.value(value);
                    format!(
                        "SELECT jsonb_build_array({step}) || w.chain AS chain {} ",
                        with_chain(&from, &format!("{inner}({value})"))
                    )
                }
                _ => format!("SELECT jsonb_build_array({step}) AS chain {from}"),
            });
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    /// A relation whose subjects are groups of itself: from the object down through the groups that the caller is in,
    /// shortest first, to where the caller is named.
    fn why_nested(&self, scope: &mut Scope, relation: RelId) -> Emit<String> {
        let ty = scope.ty;
        let found = self.relation(ty, relation)?;
        let key = self.key(ty)?;
        let mine = scope.mine(self, ty, relation)?;
        let mut steps = Vec::new();
        let mut ends = Vec::new();
        for source in &found.sources {
            let rows = self.rows(ty, relation, source)?;
            let condition = rows.condition.clone().map(|c| format!(" AND {c}")).unwrap_or_default();
            let subject = self.subject_text(source, rows.subject.as_ref())?;
            let step = self.step(ty, &found.name, source, &rows.object, &subject)?;
            let id = key.value(&rows.object);
            match &rows.subject {
                Some(value) if source.subject == Subject::Group(ty, relation) => steps.push(format!(
                    "SELECT {id} AS id, {} AS member, {step} AS step FROM {} WHERE {}{condition}",
                    key.value(value),
                    rows.from,
                    key.among(value, &mine)
                )),
                value => {
                    let holder = self.is_caller(scope, source.subject, value.as_ref())?;
                    ends.push(format!(
                        "SELECT {id} AS id, {step} AS step FROM {} WHERE {holder}{condition}",
                        rows.from
                    ));
                }
            }
        }
        Ok(format!(
            "WITH RECURSIVE steps AS MATERIALIZED (\n{}\n), ends AS MATERIALIZED (\n{}\n),\n\
             down(id, chain, seen) AS (\n  SELECT authz__id, '[]'::jsonb, ARRAY[authz__id]\n  UNION ALL\n  \
             SELECT s.member, d.chain || jsonb_build_array(s.step), d.seen || s.member\n  \
             FROM down d JOIN steps s ON s.id = d.id WHERE s.member <> ALL (d.seen) AND cardinality(d.seen) < 50\n)\n\
             (SELECT d.chain || jsonb_build_array(e.step) AS chain FROM down d JOIN ends e ON e.id = d.id LIMIT 1)",
            indented(&steps.join("\nUNION ALL\n")),
            indented(&ends.join("\nUNION ALL\n"))
        ))
    }

    fn why_follow(&self, ty: TypeId, relation: RelId, targets: &[(TypeId, Target)], id: &Id) -> Emit<String> {
        let found = self.relation(ty, relation)?;
        let mut parts = Vec::new();
        for source in &found.sources {
            let Subject::Type(reached) = source.subject else { continue };
            let Some((_, target)) = targets.iter().find(|(ty, _)| *ty == reached) else { continue };
            let rows = self.rows(ty, relation, source)?;
            let Some(value) = rows.subject else { continue };
            let subject = self.object_text(reached, &value)?;
            let value = self.key(reached)?.value(&value);
            let step = self.step(ty, &found.name, source, &rows.object, &subject)?;
            let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
            let inner = names::function("why", self.ty(reached)?, self.target_name(reached, *target)?);
            let from = format!("FROM {} WHERE {}{condition}", rows.from, rows.object.equals(id));
            parts.push(format!(
                "SELECT jsonb_build_array({step}) || w.chain AS chain {}",
                with_chain(&from, &format!("{inner}({value})"))
            ));
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    fn climb_name(&self, graph: GraphId) -> Emit<String> {
        Ok(format!("{}.climb__{}", names::GEN, self.graph_name(graph)?))
    }

    /// `climb__GRAPH(id)`: the object and its ancestors, nearest first, each with the links that lead to it.
    fn climb_function(&self, graph: GraphId, made: &mut Made) -> Emit<()> {
        let mut links = Vec::new();
        let mut key_type = "bigint";
        for link in &self.graph(graph)?.links {
            let found = self.relation(link.child, link.relation)?;
            let Some(source) = found.sources.get(link.source) else { continue };
            let (children, parents) = (self.nodes(graph, link.child)?, self.nodes(graph, link.parent)?);
            key_type = children.held_type();
            let rows = self.rows(link.child, link.relation, source)?;
            let Some(value) = rows.subject else { continue };
            let parent = self.ty(link.parent)?;
            let subject = self.object_text(link.parent, &value)?;
            let step = self.step(link.child, &found.name, source, &rows.object, &subject)?;
            let mut conditions: Vec<String> = rows.condition.into_iter().collect();
            if let Some(condition) = &link.condition {
                let test = self.on_row(&self.ty(link.child)?.table, condition, "this");
                conditions.push(match &source.place {
                    // The row is the child's own.
                    place if place.is_in_row() => test,
                    _ => {
                        let child = self.ty(link.child)?;
                        let same = self.key(link.child)?.of_row("this").equals(&rows.object);
                        format!("EXISTS (SELECT FROM {} AS this WHERE {same} AND {test})", child.table)
                    }
                });
            }
            let there = self.key(link.parent)?.of_row("o").equals(&value);
            conditions.push(format!("EXISTS (SELECT FROM {} AS o WHERE {there})", parent.table));
            let (from, on_path) = children.rows_on(&rows.from, &rows.object, "frontier");
            links.push(format!(
                "SELECT {}::{key_type} AS child, {}::{key_type} AS parent, {step} AS step FROM {from} WHERE {on_path} AND {}",
                children.held_one(&rows.object),
                parents.held_one(&value),
                conditions.join(" AND ")
            ));
        }
        let name = self.climb_name(graph)?;
        let sql = format!(
            "CREATE FUNCTION {name}(start {key_type}) RETURNS TABLE(id {key_type}, steps jsonb)\nLANGUAGE plpgsql STABLE STRICT ROWS 20\n\
             SET search_path = pg_catalog, pg_temp\nAS $authz$\n#variable_conflict use_column\nDECLARE\n  \
             frontier {key_type}[] := ARRAY[start];\n  seen {key_type}[] := ARRAY[start];\n  next {key_type}[];\n  \
             paths jsonb := jsonb_build_object(start::text, '[]'::jsonb);\n  link record;\nBEGIN\n  id := start;\n  steps := '[]';\n  RETURN NEXT;\n  \
             WHILE cardinality(frontier) > 0 LOOP\n    next := '{{}}';\n    FOR link IN SELECT DISTINCT ON (l.parent) l.child, l.parent, l.step FROM (\n{}\n    ) l\n    \
             WHERE l.parent <> ALL (seen) ORDER BY l.parent LOOP\n      id := link.parent;\n      \
             steps := (paths -> link.child::text) || jsonb_build_array(link.step);\n      \
             paths := paths || jsonb_build_object(id::text, steps);\n      seen := seen || id;\n      next := next || id;\n      RETURN NEXT;\n    \
             END LOOP;\n    frontier := next;\n  END LOOP;\nEND $authz$",
            indented(&indented(&links.join("\nUNION ALL\n")))
        );
        made.function(&name, sql, false);
        Ok(())
    }

    /// What each way to hold the permission needs, as a JSON array (SQL text) over the row `this`.
    pub fn needs(&self, scope: &mut Scope, terms: &[Expr]) -> Emit<String> {
        let mut entries = Vec::new();
        for term in terms {
            let parts: Vec<&Expr> = match term {
                Expr::And(parts) => parts.iter().collect(),
                other => vec![other],
            };
            let mut texts = Vec::new();
            for part in parts {
                let check = self.check(scope, part)?;
                texts.push(format!(
                    "jsonb_build_object('part', {}, 'holds', coalesce({check}, false))",
                    literal(&describe(self, scope.ty, part))
                ));
            }
            entries.push(format!(
                "jsonb_build_object('needs', {}, 'parts', jsonb_build_array({}))",
                literal(&describe(self, scope.ty, term)),
                texts.join(", ")
            ));
        }
        Ok(format!("jsonb_build_array({})", entries.join(",\n      ")))
    }

    fn explain_api(&self, made: &mut Made) -> Emit<()> {
        let arms = self.permission_arms(|ty, permission| {
            let def = self.ty(ty)?;
            let found = self.permission(ty, permission)?;
            let key = self.key(ty)?;
            let same = key.of_row("this").equals(&key.of_text("authz__id"));
            let terms = logic::row_terms(self.model, ty, &found.expr);
            let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Probe);
            let needs = self.needs(&mut scope, &terms)?;
            let counts = self.counts(ty, "this")?;
            let ways: Vec<serde_json::Value> = terms
                .iter()
                .map(|term| serde_json::json!({ "needs": describe(self, ty, term) }))
                .collect();
            let ways = literal(&serde_json::Value::from(ways).to_string());
            Ok(format!(
                "authz__answer := jsonb_build_object('object', authz__kind || ' ' || authz__id, 'permission', authz__perm,\n  \
                 'principal', coalesce(authz.principal(), 'nobody'), 'allowed', authz.can(authz__kind, authz__id, authz__perm));\n\
                 IF (authz__answer -> 'allowed')::boolean THEN\n  \
                 SELECT authz__answer || jsonb_build_object('chains', jsonb_agg(c.chain ORDER BY jsonb_array_length(c.chain), c.chain::text)) INTO authz__answer\n  \
                 FROM (SELECT DISTINCT w AS chain, jsonb_array_length(w) AS length FROM {}(authz__id::{}) w ORDER BY 2, 1 LIMIT {MOST_CHAINS}) c;\n\
                 ELSIF authz_int.is_operator() THEN\n  SELECT {needs} INTO authz__missing\n  FROM {} AS this WHERE {same}{counts};\n  \
                 authz__answer := authz__answer || jsonb_build_object('missing', coalesce(authz__missing, '[]'), 'exists', authz__missing IS NOT NULL);\nELSE\n  \
                 -- Which part holds, and whether there is such an object, is not the caller's to know.\n  \
                 authz__answer := authz__answer || jsonb_build_object('missing', {ways}::jsonb);\nEND IF;",
                names::function("why", def, &found.name),
                key.sql(),
                def.table,
            ) + "\nPERFORM set_config('authz.session', authz__before, true);\nRETURN authz__answer;")
        })?;
        let user = self.ty(self.model.user)?;
        Api {
            name: "authz.explain",
            args: &["kind text", "id text", "perm text", "subject_id text DEFAULT NULL"],
            returns: "jsonb",
            volatility: "VOLATILE",
            declare: "  authz__before text := coalesce(current_setting('authz.session', true), '');\n  authz__answer jsonb;\n  authz__missing jsonb;\n",
            body: format!(
                "  IF authz__subject_id IS NOT NULL AND authz_int.is_operator() THEN\n    PERFORM authz_gen.sign_in({}, authz__subject_id);\n  \
                 ELSIF authz__subject_id IS NOT NULL AND authz.uid()::text IS DISTINCT FROM authz__subject_id THEN\n    \
                 RAISE EXCEPTION 'AZ705: only the operator may ask about somebody else' USING ERRCODE = '42501';\n  END IF;\n{arms}  RETURN NULL;",
                literal(&user.name)
            ),
        }
        .add(made);
        Ok(())
    }
}

/// `FROM ...` with the chains of a function beside it.
fn with_chain(from: &str, call: &str) -> String {
    match from.split_once(" WHERE ") {
        Some((from, condition)) => format!("{from}, LATERAL {call} w(chain) WHERE {condition}"),
        None => format!("{from}, LATERAL {call} w(chain)"),
    }
}
