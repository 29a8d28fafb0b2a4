//! A limit on the bytes a second of all transfers together.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How far ahead of the clock a burst may run.
const BURST: Duration = Duration::from_millis(100);

/// A shared limit: each taker is told when its bytes are due, in order.
#[derive(Debug)]
pub(crate) struct RateLimit {
    bytes_per_second: u64,
    /// When everything taken so far is paid for.
    paid_until: Mutex<Option<Instant>>,
}

impl RateLimit {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), paid_until: Mutex::default() }
    }

    /// Accounts for `bytes` and waits until they are due.
    pub(crate) async fn take(&self, bytes: usize) {
        let due = self.account(bytes, Instant::now());
        sleep_until(due).await;
    }

    fn account(&self, bytes: usize, now: Instant) -> Instant {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let mut paid_until = self.paid_until.lock().unwrap_or_else(PoisonError::into_inner);
        let start = paid_until.map_or(now, |until| until.max(now));
        let until = start + cost;
        *paid_until = Some(until);
        // Short waits are saved up: a timer a chunk would cost more than it spreads.
        if until <= now + BURST { now } else { until - BURST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ten_takers_share_the_rate() {
        let limit = RateLimit::new(1000);
        let now = Instant::now();
        let due: Vec<_> = (0..10).map(|_| limit.account(500, now) - now).collect();
        assert_eq!(due[0], Duration::from_millis(400));
        assert_eq!(due[9], Duration::from_millis(4900));
        assert_eq!(limit.account(1, now + Duration::from_secs(60)), now + Duration::from_secs(60));
    }
}
