//! What `rules` become: row-level security policies on the table itself, grants for the commands that have a rule, and
//! triggers for rules about columns.
//!
//! PostgreSQL checks policies before it fires AFTER triggers, so a rule starts from the row's own columns and link rows
//! and looks up its parents; the row's own node in the index may be missing or old. That is what makes
//! `INSERT ... RETURNING` work.

use crate::compiler::ident::{QualName, literal};
use crate::compiler::model::{Command, Expr, Rule, TableRules, TypeId, Verb};
use crate::compiler::objects::{GovernedTable, Lock, LockMode, Object, ObjectKind, Phase};

use super::context::{Asker, Emit, Form, Policy, Scope};
use super::describe::describe;
use super::logic;
use super::names;
use super::principals::{MAY, command_action};
use super::views::Made;

/// More expanded views than anyone would accept; counting stops here.
const MOST_COUNTED: usize = 10_000;

/// A condition in both forms, with the views it names.
pub struct Staged {
    /// SQL text.
    pub text: String,
    /// The generated views it reads.
    pub views: Vec<String>,
}

impl Policy<'_> {
    /// The objects that put one table under its rules, and what a read of it expands.
    pub fn rule_objects(&self, rules: &TableRules, made: &mut Made) -> Emit<(Vec<Object>, GovernedTable)> {
        let def = self.ty(rules.ty)?;
        let table = &def.table;
        let exclusive = |what: &str, sql: String| {
            self.table_object(rules, ObjectKind::Policy, what, sql, LockMode::AccessExclusive)
        };
        let mut objects = self.mask_objects(rules, made)?;
        objects.push(exclusive("row-level security", format!("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"))?);
        objects.push(exclusive(BELOW, below_sql(table))?);
        let mut views = Vec::new();
        for (command, word) in [
            (Command::Select, "SELECT"),
            (Command::Insert, "INSERT"),
            (Command::Update, "UPDATE"),
            (Command::Delete, "DELETE"),
        ] {
            let lines: Vec<&Rule> = rules.rules.iter().filter(|rule| rule.command == command).collect();
            if lines.is_empty() {
                continue;
            }
            let rule = any_line(&lines);
            let using = self.staged(rules, &table.name.to_string(), &rule, made)?;
            if command == Command::Select {
                views = using.views;
            }
            let sql = self.policy_sql(rules, &command, word, &rule, &using.text, made)?;
            objects.push(exclusive(&word.to_lowercase(), sql)?);
            if command == Command::Select {
                objects.push(self.select_grant(rules)?);
                continue;
            }
            let grant = format!("GRANT {word} ON {table} TO {}", self.model.app_role);
            objects.push(self.table_object(
                rules,
                ObjectKind::Grant,
                &word.to_lowercase(),
                grant,
                LockMode::AccessShare,
            )?);
        }
        for (at, rule) in rules.rules.iter().enumerate() {
            objects.extend(self.column_rule(rules, at, rule, made)?);
        }
        let expanded = made.expanded(&views, MOST_COUNTED);
        let governed = GovernedTable {
            table: table.clone(),
            role: self.model.app_role.clone(),
            view: rules.view.clone(),
            expanded_views: expanded.len(),
            views: expanded,
        };
        Ok((objects, governed))
    }

    /// An object of the table itself, `app.files: select`.
    pub fn table_object(
        &self,
        rules: &TableRules,
        kind: ObjectKind,
        what: &str,
        sql: String,
        mode: LockMode,
    ) -> Emit<Object> {
        let table = self.ty(rules.ty)?.table.clone();
        Ok(Object {
            kind,
            name: format!("{}: {what}", table.plain()),
            sql,
            locks: vec![Lock { table, mode }],
            phase: Phase::Rules,
            graph: None,
        })
    }

    fn policy_sql(
        &self,
        rules: &TableRules,
        command: &Command,
        word: &str,
        rule: &Expr,
        using: &str,
        made: &Made,
    ) -> Emit<String> {
        let table = &self.ty(rules.ty)?.table;
        let name = format!("authz_{}", word.to_lowercase());
        let head = format!("CREATE POLICY {name} ON {table} FOR {word} TO {}", self.model.app_role);
        let verb = match command {
            Command::Insert => Verb::Insert,
            Command::Update => Verb::Update,
            Command::Delete => Verb::Delete,
            _ => Verb::Select,
        };
        // A session limited to scopes; also what refuses a session in which nobody signed in.
        let may = format!("(SELECT {MAY}({}))", literal(&command_action(table, verb)));
        let refuse = |text: &str, described: &str| {
            format!(
                "(({text}) IS TRUE OR authz_int.refuse({}, {}, {}))",
                literal(&word.to_lowercase()),
                literal(&table.plain()),
                literal(described)
            )
        };
        Ok(match command {
            Command::Insert => {
                let described = format!("insert : {}", describe(self, rules.ty, rule));
                let limited = refuse(&may, "insert : within the session's scopes");
                format!("{head}\nWITH CHECK ({limited} AND {})", refuse(using, &described))
            }
            Command::Update => {
                let mut checks = vec![refuse(using, &format!("update : {}", describe(self, rules.ty, rule)))];
                for after in &rules.rules {
                    if after.command == Command::UpdateAfter(Vec::new()) {
                        let staged = self.staged(rules, &table.name.to_string(), &after.expr, made)?;
                        let described = format!("update after : {}", describe(self, rules.ty, &after.expr));
                        checks.push(refuse(&staged.text, &described));
                    }
                }
                format!("{head}\nUSING ({may} AND ({using}))\nWITH CHECK ({})", checks.join(" AND "))
            }
            _ => format!("{head}\nUSING ({may} AND ({using}))"),
        })
    }

    /// A rule as a condition on the table's row, called `row`: by probing while the statement has checked few rows, then
    /// by sets.
    pub fn staged(&self, rules: &TableRules, row: &str, expr: &Expr, made: &Made) -> Emit<Staged> {
        let (own, terms) = self.own_columns(rules.ty, row, expr)?;
        let mut probing = Scope::new(rules.ty, row, Asker::Statement, Form::Probe);
        let probe = self.any_of(&mut probing, &terms)?;
        let mut setting = Scope::new(rules.ty, row, Asker::Statement, Form::Set);
        let set = self.any_of(&mut setting, &terms)?;
        let graphs = made.graphs(&probing.views);
        let counts = self.counts(rules.ty, row)?;
        if graphs.is_empty() {
            // No node is looked up, so nothing counts the rows; sets of what the caller holds serve every row.
            return Ok(Staged { text: format!("({own}{set}){counts}"), views: Vec::new() });
        }
        let checked = self.checked_rows(graphs)?;
        let held_rows = self.options.held_rows;
        let text = format!("({own}CASE WHEN {checked} < {held_rows} THEN\n  {probe}\nELSE\n  {set}\nEND){counts}");
        Ok(Staged { text, views: probing.views })
    }

    /// The terms of a rule that need nothing but the row's own columns, as `... OR `, and the others. The former come
    /// before the choice of a form, which costs a little on every row.
    fn own_columns(&self, ty: TypeId, row: &str, expr: &Expr) -> Emit<(String, Vec<Expr>)> {
        let mut own = String::new();
        let mut others = Vec::new();
        for term in logic::row_terms(self.model, ty, expr) {
            let mut scope = Scope::new(ty, row, Asker::Statement, Form::Probe);
            let text = self.check(&mut scope, &term)?;
            if matches!(term, Expr::Relation(..)) && scope.views.is_empty() && scope.mine.is_empty() {
                own.push_str(&format!("{text} OR "));
            } else {
                others.push(term);
            }
        }
        Ok((own, others))
    }

    /// A rule about columns: a trigger that fires only when they change, and only for a role that the rules apply to.
    fn column_rule(&self, rules: &TableRules, at: usize, rule: &Rule, made: &mut Made) -> Emit<Vec<Object>> {
        let def = self.ty(rules.ty)?;
        let (columns, row, word) = match &rule.command {
            Command::UpdateBefore(columns) => (columns, "OLD", ""),
            Command::UpdateAfter(columns) if !columns.is_empty() => (columns, "NEW", " after"),
            _ => return Ok(Vec::new()),
        };
        let mut scope = Scope::new(rules.ty, "this", Asker::Statement, Form::Probe);
        let check = self.check(&mut scope, &rule.expr)?;
        let counts = self.counts(rules.ty, "this")?;
        let listed: Vec<String> = columns.iter().map(|c| c.plain()).collect();
        let described = format!("update {}{word} : {}", listed.join(", "), describe(self, rules.ty, &rule.expr));
        let function = names::function("rule", def, &at.to_string());
        // The caller's own rights are enough: it reads only the caller's views. Row-level security that is not active
        // for the role means that the rules do not apply to it.
        let body = format!(
            "CREATE FUNCTION {function}() RETURNS trigger\nLANGUAGE plpgsql\nSET search_path = pg_catalog, pg_temp\n\
             AS $authz$\nBEGIN\n  IF row_security_active(TG_RELID)\n     AND (SELECT {check}{counts} FROM unnest(ARRAY[{row}]) AS this) IS NOT TRUE THEN\n    \
             RAISE EXCEPTION 'AZ709: the policy refuses this update on %', {table}\n      \
             USING ERRCODE = '42501', CONSTRAINT = 'authz_update', TABLE = {table}, DETAIL = 'The rule is: ' || {rule};\n  \
             END IF;\n  RETURN NULL;\nEND $authz$",
            table = literal(&def.table.plain()),
            rule = literal(&described),
        );
        made.function(&function, body, false);
        let changed: Vec<String> = columns.iter().map(|c| format!("OLD.{c} IS DISTINCT FROM NEW.{c}")).collect();
        let trigger = format!(
            "CREATE TRIGGER authz_rule_{at} AFTER UPDATE ON {} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION {function}()",
            def.table,
            changed.join(" OR ")
        );
        Ok(vec![self.table_object(rules, ObjectKind::Trigger, &described, trigger, LockMode::ShareRowExclusive)?])
    }
}

/// What the object that closes partitions and children is called on its table.
pub const BELOW: &str = "row-level security of partitions and children";

/// A partition or a child has no rules of its own, and nobody but its owner has business with it but through the table
/// above: row-level security without a policy.
fn below_sql(table: &QualName) -> String {
    format!(
        "DO $authz$\nDECLARE\n  below regclass;\nBEGIN\n  FOR below IN\n    WITH RECURSIVE b(oid) AS (\n      \
         SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = {}::regclass\n      UNION\n      \
         SELECT i.inhrelid FROM b JOIN pg_inherits i ON i.inhparent = b.oid\n    )\n    \
         SELECT c.oid FROM b JOIN pg_class c ON c.oid = b.oid WHERE c.relkind IN ('r', 'p') AND NOT c.relrowsecurity\n  LOOP\n    \
         EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', below);\n  END LOOP;\nEND $authz$",
        literal(&table.to_string())
    )
}

/// Lines of one command together: any of them.
pub fn any_line(lines: &[&Rule]) -> Expr {
    match lines {
        [one] => one.expr.clone(),
        many => Expr::Or(many.iter().map(|rule| rule.expr.clone()).collect()),
    }
}
