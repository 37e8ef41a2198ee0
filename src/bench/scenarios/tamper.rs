//! Sessions that were not signed in by the policy.

use futures_util::future::BoxFuture;

use super::unsuitable;
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Trouble, Workload};

/// `settings-tamper`
pub static TAMPER: Scenario = Scenario {
    name: "settings-tamper",
    family: Family::Abuse,
    measures: "reads with a session record that was made up, altered, kept from another transaction or left over",
    preparation: "finds an admin who reaches every folder, to pass off as, and somebody to start from",
    outcomes: &[("refused", "an error with SQLSTATE 28000, and not one row")],
    criterion: Criterion {
        words: "every forged session is refused; none shows a row or answers a question",
        allowed: &["refused"],
        required: &["refused"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { tamper(setting) })),
};

struct Tamper {
    admin: i64,
    somebody: i64,
}

fn tamper(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let admin = setting.world.admin().ok_or_else(|| unsuitable("there is no admin who reaches every folder"))?;
    let somebody = setting.world.users().iter().copied().find(|user| *user != admin);
    let somebody = somebody.ok_or_else(|| unsuitable("there is only one user"))?;
    Ok(Box::new(Tamper { admin, somebody }))
}

const READS: [&str; 3] = [
    "SELECT id::text FROM app.files ORDER BY id LIMIT 5",
    "SELECT authz.list('file', 'view', NULL::text, 5)",
    "SELECT authz.can('folder', 1::bigint, 'view')::text",
];

impl Tamper {
    /// Puts a record in place that no policy made for this transaction.
    async fn forge(&self, worker: &mut Worker) -> Result<&'static str, Trouble> {
        let way = worker.rng.below(6);
        let seal = format!("{:016x}", worker.rng.draw()).repeat(4);
        if way == 0 {
            worker.client.batch_execute("BEGIN").await?;
            let record = format!("{seal}0|user||{}", self.admin);
            worker.client.execute("SELECT set_config('authz.session', $1, true)", &[&record]).await?;
            return Ok("made up");
        }
        worker.begin(self.somebody).await?;
        let row = worker.client.query_one("SELECT current_setting('authz.session', true)", &[]).await?;
        let kept: String = row.try_get(0)?;
        let (own_seal, body) = kept.split_at_checked(64).ok_or_else(|| Trouble::Other("no record".to_owned()))?;
        let (word, record) = match way {
            1 => (
                "a record with another id",
                format!("{own_seal}{}", body.replace(&self.somebody.to_string(), &self.admin.to_string())),
            ),
            2 => ("a record with another seal", format!("{seal}{body}")),
            3 => ("a record cut short", kept.chars().take(70).collect()),
            4 => ("an empty record", String::new()),
            _ => {
                worker.commit().await?;
                worker.client.batch_execute("BEGIN").await?;
                ("a record kept from another transaction", kept.clone())
            }
        };
        // An id that is the same in both would forge nothing.
        let record = if record == kept && way != 5 { format!("{seal}{body}") } else { record };
        worker.client.execute("SELECT set_config('authz.session', $1, true)", &[&record]).await?;
        Ok(word)
    }
}

impl Workload for Tamper {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let way = self.forge(worker).await?;
            let Some(sql) = worker.rng.pick(&READS).copied() else { return Ok(Outcome::refused()) };
            let ended = worker.client.query(sql, &[]).await;
            worker.client.batch_execute("ROLLBACK").await?;
            match ended {
                Err(error) if error.code().is_some_and(|code| code.code() == "28000") => Ok(Outcome::refused()),
                Err(error) => Err(error.into()),
                Ok(rows) => Ok(Outcome::violation(format!("{way}: {} rows from {sql}", rows.len()))),
            }
        })
    }
}
