//! One request under way, seen from R's thread.

use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::task::AbortHandle;
use trunkline_transfer::{Event, JobId, Observer};

/// A request under way. Dropping it stops what it asked for.
#[derive(Debug)]
pub struct Job {
    pub(crate) shared: Arc<Shared>,
    pub(crate) abort: Option<AbortHandle>,
    /// The reply, once it was taken from `shared`.
    pub(crate) reply: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    reply: Mutex<Option<Vec<u8>>>,
    arrived: Condvar,
    pub(crate) progress: Arc<Progress>,
}

impl Shared {
    pub(crate) fn finish(&self, reply: Vec<u8>) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
        self.arrived.notify_all();
    }
}

impl Job {
    /// Waits for the reply for a while; `true` when it is there.
    pub fn wait(&mut self, for_at_most: Duration) -> bool {
        let reply = self.shared.reply.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.arrived.wait_timeout_while(reply, for_at_most, |r| r.is_none());
        let (mut reply, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(reply) = reply.take() {
            self.reply = reply;
        }
        !self.reply.is_empty()
    }

    /// The reply: a serialized R value; empty before [`wait`](Self::wait) returned `true`.
    #[must_use]
    pub fn reply(&self) -> &[u8] {
        &self.reply
    }

    /// How far the transfers are.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.shared.progress
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(abort) = &self.abort {
            abort.abort();
        }
    }
}

/// Bytes of all transfers of a job together.
#[derive(Debug, Default)]
pub struct Progress {
    received: AtomicU64,
    expected: AtomicU64,
}

impl Progress {
    /// Bytes received so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Bytes announced so far; 0 while nothing is known.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }
}

impl Observer for Progress {
    fn event(&self, _job: JobId, event: Event<'_>) {
        match event {
            Event::Head { length: Some(length), .. } => {
                self.expected.fetch_add(length, Ordering::Relaxed);
            }
            Event::Received { bytes } => {
                self.received.fetch_add(bytes, Ordering::Relaxed);
            }
            Event::Restarted { bytes } => {
                self.received.fetch_sub(bytes, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}
