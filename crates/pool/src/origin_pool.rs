//! The connections of one origin: hands out leases, dials, and learns from what happens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use trunkline_transport::{
    self as transport, Connection, Dialled, Handshake, Lane, Meter, Origin, OriginSettings,
};

use crate::budget::{Budget, Permit, Want};
use crate::error::Error;
use crate::lease::{ObjectLease, RangeLease};
use crate::limits::Limits;
use crate::pool::Inner;
use crate::state::{Grants, Held, State, Waiter};
use crate::stats::{Counters, Stats};

/// The connections of one origin. Made by [`Pool::origin`](crate::Pool::origin).
#[derive(Debug)]
pub struct OriginPool {
    origin: Origin,
    state: Mutex<State>,
    budget: Arc<Budget>,
    pool: Weak<Inner>,
    meter: Arc<Meter>,
    /// The runtime that dialled last: leases may be dropped outside of any.
    runtime: Mutex<Option<Handle>>,
    /// Places handed over by the budget, for the dials that the next pump decides.
    spare: Mutex<Vec<Permit>>,
    pub(crate) counters: Counters,
}

impl OriginPool {
    pub(crate) fn new(
        origin: Origin,
        settings: OriginSettings,
        limits: Limits,
        budget: Arc<Budget>,
        pool: Weak<Inner>,
    ) -> Arc<Self> {
        let state = State::new(origin.scheme(), Arc::new(settings), limits);
        Arc::new(Self {
            origin,
            state: Mutex::new(state),
            budget,
            pool,
            meter: Arc::default(),
            runtime: Mutex::default(),
            spare: Mutex::default(),
            counters: Counters::default(),
        })
    }

    /// The origin.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Bytes moved on all connections of the origin; the stall rule watches it.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Counts since the pool was made.
    pub fn stats(&self) -> Stats {
        self.counters.snapshot(self.meter.received(), self.meter.sent())
    }

    /// Connections open at this moment.
    pub fn connections_open(&self) -> usize {
        self.lock().open()
    }

    /// Waits, first come first served, for a connection that can carry one request.
    ///
    /// # Errors
    /// [`Error::Dial`] when no connection could be made and none is left;
    /// [`Error::Closed`] after the pool was closed.
    pub async fn lease(self: &Arc<Self>) -> Result<ObjectLease, Error> {
        let waiting = {
            let mut state = self.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            if state.waiting_objects.is_empty()
                && let Some(slot) = state.take_object()
            {
                drop(state);
                return Ok(ObjectLease::new(Arc::clone(self), slot));
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting_objects.push_back(sender);
            receiver
        };
        self.pump();
        waiting.await.unwrap_or(Err(Error::Closed))
    }

    /// Waits, first come first served, for a connection of the range lane.
    ///
    /// # Errors
    /// As [`lease`](Self::lease).
    pub async fn lease_range(self: &Arc<Self>) -> Result<RangeLease, Error> {
        let waiting = {
            let mut state = self.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            if state.waiting_ranges.is_empty()
                && let Some(held) = state.take_range()
            {
                drop(state);
                return Ok(RangeLease::new(Arc::clone(self), held));
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting_ranges.push_back(sender);
            receiver
        };
        self.pump();
        waiting.await.unwrap_or(Err(Error::Closed))
    }

    /// Opens connections ahead of need: up to `connections` of the object lane, as far as the
    /// limits allow. Returns at once.
    pub fn warm(self: &Arc<Self>, connections: usize) {
        self.lock().warm = connections;
        self.pump();
        self.lock().warm = 0;
    }

    /// Tells the pool that the origin is overloaded (429, 503): one connection fewer.
    pub fn slow_down(&self) {
        let mut state = self.lock();
        let fewer = state.open().saturating_sub(1);
        state.lower_cap(fewer, Instant::now());
    }

    /// Serves the queue from what is at hand and dials what is missing. Called whenever
    /// something changed.
    pub(crate) fn pump(self: &Arc<Self>) {
        let want = self.want();
        let (grants, lanes) = {
            let mut state = self.lock();
            state.starved = false;
            // Dials are decided before the queue is served, since work that spreads over more
            // connections than there are is exactly what justifies one; and again after, since
            // an idle connection may have turned out to be closed.
            let now = Instant::now();
            let mut lanes = state.decide_dials(now);
            let grants = state.assign();
            lanes.extend(state.decide_dials(now));
            state.yield_to_others(want);
            (grants, lanes)
        };
        self.hand_out(grants);
        let mut starved = false;
        for lane in lanes {
            starved |= !self.dial(lane);
        }
        if starved {
            // What was kept for the connections that could not be had goes to those there are.
            let grants = {
                let mut state = self.lock();
                state.starved = true;
                state.assign()
            };
            self.hand_out(grants);
        }
    }

    /// What other origins want.
    pub(crate) fn want(&self) -> Want {
        self.budget.want(self)
    }

    /// The runtime at hand, or the one that dialled last.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        let mut known = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(current) = Handle::try_current() {
            *known = Some(current);
        }
        known.clone()
    }

