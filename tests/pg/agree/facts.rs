//! The docs example's facts in memory, and who may do what by plain walks: no SQL, nothing shared with the compiler.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;

/// A folder's row.
pub struct Folder {
    pub org: i64,
    pub parent: Option<i64>,
    pub owner: i64,
    pub inherit: bool,
}

/// A file's row.
pub struct File {
    pub folder: i64,
    pub owner: i64,
    pub confidential: bool,
}

/// Everything the policy reads. Shares are those that count now.
#[derive(Default)]
pub struct Facts {
    pub users: BTreeMap<i64, bool>,
    pub admins: BTreeSet<(i64, i64)>,
    pub members: BTreeSet<(i64, i64)>,
    pub teams_in_teams: BTreeSet<(i64, i64)>,
    pub folders: BTreeMap<i64, Folder>,
    pub links: BTreeSet<(i64, i64)>,
    pub folder_teams: BTreeSet<(i64, i64)>,
    pub files: BTreeMap<i64, File>,
    pub teams: BTreeMap<i64, i64>,
    pub editor_user: BTreeSet<(i64, i64)>,
    pub editor_team: BTreeSet<(i64, i64)>,
    pub viewer_user: BTreeSet<(i64, i64)>,
    pub viewer_team: BTreeSet<(i64, i64)>,
    pub viewer_all: BTreeSet<i64>,
    pub file_viewer_user: BTreeSet<(i64, i64)>,
    pub file_viewer_team: BTreeSet<(i64, i64)>,
}

async fn pairs(client: &Client, sql: &str) -> BTreeSet<(i64, i64)> {
    client.query(sql, &[]).await.unwrap().iter().map(|r| (r.get(0), r.get(1))).collect()
}

/// Shares with their times, judged by this program's reading of the clock in the database.
async fn shares(client: &Client, table: &str) -> BTreeSet<(i64, i64)> {
    let sql = format!(
        "SELECT object, subject, coalesce(starts > clock_timestamp(), false), coalesce(expires <= clock_timestamp(), false) \
         FROM authz_int.share__{table}"
    );
    let rows = client.query(&sql, &[]).await.unwrap();
    rows.iter().filter(|r| !r.get::<_, bool>(2) && !r.get::<_, bool>(3)).map(|r| (r.get(0), r.get(1))).collect()
}

impl Facts {
    /// Reads everything as the owner.
    pub async fn read(client: &Client) -> Facts {
        let mut facts = Facts {
            admins: pairs(client, "SELECT org_id, user_id FROM app.org_admins").await,
            members: pairs(client, "SELECT team_id, user_id FROM app.team_members").await,
            teams_in_teams: pairs(client, "SELECT team_id, member_team_id FROM app.team_teams").await,
            links: pairs(client, "SELECT folder_id, shown_in FROM app.folder_links").await,
            folder_teams: pairs(client, "SELECT folder_id, team_id FROM app.folder_teams").await,
            editor_user: shares(client, "folder__editor__user").await,
            editor_team: shares(client, "folder__editor__team__member").await,
            viewer_user: shares(client, "folder__viewer__user").await,
            viewer_team: shares(client, "folder__viewer__team__member").await,
            file_viewer_user: shares(client, "file__viewer__user").await,
            file_viewer_team: shares(client, "file__viewer__team__member").await,
            ..Facts::default()
        };
        for r in client.query("SELECT id, active FROM app.users", &[]).await.unwrap() {
            facts.users.insert(r.get(0), r.get(1));
        }
        for r in client.query("SELECT id, org_id FROM app.teams", &[]).await.unwrap() {
            facts.teams.insert(r.get(0), r.get(1));
        }
        for r in client.query("SELECT id, org_id, parent_id, owner_id, inherit FROM app.folders", &[]).await.unwrap() {
            let folder = Folder { org: r.get(1), parent: r.get(2), owner: r.get(3), inherit: r.get(4) };
            facts.folders.insert(r.get(0), folder);
        }
        for r in client.query("SELECT id, folder_id, owner_id, confidential FROM app.files", &[]).await.unwrap() {
            facts.files.insert(r.get(0), File { folder: r.get(1), owner: r.get(2), confidential: r.get(3) });
        }
        for r in client.query("SELECT object FROM authz_int.share__folder__viewer__all", &[]).await.unwrap() {
            facts.viewer_all.insert(r.get(0));
        }
        facts
    }

