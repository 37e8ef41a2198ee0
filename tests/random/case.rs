//! A case: a policy, its tables, random statements in transactions, and how the SQL is generated.

use rowdeck::compiler::emit::{Options, emit_with, runtime};
use rowdeck::compiler::evaluate::facts::{Caller, Datum, key_text};
use rowdeck::compiler::model::{KeyType, Model};
use rowdeck::compiler::prove::sample::{Random, Sampler, key};
use rowdeck::compiler::prove::shape::{ColumnKind, Shape, TableShape, shape};
use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use crate::server::Database;
use crate::write::Probe;
use crate::{change, compare};

/// Everything that makes a case what it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    pub name: String,
    pub seed: u64,
    /// Cluster size, first rows, held rows.
    pub options: (u32, u32, u32),
    pub policy: Vec<String>,
    pub schema: Vec<String>,
    /// Transactions; everything is compared after each but the first, which fills the tables.
    pub transactions: Vec<Vec<String>>,
    /// A write to try at the end, for a case that failed there.
    #[serde(default)]
    pub probe: Option<Probe>,
}

/// What became of a case.
pub enum Outcome {
    /// Everything was the same, in so many comparisons.
    Agrees(u64),
    Fails(Failure),
}

/// Where it was not.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Transactions that were run.
    pub after: usize,
    pub what: String,
    /// The write that came out otherwise.
    pub probe: Option<Probe>,
}

/// What went wrong, and with which write.
pub struct Wrong {
    pub what: String,
    pub probe: Option<Probe>,
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Wrong { what, probe: None }
    }
}

/// Compared transactions of a case.
fn steps() -> usize {
    std::env::var("ROWDECK_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// How many objects of each type there are to choose from.
pub fn sizes(model: &Model) -> Vec<usize> {
    let nested = |def: &rowdeck::compiler::model::TypeDef| def.relations.iter().any(|r| r.to_objects);
    model
        .types
        .iter()
        .map(|def| {
            if def.signs_in {
                5
            } else if nested(def) {
                11
            } else {
                5
            }
        })
        .collect()
}

pub fn compile(policy: &str) -> Result<Model, String> {
    let compiled = rowdeck::compiler::compile("random.authz", policy);
    compiled.model.ok_or_else(|| {
        let lines = compiled.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message));
        lines.collect::<Vec<_>>().join("\n")
    })
}

impl Case {
    /// A case of this policy, everything else chosen by the seed.
    pub fn of_policy(name: &str, policy: &str, seed: u64) -> Result<Case, String> {
        let model = compile(policy)?;
        let shape = shape(&model).map_err(|e| format!("{e} at {:?}", e.span))?;
        let mut random = Random(seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(name.len() as u64));
        let forms = [(32, 2000), (0, 2000), (0, 0), (3, 7)];
        let form = forms[random.below(forms.len())];
        let options = ([2, 3, 256][random.below(3)], form.0, form.1);
        let keys = [Foreign::Restrict, Foreign::Cascade][random.below(2)];
        let schema = schema(&model, &shape, keys);
        let sizes = sizes(&model);
        let mut sampler = Sampler { model: &model, shape: &shape, sizes, random };
        let mut transactions = vec![change::fill(&mut sampler)];
        for _ in 0..steps() {
            // Several statements in one transaction now and then.
            let many = 1 + sampler.random.below(3) * sampler.random.below(3);
            transactions.push((0..many).map(|_| change::change(&mut sampler)).collect());
        }
        let policy = policy.lines().map(str::to_owned).collect();
        Ok(Case { name: name.to_owned(), seed, options, policy, schema, transactions, probe: None })
    }

    pub fn policy_text(&self) -> String {
        self.policy.join("\n") + "\n"
    }

