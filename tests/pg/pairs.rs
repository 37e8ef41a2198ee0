//! Pairs of columns that hold a type's name and an id, several sources in one relation, relations to users that are
//! followed, and the relation of a user to itself.

use std::collections::BTreeSet;

use rowdeck::compiler::emit::Options;

use crate::agree::changes::Random;
use crate::plain::{Ask, Town, pairs};

const SCHEMA: &str = "
CREATE SCHEMA app;
CREATE TYPE app.kind AS ENUM ('folder', 'project', 'other');
CREATE TABLE app.users (id bigint PRIMARY KEY, boss_id bigint);
CREATE TABLE app.teams (id uuid PRIMARY KEY);
CREATE TABLE app.team_members (team_id uuid, user_id integer);
CREATE TABLE app.folders (id integer PRIMARY KEY, owner_id bigint);
CREATE TABLE app.projects (id bigint PRIMARY KEY, lead_id bigint);
CREATE TABLE app.items (id text PRIMARY KEY, owner_type varchar, owner_id text, parent_type app.kind, parent_id bigint,
                        keeper_id bigint);
CREATE TABLE app.item_folders (item_id text, folder_id smallint);
CREATE TABLE app.item_teams (item_id varchar, team_id uuid);
CREATE TABLE app.item_managers (item_id text, user_id bigint);
GRANT USAGE ON SCHEMA app TO app_user;";

const POLICY: &str = "
app role app_user
type user = app.users
  self : user = id
  boss : user = boss_id
  can near = self or boss.self
  can oversee = self or boss.oversee
type team = app.teams (id uuid)
  member : user = app.team_members(team_id -> user_id)
type folder = app.folders (id integer)
  owner : user = owner_id
  can view = owner
type project = app.projects
  lead : user = lead_id
  can view = lead or lead.near
type item = app.items (id text)
  owner : user, team#member = (owner_type, owner_id)
  parent : folder, project = (parent_type, parent_id)
  parent : folder = app.item_folders(item_id -> folder_id)
  keeper : user = keeper_id
  keeper : team#member = app.item_teams(item_id -> team_id)
  keeper : user, team#member shared
  manager : user = app.item_managers(item_id -> user_id)
  manager : user shared by edit
  can share = owner
  can edit = owner or keeper
  can audit = manager.oversee
  can view = (edit or parent.view or audit) and not {owner_type = 'nobody'}
rules app.items
  select : view
  insert : owner
  update : edit
";

struct Facts {
    bosses: BTreeSet<(String, String)>,
    members: BTreeSet<(String, String)>,
    folders: BTreeSet<(String, String)>,
    projects: BTreeSet<(String, String)>,
    /// Item, and `type id` of its owner, parent and keepers.
    owners: BTreeSet<(String, String)>,
    parents: BTreeSet<(String, String)>,
    keepers: BTreeSet<(String, String)>,
    managers: BTreeSet<(String, String)>,
}

impl Facts {
    async fn read(town: &Town) -> Facts {
        let keepers = "SELECT id, 'user ' || keeper_id FROM app.items
            UNION SELECT item_id, 'team ' || team_id FROM app.item_teams
            UNION SELECT object, 'user ' || subject FROM authz_int.share__item__keeper__user
            UNION SELECT object, 'team ' || subject FROM authz_int.share__item__keeper__team__member";
        let parents = "SELECT id, parent_type || ' ' || parent_id FROM app.items
            UNION SELECT item_id, 'folder ' || folder_id FROM app.item_folders";
        let managers = "SELECT item_id, user_id::text FROM app.item_managers
            UNION SELECT object, subject::text FROM authz_int.share__item__manager__user";
        Facts {
            bosses: pairs(town, "SELECT id::text, boss_id::text FROM app.users").await,
            members: pairs(town, "SELECT team_id::text, user_id::text FROM app.team_members").await,
            folders: pairs(town, "SELECT id::text, owner_id::text FROM app.folders").await,
            projects: pairs(town, "SELECT id::text, lead_id::text FROM app.projects").await,
            owners: pairs(town, "SELECT id, owner_type || ' ' || owner_id FROM app.items").await,
            parents: pairs(town, parents).await,
            keepers: pairs(town, keepers).await,
            managers: pairs(town, managers).await,
        }
    }

    fn of<'a>(set: &'a BTreeSet<(String, String)>, id: &'a str) -> impl Iterator<Item = &'a str> {
        set.iter().filter(move |(of, _)| of == id).map(|(_, to)| to.as_str())
    }

    /// The user, or the members of the team, that `subject` names.
    fn is(&self, user: &str, subject: &str) -> bool {
        match subject.split_once(' ') {
            Some(("user", id)) => id == user,
            Some(("team", id)) => self.members.contains(&(id.to_owned(), user.to_owned())),
            _ => false,
        }
    }

    fn oversee(&self, user: &str, of: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut at = of.to_owned();
        while seen.insert(at.clone()) {
            if at == user {
                return self.bosses.iter().any(|(id, _)| *id == at);
            }
            let boss = Facts::of(&self.bosses, &at).next().map(str::to_owned);
            match boss {
                Some(boss) => at = boss,
                None => return false,
            };
        }
        false
    }

    fn near(&self, user: &str, of: &str) -> bool {
        self.bosses.iter().any(|(id, boss)| id == of && (id == user || boss == user))
    }

    fn edit(&self, user: &str, item: &str) -> bool {
        Facts::of(&self.owners, item).chain(Facts::of(&self.keepers, item)).any(|subject| self.is(user, subject))
    }

