//! What the templates need to know of one graph, read from the model.

use sha2::{Digest, Sha256};

use super::super::super::diagnostic::Diagnostic;
use super::super::super::ident::{Ident, QualName};
use super::super::super::model::{
    Condition, Graph, GraphId, GraphLink, KeyType, Model, Place, Source, TypeDef, TypeId,
};
use super::super::super::objects::GraphTables;
use super::super::super::resolve::NOT_BUILT;
use super::super::super::span::Span;
use super::fragments;

/// A graph over one type with one key column.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// `g` and eight hex digits.
    pub(super) name: String,
    /// For people.
    pub(super) title: String,
    /// The type's policy name.
    pub(super) type_name: String,
    /// The type's table.
    pub(super) table: QualName,
    /// Its key column.
    pub(super) key: Ident,
    /// The key's SQL type in the index.
    pub(super) key_sql: &'static str,
    /// Which rows are objects, when not all.
    pub(super) objects: Option<String>,
    /// Links held in the type's own columns.
    pub(super) columns: Vec<ColumnLink>,
    /// Links held in link tables.
    pub(super) tables: Vec<TableLink>,
    /// For diagnostics.
    pub(super) span: Span,
}

/// A link in a column of the child's row.
#[derive(Debug, Clone)]
pub(super) struct ColumnLink {
    /// Holds the parent's key.
    pub(super) column: Ident,
    /// It counts where this holds on the child's row.
    pub(super) condition: Option<String>,
}

/// A link in a link table.
#[derive(Debug, Clone)]
pub(super) struct TableLink {
    /// The link table.
    pub(super) table: QualName,
    /// Holds the child's key.
    pub(super) child: Ident,
    /// Holds the parent's key.
    pub(super) parent: Ident,
    /// Which link rows count.
    pub(super) rows: Option<String>,
    /// The link counts where this holds on the child's row.
    pub(super) condition: Option<String>,
}

impl Shape {
    /// Reads a graph, or says why it has no index of this kind.
    pub(super) fn of(model: &Model, id: GraphId) -> Result<Shape, Diagnostic> {
        let foreign = || Diagnostic::error(NOT_BUILT, Span::default(), "a graph that is not of this policy");
        let graph = model.graph(id).ok_or_else(foreign)?;
        let first = graph.links.first().ok_or_else(foreign)?;
        let ty = model.ty(first.child).ok_or_else(foreign)?;
        let refuse = |what: &str| {
            let span = source_of(ty, first).map_or(ty.span, |s| s.span);
            Diagnostic::error(NOT_BUILT, span, format!("inheritance of \"{}\" {what} is not built yet", ty.name))
        };
        if graph.links.iter().any(|l| l.child != first.child || l.parent != first.child) {
            return Err(refuse("through several types"));
        }
        let [key] = ty.key.as_slice() else { return Err(refuse("with a key of several columns")) };
        let mut shape = Shape {
            name: String::new(),
            title: String::new(),
            type_name: ty.name.clone(),
            table: ty.table.clone(),
            key: key.column.clone(),
            key_sql: key_sql(key.ty),
            objects: text(ty.condition.as_ref()),
            columns: Vec::new(),
            tables: Vec::new(),
            span: ty.span,
        };
        for link in &graph.links {
            shape.link(ty, link, first.child).ok_or_else(|| refuse("through shares or polymorphic columns"))?;
        }
        shape.title = title(ty, graph);
        shape.name = shape.digest();
        Ok(shape)
    }

    /// Adds a link; `None` for a kind of link that has no index of this kind.
    fn link(&mut self, ty: &TypeDef, link: &GraphLink, this: TypeId) -> Option<()> {
        let source = source_of(ty, link)?;
        let condition = text(link.condition.as_ref());
        if source.subject != super::super::super::model::Subject::Type(this) {
            return None;
        }
        match &source.place {
            Place::Column { columns } => {
                let [column] = columns.as_slice() else { return None };
                self.columns.push(ColumnLink { column: column.clone(), condition });
            }
            Place::Table { table, object, subject, condition: rows } => {
                let ([child], [parent]) = (object.as_slice(), subject.as_slice()) else { return None };
                let (child, parent, rows) = (child.clone(), parent.clone(), text(rows.as_ref()));
                self.tables.push(TableLink { table: table.clone(), child, parent, rows, condition });
            }
            Place::Polymorphic { .. } | Place::Shared { .. } | Place::Role { .. } => return None,
        }
        Some(())
    }

    /// The graph's name: the same links make the same name under any policy.
    fn digest(&self) -> String {
        let mut parts = vec!["ancestor index 1".to_owned(), self.table.to_string(), self.key.to_string()];
        parts.push(self.key_sql.to_owned());
        parts.push(self.objects.clone().unwrap_or_default());
        for c in &self.columns {
            parts.push(format!("column {} if {:?}", c.column, c.condition));
        }
        for t in &self.tables {
            parts.push(format!("table {} {} {} {:?} if {:?}", t.table, t.child, t.parent, t.rows, t.condition));
        }
        let hash = Sha256::digest(parts.join("\u{0}").as_bytes());
        hash.iter().take(4).fold("g".to_owned(), |name, byte| name + &format!("{byte:02x}"))
    }

    /// What the build and the rest of the emitter need.
    pub(super) fn tables(&self) -> GraphTables {
        GraphTables {
            name: self.name.clone(),
            title: self.title.clone(),
            table: self.table.clone(),
            links_sql: fragments::links_sql(self),
            objects_sql: fragments::objects_sql(self),
            key_type: self.key_sql,
        }
    }

    /// The link tables without repeats, in order.
    pub(super) fn link_tables(&self) -> Vec<&QualName> {
        let mut seen: Vec<&QualName> = Vec::new();
        for t in &self.tables {
            if !seen.contains(&&t.table) {
                seen.push(&t.table);
            }
        }
        seen
    }

    /// A mistake of ours, not of the policy's.
    pub(super) fn internal(&self, what: &str) -> Diagnostic {
        Diagnostic::error(NOT_BUILT, self.span, format!("the index of \"{}\" cannot be written: {what}", self.title))
    }
}

/// `folder.parent{inherit}, folder.shown`.
fn title(ty: &TypeDef, graph: &Graph) -> String {
    let one = |l: &GraphLink| {
        let relation = ty.relation(l.relation).map_or("?", |r| r.name.as_str());
        let condition = l.condition.as_ref().map(|c| format!("{{{}}}", c.sql.trim())).unwrap_or_default();
        format!("{}.{relation}{condition}", ty.name)
    };
    graph.links.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn source_of<'a>(ty: &'a TypeDef, link: &GraphLink) -> Option<&'a Source> {
    ty.relation(link.relation)?.sources.get(link.source)
}

fn text(condition: Option<&Condition>) -> Option<String> {
    condition.map(|c| c.sql.clone())
}

/// The key's type in the index. `varchar` is kept as `text`, to which PostgreSQL converts it without work.
fn key_sql(ty: KeyType) -> &'static str {
    match ty {
        KeyType::Varchar => KeyType::Text.sql(),
        other => other.sql(),
    }
}
