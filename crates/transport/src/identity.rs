//! Client certificates: PEM and PKCS#12 files become an [`Identity`].

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use p12_keystore::{Certificate, Pkcs12Archive, PrivateKeyBag};
use rustls::InconsistentKeys;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use trunkline_proto::secret::Secret;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::TlsSetupError;
use crate::tls::read_bounded;

/// Largest certificate, key or PKCS#12 file read, in bytes.
const IDENTITY_FILE_BYTES_MAX: u64 = 4 << 20;

/// A client certificate with its chain and private key, cheap to clone. `Debug` shows the
/// certificate's subject and the file it came from, never the key.
#[derive(Clone)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    path: PathBuf,
}

impl Identity {
    /// Reads a PEM chain, the client's own certificate first, and its private key from `key` or,
    /// when that is `None`, from the same file.
    ///
    /// # Errors
    /// [`TlsSetupError`] naming the file at fault, also when key and certificate do not belong
    /// together.
    pub fn from_pem_files(certificates: &Path, key: Option<&Path>) -> Result<Self, TlsSetupError> {
        let pem_error = |path: &Path, source| TlsSetupError::Pem { path: path.to_owned(), source };
        let text = read_bounded(certificates, IDENTITY_FILE_BYTES_MAX)?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, pem::Error>>()
            .map_err(|source| pem_error(certificates, source))?;
        if chain.is_empty() {
            return Err(TlsSetupError::NoCertificate { path: certificates.to_owned() });
        }
        let (key_path, key_text) = match key {
            Some(path) => (path, read_bounded(path, IDENTITY_FILE_BYTES_MAX)?),
            None => (certificates, text),
        };
        let key = match PrivateKeyDer::from_pem_slice(&key_text) {
            Ok(key) => key,
            Err(pem::Error::NoItemsFound) => {
                return Err(TlsSetupError::NoPrivateKey { path: key_path.to_owned() });
            }
            Err(source) => return Err(pem_error(key_path, source)),
        };
        Self::new(chain, signing_key(&key, key_path)?, certificates, key_path)
    }

    /// Reads a PKCS#12 file (RFC 7292), also one with the legacy ciphers RC2 and 3DES. A file
    /// without password is opened by the empty one.
    ///
    /// # Errors
    /// [`TlsSetupError::Pkcs12`] when the file cannot be opened with this password; others naming
    /// the file when it holds no key or no certificate for its key.
    pub fn from_pkcs12_file(path: &Path, password: &Secret) -> Result<Self, TlsSetupError> {
        let bytes = read_bounded(path, IDENTITY_FILE_BYTES_MAX)?;
        let archive = Pkcs12Archive::from_pkcs12(&bytes, password.expose()).map_err(|error| {
            TlsSetupError::Pkcs12 { path: path.to_owned(), reason: error.to_string() }
        })?;
        let Some(bag) = archive.keys.first() else {
            return Err(TlsSetupError::NoPrivateKey { path: path.to_owned() });
        };
        let key = PrivatePkcs8KeyDer::from(bag.key.as_der().to_vec());
        let key = signing_key(&key.into(), path)?;
        let Some(own) = own_certificate(bag, key.as_ref(), &archive) else {
            return Err(TlsSetupError::NoCertificate { path: path.to_owned() });
        };
        Self::new(chain_above(own, &archive), key, path, path)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: Arc<dyn SigningKey>,
        path: &Path,
        key_path: &Path,
    ) -> Result<Self, TlsSetupError> {
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                return Err(TlsSetupError::KeyMismatch {
                    certificate: path.to_owned(),
                    key: key_path.to_owned(),
                });
            }
            Err(source) => {
                return Err(TlsSetupError::UnusableCertificate { path: path.to_owned(), source });
            }
        }
        Ok(Self { key: Arc::new(certified), path: path.to_owned() })
    }

    /// The key pair as rustls wants it.
    pub(crate) fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("path", &self.path)
            .field("certificates", &self.key.cert.len())
            .finish_non_exhaustive()
    }
}

fn signing_key(key: &PrivateKeyDer<'_>, path: &Path) -> Result<Arc<dyn SigningKey>, TlsSetupError> {
    rustls::crypto::ring::sign::any_supported_type(key)
        .map_err(|_| TlsSetupError::NoPrivateKey { path: path.to_owned() })
}

/// The key's own certificate: the one with its local id (RFC 7292 §4.2), else the one with its
/// public key.
fn own_certificate<'a>(
    bag: &PrivateKeyBag,
    key: &dyn SigningKey,
    archive: &'a Pkcs12Archive,
) -> Option<&'a Certificate> {
    let id = bag.local_key_id.as_ref().map(AsRef::as_ref);
    let by_id = archive
        .certs
        .iter()
        .find(|entry| id.is_some_and(|id: &[u8]| entry.local_key_id.as_deref() == Some(id)));
    let by_public_key = || {
        let public_key = key.public_key()?;
        archive.certs.iter().find(|entry| {
            X509Certificate::from_der(entry.cert.as_der())
                .is_ok_and(|(_, cert)| cert.public_key().raw == public_key.as_ref())
        })
    };
    by_id.or_else(by_public_key).map(|entry| &entry.cert)
}

/// The certificate and its issuers in the order that TLS sends them. A self-signed root is left
/// out (RFC 8446 §4.4.2), unless it is the certificate itself.
fn chain_above(own: &Certificate, archive: &Pkcs12Archive) -> Vec<CertificateDer<'static>> {
    let mut chain = vec![own];
    let mut last = own;
    while let Some(next) = archive.certs.iter().map(|entry| &entry.cert).find(|next| {
        next.subject() == last.issuer()
            && next.subject() != next.issuer()
            && !chain.iter().any(|seen| seen.as_der() == next.as_der())
    }) {
        chain.push(next);
        last = next;
    }
    chain.into_iter().map(|cert| CertificateDer::from(cert.as_der().to_vec())).collect()
}
