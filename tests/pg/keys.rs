//! Keys of every type and of several columns, in every place a key can stand.

use std::collections::{BTreeMap, BTreeSet};

use rowdeck::compiler::emit::Options;

use crate::agree::changes::Random;
use crate::plain::{Ask, Town, pairs};

pub const SCHEMA: &str = "
CREATE SCHEMA app;
CREATE TABLE app.users (id uuid PRIMARY KEY);
CREATE TABLE app.orgs (code varchar PRIMARY KEY);
CREATE TABLE app.org_admins (org_code varchar, user_id uuid);
CREATE TABLE app.teams (org_code varchar, slug text, PRIMARY KEY (org_code, slug));
CREATE TABLE app.team_members (org_code varchar, slug text, user_id uuid);
CREATE TABLE app.team_teams (org_code varchar, slug text, m_org varchar, m_slug text);
CREATE TABLE app.docs (org_code varchar, no integer, owner_id uuid, team_org varchar, team_slug text,
                       PRIMARY KEY (org_code, no));
CREATE TABLE app.doc_teams (org varchar, no smallint, t_org varchar, t_slug text);
CREATE TABLE app.notes (id smallint PRIMARY KEY, doc_org varchar, doc_no bigint);
GRANT USAGE ON SCHEMA app TO app_user;";

pub const POLICY: &str = "
app role app_user
type user = app.users (id uuid)
type org = app.orgs (code varchar)
  admin : user = app.org_admins(org_code -> user_id)
  can manage = admin
type team = app.teams (org_code varchar, slug text)
  org : org = org_code
  member : user = app.team_members([org_code, slug] -> user_id)
  member : team#member = app.team_teams(object: [org_code, slug], subject: [m_org, m_slug])
  can view = member or org.manage
type doc = app.docs (org_code varchar, no integer)
  owner : user = owner_id
  team : team = [team_org, team_slug]
  editor : team#member = [team_org, team_slug]
  shown : team = app.doc_teams([org, no] -> [t_org, t_slug])
  viewer : user, team#member shared
  can share = owner
  can edit = owner or editor
  can look = shown.view
  can view = edit or viewer or shown.member or team.view
type note = app.notes (id smallint)
  doc : doc = [doc_org, doc_no]
  can view = doc.view
rules app.docs
  select : view
  insert : owner
  update : edit
  delete : owner
rules app.notes
  select : view
";

/// Everything the policy reads, as texts.
struct Facts {
    admins: BTreeSet<(String, String)>,
    members: BTreeSet<(String, String)>,
    nested: BTreeSet<(String, String)>,
    owners: BTreeSet<(String, String)>,
    teams: BTreeSet<(String, String)>,
    shown: BTreeSet<(String, String)>,
    shared_users: BTreeSet<(String, String)>,
    shared_teams: BTreeSet<(String, String)>,
    notes: BTreeSet<(String, String)>,
    /// Each team with its organisation.
    all_teams: BTreeMap<String, String>,
}

impl Facts {
    async fn read(town: &Town) -> Facts {
        let all_teams = pairs(town, "SELECT ROW(org_code, slug)::text, org_code::text FROM app.teams").await;
        Facts {
            admins: pairs(town, "SELECT org_code::text, user_id::text FROM app.org_admins").await,
            members: pairs(town, "SELECT ROW(org_code, slug)::text, user_id::text FROM app.team_members").await,
            nested: pairs(town, "SELECT ROW(org_code, slug)::text, ROW(m_org, m_slug)::text FROM app.team_teams").await,
            owners: pairs(town, "SELECT ROW(org_code, no)::text, owner_id::text FROM app.docs").await,
            teams: pairs(town, "SELECT ROW(org_code, no)::text, ROW(team_org, team_slug)::text FROM app.docs").await,
            shown: pairs(town, "SELECT ROW(org, no)::text, ROW(t_org, t_slug)::text FROM app.doc_teams").await,
            shared_users: pairs(
                town,
                "SELECT ROW(object1, object2)::text, subject::text FROM authz_int.share__doc__viewer__user",
            )
            .await,
            shared_teams: pairs(
                town,
                "SELECT ROW(object1, object2)::text, ROW(subject1, subject2)::text FROM authz_int.share__doc__viewer__team__member",
            )
            .await,
            notes: pairs(town, "SELECT id::text, ROW(doc_org, doc_no)::text FROM app.notes").await,
            all_teams: all_teams.into_iter().collect(),
        }
    }

    /// The teams a user is in, also through teams in teams. A key with a NULL in it names nothing.
    fn mine(&self, user: &str) -> BTreeSet<String> {
        let named = |team: &str| !team.starts_with("(,") && !team.ends_with(",)");
        let start = self.members.iter().filter(|(team, member)| member == user && named(team));
        let mut todo: Vec<String> = start.map(|(team, _)| team.clone()).collect();
        let mut found = BTreeSet::new();
        while let Some(team) = todo.pop() {
            if found.insert(team.clone()) {
                let outer = self.nested.iter().filter(|(outer, inner)| *inner == team && named(outer));
                todo.extend(outer.map(|(outer, _)| outer.clone()));
            }
        }
        found
    }

