//! What the tables of a policy look like, as far as it says: keys, references, and for the columns of conditions the
//! values that make a difference there. Small worlds are made of it.

use std::collections::BTreeMap;

use crate::compiler::evaluate::facts::Datum;
use crate::compiler::evaluate::sql::{self, Compare, Query, Sql};
use crate::compiler::evaluate::{CannotEvaluate, Evaluated};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Condition, Expr, KeyType, Model, Place, Subject, TypeDef, TypeId};

/// All tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// In the order the policy names them.
    pub tables: Vec<TableShape>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// Its name.
    pub name: QualName,
    /// The type whose rows it holds; a table of links or of something a condition reads has none.
    pub ty: Option<TypeId>,
    /// Its columns.
    pub columns: Vec<ColumnShape>,
    /// Which of them are the key.
    pub key: Vec<usize>,
    /// Columns that hold the key of a row elsewhere.
    pub references: Vec<Reference>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnShape {
    /// Its name.
    pub name: Ident,
    /// What it holds.
    pub kind: ColumnKind,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// A part of a key.
    Key(KeyType),
    /// The policy name of one of these types.
    TypeName(Vec<TypeId>),
    /// A boolean.
    Bool,
    /// A number; these and those beside them make a difference.
    Int(Vec<i64>),
    /// Text; these make a difference.
    Text(Vec<String>),
    /// A moment.
    Time,
}

/// Columns that hold a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// As many as the key has.
    pub columns: Vec<usize>,
    /// Of which type; of several, the one that `type_column` names.
    pub types: Vec<TypeId>,
    /// The column that names the type.
    pub type_column: Option<usize>,
}

/// What a condition says of columns: by table (of the row it is on, or of a query) and name.
type Hints = BTreeMap<(QualName, Ident), ColumnKind>;

/// The shape of a policy's tables.
///
/// # Errors
/// A condition that cannot be read.
pub fn shape(model: &Model) -> Evaluated<Shape> {
    let mut shape = Shape::default();
    for (at, def) in model.types.iter().enumerate() {
        let table = shape.table(&def.table);
        table.ty = Some(TypeId(at));
        table.key = def.key.iter().map(|k| table.column(&k.column, ColumnKind::Key(k.ty))).collect();
    }
    for def in &model.types {
        for source in def.relations.iter().flat_map(|relation| &relation.sources) {
            let named = match source.subject {
                Subject::Type(ty) | Subject::Group(ty, _) => Some(ty),
                _ => None,
            };
            match (&source.place, named) {
                (Place::Column { columns }, Some(ty)) => shape.table(&def.table).refer(model, columns, ty),
                (Place::Polymorphic { type_column, id_column }, Some(ty)) => {
                    shape.table(&def.table).refer_by_name(model, type_column, id_column, ty);
                }
                (Place::Table { table, object, subject, .. }, Some(ty)) => {
                    let own = model.type_named(&def.name).unwrap_or(ty);
                    let table = shape.table(table);
                    table.refer(model, object, own);
                    table.refer(model, subject, ty);
                }
                _ => {}
            }
        }
    }
    let mut hints = Hints::new();
    for (table, condition) in conditions(model) {
        let sql = sql::parse(&condition.sql)
            .map_err(|what| CannotEvaluate { what: format!("\"{what}\" in a condition"), span: condition.span })?;
        Reader { model, shape: &shape, hints: &mut hints }.read(&sql, &[(table.clone(), None)]);
    }
    for ((table, column), kind) in hints {
        shape.table(&table).column(&column, kind);
    }
    Ok(shape)
}

/// Every condition on a row, with the row's table.
fn conditions(model: &Model) -> Vec<(&QualName, &Condition)> {
    let mut found = Vec::new();
    for def in &model.types {
        found.extend(def.condition.iter().map(|c| (&def.table, c)));
        for source in def.relations.iter().flat_map(|r| &r.sources) {
            match &source.place {
                Place::Table { table, condition, .. } => found.extend(condition.iter().map(|c| (table, c))),
                Place::Shared { condition, .. } => found.extend(condition.iter().map(|c| (&def.table, c))),
                _ => {}
            }
        }
        def.permissions.iter().for_each(|p| in_expr(&p.expr, def, &mut found));
    }
    for never in &model.invariants {
        if let Some(def) = model.ty(never.ty) {
            in_expr(&never.expr, def, &mut found);
        }
    }
    for rules in &model.rules {
        if let Some(def) = model.ty(rules.ty) {
            rules.rules.iter().for_each(|rule| in_expr(&rule.expr, def, &mut found));
        }
    }
    found
}

