//! Keeps count of attempts and waits between them.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use url::Url;

use crate::error::{Error, ErrorKind};
use crate::retry::{Again, FREE_RETRIES_MAX, RetryPolicy, decide, pause};

/// The attempts at one transfer.
#[derive(Debug)]
pub(crate) struct Retrier {
    policy: RetryPolicy,
    idempotent: bool,
    /// Attempts begun.
    pub(crate) attempts: u32,
    /// Attempts since the last progress.
    fruitless: u32,
    free: u32,
}

impl Retrier {
    pub(crate) fn new(policy: RetryPolicy, idempotent: bool) -> Self {
        Self { policy, idempotent, attempts: 1, fruitless: 0, free: 0 }
    }

    /// How long to wait before the next attempt; the error itself when there is none.
    /// `progressed` tells that the failed attempt brought something that is kept.
    pub(crate) fn next(
        &mut self,
        url: &Url,
        kind: ErrorKind,
        progressed: bool,
    ) -> Result<Planned, Error> {
        if progressed {
            self.fruitless = 0;
            self.free = 0;
        }
        let again = decide(&kind, self.idempotent);
        let wait = match again {
            Again::Never => return Err(Error::new(url, kind, self.attempts)),
            Again::Free if self.free < FREE_RETRIES_MAX => {
                self.free += 1;
                return Ok(Planned { wait: Duration::ZERO, kind, counted: false });
            }
            Again::After(wait) if wait > self.policy.retry_after_max => {
                let kind = match kind.status() {
                    Some(status) => ErrorKind::RetryLater { status, wait },
                    None => kind,
                };
                return Err(Error::new(url, kind, self.attempts));
            }
            Again::After(wait) => Some(wait),
            Again::Free | Again::Pause => None,
        };
        self.fruitless += 1;
        if self.fruitless > self.policy.retries {
            return Err(Error::new(url, kind, self.attempts));
        }
        self.attempts += 1;
        let wait = wait.unwrap_or_else(|| pause(&self.policy, self.fruitless, chance()));
        Ok(Planned { wait, kind, counted: true })
    }
}

/// A next attempt.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) wait: Duration,
    /// Why the last one failed.
    pub(crate) kind: ErrorKind,
    /// Whether it counts as a retry for the user.
    pub(crate) counted: bool,
}

/// A number in `0.0..1.0`. The hasher's random keys are chance enough to spread retries.
fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0u8) >> 11;
    bits as f64 / (1u64 << 53) as f64
}