    /// The case in a database of its own.
    pub async fn run(&self) -> Outcome {
        let model = match compile(&self.policy_text()) {
            Ok(model) => model,
            Err(what) => return Outcome::Fails(Failure { after: 0, what, probe: None }),
        };
        let mut checks = 0;
        let mut after = 0;
        let (database, client) = match self.set_up(&model).await {
            Ok(found) => found,
            Err(what) => return Outcome::Fails(Failure { after, what, probe: None }),
        };
        let fails = |after, Wrong { what, probe }| Outcome::Fails(Failure { after, what, probe });
        let mut random = Random(self.seed);
        for statements in &self.transactions {
            if let Err(what) = transaction(&client, statements).await {
                return fails(after, Wrong::from(what));
            }
            after += 1;
            if self.probe.is_some() || (after == 1 && self.transactions.len() > 1) {
                continue;
            }
            match compare::everything(&client, &model, &mut random).await {
                Ok(more) => checks += more,
                Err(wrong) => return fails(after, wrong),
            }
        }
        if let Some(probe) = &self.probe
            && let Err(wrong) = compare::probe(&client, &model, probe).await
        {
            return fails(after, wrong);
        }
        drop(client);
        database.remove().await;
        Outcome::Agrees(checks)
    }

    async fn set_up(&self, model: &Model) -> Result<(Database, Client), String> {
        let options = Options { cluster_size: self.options.0, first_rows: self.options.1, held_rows: self.options.2 };
        let emitted = emit_with(model, &options).map_err(|all| format!("not emitted: {}", all[0].message))?;
        let database = Database::create().await;
        let client = database.connect().await;
        let run = async |sql: &str| client.batch_execute(sql).await.map_err(|e| said(&e, sql));
        run("SET client_min_messages = warning").await?;
        run("DO $$ BEGIN CREATE ROLE app_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$").await?;
        for sql in &self.schema {
            run(sql).await?;
        }
        let mistake = Mistake::planted();
        let mut all = String::from("BEGIN;");
        for (_, sql) in runtime() {
            all.push_str(&mistake.in_text(sql));
        }
        run(&all).await?;
        for object in emitted.objects.iter().filter(|object| !mistake.drops(&object.sql)) {
            run(&mistake.in_text(&object.sql)).await?;
        }
        run("COMMIT").await?;
        Ok((database, client))
    }

    /// The case as a file to keep, and in words.
    pub fn report(&self) -> String {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/random");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}-{}.json", self.name, self.seed));
        std::fs::write(&path, serde_json::to_string_pretty(self).unwrap()).unwrap();
        let mut out = format!("smallest case found, in {}:\n{}\n", path.display(), self.policy_text());
        for (number, statements) in self.transactions.iter().enumerate() {
            out.push_str(&format!("-- transaction {number}\n"));
            statements.iter().for_each(|sql| out.push_str(&format!("{sql};\n")));
        }
        if let Some(probe) = &self.probe {
            out.push_str(&format!("-- {probe:?}\n"));
        }
        out
    }
}

/// A mistake planted in the generated SQL by `scripts/mutate`, as JSON in `ROWDECK_MISTAKE`; none otherwise.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Mistake {
    search: String,
    replace: String,
    /// Statements that hold all of these are left out.
    drop: Vec<String>,
}

impl Mistake {
    fn planted() -> Mistake {
        std::env::var("ROWDECK_MISTAKE").map(|json| serde_json::from_str(&json).unwrap()).unwrap_or_default()
    }

    fn in_text(&self, sql: &str) -> String {
        if self.search.is_empty() || !sql.contains(&self.search) {
            return sql.to_owned();
        }
        planted(sql);
        sql.replace(&self.search, &self.replace)
    }

    fn drops(&self, sql: &str) -> bool {
        let drops = !self.drop.is_empty() && self.drop.iter().all(|text| sql.contains(text));
        if drops {
            planted(sql);
        }
        drops
    }
}

/// Tells the script that the mistake has a place in this policy.
fn planted(sql: &str) {
    println!("PLANTED in {}", sql.lines().next().unwrap_or_default());
}

/// What the server said of a statement.
pub fn said(e: &tokio_postgres::Error, sql: &str) -> String {
    match e.as_db_error() {
        Some(e) => format!("{} {} {}\n{sql}", e.code().code(), e.message(), e.where_().unwrap_or_default()),
        None => format!("{e}\n{sql}"),
    }
}

