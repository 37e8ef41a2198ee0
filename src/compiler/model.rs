//! What a policy means: every name resolved, every shape checked. The emitter, the lints, the evaluator and the
//! console's inspector all read this and nothing before it.
//!
//! Everything is addressed by small indices into the vectors of [`Model`], so the model is plain data: cloneable,
//! comparable, without lifetimes.

use super::ident::{Ident, QualName};
use super::span::Span;

/// Index into [`Model::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub usize);

/// Index into [`TypeDef::relations`] of the type it is used with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelId(pub usize);

/// Index into [`TypeDef::permissions`] of the type it is used with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermId(pub usize);

/// Index into [`Model::graphs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphId(pub usize);

/// Index into [`Model::scopes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(pub usize);

/// A whole policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The one role the rules apply to.
    pub app_role: Ident,
    /// The type `user`.
    pub user: TypeId,
    /// Types in the order written.
    pub types: Vec<TypeDef>,
    /// One per distinct set of inheriting links, in the order first used.
    pub graphs: Vec<Graph>,
    /// Rules, one per governed table, in the order written.
    pub rules: Vec<TableRules>,
    /// Conditions that a share may carry, in the order written.
    pub caveats: Vec<Caveat>,
    /// What a session may be limited to: `read` first, which is there unless the policy writes its own, then the others
    /// in the order written.
    pub scopes: Vec<ScopeDef>,
    /// What may never hold, in the order written.
    pub invariants: Vec<Invariant>,
    /// Tests in the order written.
    pub tests: Vec<Test>,
}

/// A type of object (or of person): one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDef {
    /// Its policy name.
    pub name: String,
    /// Its table.
    pub table: QualName,
    /// Its key columns, at least one.
    pub key: Vec<KeyColumn>,
    /// Which rows count, when not all.
    pub condition: Option<Condition>,
    /// Whether it signs in: `user`, and every `principal` type.
    pub signs_in: bool,
    /// Its relations in the order first written.
    pub relations: Vec<Relation>,
    /// Its permissions in the order written.
    pub permissions: Vec<Permission>,
    /// Roles made at run time that give permissions of it, when it has any.
    pub roles: Option<Roles>,
    /// The name in its header.
    pub span: Span,
}

/// A key column and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The column.
    pub column: Ident,
    /// Its type.
    pub ty: KeyType,
}

/// The column types a key may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// `bigint`
    Bigint,
    /// `integer`
    Integer,
    /// `smallint`
    Smallint,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `uuid`
    Uuid,
}

impl KeyType {
    /// The SQL type's name.
    pub fn sql(self) -> &'static str {
        match self {
            KeyType::Bigint => "bigint",
            KeyType::Integer => "integer",
            KeyType::Smallint => "smallint",
            KeyType::Text => "text",
            KeyType::Varchar => "character varying",
            KeyType::Uuid => "uuid",
        }
    }
}

/// A condition on a row, as written between braces (without them).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The SQL as written, with spaces for comments in a condition on a row.
    pub sql: String,
    /// Where it stands, inside the braces.
    pub span: Span,
}

/// `NAME : SUBJECTS = SOURCE`, all lines of one name together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its policy name.
    pub name: String,
    /// Where it holds from; at least one.
    pub sources: Vec<Source>,
    /// True when its subjects are objects that are followed (`parent.view`), not people.
    pub to_objects: bool,
    /// Its name where first written.
    pub span: Span,
}

/// One way a relation holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Who or what is named.
    pub subject: Subject,
    /// Where the rows are.
    pub place: Place,
    /// The line.
    pub span: Span,
}

/// Whom a source names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// An object or person of a type.
    Type(TypeId),
    /// The members of a group: `team#member`.
    Group(TypeId, RelId),
    /// Anyone of a type that is signed in: `user:*`.
    Everyone(TypeId),
    /// Anyone at all.
    Anyone,
    /// Holders of a share link.
    Link,
}

