//! What there is to read and write, and what the run has written: so that every write chosen is one the policy allows,
//! and so that all of it can be taken back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_postgres::Client;

use super::error::BenchError;
use super::live::Kind;
use super::random::Rng;

/// Folders with at most this many below are small: their moves are ordinary tree writes.
const SMALL: u64 = 20;

/// A folder as it was when the run began.
#[derive(Debug, Clone)]
struct Node {
    id: i64,
    parent: Option<i64>,
    owner: i64,
    org: i64,
    level: u32,
    below: u64,
}

/// One operation, ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub kind: Kind,
    /// The user it runs as.
    pub user: i64,
    /// What it is about: a file, a folder, or where a folder is made.
    pub id: i64,
    /// Where a folder goes or is shown. For a new folder, its organisation.
    pub other: Option<i64>,
    /// A new folder's name.
    pub name: String,
}

/// The big move and the way back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BigMovePlan {
    pub folder: i64,
    pub home: Option<i64>,
    pub away: i64,
    pub below: u64,
    pub user: i64,
}

/// What the run wrote, written down before it is sent.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Moved folders with the parent they had.
    pub moved: BTreeMap<i64, Option<i64>>,
    /// Where they are now.
    now_in: HashMap<i64, Option<i64>>,
    /// Links made.
    pub linked: BTreeSet<(i64, i64)>,
    /// Folders made, by number: names carry it, as their ids are known only afterwards or, after a timeout, never.
    pub created: u64,
}

/// The database as the run sees it.
#[derive(Debug)]
pub(crate) struct World {
    nodes: Vec<Node>,
    place: HashMap<i64, usize>,
    owned: HashMap<i64, Vec<usize>>,
    active: HashSet<i64>,
    readers: Vec<i64>,
    org_admins: HashMap<i64, Vec<i64>>,
    heavy_admins: Vec<i64>,
    files: Vec<i64>,
    existing_links: HashSet<(i64, i64)>,
    /// Folders the run makes begin their names with this.
    pub prefix: String,
    journal: Mutex<Journal>,
}

/// Names of folders made by any run begin with this.
pub(crate) const CREATED_PREFIX: &str = "rowdeck bench ";

/// Files to choose from: enough that the database cannot keep only them in its caches, few enough to hold here.
const FILE_SAMPLE: i64 = 200_000;

impl World {
    /// Reads it on the owner's connection.
    pub async fn read(owner: &Client, token: &str) -> Result<World, BenchError> {
        World::read_seed(owner, token, "").await
    }