    fn audit(&self, user: &str, item: &str) -> bool {
        Facts::of(&self.managers, item).any(|manager| self.oversee(user, manager))
    }

    fn view(&self, user: &str, item: &str) -> bool {
        let parent = |parent: &str| match parent.split_once(' ') {
            Some(("folder", id)) => Facts::of(&self.folders, id).any(|owner| owner == user),
            Some(("project", id)) => Facts::of(&self.projects, id).any(|lead| lead == user || self.near(user, lead)),
            _ => false,
        };
        let hidden = Facts::of(&self.owners, item).any(|owner| owner.starts_with("nobody "));
        !hidden && (self.edit(user, item) || self.audit(user, item) || Facts::of(&self.parents, item).any(parent))
    }
}

fn team(n: u64) -> String {
    format!("00000000-0000-0000-0000-0000000000a{n}")
}

fn change(random: &mut Random) -> String {
    let (user, other) = (random.below(5) + 1, random.below(5) + 1);
    let (team, folder, item) = (team(random.below(3)), random.below(3) + 1, format!("i{}", random.below(6)));
    // Ids that are none of the type's are nobody's.
    let odd = ["", "abc", "007", "99999999999999999999", "1.0", " 1", "9223372036854775808"];
    let (kind, id) = match random.below(6) {
        0 | 1 => ("user", user.to_string()),
        2 | 3 => ("team", team.clone()),
        4 => (["user", "team", "nobody"][usize::try_from(random.below(3)).unwrap()], "1".to_owned()),
        _ => (
            ["user", "team"][usize::try_from(random.below(2)).unwrap()],
            odd[usize::try_from(random.below(7)).unwrap()].to_owned(),
        ),
    };
    let parent = ["folder", "project", "other"][usize::try_from(random.below(3)).unwrap()];
    match random.below(10) {
        0..=2 => format!(
            "INSERT INTO app.items VALUES ('{item}', '{kind}', '{id}', '{parent}', {folder}, {user}) ON CONFLICT DO NOTHING"
        ),
        3 => format!(
            "UPDATE app.items SET owner_type = '{kind}', owner_id = '{id}', keeper_id = NULL WHERE id = '{item}'"
        ),
        4 => format!("INSERT INTO app.team_members VALUES ('{team}', {user})"),
        5 => format!("INSERT INTO app.item_folders SELECT id, {folder} FROM app.items WHERE id = '{item}'"),
        6 => format!("INSERT INTO app.item_teams SELECT id, '{team}' FROM app.items WHERE id = '{item}'"),
        7 => format!("INSERT INTO app.item_managers SELECT id, {user} FROM app.items WHERE id = '{item}'"),
        8 => format!("UPDATE app.users SET boss_id = {other} WHERE id = {user} AND {other} > {user}"),
        _ => format!("UPDATE app.items SET parent_type = '{parent}', parent_id = {folder} WHERE id = '{item}'"),
    }
}

async fn run(seed: u64, options: Options) {
    let town = Town::new(SCHEMA, POLICY, &options).await;
    for n in 1..=5 {
        town.run(&format!("INSERT INTO app.users VALUES ({n}, NULL)")).await;
    }
    for n in 1..=3 {
        town.run(&format!(
            "INSERT INTO app.teams VALUES ('{}'); INSERT INTO app.folders VALUES ({n}, {n}); INSERT INTO app.projects VALUES ({n}, {})",
            team(n - 1),
            n + 1
        ))
        .await;
    }
    let users = ["1", "2", "3", "4", "5"];
    let mut random = Random(seed);
    for _ in 0..3 {
        for _ in 0..14 {
            town.run(&change(&mut random)).await;
        }
        // Shares, by whoever owns an item alone.
        for row in
            town.texts("SELECT id, owner_id FROM app.items WHERE owner_type = 'user' AND owner_id ~ '^[1-5]$'").await
        {
            let (id, n) = (&row[0], random.below(5) + 1);
            let shares = [
                format!("SELECT authz.share('item', '{id}', 'keeper', 'user', {n})"),
                format!("SELECT authz.share('item', '{id}', 'keeper', 'team', '{}', 'member')", team(n % 3)),
                format!("SELECT authz.share('item', '{id}', 'manager', 'user', {n})"),
            ];
            town.act(Some(&row[1]), &shares[usize::try_from(random.below(3)).unwrap()], true).await.unwrap();
        }
        let facts = Facts::read(&town).await;
        let items = "SELECT id FROM app.items ORDER BY id";
        let people = "SELECT id::text FROM app.users ORDER BY id";
        let rows = Some("SELECT id FROM app.items");
        type Line<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, &'a dyn Fn(&str, &str) -> bool);
        let asks: [Line<'_>; 5] = [
            ("item", "edit", items, None, &|u, id| facts.edit(u, id)),
            ("item", "audit", items, None, &|u, id| facts.audit(u, id)),
            ("item", "view", items, rows, &|u, id| facts.view(u, id)),
            ("user", "oversee", people, None, &|u, id| facts.oversee(u, id)),
            ("user", "near", people, None, &|u, id| facts.near(u, id)),
        ];
        for (ty, permission, ids, rows, holds) in asks {
            let holds = |user: Option<&str>, id: &str| user.is_some_and(|user| holds(user, id));
            town.agree(&users, &Ask { ty, permission, ids, rows, holds: &holds }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pairs_and_followed_users_agree_with_a_plain_walk() {
    run(21, Options { cluster_size: 2, ..Options::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pairs_and_followed_users_agree_with_a_plain_walk_from_sets() {
    run(22, Options { cluster_size: 2, first_rows: 0, held_rows: 0 }).await;
}
