//! Graphs of every kind under random writes: several types, keys of several columns, pairs of columns, denies. After each
//! write the stored ancestors equal a plain walk, verify is true, and now and then everything that answers who may do
//! what equals what the walk says.

use std::collections::{BTreeMap, BTreeSet};

use rowdeck::compiler::emit::{Options, emit_with};
use rowdeck::db::build::build;
use rowdeck::db::progress::Reporter;
use rowdeck::db::verify::{next_batch, repair};

use crate::agree::changes::Random;
use crate::plain::{Ask, Town, compiled, pairs};

type Pairs = BTreeSet<(String, String)>;

/// A policy with one graph, and what is expected of it, said in plain queries. Objects are called `type id`.
struct Kind {
    name: &'static str,
    schema: &'static str,
    policy: &'static str,
    /// Every object.
    objects: &'static str,
    /// Every effective link: child, parent. Ends that are no objects are left out by the walk.
    links: &'static str,
    /// Where `view` starts: object, user.
    starts: &'static str,
    /// Where a deny of `view` starts.
    denied: Option<&'static str>,
    /// Types that have `view`: their ids in the order of the key, and the rows that the rules show.
    asks: &'static [(&'static str, &'static str, &'static str)],
    write: fn(&mut Random) -> String,
}

struct Walk {
    ancestors: BTreeMap<String, BTreeSet<String>>,
}

impl Walk {
    async fn of(town: &Town, kind: &Kind) -> Walk {
        let objects: BTreeSet<String> = town.texts(kind.objects).await.into_iter().map(|r| r[0].clone()).collect();
        let links: Pairs = pairs(town, kind.links).await;
        let mut parents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (child, parent) in &links {
            if child != parent && objects.contains(child) && objects.contains(parent) {
                parents.entry(child).or_default().push(parent);
            }
        }
        let mut ancestors = BTreeMap::new();
        for object in &objects {
            let mut seen = BTreeSet::new();
            let mut todo = parents.get(object.as_str()).cloned().unwrap_or_default();
            while let Some(a) = todo.pop() {
                if seen.insert(a.to_owned()) {
                    todo.extend(parents.get(a).into_iter().flatten());
                }
            }
            ancestors.insert(object.clone(), seen);
        }
        Walk { ancestors }
    }

    /// The objects on which something that starts at `starts` holds for a user.
    fn reached(&self, starts: &Pairs, user: &str) -> BTreeSet<String> {
        let starts = |object: &str| starts.contains(&(object.to_owned(), user.to_owned()));
        let held = self.ancestors.iter().filter(|(o, above)| starts(o) || above.iter().any(|a| starts(a)));
        held.map(|(o, _)| o.clone()).collect()
    }
}

struct World {
    town: Town,
    kind: &'static Kind,
    /// The first is the one whose walk is known.
    graphs: Vec<String>,
    options: Options,
}

impl World {
    async fn new(kind: &'static Kind, cluster_size: u32) -> World {
        // Few rows of each form, so that all three read forms are met.
        let options = Options { cluster_size, first_rows: 3, held_rows: 8 };
        let town = Town::new(kind.schema, kind.policy, &options).await;
        let mut world = World { town, kind, graphs: Vec::new(), options };
        world.graphs = world.emitted().graphs.into_iter().map(|g| g.name).collect();
        world
    }

    fn emitted(&self) -> rowdeck::compiler::objects::Emitted {
        emit_with(&compiled(self.kind.policy).model.unwrap(), &self.options).unwrap()
    }

    async fn stored(&self, graph: &str) -> BTreeMap<String, BTreeSet<String>> {
        let sql = format!(
            "SELECT {graph}_type(n.id) || ' ' || {graph}_text(n.id), {graph}_type(a) || ' ' || {graph}_text(a)
             FROM {graph}_node n JOIN {graph}_cluster c ON c.id = n.cluster LEFT JOIN unnest(n.local || c.above) a ON true",
            graph = format_args!("authz_int.{graph}")
        );
        let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in self.town.owner.query(&sql, &[]).await.unwrap() {
            out.entry(row.get(0)).or_default().extend(row.get::<_, Option<String>>(1));
        }
        out
    }