    fn of<'a>(set: &'a BTreeSet<(String, String)>, id: &'a str) -> impl Iterator<Item = &'a String> {
        set.iter().filter(move |(of, _)| of == id).map(|(_, to)| to)
    }

    fn team(&self, user: Option<&str>, team: &str) -> bool {
        let (Some(user), Some(org)) = (user, self.all_teams.get(team)) else { return false };
        self.mine(user).contains(team) || self.admins.contains(&(org.clone(), user.to_owned()))
    }

    fn look(&self, user: Option<&str>, doc: &str) -> bool {
        Facts::of(&self.shown, doc).any(|team| self.team(user, team))
    }

    fn edit(&self, user: Option<&str>, doc: &str) -> bool {
        let Some(name) = user else { return false };
        let mine = self.mine(name);
        Facts::of(&self.owners, doc).any(|owner| owner == name)
            || Facts::of(&self.teams, doc).any(|team| mine.contains(team))
    }

    fn view(&self, user: Option<&str>, doc: &str) -> bool {
        let Some(name) = user else { return false };
        let mine = self.mine(name);
        self.edit(user, doc)
            || Facts::of(&self.shared_users, doc).any(|subject| subject == name)
            || Facts::of(&self.shared_teams, doc).any(|team| mine.contains(team))
            || Facts::of(&self.shown, doc).any(|team| mine.contains(team))
            || Facts::of(&self.teams, doc).any(|team| self.team(user, team))
    }

    fn note(&self, user: Option<&str>, note: &str) -> bool {
        Facts::of(&self.notes, note).any(|doc| self.owners.iter().any(|(id, _)| id == doc) && self.view(user, doc))
    }
}

fn user(n: u64) -> String {
    format!("00000000-0000-0000-0000-00000000000{n}")
}

const ORGS: [&str; 2] = ["north", "o'S, \"x\""];
const SLUGS: [&str; 3] = ["ops", "a b", "(x)"];

fn change(random: &mut Random) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut org = || quote(ORGS[usize::try_from(random.below(2)).unwrap()]);
    let (a, b) = (org(), org());
    let mut slug = || quote(SLUGS[usize::try_from(random.below(3)).unwrap()]);
    let (s, t) = (slug(), slug());
    let (u, no) = (user(random.below(4) + 1), random.below(5) + 1);
    // Now and then a key with a hole in it.
    let hole = if random.below(6) == 0 { "NULL".to_owned() } else { b.clone() };
    match random.below(12) {
        0 | 1 => format!("INSERT INTO app.docs VALUES ({a}, {no}, '{u}', {hole}, {s}) ON CONFLICT DO NOTHING"),
        2 => format!("DELETE FROM app.docs WHERE org_code = {a} AND no = {no}"),
        3 => format!("UPDATE app.docs SET team_org = {hole}, team_slug = {t} WHERE no = {no}"),
        4 | 5 => format!("INSERT INTO app.team_members VALUES ({hole}, {s}, '{u}')"),
        6 => format!("INSERT INTO app.team_teams VALUES ({a}, {s}, {hole}, {t})"),
        7 => format!("INSERT INTO app.doc_teams VALUES ({a}, {no}, {hole}, {t})"),
        8 => format!("INSERT INTO app.org_admins VALUES ({a}, '{u}')"),
        9 => format!("DELETE FROM app.team_members WHERE slug = {s} AND user_id = '{u}'"),
        10 => format!("INSERT INTO app.notes VALUES ({no}, {hole}, {}) ON CONFLICT DO NOTHING", random.below(5) + 1),
        _ => format!(
            "UPDATE app.docs SET no = {} WHERE org_code = {a} AND no = {no} AND NOT EXISTS (SELECT FROM app.docs d WHERE d.no = {})",
            no + 5,
            no + 5
        ),
    }
}

async fn share(town: &Town, random: &mut Random) {
    let docs = town.texts("SELECT ROW(org_code, no)::text, owner_id::text FROM app.docs").await;
    if docs.is_empty() {
        return;
    }
    let doc = &docs[usize::try_from(random.below(docs.len() as u64)).unwrap()];
    let id = doc[0].replace('\'', "''");
    let subject = match random.below(2) {
        0 => format!("'user', '{}'", user(random.below(4) + 1)),
        _ => format!("'team', '(north,{})', 'member'", if random.below(2) == 0 { "ops" } else { "\"a b\"" }),
    };
    let call = if random.below(3) == 0 { "unshare" } else { "share" };
    town.act(Some(&doc[1]), &format!("SELECT authz.{call}('doc', '{id}', 'viewer', {subject})"), true).await.unwrap();
}

