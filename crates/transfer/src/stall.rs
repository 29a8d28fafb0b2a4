//! The stall rule: a transfer ends when *nothing* came from its origin for the whole time
//! allowed, however long it had to wait for its turn.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use trunkline_transport::Meter;

use crate::error::ErrorKind;

/// How often within the time allowed the clock looks: a stall is noticed at most a quarter late.
const LOOKS: u32 = 4;

/// Watches one exchange. It starts when the request is sent, never while it queues.
pub(crate) struct StallClock {
    meter: Arc<Meter>,
    after: Duration,
    seen: u64,
    quiet_looks: u32,
    look: Pin<Box<Sleep>>,
}

impl StallClock {
    pub(crate) fn start(meter: Arc<Meter>, after: Duration) -> Self {
        let seen = meter.payload();
        Self { meter, after, seen, quiet_looks: 0, look: Box::pin(sleep(after / LOOKS)) }
    }

    /// Waits for `work` as long as the origin shows any life.
    ///
    /// The timer is only touched while `work` has to wait and never on a chunk that is at hand.
    pub(crate) async fn watch<F: Future>(&mut self, work: F) -> Result<F::Output, ErrorKind> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            while self.look.as_mut().poll(cx).is_ready() {
                let moved = self.meter.payload();
                self.quiet_looks = if moved == self.seen { self.quiet_looks + 1 } else { 0 };
                self.seen = moved;
                if self.quiet_looks >= LOOKS {
                    return Poll::Ready(Err(ErrorKind::Stalled { after: self.after }));
                }
                self.look.as_mut().reset(Instant::now() + self.after / LOOKS);
            }
            Poll::Pending
        })
        .await
    }
}
