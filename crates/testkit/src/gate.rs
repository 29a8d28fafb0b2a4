//! A gate that holds a response until the test opens it: order without sleeping.

use std::sync::Arc;
use tokio::sync::watch;

/// Holds every response that waits on it until [`open`](Gate::open) is called; open for ever
/// afterwards. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self { state: Arc::new(watch::Sender::new(false)) }
    }

    /// Lets everything pass, now and later.
    pub fn open(&self) {
        self.state.send_replace(true);
    }

    pub(crate) async fn passed(&self) {
        // An error would mean that the sender is gone, and we hold it.
        let _ = self.state.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
