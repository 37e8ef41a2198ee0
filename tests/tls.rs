//! What each `sslmode` accepts and refuses, against servers with good, foreign and self-signed certificates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowdeck::db::connect::Session;
use rowdeck::db::embedded::Server;
use rowdeck::db::target::Target;
use rowdeck::db::tls::TlsState;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// Offers TLS with this certificate before a server's unix socket; without one it declines TLS.
async fn front(socket: PathBuf, certificate: Option<&str>) -> u16 {
    let acceptor = certificate.map(|name| {
        let chain = CertificateDer::pem_file_iter(fixture(&format!("{name}.crt"))).unwrap().map(Result::unwrap);
        let key = PrivateKeyDer::from_pem_file(fixture(&format!("{name}.key"))).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.collect(), key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, socket.clone(), acceptor.clone()));
        }
    });
    port
}

async fn serve(mut stream: TcpStream, socket: PathBuf, acceptor: Option<TlsAcceptor>) -> std::io::Result<()> {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    let mut head = [0; 8];
    stream.read_exact(&mut head).await?;
    let mut server = UnixStream::connect(socket).await?;
    if head != SSL_REQUEST {
        server.write_all(&head).await?;
        copy_bidirectional(&mut stream, &mut server).await?;
        return Ok(());
    }
    match acceptor {
        Some(acceptor) => {
            stream.write_all(b"S").await?;
            let mut stream = acceptor.accept(stream).await?;
            copy_bidirectional(&mut stream, &mut server).await?;
        }
        None => {
            stream.write_all(b"N").await?;
            copy_bidirectional(&mut stream, &mut server).await?;
        }
    }
    Ok(())
}

async fn connect(host: &str, port: u16, mode: &str, root: &str) -> Result<TlsState, String> {
    let root = if root.is_empty() { String::new() } else { format!(" sslrootcert={}", fixture(root).display()) };
    let text = format!("host={host} port={port} user=postgres dbname=postgres sslmode={mode}{root}");
    let target = Target::parse(&text, &|_| None).unwrap();
    Session::open(&target).await.map(|session| session.info.tls).map_err(|error| error.to_string())
}

#[tokio::test]
async fn each_mode_verifies_what_it_says() {
    let mut server = Server::start_throwaway(None).await.unwrap();
    let socket = server.socket_folder.join(".s.PGSQL.5432");
    let good = front(socket.clone(), Some("server")).await;
    let own = front(socket.clone(), Some("self")).await;
    let none = front(socket, None).await;

    // Without a root certificate nothing is verified; verifying without one is refused before anything is sent.
    assert_eq!(connect("localhost", good, "require", "").await, Ok(TlsState::Unverified));
    assert_eq!(connect("localhost", own, "require", "").await, Ok(TlsState::Unverified));
    assert_eq!(connect("localhost", none, "prefer", "").await, Ok(TlsState::Plain));
    assert_eq!(connect("localhost", good, "disable", "").await, Ok(TlsState::Plain));
    assert!(connect("localhost", none, "require", "").await.unwrap_err().contains("offers no TLS"));
    assert!(connect("localhost", good, "verify-full", "").await.unwrap_err().contains("sslrootcert"));

    // The chain, and with verify-full the name.
    assert_eq!(connect("localhost", good, "verify-full", "ca.crt").await, Ok(TlsState::Verified));
    assert_eq!(connect("localhost", good, "verify-ca", "ca.crt").await, Ok(TlsState::VerifiedCa));
    assert_eq!(connect("127.0.0.1", good, "verify-ca", "ca.crt").await, Ok(TlsState::VerifiedCa));
    assert_eq!(connect("127.0.0.1", good, "require", "ca.crt").await, Ok(TlsState::VerifiedCa));
    let name = connect("127.0.0.1", good, "verify-full", "ca.crt").await.unwrap_err();
    assert!(name.contains("for another host name"), "{name}");
    for mode in ["require", "verify-ca", "verify-full"] {
        let foreign = connect("localhost", good, mode, "other-ca.crt").await.unwrap_err();
        assert!(foreign.contains("not signed by an authority in sslrootcert"), "{mode}: {foreign}");
    }

    // A self-signed certificate is trusted when it is the root certificate itself, for its own name only.
    assert_eq!(connect("localhost", own, "verify-full", "self.crt").await, Ok(TlsState::Verified));
    assert!(connect("localhost", own, "verify-full", "ca.crt").await.is_err());
    assert!(connect("127.0.0.1", own, "verify-full", "self.crt").await.is_err());
    assert_eq!(connect("127.0.0.1", own, "verify-ca", "self.crt").await, Ok(TlsState::VerifiedCa));

    let unreadable = connect("localhost", good, "verify-full", "nothing.crt").await.unwrap_err();
    assert!(unreadable.contains("cannot read the root certificate"), "{unreadable}");
    let empty = connect("localhost", good, "verify-full", "README.md").await.unwrap_err();
    assert!(empty.contains("no certificate"), "{empty}");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_no_postgresql_server_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok();
        }
    });
    let words = connect("127.0.0.1", port, "require", "").await.unwrap_err();
    assert!(!words.contains('\n') && words.contains(&port.to_string()), "{words}");
}
