//! Acting as the app role and as somebody signed in, for the length of a savepoint or transaction.

use tokio_postgres::Client;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

use super::error::DbError;
use crate::compiler::ident::Ident;

/// A parameter sent as text, for the server to read as whatever type the statement wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextParameter(pub String);

impl ToSql for TextParameter {
    fn to_sql(&self, _: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// Somebody to sign in as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Nobody, on purpose.
    Nobody,
    /// A person, or another type that signs in.
    Of {
        /// The policy's type.
        ty: String,
        /// The id, as text.
        id: String,
    },
}

impl Principal {
    /// Reads `user:42`; `nobody` and `anyone` are nobody.
    pub fn parse(text: &str) -> Result<Principal, DbError> {
        if matches!(text, "nobody" | "anyone") {
            return Ok(Principal::Nobody);
        }
        match text.split_once(':') {
            Some((ty, id)) if !ty.is_empty() && !id.is_empty() => {
                Ok(Principal::Of { ty: ty.to_owned(), id: id.to_owned() })
            }
            _ => Err(DbError::Usage(format!(
                "\"{}\" does not say who; write TYPE:ID, such as user:42, or nobody",
                crate::text::line(text)
            ))),
        }
    }
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Principal::Nobody => f.write_str("nobody"),
            Principal::Of { ty, id } => f.write_str(&crate::text::line(&format!("{ty}:{id}"))),
        }
    }
}

/// Fails with AZ618 unless the session may switch to the role.
pub async fn require_switch(client: &Client, app_role: &Ident) -> Result<(), DbError> {
    // Since 16 membership and the right to SET ROLE are two things.
    let row = client
        .query_one(
            "SELECT current_user::text,
                    coalesce((SELECT pg_catalog.pg_has_role(current_user, r.oid,
                        CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
                        FROM pg_catalog.pg_roles r WHERE r.rolname = $1), false)",
            &[&app_role.as_str()],
        )
        .await?;
    if row.try_get(1)? {
        return Ok(());
    }
    Err(DbError::NoSwitch { role: Ident::new(row.try_get::<_, String>(0)?).plain(), app_role: app_role.plain() })
}

/// From here to the end of the transaction, or of the savepoint that is rolled back, statements run as the app role
/// with `principal` signed in. Call inside a transaction.
pub async fn become_principal(client: &Client, app_role: &Ident, principal: &Principal) -> Result<(), DbError> {
    client.batch_execute(&format!("SET LOCAL ROLE {app_role}")).await?;
    sign_in(client, principal).await
}

/// The same in a session limited to `scopes`. Only the policy's owner may sign somebody in like that, so it happens before
/// the role is switched.
pub async fn become_limited(
    client: &Client,
    app_role: &Ident,
    principal: &Principal,
    scopes: &[String],
) -> Result<(), DbError> {
    let (ty, id) = match principal {
        Principal::Nobody => (None, None),
        Principal::Of { ty, id } => (Some(ty.as_str()), Some(id.as_str())),
    };
    client.execute("SELECT authz_gen.sign_in($1::text, $2::text, $3::text[])", &[&ty, &id, &scopes]).await?;
    client.batch_execute(&format!("SET LOCAL ROLE {app_role}")).await?;
    Ok(())
}

/// Signs in for the rest of the transaction.
pub async fn sign_in(client: &Client, principal: &Principal) -> Result<(), DbError> {
    let (ty, id) = match principal {
        Principal::Nobody => (None, None),
        Principal::Of { ty, id } => (Some(ty.as_str()), Some(id.as_str())),
    };
    client.execute("SELECT authz.act_as($1::text, $2::text)", &[&ty, &id]).await?;
    Ok(())
}

/// Ends [`become_principal`] without undoing what was done meanwhile.
pub async fn become_self(client: &Client) -> Result<(), DbError> {
    // An empty record is the same as none.
    client.batch_execute("RESET ROLE; SELECT pg_catalog.set_config('authz.session', '', true)").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn principals_are_type_and_id() {
        let p = Principal::parse("service:a:b").unwrap();
        assert_eq!(p, Principal::Of { ty: "service".into(), id: "a:b".into() });
        assert_eq!(Principal::parse("nobody").unwrap(), Principal::Nobody);
        assert!(Principal::parse("42").unwrap_err().to_string().contains("user:42"));
    }
}
