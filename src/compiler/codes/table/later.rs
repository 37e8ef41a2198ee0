//! AZ6xx, AZ7xx and AZ8xx: what an apply, the run time and the lints find.

use super::{plain, shown};
use crate::compiler::codes::CodeInfo;

/// See the module.
pub(super) const LATER: &[CodeInfo] = &[
    plain(
        601,
        "a table or column that is not there",
        "The policy names it and the database has none. Create it first, or correct the name; names fold to lower case unless quoted.",
    ),
    plain(
        602,
        "a key of another type",
        "The key's type in the policy and the column's in the database differ. Write the column's: type note = app.notes (id uuid).",
    ),
    plain(
        603,
        "an inheritance condition PostgreSQL says is not immutable",
        "What limits inheritance is stored. Use only immutable functions and operators on the row's own columns.",
    ),
    plain(
        604,
        "an inheritance condition that reads a view",
        "A view cannot be watched for changes. Read the tables under it.",
    ),
    plain(
        605,
        "links used for inheritance that would expire",
        "A share can expire by itself, and what is inherited over it is stored. Use a link table.",
    ),
    plain(
        606,
        "authz.uid() exists with another type",
        "The key of user has another type than when the policy in force was applied. Remove that policy first.",
    ),
    plain(607, "a migration out of order", "Run the migrations in the order they were made."),
    plain(608, "a swap without its build", "Build the new index first; the swap only puts it in force."),
    plain(609, "no policy is in force", "Apply one."),
    plain(
        610,
        "not marked as a development database",
        "This is only done to a database whose setting development is true.",
    ),
    plain(
        611,
        "masked columns are still readable",
        "The app role can read the table under the masked view. Revoke its SELECT on those columns.",
    ),
    plain(
        612,
        "a schema on the functions' search path in which others may create",
        "Revoke CREATE on it: whoever may create there could stand in for a function the rules call.",
    ),
    plain(
        613,
        "a condition that does not run",
        "PostgreSQL gives the reason. The line is the condition's in the policy.",
    ),
    plain(
        614,
        "something uses a function this policy no longer makes",
        "Drop or change what uses it, then apply again.",
    ),
    plain(615, "a migration run outside one transaction", "Run it inside one, so that it is all there or not at all."),
    plain(
        616,
        "an older program and a newer database",
        "This database was last applied to by a newer release. Use that one.",
    ),
    plain(
        617,
        "something is built on a masked view that cannot be replaced in place",
        "Drop what is built on it, apply, and build it again.",
    ),
    plain(
        618,
        "the connected role may not switch to the app role",
        "Grant it: GRANT app_user TO the role that applies.",
    ),
    plain(
        624,
        "the app role is, or is a member of, the policy's owner",
        "Row-level security does not hold for a table's owner. Use another login role for the app.",
    ),
    plain(
        625,
        "a cascade from that names no acting foreign key",
        "Name the table a foreign key of this one points to, whose ON DELETE or ON UPDATE acts.",
    ),
    plain(
        626,
        "a newer program and an older database",
        "This database was last applied to by an older release. Apply the policy again.",
    ),
    plain(
        701,
        "nobody signed in",
        "Call authz.act_as, authz.login_key or authz.login_jwt in the transaction before the first query. SQLSTATE 28000.",
    ),
    plain(
        702,
        "who is signed in was changed",
        "After a key, a token or a view-as the principal stays the same for the transaction. SQLSTATE 28000.",
    ),
    plain(
        703,
        "login refused",
        "The key or token is unknown, expired, revoked or not for this database. SQLSTATE 28000.",
    ),
    plain(704, "a read-only session", "View-as sessions read and do not write. SQLSTATE 42501."),
    plain(705, "not allowed", "The caller lacks the permission this function asks for. SQLSTATE 42501."),
    plain(
        706,
        "the policy does not allow this share",
        "The relation is not shared, or not with this kind of subject. SQLSTATE P0001.",
    ),
    plain(
        707,
        "not in the policy",
        "There is no such type, relation or permission in the policy in force. SQLSTATE P0001.",
    ),
    plain(
        708,
        "no such thing",
        "There is no such object, share, key or request, or the caller cannot see it. SQLSTATE P0001.",
    ),
    plain(
        709,
        "a write a rule refuses",
        "The DETAIL says which rule and what is missing. SQLSTATE 42501, constraint authz_insert or authz_update.",
    ),
    plain(710, "a missing or wrong argument", "The message names it. SQLSTATE 22023."),
    plain(711, "the audit trail cannot be changed", "It is append-only, for its owner too. SQLSTATE 42501."),
    plain(
        712,
        "the change feed was trimmed past this position",
        "Read everything afresh, then follow from the current position. SQLSTATE 55000.",
    ),
    plain(713, "moved inside itself", "An object cannot be put below itself. SQLSTATE 23514."),
    plain(714, "sign in first", "This function is for someone signed in. SQLSTATE 42501."),
    plain(715, "for users only", "This function is for users, not for other types that sign in. SQLSTATE 42501."),
    plain(
        801,
        "how many views a read expands",
        "PostgreSQL plans every view a rule uses on each read. Above 50 planning is felt: share conditions between permissions, or prepare the statements.",
    ),
    plain(
        802,
        "applying needs more locks than are left",
        "Raise max_locks_per_transaction to the number named, which takes a restart, or apply when less is running.",
    ),
    shown(
        803,
        "a column a rule reads that a plain update may change",
        "Whoever may update the row can hand it to somebody else. Add update COLUMN after, saying what must hold on the row after, or update COLUMN, saying who may change it at all.",
        r#"
app role app_user
type user = app.users
type board = app.boards
  member : user = app.board_members(board_id -> user_id)
type note = app.notes
  board : board = board_id
  can view = board.member
rules app.notes
  select : view
  update : view
"#,
        r#"
app role app_user
type user = app.users
type board = app.boards
  member : user = app.board_members(board_id -> user_id)
type note = app.notes
  board : board = board_id
  can view = board.member
rules app.notes
  select : view
  update : view
  update board_id after : board.member
"#,
    ),
    shown(
        804,
        "a move whose destination nothing checks",
        "The row may be moved to an object its mover has nothing to do with. Add update COLUMN after with what they must have there.",
        r#"
app role app_user
type user = app.users
type board = app.boards
  member : user = app.board_members(board_id -> user_id)
type note = app.notes
  board : board = board_id
  can view = board.member
rules app.notes
  select : view
  update : view
  update board_id : view
"#,
        r#"
app role app_user
type user = app.users
type board = app.boards
  member : user = app.board_members(board_id -> user_id)
type note = app.notes
  board : board = board_id
  can view = board.member
rules app.notes
  select : view
  update : view
  update board_id after : board.member
"#,
    ),
    plain(805, "a table a rule looks up with no usable index", "Create the index named."),
    plain(
        806,
        "a link table without foreign keys that cascade",
        "A deleted person or object leaves its links behind, and whoever gets the id next gets the access. Add REFERENCES ... ON DELETE CASCADE.",
    ),
    plain(
        807,
        "a group that is in a ring",
        "Groups that contain each other have the same members. The message names them; take one link out.",
    ),
];
