//! Splitting an inheriting permission into what starts it and the links it is passed on over.

use super::cycles::{Node, dependencies};
use super::{permission, title};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Condition, Expr, GraphLink, Place, RelId, Subject, Target, TypeDef, TypeId};
use crate::compiler::resolve::NOT_BUILT;
use crate::compiler::span::Span;
use crate::compiler::sql::{Piece, PieceKind, meaningful};

/// The base and the links of a permission that names itself; `None` when it does so wrongly, which is reported.
pub(super) fn split(
    types: &[TypeDef],
    node: Node,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Expr, Vec<GraphLink>)> {
    let permission = permission(types, node)?;
    let mut splitter = Splitter { types, node, mistakes: Vec::new() };
    let (base, links) = splitter.parts(&permission.expr);
    let mut mistakes = splitter.mistakes;
    if mistakes.is_empty() {
        mistakes.extend(links.iter().filter_map(|link| link.condition.as_ref()).filter_map(check_condition));
    }
    let right = mistakes.is_empty();
    diagnostics.append(&mut mistakes);
    match base {
        None if right => {
            let message = format!(
                "{} is inherited and never starts: nobody has it on any object of their own",
                title(types, node)
            );
            let help = "name who has it without inheriting, as in \"viewer or parent.view\"";
            diagnostics.push(Diagnostic::error(303, permission.span, message).with_help(help));
            None
        }
        base => base.filter(|_| right).map(|base| (base, links)),
    }
}

struct Splitter<'t> {
    types: &'t [TypeDef],
    node: Node,
    mistakes: Vec<Diagnostic>,
}

type Parts = (Option<Expr>, Vec<GraphLink>);

