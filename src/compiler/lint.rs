//! What is no mistake and likely not meant, as far as the policy alone can tell. Lints that need a database are
//! `db`'s; both are silenced by [`silence`].

use std::collections::{BTreeSet, HashSet};

use super::Compiled;
use super::ast::Allow;
use super::diagnostic::{Diagnostic, Severity};
use super::ident::Ident;
use super::model::{Command, Condition, Expr, Model, PermId, Place, RelId, Rule, TableRules, TypeDef};
use super::objects::Emitted;
use super::span::{FileId, SourceMap, Span};
use super::sql::{Piece, PieceKind, meaningful};

/// How many views a read may expand before planning it is felt.
const MOST_VIEWS: usize = 50;

/// Lints a policy that has no mistakes. With what it becomes in the database, also says what a read expands (AZ801).
pub fn lint(model: &Model, emitted: Option<&Emitted>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for rules in &model.rules {
        let Some(ty) = model.ty(rules.ty) else { continue };
        found.extend(emitted.and_then(|emitted| expansion(ty, rules, emitted)));
        if let Some(update) = rules.rules.iter().find(|rule| rule.command == Command::Update) {
            found.extend(unchecked_columns(ty, rules, update));
            found.extend(unchecked_moves(ty, rules));
        }
    }
    found
}

impl Compiled {
    /// The lints of this policy that no comment silences; none while it has mistakes.
    pub fn lints(&self, emitted: Option<&Emitted>) -> Vec<Diagnostic> {
        let found = self.model.as_ref().map(|model| lint(model, emitted)).unwrap_or_default();
        silence(found, &self.ast.allows, &self.sources)
    }
}

/// Drops what an `-- allow AZ803: reason` comment speaks of: the declaration it stands behind, or the one below it.
/// Mistakes are never dropped.
pub fn silence(found: Vec<Diagnostic>, allows: &[Allow], sources: &SourceMap) -> Vec<Diagnostic> {
    let line_of = |span: Span| sources.places(span).0.line;
    let said: HashSet<(FileId, usize, bool, u16)> =
        allows.iter().map(|allow| (allow.span.file, line_of(allow.span), allow.own_line, allow.code)).collect();
    // Several such comments may stand above each other.
    let comment_lines: HashSet<(FileId, usize)> = said.iter().filter(|s| s.2).map(|s| (s.0, s.1)).collect();
    let silenced = |diagnostic: &Diagnostic| {
        let (file, code) = (diagnostic.span.file, diagnostic.code.0);
        let (start, end) = sources.places(diagnostic.span);
        let behind = (start.line..=end.line).any(|line| said.contains(&(file, line, false, code)));
        let mut above = (1..start.line).rev().take_while(|line| comment_lines.contains(&(file, *line)));
        behind || above.any(|line| said.contains(&(file, line, true, code)))
    };
    found.into_iter().filter(|d| d.severity == Severity::Error || !silenced(d)).collect()
}

/// AZ801: how many views PostgreSQL expands for a read.
fn expansion(ty: &TypeDef, rules: &TableRules, emitted: &Emitted) -> Option<Diagnostic> {
    let governed = emitted.tables.iter().find(|table| table.table == ty.table)?;
    let message = format!("a read of {} expands {} views of {MOST_VIEWS}", ty.table.plain(), governed.expanded_views);
    Some(match governed.expanded_views > MOST_VIEWS {
        true => Diagnostic::warning(801, rules.span, message),
        false => Diagnostic::info(801, rules.span, message),
    })
}

/// AZ803: columns that decide who may do what, and that whoever may update the row may change unchecked.
fn unchecked_columns(ty: &TypeDef, rules: &TableRules, update: &Rule) -> Vec<Diagnostic> {
    let read = Reading::of(ty, &rules.rules).columns();
    read.into_iter()
        .filter(|column| !refinements(rules, column).any(|_| true))
        .filter(|column| !ty.key.iter().any(|key| key.column == *column))
        .map(|column| {
            let name = column.plain();
            let message =
                format!("the rules read {name}, a plain update may change it, and nothing checks where it goes");
            let help =
                format!("add a line such as \"update {name} after : ...\", or say why not: -- allow AZ803: reason");
            Diagnostic::warning(803, update.span, message).with_help(help)
        })
        .collect()
}

/// AZ804: columns that link to an object and have refinements, none of which looks at the object moved to.
fn unchecked_moves(ty: &TypeDef, rules: &TableRules) -> Vec<Diagnostic> {
    let read = Reading::of(ty, &rules.rules);
    let mut found: Vec<Diagnostic> = Vec::new();
    for (relation, column) in read.links() {
        let mut refining = refinements(rules, &column).peekable();
        let Some(first) = refining.peek().map(|rule| rule.span) else { continue };
        let checks = |rule: &Rule| {
            matches!(rule.command, Command::UpdateAfter(_))
                && Reading::of(ty, std::slice::from_ref(rule)).relations.contains(&relation)
        };
        if !refining.any(checks) {
            let name = column.plain();
            let message = format!("{name} may be changed to name another object, and nothing checks that object");
            let followed = ty.relation(relation).map_or("", |r| r.name.as_str());
            let help = format!("add a line such as \"update {name} after : {followed}.edit\"");
            found.push(Diagnostic::warning(804, first, message).with_help(help));
        }
    }
    found
}

/// The lines that narrow a change of this column.
fn refinements<'r>(rules: &'r TableRules, column: &'r Ident) -> impl Iterator<Item = &'r Rule> {
    rules.rules.iter().filter(move |rule| match &rule.command {
        Command::UpdateBefore(columns) => columns.contains(column),
        Command::UpdateAfter(columns) => columns.is_empty() || columns.contains(column),
        _ => false,
    })
}