fn in_expr<'a>(expr: &'a Expr, def: &'a TypeDef, found: &mut Vec<(&'a QualName, &'a Condition)>) {
    match expr {
        Expr::Or(parts) | Expr::And(parts) => parts.iter().for_each(|part| in_expr(part, def, found)),
        Expr::Not(inner) => in_expr(inner, def, found),
        Expr::Sql(condition) => found.push((&def.table, condition)),
        _ => {}
    }
}

impl Shape {
    fn table(&mut self, name: &QualName) -> &mut TableShape {
        let at = self.tables.iter().position(|t| t.name == *name).unwrap_or_else(|| {
            let (columns, key, references) = (Vec::new(), Vec::new(), Vec::new());
            self.tables.push(TableShape { name: name.clone(), ty: None, columns, key, references });
            self.tables.len() - 1
        });
        // The position was just found or made.
        #[allow(clippy::indexing_slicing)]
        &mut self.tables[at]
    }
}

impl TableShape {
    /// Where a column is; made when there is none. Of two kinds the first that says more than a number stays.
    fn column(&mut self, name: &Ident, kind: ColumnKind) -> usize {
        if let Some(at) = self.columns.iter().position(|c| c.name == *name) {
            if let Some(found) = self.columns.get_mut(at) {
                merge(&mut found.kind, kind);
            }
            return at;
        }
        self.columns.push(ColumnShape { name: name.clone(), kind });
        self.columns.len() - 1
    }

    fn refer(&mut self, model: &Model, columns: &[Ident], ty: TypeId) {
        let key = model.ty(ty).map(|def| def.key.as_slice()).unwrap_or_default();
        let columns = columns.iter().zip(key).map(|(name, k)| self.column(name, ColumnKind::Key(k.ty))).collect();
        let reference = Reference { columns, types: vec![ty], type_column: None };
        if !self.references.contains(&reference) {
            self.references.push(reference);
        }
    }

    fn refer_by_name(&mut self, model: &Model, type_column: &Ident, id_column: &Ident, ty: TypeId) {
        let key = model.ty(ty).and_then(|def| def.key.first()).map_or(KeyType::Text, |k| k.ty);
        let named = self.column(type_column, ColumnKind::TypeName(Vec::new()));
        let id = self.column(id_column, ColumnKind::Key(key));
        if let Some(ColumnShape { kind: ColumnKind::TypeName(types), .. }) = self.columns.get_mut(named)
            && !types.contains(&ty)
        {
            types.push(ty);
        }
        // Keys of several types fit one column only as text.
        if let Some(ColumnShape { kind: kind @ ColumnKind::Key(_), .. }) = self.columns.get_mut(id)
            && *kind != ColumnKind::Key(key)
        {
            *kind = ColumnKind::Key(KeyType::Text);
        }
        match self.references.iter_mut().find(|r| r.type_column == Some(named)) {
            Some(reference) if reference.types.contains(&ty) => {}
            Some(reference) => reference.types.push(ty),
            None => self.references.push(Reference { columns: vec![id], types: vec![ty], type_column: Some(named) }),
        }
    }
}

fn merge(kind: &mut ColumnKind, more: ColumnKind) {
    match (kind, more) {
        (ColumnKind::Int(known), ColumnKind::Int(more)) => known.extend(more),
        (ColumnKind::Text(known), ColumnKind::Text(more)) => known.extend(more),
        (kind @ ColumnKind::Int(_), more @ (ColumnKind::Bool | ColumnKind::Text(_) | ColumnKind::Time)) => *kind = more,
        _ => {}
    }
}

/// Reads what a condition says of columns.
struct Reader<'a> {
    model: &'a Model,
    shape: &'a Shape,
    hints: &'a mut Hints,
}

/// The tables a name may belong to, innermost last, with what may qualify it.
type Tables = [(QualName, Option<Ident>)];

