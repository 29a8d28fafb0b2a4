//! The cap on connections over all origins, and who waits for a place under it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::origin_pool::OriginPool;

/// Counts open connections of the whole pool.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Origins without any connection that wanted one when there was no place, in order; they
    /// go before the hungry.
    destitute: VecDeque<Weak<OriginPool>>,
    /// Origins with connections that wanted another one.
    hungry: VecDeque<Weak<OriginPool>>,
}

/// What other origins want of the places under the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Nothing.
    Nothing,
    /// An unused connection should go.
    Unused,
    /// Some origin has no connection at all: one in use should go as well, if others remain.
    Any,
}

/// One connection's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<Budget>,
}

impl Budget {
    pub(crate) fn new(connections_in_all: usize) -> Arc<Self> {
        let state = State {
            free: connections_in_all.max(1),
            destitute: VecDeque::new(),
            hungry: VecDeque::new(),
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.lock();
        state.free = state.free.checked_sub(1)?;
        Some(Permit { budget: Arc::clone(self) })
    }

    /// Takes a place, or notes in the same breath that `origin` wants one; it is woken when one
    /// becomes free.
    pub(crate) fn acquire_or_starve(
        self: &Arc<Self>,
        origin: &Arc<OriginPool>,
        destitute: bool,
    ) -> Option<Permit> {
        let mut state = self.lock();
        if let Some(free) = state.free.checked_sub(1) {
            state.free = free;
            return Some(Permit { budget: Arc::clone(self) });
        }
        let is_origin = |waiting: &Weak<OriginPool>| waiting.as_ptr() == Arc::as_ptr(origin);
        let queue = if destitute { &mut state.destitute } else { &mut state.hungry };
        if !queue.iter().any(is_origin) {
            queue.push_back(Arc::downgrade(origin));
        }
        None
    }

    /// What origins other than `origin` want.
    pub(crate) fn want(&self, origin: &OriginPool) -> Want {
        let state = self.lock();
        let others = |queue: &VecDeque<Weak<OriginPool>>| {
            queue.iter().any(|waiting| !std::ptr::eq(waiting.as_ptr(), origin))
        };
        if others(&state.destitute) {
            Want::Any
        } else if others(&state.hungry) {
            Want::Unused
        } else {
            Want::Nothing
        }
    }

    /// Hands a free place to the next origin that wants one.
    ///
    /// The place itself is handed over, so that the origin that gave it up cannot take it back
    /// first. An origin that wants it no longer drops it, which brings the turn to the next.
    fn hand_over(self: &Arc<Self>) {
        let (origin, permit) = loop {
            let mut state = self.lock();
            if state.free == 0 {
                return;
            }
            let next = state.destitute.pop_front().or_else(|| state.hungry.pop_front());
            let Some(next) = next else { return };
            if let Some(origin) = next.upgrade() {
                state.free -= 1;
                break (origin, Permit { budget: Arc::clone(self) });
            }
        };
        // A permit may be dropped under another origin's lock, so the wake-up runs on its own.
        if let Some(runtime) = origin.runtime() {
            runtime.spawn(async move { origin.use_permit(permit) });
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.lock().free += 1;
        self.budget.hand_over();
    }
}