    async fn verified(&self) -> bool {
        self.town.owner.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0)
    }

    async fn wrong(&self, size: u32) -> Vec<rowdeck::db::progress::Wrong> {
        let (mut cursor, mut wrong) = (None, Vec::new());
        loop {
            let batch = next_batch(&self.town.owner, cursor.as_deref(), size).await.unwrap();
            wrong.extend(batch.wrong);
            cursor = batch.cursor;
            if cursor.is_none() {
                return wrong;
            }
        }
    }

    async fn exact(&self, when: &str) -> Walk {
        let walk = Walk::of(&self.town, self.kind).await;
        let stored = self.stored(&self.graphs[0]).await;
        assert_eq!(stored, walk.ancestors, "{} after {when}", self.kind.name);
        if !self.verified().await {
            panic!("{}: verify is false after {when}: {:?}", self.kind.name, self.wrong(1000).await);
        }
        walk
    }

    /// Everything that answers who has `view`.
    async fn answers(&self, walk: &Walk) {
        let starts = pairs(&self.town, self.kind.starts).await;
        let denied = match self.kind.denied {
            Some(sql) => pairs(&self.town, sql).await,
            None => Pairs::new(),
        };
        for (ty, ids, rows) in self.kind.asks {
            let holds = |user: Option<&str>, id: &str| {
                let object = format!("{ty} {id}");
                user.is_some_and(|u| {
                    walk.reached(&starts, u).contains(&object) && !walk.reached(&denied, u).contains(&object)
                })
            };
            let ask = Ask { ty, permission: "view", ids, rows: Some(rows), holds: &holds };
            self.town.agree(&["1", "2", "3"], &ask).await;
        }
    }
}

async fn random_writes(kind: &'static Kind, cluster_size: u32, seed: u64, steps: usize) {
    let world = World::new(kind, cluster_size).await;
    let mut random = Random(seed);
    for step in 0..steps {
        let mut sql = (kind.write)(&mut random);
        if random.below(6) == 0 {
            sql = format!("{sql}; {}", (kind.write)(&mut random));
        }
        let when = format!("size {cluster_size} seed {seed} step {step}: {sql}");
        let end = if random.below(10) == 0 { "ROLLBACK" } else { "COMMIT" };
        world.town.run("BEGIN").await;
        match world.town.owner.batch_execute(&sql).await {
            Ok(()) => world.town.run(end).await,
            Err(e) => {
                world.town.run("ROLLBACK").await;
                let db = e.as_db_error().unwrap_or_else(|| panic!("{when}: {e}"));
                let expected = db.code().code() == "23514" && db.message().starts_with("AZ713")
                    || db.code().code() == "23505" && !db.message().contains("authz");
                assert!(expected, "{when}: {e:?}");
            }
        }
        let walk = world.exact(&when).await;
        if step % 20 == 19 {
            world.answers(&walk).await;
        }
    }
    // Built from what is there, the index is the same.
    for graph in &world.emitted().graphs {
        build(&world.town.owner, graph, cluster_size, &Reporter::silent()).await.unwrap();
    }
    let walk = world.exact("a build").await;
    world.answers(&walk).await;
    damage(&world, &mut random).await;
}

