//! Lets writers of overlapping ranges take turns, and all others go at once.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Ranges that are being written.
#[derive(Debug, Default)]
pub(super) struct RangeLock {
    held: Mutex<Vec<Range<u64>>>,
    freed: Notify,
}

/// A range that is being written; freed on drop.
#[derive(Debug)]
pub(super) struct Held<'a> {
    lock: &'a RangeLock,
    range: Range<u64>,
}

impl RangeLock {
    /// Waits until no overlapping range is held, and holds this one. Ranges must not be empty.
    pub(super) async fn hold(&self, range: Range<u64>) -> Held<'_> {
        loop {
            // Asked for before the look, so that what is freed in between is not missed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            {
                let mut held = self.held();
                if !held.iter().any(|other| other.start < range.end && range.start < other.end) {
                    held.push(range.clone());
                    return Held { lock: self, range };
                }
            }
            freed.await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.lock.held();
        if let Some(at) = held.iter().position(|range| *range == self.range) {
            held.swap_remove(at);
        }
        drop(held);
        self.lock.freed.notify_waiters();
    }
}
