//! Names in generated SQL: what a statement makes, and which of our objects it mentions.

use std::collections::BTreeSet;

/// The identifier at the start of `text`, as the catalog stores it, and what follows it.
fn ident(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end)?;
        return (!name.is_empty()).then(|| (name.to_lowercase(), rest));
    };
    let (mut name, mut rest) = (String::new(), quoted);
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        let Some(more) = after.strip_prefix('"') else { return Some((name, after)) };
        name.push('"');
        rest = more;
    }
}

/// The bare name of what `CREATE ... WORD name ...` makes, such as a policy, a trigger or an index.
pub fn created(sql: &str, word: &str) -> Option<String> {
    let mut rest = sql.strip_prefix("CREATE ")?;
    for optional in ["OR REPLACE ", "UNIQUE ", "CONSTRAINT "] {
        rest = rest.strip_prefix(optional).unwrap_or(rest);
    }
    rest = rest.strip_prefix(word)?.strip_prefix(' ')?;
    rest = rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest);
    ident(rest).map(|(name, _)| name)
}

/// The objects of our schemas that a statement mentions, as `schema.name` in the catalog's spelling. It finds every
/// one; what it finds in a comment or a string beside them does no harm.
pub fn mentions(sql: &str) -> BTreeSet<String> {
    sql.match_indices("authz").filter_map(|(at, _)| qualified(sql.get(at..)?)).collect()
}

/// `schema.name` at the start of `text`, where `text` may begin behind the schema's opening quote.
pub fn qualified(text: &str) -> Option<String> {
    let (schema, rest) = ident(text)?;
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    let (name, _) = ident(rest.strip_prefix('.')?)?;
    Some(format!("{schema}.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_found() {
        assert_eq!(created("CREATE TRIGGER authz_x AFTER", "TRIGGER").as_deref(), Some("authz_x"));
        assert_eq!(created("CREATE OR REPLACE TRIGGER \"A \"\" b\" AFTER", "TRIGGER").as_deref(), Some("A \" b"));
        assert_eq!(created("CREATE INDEX IF NOT EXISTS \"i\" ON t", "INDEX").as_deref(), Some("i"));
        assert_eq!(created("ALTER TABLE x", "POLICY"), None);
    }

    #[test]
    fn what_is_mentioned_is_found_in_every_spelling() {
        let sql = "SELECT authz.uid(), authz_gen.\"set__a\"() FROM \"authz_gen\".\"V w\" v, authz_int.g1_node";
        let found: Vec<String> = mentions(sql).into_iter().collect();
        assert_eq!(found, ["authz.uid", "authz_gen.V w", "authz_gen.set__a", "authz_int.g1_node"]);
    }
}
