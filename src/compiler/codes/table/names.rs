//! AZ2xx: names, keys and sources.

use super::shown;
use crate::compiler::codes::CodeInfo;

/// See the module.
pub(super) const NAMES: &[CodeInfo] = &[
    shown(
        201,
        "an unknown type",
        "Name a type that the policy declares, on any of its lines.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : person = author_id
  can view = author
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
"#,
    ),
    shown(
        202,
        "no user type",
        "Say which table holds the users: type user = app.users.",
        r#"
app role app_user
type note = app.notes
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
"#,
    ),
    shown(
        203,
        "an unknown relation or permission",
        "Name one that the type declares.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = autor
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
"#,
    ),
    shown(
        204,
        "anyone, link or type:* outside a shared relation, or of a type that does not sign in",
        "A column and a link table name people one by one. Use shared for what is shared with everyone, or anyone and signed_in in the permission.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  reader : user:* = app.note_readers(note_id -> user_id)
  can view = reader
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  reader : user:* shared
  can share = nobody
  can view = reader
"#,
    ),
    shown(
        205,
        "a source that cannot hold these subjects",
        "One column or link table holds ids of one type. Write a line for each type; a relation names either people or objects.",
        r#"
app role app_user
type user = app.users
type team = app.teams
  member : user = app.members(team_id -> user_id)
type note = app.notes
  editor : user, team#member = editor_id
  can edit = editor
"#,
        r#"
app role app_user
type user = app.users
type team = app.teams
  member : user = app.members(team_id -> user_id)
type note = app.notes
  editor : user = editor_id
  editor : team#member = team_id
  can edit = editor
"#,
    ),
    shown(
        206,
        "a key written wrongly or of the wrong shape",
        "A key is (COLUMN [TYPE], ...) with types bigint, integer, smallint, text, varchar or uuid; without one it is (id bigint). What refers to it has as many columns.",
        r#"
app role app_user
type user = app.users
type note = app.notes (id serial)
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes (id integer)
"#,
    ),
    shown(
        207,
        "a shared relation with no permission to share it",
        "Declare can share, or name the permission: shared by manage.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  reader : user shared
  can view = author or reader
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  reader : user shared
  can share = author
  can view = author or reader
"#,
    ),
    shown(
        208,
        "a relation nothing uses",
        "Use it in a permission, or take it out.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = anyone
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
"#,
    ),
    shown(
        209,
        "a group made only of groups",
        "Add a source that names people: member : user = app.members(team_id -> user_id).",
        r#"
app role app_user
type user = app.users
type team = app.teams
  member : team#member = app.team_teams(team_id -> member_id)
  can view = member
"#,
        r#"
app role app_user
type user = app.users
type team = app.teams
  member : team#member = app.team_teams(team_id -> member_id)
  member : user = app.members(team_id -> user_id)
  can view = member
"#,
    ),
    shown(
        210,
        "roles where it cannot be",
        "A type whose permissions write roles has a line roles : user saying who may hold them.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author or roles
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
"#,
    ),
    shown(
        211,
        "from a relation that cannot name the owner",
        "The owner of the roles is one object, so the relation is one column.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  roles : user from org
  can view = author or roles
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
"#,
    ),
];