    /// The user if it counts; nobody otherwise.
    fn caller(&self, user: Option<i64>) -> Option<i64> {
        user.filter(|u| self.users.get(u) == Some(&true))
    }

    /// Teams the user is in, through teams in teams.
    fn teams_of(&self, user: i64) -> BTreeSet<i64> {
        let mut found: BTreeSet<i64> = BTreeSet::new();
        let mut todo: Vec<i64> = self.members.iter().filter(|(_, u)| *u == user).map(|(t, _)| *t).collect();
        while let Some(team) = todo.pop() {
            if found.insert(team) {
                todo.extend(self.teams_in_teams.iter().filter(|(_, member)| *member == team).map(|(outer, _)| *outer));
            }
        }
        found
    }

    /// The folder and what it is inside of: by parents where they pass on, and by links too when `links`.
    fn upwards(&self, folder: i64, links: bool) -> BTreeSet<i64> {
        let mut found = BTreeSet::new();
        let mut todo = vec![folder];
        while let Some(at) = todo.pop() {
            let Some(row) = self.folders.get(&at) else { continue };
            if found.insert(at) {
                todo.extend(row.parent.filter(|_| row.inherit));
                if links {
                    todo.extend(self.links.iter().filter(|(f, _)| *f == at).map(|(_, shown)| *shown));
                }
            }
        }
        found
    }

    fn folder_starts(&self, user: Option<i64>, teams: &BTreeSet<i64>, permission: &str, folder: i64) -> bool {
        let Some(row) = self.folders.get(&folder) else { return false };
        let Some(user) = user else { return false };
        let share = row.owner == user || self.admins.contains(&(row.org, user));
        let team = |set: &BTreeSet<(i64, i64)>| set.iter().any(|(f, t)| *f == folder && teams.contains(t));
        let edit =
            share || team(&self.folder_teams) || self.editor_user.contains(&(folder, user)) || team(&self.editor_team);
        let view = edit
            || self.viewer_user.contains(&(folder, user))
            || team(&self.viewer_team)
            || self.viewer_all.contains(&folder);
        match permission {
            "share" => share,
            "edit" => edit,
            "view" => view,
            other => panic!("no permission {other} on folder"),
        }
    }

    /// Whether the user holds a permission of a folder.
    pub fn folder(&self, user: Option<i64>, permission: &str, folder: i64) -> bool {
        let user = self.caller(user);
        let teams = user.map(|u| self.teams_of(u)).unwrap_or_default();
        self.upwards(folder, permission == "view").into_iter().any(|f| self.folder_starts(user, &teams, permission, f))
    }

    /// Whether the user holds a permission of a file.
    pub fn file(&self, user: Option<i64>, permission: &str, file: i64) -> bool {
        let Some(row) = self.files.get(&file) else { return false };
        let caller = self.caller(user);
        let share = caller == Some(row.owner) || self.folder(user, "share", row.folder);
        let edit = share || self.folder(user, "edit", row.folder);
        let viewer = caller.is_some_and(|u| {
            let teams = self.teams_of(u);
            self.file_viewer_user.contains(&(file, u))
                || self.file_viewer_team.iter().any(|(f, t)| *f == file && teams.contains(t))
        });
        match permission {
            "share" => share,
            "edit" => edit,
            "view" => edit || viewer || (!row.confidential && self.folder(user, "view", row.folder)),
            other => panic!("no permission {other} on file"),
        }
    }

    /// Whether the user holds a permission of an object of this type.
    pub fn holds(&self, user: Option<i64>, ty: &str, permission: &str, id: i64) -> bool {
        match ty {
            "folder" => self.folder(user, permission, id),
            "file" => self.file(user, permission, id),
            other => panic!("no type {other}"),
        }
    }

    /// The ids of a type.
    pub fn ids(&self, ty: &str) -> Vec<i64> {
        match ty {
            "folder" => self.folders.keys().copied().collect(),
            "file" => self.files.keys().copied().collect(),
            other => panic!("no type {other}"),
        }
    }
}
