//! What the templates need to know of one graph, read from the model.

use sha2::{Digest, Sha256};

use super::super::super::diagnostic::Diagnostic;
use super::super::super::ident::{Ident, QualName};
use super::super::super::model::{Condition, Graph, GraphId, GraphLink, Model, Place, Source, TypeDef};
use super::super::super::objects::{GraphTables, NumberTable};
use super::super::super::resolve::NOT_BUILT;
use super::super::super::span::Span;
use super::super::key::held_type;
use super::fragments;
use super::numbered::{self, Numbered};

/// A graph. What is said of its table and links is of one over one type with one key column; any other is numbered.
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
    /// Present when the index holds numbers instead of keys.
    pub(super) numbered: Option<Numbered>,
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
    /// It is made by the apply: a table of shares.
    pub(super) ours: bool,
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
        let mut shape = Shape {
            name: String::new(),
            title: title(model, graph),
            type_name: ty.name.clone(),
            table: ty.table.clone(),
            key: ty.key.first().ok_or_else(foreign)?.column.clone(),
            key_sql: ty.key.first().map_or("bigint", |key| held_type(key.ty)),
            objects: text(ty.condition.as_ref()),
            columns: Vec::new(),
            tables: Vec::new(),
            numbered: None,
            span: ty.span,
        };
        if is_numbered(model, graph) {
            let mut numbered = Numbered::default();
            for link in &graph.links {
                numbered.link(model, link).ok_or_else(|| refuse("over this link"))?;
            }
            shape.key_sql = "bigint";
            shape.name = digest(&numbered.parts());
            numbered.name(&shape.name);
            shape.numbered = Some(numbered);
            return Ok(shape);
        }
        for link in &graph.links {
            shape.link(model, ty, link).ok_or_else(|| refuse("over this link"))?;
        }
        shape.name = shape.digest();
        Ok(shape)
    }

    /// Adds a link of a graph over one type with one key column.
    fn link(&mut self, model: &Model, ty: &TypeDef, link: &GraphLink) -> Option<()> {
        let source = source_of(ty, link)?;
        let condition = text(link.condition.as_ref());
        if let Place::Column { columns } = &source.place {
            let [column] = columns.as_slice() else { return None };
            self.columns.push(ColumnLink { column: column.clone(), condition });
            return Some(());
        }
        let found = numbered::link_table(model, link, source)?;
        let ([child], [parent]) = (found.object.as_slice(), found.subject.as_slice()) else { return None };
        let (child, parent) = (child.clone(), parent.clone());
        self.tables.push(TableLink {
            table: found.table,
            ours: found.ours,
            child,
            parent,
            rows: found.rows,
            condition,
        });
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
        digest(&parts)
    }

    /// What the build and the rest of the emitter need.
    pub(super) fn tables(&self) -> GraphTables {
        GraphTables {
            name: self.name.clone(),
            title: self.title.clone(),
            table: self.table.clone(),
            links_sql: self
                .numbered
                .as_ref()
                .map_or_else(|| fragments::links_sql(self), numbered::fragments::links_sql),
            objects_sql: self
                .numbered
                .as_ref()
                .map_or_else(|| fragments::objects_sql(self), numbered::fragments::objects_sql),
            key_type: self.key_sql,
            prepare: self.numbered.as_ref().map(Numbered::prepare).unwrap_or_default(),
            numbers: self
                .numbered
                .iter()
                .flat_map(|n| &n.members)
                .map(|m| NumberTable { ty: m.id, table: m.numbers.clone() })
                .collect(),
        }
    }

    /// The link tables without repeats, in order, and whether they are made by the apply.
    pub(super) fn link_tables(&self) -> Vec<(&QualName, bool)> {
        let mut seen: Vec<(&QualName, bool)> = Vec::new();
        for t in &self.tables {
            if !seen.iter().any(|(table, _)| **table == t.table) {
                seen.push((&t.table, t.ours));
            }
        }
        seen
    }

    /// A mistake of ours, not of the policy's.
    pub(super) fn internal(&self, what: &str) -> Diagnostic {
        Diagnostic::error(NOT_BUILT, self.span, format!("the index of \"{}\" cannot be written: {what}", self.title))
    }
}

/// Whether the index holds numbers: several types, a key of several columns, or a pair of columns that names the parent.
fn is_numbered(model: &Model, graph: &Graph) -> bool {
    graph.links.iter().any(|l| {
        let several = l.child != l.parent || Some(l.child) != graph.links.first().map(|first| first.child);
        let child = model.ty(l.child);
        let pair = child.and_then(|ty| source_of(ty, l)).is_some_and(|s| matches!(s.place, Place::Polymorphic { .. }));
        several || pair || child.is_some_and(|ty| ty.key.len() != 1)
    })
}

fn digest(parts: &[String]) -> String {
    let hash = Sha256::digest(parts.join("\u{0}").as_bytes());
    hash.iter().take(4).fold("g".to_owned(), |name, byte| name + &format!("{byte:02x}"))
}

/// `folder.parent{inherit}, folder.shown`.
fn title(model: &Model, graph: &Graph) -> String {
    let one = |l: &GraphLink| {
        let ty = model.ty(l.child);
        let relation = ty.and_then(|ty| ty.relation(l.relation)).map_or("?", |r| r.name.as_str());
        let condition = l.condition.as_ref().map(|c| format!("{{{}}}", c.sql.trim())).unwrap_or_default();
        format!("{}.{relation}{condition}", ty.map_or("?", |ty| ty.name.as_str()))
    };
    let mut names: Vec<String> = graph.links.iter().map(one).collect();
    names.dedup();
    names.join(", ")
}

fn source_of<'a>(ty: &'a TypeDef, link: &GraphLink) -> Option<&'a Source> {
    ty.relation(link.relation)?.sources.get(link.source)
}

fn text(condition: Option<&Condition>) -> Option<String> {
    condition.map(|c| c.sql.clone())
}
