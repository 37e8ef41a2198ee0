//! Which server: a URL or keywords, then libpq's environment, then libpq's defaults. What this program cannot honour
//! is refused by its name, never ignored: an ignored `sslcert` or `service` would connect in another way than asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::error::DbError;
use super::secret::Secret;

/// A server, a database and whom to connect as.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name in rowdeck.toml, when it came from there.
    pub name: Option<String>,
    /// Hosts to try in order; at least one.
    pub hosts: Vec<Host>,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, where one is given.
    pub password: Option<Secret>,
    /// How TLS is used.
    pub tls: TlsMode,
    /// Which certificate authorities are trusted.
    pub root_cert: RootCert,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// How long to wait for each host.
    pub connect_timeout: Duration,
    /// Server options (`-c name=value`).
    pub options: String,
    /// Marked `production` in rowdeck.toml: the console asks more before it changes anything.
    pub production: bool,
    /// Marked `read_only`: the session itself is made read-only.
    pub read_only: bool,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// A socket's directory or a host's name or address.
    pub place: HostPlace,
    /// The port (for a socket, the number in its name).
    pub port: u16,
}

/// A socket's directory or a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPlace {
    /// The directory of a unix socket.
    Unix(PathBuf),
    /// A host name or address.
    Tcp(String),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            HostPlace::Unix(directory) => write!(f, "{}/.s.PGSQL.{}", directory.display(), self.port),
            HostPlace::Tcp(host) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            HostPlace::Tcp(host) => write!(f, "{host}:{}", self.port),
        }
    }
}

/// libpq's `sslmode`, but for `allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Never.
    Disable,
    /// When the server offers it; not verified.
    Prefer,
    /// Always; not verified unless a root certificate is given.
    Require,
    /// Always; the certificate's chain is verified.
    VerifyCa,
    /// Always; the chain and the host's name are verified.
    VerifyFull,
}

impl TlsMode {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            TlsMode::Disable => "no TLS",
            TlsMode::Prefer => "TLS when offered",
            TlsMode::Require => "TLS required",
            TlsMode::VerifyCa => "TLS, chain verified",
            TlsMode::VerifyFull => "TLS, chain and host verified",
        }
    }
}

/// Where trusted certificate authorities come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootCert {
    /// Nothing was said: `~/.postgresql/root.crt` where it exists.
    Default,
    /// The operating system's.
    System,
    /// This PEM file.
    File(PathBuf),
}

/// Keywords of a connection string, by libpq's names.
type Settings = BTreeMap<&'static str, String>;

