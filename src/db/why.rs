//! What `authz.explain` answers, as data and as lines for people.

use serde::{Deserialize, Serialize};

use crate::text;

/// Why somebody holds a permission on an object, or what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// `file 88`
    pub object: String,
    /// The permission.
    pub permission: String,
    /// `user 31`, or `nobody`.
    pub principal: String,
    /// Whether they hold it.
    pub allowed: bool,
    /// When they do: ways in which they hold it, each a chain of rows, the shortest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<Vec<Vec<Step>>>,
    /// When they do not: what would give it, each with its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<Need>>,
    /// When they do not: whether there is such an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The object it is about.
    pub object: String,
    /// The relation that holds there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// Where its row is: a table, a column, a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whom it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// A condition that holds on the object's row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// Something that would give the permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// As the policy says it.
    pub needs: String,
    /// Its parts, all of which must hold.
    pub parts: Vec<Part>,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// As the policy says it.
    pub part: String,
    /// Whether it holds now.
    pub holds: bool,
}

impl Why {
    /// The question: `why may user 31 view file 88?`
    pub fn question(&self) -> String {
        let may = if self.allowed { "may" } else { "may not" };
        text::line(&format!("{} {may} {} {}", self.principal, self.permission, self.object)).into_owned()
    }

    /// The answer, line by line, safe to show.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.allowed {
            let chains = self.chains.as_deref().unwrap_or_default();
            lines.push(match chains.len() {
                0 => "yes, by a rule that no row stands for".to_owned(),
                1 => "yes".to_owned(),
                ways => format!("yes, in {ways} ways at least"),
            });
            for (number, chain) in (1..).zip(chains) {
                for (at, step) in chain.iter().enumerate() {
                    let mark = if at == 0 { format!("{number} ") } else { "  ".to_owned() };
                    lines.push(format!("{mark}{}", step.words()));
                }
            }
        } else if self.exists == Some(false) {
            lines.push(format!("no: there is no {}, or its row does not count", self.object));
        } else {
            lines.push("no; any one of these would do:".to_owned());
            for need in self.missing.iter().flatten() {
                let lacking: Vec<&str> =
                    need.parts.iter().filter(|part| !part.holds).map(|part| part.part.as_str()).collect();
                let lacks =
                    if need.parts.len() > 1 { format!(" (lacks {})", lacking.join(", ")) } else { String::new() };
                lines.push(format!("  {}{lacks}", need.needs));
            }
        }
        lines.iter().map(|line| text::line(line).into_owned()).collect()
    }
}

impl Step {
    fn words(&self) -> String {
        if let Some(condition) = &self.condition {
            return format!("{}: {condition}", self.object);
        }
        let relation = self.relation.as_deref().unwrap_or("is related");
        let subject = self.subject.as_deref().unwrap_or("it");
        let from = self.from.as_ref().map_or_else(String::new, |from| format!("   ({from})"));
        format!("{} {relation} {subject}{from}", self.object)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn a_yes_shows_its_rows() {
        let why: Why = serde_json::from_str(
            r#"{"object":"file 88","permission":"view","principal":"user 31","allowed":true,"chains":[
                [{"object":"file 88","relation":"folder","from":"app.files.folder_id","subject":"folder 7"},
                 {"object":"folder 7","condition":"{inherit}"}]]}"#,
        )
        .unwrap();
        assert_eq!(why.question(), "user 31 may view file 88");
        assert_eq!(why.lines(), ["yes", "1 file 88 folder folder 7   (app.files.folder_id)", "  folder 7: {inherit}"]);
    }

    #[test]
    fn a_no_names_what_is_missing() {
        let why: Why = serde_json::from_str(
            r#"{"object":"file 88","permission":"view","principal":"user 50","allowed":false,"exists":true,"missing":[
                {"needs":"viewer","parts":[{"part":"viewer","holds":false}]},
                {"needs":"folder.view and {not confidential}","parts":[
                    {"part":"folder.view","holds":false},{"part":"{not confidential}","holds":true}]}]}"#,
        )
        .unwrap();
        assert_eq!(
            why.lines(),
            ["no; any one of these would do:", "  viewer", "  folder.view and {not confidential} (lacks folder.view)"]
        );
        let none = Why { exists: Some(false), missing: Some(vec![]), ..why };
        assert!(none.lines()[0].contains("there is no file 88"));
    }
}
