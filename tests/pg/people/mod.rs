//! Who may be asking and what may be given: services, everyone, anyone, links, caveats, scopes, roles, denies. Each is
//! compared with a plain expectation, and each is attacked with what the app role may send.

mod applied;
mod asks;
mod facts;
mod limits;
mod links;
mod roles;
mod shares;

use rowdeck::compiler::emit::Options;

use crate::plain::{Ask, Town};
use facts::Facts;

/// Tables of people, services, teams and documents.
pub const SCHEMA: &str = "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY, active boolean NOT NULL DEFAULT true);
CREATE TABLE app.services (code text PRIMARY KEY, enabled boolean NOT NULL DEFAULT true, owner_id bigint);
CREATE TABLE app.teams (id bigint PRIMARY KEY);
CREATE TABLE app.team_users (team_id bigint, user_id bigint);
CREATE TABLE app.team_services (team_id bigint, service_code text);
CREATE TABLE app.orgs (id bigint PRIMARY KEY, boss_id bigint);
CREATE TABLE app.docs (id bigint PRIMARY KEY, org_id bigint, owner_id bigint, robot_code text,
                       frozen boolean NOT NULL DEFAULT false, title text NOT NULL DEFAULT '');
GRANT USAGE ON SCHEMA app TO app_user;
INSERT INTO app.users SELECT u FROM generate_series(1, 5) u;
INSERT INTO app.services VALUES ('a', true, 1), ('b', true, 2), ('c', false, 1);
INSERT INTO app.teams VALUES (1), (2);
INSERT INTO app.team_users VALUES (1, 3), (2, 4);
INSERT INTO app.team_services VALUES (1, 'a');
INSERT INTO app.orgs VALUES (1, 1), (2, 2);
INSERT INTO app.docs VALUES (1, 1, 1, 'a', false), (2, 1, 2, NULL, false), (3, 2, 1, 'b', true), (4, 2, 2, 'c', false), (5, NULL, 3, NULL, false);";

/// A policy with all of it.
pub const POLICY: &str = "
app role app_user
type user = app.users where {active}
type service = app.services (code text) principal where {enabled}
type team = app.teams
  member : user = app.team_users(team_id -> user_id)
  member : service = app.team_services(team_id -> service_code)
type org = app.orgs
  boss : user = boss_id
  can manage_roles = boss
type doc = app.docs
  org : org = org_id
  owner : user = owner_id
  robot : service = robot_code
  viewer : user, service, team#member, user:*, service:*, anyone, link shared
  editor : user, team#member shared if {not frozen}
  banned : user, service shared
  roles : user, service, team#member from org
  can share = owner
  can edit = owner or robot or editor or roles
  can view = edit or viewer or roles
  can read = (anyone and not banned) and view
  can listen = signed_in and not banned
caveat from_ip = {authz.ctx('ip') = arg('ip')}
caveat few = {arg('n')::int < 10}
scope look = select, doc.view
scope write = app.docs.select, app.docs.update
rules app.docs
  select : view
  insert : owner
  update : edit
  delete : owner
";

const PEOPLE: [&str; 7] = ["1", "2", "3", "4", "5", "service:a", "service:b"];

async fn town() -> Town {
    Town::new(SCHEMA, POLICY, &Options::default()).await
}

/// Everything that answers agrees with the plain expectation.
async fn agree(town: &Town) {
    let facts = Facts::read(town).await;
    let ids = "SELECT id::text FROM app.docs ORDER BY id";
    for permission in ["share", "edit", "view", "read", "listen"] {
        let holds = |who: Option<&str>, id: &str| facts.holds(who, permission, id);
        let rows = (permission == "view").then_some("SELECT id::text FROM app.docs");
        town.agree(&PEOPLE, &Ask { ty: "doc", permission, ids, rows, holds: &holds }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_who_may_sign_in_is_told_apart() {
    let town = town().await;
    agree(&town).await;
    assert_eq!(town.seen(Some("service:a"), "SELECT authz.principal(), authz.uid()::text").await, [["service a", ""]]);
    assert_eq!(town.seen(Some("3"), "SELECT authz.principal(), authz.uid()::text").await, [["user 3", "3"]]);
    assert_eq!(town.seen(None, "SELECT authz.principal(), authz.uid()::text").await, [["", ""]]);
    // A user and a service of the same id are two.
    town.run("INSERT INTO app.services VALUES ('1'); UPDATE app.docs SET robot_code = '1' WHERE id = 2").await;
    assert_eq!(town.seen(Some("service:1"), "SELECT id::text FROM app.docs").await, [["2"]]);
    assert!(town.seen(Some("1"), "SELECT id::text FROM app.docs WHERE id = 2").await.is_empty());
    // Without a row, or with one that does not count, nobody.
    for nobody in ["99", "service:zz", "service:c"] {
        assert_eq!(town.seen(Some(nobody), "SELECT authz.principal()").await, [[""]]);
        assert!(town.seen(Some(nobody), "SELECT id::text FROM app.docs").await.is_empty(), "{nobody}");
    }
    town.refused(Some("1"), "SELECT authz.act_as('team', 1)", "P0001").await;
}
