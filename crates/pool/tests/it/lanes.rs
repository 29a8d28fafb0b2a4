//! Two lanes under one cap.

use tokio::task::JoinSet;
use trunkline_pool::{Limits, Pool};
use trunkline_testkit::Origin;

use crate::site::{Site, limits};

async fn both_lanes_get_through(origin: &Origin, cap: usize) {
    let site = Site::new(&Pool::new(limits(cap)), origin);
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let object = site.clone();
        tasks.spawn(async move {
            object.get_again("/small").await.unwrap();
        });
        let range = site.clone();
        tasks.spawn(async move {
            let lease = range.pool.lease_range().await.unwrap();
            tokio::task::yield_now().await;
            drop(lease);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert!(site.pool.stats().connections_peak <= cap as u64);
}

#[tokio::test]
async fn neither_lane_keeps_the_other_out_in_clear_text() {
    both_lanes_get_through(&Origin::http(), 1).await;
    both_lanes_get_through(&Origin::http(), 3).await;
}

#[tokio::test]
async fn neither_lane_keeps_the_other_out_over_http2() {
    both_lanes_get_through(&Origin::https(), 1).await;
    both_lanes_get_through(&Origin::https(), 3).await;
}

#[tokio::test]
async fn streams_that_never_pause_let_the_range_lane_in() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let mut streams = JoinSet::new();
    for _ in 0..4 {
        let site = site.clone();
        streams.spawn(async move {
            loop {
                site.get_again("/small").await.unwrap();
            }
        });
    }
    origin.until(|seen| seen.requests > 10).await;
    drop(site.pool.lease_range().await.unwrap());
    let before = origin.counters().requests;
    origin.until(|seen| seen.requests > before + 10).await;
    streams.abort_all();
}

#[tokio::test]
async fn unused_connections_of_one_lane_make_place_for_the_other() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.pool.warm(6);
    origin.until(|seen| seen.connections_open == 6).await;
    crate::site::settle().await;
    let mut ranges = Vec::new();
    for _ in 0..5 {
        ranges.push(site.pool.lease_range().await.unwrap());
    }
    // The last one of a lane is left to it.
    site.get("/small").await.unwrap();
    assert_eq!(site.pool.stats().connections, 11);
    assert_eq!(site.pool.connections_open(), 6);
}

#[tokio::test]
async fn a_server_that_takes_no_more_serves_the_other_lane_once_the_first_gives_way() {
    let origin = Origin::builder().connections_max(2).start();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    let held = [site.lease().await, site.lease().await];
    let range = tokio::spawn({
        let site = site.clone();
        async move { site.pool.lease_range().await.map(drop) }
    });
    origin.until(|seen| seen.connections_refused >= 1).await;
    drop(held);
    for _ in 0..20 {
        if range.is_finished() {
            break;
        }
        site.get_again("/small").await.unwrap();
    }
    range.await.unwrap().unwrap();
}
