//! Where objects and refs are kept: one trait, several stores, one conformance suite.
//!
//! Calls block; the service makes them on threads that may.

mod directory;
mod memory;

#[cfg(test)]
mod conformance;

use std::io;
use std::path::PathBuf;

pub(crate) use directory::read_all;
pub use directory::{DirectoryStore, Durability};
pub use memory::MemoryStore;
use trunkline_proto::ostree::{Checksum, ObjectId, RefName};

use crate::routes::Namespace;

/// A store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store's own files cannot be used.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A ref's file holds no checksum.
    #[error("ref `{name}` holds no checksum")]
    RefDamaged {
        /// The ref.
        name: RefName,
    },
    /// Bytes of an object could not be read to the end.
    #[error("cannot read an object: {0}")]
    Read(#[source] io::Error),
}

/// What a store knows of a stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Stored length in bytes.
    pub bytes: u64,
    /// Changes whenever the stored bytes do; without quotes.
    pub tag: String,
}

/// An object's bytes from some offset on.
pub type Reader = Box<dyn io::Read + Send>;

/// A document is small and named by a path: a manifest, a delta's part, a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `deltas/..`
    Delta(String),
    /// `manifests/<commit>`
    Manifest(Checksum),
    /// `summary`
    Summary,
    /// `summary.sig`
    SummarySignature,
}

impl Document {
    /// Its path below a namespace.
    pub fn path(&self) -> String {
        match self {
            Self::Delta(path) => path.clone(),
            Self::Manifest(commit) => format!("manifests/{commit}"),
            Self::Summary => "summary".to_owned(),
            Self::SummarySignature => "summary.sig".to_owned(),
        }
    }
}

/// Bytes on their way to become an object. Dropped, it leaves nothing behind.
pub trait Staged: Send {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// When the store cannot take them.
    fn write(&mut self, data: &[u8]) -> Result<(), StoreError>;

    /// Says that all bytes were written; what the store holds open for writing is let go.
    ///
    /// # Errors
    /// When the store cannot keep them.
    fn seal(&mut self) -> Result<(), StoreError>;

    /// Makes the object visible, whole and at once. The caller has verified its bytes. An object
    /// that is there already is replaced by these bytes.
    ///
    /// # Errors
    /// When the store cannot.
    fn publish(self: Box<Self>) -> Result<(), StoreError>;
}

/// A place for objects and refs of many namespaces.
pub trait Store: Send + Sync + 'static {
    /// Length and tag of an object; `None` when it is not there.
    ///
    /// # Errors
    /// When the store cannot say.
    fn stat(&self, namespace: &Namespace, id: &ObjectId) -> Result<Option<Stat>, StoreError>;

    /// Opens an object at an offset in bytes.
    ///
    /// # Errors
    /// When the store cannot read it.
    fn open(
        &self,
        namespace: &Namespace,
        id: &ObjectId,
        offset: u64,
    ) -> Result<Option<(Stat, Reader)>, StoreError>;

    /// Starts an object.
    ///
    /// # Errors
    /// When the store takes nothing.
    fn stage(&self, namespace: &Namespace, id: &ObjectId) -> Result<Box<dyn Staged>, StoreError>;

    /// Makes everything sealed so far survive a power cut, if the store was told to care.
    ///
    /// # Errors
    /// When it cannot.
    fn settle(&self, namespace: &Namespace) -> Result<(), StoreError>;

    /// Where a ref points.
    ///
    /// # Errors
    /// When the store cannot say.
    fn read_ref(
        &self,
        namespace: &Namespace,
        name: &RefName,
    ) -> Result<Option<Checksum>, StoreError>;

    /// Moves a ref from `expected` to `new`; `false` when it points elsewhere by now.
    ///
    /// # Errors
    /// When the store cannot.
    fn swap_ref(
        &self,
        namespace: &Namespace,
        name: &RefName,
        expected: Option<Checksum>,
        new: Checksum,
    ) -> Result<bool, StoreError>;

    /// All refs in order of name.
    ///
    /// # Errors
    /// When the store cannot list them.
    fn refs(&self, namespace: &Namespace) -> Result<Vec<(RefName, Checksum)>, StoreError>;

    /// A document's bytes.
    ///
    /// # Errors
    /// When the store cannot read it.
    fn read_document(
        &self,
        namespace: &Namespace,
        document: &Document,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes a document, whole and at once.
    ///
    /// # Errors
    /// When the store cannot.
    fn write_document(
        &self,
        namespace: &Namespace,
        document: &Document,
        data: &[u8],
    ) -> Result<(), StoreError>;
}
