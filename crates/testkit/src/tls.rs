//! Throw-away certificate authorities and the certificates they sign.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;

/// The names in a server certificate unless others are asked for. `*.origin.test` never resolves; tests
/// reach such names through a proxy or a resolver of their own.
const SERVER_NAMES: &[&str] = &["localhost", "127.0.0.1", "::1", "*.origin.test"];

/// A certificate authority of its own, trusted by nobody but the test. Clones share the key.
#[derive(Clone, Debug)]
pub struct Authority {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate chain with its private key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate, then the authority's, as PEM.
    pub chain_pem: String,
    /// The private key as PEM (PKCS #8).
    pub key_pem: String,
}

impl Authority {
    /// A new authority whose subject has this common name.
    ///
    /// # Panics
    /// When no key can be generated.
    pub fn new(common_name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = params.self_signed(&key).expect("the parameters are valid");
        let inner = Inner { pem: certificate.pem(), issuer: Issuer::new(params, key) };
        Self { inner: Arc::new(inner) }
    }

    /// The authority's certificate as PEM: what a client must trust.
    pub fn pem(&self) -> &str {
        &self.inner.pem
    }

    /// A certificate for loopback (`localhost`, `127.0.0.1`, `::1`, `*.origin.test`).
    pub fn server(&self) -> Identity {
        self.server_for(SERVER_NAMES)
    }

    /// A server certificate for these names and addresses.
    pub fn server_for(&self, names: &[&str]) -> Identity {
        self.issue(names, "testkit server", ExtendedKeyUsagePurpose::ServerAuth, false)
    }

    /// A server certificate for loopback that expired in 2001.
    pub fn expired_server(&self) -> Identity {
        self.issue(SERVER_NAMES, "testkit server", ExtendedKeyUsagePurpose::ServerAuth, true)
    }

    /// A client certificate with this common name.
    pub fn client(&self, common_name: &str) -> Identity {
        self.issue(&[], common_name, ExtendedKeyUsagePurpose::ClientAuth, false)
    }

    fn issue(
        &self,
        names: &[&str],
        common_name: &str,
        usage: ExtendedKeyUsagePurpose,
        expired: bool,
    ) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are valid");
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        if expired {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate =
            params.signed_by(&key, &self.inner.issuer).expect("the parameters are valid");
        Identity { chain_pem: certificate.pem() + &self.inner.pem, key_pem: key.serialize_pem() }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.inner.pem.as_bytes());
        roots.add(certificate.expect("made by us")).expect("made by us");
        roots
    }
}

impl Identity {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(self.chain_pem.as_bytes())
            .map(|certificate| certificate.expect("made by us"))
            .collect()
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).expect("made by us")
    }
}

/// Everything a TLS origin is built from.
#[derive(Debug)]
pub(crate) struct ServerTls<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) client_authority: Option<&'a Authority>,
    pub(crate) alpn: &'a [&'a [u8]],
    pub(crate) tls12_only: bool,
    pub(crate) resumption: bool,
}

impl ServerTls<'_> {
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(ring::default_provider());
        let versions: &[&rustls::SupportedProtocolVersion] = if self.tls12_only {
            &[&rustls::version::TLS12]
        } else {
            &[&rustls::version::TLS13, &rustls::version::TLS12]
        };
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .expect("ring knows both versions");
        let builder = match self.client_authority {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::new(authority.roots()),
                    provider,
                );
                builder.with_client_cert_verifier(verifier.build().expect("a root was given"))
            }
        };
        let mut config = builder
            .with_single_cert(self.identity.chain(), self.identity.key())
            .expect("key and certificate belong together");
        config.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        if self.resumption {
            // Stateless tickets, as common servers have: a ticket may be used more than once.
            config.ticketer = ring::Ticketer::new().expect("ring has randomness");
        } else {
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Arc::new(config)
    }
}
