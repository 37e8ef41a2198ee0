//! A database with a policy of a test's own, and the comparison of everything that answers who may do what with a plain
//! expectation: can, list, perms, rows, who, explain.

use std::collections::BTreeSet;

use rowdeck::compiler::emit::{Options, emit_with, runtime};
use rowdeck::compiler::{Compiled, compile};
use rowdeck::db::apply::{ApplyOptions, apply};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::plan::{Plan, Policy, plan};
use rowdeck::db::progress::{ApplyReport, Reporter};
use tokio_postgres::Client;

use crate::apply_world::quick;
use crate::server::Database;

/// See the module.
pub struct Town {
    pub database: Database,
    /// Owns everything.
    pub owner: Client,
    /// What the names in all SQL of the test become.
    pub names: fn(&str) -> String,
}

/// One permission of one type, and who is expected to hold it.
pub struct Ask<'a> {
    pub ty: &'a str,
    pub permission: &'a str,
    /// A query for all ids as the API's text, in the order of the key.
    pub ids: &'a str,
    /// A query for the ids that the table's rules show, when `permission` is its select rule.
    pub rows: Option<&'a str>,
    pub holds: &'a dyn Fn(Option<&str>, &str) -> bool,
}

/// Compiles a policy that must be right.
pub fn compiled(policy: &str) -> Compiled {
    let compiled = compile("policy.authz", policy);
    assert!(!compiled.has_errors(), "{:#?}", compiled.diagnostics);
    compiled
}

impl Town {
    /// Makes the tables and the policy, by the statements it becomes.
    pub async fn new(schema: &str, policy: &str, options: &Options) -> Town {
        let town = Town::bare(schema).await;
        town.emit(policy, options).await;
        town
    }

    /// Makes the tables.
    pub async fn bare(schema: &str) -> Town {
        Town::named(schema, str::to_owned).await
    }

    /// Makes the tables under other names.
    pub async fn named(schema: &str, names: fn(&str) -> String) -> Town {
        let database = Database::create().await;
        let owner = database.connect().await;
        let role = "DO $$ BEGIN CREATE ROLE app_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$";
        owner.batch_execute(&names(role)).await.unwrap();
        owner.batch_execute(&names(schema)).await.unwrap();
        owner.batch_execute("SET client_min_messages = warning").await.unwrap();
        Town { database, owner, names }
    }

    /// Applies a policy as an operator does.
    pub async fn apply(&self, policy: &str) -> Result<ApplyReport, DbError> {
        let compiled = compiled(&(self.names)(policy));
        let model = compiled.model.unwrap();
        let emitted = emit_with(&model, &Options::default()).unwrap();
        let policy = Policy { name: "policy.authz", sources: &compiled.sources, model: &model, emitted: &emitted };
        let session = Session::open(&self.database.target("postgres")).await.unwrap();
        let options = ApplyOptions { cluster_size: 256, ..quick() };
        apply(&session, &policy, &options, &Reporter::silent(), &Stop::never()).await
    }

    /// Where it is.
    pub fn database(&self) -> &Database {
        &self.database
    }

    async fn emit(&self, policy: &str, options: &Options) {
        let emitted = emit_with(&compiled(&(self.names)(policy)).model.unwrap(), options).unwrap();
        let mut all = String::from("BEGIN;");
        for (_, sql) in runtime() {
            all.push_str(sql);
        }
        self.owner.batch_execute(&all).await.unwrap();
        for object in &emitted.objects {
            if let Err(e) = self.owner.batch_execute(&object.sql).await {
                panic!("{}: {e:?}\n{}", object.name, object.sql);
            }
        }
        self.owner.batch_execute("COMMIT; SET client_min_messages = warning").await.unwrap();
    }

    /// Plans another policy here.
    pub async fn plan(&self, policy: &str) -> Plan {
        let compiled = compiled(&(self.names)(policy));
        let model = compiled.model.unwrap();
        let emitted = emit_with(&model, &Options::default()).unwrap();
        let policy = Policy { name: "policy.authz", sources: &compiled.sources, model: &model, emitted: &emitted };
        plan(&self.owner, &policy).await.unwrap()
    }

