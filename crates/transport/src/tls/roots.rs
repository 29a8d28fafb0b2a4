//! Trust anchors: the system's, and those in files that the user names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::RootCertStore;
use rustls_native_certs::ErrorKind;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{self, PemObject};

use crate::error::TlsSetupError;

/// Largest CA file read, in bytes. The largest bundles in use are below 1 MiB.
const CA_FILE_BYTES_MAX: u64 = 32 << 20;

/// Which certificate authorities are trusted. A path is a PEM file, or a directory whose PEM
/// files are all read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// The system's store, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name in its stead.
    #[default]
    System,
    /// The system's store and these besides.
    SystemAnd(Vec<PathBuf>),
    /// These alone.
    Only(Vec<PathBuf>),
}

impl Roots {
    fn paths(&self) -> &[PathBuf] {
        match self {
            Self::System => &[],
            Self::SystemAnd(paths) | Self::Only(paths) => paths,
        }
    }

    /// All trust anchors: those read before from named files and, where wanted, the system's.
    ///
    /// # Errors
    /// [`TlsSetupError`] when the system's store is wanted and cannot be read, or nothing is
    /// trusted at all.
    pub(super) fn anchors(&self, named: &NamedRoots) -> Result<Arc<RootCertStore>, TlsSetupError> {
        let anchors = match self {
            Self::System => system()?,
            Self::SystemAnd(_) => {
                let mut anchors = match system() {
                    Ok(anchors) => RootCertStore::clone(&anchors),
                    // A machine without a store is no reason to fail where files were named.
                    Err(TlsSetupError::NoRoots) => RootCertStore::empty(),
                    Err(error) => return Err(error),
                };
                anchors.extend(named.anchors.roots.iter().cloned());
                Arc::new(anchors)
            }
            Self::Only(_) => Arc::new(named.anchors.clone()),
        };
        if anchors.is_empty() { Err(TlsSetupError::NoRoots) } else { Ok(anchors) }
    }
}

/// The certificates of the files that the user named.
pub(super) struct NamedRoots {
    anchors: RootCertStore,
    /// The same certificates whole: a server's own certificate may be among them.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl NamedRoots {
    /// Reads all files and directories named.
    ///
    /// # Errors
    /// [`TlsSetupError`] with the path of the file at fault.
    pub(super) fn read(roots: &Roots) -> Result<Self, TlsSetupError> {
        let mut named = Self { anchors: RootCertStore::empty(), certificates: Vec::new() };
        for path in roots.paths() {
            let metadata = fs::metadata(path).map_err(|source| read_error(path, source))?;
            if metadata.is_dir() {
                named.add_directory(path)?;
            } else {
                named.add_file(path)?;
            }
        }
        Ok(named)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), TlsSetupError> {
        let certificates = read_certificates(path)?;
        let mut refused = None;
        let before = self.anchors.len();
        for certificate in certificates {
            match self.anchors.add(certificate.clone()) {
                Ok(()) => self.certificates.push(certificate),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            // Bundles of systems hold odd certificates; one good one is enough.
            Some(source) if self.anchors.len() == before => {
                Err(TlsSetupError::UnusableCertificate { path: path.to_owned(), source })
            }
            Some(error) => {
                tracing::warn!(path = %path.display(), %error, "skipped an unusable certificate");
                Ok(())
            }
            None if self.anchors.len() == before => {
                Err(TlsSetupError::NoCertificate { path: path.to_owned() })
            }
            None => Ok(()),
        }
    }

    fn add_directory(&mut self, directory: &Path) -> Result<(), TlsSetupError> {
        let fail = |source| read_error(directory, source);
        let before = self.anchors.len();
        let mut seen = std::collections::HashSet::new();
        for entry in fs::read_dir(directory).map_err(fail)? {
            // Hash links (`c_rehash`) lead to the same files again.
            let Ok(path) = entry.map_err(fail)?.path().canonicalize() else { continue };
            if !path.is_file() || !seen.insert(path.clone()) {
                continue;
            }
            if let Err(error) = self.add_file(&path) {
                tracing::debug!(path = %path.display(), %error, "no CA file, skipped");
            }
        }
        if self.anchors.len() == before {
            return Err(TlsSetupError::NoCertificate { path: directory.to_owned() });
        }
        Ok(())
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let text = read_bounded(path, CA_FILE_BYTES_MAX)?;
    CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, pem::Error>>()
        .map_err(|source| TlsSetupError::Pem { path: path.to_owned(), source })
}

/// Reads a file of certificates or keys, but never an endless one.
pub(crate) fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>, TlsSetupError> {
    use std::io::Read as _;
    let fail = |source| read_error(path, source);
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(fail)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > bytes_max {
        return Err(fail(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

fn read_error(path: &Path, source: io::Error) -> TlsSetupError {
    TlsSetupError::Read { path: path.to_owned(), source }
}

/// The system's trust anchors, read once per process; a failure is not remembered.
fn system() -> Result<Arc<RootCertStore>, TlsSetupError> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(anchors) = SYSTEM.get() {
        return Ok(Arc::clone(anchors));
    }
    let found = rustls_native_certs::load_native_certs();
    let mut anchors = RootCertStore::empty();
    let (_, unusable) = anchors.add_parsable_certificates(found.certs);
    if anchors.is_empty() {
        // The path matters most where SSL_CERT_FILE names a file that is not there.
        let named = found.errors.into_iter().find_map(|error| match error.kind {
            ErrorKind::Io { inner, path } => Some(TlsSetupError::Read { path, source: inner }),
            _ => None,
        });
        return Err(named.unwrap_or(TlsSetupError::NoRoots));
    }
    tracing::debug!(anchors = anchors.len(), unusable, "read the system's trust anchors");
    Ok(Arc::clone(SYSTEM.get_or_init(|| Arc::new(anchors))))
}
