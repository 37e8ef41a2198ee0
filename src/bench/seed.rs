//! A data set beside whatever is in the tables: the same numbers make the same rows, and every name begins with a prefix
//! of the seed, so that two seeds never meet and one can be removed again.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use super::error::BenchError;
use super::guard;
use super::run::say;
use super::world::CREATED_PREFIX;
use crate::db::error::DbError;
use crate::db::progress::Reporter;
use crate::db::target::Target;

/// How much of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Users.
    pub users: u32,
    /// Small organisations, with an admin each.
    pub orgs: u32,
    /// Members of the one large team.
    pub large: u32,
    /// Members of the group: a team of its own.
    pub group: u32,
    /// Teams, in chains three deep; everybody is in three.
    pub teams: u32,
    /// Folders.
    pub folders: u32,
    /// Files.
    pub files: u32,
    /// Users that stand for services.
    pub services: u32,
    /// What all choices follow from.
    pub seed: u32,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            users: 10_000,
            orgs: 500,
            large: 5_000,
            group: 1_000,
            teams: 1_000,
            folders: 20_000,
            files: 100_000,
            services: 20,
            seed: 1,
        }
    }
}

impl Spec {
    /// What all its names begin with.
    pub fn prefix(&self) -> String {
        format!("b{:x}-", self.seed)
    }

    fn check(&self) -> Result<(), DbError> {
        let least = [("users", self.users), ("orgs", self.orgs), ("teams", self.teams), ("folders", self.folders)];
        if let Some((name, _)) = least.into_iter().find(|(_, number)| *number == 0) {
            return Err(DbError::Usage(format!("--{name} must be at least 1")));
        }
        let most = [("users", self.users), ("folders", self.folders), ("files", self.files)];
        if let Some((name, _)) = most.into_iter().find(|(_, number)| *number > 50_000_000) {
            return Err(DbError::Usage(format!("--{name} must be at most 50,000,000")));
        }
        Ok(())
    }
}

/// What the seed file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeedFile {
    /// The program that made it.
    pub tool: String,
    /// Version of this format.
    pub format_version: u32,
    /// What all names begin with.
    pub prefix: String,
    /// What was asked for.
    pub spec: Spec,
    /// Where: role, host and database, no secret.
    pub target: String,
    /// Seconds it took.
    pub seconds: f64,
}

/// Reads a seed file: its prefix and its spec.
pub fn read_file(path: &Path) -> Result<(String, serde_json::Value), DbError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| DbError::io(format!("cannot read {}", path.display()), error))?;
    let file: SeedFile = serde_json::from_str(&text)
        .map_err(|error| DbError::Usage(format!("{} is no seed file: {error}", path.display())))?;
    let spec = serde_json::to_value(file.spec).map_err(|error| DbError::Unexpected(error.to_string()))?;
    Ok((file.prefix, spec))
}

/// Writes a seed file that only its owner can read: it is the place for keys that are shown once.
pub fn write_file(path: &Path, file: &SeedFile) -> Result<(), DbError> {
    let json = serde_json::to_string_pretty(file).map_err(|error| DbError::Unexpected(error.to_string()))?;
    let failed = |error| DbError::io(format!("cannot write {}", path.display()), error);
    let mut to = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    to.write_all(json.as_bytes()).and_then(|()| to.write_all(b"\n")).and_then(|()| to.sync_all()).map_err(failed)
}