/// Writes behind the index's back are found, and mended by repairing what was found.
async fn damage(world: &World, random: &mut Random) {
    for _ in 0..12 {
        let sql = (world.kind.write)(random);
        world.town.run("SET session_replication_role = replica").await;
        // What is refused leaves nothing to find.
        let written = world.town.owner.batch_execute(&sql).await.is_ok();
        world.town.run("RESET session_replication_role").await;
        let walk = Walk::of(&world.town, world.kind).await;
        let same = world.stored(&world.graphs[0]).await == walk.ancestors;
        let wrong = world.wrong(1 + random.below(30) as u32).await;
        if !same && wrong.is_empty() {
            let stored = world.stored(&world.graphs[0]).await;
            let differs: Vec<_> = walk.ancestors.iter().filter(|(o, a)| stored.get(*o) != Some(a)).collect();
            panic!("not found ({written}): {sql}: {differs:?}\nstored {stored:?}");
        }
        for round in 0.. {
            let wrong = world.wrong(1000).await;
            if wrong.is_empty() {
                break;
            }
            assert!(round < 4, "not repaired: {sql}: {wrong:?}");
            repair(&world.town.owner, &wrong).await.unwrap();
        }
        world.exact(&format!("repair of {sql}")).await;
    }
}

fn some(random: &mut Random, n: u64) -> u64 {
    1 + random.below(n)
}

fn or_null(random: &mut Random, value: String) -> String {
    if random.below(5) == 0 { "NULL".to_owned() } else { value }
}

/// Folders in folders, shown in folders, in spaces, which are in folders: three kinds of links, two types with different
/// keys, a condition, and a deny that is inherited the same way.
const TYPES: Kind = Kind {
    name: "several types",
    schema: "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY);
INSERT INTO app.users VALUES (1), (2), (3);
CREATE TABLE app.spaces (slug text PRIMARY KEY, folder_id integer, lead_id bigint, hidden_from bigint, live boolean DEFAULT true);
CREATE TABLE app.folders (id bigint PRIMARY KEY, parent_id bigint, space varchar, inherit boolean DEFAULT true,
                          owner_id bigint, hidden_from bigint);
CREATE INDEX ON app.folders (parent_id);
CREATE INDEX ON app.folders (space);
CREATE TABLE app.folder_links (folder_id bigint, shown_in bigint, active boolean);
CREATE TABLE app.readers (folder_id bigint, user_id bigint);
GRANT USAGE ON SCHEMA app TO app_user;
GRANT SELECT ON ALL TABLES IN SCHEMA app TO app_user;",
    policy: "
app role app_user
type user = app.users
type space = app.spaces (slug text) where {live}
  home : folder = folder_id
  lead : user = lead_id
  hidden : user = hidden_from
  can hide = hidden or home.hide
  can view = (lead or home.view) and not hide
type folder = app.folders
  parent : folder = parent_id
  space : space = space
  shown : folder = app.folder_links(folder_id -> shown_in) where {active}
  owner : user = owner_id
  reader : user = app.readers(folder_id -> user_id)
  hidden : user = hidden_from
  can hide = hidden or (parent.hide and {inherit}) or space.hide or shown.hide
  can edit = owner or (parent.edit and {inherit})
  can view = (edit or reader or (parent.view and {inherit}) or space.view or shown.view) and not hide
rules app.folders
  select : view
rules app.spaces
  select : view
",
    objects: "SELECT 'space ' || slug FROM app.spaces WHERE live UNION ALL SELECT 'folder ' || id FROM app.folders",
    links: "SELECT 'space ' || slug, 'folder ' || folder_id FROM app.spaces
            UNION SELECT 'folder ' || id, 'folder ' || parent_id FROM app.folders WHERE inherit
            UNION SELECT 'folder ' || id, 'space ' || space FROM app.folders
            UNION SELECT 'folder ' || folder_id, 'folder ' || shown_in FROM app.folder_links WHERE active",
    // `edit` is inherited over a part of the links, so that whoever starts it starts `view` too.
    starts: "SELECT 'space ' || slug, lead_id::text FROM app.spaces
             UNION SELECT 'folder ' || id, owner_id::text FROM app.folders
             UNION SELECT 'folder ' || folder_id, user_id::text FROM app.readers",
    denied: Some(
        "SELECT 'space ' || slug, hidden_from::text FROM app.spaces UNION SELECT 'folder ' || id, hidden_from::text FROM app.folders",
    ),
    asks: &[
        ("space", "SELECT slug FROM app.spaces WHERE live ORDER BY slug", "SELECT slug FROM app.spaces"),
        ("folder", "SELECT id::text FROM app.folders t ORDER BY t.id", "SELECT id::text FROM app.folders"),
    ],
    write: write_types,
};

