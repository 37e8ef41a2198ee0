//! TLS as libpq does it: `require` encrypts, `verify-ca` checks the chain, `verify-full` checks the host's name too.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::DbError;
use super::target::{RootCert, Target, TlsMode};

/// What protects a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsState {
    /// A unix socket: nothing leaves the machine.
    Socket,
    /// Nothing.
    Plain,
    /// Encrypted; who the server is was not verified.
    Unverified,
    /// Encrypted, and the certificate's chain was verified.
    VerifiedCa,
    /// Encrypted, and the chain and the host's name were verified.
    Verified,
}

impl TlsState {
    /// A few words for people.
    pub fn words(self) -> &'static str {
        match self {
            TlsState::Socket => "socket",
            TlsState::Plain => "no TLS",
            TlsState::Unverified => "TLS, server not verified",
            TlsState::VerifiedCa => "TLS, authority verified",
            TlsState::Verified => "TLS verified",
        }
    }
}

/// What a target's mode and root certificate amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Check {
    Nothing,
    Chain(Trust),
    ChainAndName(Trust),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Trust {
    System,
    File(PathBuf),
}

fn check(target: &Target) -> Result<Check, DbError> {
    let trust = match &target.root_cert {
        RootCert::System => Some(Trust::System),
        RootCert::File(path) => Some(Trust::File(path.clone())),
        RootCert::Default => directories::BaseDirs::new()
            .map(|dirs| dirs.home_dir().join(".postgresql/root.crt"))
            .filter(|path| path.is_file())
            .map(Trust::File),
    };
    match (target.tls, trust) {
        // With a root certificate at hand libpq verifies the chain under `require` too.
        (TlsMode::Require | TlsMode::VerifyCa, Some(trust)) => Ok(Check::Chain(trust)),
        (TlsMode::VerifyFull, Some(trust)) => Ok(Check::ChainAndName(trust)),
        (TlsMode::VerifyCa | TlsMode::VerifyFull, None) => Err(DbError::Usage(
            "sslmode=verify-ca and verify-full need the authorities to trust: sslrootcert=FILE, or \
             sslrootcert=system for the operating system's"
                .to_owned(),
        )),
        _ => Ok(Check::Nothing),
    }
}

/// What a TLS session to this target will have verified.
pub(super) fn state(target: &Target) -> Result<TlsState, DbError> {
    Ok(match check(target)? {
        Check::Nothing => TlsState::Unverified,
        Check::Chain(_) => TlsState::VerifiedCa,
        Check::ChainAndName(_) => TlsState::Verified,
    })
}

/// The TLS side of a connection to `target`.
pub(super) fn connector(target: &Target) -> Result<MakeRustlsConnect, DbError> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match check(target)? {
        Check::Nothing => Arc::new(Verifier::encrypt_only(&provider)),
        Check::Chain(trust) => Arc::new(Verifier::chain(&provider, &trust, false)?),
        Check::ChainAndName(trust) => Arc::new(Verifier::chain(&provider, &trust, true)?),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| DbError::Connect(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Checks as much as the mode asks for.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// The trusted certificates themselves: a server whose own certificate is one of them (self-signed, as PostgreSQL's
    /// documentation makes them) is trusted by that.
    pinned: Vec<CertificateDer<'static>>,
    check_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn encrypt_only(provider: &CryptoProvider) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        Verifier { chain: None, pinned: Vec::new(), check_name: false, algorithms }
    }

    fn chain(provider: &Arc<CryptoProvider>, trust: &Trust, check_name: bool) -> Result<Self, DbError> {
        let (pinned, name) = match trust {
            Trust::System => {
                (rustls_native_certs::load_native_certs().certs, "the operating system's store".to_owned())
            }
            Trust::File(path) => (read_pem(path)?, path.display().to_string()),
        };
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(pinned.iter().cloned());
        if added == 0 {
            return Err(DbError::Usage(format!("{name} holds no certificate that can be used")));
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|e| DbError::Connect(format!("TLS cannot be set up: {e}")))?;
        // The operating system's authorities are not servers.
        let pinned = if *trust == Trust::System { Vec::new() } else { pinned };
        let algorithms = provider.signature_verification_algorithms;
        Ok(Verifier { chain: Some(chain), pinned, check_name, algorithms })
    }
}

fn read_pem(path: &Path) -> Result<Vec<CertificateDer<'static>>, DbError> {
    let bytes = std::fs::read(path)
        .map_err(|e| DbError::io(format!("cannot read the root certificate {}", path.display()), e))?;
    CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|e| DbError::Usage(format!("{} is not a PEM file of certificates: {e}", path.display())))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last, so a wrong name means that the chain was right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_) | CertificateError::UnknownIssuer))
                if self.pinned.iter().any(|pinned| pinned.as_ref() == end_entity.as_ref()) =>
            {
                if self.check_name {
                    rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