/// Where a source's rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Columns of the type's own table that hold the subject's key.
    Column {
        /// As many as the subject's key has.
        columns: Vec<Ident>,
    },
    /// A link table.
    Table {
        /// The table.
        table: QualName,
        /// The columns that hold the object's key.
        object: Vec<Ident>,
        /// The columns that hold the subject's key.
        subject: Vec<Ident>,
        /// Which rows count, when not all.
        condition: Option<Condition>,
    },
    /// Two columns of the type's own table: a type's policy name, and its key.
    Polymorphic {
        /// Holds the policy name of the subject's type.
        type_column: Ident,
        /// Holds its key.
        id_column: Ident,
    },
    /// Shares made at run time with `authz.share`.
    Shared {
        /// The permission that may share it (`share` unless `by` names another).
        by: PermId,
        /// `if {sql}`: shares count, and can be made, only while it holds on the object's row.
        condition: Option<Condition>,
    },
    /// Roles made at run time, held on the object: those that include a permission and belong to the object's owner of
    /// roles ([`Roles::from`], or the object itself).
    Role {
        /// The permission the role must include.
        permission: PermId,
    },
}

/// `roles : SUBJECTS [from REL]`: what people make roles of at run time.
///
/// Each permission that writes `roles` uses a relation of its own, which is made for it: it is called
/// `roles__PERMISSION`, which nobody can write, and each of its sources is a [`Place::Role`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    /// Who may hold a role.
    pub subjects: Vec<Subject>,
    /// The relation to the object that owns the roles: one column that names objects of one type. `None` when each
    /// object owns its own.
    pub from: Option<RelId>,
    /// The type whose objects own the roles.
    pub owner: TypeId,
    /// The permission that may share a role, besides every permission the role includes.
    pub by: PermId,
    /// The line.
    pub span: Span,
}

impl Place {
    /// Whether its rows are those of the type's own table.
    pub fn is_in_row(&self) -> bool {
        matches!(self, Place::Column { .. } | Place::Polymorphic { .. })
    }
}

/// `can NAME = EXPR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// Its policy name.
    pub name: String,
    /// As written, with inheriting terms where they stand.
    pub expr: Expr,
    /// Present when it names itself through relations to objects.
    pub inherits: Option<Inheritance>,
    /// Its name where declared.
    pub span: Span,
}

/// How a permission inherits: it holds on `x` when the base of its type holds on `x` or on any ancestor of `x` in
/// `graph`, and none of `denies` holds on `x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inheritance {
    /// The graph of its inheriting links.
    pub graph: GraphId,
    /// The expression without its inheriting terms ([`Expr::Nobody`] when only other types start it: AZ303 otherwise).
    pub base: Expr,
    /// `and not hidden`: permissions of the same type, each inherited over at least the same links, so that it is enough
    /// to ask for them on the object itself.
    pub denies: Vec<Expr>,
    /// The permissions that inherit from each other, one of each type in the graph, this one among them.
    pub members: Vec<(TypeId, PermId)>,
}

/// An expression over a row of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// Any of these; at least two.
    Or(Vec<Expr>),
    /// All of these; at least two.
    And(Vec<Expr>),
    /// Not this.
    Not(Box<Expr>),
    /// The caller is among the relation's subjects.
    Relation(RelId, Span),
    /// Another permission of the same type.
    Permission(PermId, Span),
    /// `rel.name`: the permission or relation holds on an object the relation reaches. One target for each type the
    /// relation reaches.
    Follow {
        /// The relation to objects (or to users) that is followed.
        relation: RelId,
        /// What must hold there, for each type reached.
        targets: Vec<(TypeId, Target)>,
        /// The whole `rel.name`.
        span: Span,
    },
    /// Somebody is signed in.
    SignedIn(Span),
    /// Always.
    Anyone(Span),
    /// Never.
    Nobody(Span),
    /// A condition on the row.
    Sql(Condition),
}

/// What a followed relation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// A permission of the reached type.
    Permission(PermId),
    /// A relation of the reached type.
    Relation(RelId),
}

/// A set of inheriting links: the effective parents of an object are what these reach where their condition holds.
/// Two permissions with the same set share a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The links, ordered and without repeats.
    pub links: Vec<GraphLink>,
}

/// One inheriting link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphLink {
    /// The type of the child.
    pub child: TypeId,
    /// The type of the parent.
    pub parent: TypeId,
    /// The child's relation; its source with this index names parents of type `parent`.
    pub relation: RelId,
    /// Index into the relation's sources.
    pub source: usize,
    /// Where it stops: the link counts where this condition on the child's row holds.
    pub condition: Option<Condition>,
}

/// `rules schema.table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRules {
    /// The type whose table it is.
    pub ty: TypeId,
    /// The masked view, when one is named.
    pub view: Option<QualName>,
    /// Its lines in the order written.
    pub rules: Vec<Rule>,
    /// The foreign keys whose actions are meant.
    pub cascades: Vec<Cascade>,
    /// The table's name in the header.
    pub span: Span,
}

