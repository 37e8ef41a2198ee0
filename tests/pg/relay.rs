//! A wire to the test server that can be cut at the worst moment: after a COMMIT was sent, before its answer arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowdeck::db::target::Target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::server::socket;

/// What becomes of connections that are made after the wire was cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// They work.
    Relay,
    /// They are closed at once.
    Refuse,
}

/// A unix socket that hands everything on to the test server's, but for the answer to the first COMMIT.
pub struct Relay {
    folder: tempfile::TempDir,
    cut: Arc<AtomicBool>,
}

impl Relay {
    /// Starts one in the running runtime.
    pub fn start(then: Then) -> Relay {
        let folder = tempfile::tempdir().unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let is_cut = cut.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !is_cut.load(Ordering::SeqCst) || then == Then::Relay {
                    tokio::spawn(hand_on(client, is_cut.clone()));
                }
            }
        });
        Relay { folder, cut }
    }

    /// The way to a database through it.
    pub fn target(&self, user: &str, database: &str) -> Target {
        Target::socket(self.folder.path(), 5432, user, database)
    }

    /// Whether an answer to a COMMIT was swallowed.
    pub fn swallowed(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }
}

async fn hand_on(mut client: UnixStream, cut: Arc<AtomicBool>) {
    let mut server = UnixStream::connect(socket()).await.unwrap();
    let (mut to, mut from) = (vec![0; 8192], vec![0; 8192]);
    let mut committing = false;
    loop {
        tokio::select! {
            read = client.read(&mut to) => match read {
                Ok(n @ 1..) => {
                    committing = !cut.load(Ordering::SeqCst) && to[..n].windows(7).any(|w| w == b"COMMIT\0");
                    server.write_all(&to[..n]).await.unwrap();
                }
                _ => return,
            },
            read = server.read(&mut from) => match read {
                // The server has answered, so the commit is done.
                Ok(1..) if committing => {
                    cut.store(true, Ordering::SeqCst);
                    return;
                }
                Ok(n @ 1..) => client.write_all(&from[..n]).await.unwrap(),
                _ => return,
            },
        }
    }
}