impl Splitter<'_> {
    fn names_itself(&self, expr: &Expr) -> bool {
        dependencies(self.node.0, expr).iter().any(|d| d.on == self.node)
    }

    fn parts(&mut self, expr: &Expr) -> Parts {
        if !self.names_itself(expr) {
            return (Some(expr.clone()), Vec::new());
        }
        match expr {
            Expr::Or(all) => self.alternatives(all),
            Expr::And(all) => self.limited(all),
            Expr::Follow { relation, targets, span } => self.links(*relation, targets, *span),
            Expr::Not(inner) => {
                let message = format!("{} depends on not having itself", title(self.types, self.node));
                self.mistakes.push(Diagnostic::error(302, span_of(inner), message));
                (None, Vec::new())
            }
            other => {
                let message = format!("{} depends on itself on the same object", title(self.types, self.node));
                self.mistakes.push(Diagnostic::error(302, span_of(other), message));
                (None, Vec::new())
            }
        }
    }

    fn alternatives(&mut self, all: &[Expr]) -> Parts {
        let mut bases = Vec::new();
        let mut links = Vec::new();
        for term in all {
            let (base, more) = self.parts(term);
            bases.extend(base);
            links.extend(more);
        }
        (join(bases, Expr::Or), links)
    }

    /// `(... or parent.view) and {condition}`: the condition limits the links and, at each level, the base.
    fn limited(&mut self, all: &[Expr]) -> Parts {
        let (inheriting, rest): (Vec<&Expr>, Vec<&Expr>) = all.iter().partition(|e| self.names_itself(e));
        let [inner] = inheriting.as_slice() else {
            let message = format!(
                "{} is inherited over two relations at once, which must both hold",
                title(self.types, self.node)
            );
            self.mistakes.push(Diagnostic::error(304, span_of_all(all), message));
            return (None, Vec::new());
        };
        let (base, links) = self.parts(inner);
        let mut conditions = Vec::new();
        for limit in rest {
            match as_condition(limit) {
                Some(condition) => conditions.push(condition),
                None => {
                    let mistake = self.wrong_limit(limit, &links);
                    self.mistakes.push(mistake);
                }
            }
        }
        let limited = |link: GraphLink| GraphLink { condition: both(link.condition.clone(), &conditions), ..link };
        let links = links.into_iter().map(limited).collect();
        let base = base.and_then(|base| {
            let terms = std::iter::once(base).chain(conditions.iter().cloned().map(Expr::Sql)).collect();
            join(terms, Expr::And)
        });
        (base, links)
    }

    fn links(&mut self, relation: RelId, targets: &[(TypeId, Target)], span: Span) -> Parts {
        let (ty, id) = self.node;
        let itself = (ty, Target::Permission(id));
        let elsewhere: Vec<(TypeId, Target)> = targets.iter().copied().filter(|t| *t != itself).collect();
        let sources =
            self.types.get(ty.0).and_then(|t| t.relation(relation)).map(|r| r.sources.as_slice()).unwrap_or_default();
        let links = (sources.iter().enumerate())
            .filter(|(_, source)| source.subject == Subject::Type(ty))
            .map(|(number, source)| {
                // A share counts only while its own condition holds, so it passes nothing on otherwise.
                let condition = match &source.place {
                    Place::Shared { condition, .. } => condition.clone(),
                    _ => None,
                };
                GraphLink { child: ty, parent: ty, relation, source: number, condition }
            })
            .collect();
        let base = (!elsewhere.is_empty()).then_some(Expr::Follow { relation, targets: elsewhere, span });
        (base, links)
    }

    /// Why something that is no condition cannot limit inheritance.
    fn wrong_limit(&self, limit: &Expr, links: &[GraphLink]) -> Diagnostic {
        let title = title(self.types, self.node);
        let Expr::Not(denied) = limit else {
            let message = format!("only a condition can limit how {title} is inherited");
            let help = "a condition on the row, as in (parent.view and {inherit}); what depends on the reader cannot be stored";
            return Diagnostic::error(304, span_of(limit), message).with_help(help);
        };
        let span = span_of(denied);
        let Expr::Permission(id, _) = **denied else {
            let message = format!("this deny would only cut {title} on one object and not below it");
            return Diagnostic::error(306, span, message).with_help(DENY_HELP);
        };
        let deny = (self.node.0, id);
        let mut quiet = Splitter { types: self.types, node: deny, mistakes: Vec::new() };
        let denying = permission(self.types, deny).map(|p| quiet.parts(&p.expr).1).unwrap_or_default();
        let name = super::title(self.types, deny);
        if denying.is_empty() {
            let message =
                format!("{name} is not inherited, so it would only cut {title} on one object and not below it");
            return Diagnostic::error(306, span, message).with_help(DENY_HELP);
        }
        let covers = |link: &GraphLink| {
            denying.iter().any(|d| {
                let text = |c: &Option<Condition>| c.as_ref().map(|c| c.sql.trim().to_owned());
                let fewer = d.condition.is_none() || text(&d.condition) == text(&link.condition);
                d.relation == link.relation && d.source == link.source && fewer
            })
        };
        if !links.iter().all(covers) {
            let message =
                format!("{name} is not inherited everywhere {title} is, so it would let through what it should cut");
            return Diagnostic::error(306, span, message).with_help(DENY_HELP);
        }
        Diagnostic::error(NOT_BUILT, span, format!("a deny under inheritance is not built yet: not {name}"))
    }
}

const DENY_HELP: &str =
    "a deny must be a permission that is inherited over the same relations, with the same conditions or fewer";

/// An expression that is nothing but conditions, as one condition.
fn as_condition(expr: &Expr) -> Option<Condition> {
    let joined = |all: &[Expr], word: &str| {
        let all: Vec<Condition> = all.iter().map(as_condition).collect::<Option<_>>()?;
        let span = all.first()?.span.to(all.last()?.span);
        let parts: Vec<String> = all.iter().map(|c| format!("({})", c.sql)).collect();
        Some(Condition { sql: parts.join(word), span })
    };
    match expr {
        Expr::Sql(condition) => Some(condition.clone()),
        Expr::And(all) => joined(all, " AND "),
        Expr::Or(all) => joined(all, " OR "),
        // A condition that is NULL holds nothing, so its negation holds.
        Expr::Not(inner) => {
            as_condition(inner).map(|c| Condition { sql: format!("({}) IS NOT TRUE", c.sql), span: c.span })
        }
        _ => None,
    }
}

