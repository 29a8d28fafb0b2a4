//! The server's side of TLS: its certificate, its key, and whom it lets in.

use crate::error::Error;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// HTTP/2 and HTTP/1.1, in the order preferred (RFC 7301): what an HTTP server offers.
pub const ALPN_HTTP: &[&[u8]] = &[b"h2", b"http/1.1"];

/// A certificate chain with its key, and the rules of the handshake. Cheap to clone; the key is
/// never printed.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

impl TlsIdentity {
    /// Reads chain and key from PEM files. With `client_authority`, only clients that show a
    /// certificate signed by it complete the handshake. `alpn` lists the protocols offered, most
    /// preferred first; empty for none.
    ///
    /// # Errors
    /// [`Error::TlsFile`], [`Error::TlsPem`], [`Error::TlsIdentity`] or
    /// [`Error::TlsClientAuthority`].
    pub fn from_files(
        chain: &Path,
        key: &Path,
        client_authority: Option<&Path>,
        alpn: &[&[u8]],
    ) -> Result<Self, Error> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| Error::TlsFile { path: path.to_owned(), source })
        };
        let name = |path: &Path| path.display().to_string();
        let authority = match client_authority {
            Some(path) => Some(certificates(&read(path)?, &name(path))?),
            None => None,
        };
        let chain = certificates(&read(chain)?, &name(chain))?;
        let key = private_key(&read(key)?, &name(key))?;
        Self::new(chain, key, authority, alpn)
    }

    /// As [`from_files`](Self::from_files), from PEM text.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files), without [`Error::TlsFile`].
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        client_authority: Option<&[u8]>,
        alpn: &[&[u8]],
    ) -> Result<Self, Error> {
        let authority =
            client_authority.map(|pem| certificates(pem, "the client authority")).transpose()?;
        let chain = certificates(chain, "the certificate chain")?;
        Self::new(chain, private_key(key, "the key")?, authority, alpn)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        client_authority: Option<Vec<CertificateDer<'static>>>,
        alpn: &[&[u8]],
    ) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(Error::TlsIdentity)?;
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(certificates) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates {
                    roots.add(certificate).map_err(Error::TlsIdentity)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder
                    .with_client_cert_verifier(verifier.build().map_err(Error::TlsClientAuthority)?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(Error::TlsIdentity)?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        // Stateless tickets: a client resumes whatever number of clients there are, and the keys
        // change by themselves.
        config.ticketer = ring::Ticketer::new().map_err(Error::TlsIdentity)?;
        Ok(Self { config: Arc::new(config) })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.clone())
    }
}

fn certificates(pem: &[u8], origin: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let missing = || Error::TlsPem { origin: origin.to_owned(), expected: "certificate" };
    let list: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| missing())?;
    if list.is_empty() { Err(missing()) } else { Ok(list) }
}

fn private_key(pem: &[u8], origin: &str) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_| Error::TlsPem { origin: origin.to_owned(), expected: "private key" })
}
