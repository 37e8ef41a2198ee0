//! The table of codes, in the order of their numbers.

use super::{CodeInfo, Example};

const fn plain(code: u16, title: &'static str, help: &'static str) -> CodeInfo {
    CodeInfo { code, title, help, example: None }
}

const fn shown(code: u16, title: &'static str, help: &'static str, bad: &'static str, good: &'static str) -> CodeInfo {
    CodeInfo { code, title, help, example: Some(Example { bad, good }) }
}

/// Every code, by its number.
pub const CODES: &[CodeInfo] = &[
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
type service = app.services principal
"#,
        r#"
app role app_user
type user = app.users
type service = app.services
"#,
    ),
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
    plain(
        820,
        "the connected role is not subject to row-level security",
        "It is superuser, has BYPASSRLS, or owns the table or is a member of its owner. Connect the app as another login role.",
    ),
];