/// `cascade from schema.table [(columns)]`: the action of this table's foreign key to that table is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cascade {
    /// The table the key names.
    pub from: QualName,
    /// The key's own columns; none means any key to that table.
    pub columns: Vec<Ident>,
    /// The line.
    pub span: Span,
}

/// One line of `rules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it governs.
    pub command: Command,
    /// What must hold.
    pub expr: Expr,
    /// The line.
    pub span: Span,
}

/// What a rule governs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Reading the row.
    Select,
    /// The new row.
    Insert,
    /// The row before and after.
    Update,
    /// The row before.
    Delete,
    /// `update COLS [before]`: changing these columns needs this on the row before.
    UpdateBefore(Vec<Ident>),
    /// `update [COLS] after`: needs this on the row after; no columns means any change.
    UpdateAfter(Vec<Ident>),
    /// `mask COLS`.
    Mask(Vec<Ident>),
}

/// `caveat NAME = {sql}`: a condition that one share carries. It has no row; `arg('name')` is one of the share's
/// arguments as text, NULL when it has no such argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caveat {
    /// Its policy name.
    pub name: String,
    /// When the share counts.
    pub condition: Condition,
    /// Its name where declared.
    pub span: Span,
}

/// `scope NAME = ITEMS`: a session limited to scopes may do only what some of its scopes name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeDef {
    /// Its policy name.
    pub name: String,
    /// What it allows.
    pub items: Vec<ScopeItem>,
    /// Its name where declared; empty for the built-in `read`.
    pub span: Span,
}

/// What one entry of a scope allows. A command is allowed when an entry names the command; a permission asked for by
/// name (`authz.can`, `authz.list`, or by the run time, as `share` is) when an entry names the permission. What a
/// rule or a permission is made of needs no entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ScopeItem {
    /// `select`: a command on every table.
    Command(Verb),
    /// `app.files.update`
    TableCommand(QualName, Verb),
    /// `file.view`. A bare `view` becomes one of these for each type that has it.
    Permission(TypeId, PermId),
}

/// The four commands of SQL that rules govern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// `select`
    Select,
    /// `insert`
    Insert,
    /// `update`
    Update,
    /// `delete`
    Delete,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 4] = [Verb::Select, Verb::Insert, Verb::Update, Verb::Delete];

    /// As the policy writes it.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Select => "select",
            Verb::Insert => "insert",
            Verb::Update => "update",
            Verb::Delete => "delete",
        }
    }
}

/// `never TYPE: EXPR`: holds for no principal and not for nobody, on any object that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariant {
    /// The type.
    pub ty: TypeId,
    /// What may never hold.
    pub expr: Expr,
    /// The line.
    pub span: Span,
}

/// A test. A test without a name checks data already there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub name: Option<String>,
    /// What it does, in order.
    pub steps: Vec<TestStep>,
    /// Its header.
    pub span: Span,
}

/// One line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestStep {
    /// `given NAME = {SQL}` or `given {SQL}`.
    Given {
        /// What later lines call the returned value.
        name: Option<String>,
        /// The statement; `$name` stands for earlier values and is sent as a parameter.
        sql: Condition,
    },
    /// `WHO can|cannot PERM TYPE ID`.
    Check {
        /// Who asks.
        who: Who,
        /// What the session is limited to; empty when to nothing.
        scopes: Vec<ScopeId>,
        /// `can` or `cannot`.
        allowed: bool,
        /// The permission's name.
        permission: String,
        /// The object's type.
        ty: TypeId,
        /// The object's id.
        id: Value,
        /// The line.
        span: Span,
    },
    /// `as WHO allowed|refused {SQL}`.
    Run {
        /// Signed in as.
        who: Who,
        /// What the session is limited to; empty when to nothing.
        scopes: Vec<ScopeId>,
        /// `allowed` or `refused`.
        allowed: bool,
        /// The statement.
        sql: Condition,
        /// The line.
        span: Span,
    },
    /// `as WHO sees N {SELECT}`.
    Sees {
        /// Signed in as.
        who: Who,
        /// What the session is limited to; empty when to nothing.
        scopes: Vec<ScopeId>,
        /// How many rows.
        rows: u64,
        /// The query.
        sql: Condition,
        /// The line.
        span: Span,
    },
}

