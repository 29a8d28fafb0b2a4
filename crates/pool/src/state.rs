//! One origin's connections and queue: decisions made under the lock, without any I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use trunkline_transport::settings::HttpVersion;
use trunkline_transport::{Http1, Http2, Lane, OriginSettings, RangeConnection, Scheme};

use crate::budget::{Permit, Want};
use crate::error::Error;
use crate::idle::IdleList;
use crate::lease::{ObjectLease, RangeLease};
use crate::limits::{CAP_RECOVERY, HTTP2_STRIKES_MAX, Limits, STREAMS_PER_CONNECTION_MAX};
use crate::policy::{
    REQUESTS_PER_HTTP2_CONNECTION, Snapshot, dials, per_connection, streams_share,
};

/// A connection with its place under the pool's cap.
#[derive(Debug)]
pub(crate) struct Held<T> {
    pub(crate) connection: T,
    /// Never used so far. One that is dead on arrival is handed out all the same: its request
    /// tells why, where dialling anew would go on for ever.
    pub(crate) fresh: bool,
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
    /// Has counted as broken HTTP/2; it does so once.
    struck: bool,
    /// Has carried an exchange to its end.
    worked: bool,
    idle_since: Instant,
}

impl Shared {
    /// Streams that it may carry: the server's word, less where it has refused some.
    fn streams_max(&self) -> usize {
        self.held.connection.streams_max().min(self.streams_max).max(1)
    }
}

/// The two queues.
pub(crate) type Waiting = (VecDeque<Waiter<ObjectLease>>, VecDeque<Waiter<RangeLease>>);

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
    /// The lane that room was made for last; it gets the odd place.
    turn: Lane,
    /// No place for another connection under the cap over all origins.
    pub(crate) starved: bool,
    pub(crate) closed: bool,
}

