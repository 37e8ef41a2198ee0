//! Locks: which tables our policies and triggers are on now, and how many entries of the server's lock table an apply
//! needs. All of an apply is one transaction, and PostgreSQL keeps every lock of it until the commit.

use std::collections::BTreeSet;

use serde::Serialize;
use tokio_postgres::Client;

use super::changes::PlannedObject;
use super::{Blocker, Step, names};
use crate::compiler::ident::QualName;
use crate::compiler::objects::{Lock, LockMode, Object, ObjectKind};
use crate::db::error::DbError;

/// What an apply needs of the server's lock table, and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct LockNeed {
    /// Entries an apply needs at most.
    pub needed: u64,
    /// `max_locks_per_transaction * (max_connections + max_prepared_transactions)`.
    pub capacity: u64,
    /// Entries in use now.
    pub held: u64,
    /// `capacity` less `held`.
    pub free: u64,
    /// `max_locks_per_transaction`.
    pub per_transaction: u64,
}

impl LockNeed {
    /// AZ802, when there is not room enough.
    pub(super) fn blocker(&self) -> Option<Blocker> {
        if self.needed <= self.free {
            return None;
        }
        // The same number of transactions, each with room for its share of what is held and needed; a tenth to spare.
        let transactions = self.capacity.checked_div(self.per_transaction).unwrap_or(1).max(1);
        let wanted = (self.held + self.needed + self.needed / 10).div_ceil(transactions);
        Some(
            Blocker::new(format!(
                "applying needs {} locks and the server has {} free of {}",
                self.needed, self.free, self.capacity
            ))
            .code(802)
            .help(format!("set max_locks_per_transaction to {wanted} or more, and restart the server")),
        )
    }
}

const TABLE: &str = "
SELECT current_setting('max_locks_per_transaction')::int8,
       current_setting('max_connections')::int8 + current_setting('max_prepared_transactions')::int8,
       (SELECT count(DISTINCT (l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid, l.transactionid::text,
                               l.classid, l.objid, l.objsubid))
        FROM pg_catalog.pg_locks l WHERE NOT l.fastpath)";

/// Counts what an apply needs at most. A table that is made is four entries (itself, its key's index, and its TOAST
/// table with its index), everything else that is made or dropped is one, a table that is touched brings its indexes,
/// and the catalogs we write come on top.
pub(super) async fn need(client: &Client, objects: &[PlannedObject], steps: &[Step]) -> Result<LockNeed, DbError> {
    const CATALOGS: u64 = 128;
    let row = client.query_one(TABLE, &[]).await?;
    let (each, transactions, held): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let (per_transaction, held) = (count(each), count(held));
    let capacity = per_transaction.saturating_mul(count(transactions));
    let needed = if steps.is_empty() {
        0
    } else {
        let made: u64 =
            objects.iter().filter(|o| !o.kept).map(|o| if o.kind == ObjectKind::Table { 4 } else { 1 }).sum();
        let tables: BTreeSet<&QualName> = steps.iter().flat_map(|step| &step.locks).map(|lock| &lock.table).collect();
        let touched = u64::try_from(tables.len()).unwrap_or(u64::MAX);
        CATALOGS + made + touched + indexes(client, &tables).await?
    };
    Ok(LockNeed { needed, capacity, held, free: capacity.saturating_sub(held), per_transaction })
}

async fn indexes(client: &Client, tables: &BTreeSet<&QualName>) -> Result<u64, DbError> {
    let schemas: Vec<&str> = tables.iter().map(|table| table.schema.as_str()).collect();
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let sql = "SELECT count(*) FROM unnest($1::text[], $2::text[]) AS t(s, n)
         JOIN pg_catalog.pg_namespace n ON n.nspname = t.s
         JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.n
         JOIN pg_catalog.pg_index i ON i.indrelid = c.oid";
    let row = client.query_one(sql, &[&schemas, &names]).await?;
    Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0))
}