/// Every keyword we honour, with the environment variable that stands in for it.
const KNOWN: &[(&str, &str)] = &[
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("dbname", "PGDATABASE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("options", "PGOPTIONS"),
    ("gssencmode", "PGGSSENCMODE"),
    ("client_encoding", "PGCLIENTENCODING"),
];

/// What libpq knows and we cannot honour.
const REFUSED: &[(&str, &str)] = &[
    ("service", "PGSERVICE"),
    ("servicefile", "PGSERVICEFILE"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslpassword", ""),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslcompression", "PGSSLCOMPRESSION"),
    ("sslsni", "PGSSLSNI"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("requiressl", "PGREQUIRESSL"),
    ("requirepeer", "PGREQUIREPEER"),
    ("require_auth", "PGREQUIREAUTH"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("krbsrvname", "PGKRBSRVNAME"),
    ("gsslib", "PGGSSLIB"),
    ("gssdelegation", "PGGSSDELEGATION"),
    ("replication", ""),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
];

/// A source of environment variables: the process's, or a test's.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment; a variable that is set to nothing counts as not set, as in libpq.
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// True when libpq's variables name a server, so that they stand for a target of their own.
pub fn environment_names_a_server(environment: Environment) -> bool {
    ["PGHOST", "PGHOSTADDR", "PGDATABASE", "PGSERVICE"].iter().any(|name| environment(name).is_some())
}

impl Target {
    /// A target from a URL (`postgresql://...`) or keywords (`host=... dbname=...`); what it leaves out comes from the
    /// environment and then from libpq's defaults.
    pub fn parse(text: &str, environment: Environment) -> Result<Target, DbError> {
        let settings =
            if let Some(rest) = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
                parse_url(rest)?
            } else if text.contains('=') || text.trim().is_empty() {
                parse_keywords(text)?
            } else {
                return Err(DbError::Usage(format!(
                    "\"{}\" is not a connection string; write postgresql://user@host/database or host=... dbname=...",
                    crate::text::line(text)
                )));
            };
        Target::from_settings(settings, environment)
    }

    /// The target that libpq's variables alone describe.
    pub fn from_environment(environment: Environment) -> Result<Target, DbError> {
        Target::from_settings(Settings::new(), environment)
    }

    /// A target on a unix socket without password, as the embedded server's are. The environment has no part in it.
    pub fn socket(directory: impl Into<PathBuf>, port: u16, user: &str, database: &str) -> Target {
        Target {
            name: None,
            hosts: vec![Host { place: HostPlace::Unix(directory.into()), port }],
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            tls: TlsMode::Disable,
            root_cert: RootCert::Default,
            application_name: "rowdeck".to_owned(),
            connect_timeout: Duration::from_secs(10),
            options: String::new(),
            production: false,
            read_only: false,
        }
    }

    /// The same server and database as another role, without password.
    pub fn as_user(&self, user: &str) -> Target {
        Target { user: user.to_owned(), password: None, ..self.clone() }
    }

    /// `user@host:port/database`, for people.
    pub fn describe(&self) -> String {
        let hosts = self.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        crate::text::line(&format!("{}@{hosts}/{}", self.user, self.database)).into_owned()
    }

    fn from_settings(mut settings: Settings, environment: Environment) -> Result<Target, DbError> {
        for (keyword, variable) in REFUSED {
            if !variable.is_empty() && environment(variable).is_some() {
                return Err(refused(&format!("{variable} ({keyword})")));
            }
        }
        for (keyword, variable) in KNOWN {
            if let (None, Some(value)) = (settings.get(keyword), environment(variable)) {
                settings.insert(keyword, value);
            }
        }
        let get = |keyword: &str| settings.get(keyword).filter(|v| !v.is_empty());
        if let Some(mode) = get("gssencmode").filter(|mode| !["disable", "prefer"].contains(&mode.as_str())) {
            return Err(refused(&format!("gssencmode={mode}")));
        }
        if let Some(name) = get("client_encoding").filter(|n| !["utf8", "utf-8", "auto"].contains(&&*n.to_lowercase()))
        {
            return Err(refused(&format!("client_encoding={name}")));
        }
        let user = get("user").cloned().or_else(os_user).ok_or_else(|| {
            DbError::Usage("no role to connect as; give one with user=, in the URL, or in PGUSER".to_owned())
        })?;
        let database = get("dbname").cloned().unwrap_or_else(|| user.clone());
        let hosts = hosts(get("hostaddr").or_else(|| get("host")), get("port"))?;
        let mut target = Target {
            name: None,
            tls: tls_mode(get("sslmode"))?,
            root_cert: match get("sslrootcert").map(String::as_str) {
                None => RootCert::Default,
                Some("system") => RootCert::System,
                Some(path) => RootCert::File(path.into()),
            },
            application_name: get("application_name").cloned().unwrap_or_else(|| "rowdeck".to_owned()),
            connect_timeout: timeout(get("connect_timeout"))?,
            options: get("options").cloned().unwrap_or_default(),
            password: get("password").map(Secret::new),
            production: false,
            read_only: false,
            hosts,
            user,
            database,
        };
        if get("hostaddr").is_some() && target.tls == TlsMode::VerifyFull {
            // The address would be checked in place of the name.
            return Err(refused("hostaddr together with sslmode=verify-full"));
        }
        if target.password.is_none() {
            target.password = super::passfile::find(&target, get("passfile").map(PathBuf::from))?;
        }
        Ok(target)
    }
}

fn refused(what: &str) -> DbError {
    DbError::Usage(format!("{what} is not supported, and ignoring it would connect in another way than asked"))
}

fn keyword(name: &str) -> Result<&'static str, DbError> {
    if let Some((known, _)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return Ok(known);
    }
    if REFUSED.iter().any(|(known, _)| *known == name) {
        return Err(refused(name));
    }
    Err(DbError::Usage(format!("unknown keyword \"{}\" in the connection string", crate::text::line(name))))
}

/// What stands after `postgresql://`.
fn parse_url(rest: &str) -> Result<Settings, DbError> {
    let mut settings = Settings::new();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = match credentials.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (credentials, None),
    };
    let mut put = |keyword: &'static str, value: &str| -> Result<(), DbError> {
        if !value.is_empty() {
            settings.insert(keyword, percent_decode(value)?);
        }
        Ok(())
    };
    put("user", user)?;
    put("password", password.unwrap_or(""))?;
    put("dbname", database)?;
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for part in hosts.split(',').filter(|part| !part.is_empty()) {
        // An IPv6 address stands in brackets, so that its colons are not a port's.
        let (name, port) = match part.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((address, port)) => (address, port.strip_prefix(':').unwrap_or("")),
            None => part.split_once(':').unwrap_or((part, "")),
        };
        names.push(name);
        ports.push(if port.is_empty() { "5432" } else { port });
    }
    if !hosts.is_empty() {
        put("host", &names.join(","))?;
        if hosts.contains(':') {
            put("port", &ports.join(","))?;
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if (name, value) == ("ssl", "true") {
            settings.insert("sslmode", "require".to_owned());
        } else {
            settings.insert(keyword(name)?, percent_decode(value)?);
        }
    }
    Ok(settings)
}