    /// Sends leases to their waiters, outside the lock: one whose waiter has gone comes back
    /// through its own drop.
    fn hand_out(self: &Arc<Self>, grants: Grants) {
        for (waiter, slot) in grants.objects {
            let _ = waiter.send(Ok(ObjectLease::new(Arc::clone(self), slot)));
        }
        for (waiter, held) in grants.ranges {
            let _ = waiter.send(Ok(RangeLease::new(Arc::clone(self), held)));
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Permit>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses a place that this origin has starved for, or passes it on.
    pub(crate) fn use_permit(self: &Arc<Self>, permit: Permit) {
        self.spare().push(permit);
        self.pump();
        let unused = std::mem::take(&mut *self.spare());
        drop(unused);
    }

    /// Starts a dial, or notes that there is no place for its connection and returns false.
    fn dial(self: &Arc<Self>, lane: Lane) -> bool {
        let dial = Dial { origin: Arc::clone(self), lane, ended: false };
        let Some(runtime) = self.runtime() else { return false };
        let spare = self.spare().pop();
        let permit = spare.or_else(|| self.budget.acquire()).or_else(|| {
            if let Some(pool) = self.pool.upgrade() {
                pool.evict_idle(self);
            }
            let destitute = self.lock().open() == 0;
            self.budget.acquire_or_starve(self, destitute)
        });
        let Some(permit) = permit else { return false };
        runtime.spawn(async move {
            let origin = &dial.origin;
            let settings = Arc::clone(&origin.lock().settings);
            let dialled = transport::connect(&origin.origin, &settings, lane, &origin.meter).await;
            dial.finish(permit, dialled);
        });
        true
    }

    fn dialled(
        self: &Arc<Self>,
        lane: Lane,
        permit: Permit,
        dialled: Result<Dialled, transport::Error>,
    ) {
        match dialled {
            Ok(dialled) => {
                self.add(lane, permit, dialled);
                // A new connection serves its own lane before it may give way to the other;
                // else two lanes under a cap of one would close each other's for ever.
                let grants = self.lock().assign();
                self.hand_out(grants);
            }
            Err(error) => self.dial_failed(lane, error),
        }
        self.pump();
    }

    fn add(&self, lane: Lane, permit: Permit, dialled: Dialled) {
        let now = Instant::now();
        let mut state = self.lock();
        state.dial_ended(lane);
        Counters::add(&self.counters.connections);
        match dialled.handshake {
            Some(Handshake::Full) => Counters::add(&self.counters.handshakes_full),
            Some(Handshake::Resumed) => Counters::add(&self.counters.handshakes_resumed),
            None => {}
        }
        if state.closed {
            return;
        }
        match dialled.connection {
            Connection::Http1(connection) => {
                state.add_http1(Held { connection, fresh: true, _permit: permit }, now);
            }
            Connection::Http2(connection) => {
                state.add_http2(Held { connection, fresh: true, _permit: permit }, now);
            }
            Connection::Range(connection) => {
                state.add_range(Held { connection, fresh: true, _permit: permit }, now);
            }
        }
        let open = state.open() as u64;
        self.counters.connections_peak.fetch_max(open, std::sync::atomic::Ordering::Relaxed);
    }

    /// While others live, those are what the origin gives just now, and the cap says so; with
    /// none left, all that wait get the error.
    fn dial_failed(&self, lane: Lane, error: transport::Error) {
        Counters::add(&self.counters.dials_failed);
        tracing::debug!(origin = %self.origin, %error, "dial failed");
        let mut state = self.lock();
        state.dial_ended(lane);
        if matches!(error, transport::Error::BrokenHttp2 { .. }) && state.dial_broke_http2() {
            return;
        }
        // A server that takes no more may still serve this lane once the other gives way.
        let gives_way = is_refusal(&error) && state.open() > 0;
        if state.lane_lives(lane) || gives_way {
            let others = state.open() + state.dialling();
            state.lower_cap(others, Instant::now());
            return;
        }
        state.reset_cap();
        let error = Error::Dial(Arc::new(error));
        let (objects, ranges) = state.take_waiting(Some(lane));
        drop(state);
        fail(objects, &error);
        fail(ranges, &error);
    }

    /// Drops unused connections whose time is over, and looks after those that wait: a lowered
    /// cap may have recovered.
    pub(crate) fn expire(self: &Arc<Self>, now: Instant) {
        self.lock().expire(now);
        self.pump();
    }

    /// Gives up an unused connection for another origin.
    pub(crate) fn evict_idle(&self) -> bool {
        self.lock().evict_idle()
    }

    /// Gives up an unused connection of the one lane while the other lane waits.
    pub(crate) fn evict_idle_in_need(&self) -> bool {
        let mut state = self.lock();
        state.has_waiting() && state.evict_idle()
    }

    /// Fails all that wait and closes all that idle; leases in use close when they end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let (objects, ranges) = state.take_waiting(None);
        while state.evict_idle() {}
        drop(state);
        fail(objects, &Error::Closed);
        fail(ranges, &Error::Closed);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A dial under way. One that is dropped, because its runtime ended, must not be counted for ever.
struct Dial {
    origin: Arc<OriginPool>,
    lane: Lane,
    ended: bool,
}

impl Dial {
    fn finish(mut self, permit: Permit, dialled: Result<Dialled, transport::Error>) {
        self.ended = true;
        self.origin.dialled(self.lane, permit, dialled);
    }
}

impl Drop for Dial {
    fn drop(&mut self) {
        if !self.ended {
            self.origin.lock().dial_ended(self.lane);
        }
    }
}

fn fail<T>(waiting: VecDeque<Waiter<T>>, error: &Error) {
    for waiter in waiting {
        let _ = waiter.send(Err(error.clone()));
    }
}

/// Whether a failed dial looks like a server that wants fewer connections.
fn is_refusal(error: &transport::Error) -> bool {
    use transport::Error as E;
    match error {
        E::Connect { .. } | E::ConnectUnix { .. } | E::ConnectTimeout { .. } => true,
        E::ClosedBeforeAnswer { .. } | E::Io(_) => true,
        E::Handshake { .. } => error.retry() == transport::RetryClass::Idempotent,
        _ => false,
    }
}
