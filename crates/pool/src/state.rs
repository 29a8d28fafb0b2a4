//! One origin's connections and queue: decisions made under the lock, without any I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use trunkline_transport::settings::HttpVersion;
use trunkline_transport::{Http1, Http2, Lane, OriginSettings, RangeConnection};

use crate::budget::Permit;
use crate::error::Error;
use crate::idle::IdleList;
use crate::lease::{ObjectLease, RangeLease};
use crate::limits::{CAP_RECOVERY, HTTP2_STRIKES_MAX, Limits, STREAMS_PER_CONNECTION_MAX};
use crate::policy::{Snapshot, dials, streams_share};

/// A connection with its place under the pool's cap.
#[derive(Debug)]
pub(crate) struct Held<T> {
    pub(crate) connection: T,
    pub(crate) _permit: Permit,
}

/// An HTTP/2 connection that many exchanges share.
#[derive(Debug)]
pub(crate) struct Shared {
    id: u64,
    held: Held<Http2>,
    streams: usize,
    /// Lowered when the server refuses a stream.
    streams_max: usize,
    /// Takes no new stream; closed when the last one ends.
    draining: bool,
    idle_since: Instant,
}

/// What a request of the object lane gets.
#[derive(Debug)]
pub(crate) enum Slot {
    Http1(Held<Http1>),
    Http2 { id: u64, connection: Http2 },
}

pub(crate) type Waiter<T> = oneshot::Sender<Result<T, Error>>;

/// Leases to hand out once the lock is released.
#[derive(Default)]
pub(crate) struct Grants {
    pub(crate) objects: Vec<(Waiter<ObjectLease>, Slot)>,
    pub(crate) ranges: Vec<(Waiter<RangeLease>, Held<Box<RangeConnection>>)>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Arc<OriginSettings>,
    limits: Limits,
    /// Connections allowed just now: the configured number, or fewer after a refusal.
    cap: usize,
    cap_lowered: Option<Instant>,
    http2: Option<bool>,
    http2_strikes: u32,
    http1: IdleList<Held<Http1>>,
    http1_leased: usize,
    shared: Vec<Shared>,
    next_id: u64,
    ranges: IdleList<Held<Box<RangeConnection>>>,
    ranges_leased: usize,
    dialling_objects: usize,
    dialling_ranges: usize,
    pub(crate) waiting_objects: VecDeque<Waiter<ObjectLease>>,
    pub(crate) waiting_ranges: VecDeque<Waiter<RangeLease>>,
    pub(crate) warm: usize,
    pub(crate) closed: bool,
}

impl State {
    pub(crate) fn new(settings: Arc<OriginSettings>, limits: Limits) -> Self {
        let http2 = match settings.version {
            HttpVersion::Auto => None,
            HttpVersion::Http1 => Some(false),
            HttpVersion::Http2 => Some(true),
        };
        Self {
            settings,
            limits,
            cap: limits.connections_per_origin.max(1),
            cap_lowered: None,
            http2,
            http2_strikes: 0,
            http1: IdleList::default(),
            http1_leased: 0,
            shared: Vec::new(),
            next_id: 0,
            ranges: IdleList::default(),
            ranges_leased: 0,
            dialling_objects: 0,
            dialling_ranges: 0,
            waiting_objects: VecDeque::new(),
            waiting_ranges: VecDeque::new(),
            warm: 0,
            closed: false,
        }
    }

    /// Open connections, both lanes.
    pub(crate) fn open(&self) -> usize {
        self.http1.len()
            + self.http1_leased
            + self.shared.len()
            + self.ranges.len()
            + self.ranges_leased
    }

    pub(crate) fn dialling(&self) -> usize {
        self.dialling_objects + self.dialling_ranges
    }

    fn room(&self) -> usize {
        self.cap.saturating_sub(self.open() + self.dialling())
    }

    fn live_shared(&self) -> impl Iterator<Item = &Shared> {
        self.shared.iter().filter(|shared| !shared.draining)
    }

    fn streams(&self) -> usize {
        self.shared.iter().map(|shared| shared.streams).sum()
    }

    fn object_connections(&self) -> usize {
        self.http1.len() + self.http1_leased + self.live_shared().count()
    }

    /// Serves the queues from what is at hand.
    pub(crate) fn assign(&mut self) -> Grants {
        let mut grants = Grants::default();
        while let Some(waiter) = self.waiting_objects.front() {
            if waiter.is_closed() {
                self.waiting_objects.pop_front();
                continue;
            }
            let Some(slot) = self.take_object() else { break };
            let waiter = self.waiting_objects.pop_front().expect("the front was just seen");
            grants.objects.push((waiter, slot));
        }
        while let Some(waiter) = self.waiting_ranges.front() {
            if waiter.is_closed() {
                self.waiting_ranges.pop_front();
                continue;
            }
            let Some(held) = self.take_range() else { break };
            let waiter = self.waiting_ranges.pop_front().expect("the front was just seen");
            grants.ranges.push((waiter, held));
        }
        grants
    }