impl Reader<'_> {
    /// A truth value is expected here.
    fn read(&mut self, sql: &Sql, tables: &Tables) {
        match sql {
            Sql::Not(inner) => self.read(inner, tables),
            Sql::And(a, b) | Sql::Or(a, b) => {
                self.read(a, tables);
                self.read(b, tables);
            }
            Sql::Is(inner, Datum::Bool(_), _) => self.read(inner, tables),
            Sql::Is(inner, ..) => match **inner {
                Sql::This(_) | Sql::Column(..) => self.note(inner, ColumnKind::Int(Vec::new()), tables),
                _ => self.read(inner, tables),
            },
            Sql::Compare(how, a, b) => self.compare(*how, a, b, tables),
            Sql::Distinct(a, b, _) => self.compare(Compare::Equal, a, b, tables),
            Sql::In(a, list) => list.iter().for_each(|item| self.compare(Compare::Equal, a, item, tables)),
            Sql::InQuery(a, query) => {
                self.note(a, ColumnKind::Int(Vec::new()), tables);
                self.query(query, tables);
            }
            Sql::Exists(query) => self.query(query, tables),
            Sql::This(_) | Sql::Column(..) => self.note(sql, ColumnKind::Bool, tables),
            Sql::Call(_, list) => list.iter().for_each(|item| self.read(item, tables)),
            _ => {}
        }
    }

    fn query(&mut self, query: &Query, tables: &Tables) {
        let mut inner = tables.to_vec();
        inner.push((query.table.clone(), Some(query.alias.clone())));
        if let Some(column) = &query.column {
            self.note(column, ColumnKind::Int(Vec::new()), &inner);
        }
        if let Some(condition) = &query.condition {
            self.read(condition, &inner);
        }
    }

    fn compare(&mut self, how: Compare, a: &Sql, b: &Sql, tables: &Tables) {
        let (ka, kb) = (self.kind(a, how), self.kind(b, how));
        let known = ka.clone().or_else(|| kb.clone()).unwrap_or(ColumnKind::Int(Vec::new()));
        self.spread(a, kb.unwrap_or_else(|| known.clone()), tables);
        self.spread(b, ka.unwrap_or(known), tables);
    }

    /// What a value of this expression is like, where it says so itself.
    fn kind(&self, sql: &Sql, how: Compare) -> Option<ColumnKind> {
        let beside = i64::from(!matches!(how, Compare::Equal | Compare::Unequal));
        match sql {
            Sql::Value(Datum::Int(n)) => Some(ColumnKind::Int(vec![*n, n.saturating_add(1), n.saturating_sub(beside)])),
            Sql::Value(Datum::Text(text)) => Some(ColumnKind::Text(vec![text.clone()])),
            Sql::Value(Datum::Bool(_)) => Some(ColumnKind::Bool),
            Sql::Context(_) | Sql::Argument(_) => Some(ColumnKind::Text(vec!["a".to_owned(), "b".to_owned()])),
            Sql::Now => Some(ColumnKind::Time),
            Sql::Uid => {
                let key = self.model.ty(self.model.user).and_then(|def| def.key.first());
                key.map(|k| ColumnKind::Key(k.ty))
            }
            _ => None,
        }
    }

    /// Gives a kind to the columns of an operand.
    fn spread(&mut self, sql: &Sql, kind: ColumnKind, tables: &Tables) {
        match sql {
            Sql::Arithmetic(operator, a, b) => {
                let inner = if *operator == '|' { ColumnKind::Text(Vec::new()) } else { ColumnKind::Int(Vec::new()) };
                self.spread(a, inner.clone(), tables);
                self.spread(b, inner, tables);
            }
            Sql::Call(_, list) => list.iter().for_each(|item| self.spread(item, kind.clone(), tables)),
            Sql::This(_) | Sql::Column(..) => self.note(sql, kind, tables),
            other => self.read(other, tables),
        }
    }

    /// Says of a column what it holds. Of a bare name in a query it cannot be told whose it is, unless a table has it:
    /// it is then taken for the innermost table's.
    fn note(&mut self, sql: &Sql, kind: ColumnKind, tables: &Tables) {
        let has = |table: &QualName, name: &Ident| {
            self.shape.tables.iter().any(|t| t.name == *table && t.columns.iter().any(|c| c.name == *name))
        };
        let (table, name) = match sql {
            Sql::This(name) => (tables.first(), name),
            Sql::Column(Some(qualifier), name) => {
                (tables.iter().rev().find(|(_, alias)| alias.as_ref() == Some(qualifier)), name)
            }
            Sql::Column(None, name) => (tables.iter().rev().find(|(t, _)| has(t, name)).or(tables.last()), name),
            _ => return,
        };
        let Some((table, _)) = table else { return };
        match self.hints.get_mut(&(table.clone(), name.clone())) {
            Some(known) => merge(known, kind),
            None => _ = self.hints.insert((table.clone(), name.clone()), kind),
        }
    }
}