/// What rules look at on the row itself.
struct Reading<'m> {
    ty: &'m TypeDef,
    permissions: BTreeSet<PermId>,
    relations: BTreeSet<RelId>,
    conditions: Vec<&'m Condition>,
}

impl<'m> Reading<'m> {
    fn of(ty: &'m TypeDef, rules: &'m [Rule]) -> Self {
        let conditions = ty.condition.iter().collect();
        let mut reading = Reading { ty, permissions: BTreeSet::new(), relations: BTreeSet::new(), conditions };
        rules.iter().for_each(|rule| reading.expr(&rule.expr));
        reading
    }

    fn expr(&mut self, expr: &'m Expr) {
        match expr {
            Expr::Or(all) | Expr::And(all) => all.iter().for_each(|e| self.expr(e)),
            Expr::Not(inner) => self.expr(inner),
            Expr::Relation(id, _) | Expr::Follow { relation: id, .. } => drop(self.relations.insert(*id)),
            Expr::Permission(id, _) => {
                if self.permissions.insert(*id)
                    && let Some(permission) = self.ty.permission(*id)
                {
                    self.expr(&permission.expr);
                }
            }
            Expr::Sql(condition) => self.conditions.push(condition),
            Expr::SignedIn(_) | Expr::Anyone(_) | Expr::Nobody(_) => {}
        }
    }

    /// The columns of the row it reads.
    fn columns(&self) -> BTreeSet<Ident> {
        let mut columns: BTreeSet<Ident> = self.conditions.iter().flat_map(|c| condition_columns(&c.sql)).collect();
        let relations = self.relations.iter().filter_map(|id| self.ty.relation(*id));
        for source in relations.flat_map(|relation| &relation.sources) {
            match &source.place {
                Place::Column { columns: own } => columns.extend(own.iter().cloned()),
                Place::Polymorphic { type_column, id_column } => {
                    columns.extend([type_column.clone(), id_column.clone()])
                }
                Place::Shared { condition, .. } => {
                    columns.extend(condition.iter().flat_map(|c| condition_columns(&c.sql)))
                }
                // Whose roles count is what the relation to their owner says.
                Place::Role { .. } => columns.extend(self.owner_columns()),
                Place::Table { .. } => {}
            }
        }
        columns
    }

    /// The column that names the owner of the type's roles.
    fn owner_columns(&self) -> Vec<Ident> {
        let from = self.ty.roles.as_ref().and_then(|roles| roles.from).and_then(|from| self.ty.relation(from));
        let places = from.into_iter().flat_map(|relation| &relation.sources).map(|source| &source.place);
        places
            .flat_map(|place| if let Place::Column { columns } = place { columns.clone() } else { Vec::new() })
            .collect()
    }

    /// The columns that link to objects it follows.
    fn links(&self) -> Vec<(RelId, Ident)> {
        let mut links = Vec::new();
        for id in &self.relations {
            let Some(relation) = self.ty.relation(*id).filter(|r| r.to_objects) else { continue };
            for source in &relation.sources {
                if let Place::Column { columns } = &source.place {
                    links.extend(columns.iter().map(|column| (*id, column.clone())));
                }
            }
        }
        links
    }
}

/// Words of SQL that are no column where they stand bare.
const SQL_WORDS: [&str; 53] = [
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "at",
    "between",
    "both",
    "case",
    "cast",
    "collate",
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "desc",
    "distinct",
    "else",
    "end",
    "escape",
    "exists",
    "false",
    "first",
    "for",
    "from",
    "ilike",
    "in",
    "interval",
    "is",
    "isnull",
    "last",
    "like",
    "localtime",
    "localtimestamp",
    "not",
    "notnull",
    "null",
    "nulls",
    "or",
    "overlaps",
    "row",
    "session_user",
    "similar",
    "some",
    "then",
    "to",
    "true",
    "user",
    "when",
];

/// The columns of the row that a condition reads, as far as its words show. Where there is a subquery a bare name may
/// be another table's, and only `this.column` is certain.
fn condition_columns(sql: &str) -> Vec<Ident> {
    let pieces: Vec<Piece<'_>> = meaningful(sql).collect();
    let subquery = pieces.iter().any(|p| p.is_word("select"));
    let is = |at: Option<usize>, mark: &str| at.and_then(|at| pieces.get(at)).is_some_and(|p| p.is_punctuation(mark));
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let name = match piece.kind {
            PieceKind::Word => Ident::new(piece.text.to_ascii_lowercase()),
            PieceKind::Quoted => Ident::new(piece.text.trim_matches('"').replace("\"\"", "\"")),
            _ => continue,
        };
        if is(at.checked_sub(1), ".") {
            let of_row = at.checked_sub(2).and_then(|at| pieces.get(at)).is_some_and(|p| p.is_word("this"));
            found.extend(of_row.then_some(name));
            continue;
        }
        let next = pieces.get(at + 1);
        // A function, a qualifier, the type of a literal (`date '2030-01-01'`) or of a cast.
        let other = next.is_some_and(|p| p.is_punctuation("(") || p.is_punctuation(".") || p.kind == PieceKind::Text)
            || is(at.checked_sub(1), ":")
            || at.checked_sub(1).and_then(|at| pieces.get(at)).is_some_and(|p| p.is_word("as"));
        let keyword = piece.kind == PieceKind::Word && SQL_WORDS.contains(&name.as_str());
        if !subquery && !other && !keyword {
            found.push(name);
        }
    }
    found
}