/// What [`Ask`] holds, in its order.
type Line<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, &'a dyn Fn(Option<&str>, &str) -> bool);

async fn run(seed: u64, options: Options) {
    random(Town::new(SCHEMA, POLICY, &options).await, seed).await;
}

/// The same comparison after random changes, in a town with this policy.
pub async fn random(town: Town, seed: u64) {
    for n in 1..=4 {
        town.run(&format!("INSERT INTO app.users VALUES ('{}')", user(n))).await;
    }
    for org in ORGS {
        let org = org.replace('\'', "''");
        town.run(&format!("INSERT INTO app.orgs VALUES ('{org}')")).await;
        for slug in SLUGS {
            town.run(&format!("INSERT INTO app.teams VALUES ('{org}', '{slug}')")).await;
        }
    }
    let users: Vec<String> = (1..=4).map(user).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let mut random = Random(seed);
    for step in 0..4 {
        for _ in 0..12 {
            town.run(&change(&mut random)).await;
            share(&town, &mut random).await;
        }
        let facts = Facts::read(&town).await;
        assert!(step == 0 || facts.owners.iter().any(|(doc, _)| users.iter().any(|u| facts.view(Some(u), doc))));
        let docs = "SELECT ROW(org_code, no)::text FROM app.docs ORDER BY org_code, no";
        let shown = Some("SELECT ROW(org_code, no)::text FROM app.docs");
        let asks: [Line<'_>; 5] = [
            (
                "team",
                "view",
                "SELECT ROW(org_code, slug)::text FROM app.teams ORDER BY org_code, slug",
                None,
                &|u, id| facts.team(u, id),
            ),
            ("doc", "edit", docs, None, &|u, id| facts.edit(u, id)),
            ("doc", "look", docs, None, &|u, id| facts.look(u, id)),
            ("doc", "view", docs, shown, &|u, id| facts.view(u, id)),
            (
                "note",
                "view",
                "SELECT id::text FROM app.notes ORDER BY id",
                Some("SELECT id::text FROM app.notes"),
                &|u, id| facts.note(u, id),
            ),
        ];
        for (ty, permission, ids, rows, holds) in asks {
            town.agree(&users, &Ask { ty, permission, ids, rows, holds }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn composite_keys_agree_with_a_plain_walk() {
    run(11, Options::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composite_keys_agree_with_a_plain_walk_from_sets() {
    run(12, Options { first_rows: 0, held_rows: 0, ..Options::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_of_composite_keys_are_made_listed_and_ended() {
    let town = Town::new(SCHEMA, POLICY, &Options::default()).await;
    let (ann, bob) = (user(1), user(2));
    town.run(&format!(
        "INSERT INTO app.users VALUES ('{ann}'), ('{bob}'); INSERT INTO app.orgs VALUES ('n');
         INSERT INTO app.teams VALUES ('n', 'ops'); INSERT INTO app.team_members VALUES ('n', 'ops', '{bob}');
         INSERT INTO app.docs VALUES ('n', 1, '{ann}', NULL, NULL)"
    ))
    .await;
    let share = "SELECT authz.share('doc', '(n,1)', 'viewer', 'team', '(n,ops)', 'member')";
    assert!(town.refused(Some(&bob), share, "42501").await.contains("AZ705"));
    town.act(Some(&ann), share, true).await.unwrap();
    let can = "SELECT authz.can('doc', '(n,1)', 'view')::text";
    assert_eq!(town.seen(Some(&bob), can).await, [["true"]]);
    let list = "SELECT subject_kind, subject_id, subject_relation FROM authz.list_shares('doc', '(n,1)')";
    assert_eq!(town.seen(Some(&ann), list).await, [["team", "(n,ops)", "member"]]);
    let none: [[&str; 3]; 0] = [];
    assert_eq!(town.seen(Some(&bob), list).await, none, "only those who may share see the shares");
    let missing = "SELECT authz.share('doc', '(n,1)', 'viewer', 'team', '(n,gone)', 'member')";
    assert!(town.refused(Some(&ann), missing, "P0001").await.contains("AZ708"));
    // A share ends with the row at either end, also when its key changes.
    town.run("UPDATE app.teams SET slug = 'dev' WHERE slug = 'ops'").await;
    assert_eq!(town.seen(Some(&bob), can).await, [["false"]]);
    town.run("UPDATE app.teams SET slug = 'ops' WHERE slug = 'dev'").await;
    assert_eq!(town.seen(Some(&bob), can).await, [["false"]]);
    town.act(Some(&ann), share, true).await.unwrap();
    town.run("DELETE FROM app.docs").await;
    town.run(&format!("INSERT INTO app.docs VALUES ('n', 1, '{ann}', NULL, NULL)")).await;
    assert_eq!(town.seen(Some(&bob), can).await, [["false"]]);
}
