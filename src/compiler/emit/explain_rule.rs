//! `authz.explain_rule`: why the rules of a table let the caller do something to a row, or refuse it: each line that such a
//! statement meets, which part of the statement brings it in, whether it holds, and each of its parts.

use crate::compiler::ident::{Ident, literal};
use crate::compiler::model::{Command, Expr, Rule, TableRules};

use super::api::Api;
use super::context::{Asker, Emit, Form, Policy, Scope};
use super::describe::describe;
use super::logic;
use super::principals::{MAY, command_action};
use super::relations::indented;
use super::views::Made;
use crate::compiler::model::Verb;

/// The row a line is judged on: the variable that holds it, and how people call it.
#[derive(Clone, Copy)]
struct Judged {
    variable: &'static str,
    called: &'static str,
    clause: &'static str,
}

const STORED: Judged = Judged { variable: "authz__old", called: "the row", clause: "reading" };

impl Policy<'_> {
    /// The function; one arm for each table with rules.
    pub fn explain_rule_api(&self, made: &mut Made) -> Emit<()> {
        let mut arms = String::new();
        let mut declare = String::from("  authz__lines jsonb := '[]';\n  authz__verb text;\n");
        for (at, rules) in self.model.rules.iter().enumerate() {
            let table = &self.ty(rules.ty)?.table;
            declare.push_str(&format!("  authz__old{at} {table};\n  authz__new{at} {table};\n"));
            arms.push_str(&self.table_arm(at, rules)?);
        }
        arms.push_str(
            "  PERFORM authz_int.unknown('rules for the table ' || quote_literal(authz__table_name));\n  RETURN NULL;",
        );
        Api {
            name: "authz.explain_rule",
            args: &["table_name text", "command text", "id text DEFAULT NULL", "new_row jsonb DEFAULT NULL"],
            returns: "jsonb",
            volatility: "STABLE",
            declare: &declare,
            body: format!(
                "  authz__verb := lower(authz__command);\n  IF authz__verb IS NULL OR authz__verb NOT IN ('select', 'insert', 'update', 'delete') THEN\n    \
                 RAISE EXCEPTION 'AZ710: % is no command', quote_nullable(authz__command) USING ERRCODE = '22023';\n  END IF;\n{arms}"
            ),
        }
        .add(made);
        Ok(())
    }

    fn table_arm(&self, at: usize, rules: &TableRules) -> Emit<String> {
        let def = self.ty(rules.ty)?;
        let table = &def.table;
        let key = self.key(rules.ty)?;
        let row = |judged: Judged| format!("{}{at}", judged.variable);
        let old = row(STORED);
        let new = format!("authz__new{at}");
        let visible = self.line_holds(rules, &self.lines(rules, &Command::Select), &old)?;
        let mut text = format!(
            "  IF authz__table_name IN ({}, {}) THEN\n    \
             IF authz__verb = 'insert' THEN\n      {new} := jsonb_populate_record(NULL::{table}, authz__new_row);\n    ELSE\n      \
             SELECT this.* INTO {old} FROM {table} AS this WHERE {};\n      \
             IF NOT FOUND OR NOT (authz_int.is_operator() OR ({visible}) IS TRUE) THEN\n        RETURN NULL;\n      END IF;\n      \
             {new} := jsonb_populate_record({old}, coalesce(authz__new_row, '{{}}'));\n    END IF;\n",
            literal(&table.plain()),
            literal(&table.to_string()),
            key.of_row("this").equals(&key.of_text("authz__id")),
        );
        let before = Judged { variable: "authz__old", called: "the row before", clause: "UPDATE" };
        let after = Judged { variable: "authz__new", called: "the row after", clause: "SET" };
        let inserted = Judged { variable: "authz__new", called: "the new row", clause: "INSERT" };
        let returned = Judged { variable: "authz__new", called: "the new row", clause: "RETURNING, ON CONFLICT" };
        let deleted = Judged { variable: "authz__old", called: "the row", clause: "DELETE" };
        for (verb, command, judged) in [
            ("select", Command::Select, STORED),
            ("insert", Command::Insert, inserted),
            ("insert", Command::Select, returned),
            ("update", Command::Select, STORED),
            ("update", Command::Update, before),
            ("update", Command::Update, after),
            ("update", Command::Select, Judged { clause: "RETURNING", ..after }),
            ("delete", Command::Select, STORED),
            ("delete", Command::Delete, deleted),
        ] {
            let lines = self.lines(rules, &command);
            let line = self.line(rules, &title(&command), lines.as_ref(), at, judged)?;
            text.push_str(&format!("    IF authz__verb = '{verb}' THEN\n{}    END IF;\n", indented(&line) + "\n"));
        }
        for rule in &rules.rules {
            let (columns, judged): (&[Ident], Judged) = match &rule.command {
                Command::UpdateBefore(columns) => (columns, before),
                Command::UpdateAfter(columns) => (columns, after),
                _ => continue,
            };
            let changed: Vec<String> =
                columns.iter().map(|c| format!("{old}.{c} IS DISTINCT FROM {new}.{c}")).collect();
            let when = if changed.is_empty() { "true".to_owned() } else { changed.join(" OR ") };
            let listed: Vec<String> = columns.iter().map(|c| c.plain()).collect();
            let word = if matches!(rule.command, Command::UpdateAfter(_)) { "after" } else { "" };
            let title = format!("update {} {word}", listed.join(", "));
            let line = self.line(
                rules,
                title.split_whitespace().collect::<Vec<_>>().join(" ").as_str(),
                Some(&rule.expr),
                at,
                judged,
            )?;
            text.push_str(&format!(
                "    IF authz__verb = 'update' AND ({when}) THEN\n{}    END IF;\n",
                indented(&line) + "\n"
            ));
        }
        for verb in Verb::ALL {
            text.push_str(&format!(
                "    IF authz__verb = '{}' AND NOT {MAY}({}) THEN\n      \
                 authz__lines := authz__lines || jsonb_build_object('rule', 'the session''s scopes', 'on', 'the statement', 'holds', false);\n    END IF;\n",
                verb.word(),
                literal(&command_action(table, verb))
            ));
        }
        text.push_str(
            "    RETURN jsonb_build_object('table', authz__table_name, 'command', authz__verb, 'principal', coalesce(authz.principal(), 'nobody'), 'rules', authz__lines,\n      \
             'allowed', NOT EXISTS (SELECT FROM jsonb_array_elements(authz__lines) l WHERE NOT (l -> 'holds')::boolean AND NOT coalesce((l -> 'only_if_read')::boolean, false)));\n  END IF;\n",
        );
        Ok(text)
    }

    /// The lines of a command together; `None` when there is none, and nobody may.
    fn lines(&self, rules: &TableRules, command: &Command) -> Option<Expr> {
        let lines: Vec<&Rule> = rules.rules.iter().filter(|rule| rule.command == *command).collect();
        match lines.as_slice() {
            [] => None,
            [one] => Some(one.expr.clone()),
            many => Some(Expr::Or(many.iter().map(|rule| rule.expr.clone()).collect())),
        }
    }

    /// A condition that an expression holds on the row in a variable.
    fn line_holds(&self, rules: &TableRules, expr: &Option<Expr>, variable: &str) -> Emit<String> {
        let Some(expr) = expr else { return Ok("false".to_owned()) };
        let mut scope = Scope::new(rules.ty, "this", Asker::Statement, Form::Probe);
        let check = self.check(&mut scope, expr)?;
        let counts = self.counts(rules.ty, "this")?;
        Ok(format!("SELECT {check}{counts} FROM unnest(ARRAY[{variable}]) AS this"))
    }

    /// The statement that adds what is said of one line.
    fn line(&self, rules: &TableRules, title: &str, expr: Option<&Expr>, at: usize, judged: Judged) -> Emit<String> {
        // Reading back what was written is asked only of statements that do.
        let only = judged.clause.contains("RETURNING");
        let common = |rule: &str| {
            format!(
                "'rule', {}, 'on', {}, 'clause', {}, 'only_if_read', {only}",
                literal(rule),
                literal(judged.called),
                literal(judged.clause)
            )
        };
        let Some(expr) = expr else {
            let none = common(&format!("{title} : nobody, as it has no line"));
            return Ok(format!("authz__lines := authz__lines || jsonb_build_object({none}, 'holds', false);"));
        };
        let mut scope = Scope::new(rules.ty, "this", Asker::Statement, Form::Probe);
        let terms = logic::row_terms(self.model, rules.ty, expr);
        let parts = self.needs(&mut scope, &terms)?;
        let check = self.check(&mut scope, expr)?;
        let counts = self.counts(rules.ty, "this")?;
        Ok(format!(
            "authz__lines := authz__lines || (SELECT jsonb_build_object({}, 'holds', coalesce({check}{counts}, false), 'ways', {parts})\n  \
             FROM unnest(ARRAY[{}{at}]) AS this);",
            common(&format!("{title} : {}", describe(self, rules.ty, expr))),
            judged.variable
        ))
    }
}

fn title(command: &Command) -> String {
    match command {
        Command::Insert => "insert",
        Command::Update => "update",
        Command::Delete => "delete",
        _ => "select",
    }
    .to_owned()
}