/// Makes the rows, all or nothing.
pub async fn seed(target: &Target, spec: &Spec, reporter: &Reporter) -> Result<SeedFile, BenchError> {
    spec.check()?;
    let owner = guard::open(target).await?;
    let prefix = spec.prefix();
    let doing = || BenchError::database("making the seed's rows");
    let there = "SELECT EXISTS (SELECT FROM app.orgs WHERE starts_with(name, $1)
        UNION ALL SELECT FROM app.users WHERE starts_with(name, $1)
        UNION ALL SELECT FROM app.folders WHERE starts_with(name, $1))";
    let there: bool = owner.query_one(there, &[&prefix]).await.and_then(|row| row.try_get(0)).map_err(doing())?;
    if there {
        return Err(BenchError::Unsuitable(format!(
            "there are rows of seed {} already (names that begin with {prefix}); choose another --seed, or remove them \
             with: rowdeck bench clean --seed {}",
            spec.seed, spec.seed
        )));
    }
    let started = std::time::Instant::now();
    owner.batch_execute("BEGIN").await.map_err(doing())?;
    // A failure leaves the transaction open; the connection ends with this function, and the server rolls back.
    for (what, sql) in statements(spec) {
        say(reporter, format!("seed {}: {what}", spec.seed)).await;
        owner.batch_execute(&sql).await.map_err(BenchError::database(format!("making {what}")))?;
    }
    owner.batch_execute("COMMIT").await.map_err(doing())?;
    for table in [
        "orgs",
        "users",
        "org_admins",
        "teams",
        "team_members",
        "team_teams",
        "folders",
        "folder_links",
        "folder_teams",
        "files",
    ] {
        owner.batch_execute(&format!("ANALYZE app.{table}")).await.map_err(doing())?;
    }
    Ok(SeedFile {
        tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
        format_version: 1,
        prefix,
        spec: *spec,
        target: target.describe(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// A number from 0 to below `bound` that follows from the seed, a purpose and the row's number alone, the same on every
/// version of the server: two rounds of a multiplicative hash.
fn draw(spec: &Spec, purpose: u32, of: &str, bound: &str) -> String {
    let seed = u64::from(spec.seed) * 7919 + u64::from(purpose) * 104_729;
    let first = format!("((({of})::bigint * 2654435761 + {seed}) % 4294967296)");
    format!("((({first} # ({first} >> 15)) * 1103515245 % 4294967296 >> 4) % ({bound}))")
}

/// What to run, in order.
fn statements(spec: &Spec) -> Vec<(&'static str, String)> {
    let Spec { users, orgs, large, group, teams, folders, files, services, .. } = *spec;
    let prefix = spec.prefix();
    let map = |table: &str, letter: &str| {
        format!(
            "CREATE TEMP TABLE seed_{table} ON COMMIT DROP AS
               SELECT substr(name, length('{prefix}{letter}') + 1)::bigint AS n, id FROM app.{table}
                WHERE name ~ '^{prefix}{letter}[0-9]+$';
             ALTER TABLE seed_{table} ADD PRIMARY KEY (n); ANALYZE seed_{table};"
        )
    };
    let mut all = vec![
        (
            "organisations and users",
            format!(
                "INSERT INTO app.orgs (name) SELECT '{prefix}o' || n FROM generate_series(1, {orgs}) n;
                 INSERT INTO app.users (name) SELECT '{prefix}u' || n FROM generate_series(1, {users}) n;
                 INSERT INTO app.users (name) SELECT '{prefix}service' || n FROM generate_series(1, {services}) n;
                 {} {}
                 INSERT INTO app.org_admins (org_id, user_id) SELECT o.id, u.id FROM seed_orgs o
                   JOIN seed_users u ON u.n = 1 + {};",
                map("orgs", "o"),
                map("users", "u"),
                draw(spec, 1, "o.n", &users.to_string())
            ),
        ),
        (
            "teams",
            format!(
                "INSERT INTO app.teams (org_id, name) SELECT o.id, '{prefix}t' || g.n FROM generate_series(1, {teams}) g (n)
                   JOIN seed_orgs o ON o.n = 1 + {};
                 INSERT INTO app.teams (org_id, name) SELECT id, '{prefix}' || name FROM seed_orgs,
                   (VALUES ('large'), ('group')) AS of (name) WHERE n = 1;
                 {}
                 INSERT INTO app.team_members (team_id, user_id) SELECT DISTINCT t.id, u.id FROM seed_users u,
                   generate_series(0, 2) k JOIN seed_teams t ON true WHERE t.n = 1 + {};
                 INSERT INTO app.team_members (team_id, user_id) SELECT t.id, u.id FROM app.teams t, seed_users u
                   WHERE t.name = '{prefix}large' AND u.n <= {large} OR t.name = '{prefix}group' AND u.n <= {group};
                 INSERT INTO app.team_teams (team_id, member_team_id) SELECT outside.id, inside.id FROM seed_teams outside
                   JOIN seed_teams inside ON inside.n = outside.n + 1 WHERE outside.n % 3 <> 0;",
                draw(spec, 2, "g.n", &orgs.to_string()),
                map("teams", "t"),
                draw(spec, 3, "u.n * 3 + k", &teams.to_string())
            ),
        ),
        (
            "folders",
            "CREATE TEMP TABLE seed_tree (n bigint PRIMARY KEY, id bigint, org_id bigint) ON COMMIT DROP;".to_owned(),
        ),
    ];
    all.extend(waves(folders).into_iter().map(|(from, to)| {
        let parent = draw(spec, 4, "g.n", "g.n / 2");
        let org = draw(spec, 5, "w.n", &orgs.to_string());
        let owner = draw(spec, 6, "w.n", &users.to_string());
        let closed = draw(spec, 7, "w.n", "50");
        let sql = format!(
            "WITH w AS (SELECT g.n, CASE WHEN g.n > 10 THEN 1 + {parent} END AS up FROM generate_series({from}, {to}) g (n)),
             made AS (INSERT INTO app.folders (org_id, parent_id, owner_id, name, inherit)
               SELECT coalesce(p.org_id, o.id), p.id, u.id, '{prefix}f' || w.n, w.up IS NULL OR {closed} > 0
                 FROM w JOIN seed_orgs o ON o.n = 1 + {org} JOIN seed_users u ON u.n = 1 + {owner}
                 LEFT JOIN seed_tree p ON p.n = w.up
               RETURNING id, name, org_id)
             INSERT INTO seed_tree SELECT substr(name, length('{prefix}f') + 1)::bigint, id, org_id FROM made;
             ANALYZE seed_tree;"
        );
        ("folders, level by level", sql)
    }));
    all.push((
        "links, and the teams that work in folders",
        format!(
            "INSERT INTO app.folder_links (folder_id, shown_in) SELECT f.id, s.id FROM seed_tree f
               JOIN seed_tree s ON s.n = 1 + {} WHERE f.n > 40 AND f.n % 20 = 0;
             INSERT INTO app.folder_teams (folder_id, team_id) SELECT f.id, t.id FROM seed_tree f
               JOIN seed_teams t ON t.n = 1 + {};
             INSERT INTO app.folder_teams (folder_id, team_id) SELECT f.id, t.id FROM seed_tree f, app.teams t
               WHERE f.n % 40 = 7 AND t.name IN ('{prefix}large', '{prefix}group');",
            draw(spec, 8, "f.n", "f.n / 4"),
            draw(spec, 9, "f.n", &teams.to_string())
        ),
    ));
    all.push((
        "files",
        format!(
            "INSERT INTO app.files (folder_id, owner_id, name, confidential, created_at)
               SELECT f.id, u.id, '{prefix}d' || g.n, {} = 0,
                      timestamptz '2026-01-05 08:00:00+00' + g.n * interval '1 second'
                 FROM generate_series(1, {files}) g (n) JOIN seed_tree f ON f.n = 1 + {} JOIN seed_users u ON u.n = 1 + {};",
            draw(spec, 10, "g.n", "20"),
            draw(spec, 11, "g.n", &folders.to_string()),
            draw(spec, 12, "g.n", &users.to_string())
        ),
    ));
    all
}

/// Folders in waves whose parents (a number below half of their own) are all in earlier ones.
fn waves(folders: u32) -> Vec<(u32, u32)> {
    let mut waves = vec![(1, folders.min(10))];
    let mut from = 11;
    while from <= folders {
        let to = (from.saturating_mul(2) - 1).min(folders);
        waves.push((from, to));
        from = to + 1;
    }
    waves
}

/// Removes what a seed made, and what runs that were killed left. Says how many rows of each table.
pub async fn clean(target: &Target, seed: u32) -> Result<Vec<(&'static str, u64)>, BenchError> {
    let owner = guard::open(target).await?;
    let prefix = Spec { seed, ..Spec::default() }.prefix();
    let mut removed = Vec::new();
    let doing = || BenchError::database("removing a seed's rows");
    owner.batch_execute("BEGIN").await.map_err(doing())?;
    for table in ["files", "folders", "teams", "orgs", "users"] {
        removed.push((table, delete(&owner, table, &prefix).await?));
    }
    owner.batch_execute("COMMIT").await.map_err(doing())?;
    Ok(removed)
}

async fn delete(owner: &Client, table: &str, prefix: &str) -> Result<u64, BenchError> {
    let delete = format!("DELETE FROM app.{table} WHERE starts_with(name, $1) OR starts_with(name, $2)");
    owner.execute(&delete, &[&prefix, &CREATED_PREFIX]).await.map_err(BenchError::database("removing a seed's rows"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn every_folder_is_in_one_wave_and_its_parent_in_an_earlier_one() {
        for folders in [1, 10, 11, 25, 1000, 20_000] {
            let waves = waves(folders);
            assert_eq!(waves.iter().map(|(from, to)| to - from + 1).sum::<u32>(), folders);
            for (from, to) in waves.into_iter().skip(1) {
                // The highest parent of the wave is below half of its last number.
                assert!(to / 2 < from, "{from} to {to}");
            }
        }
    }

    #[test]
    fn seeds_have_names_of_their_own() {
        let of = |seed| Spec { seed, ..Spec::default() }.prefix();
        assert_eq!((of(1).as_str(), of(42).as_str()), ("b1-", "b2a-"));
        assert!(!of(0x11).starts_with(&of(1)), "removing one must not remove another");
    }
}
