//! The tour's temporary folder, gone when the tour is, whichever way it ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::certificate::Certificate;
use super::error::TourError;

/// Attempts to remove the folder.
const REMOVE_ATTEMPTS_MAX: u32 = 5;

/// The pause between two of them.
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// A folder of its own under the system's temporary one, readable by its owner alone.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Taken only on drop.
    folder: Option<tempfile::TempDir>,
    authority: PathBuf,
}

impl Scratch {
    /// Makes the folder and puts the authority's certificate there, for clients that want a file.
    ///
    /// # Errors
    /// [`TourError::Folder`].
    pub(super) fn make(certificate: &Certificate) -> Result<Self, TourError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TourError::Folder { path, source }
        };
        let folder = tempfile::Builder::new()
            .prefix("trunkline-tour-")
            .tempdir()
            .map_err(failed(&std::env::temp_dir()))?;
        let authority = folder.path().join("authority.pem");
        std::fs::write(&authority, certificate.authority_pem()).map_err(failed(&authority))?;
        Ok(Self { folder: Some(folder), authority })
    }

    /// The certificate of the authority to trust.
    pub(super) fn authority(&self) -> &Path {
        &self.authority
    }

    /// Makes a folder inside.
    ///
    /// # Errors
    /// [`TourError::Folder`].
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, TourError> {
        let folder = self.folder.as_ref().expect("taken only on drop");
        let path = folder.path().join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(TourError::Folder { path, source }),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(folder) = self.folder.take() else { return };
        let path = folder.keep();
        // A transfer that was dropped may still be creating a file on another thread, and a
        // folder that is filled while it is emptied is not removed.
        for _ in 0..REMOVE_ATTEMPTS_MAX {
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    std::thread::sleep(REMOVE_PAUSE);
                }
                _ => return,
            }
        }
        tracing::warn!(path = %path.display(), "the temporary folder could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_behind() {
        let scratch = Scratch::make(&Certificate::make().unwrap()).unwrap();
        let folder = scratch.folder("cold").unwrap();
        std::fs::write(folder.join("file"), "bytes").unwrap();
        let root = folder.parent().unwrap().to_owned();
        drop(scratch);
        assert!(!root.exists());
    }

    #[test]
    fn no_key_is_written_down() {
        let scratch = Scratch::make(&Certificate::make().unwrap()).unwrap();
        let pem = std::fs::read_to_string(scratch.authority()).unwrap();
        assert!(pem.contains("BEGIN CERTIFICATE"));
        assert!(!pem.contains("PRIVATE"));
    }
}
