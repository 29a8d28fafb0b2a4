//! When a failed exchange is tried again, and after how long: pure, with chance as an argument.

use std::time::Duration;

use http::StatusCode;
use trunkline_transport::{Error as Transport, RetryClass};

use crate::error::ErrorKind;

/// Attempts after the first one, unless asked otherwise.
pub const RETRIES_DEFAULT: u32 = 5;

/// Tries on another connection that cost nothing, since the request never reached a server: a
/// bound against a server that refuses every stream.
pub const FREE_RETRIES_MAX: u32 = 16;

/// The first pause; it doubles with each attempt.
pub const PAUSE_FIRST: Duration = Duration::from_millis(500);

/// The longest pause of our own choice.
pub const PAUSE_MAX: Duration = Duration::from_secs(20);

/// The longest Retry-After that is waited for; a longer one is reported to the user instead.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// How often and how patiently to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one. An attempt that brought new bytes does not count.
    pub retries: u32,
    /// The first pause; it doubles with each attempt that brought nothing.
    pub pause_first: Duration,
    /// The longest pause of our own choice.
    pub pause_max: Duration,
    /// The longest Retry-After that is waited for.
    pub retry_after_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: RETRIES_DEFAULT,
            pause_first: PAUSE_FIRST,
            pause_max: PAUSE_MAX,
            retry_after_max: RETRY_AFTER_MAX,
        }
    }
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Give up: another try gives the same answer.
    Never,
    /// Try at once on another connection; it does not count as an attempt.
    Free,
    /// Try after a growing pause.
    Pause,
    /// Try after the time that the server named.
    After(Duration),
}

/// Whether the failure of an exchange may be followed by another try.
pub(crate) fn decide(kind: &ErrorKind, idempotent: bool) -> Again {
    match kind {
        ErrorKind::Connection(error) => decide_transport(error, idempotent),
        ErrorKind::Pool(trunkline_pool::Error::Dial(error)) => {
            // Nothing was sent, so the method does not matter.
            match error.retry() {
                RetryClass::Never => Again::Never,
                _ => Again::Pause,
            }
        }
        ErrorKind::Status { status, retry_after, .. } if is_passing(*status) => {
            let safe = idempotent || was_not_processed(*status);
            match (safe, retry_after) {
                (false, _) => Again::Never,
                (true, Some(wait)) => Again::After(*wait),
                (true, None) => Again::Pause,
            }
        }
        ErrorKind::Stalled { .. } | ErrorKind::Length { .. } if idempotent => Again::Pause,
        ErrorKind::RangeMismatch { .. } if idempotent => Again::Pause,
        _ => Again::Never,
    }
}

fn decide_transport(error: &Transport, idempotent: bool) -> Again {
    match error.retry() {
        RetryClass::Unsent => Again::Free,
        RetryClass::Reused if idempotent => Again::Free,
        RetryClass::Idempotent if idempotent => Again::Pause,
        _ => Again::Never,
    }
}

/// Statuses that may pass by themselves; every other 4xx and 5xx is final at once.
pub(crate) fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// Statuses that say that the request was not acted upon.
fn was_not_processed(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 503)
}

/// The pause before attempt `attempt` (1 = the first repetition): exponential with full jitter.
/// `chance` lies in `0.0..1.0`.
pub(crate) fn pause(policy: &RetryPolicy, attempt: u32, chance: f64) -> Duration {
    let doubled = policy.pause_first.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let longest = doubled.min(policy.pause_max);
    // Half is certain, half is chance: never a stampede, never no pause at all.
    longest.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, retry_after: Option<Duration>) -> ErrorKind {
        let status = StatusCode::from_u16(code).unwrap();
        ErrorKind::Status { status, detail: String::new(), retry_after }
    }

    #[test]
    fn client_errors_are_final_but_for_those_that_pass() {
        for code in [400, 404, 405, 410, 413, 415, 416, 501, 505] {
            assert_eq!(decide(&status(code, None), true), Again::Never, "{code}");
        }
        for code in [408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(decide(&status(code, None), true), Again::Pause, "{code}");
        }
    }

    #[test]
    fn the_servers_wait_is_honoured() {
        let wait = Duration::from_secs(7);
        assert_eq!(decide(&status(503, Some(wait)), true), Again::After(wait));
    }

    #[test]
    fn a_post_is_repeated_only_when_nothing_was_done() {
        assert_eq!(decide(&status(500, None), false), Again::Never);
        assert_eq!(decide(&status(503, None), false), Again::Pause);
        assert_eq!(decide(&ErrorKind::Connection(Transport::Truncated), false), Again::Never);
        assert_eq!(decide(&ErrorKind::Connection(Transport::RefusedStream), false), Again::Free);
        let reused = Transport::ClosedBeforeAnswer { reused: true };
        assert_eq!(decide(&ErrorKind::Connection(reused), false), Again::Never);
        let reused = Transport::ClosedBeforeAnswer { reused: true };
        assert_eq!(decide(&ErrorKind::Connection(reused), true), Again::Free);
    }

    #[test]
    fn pauses_double_up_to_the_limit() {
        let policy = RetryPolicy::default();
        assert_eq!(pause(&policy, 1, 1.0), Duration::from_millis(500));
        assert_eq!(pause(&policy, 3, 1.0), Duration::from_secs(2));
        assert_eq!(pause(&policy, 3, 0.0), Duration::from_secs(1));
        assert_eq!(pause(&policy, 60, 1.0), PAUSE_MAX);
    }
}
