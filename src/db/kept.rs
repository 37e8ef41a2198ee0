//! The policy in force, compiled again from the text that the database keeps with it.

use std::collections::BTreeMap;

use tokio_postgres::Client;

use super::connect::Session;
use super::error::DbError;
use crate::compiler::{Compiled, compile_with};

/// Before each included file in a kept text; its name and a line end follow.
pub(crate) const INCLUDED: &str = "\n-- included file ";

/// The name and the text of the policy in force.
pub async fn text(session: &Session) -> Result<(String, String), DbError> {
    let policy = session.info.require_policy()?;
    Ok((policy.name.clone(), of_version(&session.client, policy.version).await?))
}

async fn of_version(client: &Client, version: i64) -> Result<String, DbError> {
    let sql = "SELECT source FROM authz.policy_versions WHERE version = $1";
    Ok(client.query_one(sql, &[&version]).await?.try_get(0)?)
}

/// Compiles a kept text, with the files it includes taken from the text itself.
pub fn compile(name: &str, kept: &str) -> Compiled {
    let mut parts = kept.split(INCLUDED);
    let main = parts.next().unwrap_or("");
    let mut files = BTreeMap::new();
    for part in parts {
        // A comment of somebody's own that reads like ours names no file that is included, and does no harm.
        if let Some((file, text)) = part.split_once('\n') {
            files.insert(file.to_owned(), text.to_owned());
        }
    }
    compile_with(name, main, &files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_text_brings_its_files() {
        let main = "app role app_user\ninclude \"types.authz\"\n";
        let types = "type user = app.users\n";
        let files = BTreeMap::from([("types.authz".to_owned(), types.to_owned())]);
        let whole = compile_with("a.authz", main, &files);
        assert_eq!(whole.diagnostics, []);
        let kept = format!("{main}{INCLUDED}types.authz\n{types}");
        let again = compile("a.authz", &kept);
        assert_eq!(again.diagnostics, []);
        assert_eq!(again.model, whole.model);
    }
}
