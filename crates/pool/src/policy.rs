//! When another connection is worth its handshake: pure decisions over a snapshot.

/// Requests that one HTTP/2 connection carries before another is worth its handshake.
///
/// One connection grows its congestion window once; several grow theirs side by side. 150 files
/// of 270 KB over 20 ms take a third less time on six connections than on one, while a dozen
/// small requests are answered in one round trip either way.
pub const REQUESTS_PER_HTTP2_CONNECTION: usize = 16;

/// What is known of one lane of an origin at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Whether the origin speaks HTTP/2; `None` before the first handshake has told.
    pub http2: Option<bool>,
    /// Connections of this lane that can take requests now or later.
    pub connections: usize,
    /// Connections of this lane being made.
    pub dialling: usize,
    /// Idle connections of this lane (HTTP/1.1).
    pub idle: usize,
    /// Requests that one HTTP/2 connection carries before another is worth its handshake; see
    /// [`per_connection`].
    pub per_connection: usize,
    /// Exchanges under way on this lane.
    pub in_flight: usize,
    /// Requests waiting for a connection of this lane.
    pub waiting: usize,
    /// Connections that the caller asked to have ready.
    pub warm: usize,
    /// Connections that may still be opened to the origin, both lanes together.
    pub room: usize,
}

/// How many connections to dial now.
pub fn dials(snapshot: &Snapshot) -> usize {
    let Snapshot { http2, connections, dialling, idle, in_flight, waiting, warm, room, .. } =
        *snapshot;
    let have = connections + dialling;
    let wanted = if http2 == Some(false) {
        have + waiting.saturating_sub(idle + dialling)
    } else {
        // An unknown origin is taken for an HTTP/2 one, so that a handful of requests makes a
        // single handshake; the answer to it tells, and the decision is made anew.
        (in_flight + waiting).div_ceil(snapshot.per_connection.max(1))
    };
    // Nothing is dialled for work that is already under way: a connection that arrives late
    // helps only those that still wait.
    let wanted = if waiting == 0 { 0 } else { wanted };
    wanted.max(warm).saturating_sub(have).min(room)
}

/// Requests that one HTTP/2 connection carries before another is worth its handshake, where the
/// server allows `streams_max` at once.
pub fn per_connection(streams_max: usize) -> usize {
    REQUESTS_PER_HTTP2_CONNECTION.min(streams_max).max(1)
}

/// How many streams one HTTP/2 connection may carry just now, where `demand` requests are under
/// way or wait, `connections` are there or being made, and `room` more may be opened.
///
/// The work is spread evenly over the connections there are and those that it justifies, so that
/// the first one ready does not swallow the queue; never more than the server allows.
pub fn streams_share(demand: usize, connections: usize, room: usize, streams_max: usize) -> usize {
    let per_connection = per_connection(streams_max);
    let least = connections.max(1);
    let worth = demand.div_ceil(per_connection).clamp(least, least + room);
    demand.div_ceil(worth).max(per_connection).min(streams_max.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOTHING: Snapshot = Snapshot {
        http2: None,
        connections: 0,
        dialling: 0,
        idle: 0,
        per_connection: REQUESTS_PER_HTTP2_CONNECTION,
        in_flight: 0,
        waiting: 0,
        warm: 0,
        room: 6,
    };

    #[test]
    fn a_handful_of_requests_to_an_unknown_origin_makes_one_handshake() {
        assert_eq!(dials(&Snapshot { waiting: 6, ..NOTHING }), 1);
        assert_eq!(dials(&Snapshot { waiting: 6, dialling: 1, ..NOTHING }), 0);
    }

    #[test]
    fn many_requests_open_several_connections_at_once() {
        assert_eq!(dials(&Snapshot { waiting: 150, ..NOTHING }), 6);
        assert_eq!(dials(&Snapshot { waiting: 40, ..NOTHING }), 3);
    }

    #[test]
    fn http1_grows_by_one_connection_a_waiting_request() {
        let http1 = Snapshot { http2: Some(false), connections: 1, room: 5, ..NOTHING };
        assert_eq!(dials(&Snapshot { waiting: 3, ..http1 }), 3);
        assert_eq!(dials(&Snapshot { waiting: 30, ..http1 }), 5);
        assert_eq!(dials(&Snapshot { waiting: 3, idle: 1, ..http1 }), 2);
        assert_eq!(dials(&Snapshot { waiting: 3, dialling: 2, room: 3, ..http1 }), 1);
    }

    #[test]
    fn warming_up_needs_no_request() {
        assert_eq!(dials(&Snapshot { warm: 4, ..NOTHING }), 4);
        assert_eq!(dials(&Snapshot { warm: 4, connections: 3, ..NOTHING }), 1);
        assert_eq!(dials(&Snapshot { warm: 40, ..NOTHING }), 6);
    }

    #[test]
    fn the_work_is_spread_over_the_connections_to_come() {
        assert_eq!(streams_share(150, 6, 0, 128), 25);
        assert_eq!(streams_share(3, 1, 0, 128), 16);
        assert_eq!(streams_share(10_000, 6, 0, 128), 128);
        assert_eq!(streams_share(10, 1, 0, 1), 1);
    }

    #[test]
    fn a_warm_connection_does_not_swallow_what_is_worth_more_of_them() {
        assert_eq!(streams_share(17, 1, 5, 128), 16, "the next one is worth a dial");
        assert_eq!(streams_share(17, 1, 0, 128), 17, "no other can be had");
        assert_eq!(streams_share(150, 1, 5, 128), 25);
    }

    #[test]
    fn few_streams_a_connection_make_more_connections() {
        let few = Snapshot { http2: Some(true), connections: 1, room: 5, ..NOTHING };
        let few = Snapshot { per_connection: per_connection(1), ..few };
        assert_eq!(dials(&Snapshot { in_flight: 1, waiting: 3, ..few }), 3);
        assert_eq!(dials(&Snapshot { in_flight: 1, waiting: 30, ..few }), 5);
    }

    proptest! {
        #[test]
        fn never_beyond_the_room_and_never_without_a_reason(
            http2 in prop::option::of(any::<bool>()),
            connections in 0usize..20, dialling in 0usize..20, idle in 0usize..20,
            in_flight in 0usize..500, waiting in 0usize..500, room in 0usize..20,
        ) {
            let s = Snapshot {
                http2, connections, dialling, idle, in_flight, waiting, room, ..NOTHING
            };
            prop_assert!(dials(&s) <= room);
            if waiting == 0 { prop_assert_eq!(dials(&s), 0); }
            if waiting > 0 && connections + dialling == 0 && room > 0 && idle == 0 {
                prop_assert!(dials(&s) >= 1, "work waits and nobody dials");
            }
        }
    }
}
