//! A directory's groups, brought over whole.

use futures_util::future::BoxFuture;

use super::unsuitable;
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Workload};

/// `import`
pub static IMPORT: Scenario = Scenario {
    name: "import",
    family: Family::Work,
    measures: "bulk group sync: the members of a team replaced by half of the users, then by the other half; as the \
               owner, as a directory's connector writes, each in one transaction",
    preparation: "makes a team for each connection, with a folder of its own that it works in",
    outcomes: &[("ok", "who came in may edit the team's folder at once, who went may not")],
    criterion: Criterion {
        words: "membership decides at once, both ways, and nothing failed",
        allowed: &["ok"],
        required: &["ok"],
        verify: true,
    },
    load: Load::FEW,
    how: How::Workload(|setting| Box::pin(async move { import(setting).await })),
};

/// At most so many members.
const MEMBERS: usize = 1000;

struct Import {
    /// A team and its folder, for each connection.
    teams: Vec<(i64, i64)>,
    /// The two halves.
    halves: [Vec<i64>; 2],
    notes: Vec<String>,
}

async fn import(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let doing = || BenchError::database("making teams");
    let mut rng = crate::bench::random::Rng::split(setting.seed, "import", 0);
    // The folders belong to somebody who is in neither half, in an organisation nobody of the halves is an admin of.
    let (_, org, owner) =
        setting.world.folder_and_holder(&mut rng).ok_or_else(|| unsuitable("there are no folders"))?;
    let admins = "SELECT coalesce(array_agg(user_id), '{}') FROM app.org_admins WHERE org_id = $1";
    let admins: Vec<i64> =
        setting.owner.query_one(admins, &[&org]).await.and_then(|row| row.try_get(0)).map_err(doing())?;
    let may = |user: &&i64| **user != owner && !admins.contains(user);
    let users: Vec<i64> = setting.world.users().iter().filter(may).copied().take(2 * MEMBERS).collect();
    let (first, second) = users.split_at(users.len() / 2);
    if first.is_empty() {
        return Err(unsuitable("there are too few users for a team"));
    }
    let mut teams = Vec::new();
    for number in 0..setting.concurrency {
        let name = format!("{}import {number}", setting.world.prefix);
        let make = "WITH team AS (INSERT INTO app.teams (org_id, name) VALUES ($1, $3) RETURNING id),
                folder AS (INSERT INTO app.folders (org_id, owner_id, name) VALUES ($1, $2, $3) RETURNING id)
            SELECT team.id, folder.id FROM team, folder";
        let row = setting.owner.query_one(make, &[&org, &owner, &name]).await.map_err(doing())?;
        let (team, folder): (i64, i64) = (row.try_get(0).map_err(doing())?, row.try_get(1).map_err(doing())?);
        let works = "INSERT INTO app.folder_teams (folder_id, team_id) VALUES ($1, $2)";
        setting.owner.execute(works, &[&folder, &team]).await.map_err(doing())?;
        teams.push((team, folder));
    }
    let notes = vec![format!("{} members each time", first.len())];
    Ok(Box::new(Import { teams, halves: [first.to_vec(), second.to_vec()], notes }))
}

const SYNC: &str = "WITH wanted AS (SELECT unnest($2::bigint[]) AS user_id),
    gone AS (DELETE FROM app.team_members m WHERE team_id = $1 AND NOT EXISTS (SELECT FROM wanted w WHERE w.user_id = m.user_id))
    INSERT INTO app.team_members (team_id, user_id) SELECT $1, user_id FROM wanted ON CONFLICT DO NOTHING";

const CAN_EDIT: &str = "SELECT authz.can('folder', $1::bigint, 'edit')";

impl Workload for Import {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some((team, folder)) = self.teams.get(worker.number).copied() else {
                return Ok(Outcome::labelled("failed"));
            };
            for (new, old) in [(0, 1), (1, 0)] {
                let (Some(new), Some(old)) = (self.halves.get(new), self.halves.get(old)) else { continue };
                worker.client.batch_execute("BEGIN; SET LOCAL ROLE NONE").await?;
                worker.client.execute(SYNC, &[&team, new]).await?;
                worker.commit().await?;
                let (Some(inside), Some(outside)) = (worker.rng.pick(new).copied(), worker.rng.pick(old).copied())
                else {
                    continue;
                };
                for (user, expected) in [(inside, true), (outside, false)] {
                    let rows = worker.ask(user, CAN_EDIT, &[&folder]).await?;
                    let may = rows.first().map(|row| row.try_get::<_, bool>(0)).transpose()?;
                    if may != Some(expected) {
                        let what =
                            if expected { "was brought in and may not edit" } else { "was taken out and may edit" };
                        return Ok(Outcome::violation(format!("user {user} {what} folder {folder}")));
                    }
                }
            }
            Ok(Outcome::ok())
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
