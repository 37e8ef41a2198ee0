//! A policy as written: names are still text, and every part knows where it stands. A declaration that was written
//! wrongly keeps what could be read of it, so that later stages know its name and stay silent about it.

use super::ident::{Ident, QualName};
use super::span::{Span, Spanned};

/// A name of the policy language.
pub type Name = Spanned<String>;
/// A column's name.
pub type Column = Spanned<Ident>;
/// A table's name.
pub type Table = Spanned<QualName>;

/// A whole policy, with what its includes brought in standing where they are included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Its blocks in order.
    pub blocks: Vec<Block>,
    /// `-- allow AZ803: reason` comments.
    pub allows: Vec<Allow>,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// `app role NAME`
    AppRole(Column),
    /// `include "FILE"`
    Include(Name),
    /// `type ...`
    Type(TypeDecl),
    /// `caveat ...`
    Caveat(CaveatDecl),
    /// `scope ...`
    Scope(ScopeDecl),
    /// `rules ...`
    Rules(RulesDecl),
    /// The lines of `invariants`
    Invariants(Span, Vec<InvariantDecl>),
    /// `test ...`
    Test(TestDecl),
}

/// A comment that silences a lint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// The code's number.
    pub code: u16,
    /// Why.
    pub reason: String,
    /// The comment.
    pub span: Span,
    /// It has its line to itself, and so speaks of the line below.
    pub own_line: bool,
}

/// SQL between braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    /// What stands inside the braces, as written.
    pub text: String,
    /// Where that is.
    pub span: Span,
}

/// `type NAME = schema.table [(key)] [principal] [where {sql}]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDecl {
    /// Its name.
    pub name: Name,
    /// The rest of the header; `None` when it was written wrongly.
    pub header: Option<TypeHeader>,
    /// Its lines in order.
    pub members: Vec<Member>,
}

/// A type's header after its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeHeader {
    /// Its table.
    pub table: Table,
    /// Its key, when written.
    pub key: Option<Spanned<Vec<KeyDecl>>>,
    /// The word `principal`.
    pub principal: Option<Span>,
    /// `where {sql}`
    pub condition: Option<Sql>,
}

/// A key column and, when written, its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDecl {
    /// The column.
    pub column: Column,
    /// The type's name.
    pub ty: Option<Name>,
}

/// A line under a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// `NAME : SUBJECTS = SOURCE`
    Relation(RelationDecl),
    /// `roles : SUBJECTS [from REL]`
    Roles(RolesDecl),
    /// `can NAME = EXPR`
    Permission(PermissionDecl),
}

/// `NAME : SUBJECTS = SOURCE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationDecl {
    /// Its name.
    pub name: Name,
    /// Whom it names, and where it comes from; `None` when written wrongly.
    pub body: Option<RelationBody>,
    /// The line.
    pub span: Span,
}

/// A relation's line after its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationBody {
    /// Whom it names; at least one.
    pub subjects: Vec<SubjectDecl>,
    /// Where it comes from.
    pub source: SourceDecl,
}

/// Whom a relation names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectDecl {
    /// `user`
    Type(Name),
    /// `team#member`
    Group(Name, Name),
    /// `user:*`
    Everyone(Name),
    /// `anyone`
    Anyone(Span),
    /// `link`
    Link(Span),
}

impl SubjectDecl {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            SubjectDecl::Type(name) | SubjectDecl::Everyone(name) => name.span,
            SubjectDecl::Group(ty, relation) => ty.span.to(relation.span),
            SubjectDecl::Anyone(span) | SubjectDecl::Link(span) => *span,
        }
    }
}

/// Where a relation comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceDecl {
    /// `owner_id` or `[org_id, parent_id]`
    Columns(Vec<Column>),
    /// `(parent_type, parent_id)`
    Polymorphic(Column, Column),
    /// `schema.table(object -> subject) [where {sql}]`
    Table {
        /// The table.
        table: Table,
        /// Columns of the object's key.
        object: Spanned<Vec<Column>>,
        /// Columns of the subject's key.
        subject: Spanned<Vec<Column>>,
        /// Which rows count.
        condition: Option<Sql>,
    },
    /// `shared [by PERM] [if {sql}]`
    Shared {
        /// The word `shared`.
        span: Span,
        /// The permission named.
        by: Option<Name>,
        /// `if {sql}`
        condition: Option<Sql>,
    },
}

/// `roles : SUBJECTS [from REL]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolesDecl {
    /// Who may hold them.
    pub subjects: Vec<SubjectDecl>,
    /// The relation to their owner.
    pub from: Option<Name>,
    /// The word `roles`.
    pub span: Span,
}

