//! Which tables and columns a policy decides from.

use std::collections::{BTreeMap, BTreeSet};

use super::Evaluated;
use super::build::parsed;
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Condition, Expr, Model, Place};

/// Tables, and for each the columns that may be looked at. A name in a condition that reads another table may be a
/// column of either, so a table need not have all of them.
pub type Needed = BTreeMap<QualName, BTreeSet<Ident>>;

/// What must be read before a world can be made of it.
///
/// # Errors
/// A condition that cannot be read.
pub fn needs(model: &Model) -> Evaluated<Needed> {
    let mut needed = Needed::new();
    let mut add = |table: &QualName, columns: &mut dyn Iterator<Item = &Ident>| {
        needed.entry(table.clone()).or_default().extend(columns.cloned());
    };
    let mut conditions: Vec<(&QualName, &Condition)> = Vec::new();
    for def in &model.types {
        add(&def.table, &mut def.key.iter().map(|k| &k.column));
        conditions.extend(def.condition.iter().map(|c| (&def.table, c)));
        for source in def.relations.iter().flat_map(|r| &r.sources) {
            match &source.place {
                Place::Column { columns } => add(&def.table, &mut columns.iter()),
                Place::Polymorphic { type_column, id_column } => {
                    add(&def.table, &mut [type_column, id_column].into_iter());
                }
                Place::Table { table, object, subject, condition } => {
                    add(table, &mut object.iter().chain(subject));
                    conditions.extend(condition.iter().map(|c| (table, c)));
                }
                Place::Role { .. } => {}
                Place::Shared { condition, .. } => conditions.extend(condition.iter().map(|c| (&def.table, c))),
            }
        }
        def.permissions.iter().for_each(|p| in_expr(&p.expr, &def.table, &mut conditions));
    }
    for rules in &model.rules {
        if let Some(def) = model.ty(rules.ty) {
            rules.rules.iter().for_each(|rule| in_expr(&rule.expr, &def.table, &mut conditions));
        }
    }
    for never in &model.invariants {
        if let Some(def) = model.ty(never.ty) {
            in_expr(&never.expr, &def.table, &mut conditions);
        }
    }
    for (table, condition) in conditions {
        let sql = parsed(condition)?;
        for read in sql.tables().into_iter().chain([table]) {
            add(read, &mut sql.columns().into_iter());
        }
    }
    for caveat in &model.caveats {
        let sql = parsed(&caveat.condition)?;
        for read in sql.tables() {
            needed.entry(read.clone()).or_default().extend(sql.columns().into_iter().cloned());
        }
    }
    Ok(needed)
}

fn in_expr<'a>(expr: &'a Expr, table: &'a QualName, found: &mut Vec<(&'a QualName, &'a Condition)>) {
    match expr {
        Expr::Or(parts) | Expr::And(parts) => parts.iter().for_each(|part| in_expr(part, table, found)),
        Expr::Not(inner) => in_expr(inner, table, found),
        Expr::Sql(condition) => found.push((table, condition)),
        _ => {}
    }
}