    /// A connection of the object lane that can carry a request at once.
    pub(crate) fn take_object(&mut self) -> Option<Slot> {
        while let Some(held) = self.http1.pop() {
            if held.connection.is_closed() {
                continue;
            }
            self.http1_leased += 1;
            return Some(Slot::Http1(held));
        }
        let demand = self.streams() + self.waiting_objects.len().max(1);
        let connections = self.live_shared().count() + self.dialling_objects;
        let shared = self
            .shared
            .iter_mut()
            .filter(|shared| !shared.draining && !shared.held.connection.is_closed())
            .min_by_key(|shared| shared.streams)?;
        let streams_max = shared.held.connection.streams_max();
        let streams_max = streams_max.min(shared.streams_max).max(1);
        if shared.streams >= streams_share(demand, connections, streams_max) {
            return None;
        }
        shared.streams += 1;
        Some(Slot::Http2 { id: shared.id, connection: shared.held.connection.clone() })
    }

    /// An idle connection of the range lane that is still good.
    pub(crate) fn take_range(&mut self) -> Option<Held<Box<RangeConnection>>> {
        while let Some(mut held) = self.ranges.pop() {
            if held.connection.is_stale() {
                continue;
            }
            self.ranges_leased += 1;
            return Some(held);
        }
        None
    }

    /// The connections to dial now; each is counted as being made.
    pub(crate) fn decide_dials(&mut self, now: Instant) -> Vec<Lane> {
        if self.closed {
            return Vec::new();
        }
        self.recover_cap(now);
        self.make_room();
        let objects = dials(&Snapshot {
            http2: self.http2,
            connections: self.object_connections(),
            dialling: self.dialling_objects,
            idle: self.http1.len(),
            in_flight: self.streams() + self.http1_leased,
            waiting: self.waiting_objects.len(),
            warm: self.warm,
            room: self.room(),
        });
        self.dialling_objects += objects;
        let ranges = dials(&Snapshot {
            http2: Some(false),
            connections: self.ranges.len() + self.ranges_leased,
            dialling: self.dialling_ranges,
            idle: self.ranges.len(),
            in_flight: self.ranges_leased,
            waiting: self.waiting_ranges.len(),
            warm: 0,
            room: self.room(),
        });
        self.dialling_ranges += ranges;
        let mut lanes = vec![Lane::Object; objects];
        lanes.resize(objects + ranges, Lane::Range);
        lanes
    }

    /// Lets a lane that has nothing in when the other holds every place.
    fn make_room(&mut self) {
        if self.room() > 0 {
            return;
        }
        let ranges = self.ranges.len() + self.ranges_leased + self.dialling_ranges;
        if !self.waiting_ranges.is_empty() && ranges == 0 && self.http1.pop_oldest().is_none() {
            self.close_idle_shared();
            if self.room() == 0 && self.live_shared().count() > 1 {
                let emptiest =
                    self.shared.iter_mut().filter(|s| !s.draining).min_by_key(|s| s.streams);
                if let Some(shared) = emptiest {
                    shared.draining = true;
                }
            }
        }
        let objects = self.object_connections() + self.dialling_objects;
        if !self.waiting_objects.is_empty() && objects == 0 {
            drop(self.ranges.pop_oldest());
        }
    }

    /// Gives up one unused connection, for another origin or the other lane.
    pub(crate) fn evict_idle(&mut self) -> bool {
        self.http1.pop_oldest().is_some()
            || self.ranges.pop_oldest().is_some()
            || self.close_idle_shared()
    }

    fn close_idle_shared(&mut self) -> bool {
        let idle = self.shared.iter().position(|shared| shared.streams == 0);
        idle.map(|index| self.shared.swap_remove(index)).is_some()
    }

    /// Removes what has been unused for too long or was closed by the peer.
    pub(crate) fn expire(&mut self, now: Instant) {
        let timeout = self.limits.idle_timeout;
        drop(self.http1.expire(now, timeout, |held| held.connection.is_closed()));
        drop(self.ranges.expire(now, timeout, |held| held.connection.is_stale()));
        self.shared.retain(|shared| {
            let unused = shared.streams == 0
                && (shared.draining || now.saturating_duration_since(shared.idle_since) >= timeout);
            !unused && !shared.held.connection.is_closed()
        });
    }