/// `can NAME = EXPR`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionDecl {
    /// Its name.
    pub name: Name,
    /// What it takes.
    pub expr: Expr,
    /// The line.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// Joined by `or`; at least two.
    Or(Vec<Expr>),
    /// Joined by `and`; at least two.
    And(Vec<Expr>),
    /// `not`
    Not(Box<Expr>),
    /// A relation or permission.
    Name(Name),
    /// `relation.name`
    Follow(Name, Name),
    /// `signed_in`
    SignedIn(Span),
    /// `anyone`
    Anyone(Span),
    /// `nobody`
    Nobody(Span),
    /// `roles`
    Roles(Span),
    /// `{sql}`
    Sql(Sql),
    /// Written wrongly, and said so already.
    Broken,
}

/// `caveat NAME = {sql}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaveatDecl {
    /// Its name.
    pub name: Name,
    /// The condition; `None` when written wrongly.
    pub condition: Option<Sql>,
}

/// `scope NAME = ITEMS`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeDecl {
    /// Its name.
    pub name: Name,
    /// What it allows: one to three names, joined by dots. Empty when written wrongly.
    pub items: Vec<Vec<Spanned<ScopePart>>>,
}

/// A name in a scope, which may be a table's or the policy's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopePart {
    /// As the policy would read it.
    pub name: String,
    /// As SQL would read it.
    pub ident: Ident,
}

/// `rules schema.table [view schema.view]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesDecl {
    /// The table.
    pub table: Table,
    /// The view.
    pub view: Option<Table>,
    /// Its lines in order.
    pub rules: Vec<RuleDecl>,
}

/// A line under `rules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDecl {
    /// What it governs.
    pub command: CommandDecl,
    /// What must hold; [`Expr::Broken`] for a cascade.
    pub expr: Expr,
    /// The line.
    pub span: Span,
}

/// What a rule governs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandDecl {
    /// `select`
    Select,
    /// `insert`
    Insert,
    /// `update`
    Update,
    /// `delete`
    Delete,
    /// `update COLS [before]`
    UpdateBefore(Vec<Column>),
    /// `update [COLS] after`
    UpdateAfter(Vec<Column>),
    /// `mask COLS`
    Mask(Vec<Column>),
    /// `cascade from schema.table [(COLS)]`
    Cascade(Table, Vec<Column>),
}

/// `never TYPE: EXPR`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantDecl {
    /// The type.
    pub ty: Name,
    /// What may never hold.
    pub expr: Expr,
    /// The line.
    pub span: Span,
}

/// `test ["name"]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestDecl {
    /// Its name.
    pub name: Option<Name>,
    /// Its lines in order.
    pub steps: Vec<StepDecl>,
    /// Its header.
    pub span: Span,
}

/// A line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDecl {
    /// What it does.
    pub kind: StepKind,
    /// The line.
    pub span: Span,
}

/// What a line of a test does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// `given [NAME =] {SQL}`
    Given(Option<Name>, Sql),
    /// `WHO can|cannot PERM TYPE ID`
    Check {
        /// Who asks.
        who: WhoDecl,
        /// `can`
        allowed: bool,
        /// The permission.
        permission: Name,
        /// The object's type.
        ty: Name,
        /// Its id.
        id: ValueDecl,
    },
    /// `as WHO allowed|refused {SQL}`
    Run(WhoDecl, bool, Sql),
    /// `as WHO sees N {SQL}`
    Sees(WhoDecl, u64, Sql),
    /// A `given` line written wrongly that still says what it gives.
    Broken(Option<Name>),
}

/// Who a test asks as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhoDecl {
    /// `user 3`, or `None` for `anyone`.
    pub principal: Option<(Name, ValueDecl)>,
    /// `with scope a, b`
    pub scopes: Vec<Name>,
}

/// An id in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueDecl {
    /// As written, without quotes; the name alone for `$name`.
    pub text: String,
    /// It is `$name`.
    pub given: bool,
    /// Where it stands.
    pub span: Span,
}

impl Policy {
    /// Its types, in order.
    pub fn types(&self) -> impl Iterator<Item = &TypeDecl> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Type(ty) => Some(ty),
            _ => None,
        })
    }
}

impl CommandDecl {
    /// The rule's left side, as people write it.
    pub fn title(&self) -> String {
        let list = |columns: &[Column]| columns.iter().map(|c| c.value.plain()).collect::<Vec<_>>().join(", ");
        match self {
            CommandDecl::Select => "select".to_owned(),
            CommandDecl::Insert => "insert".to_owned(),
            CommandDecl::Update => "update".to_owned(),
            CommandDecl::Delete => "delete".to_owned(),
            CommandDecl::UpdateBefore(columns) => format!("update {}", list(columns)),
            CommandDecl::UpdateAfter(columns) if columns.is_empty() => "update after".to_owned(),
            CommandDecl::UpdateAfter(columns) => format!("update {} after", list(columns)),
            CommandDecl::Mask(columns) => format!("mask {}", list(columns)),
            CommandDecl::Cascade(from, columns) if columns.is_empty() => format!("cascade from {}", from.value.plain()),
            CommandDecl::Cascade(from, columns) => format!("cascade from {} ({})", from.value.plain(), list(columns)),
        }
    }
}