fn write_types(random: &mut Random) -> String {
    let r = random;
    let (f, g) = (some(r, 25), some(r, 25));
    let s = some(r, 6);
    match r.below(20) {
        0..=4 => {
            let rows: Vec<String> = (0..=r.below(4))
                .map(|_| {
                    let (p, sp) = (some(r, 25).to_string(), format!("'s{}'", some(r, 8)));
                    format!(
                        "({}, {}::bigint, {}::text, {}, {}, {})",
                        some(r, 25),
                        or_null(r, p),
                        if r.below(3) == 0 { sp } else { "NULL".to_owned() },
                        r.below(4) > 0,
                        some(r, 6),
                        some(r, 20)
                    )
                })
                .collect();
            format!(
                "INSERT INTO app.folders SELECT DISTINCT ON (a) * FROM (VALUES {}) v(a, b, c, d, e, f) ON CONFLICT DO NOTHING",
                rows.join(", ")
            )
        }
        5 | 6 => {
            let home = f.to_string();
            format!(
                "INSERT INTO app.spaces VALUES ('s{s}', {}, {}, {}) ON CONFLICT (slug) DO UPDATE SET folder_id = {g}",
                or_null(r, home),
                some(r, 6),
                some(r, 20)
            )
        }
        7 | 8 => format!("UPDATE app.folders SET parent_id = {} WHERE id = {f}", or_null(r, g.to_string())),
        9 => format!("UPDATE app.folders SET space = 's{s}' WHERE id % 5 = {}", r.below(5)),
        10 => format!("UPDATE app.folders SET inherit = NOT inherit WHERE id % 7 = {}", r.below(7)),
        11 => format!("UPDATE app.spaces SET slug = 's{}', lead_id = lead_id % 6 + 1 WHERE slug = 's{s}'", some(r, 8)),
        12 => format!("UPDATE app.folders SET id = {} WHERE id = {f}", some(r, 30)),
        13 => format!("DELETE FROM app.folders WHERE id = {f}"),
        14 => format!("DELETE FROM app.spaces WHERE slug = 's{s}'"),
        15 => format!("UPDATE app.spaces SET live = NOT live WHERE slug = 's{s}'"),
        16 => format!("INSERT INTO app.folder_links VALUES ({f}, {g}, {}), ({g}, {})", r.below(5) > 0, format_args!("{}, true", some(r, 25))),
        17 => format!("UPDATE app.folder_links SET active = NOT active, shown_in = {g} WHERE folder_id % 4 = {}", r.below(4)),
        18 if r.below(10) == 0 => {
            ["TRUNCATE app.folder_links", "TRUNCATE app.spaces", "TRUNCATE app.folders"][r.below(3) as usize].to_owned()
        }
        18 => format!("DELETE FROM app.folder_links WHERE folder_id = {f} OR shown_in % 3 = {}", r.below(3)),
        _ => format!(
            "WITH s AS (INSERT INTO app.spaces VALUES ('s{s}', {f}) ON CONFLICT DO NOTHING)
             INSERT INTO app.folders VALUES ({g}, NULL, 's{s}') ON CONFLICT DO NOTHING; INSERT INTO app.readers VALUES ({f}, {})",
            some(r, 3)
        ),
    }
}

