//! Why a connection could not be had, in one sentence each.

use std::error::Error as _;
use std::io::ErrorKind;

use super::error::{DbError, causes};
use super::target::{Host, HostPlace, Target};

/// The sentence for a failure to connect.
pub(super) fn connecting(error: &tokio_postgres::Error, target: &Target, host: &Host) -> DbError {
    let user = crate::text::line(&target.user);
    let database = crate::text::line(&target.database);
    if let Some(db) = error.as_db_error() {
        let said = crate::text::line(db.message());
        return DbError::Connect(match db.code().code() {
            "28P01" => format!("wrong password for role \"{user}\" at {host}"),
            "28000" => format!("the server at {host} does not let role \"{user}\" in: {said}"),
            "3D000" => format!("there is no database \"{database}\" at {host}"),
            "42501" => format!("role \"{user}\" may not connect to database \"{database}\" at {host}: {said}"),
            "53300" => format!("the server at {host} has no connection left for role \"{user}\": {said}"),
            "57P03" => format!("the server at {host} takes no connections now: {said}"),
            code => format!("the server at {host} refused the connection: {said} [{code}]"),
        });
    }
    if let Some(io) = error.source().and_then(|source| source.downcast_ref::<std::io::Error>()) {
        return DbError::Connect(unreachable(io, host));
    }
    let words = causes(error);
    DbError::Connect(if words.contains("password missing") {
        format!("role \"{user}\" needs a password at {host}; give it in PGPASSWORD or in ~/.pgpass")
    } else if words.contains("server does not support TLS") {
        format!("the server at {host} offers no TLS, and sslmode asks for it")
    } else if words.contains("TLS") {
        format!("TLS with {host} failed: {}", tls(error))
    } else {
        format!("cannot connect to {host}: {words}")
    })
}

fn unreachable(io: &std::io::Error, host: &Host) -> String {
    let socket = matches!(host.place, HostPlace::Unix(_));
    // rustls hands its own errors on as input or output errors.
    if let Some(inner) = io.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
        return format!("TLS with {host} failed: {}", rustls_words(inner));
    }
    match io.kind() {
        ErrorKind::ConnectionRefused => format!("no server answers at {host} (connection refused)"),
        ErrorKind::NotFound if socket => format!("no server listens at {host} (there is no such socket)"),
        ErrorKind::PermissionDenied => format!("this user may not use {host} (permission denied)"),
        ErrorKind::TimedOut => format!("{host} did not answer in time"),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            format!("{host} closed the connection before it was made; is it a PostgreSQL server?")
        }
        // Name resolution has no kind of its own.
        _ if io.to_string().contains("lookup") => format!("the name of the host {host} cannot be resolved"),
        _ => format!("{host} cannot be reached: {}", crate::text::line(&io.to_string())),
    }
}

fn tls(error: &tokio_postgres::Error) -> String {
    let mut next = error.source();
    while let Some(cause) = next {
        let io = cause.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref());
        if let Some(inner) = io.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return rustls_words(inner);
        }
        next = cause.source();
    }
    causes(error)
}

fn rustls_words(error: &rustls::Error) -> String {
    use rustls::CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } => "the server's certificate has expired".to_owned(),
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => "the server's certificate is not valid yet".to_owned(),
            Bad::UnknownIssuer => "the server's certificate is not signed by an authority in sslrootcert".to_owned(),
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                "the server's certificate is for another host name".to_owned()
            }
            other => format!("the server's certificate is not accepted: {other:?}"),
        },
        other => crate::text::line(&other.to_string()).into_owned(),
    }
}
