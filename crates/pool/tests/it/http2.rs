//! One HTTP/2 connection and when there are more.

use tokio::task::JoinSet;
use trunkline_pool::{Limits, Pool};
use trunkline_testkit::{ConnectionFault, Fault, Gate, Origin, Resource, StreamReset, bytes};
use trunkline_transport::Error;

use crate::site::{Site, limits, read};

/// A body that takes several frames but no window update.
const MEDIUM_BYTES: usize = 100_000;

#[tokio::test]
async fn a_handful_of_requests_to_a_cold_origin_makes_one_handshake() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get_all(12, "/small").await;
    assert_eq!(origin.counters().connections_accepted, 1);
    assert_eq!(origin.counters().handshakes_full, 1);
    assert_eq!(site.pool.stats().requests, 12);
}

async fn requests_held_on_each_connection(origin: &Origin, site: &Site, count: usize) -> Vec<u64> {
    let gate = Gate::new();
    let _ = origin.script("/small").always(Fault::HoldHead(gate.clone()));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let site = site.clone();
        tasks.spawn(async move { site.get("/small").await.unwrap() });
    }
    origin.until(|seen| seen.requests_open == count as u64).await;
    let records = origin.connection_records();
    let mut held: Vec<u64> = records.iter().map(|record| record.streams_open).collect();
    gate.open();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    held.sort_unstable();
    held
}

#[tokio::test]
async fn a_hundred_and_fifty_spread_evenly_over_six_connections() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    let held = requests_held_on_each_connection(&origin, &site, 150).await;
    assert_eq!(held, [25; 6]);
}

#[tokio::test]
async fn a_warm_connection_does_not_swallow_the_whole_of_the_next_batch() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get("/small").await.unwrap();
    let held = requests_held_on_each_connection(&origin, &site, 90).await;
    assert_eq!(held.len(), 6);
    assert!(held.iter().all(|streams| *streams <= 16), "{held:?}");
}

#[tokio::test]
async fn where_no_other_connection_can_be_had_one_carries_all() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    site.get("/small").await.unwrap();
    assert_eq!(requests_held_on_each_connection(&origin, &site, 100).await, [100]);
}

#[tokio::test]
async fn where_no_place_is_left_over_all_origins_one_carries_all() {
    let origin = Origin::https();
    let pool = Pool::new(Limits { connections_in_all: 1, ..Limits::default() });
    let site = Site::new(&pool, &origin);
    assert_eq!(requests_held_on_each_connection(&origin, &site, 100).await, [100]);
}

#[tokio::test]
async fn a_limit_of_one_stream_is_honoured_and_makes_more_connections() {
    let origin = Origin::builder().tls().streams_max(1).start();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get("/small").await.unwrap();
    site.get_all(60, "/small").await;
    let seen = origin.counters();
    assert_eq!(seen.streams_open_max, 1);
    assert!((2..=6).contains(&seen.connections_accepted), "{seen:?}");
}

#[tokio::test]
async fn a_body_dropped_in_mid_way_resets_its_stream_and_frees_the_place() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let _ = origin.script("/big").once(Fault::StallAfter(10));
    let mut body = site.open("/big").await.unwrap();
    body.chunk().await.unwrap().unwrap();
    assert_eq!(origin.counters().requests_open, 1);
    drop(body);
    origin.until(|seen| seen.requests_open == 0).await;
    site.get("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 1, "the connection lives on");
}

#[tokio::test]
async fn a_connection_that_goes_away_is_noticed_while_its_streams_are_open() {
    let origin = Origin::https();
    let _ = origin.connections().once(ConnectionFault::GoAwayAfter(1));
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    let gate = Gate::new();
    // Small enough to need no window update: one that met the server's close would reset the
    // connection under the last bytes.
    origin.put("/medium", Resource::new(bytes(7, MEDIUM_BYTES)));
    let _ = origin.script("/medium").once(Fault::HoldAfter(1000, gate.clone()));
    let mut body = site.open("/medium").await.unwrap();
    let first = body.chunk().await.unwrap().unwrap().len();
    // GOAWAY came before the data. No request is lost on the old connection.
    site.get("/small").await.unwrap();
    assert_eq!(origin.requests_to("/small")[0].head.connection, 2);
    gate.open();
    assert_eq!(first + read(body).await.unwrap().len(), MEDIUM_BYTES, "the old stream is served");
    origin.until(|seen| seen.connections_open == 1).await;
}

#[tokio::test]
async fn streams_above_the_last_one_of_a_goaway_may_be_sent_again() {
    let origin = Origin::https();
    let _ = origin.connections().once(ConnectionFault::GoAwayAfter(3));
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let site = site.clone();
        tasks.spawn(async move { site.get("/small").await });
    }
    let mut refused = 0;
    while let Some(done) = tasks.join_next().await {
        if let Err(failure) = done.unwrap() {
            let error = failure.exchange();
            assert!(matches!(error, Error::GoAway | Error::Unsent), "{error:?}");
            refused += 1;
        }
    }
    assert!(refused <= 7);
    assert_eq!(origin.counters().requests, 10 - refused, "nothing was served in secret");
    site.get("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 2);
}

#[tokio::test]
async fn a_refused_stream_lowers_the_streams_of_its_connection() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    site.get("/small").await.unwrap();
    let _ = origin.script("/small").times(2, Fault::ResetStream(StreamReset::Refused));
    let error = site.get("/small").await.unwrap_err().exchange();
    assert!(matches!(error, Error::RefusedStream), "{error:?}");
    site.get_all(40, "/small").await;
    assert_eq!(origin.counters().connections_accepted, 1);
    assert_eq!(origin.counters().streams_open_max, 1, "one was open when it was refused");
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced_without_a_wait() {
    let origin = Origin::https();
    let _ = origin.connections().once(ConnectionFault::CloseAfterResponses(1));
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get("/small").await.unwrap();
    origin.until(|seen| seen.connections_open == 0).await;
    site.get_again("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 2);
}
