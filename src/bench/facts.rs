//! Who may do what in the docs example, worked out here from the rows alone: what a scenario compares the database's
//! answers with. It shares no code with the compiler and asks none of the policy's functions.

use std::collections::{HashMap, HashSet, VecDeque};

use tokio_postgres::Client;

use super::error::BenchError;
use super::random::Rng;

/// What somebody may do; each includes the ones before it in what it takes, and the ones after it in what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Permission {
    View,
    Edit,
    Share,
}

impl Permission {
    pub const ALL: [Permission; 3] = [Permission::View, Permission::Edit, Permission::Share];

    pub fn word(self) -> &'static str {
        match self {
            Permission::View => "view",
            Permission::Edit => "edit",
            Permission::Share => "share",
        }
    }
}

#[derive(Debug, Clone)]
struct Folder {
    id: i64,
    parent: Option<i64>,
    org: i64,
    owner: i64,
    inherit: bool,
}

/// A file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    pub id: i64,
    pub folder: i64,
    pub owner: i64,
    pub confidential: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    User(i64),
    Team(i64),
    Everyone,
}

/// What a share gives.
#[derive(Debug, Clone, Copy)]
struct Given {
    subject: Subject,
    /// To edit, not only to view.
    edit: bool,
}

/// Those who hold a permission on an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    /// Every user who is signed in.
    pub everyone: bool,
    /// Active users.
    pub users: HashSet<i64>,
}

/// The rows that decide, in memory.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    folders: Vec<Folder>,
    place: HashMap<i64, usize>,
    children: HashMap<i64, Vec<usize>>,
    shown_in: HashMap<i64, Vec<i64>>,
    shows: HashMap<i64, Vec<i64>>,
    admins: HashMap<i64, Vec<i64>>,
    teams_in: HashMap<i64, Vec<i64>>,
    members: HashMap<i64, Vec<i64>>,
    joined: HashMap<i64, Vec<i64>>,
    inner: HashMap<i64, Vec<i64>>,
    outer: HashMap<i64, Vec<i64>>,
    on_folder: HashMap<i64, Vec<Given>>,
    on_file: HashMap<i64, Vec<Given>>,
    active: HashSet<i64>,
    /// Files to choose from.
    pub files: Vec<File>,
}

/// Files to know: enough that caches cannot keep only them.
const FILE_SAMPLE: i64 = 100_000;

impl Facts {
    /// Reads them on the owner's connection.
    pub async fn read(owner: &Client, prefix: &str) -> Result<Facts, BenchError> {
        let doing = || BenchError::database("reading the example's tables");
        let mut facts = Facts::default();
        let folders = "SELECT id, parent_id, org_id, owner_id, inherit FROM app.folders ORDER BY id";
        for row in owner.query(folders, &[]).await.map_err(doing())? {
            let folder = Folder {
                id: row.try_get(0).map_err(doing())?,
                parent: row.try_get(1).map_err(doing())?,
                org: row.try_get(2).map_err(doing())?,
                owner: row.try_get(3).map_err(doing())?,
                inherit: row.try_get(4).map_err(doing())?,
            };
            let at = facts.folders.len();
            facts.place.insert(folder.id, at);
            if let Some(parent) = folder.parent {
                facts.children.entry(parent).or_default().push(at);
            }
            facts.folders.push(folder);
        }
        let pairs = [
            ("SELECT folder_id, shown_in FROM app.folder_links", &mut facts.shown_in, Some(&mut facts.shows)),
            ("SELECT org_id, user_id FROM app.org_admins", &mut facts.admins, None),
            ("SELECT folder_id, team_id FROM app.folder_teams", &mut facts.teams_in, None),
            ("SELECT team_id, user_id FROM app.team_members", &mut facts.members, Some(&mut facts.joined)),
            ("SELECT team_id, member_team_id FROM app.team_teams", &mut facts.inner, Some(&mut facts.outer)),
        ];
        for (query, forward, mut backward) in pairs {
            for row in owner.query(query, &[]).await.map_err(doing())? {
                let (a, b): (i64, i64) = (row.try_get(0).map_err(doing())?, row.try_get(1).map_err(doing())?);
                forward.entry(a).or_default().push(b);
                if let Some(backward) = &mut backward {
                    backward.entry(b).or_default().push(a);
                }
            }
        }
        for row in owner.query("SELECT id FROM app.users WHERE active", &[]).await.map_err(doing())? {
            facts.active.insert(row.try_get(0).map_err(doing())?);
        }
        facts.read_files(owner, prefix).await?;
        facts.read_shares(owner).await?;
        Ok(facts)
    }

