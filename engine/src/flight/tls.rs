//! [`Tls`]: certificates from PEM files, read again when they change.
//!
//! Keeps true   a server that was told to use TLS never speaks anything else. Files that cannot be read when it starts are an error;
//!              later ones are told in the log, and what was read before stays in use.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::{EngineError, ErrorKind, Result};

/// How often the files are looked at, at the most.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Who takes longer to agree on keys is sent away.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Where certificates are.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The server's certificate, and those between it and its root.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Roots of certificates that clients must show; they need none if there are none.
    pub client_roots: Option<PathBuf>,
}

/// When files were last changed, and how large they are.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// Makes connections secret.
pub(super) struct Tls {
    options: TlsOptions,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    stamps: Stamps,
    looked: Instant,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn open(options: TlsOptions) -> Result<Self> {
        // Before the files are read: what changes meanwhile is read again.
        let stamps = stamps(&options);
        let config = Arc::new(load(&options)?);
        let current = Mutex::new(Current { config, stamps, looked: Instant::now() });
        Ok(Self { options, current })
    }

    /// Agrees on keys with the other side.
    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.config());
        tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await.map_err(std::io::Error::from)?
    }

    fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock();
        if current.looked.elapsed() >= LOOK_INTERVAL {
            current.looked = Instant::now();
            let now = stamps(&self.options);
            if now != current.stamps {
                current.stamps = now;
                match load(&self.options) {
                    Ok(config) => {
                        tracing::info!("certificates were read again");
                        current.config = Arc::new(config);
                    }
                    Err(error) => {
                        let detail = error.detail().unwrap_or_default();
                        tracing::error!(%error, detail, "cannot read changed certificates; the old ones stay in use");
                    }
                }
            }
        }
        Arc::clone(&current.config)
    }
}

fn stamps(options: &TlsOptions) -> Stamps {
    let files = [Some(&options.certificate), Some(&options.key), options.client_roots.as_ref()];
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.into_iter().flatten().map(stamp).collect()
}

fn load(options: &TlsOptions) -> Result<ServerConfig> {
    let provider = Arc::new(default_provider());
    let chain = certificates(&options.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&options.key).map_err(|error| unreadable(&options.key, &error))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(options, &error))?;
    let builder = match &options.client_roots {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(path)? {
                roots.add(root).map_err(|error| unreadable(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| unreadable(path, &error))?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| unusable(options, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
    let found = read.collect::<std::result::Result<Vec<_>, _>>().map_err(|error| unreadable(path, &error))?;
    match found.is_empty() {
        true => Err(unreadable(path, &"there is no certificate in it")),
        false => Ok(found),
    }
}

fn unreadable(path: &Path, error: &dyn fmt::Display) -> EngineError {
    EngineError::new(ErrorKind::Configuration, format!("cannot read certificates from \"{}\"", path.display()))
        .with_detail(error.to_string())
        .with_hint("PEM files are expected: -----BEGIN CERTIFICATE-----, -----BEGIN PRIVATE KEY-----")
}

fn unusable(options: &TlsOptions, error: &dyn fmt::Display) -> EngineError {
    let (certificate, key) = (options.certificate.display(), options.key.display());
    EngineError::new(ErrorKind::Configuration, format!("cannot use certificate \"{certificate}\" with key \"{key}\""))
        .with_detail(error.to_string())
}
