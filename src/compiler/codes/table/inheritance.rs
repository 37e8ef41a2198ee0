//! AZ3xx: following and inheriting.

use super::shown;
use crate::compiler::codes::CodeInfo;

/// See the module.
pub(super) const INHERITANCE: &[CodeInfo] = &[
    shown(
        301,
        "following something that cannot be followed, or objects used as people",
        "A relation to objects is followed to what people have there, parent.view. A relation to people stands alone.",
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  can view = owner or parent
"#,
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  can view = owner or parent.view
"#,
    ),
    shown(
        302,
        "a permission that depends on itself other than by inheriting",
        "A permission may name itself only on another object: or parent.view.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author or edit
  can edit = author or view
"#,
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can view = author or edit
  can edit = author
"#,
    ),
    shown(
        303,
        "inheritance with no starting point",
        "Say who has it without inheriting: owner or parent.view.",
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  can view = parent.view
"#,
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  can view = owner or parent.view
"#,
    ),
    shown(
        304,
        "inheritance limited by something other than a condition",
        "Who inherits what is stored for all readers at once, so only a condition on the row can limit it. Give what depends on the reader a permission of its own.",
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  trusted : user = app.folder_trust(folder_id -> user_id)
  can view = owner or (parent.view and trusted)
"#,
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  trusted : user = app.folder_trust(folder_id -> user_id)
  can view = owner or (parent.view and {inherit})
  can open = view and trusted
"#,
    ),
    shown(
        305,
        "inheritance limited by a condition that is not the same for everyone at any time",
        "Leave out the clock, chance, the reader and the session. Put such a condition in a permission that uses the inherited one.",
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  can view = owner or (parent.view and {opens_at < now()})
"#,
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  can view = owner or parent.view
  can open = view and {opens_at < now()}
"#,
    ),
    shown(
        306,
        "a deny that does not fit its inheritance",
        "A deny beside inheritance must be a permission inherited over the same relations, with the same conditions or fewer. A deny for one object goes in a permission that uses the inherited one.",
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  hidden : user = app.folder_hidden(folder_id -> user_id)
  can view = (owner or parent.view) and not hidden
"#,
        r#"
app role app_user
type user = app.users
type folder = app.folders
  parent : folder = parent_id
  owner : user = owner_id
  hidden : user = app.folder_hidden(folder_id -> user_id)
  can view = owner or parent.view
  can open = view and not hidden
"#,
    ),
    shown(
        307,
        "a run-time permission declared where nothing asks for it, or missing where it is needed",
        "share belongs on types with shared relations, break_glass too, impersonate on user, manage_keys on types that sign in, manage_roles on the type that owns roles.",
        r#"
app role app_user
type user = app.users
type note = app.notes
  author : user = author_id
  can share = author
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