    async fn read_files(&mut self, owner: &Client, prefix: &str) -> Result<(), BenchError> {
        let doing = || BenchError::database("reading the example's files");
        let files = "SELECT id, folder_id, owner_id, confidential FROM (
                SELECT *, row_number() OVER (ORDER BY id) AS n, count(*) OVER () AS of FROM app.files
                 WHERE starts_with(name, $1)) f
            WHERE n % (of / $2 + 1) = 0 ORDER BY id";
        for row in owner.query(files, &[&prefix, &FILE_SAMPLE]).await.map_err(doing())? {
            self.files.push(File {
                id: row.try_get(0).map_err(doing())?,
                folder: row.try_get(1).map_err(doing())?,
                owner: row.try_get(2).map_err(doing())?,
                confidential: row.try_get(3).map_err(doing())?,
            });
        }
        Ok(())
    }

    /// Shares lie in tables named after what they give: `share__TYPE__RELATION__SUBJECT`.
    async fn read_shares(&mut self, owner: &Client) -> Result<(), BenchError> {
        let doing = || BenchError::database("reading the example's shares");
        let tables = "SELECT c.relname::text FROM pg_class c
             WHERE c.relnamespace = to_regnamespace('authz_int') AND c.relkind = 'r' AND c.relname LIKE 'share\\_\\_%'";
        for table in owner.query(tables, &[]).await.map_err(doing())? {
            let name: String = table.try_get(0).map_err(doing())?;
            let parts: Vec<&str> = name.split("__").collect();
            let (on_file, edit, kind) = match parts.as_slice() {
                ["share", ty @ ("folder" | "file"), relation @ ("viewer" | "editor"), kind, ..] => {
                    (*ty == "file", *relation == "editor", *kind)
                }
                _ => {
                    let why = format!(
                        "there are shares this benchmark does not know (authz_int.{name}); it needs the docs example's own policy"
                    );
                    return Err(BenchError::Unsuitable(why));
                }
            };
            let subject = if kind == "all" { "NULL::bigint" } else { "subject" };
            let query = format!(
                "SELECT object, {subject} FROM authz_int.{name} WHERE (starts IS NULL OR starts <= now()) AND (expires IS NULL OR expires > now())"
            );
            for row in owner.query(&query, &[]).await.map_err(doing())? {
                let object: i64 = row.try_get(0).map_err(doing())?;
                let subject = match row.try_get::<_, Option<i64>>(1).map_err(doing())? {
                    None => Subject::Everyone,
                    Some(id) if kind == "team" => Subject::Team(id),
                    Some(id) => Subject::User(id),
                };
                let on = if on_file { &mut self.on_file } else { &mut self.on_folder };
                on.entry(object).or_default().push(Given { subject, edit });
            }
        }
        Ok(())
    }

    /// Who holds a permission on a folder.
    pub fn on_folder(&self, folder: i64, permission: Permission) -> Holders {
        let mut holders = Holders::default();
        let mut seen = HashSet::from([folder]);
        let mut left = vec![folder];
        while let Some(id) = left.pop() {
            let Some(at) = self.place.get(&id).and_then(|at| self.folders.get(*at)) else { continue };
            self.add_direct(at, permission, &mut holders);
            let mut up: Vec<i64> = at.parent.filter(|_| at.inherit).into_iter().collect();
            if permission == Permission::View {
                up.extend(self.shown_in.get(&id).into_iter().flatten());
            }
            left.extend(up.into_iter().filter(|id| seen.insert(*id)));
        }
        holders.users.retain(|user| self.active.contains(user));
        holders
    }

    /// Who holds a permission on a file.
    pub fn on_file(&self, file: &File, permission: Permission) -> Holders {
        let through = match permission {
            Permission::View if file.confidential => Permission::Edit,
            other => other,
        };
        let mut holders = self.on_folder(file.folder, through);
        holders.users.insert(file.owner);
        if permission == Permission::View {
            for given in self.on_file.get(&file.id).into_iter().flatten() {
                self.add(given.subject, &mut holders);
            }
        }
        holders.users.retain(|user| self.active.contains(user));
        holders
    }

    fn add_direct(&self, folder: &Folder, permission: Permission, holders: &mut Holders) {
        holders.users.insert(folder.owner);
        holders.users.extend(self.admins.get(&folder.org).into_iter().flatten());
        if permission == Permission::Share {
            return;
        }
        for team in self.teams_in.get(&folder.id).into_iter().flatten() {
            self.add(Subject::Team(*team), holders);
        }
        for given in self.on_folder.get(&folder.id).into_iter().flatten() {
            if given.edit || permission == Permission::View {
                self.add(given.subject, holders);
            }
        }
    }

    fn add(&self, subject: Subject, holders: &mut Holders) {
        match subject {
            Subject::User(user) => {
                holders.users.insert(user);
            }
            Subject::Everyone => holders.everyone = true,
            Subject::Team(team) => {
                for team in reach(team, &self.inner) {
                    holders.users.extend(self.members.get(&team).into_iter().flatten());
                }
            }
        }
    }

    /// Every folder somebody holds a permission on.
    pub fn folders_of(&self, user: i64, permission: Permission) -> Vec<i64> {
        if !self.active.contains(&user) {
            return Vec::new();
        }
        let teams = self.teams_of(user);
        let mine = |subject: &Subject| match subject {
            Subject::User(one) => *one == user,
            Subject::Team(team) => teams.contains(team),
            Subject::Everyone => true,
        };
        let held = |folder: &&Folder| {
            folder.owner == user
                || self.admins.get(&folder.org).is_some_and(|admins| admins.contains(&user))
                || (permission != Permission::Share
                    && (self.teams_in.get(&folder.id).into_iter().flatten().any(|team| teams.contains(team))
                        || self
                            .on_folder
                            .get(&folder.id)
                            .into_iter()
                            .flatten()
                            .any(|given| (given.edit || permission == Permission::View) && mine(&given.subject))))
        };
        let mut left: VecDeque<i64> = self.folders.iter().filter(held).map(|folder| folder.id).collect();
        let mut seen: HashSet<i64> = left.iter().copied().collect();
        while let Some(id) = left.pop_front() {
            let inside = self.children.get(&id).into_iter().flatten().filter_map(|at| self.folders.get(*at));
            let mut down: Vec<i64> = inside.filter(|folder| folder.inherit).map(|folder| folder.id).collect();
            if permission == Permission::View {
                down.extend(self.shows.get(&id).into_iter().flatten());
            }
            left.extend(down.into_iter().filter(|id| seen.insert(*id)));
        }
        seen.into_iter().collect()
    }

    /// Files shared with somebody, directly or through a team.
    pub fn files_shared_with(&self, user: i64) -> Vec<i64> {
        let teams = self.teams_of(user);
        let mine = |given: &Given| match given.subject {
            Subject::User(one) => one == user,
            Subject::Team(team) => teams.contains(&team),
            Subject::Everyone => true,
        };
        self.on_file.iter().filter(|(_, given)| given.iter().any(mine)).map(|(file, _)| *file).collect()
    }

    fn teams_of(&self, user: i64) -> HashSet<i64> {
        self.joined.get(&user).into_iter().flatten().flat_map(|team| reach(*team, &self.outer)).collect()
    }

    /// Active users who are no admins, but for these.
    pub fn ordinary_readers(&self, but: &[i64]) -> Vec<i64> {
        let admins: HashSet<i64> = self.admins.values().flatten().copied().collect();
        let mut users: Vec<i64> = self.active.iter().copied().collect();
        users.retain(|user| !admins.contains(user) && !but.contains(user));
        users.sort_unstable();
        users
    }

    /// An active admin of the organisation with the fewest admins and a folder, and of no other.
    pub fn admin_of_one(&self) -> Option<i64> {
        let times = |user: &i64| self.admins.values().flatten().filter(|one| *one == user).count();
        let mut orgs: Vec<(usize, i64)> = self.admins.iter().map(|(org, users)| (users.len(), *org)).collect();
        orgs.sort_unstable();
        orgs.into_iter().find_map(|(_, org)| {
            let users = self.admins.get(&org).filter(|_| self.folders.iter().any(|folder| folder.org == org))?;
            users.iter().copied().filter(|user| self.active.contains(user) && times(user) == 1).min()
        })
    }

    /// How many folders each user holds directly or through a team: the one with the most comes first.
    pub fn heaviest_reader(&self) -> Option<i64> {
        let mut of_team: HashMap<i64, usize> = HashMap::new();
        for team in self.teams_in.values().flatten() {
            *of_team.entry(*team).or_default() += 1;
        }
        let count = |user: &i64| -> usize { self.teams_of(*user).iter().filter_map(|team| of_team.get(team)).sum() };
        self.active.iter().copied().max_by_key(|user| (count(user), std::cmp::Reverse(*user)))
    }

    /// The active user who may view the fewest folders, but some.
    pub fn lightest_reader(&self, rng: &mut Rng) -> Option<i64> {
        let mut active: Vec<i64> = self.active.iter().copied().collect();
        active.sort_unstable();
        // Those who own nothing and are in no team come first; a few hundred others stand for the rest.
        let owners: HashSet<i64> = self.folders.iter().map(|folder| folder.owner).collect();
        let mut few: Vec<i64> =
            active.iter().copied().filter(|user| !owners.contains(user) && !self.joined.contains_key(user)).collect();
        while few.len() < 20 && few.len() < active.len() {
            few.extend(rng.pick(&active));
        }
        few.truncate(40);
        let some = |user: &i64| Some(self.folders_of(*user, Permission::View).len()).filter(|n| *n > 0);
        few.into_iter().filter_map(|user| some(&user).map(|n| (n, user))).min().map(|(_, user)| user)
    }
}

impl Holders {
    /// True when this active user is one.
    pub fn has(&self, user: i64) -> bool {
        self.everyone || self.users.contains(&user)
    }
}

/// `from` and all that `links` lead to, each once.
fn reach(from: i64, links: &HashMap<i64, Vec<i64>>) -> HashSet<i64> {
    let mut seen = HashSet::from([from]);
    let mut left = vec![from];
    while let Some(one) = left.pop() {
        left.extend(links.get(&one).into_iter().flatten().copied().filter(|next| seen.insert(*next)));
    }
    seen
}
