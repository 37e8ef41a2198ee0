//! Random changes to the docs example, as the owner makes them: every kind of write that the policy's facts see.

/// A small generator (SplitMix64), so that a seed says everything about a run.
pub struct Random(pub u64);

impl Random {
    /// The next number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

/// How many of each there are to choose from.
pub const USERS: u64 = 6;
pub const ORGS: u64 = 2;
pub const TEAMS: u64 = 5;
pub const FOLDERS: u64 = 14;
pub const FILES: u64 = 12;

/// The rows every world starts with.
pub fn start() -> String {
    let mut sql = String::new();
    for user in 1..=USERS {
        sql.push_str(&format!("INSERT INTO app.users VALUES ({user}, 'user {user}', {});", user != USERS));
    }
    for org in 1..=ORGS {
        sql.push_str(&format!("INSERT INTO app.orgs VALUES ({org}, 'org {org}');"));
    }
    for team in 1..=TEAMS {
        sql.push_str(&format!("INSERT INTO app.teams VALUES ({team}, 1, 'team {team}');"));
    }
    sql
}

/// One random change. It may refuse itself (a row that is there already, a folder inside itself): that is fine too.
pub fn change(random: &mut Random) -> String {
    let user = random.below(USERS) + 1;
    let org = random.below(ORGS) + 1;
    let team = random.below(TEAMS) + 1;
    let other_team = random.below(TEAMS) + 1;
    let folder = random.below(FOLDERS) + 1;
    let other = random.below(FOLDERS) + 1;
    let file = random.below(FILES) + 1;
    let parent = if random.below(5) == 0 { "NULL".to_owned() } else { other.to_string() };
    let flag = random.below(3) > 0;
    match random.below(26) {
        0..=4 => format!(
            "INSERT INTO app.folders SELECT {folder}, {org}, (SELECT id FROM app.folders WHERE id = {parent}), {user}, 'f', {flag} ON CONFLICT DO NOTHING"
        ),
        5..=6 => format!(
            "UPDATE app.folders SET parent_id = (SELECT id FROM app.folders WHERE id = {parent}) WHERE id = {folder}"
        ),
        7 => format!(
            "UPDATE app.folders SET parent_id = CASE WHEN id = {folder} THEN NULL ELSE {folder} END WHERE id IN ({folder}, {other}) AND EXISTS (SELECT FROM app.folders WHERE id = {folder})"
        ),
        8 => format!("UPDATE app.folders SET inherit = {flag}, owner_id = {user} WHERE id % 4 = {}", folder % 4),
        9 => format!("DELETE FROM app.folders WHERE id = {folder}"),
        10..=11 => format!(
            "INSERT INTO app.folder_links SELECT a.id, b.id FROM app.folders a, app.folders b WHERE a.id = {folder} AND b.id = {other} ON CONFLICT DO NOTHING"
        ),
        12 => format!("DELETE FROM app.folder_links WHERE folder_id = {folder}"),
        13..=14 => format!(
            "INSERT INTO app.files SELECT {file}, id, {user}, 'file', {} FROM app.folders WHERE id = {folder} ON CONFLICT (id) DO UPDATE SET folder_id = excluded.folder_id, confidential = NOT app.files.confidential",
            !flag
        ),
        15 => format!("DELETE FROM app.files WHERE id = {file}"),
        16 => random_pair(random, "app.team_members", &team.to_string(), &user.to_string()),
        17 => random_pair(random, "app.team_teams", &team.to_string(), &other_team.to_string()),
        18 => random_pair(random, "app.org_admins", &org.to_string(), &user.to_string()),
        19 => format!(
            "INSERT INTO app.folder_teams SELECT id, {team} FROM app.folders WHERE id = {folder} ON CONFLICT DO NOTHING"
        ),
        20 => format!("UPDATE app.users SET active = NOT active WHERE id = {user}"),
        21..=23 => share(random, folder, file, user, team),
        24 => format!(
            "UPDATE app.folders SET id = {other} + 100 WHERE id = {folder} AND NOT EXISTS (SELECT FROM app.folders c WHERE c.parent_id = {folder}) AND NOT EXISTS (SELECT FROM app.files WHERE folder_id = {folder}) AND NOT EXISTS (SELECT FROM app.folder_links WHERE {folder} IN (folder_id, shown_in)) AND NOT EXISTS (SELECT FROM app.folder_teams WHERE folder_id = {folder})"
        ),
        _ => match random.below(8) {
            0 => "TRUNCATE app.files".to_owned(),
            1 => "TRUNCATE app.folder_links".to_owned(),
            _ => format!("DELETE FROM app.folder_teams WHERE team_id = {team}"),
        },
    }
}

fn random_pair(random: &mut Random, table: &str, a: &str, b: &str) -> String {
    if random.below(3) == 0 {
        format!("DELETE FROM {table} t WHERE (t)::text = '({a},{b})'")
    } else {
        format!("INSERT INTO {table} VALUES ({a}, {b}) ON CONFLICT DO NOTHING")
    }
}

/// A share written as `authz.share` would, by somebody who may: the owner of the object shares it.
fn share(random: &mut Random, folder: u64, file: u64, user: u64, team: u64) -> String {
    let (ty, table, id, relations) = match random.below(3) {
        0 => ("file", "app.files", file, ["viewer", "viewer"]),
        _ => ("folder", "app.folders", folder, ["editor", "viewer"]),
    };
    let relation = random.one_of(&relations);
    let subject = match random.below(5) {
        0 | 1 => format!("'team', '{team}', 'member'"),
        2 if relation == "viewer" && ty == "folder" => "'user', '*', ''".to_owned(),
        _ => format!("'user', '{user}', ''"),
    };
    let times = random.one_of(&[
        "NULL, NULL",
        "NULL, NULL",
        "clock_timestamp() - interval '1 second', NULL",
        "NULL, clock_timestamp() + interval '1 hour'",
        "clock_timestamp() + interval '1 hour', NULL",
    ]);
    let call = if random.below(3) == 0 {
        format!("authz.unshare('{ty}', {id}, '{relation}', {subject})::text")
    } else {
        format!("authz.share('{ty}', {id}, '{relation}', {subject}, {times})::text")
    };
    format!(
        "SELECT CASE WHEN signed.done IS NULL THEN NULL ELSE {call} END FROM app.users u \
         JOIN {table} o ON o.owner_id = u.id AND o.id = {id} AND u.active, \
         LATERAL (SELECT authz.act_as('user', u.id)::text AS done OFFSET 0) signed"
    )
}
