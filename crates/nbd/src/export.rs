//! What is served: a sized run of bytes that can be read anywhere, and perhaps written.
//!
//! Sources and wraps implement the same two traits, so that they stack: a partition of an
//! overlay over a read-ahead over a remote file is itself an export.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::content::Content;
use crate::error::Error;

/// A future of an export's verb.
pub type Verb<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// An image. Every verb may run many times at once; ranges lie within the size, which the
/// session has checked, and are not empty.
pub trait Export: Debug + Send + Sync {
    /// Size in bytes; never changes.
    fn size(&self) -> u64;

    /// The bytes of a range: exactly `length` of them, or an error.
    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content>;

    /// What is known of the range's allocation: extents that follow one another from `offset`,
    /// one at least. They may cover less than `length` or reach beyond it.
    fn extents(&self, offset: u64, length: u64) -> Verb<'_, Vec<Extent>> {
        let _ = offset;
        Box::pin(async move { Ok(vec![Extent { length, kind: ExtentKind::Data }]) })
    }

    /// Starts to bring the range near, since reads of it will follow. May do nothing.
    fn prefetch(&self, offset: u64, length: u64) -> Verb<'_, ()> {
        let _ = (offset, length);
        Box::pin(async { Ok(()) })
    }

    /// The verbs of writing, when the export takes writes.
    fn writable(&self) -> Option<&dyn Writable> {
        None
    }

    /// Size of requests that suits the export, in bytes: a power of two, 512 at least.
    fn preferred_block_bytes(&self) -> u32 {
        4096
    }

    /// What tells this content from any other, for caches and overlays that outlive the process:
    /// an address with a validator, say. `None` when nothing can vouch for it.
    fn identity(&self) -> Option<String> {
        None
    }
}

/// The verbs of an export that takes writes. All connections see one state, and a flush covers
/// the finished writes of all of them.
pub trait Writable: Debug + Send + Sync {
    /// Writes bytes.
    fn write(&self, offset: u64, bytes: Bytes) -> Verb<'_, ()>;

    /// Makes a range read as zeroes.
    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> Verb<'_, ()>;

    /// Makes all finished writes durable.
    fn flush(&self) -> Verb<'_, ()>;
}

/// How zeroes are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeroing {
    /// Whether the space may be given back.
    pub may_unmap: bool,
    /// Whether to fail with [`Error::NotFast`] rather than write actual zeroes.
    pub only_fast: bool,
}

/// A run of bytes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes; not zero.
    pub length: u64,
    /// What they are.
    pub kind: ExtentKind,
}

/// What is known of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentKind {
    /// Data, or unknown.
    Data,
    /// Allocated, but reads as zeroes.
    Zero,
    /// Not allocated; reads as zeroes.
    Hole,
}

/// Appends an extent, joining it to the last when they are of one kind.
pub(crate) fn push_extent(extents: &mut Vec<Extent>, extent: Extent) {
    match extents.last_mut() {
        _ if extent.length == 0 => {}
        Some(last) if last.kind == extent.kind => last.length += extent.length,
        _ => extents.push(extent),
    }
}

/// The exports of one server, by name.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
}

/// One export of a [`Catalogue`].
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name that clients use; may be empty.
    pub name: String,
    /// Text for people.
    pub description: String,
    /// The image.
    pub export: Arc<dyn Export>,
}

impl Catalogue {
    /// Adds an export. The first one is also found under the empty name.
    pub fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// The export of that name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let exact = self.entries.iter().find(|entry| entry.name == name);
        exact.or_else(|| self.entries.first().filter(|_| name.is_empty()))
    }

    /// All exports in the order they were added.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
