//! What a failed handshake means.

use std::io;

use rustls::{CertificateError, OtherError};

use super::verify::UntrustedIssuer;
use crate::error::Error;

/// Turns a failed handshake's I/O error into the error that says who has to act.
pub(crate) fn classify(host: &str, error: io::Error) -> Error {
    let host = host.to_owned();
    let broken = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match broken {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner)))) => {
            match inner.downcast_ref::<UntrustedIssuer>() {
                Some(UntrustedIssuer { issuer }) => {
                    Error::UntrustedIssuer { host, issuer: issuer.clone() }
                }
                None => Error::Handshake { host, source: error },
            }
        }
        Some(source @ rustls::Error::InvalidCertificate(_)) => {
            Error::Certificate { host, source: source.clone() }
        }
        _ => Error::Handshake { host, source: error },
    }
}