/// A key of two columns, linked by a part of itself, and by a link table.
const WIDE: Kind = Kind {
    name: "a key of two columns",
    schema: "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY);
INSERT INTO app.users VALUES (1), (2), (3);
CREATE TABLE app.dirs (org_id integer, slug varchar(40), parent text, owner_id bigint, open boolean DEFAULT true, PRIMARY KEY (org_id, slug));
CREATE INDEX ON app.dirs (org_id, parent);
CREATE TABLE app.dir_links (org_id bigint, slug text, in_org bigint, in_slug text);
GRANT USAGE ON SCHEMA app TO app_user;
GRANT SELECT ON ALL TABLES IN SCHEMA app TO app_user;",
    policy: "
app role app_user
type user = app.users
type dir = app.dirs (org_id integer, slug varchar)
  parent : dir = [org_id, parent]
  linked : dir = app.dir_links([org_id, slug] -> [in_org, in_slug])
  owner : user = owner_id
  can view = owner or ((parent.view or linked.view) and {open})
rules app.dirs
  select : view
",
    objects: "SELECT 'dir ' || ROW(org_id, slug)::text FROM app.dirs",
    links: "SELECT 'dir ' || ROW(org_id, slug)::text, 'dir ' || ROW(org_id, parent)::text FROM app.dirs WHERE open
            UNION SELECT 'dir ' || ROW(l.org_id, l.slug)::text, 'dir ' || ROW(in_org, in_slug)::text FROM app.dir_links l
              JOIN app.dirs d ON d.org_id = l.org_id AND d.slug = l.slug WHERE d.open",
    starts: "SELECT 'dir ' || ROW(org_id, slug)::text, owner_id::text FROM app.dirs",
    denied: None,
    asks: &[(
        "dir",
        "SELECT ROW(org_id, slug)::text FROM app.dirs ORDER BY org_id, slug",
        "SELECT ROW(org_id, slug)::text FROM app.dirs",
    )],
    write: write_wide,
};

fn write_wide(random: &mut Random) -> String {
    let r = random;
    let (o, p) = (some(r, 2), some(r, 2));
    let (a, b) = (format!("'d {}'", some(r, 10)), format!("'d {}'", some(r, 10)));
    match r.below(14) {
        0..=4 => format!(
            "INSERT INTO app.dirs VALUES ({o}, {a}, {}, {}), ({p}, 'd {}', {a}, {}) ON CONFLICT DO NOTHING",
            or_null(r, b.clone()),
            some(r, 6),
            some(r, 12),
            some(r, 6)
        ),
        5 | 6 => format!("UPDATE app.dirs SET parent = {} WHERE slug = {a}", or_null(r, b)),
        7 => format!("UPDATE app.dirs SET org_id = 3 - org_id WHERE slug = {a}"),
        8 => format!("UPDATE app.dirs SET slug = {b} WHERE slug = {a} AND org_id = {o}"),
        9 => format!("UPDATE app.dirs SET open = NOT open WHERE slug IN ({a}, {b})"),
        10 => format!("DELETE FROM app.dirs WHERE (org_id, slug) = ({o}, {a})"),
        11 => format!("INSERT INTO app.dir_links VALUES ({o}, {a}, {p}, {b}), ({p}, {b}, {p}, {a})"),
        12 if r.below(8) == 0 => ["TRUNCATE app.dirs", "TRUNCATE app.dir_links"][r.below(2) as usize].to_owned(),
        12 => format!("DELETE FROM app.dir_links WHERE slug = {a} OR in_slug = {b}"),
        _ => format!("UPDATE app.dir_links SET in_slug = {a} WHERE in_slug = {b}"),
    }
}