/// Who a test asks as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Nobody signed in.
    Anyone,
    /// `user 3`, `user $ann`.
    Principal(TypeId, Value),
}

/// An id in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// As written.
    Literal(String),
    /// `$name`, given earlier.
    Given(String),
}

impl Model {
    /// A type by its id. Ids come from this model, so this always finds one; `None` only for a foreign id.
    pub fn ty(&self, id: TypeId) -> Option<&TypeDef> {
        self.types.get(id.0)
    }

    /// A type by its policy name.
    pub fn type_named(&self, name: &str) -> Option<TypeId> {
        self.types.iter().position(|t| t.name == name).map(TypeId)
    }

    /// A scope by its id.
    pub fn scope(&self, id: ScopeId) -> Option<&ScopeDef> {
        self.scopes.get(id.0)
    }

    /// The types that sign in, in the order written.
    pub fn principals(&self) -> impl Iterator<Item = TypeId> + '_ {
        (self.types.iter().enumerate()).filter(|(_, def)| def.signs_in).map(|(at, _)| TypeId(at))
    }

    /// Whether a session limited to these scopes may use this permission by name.
    pub fn scopes_allow(&self, scopes: &[ScopeId], ty: TypeId, permission: PermId) -> bool {
        self.in_scopes(scopes, |item| *item == ScopeItem::Permission(ty, permission))
    }

    /// Whether a session limited to these scopes may run this command on this table.
    pub fn scopes_allow_command(&self, scopes: &[ScopeId], table: &QualName, verb: Verb) -> bool {
        self.in_scopes(scopes, |item| match item {
            ScopeItem::Command(named) => *named == verb,
            ScopeItem::TableCommand(of, named) => of == table && *named == verb,
            ScopeItem::Permission(..) => false,
        })
    }

    fn in_scopes(&self, scopes: &[ScopeId], allows: impl Fn(&ScopeItem) -> bool) -> bool {
        scopes.is_empty() || scopes.iter().filter_map(|id| self.scope(*id)).any(|scope| scope.items.iter().any(&allows))
    }

    /// A graph by its id.
    pub fn graph(&self, id: GraphId) -> Option<&Graph> {
        self.graphs.get(id.0)
    }
}

/// Key types that are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Number,
    Text,
    Uuid,
}

impl Model {
    /// Whether the id column of a pair holds keys as text, because it names subjects whose keys cannot stand in a column
    /// of one type.
    pub fn pair_holds_text(&self, ty: TypeId, column: &Ident) -> bool {
        let kind = |ty: KeyType| match ty {
            KeyType::Bigint | KeyType::Integer | KeyType::Smallint => KeyKind::Number,
            KeyType::Text | KeyType::Varchar => KeyKind::Text,
            KeyType::Uuid => KeyKind::Uuid,
        };
        let sources = self.ty(ty).map(|def| def.relations.iter().flat_map(|relation| &relation.sources));
        let mut kinds = sources.into_iter().flatten().filter_map(|source| match (&source.place, source.subject) {
            (Place::Polymorphic { id_column, .. }, Subject::Type(to) | Subject::Group(to, _))
                if id_column == column =>
            {
                self.ty(to)?.key.first().map(|key| kind(key.ty))
            }
            _ => None,
        });
        let first = kinds.next();
        first == Some(KeyKind::Text) || kinds.any(|kind| Some(kind) != first)
    }
}

impl TypeDef {
    /// A relation by its id.
    pub fn relation(&self, id: RelId) -> Option<&Relation> {
        self.relations.get(id.0)
    }

    /// A permission by its id.
    pub fn permission(&self, id: PermId) -> Option<&Permission> {
        self.permissions.get(id.0)
    }

    /// A permission by its policy name.
    pub fn permission_named(&self, name: &str) -> Option<PermId> {
        self.permissions.iter().position(|p| p.name == name).map(PermId)
    }

    /// The relation made for `roles` in the permission with this id.
    pub fn roles_relation(&self, permission: PermId) -> Option<RelId> {
        let of = |r: &Relation| {
            r.sources.iter().any(|s| matches!(s.place, Place::Role { permission: p } if p == permission))
        };
        self.relations.iter().position(of).map(RelId)
    }

    /// A relation by its policy name.
    pub fn relation_named(&self, name: &str) -> Option<RelId> {
        self.relations.iter().position(|r| r.name == name).map(RelId)
    }
}
