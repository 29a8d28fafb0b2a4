//! The TLS client: what is trusted, who we are, and which sessions can be resumed.
//!
//! A [`TlsClient`] is built once per origin's settings and shared by its connections. Files that
//! the user named are read when it is built, so that a wrong path is an error at the start; the
//! system's trust store is read at the first TLS connection of the process and never by a job
//! that speaks clear text only.
//!
//! Sessions are resumed within the process alone. Tickets cannot outlive it with rustls 0.23: its
//! `Tls12ClientSessionValue` and `Tls13ClientSessionValue` have neither a public constructor nor
//! an encoding, so that a `ClientSessionStore` can keep them but not write them down.

mod classify;
#[cfg(test)]
pub(crate) mod fixtures;
mod roots;
mod sessions;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

pub(crate) use self::classify::classify;
use self::roots::NamedRoots;
pub use self::roots::Roots;
pub(crate) use self::roots::read_bounded;
pub use self::sessions::SessionStore;
use crate::error::TlsSetupError;
use crate::identity::Identity;
use crate::settings::HttpVersion;

/// Protocol names for ALPN (RFC 7301 §6).
const ALPN_HTTP1: &[u8] = b"http/1.1";
const ALPN_HTTP2: &[u8] = b"h2";

/// What a [`TlsClient`] is made of.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Which certificate authorities are trusted.
    pub roots: Roots,
    /// The client certificate, sent when the server asks for one.
    pub identity: Option<Identity>,
    /// `false` accepts any certificate from anyone who holds its key: no protection against an
    /// active attacker.
    pub verify: bool,
    /// The oldest protocol version accepted.
    pub min_version: TlsVersion,
    /// Where sessions are kept for resumption; share one store among all clients of a process.
    pub sessions: SessionStore,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            roots: Roots::System,
            identity: None,
            verify: true,
            min_version: TlsVersion::Tls12,
            sessions: SessionStore::default(),
        }
    }
}

/// TLS protocol versions; older ones are not spoken (RFC 8996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[default]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// A TLS client configuration, cheap to clone.
///
/// Clones share everything: the trust anchors, the identity, and the sessions.
#[derive(Clone)]
pub struct TlsClient {
    inner: Arc<Inner>,
}

struct Inner {
    options: TlsOptions,
    named: NamedRoots,
    provider: Arc<CryptoProvider>,
    configs: OnceLock<Configs>,
}

/// One configuration per list of ALPN names. They are clones of one another, because rustls
/// resumes a session only under the very verifier and identity objects that it was made with.
struct Configs {
    auto: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl TlsClient {
    /// A client with the given options; reads the files named in [`TlsOptions::roots`].
    ///
    /// # Errors
    /// [`TlsSetupError`] when a named file cannot be read or holds no usable certificate.
    pub fn new(options: TlsOptions) -> Result<Self, TlsSetupError> {
        let named = NamedRoots::read(&options.roots)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let inner = Inner { options, named, provider, configs: OnceLock::new() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The configuration of the object lane.
    ///
    /// # Errors
    /// [`TlsSetupError`] when the system's trust store is needed and cannot be read.
    pub(crate) fn objects(&self, version: HttpVersion) -> Result<Arc<ClientConfig>, TlsSetupError> {
        let configs = self.configs()?;
        Ok(Arc::clone(match version {
            HttpVersion::Auto => &configs.auto,
            HttpVersion::Http1 => &configs.http1,
            HttpVersion::Http2 => &configs.http2,
        }))
    }

    /// The configuration of the range lane: HTTP/1.1 alone.
    ///
    /// # Errors
    /// As [`TlsClient::objects`].
    pub(crate) fn ranges(&self) -> Result<Arc<ClientConfig>, TlsSetupError> {
        Ok(Arc::clone(&self.configs()?.http1))
    }

    fn configs(&self) -> Result<&Configs, TlsSetupError> {
        if let Some(configs) = self.inner.configs.get() {
            return Ok(configs);
        }
        // Two tasks may build at once; the first to finish wins and the other's is dropped.
        let built = self.inner.build()?;
        Ok(self.inner.configs.get_or_init(|| built))
    }
}

impl Inner {
    fn build(&self) -> Result<Configs, TlsSetupError> {
        let versions: &[&rustls::SupportedProtocolVersion] = match self.options.min_version {
            TlsVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
            TlsVersion::Tls13 => &[&rustls::version::TLS13],
        };
        let verifier = if self.options.verify {
            verify::trusting(&self.options.roots, &self.named, &self.provider)?
        } else {
            verify::trusting_anyone(&self.provider)
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.options.identity {
            Some(identity) => {
                let key: Arc<CertifiedKey> = identity.certified_key();
                let resolver: Arc<dyn ResolvesClientCert> = Arc::new(SingleCertAndKey::from(key));
                builder.with_client_cert_resolver(resolver)
            }
            None => builder.with_no_client_auth(),
        };
        config.resumption = self.options.sessions.resumption();
        let offering = |names: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Configs {
            auto: offering(&[ALPN_HTTP2, ALPN_HTTP1]),
            http1: offering(&[ALPN_HTTP1]),
            http2: offering(&[ALPN_HTTP2]),
        })
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