    /// Reads only what a seed made: the folders, files and users whose names begin with its prefix.
    pub async fn read_seed(owner: &Client, token: &str, prefix: &str) -> Result<World, BenchError> {
        let doing = || BenchError::database("reading the example's tables");
        let mut nodes = Vec::new();
        let folders = "SELECT id, parent_id, owner_id, org_id FROM app.folders WHERE starts_with(name, $1) ORDER BY id";
        for row in owner.query(folders, &[&prefix]).await.map_err(doing())? {
            nodes.push(Node {
                id: row.try_get(0).map_err(doing())?,
                parent: row.try_get(1).map_err(doing())?,
                owner: row.try_get(2).map_err(doing())?,
                org: row.try_get(3).map_err(doing())?,
                level: 0,
                below: 0,
            });
        }
        let users = "SELECT id FROM app.users WHERE active AND starts_with(name, $1) ORDER BY id";
        let readers = ids(owner, users, prefix).await?;
        let admins = pairs(owner, "SELECT org_id, user_id FROM app.org_admins ORDER BY 1, 2").await?;
        let links = pairs(owner, "SELECT folder_id, shown_in FROM app.folder_links").await?;
        // Every n-th file, so that all parts of the table are among them.
        let files = format!(
            "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n, count(*) OVER () AS of FROM app.files
                     WHERE starts_with(name, $1)) f
              WHERE n % (of / {FILE_SAMPLE} + 1) = 0 ORDER BY id"
        );
        let files = ids(owner, &files, prefix).await?;
        World::new(nodes, readers, &admins, links, files, token)
    }

    fn new(
        mut nodes: Vec<Node>,
        readers: Vec<i64>,
        admins: &[(i64, i64)],
        links: Vec<(i64, i64)>,
        files: Vec<i64>,
        token: &str,
    ) -> Result<World, BenchError> {
        let place: HashMap<i64, usize> = nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
        measure(&mut nodes, &place);
        let active: HashSet<i64> = readers.iter().copied().collect();
        let mut owned: HashMap<i64, Vec<usize>> = HashMap::new();
        for (place, node) in nodes.iter().enumerate() {
            owned.entry(node.owner).or_default().push(place);
        }
        let mut org_admins: HashMap<i64, Vec<i64>> = HashMap::new();
        for (org, user) in admins.iter().filter(|(_, user)| active.contains(user)) {
            org_admins.entry(*org).or_default().push(*user);
        }
        // The organisation that most of the tree hangs from: its admins reach every folder.
        let top = nodes.iter().filter(|node| node.parent.is_none()).max_by_key(|node| node.below).map(|node| node.org);
        let heavy_admins = top.and_then(|org| org_admins.get(&org)).cloned().unwrap_or_default();
        if readers.is_empty() || files.is_empty() || nodes.is_empty() {
            let missing = "the benchmark needs folders, files and active users; load the example's data first";
            return Err(BenchError::Unsuitable(missing.to_owned()));
        }
        Ok(World {
            nodes,
            place,
            owned,
            active,
            readers,
            org_admins,
            heavy_admins,
            files,
            existing_links: links.into_iter().collect(),
            prefix: format!("{CREATED_PREFIX}{token} "),
            journal: Mutex::default(),
        })
    }

    /// What the run wrote so far.
    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A random active user; in a quarter of the cases an admin who reaches every folder.
    pub fn reader(&self, rng: &mut Rng) -> Option<i64> {
        let users = if rng.chance(250) && !self.heavy_admins.is_empty() { &self.heavy_admins } else { &self.readers };
        rng.pick(users).copied()
    }

    /// An admin who reaches every folder.
    pub fn admin(&self) -> Option<i64> {
        self.heavy_admins.first().copied()
    }

    /// Active users.
    pub fn users(&self) -> &[i64] {
        &self.readers
    }

    /// A folder, its organisation, and somebody who may share it for certain.
    pub fn folder_and_holder(&self, rng: &mut Rng) -> Option<(i64, i64, i64)> {
        (0..100).find_map(|_| {
            let node = rng.pick(&self.nodes)?;
            self.who_may(node).map(|user| (node.id, node.org, user))
        })
    }

    /// A folder.
    pub fn any_folder(&self, rng: &mut Rng) -> Option<i64> {
        rng.pick(&self.nodes).map(|node| node.id)
    }

    /// A read: opening a file, opening a folder and asking `authz.can` in equal parts, as a random active user; a
    /// quarter of the readers are admins who reach every folder.
    pub fn read_op(&self, rng: &mut Rng) -> Option<Chosen> {
        let user = self.reader(rng)?;
        let (kind, id) = match rng.below(3) {
            0 => (Kind::OpenFile, *rng.pick(&self.files)?),
            1 => (Kind::OpenFolder, rng.pick(&self.nodes)?.id),
            _ => (Kind::Can, *rng.pick(&self.files)?),
        };
        Some(Chosen { kind, user, id, other: None, name: String::new() })
    }

    /// A tree write: 90% new folders, 9% moves of small folders, 1% links, each by someone who may.
    pub fn write_op(&self, rng: &mut Rng) -> Option<Chosen> {
        let chosen = match rng.below(100) {
            0..90 => None,
            90..99 => self.move_op(rng),
            _ => self.link_op(rng),
        };
        // In a small tree there may be nothing left to move or link; a folder can always be made.
        chosen.or_else(|| self.create_op(rng))
    }

    pub fn create_op(&self, rng: &mut Rng) -> Option<Chosen> {
        let (parent, user) = (0..100).find_map(|_| {
            let node = rng.pick(&self.nodes)?;
            self.who_may(node).map(|user| (node, user))
        })?;
        let mut journal = self.journal();
        journal.created += 1;
        let name = format!("{}{}", self.prefix, journal.created);
        Some(Chosen { kind: Kind::Create, user, id: parent.id, other: Some(parent.org), name })
    }

    pub fn move_op(&self, rng: &mut Rng) -> Option<Chosen> {
        let mut journal = self.journal();
        let (node, to, user) = self.find_pair(rng, |node, to| {
            let parent = journal.now_in.get(&node.id).copied().unwrap_or(node.parent);
            node.below <= SMALL && parent != Some(to.id)
        })?;
        journal.moved.entry(node.id).or_insert(node.parent);
        journal.now_in.insert(node.id, Some(to.id));
        Some(Chosen { kind: Kind::Move, user, id: node.id, other: Some(to.id), name: String::new() })
    }

    pub fn link_op(&self, rng: &mut Rng) -> Option<Chosen> {
        let mut journal = self.journal();
        let (node, to, user) = self.find_pair(rng, |node, to| {
            let link = (node.id, to.id);
            !self.existing_links.contains(&link) && !journal.linked.contains(&link)
        })?;
        journal.linked.insert((node.id, to.id));
        Some(Chosen { kind: Kind::Link, user, id: node.id, other: Some(to.id), name: String::new() })
    }

    /// A folder, one nearer the top, and someone who may write both. Every link of the tree, moved or not, leads nearer
    /// the top (by the levels at the start of the run), so nothing chosen here can make a ring.
    fn find_pair(&self, rng: &mut Rng, fits: impl Fn(&Node, &Node) -> bool) -> Option<(&Node, &Node, i64)> {
        (0..200).find_map(|attempt| {
            let node = rng.pick(&self.nodes)?;
            // First among what the folder's owner has; when that is too little, what an admin of its organisation may.
            let (to, user) = if attempt < 100 && self.active.contains(&node.owner) {
                let mine = self.owned.get(&node.owner)?;
                (self.nodes.get(*rng.pick(mine)?)?, node.owner)
            } else {
                let to = rng.pick(&self.nodes)?;
                (to, *rng.pick(self.org_admins.get(&node.org).filter(|_| to.org == node.org)?)?)
            };
            (to.level < node.level && fits(node, to)).then_some((node, to, user))
        })
    }

    /// Somebody who may edit a folder for certain: its owner, or an admin of its organisation.
    fn who_may(&self, node: &Node) -> Option<i64> {
        if self.active.contains(&node.owner) {
            return Some(node.owner);
        }
        self.org_admins.get(&node.org)?.first().copied()
    }

    /// The folder with the most below it, into the largest other root.
    pub fn big_move(&self) -> Option<BigMovePlan> {
        let root_of = |node: &Node| {
            let mut at = node;
            // As many steps as the folder has levels above it.
            for _ in 0..node.level {
                at = at.parent.and_then(|parent| self.node(parent)).unwrap_or(at);
            }
            at.id
        };
        let largest = self.nodes.iter().max_by_key(|node| node.below)?;
        let own_root = root_of(largest);
        let away = self
            .nodes
            .iter()
            .filter(|node| node.parent.is_none() && node.id != own_root)
            .max_by_key(|node| node.below)?;
        let admin = self.org_admins.get(&largest.org).and_then(|admins| admins.first()).copied();
        let user = admin.or_else(|| self.who_may(largest))?;
        Some(BigMovePlan { folder: largest.id, home: largest.parent, away: away.id, below: largest.below, user })
    }

    /// Writes a big move down before it is sent, and says where it goes: away, or home when it is away.
    pub fn toggle_big_move(&self, plan: &BigMovePlan) -> Option<i64> {
        let mut journal = self.journal();
        journal.moved.entry(plan.folder).or_insert(plan.home);
        let now = journal.now_in.get(&plan.folder).copied().unwrap_or(plan.home);
        if now == Some(plan.away) { plan.home } else { Some(plan.away) }
    }

    /// The big move is done.
    pub fn big_moved(&self, plan: &BigMovePlan, to: Option<i64>) {
        self.journal().now_in.insert(plan.folder, to);
    }

    fn node(&self, id: i64) -> Option<&Node> {
        self.place.get(&id).and_then(|place| self.nodes.get(*place))
    }

    /// Folders, files to choose from, active users.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.nodes.len(), self.files.len(), self.readers.len())
    }
}