    /// Statements as the owner.
    pub async fn run(&self, sql: &str) {
        self.owner.batch_execute(&(self.names)(sql)).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }

    /// Rows of texts, as the owner.
    pub async fn texts(&self, sql: &str) -> Vec<Vec<String>> {
        texts(&self.owner, &(self.names)(sql)).await
    }

    /// Statements as the app, signed in as a user; rolled back when `keep` is false.
    pub async fn act(&self, user: Option<&str>, sql: &str, keep: bool) -> Result<(), tokio_postgres::Error> {
        self.sign_in(user).await;
        let done = self.owner.batch_execute(&(self.names)(sql)).await;
        let end = if keep && done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.owner.batch_execute(end).await.unwrap();
        done
    }

    async fn sign_in(&self, user: Option<&str>) {
        self.owner.batch_execute(&(self.names)("BEGIN; SET LOCAL ROLE app_user")).await.unwrap();
        let (kind, id) = match user {
            // `service:a` is another type's; anything else is a user.
            Some(name) => name.split_once(':').map_or((Some("user"), Some(name)), |(kind, id)| (Some(kind), Some(id))),
            None => (None, None),
        };
        self.owner.execute("SELECT authz.act_as($1, $2::text)", &[&kind, &id]).await.unwrap();
    }

    /// The statement is refused with this SQLSTATE.
    pub async fn refused(&self, user: Option<&str>, sql: &str, code: &str) -> String {
        let error = self.act(user, sql, false).await.expect_err(sql);
        let error = error.as_db_error().unwrap().clone();
        assert_eq!(error.code().code(), code, "{sql}: {error:?}");
        error.message().to_owned()
    }

    /// Rows of texts, as the app signed in as a user.
    pub async fn seen(&self, user: Option<&str>, sql: &str) -> Vec<Vec<String>> {
        self.sign_in(user).await;
        let rows = self.texts(sql).await;
        self.owner.batch_execute("ROLLBACK").await.unwrap();
        rows
    }

    /// Everything agrees with what is expected, for each of these users and for nobody.
    pub async fn agree(&self, users: &[&str], ask: &Ask<'_>) {
        let Ask { ty, permission, ids, rows, holds } = *ask;
        let all: Vec<String> = self.texts(ids).await.into_iter().map(|row| row[0].clone()).collect();
        for user in users.iter().copied().map(Some).chain([None]) {
            let expected: Vec<&String> = all.iter().filter(|id| holds(user, id)).collect();
            self.sign_in(user).await;
            let sql = "SELECT a FROM unnest($1::text[]) a WHERE authz.can($2, a, $3)";
            let can = self.owner.query(sql, &[&all, &ty, &permission]).await.unwrap_or_else(|e| panic!("{e:?}"));
            let can: Vec<String> = can.iter().map(|r| r.get(0)).collect();
            assert_eq!(can.iter().collect::<Vec<_>>(), expected, "can {permission} {ty} as {user:?}");
            let list = self.owner.query("SELECT * FROM authz.list($1, $2)", &[&ty, &permission]).await.unwrap();
            let list: Vec<String> = list.iter().map(|r| r.get(0)).collect();
            assert_eq!(list.iter().collect::<Vec<_>>(), expected, "list {permission} {ty} as {user:?}");
            self.pages(ty, permission, &list).await;
            let sql = "SELECT a FROM unnest($1::text[]) a WHERE $3 = ANY (authz.perms($2, a))";
            let perms = self.owner.query(sql, &[&all, &ty, &permission]).await.unwrap();
            assert_eq!(perms.len(), expected.len(), "perms with {permission} {ty} as {user:?}");
            if let Some(rows) = rows {
                let seen: BTreeSet<String> = self.texts(rows).await.into_iter().map(|r| r[0].clone()).collect();
                let expected: BTreeSet<String> = expected.iter().map(|id| (*id).clone()).collect();
                assert_eq!(seen, expected, "rows of {ty} as {user:?}");
            }
            self.owner.batch_execute("ROLLBACK").await.unwrap();
        }
        self.agree_who(users, ask, &all).await;
    }

