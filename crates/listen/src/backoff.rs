//! What to do when accepting fails: go on at once, or wait so as not to spin.

use rustix::io::Errno;
use std::io;
use std::time::Duration;

const WAIT_FIRST: Duration = Duration::from_millis(5);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Counts failures in a row. Pure: the caller waits.
#[derive(Debug, Default)]
pub(crate) struct AcceptBackoff {
    wait: Duration,
}

impl AcceptBackoff {
    /// A connection was accepted: the next failure is a first one.
    pub(crate) fn succeeded(&mut self) {
        self.wait = Duration::ZERO;
    }

    /// How long to wait before accepting again. `None` means at once: the failure was of the one
    /// connection that was to be accepted (accept(2) passes on pending network errors).
    ///
    /// Everything else lasts: no descriptors or memory left (`EMFILE`, `ENFILE`, `ENOBUFS`,
    /// `ENOMEM`) leaves the connection in the queue, so accepting at once would fail at once.
    pub(crate) fn failed(&mut self, error: &io::Error) -> Option<Duration> {
        if concerns_one_connection(error) {
            return None;
        }
        self.wait = if self.wait.is_zero() { WAIT_FIRST } else { (self.wait * 2).min(WAIT_MAX) };
        Some(self.wait)
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(
            Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::INTR
                | Errno::PERM
                | Errno::PROTO
                | Errno::HOSTUNREACH
                | Errno::NETUNREACH
                | Errno::NETDOWN
                | Errno::TIMEDOUT
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_descriptors_waits_longer_each_time_up_to_a_second() {
        let mut backoff = AcceptBackoff::default();
        let error = io::Error::from(Errno::MFILE);
        let waits: Vec<u128> =
            (0..10).map(|_| backoff.failed(&error).map_or(0, |wait| wait.as_millis())).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        backoff.succeeded();
        assert_eq!(backoff.failed(&error), Some(WAIT_FIRST));
    }

    #[test]
    fn a_client_that_left_while_queued_costs_no_wait() {
        let mut backoff = AcceptBackoff::default();
        assert_eq!(backoff.failed(&io::Error::from(Errno::CONNABORTED)), None);
        assert_eq!(backoff.failed(&io::Error::from(Errno::NOMEM)), Some(WAIT_FIRST));
    }
}