/// Levels from the top, and how many folders are below each.
fn measure(nodes: &mut [Node], place: &HashMap<i64, usize>) {
    let mut children: HashMap<i64, Vec<usize>> = HashMap::new();
    let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        match node.parent.filter(|parent| place.contains_key(parent)) {
            Some(parent) => children.entry(parent).or_default().push(at),
            None => order.push(at),
        }
    }
    // Breadth first: parents come before children.
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        let Some((id, level)) = nodes.get(at).map(|node| (node.id, node.level)) else { continue };
        for child in children.remove(&id).unwrap_or_default() {
            if let Some(node) = nodes.get_mut(child) {
                node.level = level + 1;
            }
            order.push(child);
        }
    }
    for at in order.into_iter().rev() {
        let Some((parent, below)) = nodes.get(at).map(|node| (node.parent, node.below)) else { continue };
        if let Some(parent) = parent.and_then(|id| place.get(&id)).and_then(|at| nodes.get_mut(*at)) {
            parent.below += below + 1;
        }
    }
}

async fn ids(owner: &Client, query: &str, prefix: &str) -> Result<Vec<i64>, BenchError> {
    let doing = || BenchError::database("reading the example's tables");
    let rows = owner.query(query, &[&prefix]).await.map_err(doing())?;
    rows.iter().map(|row| row.try_get(0).map_err(doing())).collect()
}

async fn pairs(owner: &Client, query: &str) -> Result<Vec<(i64, i64)>, BenchError> {
    let doing = || BenchError::database("reading the example's tables");
    let rows = owner.query(query, &[]).await.map_err(doing())?;
    rows.iter().map(|row| Ok((row.try_get(0).map_err(doing())?, row.try_get(1).map_err(doing())?))).collect()
}

#[cfg(test)]
mod tests;
