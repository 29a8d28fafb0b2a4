//! The cap over all origins, and caps that origins teach.

use std::time::Duration;

use trunkline_pool::{Error, Limits, Pool};
use trunkline_testkit::{ConnectionFault, Fault, Origin};
use trunkline_transport::settings::HttpVersion;

use crate::site::{Failure, Site, limits};

fn in_all(connections: usize) -> Pool {
    Pool::new(Limits { connections_in_all: connections, ..Limits::default() })
}

#[tokio::test]
async fn unused_connections_of_one_origin_make_place_for_another() {
    let origins: Vec<Origin> = (0..5).map(|_| Origin::http()).collect();
    let pool = in_all(2);
    let sites: Vec<Site> = origins.iter().map(|origin| Site::new(&pool, origin)).collect();
    for site in &sites {
        site.get("/small").await.unwrap();
    }
    let open: usize = sites.iter().map(|site| site.pool.connections_open()).sum();
    assert!(open <= 2);
}

#[tokio::test]
async fn origins_that_starve_are_woken_one_after_the_other() {
    let origins: Vec<Origin> = (0..8).map(|_| Origin::http()).collect();
    let pool = in_all(2);
    let mut tasks = tokio::task::JoinSet::new();
    for origin in &origins {
        let site = Site::new(&pool, origin);
        tasks.spawn(async move { site.get_all(20, "/small").await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert!(origins.iter().all(|origin| origin.counters().requests == 20));
}

#[tokio::test]
async fn one_busy_origin_does_not_keep_another_out() {
    let (busy, other) = (Origin::http(), Origin::http());
    let pool = in_all(2);
    let (busy_site, other_site) = (Site::new(&pool, &busy), Site::new(&pool, &other));
    let _ = busy.script("/small").always(Fault::DelayHead(Duration::from_millis(5)));
    let crowd = tokio::spawn(async move { busy_site.get_all(200, "/small").await });
    busy.until(|seen| seen.requests >= 2).await;
    other_site.get("/small").await.unwrap();
    assert!(busy.counters().requests < 100, "the other one waited for the end of the queue");
    crowd.await.unwrap();
}

#[tokio::test]
async fn a_woken_origin_that_wants_nothing_passes_its_turn_on() {
    let origins: Vec<Origin> = (0..3).map(|_| Origin::http()).collect();
    let pool = in_all(1);
    let sites: Vec<Site> = origins.iter().map(|origin| Site::new(&pool, origin)).collect();
    let held = sites[0].lease().await;
    let gone = tokio::spawn({
        let site = sites[1].clone();
        async move { site.get("/small").await }
    });
    crate::site::settle().await;
    let served = tokio::spawn({
        let site = sites[2].clone();
        async move { site.get("/small").await }
    });
    crate::site::settle().await;
    gone.abort();
    let _ = gone.await;
    drop(held);
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_refused_above_a_number_lower_the_cap_and_fail_nothing() {
    let origin = Origin::builder().connections_max(2).start();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get_all(100, "/small").await;
    assert_eq!(origin.counters().connections_open_max, 2);
    let refused = origin.counters().connections_refused;
    assert!((1..=8).contains(&refused), "{refused} refused");
}

#[tokio::test]
async fn handshakes_cut_above_a_number_lower_the_cap_and_fail_nothing() {
    let origin = Origin::builder().tls().connections_max(2).start();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get_all(150, "/small").await;
    assert_eq!(origin.counters().connections_open_max, 2);
    assert_eq!(site.pool.stats().dials_failed, origin.counters().connections_refused);
}

#[tokio::test]
async fn with_no_connection_left_all_get_the_same_error_and_the_next_dials_anew() {
    let origin = Origin::https();
    let _ = origin.connections().once(ConnectionFault::ResetOnAccept);
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let site = site.clone();
        tasks.spawn(async move { site.get("/small").await });
    }
    let mut errors = Vec::new();
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            Err(Failure::Lease(Error::Dial(error))) => errors.push(error),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(errors.len(), 10);
    assert!(errors.iter().all(|error| std::sync::Arc::ptr_eq(error, &errors[0])));
    site.get("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 1);
}

#[tokio::test]
async fn slowing_down_gives_a_connection_back() {
    let origin = Origin::http();
    let site = Site::of(&Pool::new(limits(3)), &origin, HttpVersion::Http1);
    let leases = [site.lease().await, site.lease().await, site.lease().await];
    site.pool.slow_down();
    drop(leases);
    assert_eq!(site.pool.connections_open(), 2);
    site.get_all(20, "/small").await;
    assert_eq!(site.pool.stats().connections, 3);
}
