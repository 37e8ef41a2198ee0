//! AZ4xx and AZ5xx: rules, scopes and tests.

use super::shown;
use crate::compiler::codes::CodeInfo;

/// See the module.
pub(super) const RULES: &[CodeInfo] = &[
    shown(
        401,
        "rules for no type's table",
        "Rules are for the table of exactly one type.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.note
  select : view
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.notes
  select : view
"#,
    ),
    shown(
        402,
        "a mask without a view",
        "Masked columns are read through a view: rules app.notes view app.notes_visible.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.notes
  select : view
  mask body : view
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.notes
  select : view
"#,
    ),
    shown(
        403,
        "an update refinement without update",
        "Add the plain update line that this narrows.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.notes
  select : view
  update author_id : author
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.notes
  select : view
  update : view
  update author_id : author
"#,
    ),
    shown(
        404,
        "a scope written wrongly",
        "A scope names commands (select), commands on a table (app.notes.update), permissions of a type (note.view) or permissions some type has.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
scope reading = note.read
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
        501,
        "$name before it is given",
        "Give it on a line above: given name = {INSERT ... RETURNING id}.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test "authors see their notes"
  given note = {INSERT INTO app.notes (author_id) VALUES ($ann) RETURNING id}
  user 3 can view note $note
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test "authors see their notes"
  given ann = {INSERT INTO app.users DEFAULT VALUES RETURNING id}
  given note = {INSERT INTO app.notes (author_id) VALUES ($ann) RETURNING id}
  user $ann can view note $note
"#,
    ),
    shown(
        502,
        "a test acting as a type that does not sign in",
        "Ask as a user, or as anyone.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test
  note 3 can view note 1
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test
  user 3 can view note 1
"#,
    ),
    shown(
        503,
        "an unknown scope in a test",
        "Name a scope the policy declares, or read.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test
  user 3 with scope raed can view note 1
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test
  user 3 can view note 1
"#,
    ),
];