    async fn pages(&self, ty: &str, permission: &str, whole: &[String]) {
        let mut found: Vec<String> = Vec::new();
        loop {
            let sql = "SELECT * FROM authz.list($1, $2, $3::text, 3)";
            let page = self.owner.query(sql, &[&ty, &permission, &found.last()]).await.unwrap();
            found.extend(page.iter().map(|r| r.get::<_, String>(0)));
            if page.len() < 3 {
                break;
            }
        }
        assert_eq!(found, whole, "pages of {ty} {permission}");
    }

    /// `who` and the verdict of `explain`, as the operator.
    async fn agree_who(&self, users: &[&str], ask: &Ask<'_>, all: &[String]) {
        let Ask { ty, permission, holds, .. } = *ask;
        // Whoever cannot sign in is not among everyone.
        let mut real: Vec<&str> = Vec::new();
        for user in users {
            if !self.seen(Some(user), "SELECT authz.principal()").await[0][0].is_empty() {
                real.push(user);
            }
        }
        for id in all {
            let sql = "SELECT * FROM authz.who($1, $2::text, $3)";
            let rows = self.owner.query(sql, &[&ty, id, &permission]).await;
            let rows = rows.unwrap_or_else(|e| panic!("who {permission} {ty} {id}: {e:?}"));
            let mut who: BTreeSet<String> = BTreeSet::new();
            for row in &rows {
                let (kind, name): (String, String) = (row.get(0), row.get(1));
                let except: Vec<String> = row.get::<_, Option<Vec<String>>>(2).unwrap_or_default();
                let all_of = |service: bool| {
                    real.iter().filter(move |u| u.starts_with("service:") == service).map(|u| (*u).to_owned())
                };
                match (kind.as_str(), name.as_str()) {
                    ("user", _) => drop(who.insert(name)),
                    ("everyone", _) => who.extend(all_of(false).filter(|u| !except.contains(u))),
                    ("service", "*") => {
                        who.extend(all_of(true).filter(|u| !except.iter().any(|e| u[8..] == **e)));
                    }
                    ("service", _) => drop(who.insert(format!("service:{name}"))),
                    ("anyone", _) => who.extend(users.iter().map(|u| (*u).to_owned())),
                    ("nobody", _) => assert!(holds(None, id), "who says nobody holds {permission} on {ty} {id}"),
                    ("link", _) => {}
                    other => panic!("who says {other:?}"),
                }
            }
            let expected: BTreeSet<String> =
                users.iter().filter(|u| holds(Some(u), id)).map(|u| (*u).to_owned()).collect();
            assert_eq!(who, expected, "who holds {permission} on {ty} {id}");
            for user in users {
                self.sign_in(Some(user)).await;
                let sql = "SELECT authz.explain($1, $2::text, $3)";
                let answer = self.owner.query_one(sql, &[&ty, id, &permission]).await;
                let answer: serde_json::Value = answer.unwrap_or_else(|e| panic!("explain {ty} {id}: {e:?}")).get(0);
                self.owner.batch_execute("ROLLBACK").await.unwrap();
                let expected = holds(Some(user), id);
                assert_eq!(answer["allowed"], expected, "explain {permission} {ty} {id} for {user}: {answer}");
                if expected {
                    let chain = answer["chains"][0].as_array().unwrap_or_else(|| panic!("no chain: {answer}"));
                    assert!(!chain.is_empty(), "{answer}");
                    assert_eq!(chain[0]["object"], format!("{ty} {id}"), "{answer}");
                }
            }
        }
    }
}

async fn texts(client: &Client, sql: &str) -> Vec<Vec<String>> {
    let rows = client.query(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    rows.iter()
        .map(|row| (0..row.len()).map(|at| row.get::<_, Option<String>>(at).unwrap_or_default()).collect())
        .collect()
}

/// The same with sets of pairs, for facts.
pub async fn pairs(town: &Town, sql: &str) -> BTreeSet<(String, String)> {
    town.texts(sql).await.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
}
