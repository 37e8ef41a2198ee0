//! A session on a server, and what the operator must know about it before trusting what it shows.

use std::future::poll_fn;

use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{DbError, causes};
use super::server_info::ServerInfo;
use super::target::{HostPlace, Target, TlsMode};
use super::tls::{self, TlsState};

/// An open session.
#[derive(Debug)]
pub struct Session {
    /// Runs statements.
    pub client: Client,
    /// Cancels what the session runs, from outside.
    pub cancel: Cancel,
    /// The server, the role and the policy in force, as they were when last read.
    pub info: ServerInfo,
    /// Becomes `Some(why)` when the connection ends.
    pub closed: watch::Receiver<Option<String>>,
    /// Where it is connected to.
    pub target: Target,
}

/// Cancels what a session runs. It opens a connection of its own, so it works while the session is busy.
#[derive(Clone)]
pub struct Cancel {
    token: CancelToken,
    tls: Option<MakeRustlsConnect>,
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cancel")
    }
}

impl Cancel {
    /// Asks the server to cancel the session's current statement. The statement then fails with SQLSTATE 57014; when
    /// the session runs nothing, nothing happens.
    pub async fn cancel(&self) -> Result<(), DbError> {
        match &self.tls {
            Some(tls) => self.token.cancel_query(tls.clone()).await?,
            None => self.token.cancel_query(NoTls).await?,
        }
        Ok(())
    }
}

impl Session {
    /// Connects, and reads [`ServerInfo`].
    pub async fn open(target: &Target) -> Result<Session, DbError> {
        let opened = open(target).await?;
        let info = ServerInfo::read(&opened.client, target, opened.tls_state).await?;
        if info.version_num < super::server_info::OLDEST {
            return Err(DbError::Connect(format!(
                "the server at {} is PostgreSQL {}; rowdeck needs 15 or newer",
                target.describe(),
                info.version
            )));
        }
        let Opened { client, cancel, closed, .. } = opened;
        Ok(Session { client, cancel, info, closed, target: target.clone() })
    }

    /// Another session on the same target, with the same knowledge of it.
    pub async fn another(&self) -> Result<Session, DbError> {
        let Opened { client, cancel, closed, .. } = open(&self.target).await?;
        Ok(Session { client, cancel, info: self.info.clone(), closed, target: self.target.clone() })
    }

    /// Reads the policy in force, the role's rights and the rest again.
    pub async fn refresh(&mut self) -> Result<(), DbError> {
        self.info = ServerInfo::read(&self.client, &self.target, self.info.tls).await?;
        Ok(())
    }

    /// Why the connection ended, when it has.
    pub fn lost(&self) -> Option<String> {
        self.closed.borrow().clone()
    }
}

struct Opened {
    client: Client,
    cancel: Cancel,
    closed: watch::Receiver<Option<String>>,
    tls_state: TlsState,
}

/// A bare connection, for work that needs many of them and no [`ServerInfo`].
pub async fn client(target: &Target) -> Result<Client, DbError> {
    Ok(open(target).await?.client)
}

async fn open(target: &Target) -> Result<Opened, DbError> {
    // Each host is tried by itself, so that the sentence about a failure can name it.
    let mut last = None;
    for at in 0..target.hosts.len() {
        match open_host(target, at).await {
            Ok(opened) => return Ok(opened),
            Err(error @ (DbError::Usage(_) | DbError::Server(_))) => return Err(error),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| DbError::Usage("the target has no host".to_owned())))
}

async fn open_host(target: &Target, at: usize) -> Result<Opened, DbError> {
    let Some(host) = target.hosts.get(at) else { return Err(DbError::Usage("the target has no host".to_owned())) };
    let mut config = tokio_postgres::Config::new();
    config
        .port(host.port)
        .user(&target.user)
        .dbname(&target.database)
        .application_name(&target.application_name)
        .connect_timeout(target.connect_timeout)
        .options(options(target));
    if let Some(password) = &target.password {
        config.password(password.reveal());
    }
    let wait = target.connect_timeout;
    let explain = |error: &tokio_postgres::Error| super::refusals::connecting(error, target, host);
    let timed_out =
        || DbError::Connect(format!("{host} did not answer within {} seconds", target.connect_timeout.as_secs()));
    let tcp = match &host.place {
        HostPlace::Unix(directory) => {
            config.host_path(directory);
            false
        }
        HostPlace::Tcp(name) => {
            config.host(name);
            true
        }
    };
    if !tcp || target.tls == TlsMode::Disable {
        config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        let connected = tokio::time::timeout(wait, config.connect(NoTls)).await.map_err(|_| timed_out())?;
        let (client, connection) = connected.map_err(|e| explain(&e))?;
        let state = if tcp { TlsState::Plain } else { TlsState::Socket };
        return Ok(opened(client, connection, None, state));
    }
    let connector = tls::connector(target)?;
    config.ssl_mode(match target.tls {
        TlsMode::Prefer => tokio_postgres::config::SslMode::Prefer,
        _ => tokio_postgres::config::SslMode::Require,
    });
    let connected = tokio::time::timeout(wait, config.connect(connector.clone())).await.map_err(|_| timed_out())?;
    let (client, connection) = connected.map_err(|e| explain(&e))?;
    Ok(opened(client, connection, Some(connector), tls::state(target)?))
}

/// The server's options for the session, with ours after the target's so that ours hold.
fn options(target: &Target) -> String {
    let mut options = target.options.clone();
    if target.read_only {
        options.push_str(" -c default_transaction_read_only=on");
    }
    options.trim().to_owned()
}

fn opened<S, T>(client: Client, connection: Connection<S, T>, tls: Option<MakeRustlsConnect>, state: TlsState) -> Opened
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, closed) = watch::channel(None);
    let cancel = Cancel { token: client.cancel_token(), tls };
    tokio::spawn(drive(connection, sender));
    Opened { client, cancel, closed, tls_state: state }
}

/// Moves the connection's bytes until it ends, then says why.
async fn drive<S, T>(mut connection: Connection<S, T>, sender: watch::Sender<Option<String>>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut said = None;
    let why = loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                tracing::debug!(severity = notice.severity(), "server: {}", crate::text::line(notice.message()));
                if notice.severity() == "FATAL" {
                    said = Some(crate::text::line(notice.message()).into_owned());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let words = error.as_db_error().map(|e| crate::text::line(e.message()).into_owned());
                break words.or(said).unwrap_or_else(|| causes(&error));
            }
            None => break said.unwrap_or_else(|| "the connection ended".to_owned()),
        }
    };
    tracing::info!("connection ended: {why}");
    // Nobody may be watching any more.
    let _ = sender.send(Some(why));
}