/// A pair of columns that names a parent of either type, whose keys differ, so that it holds text.
const PAIRS: Kind = Kind {
    name: "pairs of columns",
    schema: "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY);
INSERT INTO app.users VALUES (1), (2), (3);
CREATE TABLE app.projects (id uuid PRIMARY KEY, parent_type text, parent_id text, owner_id bigint);
CREATE TABLE app.folders (id bigint PRIMARY KEY, parent_type text, parent_id text, owner_id bigint, inherit boolean DEFAULT true);
GRANT USAGE ON SCHEMA app TO app_user;
GRANT SELECT ON ALL TABLES IN SCHEMA app TO app_user;",
    policy: "
app role app_user
type user = app.users
type project = app.projects (id uuid)
  parent : folder, project = (parent_type, parent_id)
  owner : user = owner_id
  can view = owner or parent.view
type folder = app.folders
  parent : folder, project = (parent_type, parent_id)
  owner : user = owner_id
  can view = (owner or parent.view) and {inherit}
rules app.folders
  select : view
rules app.projects
  select : view
",
    objects: "SELECT 'project ' || id FROM app.projects UNION ALL SELECT 'folder ' || id FROM app.folders",
    links: "SELECT 'project ' || id, parent_type || ' ' || parent_id FROM app.projects
            UNION SELECT 'folder ' || id, parent_type || ' ' || parent_id FROM app.folders WHERE inherit",
    starts: "SELECT 'project ' || id, owner_id::text FROM app.projects
             UNION SELECT 'folder ' || id, owner_id::text FROM app.folders WHERE inherit",
    denied: None,
    asks: &[
        ("project", "SELECT id::text FROM app.projects t ORDER BY t.id", "SELECT id::text FROM app.projects"),
        ("folder", "SELECT id::text FROM app.folders t ORDER BY t.id", "SELECT id::text FROM app.folders"),
    ],
    write: write_pairs,
};

fn write_pairs(random: &mut Random) -> String {
    fn parent(r: &mut Random) -> String {
        match r.below(8) {
            0 => "NULL, NULL".to_owned(),
            1 => "'folder', 'x'".to_owned(),
            2 => format!("'other', '{}'", some(r, 12)),
            3..=5 => format!("'folder', '{}'", some(r, 12)),
            _ => format!("'project', '{}'", uuid(some(r, 6))),
        }
    }
    fn uuid(n: u64) -> String {
        format!("00000000-0000-0000-0000-00000000000{n}")
    }
    let r = random;
    match r.below(12) {
        0..=2 => format!(
            "INSERT INTO app.folders VALUES ({}, {}, {}) ON CONFLICT DO NOTHING",
            some(r, 12),
            parent(r),
            some(r, 6)
        ),
        3 | 4 => format!(
            "INSERT INTO app.projects VALUES ('{}', {}, {}) ON CONFLICT DO NOTHING",
            uuid(some(r, 6)),
            parent(r),
            some(r, 6)
        ),
        5 | 6 => {
            format!("UPDATE app.folders SET (parent_type, parent_id) = ({}) WHERE id = {}", parent(r), some(r, 12))
        }
        7 => format!(
            "UPDATE app.projects SET (parent_type, parent_id) = ({}) WHERE id = '{}'",
            parent(r),
            uuid(some(r, 6))
        ),
        8 => format!("UPDATE app.folders SET inherit = NOT inherit WHERE id % 4 = {}", r.below(4)),
        9 => format!("DELETE FROM app.folders WHERE id = {}", some(r, 12)),
        10 => format!("UPDATE app.folders SET id = {} WHERE id = {}", some(r, 14), some(r, 12)),
        _ => format!("DELETE FROM app.projects WHERE id = '{}'", uuid(some(r, 6))),
    }
}

