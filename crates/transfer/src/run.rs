//! Many jobs: a bounded number in flight, one failure stops nothing else, a report at the end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::error::Error;
use crate::event::{JobId, Observer, Receipt};
use crate::plan::{Job, LaneChoice};
use crate::report::Report;

/// Transfers in flight unless asked otherwise: fills six HTTP/2 connections at 20 ms without
/// holding more than 32 MiB of bodies.
pub const IN_FLIGHT_DEFAULT: usize = 256;

/// How long the first job waits to learn whether it is the only one.
const ALONE_WAIT: Duration = Duration::from_millis(50);

impl Engine {
    /// Runs jobs in the order in which they come, up to `in_flight` at a time. The jobs are
    /// pulled as they are needed, so a list of any length takes no memory.
    ///
    /// When `stop` is ready, transfers under way are dropped (see [`fetch`](Self::fetch) for
    /// what stays on disk) and the report counts them as cancelled.
    pub async fn run(
        &self,
        jobs: impl Stream<Item = Job>,
        in_flight: usize,
        observer: Arc<dyn Observer>,
        stop: impl Future<Output = ()>,
    ) -> Report {
        let started = Instant::now();
        let mut jobs = pin!(jobs.fuse().peekable());
        let mut stop = pin!(stop);
        let mut running = JoinSet::new();
        let mut report = Report::default();
        let mut next_id: JobId = 0;
        let mut more = true;
        while more || !running.is_empty() {
            let has_room = running.len() < in_flight.max(1);
            tokio::select! {
                biased;
                () = &mut stop => {
                    report.cancelled = running.len() as u64;
                    running.shutdown().await;
                    break;
                }
                Some(ended) = running.join_next() => record(&mut report, ended),
                job = jobs.next(), if more && has_room => match job {
                    None => more = false,
                    Some(mut job) => {
                        if next_id == 0 && is_alone(jobs.as_mut().peek()).await {
                            // Alone: nothing to multiplex, perhaps much to carry.
                            job.lane = LaneChoice::Range;
                        }
                        let (engine, observer, id) = (self.clone(), Arc::clone(&observer), next_id);
                        next_id += 1;
                        // Boxed: a task moves its future several times, and this one is large.
                        running.spawn(Box::pin(async move {
                            (id, engine.fetch(id, &job, &observer).await)
                        }));
                    }
                },
            }
        }
        report.elapsed = started.elapsed();
        report
    }
}

/// Whether no other job follows; a list that hesitates may have more.
async fn is_alone<T>(next: impl Future<Output = Option<T>>) -> bool {
    matches!(tokio::time::timeout(ALONE_WAIT, next).await, Ok(None))
}

type Ended = Result<(JobId, Result<Receipt, Arc<Error>>), tokio::task::JoinError>;

fn record(report: &mut Report, ended: Ended) {
    match ended {
        Ok((_, Ok(receipt))) => {
            report.done += 1;
            report.unchanged += u64::from(receipt.unchanged);
            report.bytes_received += receipt.bytes_received;
            report.retries += u64::from(receipt.attempts.saturating_sub(1));
        }
        Ok((id, Err(error))) => report.add_failure(id, error),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => report.cancelled += 1,
    }
}
