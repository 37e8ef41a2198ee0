#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
use super::*;

fn none(_: &str) -> Option<String> {
    None
}

fn error(text: &str) -> String {
    Target::parse(text, &none).unwrap_err().to_string()
}

#[test]
fn a_url_is_read_as_libpq_reads_it() {
    let t =
        Target::parse("postgresql://ann%40x:p%3Aw@db1:6000,[::1]/docs?sslmode=verify-full&connect_timeout=3", &none)
            .unwrap();
    assert_eq!(t.describe(), "ann@x@db1:6000,[::1]:5432/docs");
    assert_eq!(t.password.as_ref().unwrap().reveal(), "p:w");
    assert_eq!((t.tls, t.connect_timeout.as_secs()), (TlsMode::VerifyFull, 3));
    let t = Target::parse("postgresql:///docs?host=/run/pg&user=bo&port=6543", &none).unwrap();
    assert_eq!(t.hosts, [Host { place: HostPlace::Unix("/run/pg".into()), port: 6543 }]);
    assert_eq!((t.user.as_str(), t.database.as_str()), ("bo", "docs"));
}

#[test]
fn keywords_are_read_as_libpq_reads_them() {
    let t = Target::parse(r"host = db1 user=bo password='it\'s a' dbname=docs", &none).unwrap();
    assert_eq!(t.describe(), "bo@db1:5432/docs");
    assert_eq!(t.password.unwrap().reveal(), "it's a");
}

#[test]
fn the_environment_fills_what_is_left_out() {
    let env = |name: &str| match name {
        "PGHOST" => Some("db9".to_owned()),
        "PGPORT" => Some("7000".to_owned()),
        "PGUSER" => Some("eve".to_owned()),
        "PGPASSWORD" => Some("secret".to_owned()),
        "PGAPPNAME" => Some("ci".to_owned()),
        _ => None,
    };
    let t = Target::parse("postgresql://bo@/docs", &env).unwrap();
    assert_eq!(t.describe(), "bo@db9:7000/docs");
    assert_eq!(t.application_name, "ci");
    let t = Target::from_environment(&env).unwrap();
    assert_eq!(t.describe(), "eve@db9:7000/eve");
}

#[test]
fn a_target_shows_no_password() {
    let t = Target::parse("postgresql://bo:hunter2@db1/docs", &none).unwrap();
    assert!(!format!("{t:?} {}", t.describe()).contains("hunter2"));
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (text, named) in [
        ("postgresql://db/x?sslcert=/c", "sslcert"),
        ("service=prod", "service"),
        ("host=a sslmode=allow", "sslmode=allow"),
        ("host=a channel_binding=require", "channel_binding"),
        ("host=a target_session_attrs=read-write", "target_session_attrs"),
        ("host=a hostaddr=1.2.3.4 sslmode=verify-full", "hostaddr"),
        ("host=a gssencmode=require", "gssencmode=require"),
    ] {
        assert!(error(text).contains(named), "{text}: {}", error(text));
    }
    let env = |name: &str| (name == "PGSERVICE").then(|| "prod".to_owned());
    assert!(Target::parse("host=a user=b", &env).unwrap_err().to_string().contains("PGSERVICE"));
}

#[test]
fn mistakes_are_named() {
    for (text, named) in [
        ("docs", "not a connection string"),
        ("host=a colour=red", "colour"),
        ("host=a password='x", "not closed"),
        ("host", "not a connection string"),
        ("host=a user", "lacks ="),
        ("host=a,b port=1,2,3", "3 ports are given for 2 hosts"),
        ("host=a port=x", "\"x\" is not a port"),
        ("postgresql://a%zz@b/c", "two hex digits"),
        ("host=a sslmode=maybe", "maybe"),
    ] {
        assert!(error(text).contains(named), "{text}: {}", error(text));
    }
}
