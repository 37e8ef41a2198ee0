//! Every scenario. A new one is a file like these: a `Scenario` with its words, its labels and its criterion, a struct
//! with what it prepared, and `operate`.

mod flood;
mod import;
pub(crate) mod lists;
mod mixed;
mod oversized;
mod races;
mod reads;
mod tamper;
pub mod visibility;
mod whole;
pub(crate) mod writes;

use super::error::BenchError;
use super::facts::{Facts, Permission};
use super::scenario::{Scenario, Setting};
use tokio_postgres::Client;

pub use whole::{BIG_MOVE, LIVE, SCALE, VERSUS};

/// All of them, in the order in which they are listed.
pub static ALL: &[&Scenario] = &[
    &reads::CHECK,
    &reads::OPEN_FILE,
    &reads::OPEN_FOLDER,
    &lists::LIST,
    &lists::LIST_PAGES,
    &lists::READERS,
    &reads::WHO,
    &reads::EXPLAIN,
    &writes::CREATE,
    &writes::MOVE,
    &writes::LINK,
    &writes::SHARE,
    &import::IMPORT,
    &mixed::MIXED,
    &oversized::OVERSIZED,
    &flood::FLOOD,
    &lists::COMPLEX_LIST,
    &tamper::TAMPER,
    &races::SHARE_DELETE,
    &races::MOVE_RACE,
    &visibility::REVOKE,
    &BIG_MOVE,
    &LIVE,
    &SCALE,
    &VERSUS,
];

/// The scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

fn unsuitable(why: &str) -> BenchError {
    BenchError::Unsuitable(why.to_owned())
}

/// Labels and what they mean.
const OK: (&str, &str) = ("ok", "the answer is the one the rows give, worked out by the benchmark itself");
const REFUSED: (&str, &str) = ("refused", "a no where no is right: it costs as much to know as a yes");

/// What decides which files somebody sees: folders they may edit, folders they may view, files shared with them.
struct Sight {
    user: i64,
    edit: Vec<i64>,
    view: Vec<i64>,
    shared: Vec<i64>,
}

impl Sight {
    fn of(facts: &Facts, user: i64) -> Sight {
        Sight {
            user,
            edit: facts.folders_of(user, Permission::Edit),
            view: facts.folders_of(user, Permission::View),
            shared: facts.files_shared_with(user),
        }
    }

    /// Runs `SELECT what FROM app.files WHERE they see it`, as the owner, whom no rule binds.
    async fn ask(&self, owner: &Client, what: &str, rest: &str) -> Result<Vec<tokio_postgres::Row>, BenchError> {
        let query = format!(
            "SELECT {what} FROM app.files f WHERE (owner_id = $1 OR folder_id = ANY ($2::bigint[])
               OR (folder_id = ANY ($3::bigint[]) AND NOT confidential) OR id = ANY ($4::bigint[])) {rest}"
        );
        owner
            .query(&query, &[&self.user, &self.edit, &self.view, &self.shared])
            .await
            .map_err(BenchError::database("working out what a reader sees"))
    }

    /// Their ids, in the order that `rest` asks for.
    async fn ids(&self, owner: &Client, rest: &str) -> Result<Vec<i64>, BenchError> {
        let rows = self.ask(owner, "f.id", rest).await?;
        rows.iter().map(|row| row.try_get(0).map_err(BenchError::database("reading ids"))).collect()
    }

    /// How many, and the sum of their ids.
    async fn total(&self, owner: &Client, and: &str) -> Result<(i64, i64), BenchError> {
        let rows = self.ask(owner, "count(*), coalesce(sum(f.id), 0)::bigint", and).await?;
        let doing = || BenchError::database("counting what a reader sees");
        let row = rows.first().ok_or_else(|| unsuitable("a count without a row"))?;
        Ok((row.try_get(0).map_err(doing())?, row.try_get(1).map_err(doing())?))
    }
}

/// Readers of every kind: admins who reach every folder, ordinary users, the one who holds most, the one who sees least.
fn readers(setting: &Setting, ordinary: usize) -> Vec<i64> {
    let mut rng = super::random::Rng::split(setting.seed, "readers", 0);
    let mut readers: Vec<i64> = setting.world.admin().into_iter().collect();
    readers.extend(setting.facts.heaviest_reader());
    readers.extend(setting.facts.lightest_reader(&mut rng));
    readers.extend((0..ordinary).filter_map(|_| rng.pick(setting.world.users()).copied()));
    readers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_scenario_says_all_there_is_to_say() {
        let names: HashSet<&str> = ALL.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), ALL.len(), "two of one name");
        for one in ALL {
            assert!(!one.measures.is_empty() && !one.preparation.is_empty(), "{}", one.name);
            assert!(!one.criterion.words.is_empty() && !one.outcomes.is_empty(), "{}", one.name);
            for label in one.criterion.allowed.iter().chain(one.criterion.required) {
                let told = one.outcomes.iter().any(|(told, _)| told == label);
                assert!(told, "{}: the label {label} is not explained", one.name);
            }
        }
        assert!(find("check").is_some() && find("no such").is_none());
    }
}
