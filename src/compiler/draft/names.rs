//! Names of the policy from names of the catalog.

use super::Taken;
use crate::compiler::ident::Ident;

/// Words that are no names, or would read as something else.
const RESERVED: [&str; 26] = [
    "and",
    "or",
    "not",
    "anyone",
    "nobody",
    "signed_in",
    "roles",
    "this",
    "can",
    "link",
    "select",
    "insert",
    "update",
    "delete",
    "user",
    "shared",
    "if",
    "where",
    "by",
    "from",
    "view",
    "edit",
    "object",
    "subject",
    "as",
    "given",
];

/// A name that is not taken yet, made from the first of these that gives one; it is taken then.
pub(super) fn fresh(wanted: &[String], taken: &mut Taken) -> String {
    let fits = |name: &String| !name.is_empty() && !RESERVED.contains(&name.as_str());
    let cleaned: Vec<String> = wanted.iter().map(|name| clean(name)).filter(fits).collect();
    let first = cleaned.iter().find(|name| !taken.contains(*name)).cloned();
    let name = first.unwrap_or_else(|| {
        let base = cleaned.first().cloned().unwrap_or_else(|| "thing".to_owned());
        (2u32..).map(|n| format!("{base}{n}")).find(|name| !taken.contains(name)).unwrap_or(base)
    });
    taken.insert(name.clone());
    name
}

/// Only what a name of the policy may hold.
fn clean(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            'a'..='z' | '0'..='9' => out.push(c),
            'A'..='Z' => {
                if out.ends_with(|c: char| c.is_ascii_lowercase()) {
                    out.push('_');
                }
                out.push(c.to_ascii_lowercase());
            }
            _ if !out.is_empty() && !out.ends_with('_') => out.push('_'),
            _ => {}
        }
    }
    let out = out.trim_matches('_');
    if out.starts_with(|c: char| c.is_ascii_digit()) { format!("t{out}") } else { out.to_owned() }
}

/// One of what a table is named after.
pub(super) fn singular(name: &Ident) -> String {
    let name = clean(name.as_str());
    let irregular = [("people", "person"), ("children", "child"), ("men", "man"), ("women", "woman")];
    for (many, one) in irregular {
        if let Some(stem) = name.strip_suffix(many).filter(|stem| stem.is_empty() || stem.ends_with('_')) {
            return format!("{stem}{one}");
        }
    }
    for (ending, one) in [("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("ses", "se")] {
        if let Some(stem) = name.strip_suffix(ending).filter(|stem| stem.len() > 1) {
            return format!("{stem}{one}");
        }
    }
    match name.strip_suffix('s').filter(|stem| !stem.ends_with(['s', 'u', 'i']) && stem.len() > 1) {
        Some(stem) => stem.to_owned(),
        None => name,
    }
}

/// What a column that names a row calls it: `owner_id` names an owner.
pub(super) fn role(column: &Ident) -> String {
    let name = clean(column.as_str());
    let stem = ["_id", "_uuid", "_key", "_fk", "_ref"].iter().find_map(|ending| name.strip_suffix(ending));
    stem.map_or(name.clone(), str::to_owned)
}