    pub(crate) fn add_http1(&mut self, held: Held<Http1>, now: Instant) {
        self.http2 = Some(false);
        self.http1.push(held, now);
    }

    pub(crate) fn add_http2(&mut self, held: Held<Http2>, now: Instant) {
        self.http2 = Some(true);
        self.next_id += 1;
        self.shared.push(Shared {
            id: self.next_id,
            held,
            streams: 0,
            streams_max: STREAMS_PER_CONNECTION_MAX,
            draining: false,
            idle_since: now,
        });
    }

    pub(crate) fn add_range(&mut self, held: Held<Box<RangeConnection>>, now: Instant) {
        self.ranges.push(held, now);
    }

    pub(crate) fn dial_ended(&mut self, lane: Lane) {
        match lane {
            Lane::Object => self.dialling_objects = self.dialling_objects.saturating_sub(1),
            Lane::Range => self.dialling_ranges = self.dialling_ranges.saturating_sub(1),
        }
    }

    /// Whether somebody else may still serve this lane's queue.
    pub(crate) fn lane_lives(&self, lane: Lane) -> bool {
        match lane {
            Lane::Object => self.object_connections() + self.dialling_objects > 0,
            Lane::Range => self.ranges.len() + self.ranges_leased + self.dialling_ranges > 0,
        }
    }

    /// Brings a lease's connection home; `None` closes it.
    pub(crate) fn return_http1(&mut self, held: Option<Held<Http1>>, now: Instant) {
        self.http1_leased = self.http1_leased.saturating_sub(1);
        if let Some(held) = held.filter(|held| !self.closed && !held.connection.is_closed()) {
            if self.settled_on_http1() || self.http2 == Some(false) {
                self.http1.push(held, now);
            }
        }
    }

    /// Ends one stream of a shared connection.
    pub(crate) fn return_stream(&mut self, id: u64, now: Instant) {
        let Some(index) = self.shared.iter().position(|shared| shared.id == id) else { return };
        let shared = &mut self.shared[index];
        shared.streams = shared.streams.saturating_sub(1);
        shared.idle_since = now;
        let ended = shared.held.connection.is_closed();
        if (shared.draining && shared.streams == 0) || ended {
            self.shared.swap_remove(index);
        }
    }

    pub(crate) fn return_range(&mut self, held: Option<Held<Box<RangeConnection>>>, now: Instant) {
        self.ranges_leased = self.ranges_leased.saturating_sub(1);
        if let Some(held) = held.filter(|_| !self.closed) {
            self.ranges.push(held, now);
        }
    }

    /// No new streams on this connection.
    pub(crate) fn drain(&mut self, id: u64) {
        if let Some(shared) = self.shared.iter_mut().find(|shared| shared.id == id) {
            shared.draining = true;
        }
    }

    /// The server refused a stream: it allows fewer than it said.
    pub(crate) fn lower_streams(&mut self, id: u64) {
        if let Some(shared) = self.shared.iter_mut().find(|shared| shared.id == id) {
            shared.streams_max = shared.streams.saturating_sub(1).max(1);
        }
    }

    pub(crate) fn http2_worked(&mut self) {
        self.http2_strikes = 0;
    }

    /// Notes a protocol error on HTTP/2; the origin falls back when they repeat. Returns whether
    /// it has fallen back.
    pub(crate) fn http2_broke(&mut self) -> bool {
        self.http2_strikes += 1;
        if self.http2_strikes < HTTP2_STRIKES_MAX || self.settings.version != HttpVersion::Auto {
            return false;
        }
        let mut settings = (*self.settings).clone();
        settings.version = HttpVersion::Http1;
        self.settings = Arc::new(settings);
        self.http2 = Some(false);
        for shared in &mut self.shared {
            shared.draining = true;
        }
        self.shared.retain(|shared| shared.streams > 0);
        true
    }

    fn settled_on_http1(&self) -> bool {
        self.settings.version == HttpVersion::Http1
    }

    /// The origin refuses more connections than `connections`.
    pub(crate) fn lower_cap(&mut self, connections: usize, now: Instant) {
        let lowered = connections.max(1);
        if lowered < self.cap {
            self.cap = lowered;
        }
        self.cap_lowered = Some(now);
    }

    pub(crate) fn reset_cap(&mut self) {
        self.cap = self.limits.connections_per_origin.max(1);
        self.cap_lowered = None;
    }

    fn recover_cap(&mut self, now: Instant) {
        let due = self
            .cap_lowered
            .is_some_and(|at| now.saturating_duration_since(at) >= CAP_RECOVERY);
        if due && self.cap < self.limits.connections_per_origin {
            self.cap += 1;
            self.cap_lowered = Some(now);
        }
    }
}