impl State {
    pub(crate) fn new(scheme: Scheme, settings: Arc<OriginSettings>, limits: Limits) -> Self {
        let http2 = match settings.version {
            // Without ALPN there is nobody to ask.
            HttpVersion::Auto if scheme == Scheme::Http => Some(false),
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
            turn: Lane::Object,
            starved: false,
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

    pub(crate) fn has_waiting(&self) -> bool {
        !(self.waiting_objects.is_empty() && self.waiting_ranges.is_empty())
    }

    /// Takes those that wait, of one lane or of both.
    pub(crate) fn take_waiting(&mut self, lane: Option<Lane>) -> Waiting {
        let mut taken = Waiting::default();
        if lane != Some(Lane::Range) {
            taken.0 = std::mem::take(&mut self.waiting_objects);
        }
        if lane != Some(Lane::Object) {
            taken.1 = std::mem::take(&mut self.waiting_ranges);
        }
        taken
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

    /// Connections that the queue of the object lane can count on. An origin that speaks HTTP/2
    /// is not held back by the HTTP/1.1 connections of a time before.
    fn object_connections(&self) -> usize {
        let http1 = self.http1.len() + self.http1_leased;
        let http1 = if self.http2 == Some(true) { 0 } else { http1 };
        http1 + self.live_shared().count()
    }

    /// Notices HTTP/2 connections that ended or go away, and lets go of those without streams.
    fn notice_ends(&mut self) {
        for shared in &mut self.shared {
            let connection = &shared.held.connection;
            let ended = connection.is_going_away() || connection.is_closed();
            shared.draining |= ended && !shared.held.fresh;
        }
        self.shared.retain(|shared| !shared.draining || shared.streams > 0);
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
        while let Some(mut held) = self.http1.pop() {
            if held.connection.is_closed() && !held.fresh {
                continue;
            }
            held.fresh = false;
            self.http1_leased += 1;
            return Some(Slot::Http1(held));
        }
        self.notice_ends();
        let demand = self.streams() + self.waiting_objects.len().max(1);
        let connections = self.live_shared().count() + self.dialling_objects;
        let room = if self.starved { 0 } else { self.room() };
        let share =
            |shared: &Shared| streams_share(demand, connections, room, shared.streams_max());
        let shared = self
            .shared
            .iter_mut()
            .filter(|shared| !shared.draining && shared.streams < share(shared))
            .min_by_key(|shared| shared.streams)?;
        shared.streams += 1;
        shared.held.fresh = false;
        Some(Slot::Http2 { id: shared.id, connection: shared.held.connection.clone() })
    }

    /// An idle connection of the range lane that is still good.
    pub(crate) fn take_range(&mut self) -> Option<Held<Box<RangeConnection>>> {
        while let Some(mut held) = self.ranges.pop() {
            if !held.fresh && held.connection.is_stale() {
                continue;
            }
            held.fresh = false;
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
        self.notice_ends();
        self.make_room();
        let mut lanes = self.wanted_dials();
        if !lanes.is_empty() {
            // Those that gave up waiting justify nothing.
            self.waiting_objects.retain(|waiter| !waiter.is_closed());
            self.waiting_ranges.retain(|waiter| !waiter.is_closed());
            lanes = self.wanted_dials();
        }
        for lane in &lanes {
            *self.dialling_of(*lane) += 1;
        }
        lanes
    }

    fn wanted_dials(&self) -> Vec<Lane> {
        let room = self.room();
        let ranges = self.wanted_ranges(room);
        // Where both lanes want to grow, each gets its share of the room.
        let half = if self.turn == Lane::Range { room / 2 } else { room.div_ceil(2) };
        let share = room.saturating_sub(ranges).max(half);
        let objects = self.wanted_objects(share);
        let ranges = ranges.min(room - objects);
        let mut lanes = vec![Lane::Object; objects];
        lanes.resize(objects + ranges, Lane::Range);
        lanes
    }

    fn wanted_objects(&self, room: usize) -> usize {
        let streams_max = self.live_shared().map(Shared::streams_max).max();
        dials(&Snapshot {
            http2: self.http2,
            connections: self.object_connections(),
            dialling: self.dialling_objects,
            idle: self.http1.len(),
            per_connection: per_connection(streams_max.unwrap_or(REQUESTS_PER_HTTP2_CONNECTION)),
            in_flight: self.streams() + self.http1_leased,
            waiting: self.waiting_objects.len(),
            warm: self.warm,
            room,
        })
    }

    fn wanted_ranges(&self, room: usize) -> usize {
        dials(&Snapshot {
            http2: Some(false),
            connections: self.ranges.len() + self.ranges_leased,
            dialling: self.dialling_ranges,
            idle: self.ranges.len(),
            per_connection: 1,
            in_flight: self.ranges_leased,
            waiting: self.waiting_ranges.len(),
            warm: 0,
            room,
        })
    }

    /// Lets a lane that would grow in where the other holds every place: the other's unused
    /// connections go, and of those in use one if the growing lane has none.
    fn make_room(&mut self) {
        if self.room() > 0 || !self.has_waiting() {
            return;
        }
        let ranges = self.ranges.len() + self.ranges_leased + self.dialling_ranges;
        let http1 = self.http1.len() + self.http1_leased;
        let objects = http1 + self.live_shared().count() + self.dialling_objects;
        if self.wanted_ranges(1) > 0 && (ranges == 0 || objects > 1) {
            let unused = self.http1.pop_oldest().is_some() || self.close_idle_shared();
            // One place at a time: a connection that drains already will make it.
            let draining = self.shared.iter().any(|shared| shared.draining);
            if !unused && ranges == 0 && !draining {
                self.drain_emptiest();
            }
            self.turn = Lane::Range;
        } else if !self.waiting_objects.is_empty()
            && self.wanted_objects(1) > 0
            && (objects == 0 || ranges > 1)
            && self.ranges.pop_oldest().is_some()
        {
            self.turn = Lane::Object;
        }
    }

    /// Gives up connections above a lowered cap and what other origins need.
    pub(crate) fn yield_to_others(&mut self, want: Want) {
        if want != Want::Nothing && self.evict_idle() {
            return;
        }
        let draining = self.shared.iter().filter(|shared| shared.draining).count();
        let above_cap = self.open() - draining > self.cap;
        if above_cap && self.evict_idle() {
            return;
        }
        // One at a time: a connection that drains already will make the place.
        let others_starve = want == Want::Any && draining == 0 && self.open() > 1;
        if (above_cap || others_starve) && self.live_shared().count() > 1 {
            self.drain_emptiest();
        }
    }

    /// Whether a connection that comes back has no place any more.
    fn is_one_too_many(&self, want: Want) -> bool {
        self.closed || self.open() >= self.cap || (want == Want::Any && self.open() > 0)
    }

    fn drain_emptiest(&mut self) {
        let live = self.shared.iter_mut().filter(|shared| !shared.draining);
        if let Some(shared) = live.min_by_key(|shared| shared.streams) {
            shared.draining = true;
        }
    }

    /// Gives up one unused connection, for another origin or the other lane.
    pub(crate) fn evict_idle(&mut self) -> bool {
        self.http1.pop_oldest().is_some()
            || self.ranges.pop_oldest().is_some()
            || self.close_idle_shared()
    }

    fn dialling_of(&mut self, lane: Lane) -> &mut usize {
        match lane {
            Lane::Object => &mut self.dialling_objects,
            Lane::Range => &mut self.dialling_ranges,
        }
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
        self.notice_ends();
        self.shared.retain(|shared| {
            shared.streams > 0 || now.saturating_duration_since(shared.idle_since) < timeout
        });
    }

    pub(crate) fn add_http1(&mut self, held: Held<Http1>, now: Instant) {
        self.http2 = Some(false);
        self.http1.push(held, now);
    }

    pub(crate) fn add_http2(&mut self, held: Held<Http2>, now: Instant) {
        if self.settings.version == HttpVersion::Http1 {
            // Dialled before the origin fell back.
            return;
        }
        self.http2 = Some(true);
        self.next_id += 1;
        self.shared.push(Shared {
            id: self.next_id,
            held,
            streams: 0,
            streams_max: STREAMS_PER_CONNECTION_MAX,
            draining: false,
            struck: false,
            worked: false,
            idle_since: now,
        });
    }

    pub(crate) fn add_range(&mut self, held: Held<Box<RangeConnection>>, now: Instant) {
        self.ranges.push(held, now);
    }

    pub(crate) fn dial_ended(&mut self, lane: Lane) {
        let dialling = self.dialling_of(lane);
        *dialling = dialling.saturating_sub(1);
    }

    /// Whether somebody else may still serve this lane's queue.
    pub(crate) fn lane_lives(&mut self, lane: Lane) -> bool {
        self.notice_ends();
        match lane {
            // An idle connection while work waits is a closed one, or goes to the queue at once.
            Lane::Object => {
                self.http1_leased + self.live_shared().count() + self.dialling_objects > 0
            }
            Lane::Range => self.ranges_leased + self.dialling_ranges > 0,
        }
    }

    /// Brings a lease's connection home; `None` closes it.
    pub(crate) fn return_http1(&mut self, held: Option<Held<Http1>>, now: Instant, want: Want) {
        self.http1_leased = self.http1_leased.saturating_sub(1);
        if let Some(held) = held.filter(|_| !self.is_one_too_many(want)) {
            self.http1.push(held, now);
        }
    }

    /// Ends one stream of a shared connection.
    pub(crate) fn return_stream(&mut self, id: u64, now: Instant) {
        let Some(index) = self.shared.iter().position(|shared| shared.id == id) else { return };
        let shared = &mut self.shared[index];
        shared.streams = shared.streams.saturating_sub(1);
        shared.idle_since = now;
        if shared.streams == 0 && (shared.draining || self.closed) {
            self.shared.swap_remove(index);
        }
    }

    pub(crate) fn return_range(
        &mut self,
        held: Option<Held<Box<RangeConnection>>>,
        now: Instant,
        want: Want,
    ) {
        self.ranges_leased = self.ranges_leased.saturating_sub(1);
        if let Some(held) = held.filter(|_| !self.is_one_too_many(want)) {
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

    pub(crate) fn http2_worked(&mut self, id: u64) {
        self.http2_strikes = 0;
        if let Some(shared) = self.shared.iter_mut().find(|shared| shared.id == id) {
            shared.worked = true;
        }
    }

    /// A request could not be sent, since the connection had ended. One that ended before its
    /// first answer counts as broken: its end may have hidden the reason from every stream.
    pub(crate) fn stream_unsent(&mut self, id: u64) {
        let worked = self.shared.iter().any(|shared| shared.id == id && shared.worked);
        if worked { self.drain(id) } else { self.stream_broke(id) }
    }

    /// A stream failed because the server broke HTTP/2. The connection is given up, and counts
    /// once, however many streams it took with it; an origin whose connections break one after
    /// the other is spoken to in HTTP/1.1.
    pub(crate) fn stream_broke(&mut self, id: u64) {
        let broken = self.shared.iter_mut().find(|shared| shared.id == id && !shared.struck);
        if let Some(shared) = broken {
            // It may be draining already: the streams of a broken connection do not all fail
            // with the reason.
            shared.draining = true;
            shared.struck = true;
            self.strike();
        }
    }

    /// As [`stream_broke`](Self::stream_broke) for a dial. Returns whether another one is worth
    /// it.
    pub(crate) fn dial_broke_http2(&mut self) -> bool {
        if self.closed || self.settings.version != HttpVersion::Auto {
            return false;
        }
        self.strike();
        true
    }

    fn strike(&mut self) {
        self.http2_strikes += 1;
        if self.http2_strikes >= HTTP2_STRIKES_MAX {
            self.require_http1();
        }
    }

    /// Falls back to HTTP/1.1, unless the caller asked for HTTP/2 alone.
    pub(crate) fn require_http1(&mut self) {
        if self.settings.version != HttpVersion::Auto {
            return;
        }
        let mut settings = (*self.settings).clone();
        settings.version = HttpVersion::Http1;
        self.settings = Arc::new(settings);
        self.http2 = Some(false);
        for shared in &mut self.shared {
            shared.draining = true;
        }
        self.shared.retain(|shared| shared.streams > 0);
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
        let due =
            self.cap_lowered.is_some_and(|at| now.saturating_duration_since(at) >= CAP_RECOVERY);
        if due && self.cap < self.limits.connections_per_origin {
            self.cap += 1;
            self.cap_lowered = Some(now);
        }
    }
}
