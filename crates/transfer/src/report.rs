//! What became of a plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Class, Error};
use crate::event::JobId;

/// Failures kept in a report; the rest are counted. Each failure was an event before.
pub const FAILURES_KEPT_MAX: usize = 1000;

/// The sum of a plan's jobs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Jobs that ended with a complete file.
    pub done: u64,
    /// Of these, those left alone since they were complete before.
    pub unchanged: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs not begun or not ended when the plan was stopped.
    pub cancelled: u64,
    /// Bytes of bodies received over the network.
    pub bytes_received: u64,
    /// Repeated attempts.
    pub retries: u64,
    /// Failures by class.
    pub classes: BTreeMap<Class, u64>,
    /// The first failures, in the order in which they happened.
    pub failures: Vec<(JobId, Arc<Error>)>,
    /// Time from the first job's start to the last one's end.
    pub elapsed: Duration,
}

impl Report {
    /// Whether every job ended with a complete file.
    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.cancelled == 0
    }

    /// Counts entries of a list that never became jobs.
    pub fn add_unusable(&mut self, class: Class, count: u64) {
        self.failed += count;
        *self.classes.entry(class).or_default() += count;
    }

    pub(crate) fn add_failure(&mut self, job: JobId, error: Arc<Error>) {
        self.failed += 1;
        self.retries += u64::from(error.attempts.saturating_sub(1));
        *self.classes.entry(error.kind.class()).or_default() += 1;
        if self.failures.len() < FAILURES_KEPT_MAX {
            self.failures.push((job, error));
        }
    }
}
