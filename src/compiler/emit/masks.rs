//! Masked views: `rules t view v` with `mask COLS : EXPR`. The view shows the rows that the select rule shows, and NULL
//! for a masked column where its rule does not hold; the app role reads masked columns nowhere else.
//!
//! What columns the table has only the server knows, so the view and the grants are made by blocks that ask it.

use std::collections::BTreeMap;

use crate::compiler::ident::{Ident, QualName, literal};
use crate::compiler::model::{Command, Expr, Rule, TableRules};
use crate::compiler::objects::{LockMode, Object, ObjectKind, Phase};
use crate::compiler::span::Span;

use super::context::{Emit, Policy};
use super::relations::indented;
use super::rules::any_line;
use super::views::Made;

impl Policy<'_> {
    /// The view, and what it takes to read it.
    pub fn mask_objects(&self, rules: &TableRules, made: &Made) -> Emit<Vec<Object>> {
        let Some(view) = &rules.view else { return Ok(Vec::new()) };
        let table = &self.ty(rules.ty)?.table;
        let lines: Vec<&Rule> = rules.rules.iter().filter(|rule| rule.command == Command::Select).collect();
        let select = if lines.is_empty() { Expr::Nobody(Span::default()) } else { any_line(&lines) };
        let shown = self.staged(rules, "this", &select, made)?.text;
        let mut masks: BTreeMap<&Ident, Vec<String>> = BTreeMap::new();
        for rule in &rules.rules {
            let Command::Mask(columns) = &rule.command else { continue };
            let condition = self.staged(rules, "this", &rule.expr, made)?.text;
            for column in columns {
                masks.entry(column).or_default().push(condition.clone());
            }
        }
        let role = &self.model.app_role;
        let object = |kind, name: String, sql: String| Object {
            kind,
            name,
            sql,
            locks: Vec::new(),
            phase: Phase::Functions,
            graph: None,
        };
        Ok(vec![
            object(ObjectKind::View, view.to_string(), view_sql(view, table, &masks, &shown)),
            object(
                ObjectKind::Grant,
                format!("{role}: the view {}", view.plain()),
                format!("GRANT SELECT ON {view} TO {role}"),
            ),
        ])
    }

    /// The grant to read the table: of all its columns, or of those that no mask hides.
    pub fn select_grant(&self, rules: &TableRules) -> Emit<Object> {
        let table = &self.ty(rules.ty)?.table;
        let role = &self.model.app_role;
        let masked = masked_columns(rules);
        let sql = if masked.is_empty() {
            format!("GRANT SELECT ON {table} TO {role}")
        } else {
            let masked: Vec<String> = masked.iter().map(|column| literal(column.as_str())).collect();
            format!(
                "DO $authz$\nDECLARE\n  columns text;\nBEGIN\n  REVOKE SELECT ON {table} FROM {role};\n  \
                 SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns\n  {}\n    \
                 AND a.attname <> ALL (ARRAY[{}]::name[]);\n  \
                 IF columns IS NOT NULL THEN\n    EXECUTE 'GRANT SELECT (' || columns || ') ON ' || {} || ' TO ' || {};\n  \
                 END IF;\nEND $authz$",
                columns_of(table),
                masked.join(", "),
                literal(&table.to_string()),
                literal(&role.to_string())
            )
        };
        self.table_object(rules, ObjectKind::Grant, "select", sql, LockMode::AccessShare)
    }
}

/// The columns that some mask of these rules hides.
pub fn masked_columns(rules: &TableRules) -> Vec<&Ident> {
    let masks = rules.rules.iter().filter_map(|rule| match &rule.command {
        Command::Mask(columns) => Some(columns),
        _ => None,
    });
    let mut all: Vec<&Ident> = masks.flatten().collect();
    all.sort();
    all.dedup();
    all
}

/// `FROM ... WHERE` for the columns of a table as the server knows them.
fn columns_of(table: &QualName) -> String {
    format!(
        "FROM pg_attribute a\n  WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped",
        literal(&table.to_string())
    )
}

/// The block that makes the view. A view that is there is replaced in place, so that what is built on it stays.
fn view_sql(view: &QualName, table: &QualName, masks: &BTreeMap<&Ident, Vec<String>>, shown: &str) -> String {
    let rows: Vec<String> = masks
        .iter()
        .map(|(column, conditions)| {
            // A condition that is NULL shows nothing, as CASE has it.
            let all = conditions.iter().map(|c| format!("({c})")).collect::<Vec<_>>().join(" AND ");
            format!("({}::name, {})", literal(column.as_str()), literal(&all))
        })
        .collect();
    let masks = match rows.as_slice() {
        [] => "(SELECT NULL::name, NULL::text WHERE false)".to_owned(),
        rows => format!("(VALUES\n{}\n  )", indented(&rows.join(",\n"))),
    };
    format!(
        "DO $authz$\nDECLARE\n  columns text;\nBEGIN\n  SELECT string_agg(CASE WHEN m.condition IS NULL THEN 'this.' || quote_ident(a.attname)\n    \
         ELSE 'CASE WHEN ' || m.condition || ' THEN this.' || quote_ident(a.attname) || ' ELSE NULL::' ||\n      format_type(a.atttypid, a.atttypmod) || ' END AS ' || quote_ident(a.attname) END, ', ' ORDER BY a.attnum)\n  \
         INTO STRICT columns\n  {}\n  ;\n  EXECUTE 'CREATE OR REPLACE VIEW ' || {} || ' WITH (security_barrier) AS SELECT ' || columns || {};\nEND $authz$",
        columns_of(table).replacen(
            "\n",
            &format!("\n  LEFT JOIN {masks} AS m(name, condition) ON m.name = a.attname\n"),
            1
        ),
        literal(&view.to_string()),
        literal(&format!("\nFROM {table} AS this\nWHERE {shown}"))
    )
}