/// Tables that carry policies or triggers of ours now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    /// Tables with policies named `authz_*`.
    pub policies: BTreeSet<QualName>,
    /// The same, each with its name.
    pub named_policies: BTreeSet<(QualName, String)>,
    /// Triggers named `authz_*`, each with its table.
    pub triggers: BTreeSet<(QualName, String)>,
}

impl Touched {
    /// Triggers that are none of `expected`: those of graphs and rules that this policy does not have.
    pub(crate) fn stale<'a>(&self, expected: impl Iterator<Item = &'a Object>) -> BTreeSet<(QualName, String)> {
        let mut kept = BTreeSet::new();
        for object in expected.filter(|object| object.kind == ObjectKind::Trigger) {
            if let (Some(name), Some(lock)) = (names::created(&object.sql, "TRIGGER"), object.locks.first()) {
                kept.insert((lock.table.clone(), name));
            }
        }
        self.triggers.difference(&kept).cloned().collect()
    }
}

/// Reads [`Touched`].
pub(crate) async fn touched_now(client: &Client) -> Result<Touched, DbError> {
    let mut out = Touched::default();
    let rows = client
        .query(
            "SELECT 'p', n.nspname::text, c.relname::text, p.polname::text FROM pg_catalog.pg_policy p
             JOIN pg_catalog.pg_class c ON c.oid = p.polrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE starts_with(p.polname::text, 'authz_')
             UNION ALL
             SELECT 't', n.nspname::text, c.relname::text, t.tgname::text FROM pg_catalog.pg_trigger t
             JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE starts_with(t.tgname::text, 'authz_') AND NOT t.tgisinternal AND t.tgparentid = 0
               AND n.nspname NOT IN ('authz', 'authz_gen', 'authz_int')",
            &[],
        )
        .await?;
    for row in rows {
        let table = QualName::new(row.try_get::<_, String>(1)?, row.try_get::<_, String>(2)?);
        match row.try_get::<_, &str>(0)? {
            "p" => {
                out.named_policies.insert((table.clone(), row.try_get(3)?));
                out.policies.insert(table);
            }
            _ => {
                out.triggers.insert((table, row.try_get(3)?));
            }
        }
    }
    Ok(out)
}

/// Locks in a few words, one phrase for each mode.
pub(super) fn words(locks: &[Lock]) -> String {
    let phrase = |mode: LockMode| {
        let tables: Vec<String> = locks.iter().filter(|l| l.mode == mode).map(|l| l.table.plain()).collect();
        (!tables.is_empty()).then(|| format!("{} on {}", mode.sql(), tables.join(", ")))
    };
    let phrases: Vec<String> = [LockMode::AccessExclusive, LockMode::ShareRowExclusive, LockMode::AccessShare]
        .into_iter()
        .filter_map(phrase)
        .collect();
    if phrases.is_empty() { "none".to_owned() } else { phrases.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_locks_name_the_setting() {
        let need = LockNeed { needed: 45_000, capacity: 6_400, held: 10, free: 6_390, per_transaction: 64 };
        let help = need.blocker().and_then(|b| b.help).unwrap_or_default();
        assert_eq!(help, "set max_locks_per_transaction to 496 or more, and restart the server");
        assert_eq!(LockNeed { needed: 6_390, ..need }.blocker(), None);
    }

    #[test]
    fn locks_are_said_by_mode() {
        let lock = |name: &str, mode| Lock { table: QualName::new("app", name), mode };
        let list = [
            lock("a", LockMode::ShareRowExclusive),
            lock("B b", LockMode::AccessExclusive),
            lock("c", LockMode::AccessExclusive),
        ];
        assert_eq!(words(&list), "ACCESS EXCLUSIVE on app.\"B b\", app.c; SHARE ROW EXCLUSIVE on app.a");
        assert_eq!(words(&[]), "none");
    }
}
