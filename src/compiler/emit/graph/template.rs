//! Filling SQL templates: `{{name}}` stands for text that was quoted by the identifier type.

use std::collections::BTreeMap;

/// Placeholders and what they stand for.
#[derive(Debug, Default, Clone)]
pub(super) struct Template {
    values: BTreeMap<String, String>,
}

impl Template {
    /// `{{name}}` stands for `value`, which is SQL text already.
    pub(super) fn set(&mut self, name: &str, value: String) {
        self.values.insert(name.to_owned(), value);
    }

    /// `text` with every placeholder replaced, without a trailing semicolon. An unknown placeholder, or one that does
    /// not end, is a mistake in the template. Values are not searched for placeholders.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len() * 2);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, tail) = after.split_once("}}").ok_or("a placeholder without an end")?;
            let value = self.values.get(name).ok_or_else(|| format!("unknown placeholder {{{{{name}}}}}"))?;
            out.push_str(before);
            out.push_str(value);
            rest = tail;
        }
        out.push_str(rest);
        Ok(out.trim().trim_end_matches(';').to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fills_and_refuses_unknown_names() {
        let mut t = Template::default();
        t.set("a", "\"x{{b}}\"".to_owned());
        assert_eq!(t.fill("SELECT {{a}};\n").unwrap(), "SELECT \"x{{b}}\"");
        assert!(t.fill("SELECT {{b}}").unwrap_err().contains("{{b}}"));
        assert!(t.fill("SELECT {{a").is_err());
    }
}
