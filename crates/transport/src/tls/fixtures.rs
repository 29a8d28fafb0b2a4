//! Certificates and servers for tests.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name in certificates made here.
pub(crate) const HOST: &str = "origin.test";

/// A certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, for a server or a client.
pub(crate) struct Leaf {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self { issuer: CertifiedIssuer::self_signed(authority_params(name), key).unwrap() }
    }

    /// An authority below this one.
    pub(crate) fn intermediate(&self, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = authority_params(name);
        Self { issuer: CertifiedIssuer::signed_by(params, key, &self.issuer).unwrap() }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate for [`HOST`], valid now.
    pub(crate) fn leaf(&self) -> Leaf {
        self.leaf_valid(2000, 4000)
    }

    /// A certificate for [`HOST`], valid from the first of January of one year to another's.
    pub(crate) fn leaf_valid(&self, from: i32, until: i32) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let mut params = leaf_params();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Leaf::new(&certificate, &key)
    }
}

impl Leaf {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// A certificate that signs itself and is no authority.
    pub(crate) fn self_signed() -> Self {
        let key = KeyPair::generate().unwrap();
        Self::new(&leaf_params().self_signed(&key).unwrap(), &key)
    }

    /// A server with this certificate that agrees to HTTP/2 and HTTP/1.1.
    pub(crate) fn server(&self) -> ServerConfig {
        self.server_with(rustls::ALL_VERSIONS, None)
    }

    /// A server of the given protocol versions, which may want client certificates.
    pub(crate) fn server_with(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(authority.der()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config =
            builder.with_single_cert(self.chain.clone(), self.key.clone_key()).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn leaf_params() -> CertificateParams {
    let mut params = CertificateParams::new([HOST.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, HOST);
    params
}
