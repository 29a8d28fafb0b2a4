//! What happens during transfers, for whoever shows it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::display::SafeUrl;
use crate::error::Error;

/// The number of a job in its plan, from 0.
pub type JobId = u64;

/// Something that happened to a job.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The job left the queue.
    Started {
        /// The URL.
        url: &'a SafeUrl,
        /// Where the bytes go.
        destination: &'a PathBuf,
    },
    /// The answer's head came.
    Head {
        /// The whole length in bytes, when the server tells it.
        length: Option<u64>,
        /// Bytes already there from an earlier run.
        resumed_from: u64,
    },
    /// Bytes of the body came (not a total).
    Received {
        /// How many.
        bytes: u64,
    },
    /// Bytes counted before have to be fetched again, since the file changed or the server
    /// cannot resume.
    Restarted {
        /// How many.
        bytes: u64,
    },
    /// An attempt failed; another follows.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The pause before the next one.
        pause: Duration,
        /// What went wrong.
        reason: &'a str,
    },
    /// The destination is complete.
    Done {
        /// What was received.
        receipt: &'a Receipt,
    },
    /// The job failed for good.
    Failed {
        /// Why.
        error: &'a Arc<Error>,
    },
}

/// A completed transfer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Receipt {
    /// The file's size in bytes.
    pub bytes: u64,
    /// Of these, bytes that came over the network in this run.
    pub bytes_received: u64,
    /// Attempts made.
    pub attempts: u32,
    /// Whether the destination was already complete and was left alone.
    pub unchanged: bool,
    /// Time from the start of the job to the file under its final name.
    pub elapsed: Duration,
}

/// Receives events; called from the engine's tasks, so it must be quick and must not block.
pub trait Observer: Send + Sync {
    /// Something happened to job `job`.
    fn event(&self, job: JobId, event: Event<'_>);
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _job: JobId, _event: Event<'_>) {}
}