/// A transaction; a statement that is refused leaves nothing behind. Any error that is not a refusal is a failure.
async fn transaction(client: &Client, statements: &[String]) -> Result<(), String> {
    let run = async |sql: &str| client.batch_execute(sql).await.map_err(|e| said(&e, sql));
    run("BEGIN").await?;
    for sql in statements {
        run("SAVEPOINT s").await?;
        if let Err(e) = client.batch_execute(sql).await {
            let what = said(&e, sql);
            let refused = e.as_db_error().is_some_and(|e| {
                let code = e.code().code();
                code.starts_with("23")
                    || (["P0001", "42501", "22023", "28000"].contains(&code) && e.message().starts_with("AZ7"))
            });
            if !refused {
                return Err(what);
            }
            run("ROLLBACK TO s").await?;
        }
    }
    run("COMMIT").await
}

/// What foreign keys there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Foreign {
    None,
    Restrict,
    Cascade,
}

/// The tables of a policy as SQL.
fn schema(model: &Model, shape: &Shape, foreign: Foreign) -> Vec<String> {
    let mut schemas: Vec<_> = shape.tables.iter().map(|t| &t.name.schema).collect();
    schemas.sort();
    schemas.dedup();
    let mut sql: Vec<String> = schemas.iter().map(|schema| format!("CREATE SCHEMA {schema}")).collect();
    sql.extend(shape.tables.iter().map(table_sql));
    for table in shape.tables.iter().filter(|_| foreign != Foreign::None) {
        for reference in &table.references {
            let ([ty], None) = (reference.types.as_slice(), reference.type_column) else { continue };
            let def = &model.types[ty.0];
            let names = |columns: Vec<String>| columns.join(", ");
            let own = names(reference.columns.iter().map(|at| table.columns[*at].name.to_string()).collect());
            let theirs = names(def.key.iter().map(|k| k.column.to_string()).collect());
            let actions = match foreign {
                Foreign::Cascade => "ON DELETE CASCADE ON UPDATE CASCADE",
                _ => "",
            };
            sql.push(format!(
                "ALTER TABLE {} ADD FOREIGN KEY ({own}) REFERENCES {} ({theirs}) {actions}",
                table.name, def.table
            ));
        }
    }
    sql
}

fn table_sql(table: &TableShape) -> String {
    let ty = |kind: &ColumnKind| match kind {
        ColumnKind::Key(ty) => ty.sql(),
        ColumnKind::TypeName(_) | ColumnKind::Text(_) => KeyType::Text.sql(),
        ColumnKind::Bool => "boolean",
        ColumnKind::Int(_) => "integer",
        ColumnKind::Time => "timestamptz",
    };
    let mut lines: Vec<String> = table.columns.iter().map(|c| format!("{} {}", c.name, ty(&c.kind))).collect();
    if table.ty.is_some() {
        let key: Vec<String> = table.key.iter().map(|at| table.columns[*at].name.to_string()).collect();
        lines.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {} ({})", table.name, lines.join(", "))
}

/// A value as SQL.
pub fn literal(datum: &Datum) -> String {
    match datum {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(value) => value.to_string(),
        Datum::Text(text) | Datum::Other(text) => rowdeck::compiler::ident::literal(text),
        Datum::Time(micros) => format!("to_timestamp({})", micros / 1_000_000),
    }
}

/// Whoever asks: every user, one that does not exist, and nobody; and some of them with a context.
pub fn callers(model: &Model) -> Vec<Caller> {
    let mut found = vec![Caller::nobody()];
    for (at, _) in model.types.iter().enumerate().filter(|(_, def)| def.signs_in) {
        let ty = rowdeck::compiler::model::TypeId(at);
        found.extend((1..=sizes(model)[at] + 1).map(|number| Caller::of(ty, key(model, ty, number))));
    }
    let mut with = found[1].clone();
    with.context.insert("k".to_owned(), "a".to_owned());
    found.push(with);
    found
}

/// A caller in words.
pub fn caller_name(model: &Model, caller: &Caller) -> String {
    let who = match &caller.principal {
        Some((ty, key)) => format!("{} {}", model.types[ty.0].name, key_text(key)),
        None => "nobody".to_owned(),
    };
    if caller.context.is_empty() { who } else { format!("{who} with {:?}", caller.context) }
}
