//! The cap on connections over all origins, and who waits for a place under it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::origin_pool::OriginPool;

/// Counts open connections of the whole pool.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Origins that wanted a connection when there was no place, in order.
    starving: VecDeque<Weak<OriginPool>>,
}

/// One connection's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<Budget>,
}

impl Budget {
    pub(crate) fn new(connections_in_all: usize) -> Arc<Self> {
        let state = State { free: connections_in_all.max(1), starving: VecDeque::new() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(crate) fn acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.free = state.free.checked_sub(1)?;
        Some(Permit { budget: Arc::clone(self) })
    }

    /// Notes that `origin` wants a place; it is woken when one becomes free.
    pub(crate) fn starve(&self, origin: &Arc<OriginPool>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.starving.iter().any(|waiting| waiting.as_ptr() == Arc::as_ptr(origin)) {
            state.starving.push_back(Arc::downgrade(origin));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.budget.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.free += 1;
            state.starving.pop_front()
        };
        let Some(origin) = next.and_then(|origin| origin.upgrade()) else { return };
        // A permit may be dropped under another origin's lock, so the wake-up runs on its own.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { origin.pump() });
        }
    }
}
