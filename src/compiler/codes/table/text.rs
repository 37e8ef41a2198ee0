//! AZ1xx: what is written wrongly.

use super::shown;
use crate::compiler::codes::CodeInfo;

/// See the module.
pub(super) const TEXT: &[CodeInfo] = &[
    shown(
        101,
        "a line that starts no block and belongs to none, or a header that goes on wrongly",
        "A block starts at the left margin with app role, include, type, caveat, scope, rules, invariants or test; its lines are indented below it.",
        r#"
app role app_user
type user = app.users
tpye note = app.notes
  author : user = author_id
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
        102,
        "an expression that does not parse, or and and or mixed without parentheses",
        "Put parentheses around the part that belongs together: neither word binds tighter than the other.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author or signed_in and {published}
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author or (signed_in and {published})
"#,
    ),
    shown(
        103,
        "a relation written wrongly",
        "A relation is NAME : SUBJECTS = SOURCE, where the source is a column, a link table such as app.members(team_id -> user_id), or the word shared in place of = SOURCE.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user author_id
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
        104,
        "a permission written wrongly",
        "A permission is can NAME = EXPRESSION.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view : author
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
        105,
        "a rule written wrongly",
        "A rule is COMMAND : EXPRESSION, where the command is select, insert, update, delete, update COLUMNS [before], update [COLUMNS] after, or mask COLUMNS.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
rules app.notes
  read : view
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
        106,
        "a test or an invariant written wrongly",
        "A test's lines are user 3 can view note 1, given NAME = {SQL}, as user $name allowed {SQL}, as user $name refused {SQL} and as user $name sees 2 {SELECT}. Only a test with a name brings data and runs statements.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author
test
  user 3 views note 1
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
        107,
        "a name that cannot be used",
        "Names are letters, digits and single underscores, and not words that mean something in an expression. A permission cannot have a command's name, because a scope could not tell the two apart.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can delete = author
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can remove = author
"#,
    ),
    shown(
        108,
        "an include that cannot be read, is outside the folder, or is included twice",
        "An include names a file in the policy's folder or in a folder inside it, relative to the file that includes it, and each file once.",
        r#"
include "../roles.authz"
app role app_user
type user = app.users
"#,
        r#"
app role app_user
type user = app.users
"#,
    ),
    shown(
        109,
        "declared twice",
        "One name means one thing. A relation may have several lines, each with another source; everything else is declared once.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can author = signed_in
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
        110,
        "a dollar-quoted string in a condition",
        "Write the string between single quotes.",
        r#"
app role app_user
type user = app.users
type note = app.notes where {state = $$open$$}
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes where {state = 'open'}
"#,
    ),
    shown(
        111,
        "no app role, more than one, or PUBLIC",
        "Name the one role the app connects as, which owns no table: app role app_user.",
        r#"
app role public
type user = app.users
"#,
        r#"
app role app_user
type user = app.users
"#,
    ),
    shown(
        112,
        "this where there is no row",
        "A caveat belongs to a share and not to a row. It reads the request, authz.ctx('ip'), and the share's arguments, arg('name').",
        r#"
app role app_user
type user = app.users
caveat from_ip = {this.ip = authz.ctx('ip')}
"#,
        r#"
app role app_user
type user = app.users
"#,
    ),
    shown(
        113,
        "a name beginning authz__",
        "Generated names begin so. Choose another.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can authz__view = author
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
        199,
        "not built yet",
        "The language has this, and this release does not enforce it. It is refused rather than half done. docs/LANGUAGE.md lists what is built.",
        r#"
app role app_user
type user = app.users
type folder = app.folders
  owner : user = owner_id
  parent : folder = parent_id
  can view = owner or (parent.view and {exists (select from app.shown s where s.id = this.id)})
"#,
        r#"
app role app_user
type user = app.users
type folder = app.folders
  owner : user = owner_id
  parent : folder = parent_id
  can view = owner or (parent.view and {shown})
"#,
    ),
];
