//! Expressions as people write them: for refusals, explanations and the console.

use crate::compiler::model::{Expr, TypeId};

use super::context::Policy;

/// An expression in the policy's own notation.
pub fn describe(policy: &Policy<'_>, ty: TypeId, expr: &Expr) -> String {
    let relation = |id| {
        let found = policy.relation(ty, id);
        // Roles are a relation made for one permission, which people write as the word alone.
        let name = found.map_or("?", |r| if r.name.starts_with("roles__") { "roles" } else { r.name.as_str() });
        name.to_owned()
    };
    match expr {
        Expr::Or(parts) => joined(policy, ty, parts, " or "),
        Expr::And(parts) => joined(policy, ty, parts, " and "),
        Expr::Not(inner) => format!("not {}", nested(policy, ty, inner)),
        Expr::Relation(id, _) => relation(*id),
        Expr::Permission(id, _) => policy.permission(ty, *id).map_or("?", |p| p.name.as_str()).to_owned(),
        Expr::Follow { relation: id, targets, .. } => {
            let target = targets.first().and_then(|(ty, target)| policy.target_name(*ty, *target).ok()).unwrap_or("?");
            format!("{}.{target}", relation(*id))
        }
        Expr::SignedIn(_) => "signed_in".to_owned(),
        Expr::Anyone(_) => "anyone".to_owned(),
        Expr::Nobody(_) => "nobody".to_owned(),
        Expr::Sql(condition) => format!("{{{}}}", condition.sql.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

fn joined(policy: &Policy<'_>, ty: TypeId, parts: &[Expr], word: &str) -> String {
    parts.iter().map(|part| nested(policy, ty, part)).collect::<Vec<_>>().join(word)
}

fn nested(policy: &Policy<'_>, ty: TypeId, expr: &Expr) -> String {
    let text = describe(policy, ty, expr);
    if matches!(expr, Expr::Or(_) | Expr::And(_)) { format!("({text})") } else { text }
}