/// Folders in folders and projects, and projects in folders, by shares made at run time.
const SHARES: Kind = Kind {
    name: "shares with objects",
    schema: "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY);
INSERT INTO app.users VALUES (1), (2), (3);
CREATE TABLE app.projects (id bigint PRIMARY KEY, owner_id bigint, open boolean DEFAULT true);
CREATE TABLE app.folders (id bigint PRIMARY KEY, parent_id bigint, owner_id bigint);
GRANT USAGE ON SCHEMA app TO app_user;
GRANT SELECT ON ALL TABLES IN SCHEMA app TO app_user;",
    policy: "
app role app_user
type user = app.users
type project = app.projects
  home : folder shared if {open}
  owner : user = owner_id
  can share = owner
  can view = owner or home.view
type folder = app.folders
  parent : folder = parent_id
  within : project, folder shared
  owner : user = owner_id
  can share = owner
  can view = owner or parent.view or within.view
rules app.folders
  select : view
rules app.projects
  select : view
",
    objects: "SELECT 'project ' || id FROM app.projects UNION ALL SELECT 'folder ' || id FROM app.folders",
    links: "SELECT 'project ' || p.id, 'folder ' || s.subject FROM app.projects p
              JOIN authz_int.share__project__home__folder s ON s.object = p.id WHERE p.open AND s.expires IS NULL
            UNION SELECT 'folder ' || id, 'folder ' || parent_id FROM app.folders
            UNION SELECT 'folder ' || object, 'project ' || subject FROM authz_int.share__folder__within__project WHERE expires IS NULL
            UNION SELECT 'folder ' || object, 'folder ' || subject FROM authz_int.share__folder__within__folder WHERE expires IS NULL",
    starts: "SELECT 'project ' || id, owner_id::text FROM app.projects
             UNION SELECT 'folder ' || id, owner_id::text FROM app.folders",
    denied: None,
    asks: &[
        ("project", "SELECT id::text FROM app.projects t ORDER BY t.id", "SELECT id::text FROM app.projects"),
        ("folder", "SELECT id::text FROM app.folders t ORDER BY t.id", "SELECT id::text FROM app.folders"),
    ],
    write: write_shares,
};

fn write_shares(random: &mut Random) -> String {
    let r = random;
    let (f, g, p) = (some(r, 12), some(r, 12), some(r, 6));
    let share = [("project__home__folder", p, g), ("folder__within__project", f, p), ("folder__within__folder", f, g)]
        [r.below(3) as usize];
    let (table, object, subject) = share;
    match r.below(12) {
        0..=2 => format!(
            "INSERT INTO app.folders VALUES ({f}, {}, {}) ON CONFLICT DO NOTHING",
            or_null(r, g.to_string()),
            some(r, 8)
        ),
        3 => format!("INSERT INTO app.projects VALUES ({p}, {}) ON CONFLICT DO NOTHING", some(r, 6)),
        4..=6 => format!(
            "INSERT INTO authz_int.share__{table} (object, subject, made_by) VALUES ({object}, {subject}, '') ON CONFLICT DO NOTHING"
        ),
        7 => format!("DELETE FROM authz_int.share__{table} WHERE object = {object} OR subject = {subject}"),
        // Made before the relation passed anything on.
        8 => format!("UPDATE authz_int.share__{table} SET expires = 'infinity' WHERE object = {object}"),
        9 => format!(
            "DELETE FROM app.folders WHERE id = {f}; UPDATE app.folders SET id = {} WHERE id = {g}",
            some(r, 14)
        ),
        10 => format!("UPDATE app.projects SET open = NOT open WHERE id = {p}"),
        _ => format!(
            "UPDATE app.folders SET parent_id = {g} WHERE id = {f}; DELETE FROM app.projects WHERE id = {}",
            some(r, 9)
        ),
    }
}

/// `ROWDECK_SEEDS` runs more of them.
fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("ROWDECK_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
}

async fn all(kind: &'static Kind, cluster_size: u32) {
    for seed in seeds() {
        random_writes(kind, cluster_size, seed * 7919 + u64::from(cluster_size), 100).await;
    }
}

macro_rules! kinds {
    ($($module:ident: $kind:expr;)*) => {$(
        mod $module {
            use super::*;
            static KIND: Kind = $kind;

            #[tokio::test(flavor = "multi_thread")]
            async fn in_clusters_of_2() {
                all(&KIND, 2).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn in_clusters_of_3() {
                all(&KIND, 3).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn in_clusters_of_256() {
                all(&KIND, 256).await;
            }
        }
    )*};
}

kinds! {
    several_types: TYPES;
    wide_keys: WIDE;
    pairs_of_columns: PAIRS;
    shares_with_objects: SHARES;
}