fn both(first: Option<Condition>, more: &[Condition]) -> Option<Condition> {
    let all: Vec<Expr> = first.into_iter().chain(more.iter().cloned()).map(Expr::Sql).collect();
    match all.as_slice() {
        [] => None,
        [one] => as_condition(one),
        _ => as_condition(&Expr::And(all)),
    }
}

fn join(mut terms: Vec<Expr>, with: impl Fn(Vec<Expr>) -> Expr) -> Option<Expr> {
    match terms.len() {
        0 | 1 => terms.pop(),
        _ => Some(with(terms)),
    }
}

/// Words PostgreSQL writes before a parenthesis that are no function of anybody's.
const NOT_FUNCTIONS: [&str; 27] = [
    "and", "or", "not", "in", "is", "any", "all", "some", "between", "like", "ilike", "similar", "case", "when",
    "then", "else", "coalesce", "nullif", "greatest", "least", "row", "array", "numeric", "varchar", "char",
    "distinct", "from",
];
/// Functions and values that differ from moment to moment or from reader to reader.
const NOT_THE_SAME: [&str; 32] = [
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "timeofday",
    "age",
    "random",
    "gen_random_uuid",
    "uuid_generate_v4",
    "uuidv4",
    "uuidv7",
    "nextval",
    "currval",
    "lastval",
    "setval",
    "current_user",
    "session_user",
    "user",
    "current_role",
    "system_user",
    "current_setting",
    "current_schema",
    "current_database",
    "inet_client_addr",
    "pg_backend_pid",
    "txid_current",
    "pg_current_xact_id",
];

/// What limits inheritance is stored, so it must be the same for everyone at any time; and this release stores only
/// what the row's own columns say.
fn check_condition(condition: &Condition) -> Option<Diagnostic> {
    let pieces: Vec<Piece<'_>> = meaningful(&condition.sql).collect();
    let next = |at: usize| pieces.get(at + 1);
    let reads = pieces.iter().any(|piece| piece.is_word("select"));
    for (at, piece) in pieces.iter().enumerate().filter(|(_, p)| p.kind == PieceKind::Word) {
        let word = piece.text.to_lowercase();
        let qualifies = next(at).is_some_and(|p| p.is_punctuation("."));
        let qualified = at > 0 && pieces.get(at - 1).is_some_and(|p| p.is_punctuation("."));
        if qualifies && word == "authz" {
            return Some(varies(condition, "authz's functions"));
        }
        if !qualified && !qualifies && NOT_THE_SAME.contains(&word.as_str()) {
            return Some(varies(condition, &word));
        }
        let called = next(at).is_some_and(|p| p.is_punctuation("("));
        if called && !reads && !NOT_FUNCTIONS.contains(&word.as_str()) {
            let message = format!("an inheritance condition that calls a function is not built yet: {}", piece.text);
            return Some(Diagnostic::error(NOT_BUILT, condition.span, message));
        }
    }
    reads.then(|| {
        let message = "an inheritance condition that reads other tables is not built yet";
        Diagnostic::error(NOT_BUILT, condition.span, message)
    })
}

fn varies(condition: &Condition, what: &str) -> Diagnostic {
    let message = format!("what limits inheritance must be the same for everyone at any time, unlike {what}");
    Diagnostic::error(305, condition.span, message)
}

fn span_of_all(all: &[Expr]) -> Span {
    match (all.first(), all.last()) {
        (Some(first), Some(last)) => span_of(first).to(span_of(last)),
        _ => Span::default(),
    }
}

/// Where an expression stands.
pub(super) fn span_of(expr: &Expr) -> Span {
    match expr {
        Expr::Or(all) | Expr::And(all) => span_of_all(all),
        Expr::Not(inner) => span_of(inner),
        Expr::Relation(_, span) | Expr::Permission(_, span) | Expr::Follow { span, .. } => *span,
        Expr::SignedIn(span) | Expr::Anyone(span) | Expr::Nobody(span) => *span,
        Expr::Sql(condition) => condition.span,
    }
}
