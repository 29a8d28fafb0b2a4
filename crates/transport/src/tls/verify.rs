//! Certificate verification: webpki's, with two additions that messages and users need.
//!
//! An unknown issuer is named, and a certificate that the user named in a file is accepted for
//! itself even when it is no certificate authority, as curl does with `--cacert`.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use thiserror::Error as ThisError;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::roots::{NamedRoots, Roots};
use crate::error::TlsSetupError;

/// Carried inside a [`rustls::Error`] through the handshake, so that the message can name the
/// issuer that is missing.
#[derive(Debug, ThisError)]
#[error("the certificate was issued by `{issuer}`, which is not trusted")]
pub(super) struct UntrustedIssuer {
    pub(super) issuer: String,
}

/// A verifier that trusts the given roots.
///
/// # Errors
/// [`TlsSetupError`] when the system's trust store is needed and cannot be read.
pub(super) fn trusting(
    roots: &Roots,
    named: &NamedRoots,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsSetupError> {
    let anchors = roots.anchors(named)?;
    let chain = WebPkiServerVerifier::builder_with_provider(anchors, Arc::clone(provider))
        .build()
        .map_err(|error| TlsSetupError::Rustls(Error::General(error.to_string())))?;
    Ok(Arc::new(Trusting { chain, named: named.certificates.clone() }))
}

/// A verifier that trusts any certificate, but still wants a proof of its key.
pub(super) fn trusting_anyone(provider: &Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(TrustingAnyone { provider: Arc::clone(provider) })
}

#[derive(Debug)]
struct Trusting {
    chain: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.named.contains(end_entity) {
            return verify_named(end_entity, server_name, now);
        }
        self.chain
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map_err(|error| match error {
                Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                    unknown_issuer(end_entity, intermediates)
                }
                error => error,
            })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Verifies the name and the dates of a certificate that is trusted for itself.
fn verify_named(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let seconds = |time: x509_parser::time::ASN1Time| {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            u64::try_from(time.timestamp()).unwrap_or(0),
        ))
    };
    let not_before = seconds(parsed.validity().not_before);
    let not_after = seconds(parsed.validity().not_after);
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    Ok(ServerCertVerified::assertion())
}

/// Climbs from the server's certificate through those it sent, to the issuer that is missing.
fn unknown_issuer(end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Error {
    let parse = |der| X509Certificate::from_der(der).map(|(_, certificate)| certificate).ok();
    let Some(mut top) = parse(end_entity) else {
        return CertificateError::BadEncoding.into();
    };
    let mut above: Vec<_> = intermediates.iter().filter_map(|der| parse(der)).collect();
    while let Some(at) = above.iter().position(|next| next.subject() == top.issuer()) {
        // Each certificate is taken once, so that a ring of issuers ends.
        top = above.swap_remove(at);
    }
    let issuer = top.issuer().to_string();
    CertificateError::Other(OtherError(Arc::new(UntrustedIssuer { issuer }))).into()
}

#[derive(Debug)]
struct TrustingAnyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustingAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
