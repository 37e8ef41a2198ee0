//! `authz.who`: who holds a permission on an object. Each relation and permission gets a function from ids to the
//! subjects that may hold it. Where the expression is made of relations alone its answer is exact; where a deny or a
//! condition about the asker is in it, the answer is a superset, and each candidate is asked as themselves.

use crate::compiler::ident::literal;
use crate::compiler::model::{Expr, PermId, RelId, Source, Subject, Target, TypeId};

use super::api::Api;
use super::condition;
use super::context::{Emit, Policy, not_built};
use super::names;
use super::relations::indented;
use super::views::Made;

/// `kind` is the name of a type that signs in and `id` a key as text, or `*` for everyone signed in as it; `everyone`,
/// the same for users; `link` and the number of a share link; or `anyone`. The answer of `authz.who` also has `nobody`,
/// which is whoever is not signed in, and with everyone the ids of those who do not hold it.
const SUBJECTS: &str = "TABLE(kind text, id text)";
/// With more exceptions than this, who holds a permission is listed one by one.
const MOST_EXCEPTIONS: u32 = 100;

impl Policy<'_> {
    /// The functions of every relation and permission, and `authz.who` over them.
    pub fn who_objects(&self, made: &mut Made) -> Emit<()> {
        for (at, def) in self.model.types.iter().enumerate() {
            let ty = TypeId(at);
            for (rel, relation) in def.relations.iter().enumerate().filter(|(_, r)| !r.to_objects) {
                let members = self.members(ty, RelId(rel), "p.ids")?;
                let query = self.of_those_there(ty, &members)?;
                self.who_function(ty, &relation.name, &query, made)?;
            }
            for permission in 0..def.permissions.len() {
                let found = self.permission(ty, PermId(permission))?;
                let query = match &found.inherits {
                    Some(inherits) => {
                        let nodes = self.nodes(inherits.graph, ty)?;
                        let path = format!(
                            "ARRAY(SELECT DISTINCT a FROM {}, unnest({}) a WHERE {})::{}[]",
                            nodes.from(),
                            nodes.path(),
                            self.key(ty)?.starts_among(&nodes.id(), "authz__ids"),
                            nodes.held_type()
                        );
                        let mut parts = Vec::new();
                        for start in self.starts(inherits)? {
                            let ids = self.nodes(inherits.graph, start.ty)?.ids_on("p.ids");
                            parts.push(self.who_any(start.ty, &start.terms, &ids)?);
                        }
                        let who = parts.join("\nUNION ALL\n");
                        format!(
                            "SELECT w.kind, w.id FROM (SELECT {path} AS ids OFFSET 0) p, LATERAL (\n{}\n) w",
                            indented(&who)
                        )
                    }
                    None => {
                        let who = self.who(ty, &found.expr, "p.ids")?;
                        self.of_those_there(ty, &who)?
                    }
                };
                self.who_function(ty, &found.name, &query, made)?;
            }
        }
        self.who_api(made)
    }

    /// `query`, which names an array of ids `p.ids`, for those of `authz__ids` that are there and count: a reference may
    /// outlive what it names.
    fn of_those_there(&self, ty: TypeId, query: &str) -> Emit<String> {
        let key = self.key(ty)?;
        let id = key.of_row("this");
        let there = format!(
            "ARRAY(SELECT {} FROM {} AS this WHERE {}{})",
            key.value(&id),
            self.ty(ty)?.table,
            key.among(&id, "authz__ids"),
            self.counts(ty, "this")?
        );
        Ok(format!("SELECT w.kind, w.id FROM (SELECT {there} AS ids OFFSET 0) p, LATERAL (\n{}\n) w", indented(query)))
    }

    fn who_function(&self, ty: TypeId, part: &str, query: &str, made: &mut Made) -> Emit<()> {
        let name = names::function("who", self.ty(ty)?, part);
        let key_type = self.key(ty)?.sql();
        let sql = format!(
            "CREATE FUNCTION {name}(authz__ids {key_type}[]) RETURNS {SUBJECTS}\nLANGUAGE plpgsql STABLE ROWS 100\n\
             SET search_path = pg_catalog, pg_temp\nSET plan_cache_mode = force_generic_plan\nAS $authz$\n\
             #variable_conflict use_column\nBEGIN\n  RETURN QUERY SELECT DISTINCT q.kind, q.id FROM (\n{}\n  ) q;\nEND $authz$",
            indented(query)
        );
        made.function(&name, sql, false);
        Ok(())
    }

    fn who_any(&self, ty: TypeId, terms: &[Expr], ids: &str) -> Emit<String> {
        let parts: Vec<String> = terms.iter().map(|term| self.who(ty, term, ids)).collect::<Emit<_>>()?;
        Ok(if parts.is_empty() { nobody() } else { parts.join("\nUNION ALL\n") })
    }

    /// `SELECT kind, id` of all that hold `expr` on one of the objects of the array `ids`, and perhaps more.
    pub fn who(&self, ty: TypeId, expr: &Expr, ids: &str) -> Emit<String> {
        let def = self.ty(ty)?;
        match expr {
            Expr::Or(parts) => self.who_any(ty, parts, ids),
            Expr::And(parts) => {
                let mut people = None;
                let mut conditions = Vec::new();
                for part in parts {
                    match part {
                        Expr::Sql(c) if !condition::depends_on_asker(&c.sql) => {
                            conditions.push(self.on_row(&def.table, c, "this"))
                        }
                        Expr::Sql(_) | Expr::Not(_) => {}
                        other => people = people.or(Some(other)),
                    }
                }
                let narrowed = if conditions.is_empty() {
                    ids.to_owned()
                } else {
                    let key = self.key(ty)?;
                    let id = key.of_row("this");
                    format!(
                        "ARRAY(SELECT {} FROM {} AS this WHERE {} AND {})",
                        key.value(&id),
                        def.table,
                        key.among(&id, ids),
                        conditions.join(" AND ")
                    )
                };
                match people {
                    Some(people) => self.who(ty, people, &narrowed),
                    None => Ok(format!("SELECT 'anyone' AS kind, '' AS id WHERE cardinality({narrowed}) > 0")),
                }
            }
            Expr::Not(_) => Ok(anyone(ids)),
            Expr::Sql(c) if condition::depends_on_asker(&c.sql) => Ok(anyone(ids)),
            Expr::Sql(c) => {
                let key = self.key(ty)?;
                let test = self.on_row(&def.table, c, "this");
                Ok(format!(
                    "SELECT 'anyone' AS kind, '' AS id WHERE EXISTS (SELECT FROM {} AS this WHERE {} AND {test})",
                    def.table,
                    key.among(&key.of_row("this"), ids)
                ))
            }
            Expr::SignedIn(_) => {
                let all: Vec<String> = (self.model.principals())
                    .map(|to| {
                        let (kind, id) = self.everyone_of(to)?;
                        Ok(format!("SELECT {kind} AS kind, {id} AS id WHERE cardinality({ids}) > 0"))
                    })
                    .collect::<Emit<_>>()?;
                Ok(all.join("\nUNION ALL\n"))
            }
            Expr::Anyone(_) => Ok(anyone(ids)),
            Expr::Nobody(_) => Ok(nobody()),
            Expr::Relation(relation, _) => self.who_call(ty, &self.relation(ty, *relation)?.name, ids),
            Expr::Permission(permission, _) => self.who_call(ty, &self.permission(ty, *permission)?.name, ids),
            Expr::Follow { relation, targets, .. } => self.who_follow(ty, *relation, targets, ids),
        }
    }

    fn who_call(&self, ty: TypeId, part: &str, ids: &str) -> Emit<String> {
        Ok(format!("SELECT w.kind, w.id FROM {}({ids}) w", names::function("who", self.ty(ty)?, part)))
    }

    fn who_follow(&self, ty: TypeId, relation: RelId, targets: &[(TypeId, Target)], ids: &str) -> Emit<String> {
        let mut parts = Vec::new();
        for source in &self.relation(ty, relation)?.sources {
            let Subject::Type(reached) = source.subject else { continue };
            let Some((_, target)) = targets.iter().find(|(ty, _)| *ty == reached) else { continue };
            let found = self.subjects_of(ty, relation, source, ids)?;
            let part = self.target_name(reached, *target)?;
            parts.push(self.who_call(reached, part, &format!("ARRAY({found})"))?);
        }
        Ok(if parts.is_empty() { nobody() } else { parts.join("\nUNION ALL\n") })
    }

    /// `SELECT` of the subjects of a source, one value each, for the objects of the array `ids`.
    fn subjects_of(&self, ty: TypeId, relation: RelId, source: &Source, ids: &str) -> Emit<String> {
        let rows = self.rows(ty, relation, source)?;
        let subject = rows.subject.ok_or_else(|| not_built(source.span, "a source without a subject here"))?;
        let (Subject::Type(to) | Subject::Group(to, _)) = source.subject else {
            return Err(not_built(source.span, "a source without a subject here"));
        };
        let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
        Ok(format!(
            "SELECT {} FROM {} WHERE {} AND {}{condition}",
            self.key(to)?.value(&subject),
            rows.from,
            self.key(ty)?.among(&rows.object, ids),
            subject.is_there()
        ))
    }

    /// Everyone in a relation of the objects of the array `asked`, through groups in groups.
    fn members(&self, ty: TypeId, relation: RelId, asked: &str) -> Emit<String> {
        let found = self.relation(ty, relation)?;
        let (own, others): (Vec<&Source>, Vec<&Source>) =
            found.sources.iter().partition(|s| s.subject == Subject::Group(ty, relation));
        // With groups in groups the objects are those of the array and all that are members of them.
        let ids = if own.is_empty() { asked } else { "ARRAY(SELECT g.id FROM groups g)" };
        let mut parts = Vec::new();
        for source in others {
            parts.push(match source.subject {
                Subject::Type(to) => format!(
                    "SELECT {}::text AS kind, s.id::text AS id FROM ({}) s(id)",
                    literal(&self.ty(to)?.name),
                    self.subjects_of(ty, relation, source, ids)?
                ),
                Subject::Group(group, member) => {
                    let subjects = self.subjects_of(ty, relation, source, ids)?;
                    self.who_call(group, &self.relation(group, member)?.name, &format!("ARRAY({subjects})"))?
                }
                Subject::Everyone(_) | Subject::Anyone | Subject::Link => {
                    let rows = self.rows(ty, relation, source)?;
                    let (kind, id) = match source.subject {
                        Subject::Everyone(to) => self.everyone_of(to)?,
                        Subject::Link => ("'link'".to_owned(), "l.link::text".to_owned()),
                        _ => ("'anyone'".to_owned(), "''".to_owned()),
                    };
                    let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
                    format!(
                        "SELECT {kind} AS kind, {id} AS id FROM {} WHERE {}{condition}",
                        rows.from,
                        self.key(ty)?.among(&rows.object, ids)
                    )
                }
            });
        }
        let people = parts.join("\nUNION ALL\n");
        if own.is_empty() {
            return Ok(people);
        }
        let key = self.key(ty)?;
        let steps: Vec<String> = own
            .into_iter()
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let mut conditions: Vec<String> = rows.condition.into_iter().collect();
                if let Some(member) = &rows.subject {
                    conditions.push(self.there(ty, member)?);
                }
                let condition =
                    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
                let member = rows.subject.as_ref().map(|subject| key.value(subject)).unwrap_or_default();
                Ok(format!(
                    "SELECT {} AS id, {member} AS member FROM {}{condition}",
                    key.value(&rows.object),
                    rows.from
                ))
            })
            .collect::<Emit<_>>()?;
        Ok(format!(
            "WITH RECURSIVE groups(id) AS (\n  SELECT unnest({asked})\n  UNION\n  SELECT s.member FROM groups g JOIN (\n{}\n  ) s ON s.id = g.id\n)\n{people}",
            indented(&steps.join("\nUNION ALL\n"))
        ))
    }

    /// Whether the candidates of an expression are exactly those that hold it.
    fn exact(&self, ty: TypeId, expr: &Expr) -> bool {
        match expr {
            Expr::Or(parts) => parts.iter().all(|part| self.exact(ty, part)),
            Expr::And(parts) => {
                let people = parts.iter().filter(|part| !matches!(part, Expr::Sql(_))).count();
                people <= 1 && parts.iter().all(|part| self.exact(ty, part))
            }
            Expr::Not(_) => false,
            Expr::Sql(c) => !condition::depends_on_asker(&c.sql),
            Expr::Permission(id, _) => self.exact_permission(ty, *id),
            Expr::Follow { targets, .. } => targets.iter().all(|(reached, target)| match target {
                Target::Permission(id) => self.exact_permission(*reached, *id),
                Target::Relation(_) => true,
            }),
            _ => true,
        }
    }

    /// An inheriting permission names itself; its base decides.
    fn exact_permission(&self, ty: TypeId, id: PermId) -> bool {
        self.permission(ty, id).is_ok_and(|found| match &found.inherits {
            Some(inherits) => {
                let exact = |&(member, id): &(TypeId, PermId)| {
                    let found = self.permission(member, id).ok().and_then(|p| p.inherits.as_ref());
                    found.is_some_and(|member_of| self.exact(member, &member_of.base))
                };
                inherits.denies.is_empty() && inherits.members.iter().all(exact)
            }
            None => self.exact(ty, &found.expr),
        })
    }

    /// How everyone signed in as a type is written: a kind and an id, SQL text.
    pub fn everyone_of(&self, ty: TypeId) -> Emit<(String, String)> {
        if ty == self.model.user {
            return Ok(("'everyone'".to_owned(), "''".to_owned()));
        }
        Ok((literal(&self.ty(ty)?.name), "'*'".to_owned()))
    }

    /// The kinds that are types which sign in, as a list of SQL literals.
    fn principal_kinds(&self) -> Emit<String> {
        let kinds: Vec<String> =
            self.model.principals().map(|ty| Ok(literal(&self.ty(ty)?.name))).collect::<Emit<_>>()?;
        Ok(kinds.join(", "))
    }

    /// The condition that a row `w` of candidates means more than one principal.
    pub fn is_wide(&self) -> Emit<String> {
        Ok(format!("(w.kind NOT IN ({}) OR w.id = '*')", self.principal_kinds()?))
    }

    /// `SELECT id` of those principals of a type that are there, count and meet `test` on their row `this`.
    pub fn principals_of(&self, ty: TypeId, test: impl Fn(&str, &str) -> String) -> Emit<String> {
        let def = self.ty(ty)?;
        let key = self.key(ty)?;
        let id = key.of_row("this");
        let text = key.text(&id);
        let test = test(&literal(&def.name), &text);
        Ok(format!(
            "SELECT {text} AS id FROM {} AS this WHERE {test}{} ORDER BY {}",
            def.table,
            self.counts(ty, "this")?,
            id.list()
        ))
    }

    fn who_api(&self, made: &mut Made) -> Emit<()> {
        let wide = self.is_wide()?;
        let arms = self.permission_arms(|ty, permission| {
            let def = self.ty(ty)?;
            let found = self.permission(ty, permission)?;
            let object = self.key(ty)?;
            let candidates =
                format!("{}(ARRAY[authz__id::{}])", names::function("who", def, &found.name), object.sql());
            let among = |kind: &str, id: &str| {
                format!("EXISTS (SELECT FROM {candidates} w WHERE w.kind = {kind} AND w.id = {id})")
            };
            if self.exact_permission(ty, permission) {
                let mut parts = Vec::new();
                for principal in self.model.principals() {
                    let people = self.principals_of(principal, among)?;
                    let kind = literal(&self.ty(principal)?.name);
                    parts.push(format!("SELECT {kind}::text, p.id, NULL::text[] FROM (\n{people}\n) p"));
                }
                return Ok(format!(
                    "RETURN QUERY {}\nUNION ALL SELECT DISTINCT w.kind, w.id, NULL::text[] FROM {candidates} w WHERE {wide};\nRETURN;",
                    parts.join("\nUNION ALL ")
                ));
            }
            // The candidates are too many: ask as each of them. The session and its links are put back at the end.
            let view = names::view(def, &found.name);
            let holds = format!(
                "EXISTS (SELECT FROM {view} v WHERE {})",
                object.of_view("v").equals(&object.of_text("authz__id"))
            );
            let mut text = format!(
                "authz__wide := EXISTS (SELECT FROM {candidates} w WHERE {wide});\nPERFORM set_config('authz_ctx.links', '', true);\n"
            );
            for principal in self.model.principals() {
                let kind = literal(&self.ty(principal)?.name);
                let people = self.principals_of(principal, |kind, id| format!("(authz__wide OR {})", among(kind, id)))?;
                let (everyone, all) = self.everyone_of(principal)?;
                text.push_str(&format!(
                    "authz__holders := '{{}}';\nauthz__others := '{{}}';\nFOR authz__one IN {people} LOOP\n  \
                     PERFORM authz_int.sign_in({kind}, authz__one);\n  \
                     IF {holds} THEN\n    authz__holders := authz__holders || authz__one;\n  \
                     ELSE\n    authz__others := authz__others || authz__one;\n  END IF;\nEND LOOP;\n\
                     IF authz__wide AND cardinality(authz__holders) > cardinality(authz__others) AND cardinality(authz__others) <= {MOST_EXCEPTIONS} THEN\n  \
                     RETURN QUERY SELECT {everyone}::text, {all}::text, nullif(authz__others, '{{}}');\nELSE\n  \
                     RETURN QUERY SELECT {kind}::text, h, NULL::text[] FROM unnest(authz__holders) h;\nEND IF;\n"
                ));
            }
            text.push_str(&format!(
                "PERFORM authz_int.sign_in('', '');\n\
                 IF {holds} THEN\n  RETURN QUERY SELECT 'nobody', '', NULL::text[];\nEND IF;\n\
                 PERFORM set_config('authz.session', authz__before, true), set_config('authz_ctx.links', authz__links, true);\nRETURN;"
            ));
            Ok(text)
        })?;
        Api {
            name: "authz.who",
            args: &["kind text", "id text", "perm text"],
            returns: "TABLE(subject_kind text, subject_id text, exceptions text[])",
            volatility: "VOLATILE",
            declare: "  authz__before text := coalesce(current_setting('authz.session', true), '');\n  \
                      authz__links text := coalesce(current_setting('authz_ctx.links', true), '');\n  \
                      authz__wide boolean;\n  authz__one text;\n  authz__holders text[];\n  authz__others text[];\n",
            body: format!(
                "  IF NOT authz_int.is_operator() AND NOT authz.can(authz__kind, authz__id, authz__perm) THEN\n    \
                 RAISE EXCEPTION 'AZ705: only those who hold % may ask who holds it', authz__perm USING ERRCODE = '42501';\n  END IF;\n{arms}  RETURN;"
            ),
        }
        .add(made);
        Ok(())
    }
}

/// Whoever there is, where there is an object at all.
fn anyone(ids: &str) -> String {
    format!("SELECT 'anyone' AS kind, '' AS id WHERE cardinality({ids}) > 0")
}

fn nobody() -> String {
    "SELECT NULL::text AS kind, NULL::text AS id WHERE false".to_owned()
}
