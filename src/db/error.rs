//! What can go wrong with a server, each as one sentence.

use std::error::Error as _;

use crate::compiler::diagnostic::Diagnostic;
use crate::text;

/// An error from anything in [`crate::db`].
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// No session could be had: unreachable, refused, wrong password, no such database, TLS.
    #[error("{0}")]
    Connect(String),
    /// The session ended while it was in use.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The session ended during a commit and nobody can be asked how that ended: it is done whole, or not at all.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
    /// The server refused a statement.
    #[error("{}", said(.0))]
    Server(Box<Refusal>),
    /// A wrong argument, setting or target.
    #[error("{0}")]
    Usage(String),
    /// The policy has mistakes, found by the compiler or by the server (AZ6xx).
    #[error("{}", summary(.0))]
    Policy(Vec<Diagnostic>),
    /// Something must be mended before the policy can be applied; nothing was changed.
    #[error("{}", super::plan::blocked(.0))]
    Blocked(Vec<super::plan::Blocker>),
    /// Somebody else is in the way, or something changed meanwhile; nothing was changed.
    #[error("{0}")]
    Busy(String),
    /// The server refused to make one object of the policy; nothing was changed.
    #[error("making {what} failed: {}", said(.refusal))]
    Object {
        /// The object's kind and name.
        what: String,
        /// What the server said.
        refusal: Box<Refusal>,
    },
    /// Tests with data of their own run only where that is known to be harmless.
    #[error(
        "database \"{0}\" is not marked as a development database [AZ610]; if its data may be written to, run: \
         INSERT INTO authz.settings (key, value) VALUES ('development', 'true')"
    )]
    NotDevelopment(String),
    /// What would be asked as the app role would not be what the rules say.
    #[error("{0}, so the rules do not bind it and no answer would mean anything")]
    Unbound(String),
    /// The session may not act as the app role.
    #[error("role \"{role}\" may not switch to the app role \"{app_role}\" [AZ618]; run: GRANT {app_role} TO {role}")]
    NoSwitch {
        /// The session's role.
        role: String,
        /// The app role.
        app_role: String,
    },
    /// Nothing was applied yet.
    #[error("no policy is in force in database \"{0}\" [AZ609]; apply one with: rowdeck apply")]
    NoPolicy(String),
    /// The role may not read which policy is in force.
    #[error(
        "role \"{0}\" may not read the policy in force (authz.policy_versions); connect as the role that applied it"
    )]
    Hidden(String),
    /// A file that is not what it should be.
    #[error("{0}")]
    Unreadable(String),
    /// A file or directory.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, such as `cannot read rowdeck.toml`.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The embedded server cannot be had.
    #[error("{0}")]
    Embedded(String),
    /// The demo's data cannot be made.
    #[error("{0}")]
    Demo(String),
    /// Stopped by the operator or a signal.
    #[error("stopped: {0}")]
    Stopped(String),
    /// The server answered something this program does not know.
    #[error("unexpected answer from the server: {0}")]
    Unexpected(String),
}

/// What the server said when it refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// Its SQLSTATE.
    pub sqlstate: String,
    /// The message.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// The constraint it names.
    pub constraint: Option<String>,
    /// Position in the statement, in characters from 1.
    pub position: Option<u32>,
}

fn said(r: &Refusal) -> String {
    let mut out = format!("{} [{}]", text::line(&r.message), r.sqlstate);
    for more in [&r.detail, &r.hint].into_iter().flatten() {
        out.push_str("; ");
        out.push_str(&text::line(more.trim_end_matches('.')));
    }
    out
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    match diagnostics {
        [] => "the policy has mistakes".to_owned(),
        [one] => format!("{} [{}]", one.message, one.code),
        [first, rest @ ..] => format!("{} [{}], and {} more", first.message, first.code, rest.len()),
    }
}

impl DbError {
    /// The program's exit code for it: 2 for wrong usage, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, DbError::Usage(_)) { 2 } else { 1 }
    }

    /// The SQLSTATE, when the server refused.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            DbError::Server(refusal) | DbError::Object { refusal, .. } => Some(&refusal.sqlstate),
            _ => None,
        }
    }

    /// True when the session can no longer be used.
    pub fn is_lost(&self) -> bool {
        matches!(self, DbError::Lost(_) | DbError::Unknown(_))
    }

    /// An input or output error with what was being done.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        DbError::Io { what: what.into(), source }
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(db) = error.as_db_error() {
            let refusal = Refusal {
                sqlstate: db.code().code().to_owned(),
                message: db.message().to_owned(),
                detail: db.detail().map(str::to_owned),
                hint: db.hint().map(str::to_owned),
                constraint: db.constraint().map(str::to_owned),
                position: match db.position() {
                    Some(tokio_postgres::error::ErrorPosition::Original(at)) => Some(*at),
                    _ => None,
                },
            };
            // Class 57P is the server ending our session: 57P01 terminated by an administrator, 57P02 crash of another
            // backend, 57P03 cannot connect now, 57P05 idle too long.
            return if refusal.sqlstate.starts_with("57P") {
                DbError::Lost(text::line(&refusal.message).into_owned())
            } else {
                DbError::Server(Box::new(refusal))
            };
        }
        if error.is_closed() {
            return DbError::Lost("the server closed it".to_owned());
        }
        let cause = causes(&error);
        if error.source().is_some_and(|s| s.is::<std::io::Error>()) {
            return DbError::Lost(cause);
        }
        DbError::Unexpected(cause)
    }
}

/// An error and what caused it, as one phrase.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !out.contains(&words) {
            out.push_str(": ");
            out.push_str(&words);
        }
        next = cause.source();
    }
    text::line(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_2_and_the_rest_is_1() {
        assert_eq!(DbError::Usage("x".into()).exit_code(), 2);
        assert_eq!(DbError::Lost("x".into()).exit_code(), 1);
        assert_eq!(DbError::NoPolicy("x".into()).exit_code(), 1);
    }

    #[test]
    fn a_refusal_is_one_line_without_control_characters() {
        let refusal = Refusal {
            sqlstate: "42501".into(),
            message: "no\x1b[2J".into(),
            detail: Some("because\nof this.".into()),
            hint: None,
            constraint: None,
            position: None,
        };
        assert_eq!(DbError::Server(Box::new(refusal)).to_string(), "no<1b>[2J [42501]; because<0a>of this");
    }
}
