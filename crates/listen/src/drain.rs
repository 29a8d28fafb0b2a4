//! The graceful stop: no new work, time for what is under way, then an end.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Stops servers and sessions gracefully. Clones are the same drain.
#[derive(Clone, Debug)]
pub struct Drain {
    state: Arc<watch::Sender<bool>>,
    deadline: Duration,
}

impl Drain {
    /// A drain that gives sessions under way that long to finish once it is started.
    pub fn new(deadline: Duration) -> Self {
        Self { state: Arc::new(watch::Sender::new(false)), deadline }
    }

    /// Begins the stop: servers stop accepting, sessions that watch [`started`](Self::started)
    /// finish what they are at.
    pub fn start(&self) {
        self.state.send_replace(true);
    }

    /// Whether the stop has begun.
    pub fn is_started(&self) -> bool {
        *self.state.borrow()
    }

    /// Resolves once the stop has begun; at once if it has. Cancel safe.
    pub async fn started(&self) {
        // It fails only when the sender is gone, and we hold it.
        let _ = self.state.subscribe().wait_for(|started| *started).await;
    }

    /// How long sessions have after the start.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }
}

/// How a server's sessions ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Sessions that ended by themselves, over the server's whole life.
    pub finished: u64,
    /// Sessions cut off at the deadline.
    pub cut_off: u64,
}
