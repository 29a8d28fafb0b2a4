//! The connections of one origin: hands out leases, dials, and learns from what happens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::sync::oneshot;
use trunkline_transport::{
    self as transport, Connection, Dialled, Handshake, Lane, Meter, Origin, OriginSettings,
};

use crate::budget::{Budget, Permit};
use crate::error::Error;
use crate::lease::{ObjectLease, RangeLease};
use crate::limits::Limits;
use crate::pool::Inner;
use crate::state::{Grants, Held, State};
use crate::stats::{Counters, Stats};

/// The connections of one origin. Made by [`Pool::origin`](crate::Pool::origin).
#[derive(Debug)]
pub struct OriginPool {
    origin: Origin,
    state: Mutex<State>,
    budget: Arc<Budget>,
    pool: Weak<Inner>,
    meter: Arc<Meter>,
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
        Arc::new(Self {
            origin,
            state: Mutex::new(State::new(Arc::new(settings), limits)),
            budget,
            pool,
            meter: Arc::default(),
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
            if state.waiting_objects.is_empty() {
                if let Some(slot) = state.take_object() {
                    drop(state);
                    return Ok(ObjectLease::new(Arc::clone(self), slot));
                }
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
            if state.waiting_ranges.is_empty() {
                if let Some(held) = state.take_range() {
                    drop(state);
                    return Ok(RangeLease::new(Arc::clone(self), held));
                }
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
        let (grants, lanes) = {
            let mut state = self.lock();
            // Dials are decided before the queue is served: work that spreads over more
            // connections than there are is exactly what justifies one.
            let lanes = state.decide_dials(Instant::now());
            (state.assign(), lanes)
        };
        self.hand_out(grants);
        for lane in lanes {
            self.dial(lane);
        }
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

    fn dial(self: &Arc<Self>, lane: Lane) {
        let permit = self.budget.acquire().or_else(|| {
            self.pool.upgrade().is_some_and(|pool| pool.evict_idle(self)).then_some(())?;
            self.budget.acquire()
        });
        let (Some(permit), Ok(runtime)) = (permit, tokio::runtime::Handle::try_current()) else {
            self.lock().dial_ended(lane);
            self.budget.starve(self);
            return;
        };
        let origin = Arc::clone(self);
        runtime.spawn(async move {
            let settings = Arc::clone(&origin.lock().settings);
            let dialled =
                transport::connect(&origin.origin, &settings, lane, &origin.meter).await;
            origin.dialled(lane, permit, dialled);
        });
    }

    fn dialled(
        self: &Arc<Self>,
        lane: Lane,
        permit: Permit,
        dialled: Result<Dialled, transport::Error>,
    ) {
        match dialled {
            Ok(dialled) => self.add(lane, permit, dialled),
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
                state.add_http1(Held { connection, _permit: permit }, now);
            }
            Connection::Http2(connection) => {
                state.add_http2(Held { connection, _permit: permit }, now);
            }
            Connection::Range(connection) => {
                state.add_range(Held { connection, _permit: permit }, now);
            }
        }
        let open = state.open() as u64;
        self.counters.connections_peak.fetch_max(open, std::sync::atomic::Ordering::Relaxed);
    }

    /// A refused connection lowers the cap while others live; with none left, all that wait
    /// get the error.
    fn dial_failed(&self, lane: Lane, error: transport::Error) {
        Counters::add(&self.counters.dials_failed);
        tracing::debug!(origin = %self.origin, %error, "dial failed");
        let mut state = self.lock();
        state.dial_ended(lane);
        if matches!(error, transport::Error::BrokenHttp2 { .. }) && !state.closed {
            let before = state.settings.version;
            if state.http2_broke() || before == transport::settings::HttpVersion::Auto {
                return;
            }
        }
        let others = state.open() + state.dialling();
        if is_refusal(&error) && others > 0 && state.lane_lives(lane) {
            state.lower_cap(others, Instant::now());
            return;
        }
        if state.lane_lives(lane) && error.retry() != transport::RetryClass::Never {
            return;
        }
        state.reset_cap();
        let error = Error::Dial(Arc::new(error));
        let (objects, ranges) = match lane {
            Lane::Object => (std::mem::take(&mut state.waiting_objects), Default::default()),
            Lane::Range => (Default::default(), std::mem::take(&mut state.waiting_ranges)),
        };
        drop(state);
        for waiter in objects {
            let _ = waiter.send(Err(error.clone()));
        }
        for waiter in ranges {
            let _ = waiter.send(Err(error.clone()));
        }
    }

    /// Drops unused connections whose time is over.
    pub(crate) fn expire(&self, now: Instant) {
        self.lock().expire(now);
    }

    pub(crate) fn evict_idle(&self) -> bool {
        self.lock().evict_idle()
    }

    /// Fails all that wait and closes all that idle; leases in use close when they end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let objects = std::mem::take(&mut state.waiting_objects);
        let ranges = std::mem::take(&mut state.waiting_ranges);
        while state.evict_idle() {}
        drop(state);
        for waiter in objects {
            let _ = waiter.send(Err(Error::Closed));
        }
        for waiter in ranges {
            let _ = waiter.send(Err(Error::Closed));
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
