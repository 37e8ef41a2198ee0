//! A database, an owner, an app role and a small policy made by hand, to be applied.

use rowdeck::compiler::emit::graph::emit_graph;
use rowdeck::compiler::ident::{Ident, QualName};
use rowdeck::compiler::model::*;
use rowdeck::compiler::objects::*;
use rowdeck::compiler::span::SourceMap;
use rowdeck::db::apply::{ApplyOptions, apply};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::plan::state::hex_digest;
use rowdeck::db::plan::{Plan, Policy, plan};
use rowdeck::db::progress::{ApplyReport, Progress, Reporter};
use std::time::Duration;
use tokio_postgres::Client;

use crate::docs;
use crate::server::Database;

/// See the module.
pub struct Ground {
    pub database: Database,
    /// A superuser's session, to look on.
    pub admin: Client,
    pub owner: String,
    pub app: String,
}

impl Ground {
    /// Makes one, with a hundred folders.
    pub async fn new() -> Ground {
        let database = Database::create().await;
        let admin = database.connect().await;
        let (owner, app) = (format!("owner_{}", database.name), format!("app_{}", database.name));
        let sql = format!(
            "CREATE ROLE {owner} LOGIN; CREATE ROLE {app} LOGIN; GRANT {app} TO {owner};
             GRANT CREATE ON DATABASE {db} TO {owner}; SET ROLE {owner};
             CREATE SCHEMA app;
             CREATE TABLE app.folders (id bigint PRIMARY KEY, parent_id bigint REFERENCES app.folders,
               name text NOT NULL DEFAULT '', inherit boolean NOT NULL DEFAULT true);
             CREATE TABLE app.folder_links (folder_id bigint REFERENCES app.folders, shown_in bigint REFERENCES app.folders,
               PRIMARY KEY (folder_id, shown_in));
             INSERT INTO app.folders SELECT i, nullif(i / 3, 0) FROM generate_series(1, 100) AS i;
             GRANT USAGE ON SCHEMA app TO {app}; GRANT SELECT ON app.folders TO {app}; RESET ROLE",
            db = database.name
        );
        admin.batch_execute(&sql).await.unwrap();
        Ground { database, admin, owner, app }
    }

    /// The owner's session.
    pub async fn session(&self) -> Session {
        Session::open(&self.database.target(&self.owner)).await.unwrap()
    }