fn percent_decode(text: &str) -> Result<String, DbError> {
    let bad = || DbError::Usage("a % in the connection URL is not followed by two hex digits of UTF-8 text".to_owned());
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16)).ok_or_else(bad);
        let value = digit()? * 16 + digit()?;
        out.push(u8::try_from(value).map_err(|_| bad())?);
    }
    String::from_utf8(out).map_err(|_| bad())
}

/// `host=db1 password='it''s'`, as libpq reads it: values may be quoted, `\` escapes.
fn parse_keywords(text: &str) -> Result<Settings, DbError> {
    let mut settings = Settings::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut name = String::new();
        while let Some(c) = chars.next_if(|c| *c != '=' && !c.is_whitespace()) {
            name.push(c);
        }
        if name.is_empty() && chars.peek().is_none() {
            return Ok(settings);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next() != Some('=') {
            let name = crate::text::line(&name).into_owned();
            return Err(DbError::Usage(format!("the connection string lacks = after \"{name}\"")));
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match chars.next() {
                Some('\\') => value.extend(chars.next()),
                Some('\'') if quoted => break,
                None if quoted => {
                    return Err(DbError::Usage("a quote in the connection string is not closed".to_owned()));
                }
                None => break,
                Some(c) if !quoted && c.is_whitespace() => break,
                Some(c) => value.push(c),
            }
        }
        settings.insert(keyword(&name)?, value);
    }
}

fn hosts(hosts: Option<&String>, ports: Option<&String>) -> Result<Vec<Host>, DbError> {
    let names: Vec<String> = match hosts {
        Some(hosts) => hosts.split(',').map(str::to_owned).collect(),
        None => vec![default_host()],
    };
    let ports: Vec<u16> = ports
        .map_or("5432", String::as_str)
        .split(',')
        .map(|port| {
            let number = port.trim().parse::<u16>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| DbError::Usage(format!("\"{}\" is not a port", crate::text::line(port))))
        })
        .collect::<Result<_, _>>()?;
    if ports.len() != 1 && ports.len() != names.len() {
        return Err(DbError::Usage(format!("{} ports are given for {} hosts", ports.len(), names.len())));
    }
    let port_of = |at: usize| ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(at, name)| Host {
            place: if name.starts_with('/') { HostPlace::Unix(name.into()) } else { HostPlace::Tcp(name) },
            port: port_of(at),
        })
        .collect())
}

/// Where libpq looks when no host is given: the distribution's socket directory, else `/tmp`'s.
fn default_host() -> String {
    let debian = std::path::Path::new("/var/run/postgresql");
    if debian.is_dir() { debian.display().to_string() } else { "/tmp".to_owned() }
}

fn os_user() -> Option<String> {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.name)
}

fn tls_mode(mode: Option<&String>) -> Result<TlsMode, DbError> {
    Ok(match mode.map(String::as_str) {
        None | Some("prefer") => TlsMode::Prefer,
        Some("disable") => TlsMode::Disable,
        Some("require") => TlsMode::Require,
        Some("verify-ca") => TlsMode::VerifyCa,
        Some("verify-full") => TlsMode::VerifyFull,
        Some("allow") => return Err(refused("sslmode=allow")),
        Some(other) => {
            return Err(DbError::Usage(format!(
                "sslmode \"{}\" is not one of disable, prefer, require, verify-ca, verify-full",
                crate::text::line(other)
            )));
        }
    })
}

fn timeout(seconds: Option<&String>) -> Result<Duration, DbError> {
    match seconds.map(|text| text.parse::<u64>()) {
        None => Ok(Duration::from_secs(10)),
        // Zero means "for ever" to libpq; an hour is as good, and ends.
        Some(Ok(0)) => Ok(Duration::from_secs(3600)),
        Some(Ok(n)) => Ok(Duration::from_secs(n)),
        Some(Err(_)) => Err(DbError::Usage("connect_timeout is not a number of seconds".to_owned())),
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
