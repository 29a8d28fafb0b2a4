//! A throw-away certificate authority and the server certificate that it signs.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::error::TourError;

/// The address that the certificate is for.
pub(super) const HOST: &str = "127.0.0.1";

/// Protocol names for ALPN (RFC 7301 §6).
pub(super) const ALPN_HTTP1: &[u8] = b"http/1.1";
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

/// What a server shows and what its clients trust. The keys are made for one run and stay in
/// memory; only the authority's certificate, which is no secret, may be written down.
pub(super) struct Certificate {
    authority_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Certificate {
    /// A new authority with a certificate for [`HOST`]. The authority's key is forgotten at once.
    ///
    /// # Errors
    /// [`TourError::Certificate`] when the system has no random numbers.
    pub(super) fn make() -> Result<Self, TourError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "trunkline tour, this run only");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let server_key = KeyPair::generate()?;
        let mut server = CertificateParams::new([HOST.to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "trunkline tour origin");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let server_certificate = server.signed_by(&server_key, &issuer)?;
        Ok(Self {
            authority_pem: authority_certificate.pem(),
            chain: vec![server_certificate.into()],
            key: PrivatePkcs8KeyDer::from(server_key.serialize_der()).into(),
        })
    }

    /// The authority's certificate as PEM: what a client must trust.
    pub(super) fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// A TLS server that offers these protocols, most preferred first.
    ///
    /// # Errors
    /// [`TourError::Tls`] when rustls refuses what was just made.
    pub(super) fn server_config(&self, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, TourError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }
}