    /// Everything the database defines, with the transactions that wrote it.
    pub async fn fingerprint(&self) -> String {
        let spaces =
            "SELECT oid FROM pg_namespace WHERE nspname IN ('app', 'authz', 'authz_gen', 'authz_int', 'public')";
        let sql = format!(
            "SELECT string_agg(line, E'\n' ORDER BY line) FROM (
               SELECT format('schema %s %s %s', nspname, nspacl, xmin) FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast)'
               UNION ALL SELECT format('rel %s %s %s %s %s %s', oid, relname, relfilenode, relrowsecurity, relacl, xmin)
                         FROM pg_class WHERE relnamespace IN ({spaces})
               UNION ALL SELECT format('proc %s %s %s', oid, proname, xmin) FROM pg_proc WHERE pronamespace IN ({spaces})
               UNION ALL SELECT format('trigger %s %s %s', oid, tgname, xmin) FROM pg_trigger
               UNION ALL SELECT format('policy %s %s %s', oid, polname, xmin) FROM pg_policy
               UNION ALL SELECT format('rewrite %s %s', oid, xmin) FROM pg_rewrite WHERE oid > 16384
               UNION ALL SELECT format('folder %s', to_jsonb(f)) FROM app.folders f) AS l(line)"
        );
        self.admin.query_one(&sql, &[]).await.unwrap().get(0)
    }

    /// One value.
    pub async fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(&self, sql: &str) -> T {
        self.admin.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
    }

    /// The pid of the session that applies: it holds the advisory lock.
    pub async fn applier(&self) -> i32 {
        for _ in 0..500 {
            let sql = "SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory'
                       AND l.granted AND a.datname = current_database() AND a.query ~ 'pg_sleep'";
            if let Some(row) = self.admin.query_opt(sql, &[]).await.unwrap() {
                return row.get(0);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("nobody applies");
    }

    /// A policy on this ground.
    pub fn draft(&self) -> Draft {
        let mut model = docs::model();
        model.app_role = Ident::new(&self.app);
        Draft {
            text: "the policy".to_owned(),
            model,
            see: "true".to_owned(),
            columns: "id",
            extra: Vec::new(),
            shares: true,
        }
    }
}

/// A policy to be.
#[derive(Clone)]
pub struct Draft {
    pub text: String,
    pub model: Model,
    /// Which folders may be read.
    pub see: String,
    /// The columns of the view that says so.
    pub columns: &'static str,
    /// More objects.
    pub extra: Vec<Object>,
    /// With a table of shares.
    pub shares: bool,
}

/// One object.
pub fn object(kind: ObjectKind, phase: Phase, name: &str, sql: &str) -> Object {
    Object { kind, name: name.to_owned(), sql: sql.to_owned(), locks: Vec::new(), phase, graph: None }
}

impl Draft {
    pub fn emitted(&self) -> Emitted {
        let app = &self.model.app_role;
        let (mut objects, mut graphs) = (Vec::new(), Vec::new());
        for at in 0..self.model.graphs.len() {
            let graph = emit_graph(&self.model, GraphId(at), 16).unwrap();
            objects.extend(graph.objects);
            graphs.push(graph.tables);
        }
        let folders = QualName::new("app", "folders");
        let exclusive = vec![Lock { table: folders.clone(), mode: LockMode::AccessExclusive }];
        if self.shares {
            let name = "authz_int.share_folder_viewer_user";
            let sql = format!("CREATE TABLE IF NOT EXISTS {name} (object bigint, subject bigint)");
            objects.push(object(ObjectKind::Table, Phase::Tables, name, &sql));
            let index = format!("{name}_object");
            let sql = format!("CREATE INDEX IF NOT EXISTS share_folder_viewer_user_object ON {name} (object)");
            objects.push(object(ObjectKind::Index, Phase::Tables, &index, &sql));
        }
        let sql =
            format!("CREATE VIEW authz_gen.folder_view AS SELECT {} FROM app.folders WHERE {}", self.columns, self.see);
        objects.push(object(ObjectKind::View, Phase::Functions, "authz_gen.folder_view", &sql));
        let sql = "CREATE OR REPLACE FUNCTION authz_gen.sees(v_id bigint) RETURNS boolean LANGUAGE sql STABLE \
                   SECURITY DEFINER AS 'SELECT EXISTS (SELECT FROM authz_gen.folder_view v WHERE v.id = v_id)'";
        objects.push(object(ObjectKind::Function, Phase::Functions, "authz_gen.sees", sql));
        let mut rules = vec![
            object(
                ObjectKind::Policy,
                Phase::Rules,
                "app.folders: row-level security",
                "ALTER TABLE app.folders ENABLE ROW LEVEL SECURITY",
            ),
            object(
                ObjectKind::Policy,
                Phase::Rules,
                "app.folders: select",
                &format!("CREATE POLICY authz_select ON app.folders FOR SELECT TO {app} USING (authz_gen.sees(id))"),
            ),
        ];
        rules.iter_mut().for_each(|rule| rule.locks.clone_from(&exclusive));
        objects.extend(rules);
        let sql = format!("GRANT USAGE ON SCHEMA authz_gen TO {app}");
        objects.push(object(ObjectKind::Grant, Phase::Rules, "authz_gen: usage", &sql));
        objects.extend(self.extra.iter().cloned());
        objects.sort_by_key(|object| object.phase);
        let digest = hex_digest(objects.iter().map(|object| object.sql.as_bytes()));
        let tables =
            vec![GovernedTable { table: folders, role: app.clone(), view: None, expanded_views: 1, views: Vec::new() }];
        Emitted { objects, graphs, tables, digest }
    }

    /// Applies it.
    pub async fn apply(&self, session: &Session) -> Result<ApplyReport, DbError> {
        self.apply_with(session, &quick(), &Reporter::silent(), &Stop::never()).await
    }

    /// Applies it with everything said.
    pub async fn apply_with(
        &self,
        session: &Session,
        options: &ApplyOptions,
        reporter: &Reporter,
        stop: &Stop,
    ) -> Result<ApplyReport, DbError> {
        let (sources, emitted) = (SourceMap::single("docs.authz", self.text.clone()), self.emitted());
        let policy = Policy { name: "docs.authz", sources: &sources, model: &self.model, emitted: &emitted };
        apply(session, &policy, options, reporter, stop).await
    }

    /// Plans it.
    pub async fn plan(&self, client: &Client) -> Plan {
        let (sources, emitted) = (SourceMap::single("docs.authz", self.text.clone()), self.emitted());
        let policy = Policy { name: "docs.authz", sources: &sources, model: &self.model, emitted: &emitted };
        plan(client, &policy).await.unwrap()
    }
}

/// Options with little patience.
pub fn quick() -> ApplyOptions {
    ApplyOptions {
        lock_timeout: Duration::from_millis(100),
        budget: Duration::from_millis(1500),
        cluster_size: 16,
        agreed_plan: None,
        ..ApplyOptions::default()
    }
}

/// A reporter, and what it was told once it is dropped.
pub fn listen() -> (Reporter, tokio::task::JoinHandle<Vec<Progress>>) {
    let (reporter, mut news) = Reporter::channel();
    let heard = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(progress) = news.recv().await {
            all.push(progress);
        }
        all
    });
    (reporter, heard)
}
