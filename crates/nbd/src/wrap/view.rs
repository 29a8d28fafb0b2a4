//! A part of an export, as an export.

use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use crate::content::Content;
use crate::error::Error;
use crate::export::{Export, Extent, Verb, Writable, Zeroing};

/// A view that does not fit.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("bytes {start} to {end} are not all within the image of {size} bytes")]
pub struct ViewError {
    start: u64,
    end: u64,
    size: u64,
}

/// Bytes of an export from an offset on.
#[derive(Debug)]
pub struct View {
    inner: Arc<dyn Export>,
    start: u64,
    size: u64,
}

impl View {
    /// `size` bytes of `inner` from `start` on; all that follow when `size` is `None`.
    ///
    /// # Errors
    /// [`ViewError`] when they are not all there.
    pub fn new(inner: Arc<dyn Export>, start: u64, size: Option<u64>) -> Result<Self, ViewError> {
        let whole = inner.size();
        let rest = whole.checked_sub(start);
        match (rest, size.or(rest)) {
            (Some(rest), Some(size)) if size <= rest => Ok(Self { inner, start, size }),
            (_, size) => {
                let end = start.saturating_add(size.unwrap_or(0));
                Err(ViewError { start, end, size: whole })
            }
        }
    }

    fn inner_writable(&self) -> Result<&dyn Writable, Error> {
        self.inner.writable().ok_or(Error::ReadOnly)
    }
}

impl Export for View {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        self.inner.read(self.start + offset, length)
    }

    fn extents(&self, offset: u64, length: u64) -> Verb<'_, Vec<Extent>> {
        Box::pin(async move {
            let mut extents = self.inner.extents(self.start + offset, length).await?;
            // What lies behind the view must not show.
            let mut left = self.size - offset;
            extents.retain_mut(|extent| {
                extent.length = extent.length.min(left);
                left -= extent.length;
                extent.length > 0
            });
            Ok(extents)
        })
    }

    fn prefetch(&self, offset: u64, length: u64) -> Verb<'_, ()> {
        self.inner.prefetch(self.start + offset, length)
    }

    fn writable(&self) -> Option<&dyn Writable> {
        self.inner.writable().map(|_| self as &dyn Writable)
    }

    fn preferred_block_bytes(&self) -> u32 {
        self.inner.preferred_block_bytes()
    }

    fn identity(&self) -> Option<String> {
        let inner = self.inner.identity()?;
        Some(format!("{inner} from {} for {}", self.start, self.size))
    }
}

impl Writable for View {
    fn write(&self, offset: u64, bytes: Bytes) -> Verb<'_, ()> {
        Box::pin(async move { self.inner_writable()?.write(self.start + offset, bytes).await })
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> Verb<'_, ()> {
        Box::pin(async move { self.inner_writable()?.zero(self.start + offset, length, how).await })
    }

    fn flush(&self) -> Verb<'_, ()> {
        Box::pin(async move { self.inner_writable()?.flush().await })
    }
}
