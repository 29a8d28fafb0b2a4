//! Many requests with random ends; nothing leaks.

use std::time::Duration;

use tokio::task::JoinSet;
use trunkline_pool::Pool;
use trunkline_testkit::Origin;

use crate::site::{Site, limits};

/// A small generator: the seed tells the run.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

async fn storm(origin: &Origin, requests: u64) {
    let cap = 4;
    let site = Site::new(&Pool::new(limits(cap)), origin);
    let mut seed = 7;
    let mut tasks = JoinSet::new();
    for _ in 0..requests {
        let site = site.clone();
        let (kind, patience) = (next(&mut seed) % 5, Duration::from_micros(next(&mut seed) % 4000));
        tasks.spawn(async move {
            match kind {
                // Given up at a moment that differs from run to run: waiting, sending, reading.
                0 => drop(tokio::time::timeout(patience, site.get("/small")).await),
                1 => drop(tokio::time::timeout(patience, site.pool.lease_range()).await),
                2 => drop(site.open("/big").await),
                3 => drop(site.lease().await),
                _ => assert_eq!(site.get_again("/small").await.unwrap(), b"small"),
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert!(site.pool.connections_open() <= cap);
    assert!(site.pool.stats().connections_peak <= cap as u64);
    // Every place can still be had, and nobody waits for ever.
    origin.until(|seen| seen.requests_open == 0).await;
    site.get_all(50, "/small").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_thousand_requests_with_random_cancels_leak_nothing_on_http1() {
    storm(&Origin::http(), 2000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_thousand_requests_with_random_cancels_leak_nothing_on_http2() {
    storm(&Origin::https(), 2000).await;
}
