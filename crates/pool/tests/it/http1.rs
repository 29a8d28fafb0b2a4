//! HTTP/1.1: exclusive connections, in order.

use std::sync::{Arc, Mutex};

use futures_order::join_in_order;
use http::Method;
use trunkline_pool::{Limits, Pool};
use trunkline_testkit::{ConnectionFault, Fault, Gate, Origin, Reply};

use crate::site::{Site, limits, settle};

mod futures_order {
    //! Spawns in order and lets each get into the queue before the next.
    use super::settle;
    use tokio::task::JoinHandle;

    pub(super) async fn join_in_order<F>(count: usize, mut make: impl FnMut(usize) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for index in 0..count {
            tasks.push(tokio::spawn(make(index)));
            settle().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn it_grows_by_one_connection_a_waiting_request_up_to_the_cap() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    let mut leases = Vec::new();
    for open in 1..=6 {
        leases.push(site.lease().await);
        assert_eq!(site.pool.connections_open(), open);
    }
    assert_eq!(site.pool.stats().connections, 6);
}

#[tokio::test]
async fn a_burst_of_five_hundred_keeps_to_the_cap_and_reuses_its_connections() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.get_all(500, "/small").await;
    let seen = origin.counters();
    assert_eq!((seen.connections_accepted, seen.requests), (6, 500));
    assert_eq!(site.pool.stats().connections_peak, 6);
}

#[tokio::test]
async fn over_tls_it_learns_from_the_first_handshake_and_then_grows() {
    let origin = Origin::https_h1();
    let site = Site::new(&Pool::new(limits(4)), &origin);
    site.get_all(40, "/small").await;
    assert_eq!(origin.counters().connections_accepted, 4);
}

#[tokio::test]
async fn those_that_wait_are_served_in_order() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let first = site.lease().await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let held = Arc::new(Mutex::new(Some(first)));
    join_in_order(20, |index| {
        let (site, order, held) = (site.clone(), Arc::clone(&order), Arc::clone(&held));
        async move {
            if index == 19 {
                drop(held.lock().unwrap().take());
            }
            let lease = site.lease().await;
            order.lock().unwrap().push(index);
            drop(lease);
        }
    })
    .await;
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    assert_eq!(site.pool.stats().connections, 1);
}

#[tokio::test]
async fn the_connection_used_last_is_used_next() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    let (one, two) = (site.lease().await, site.lease().await);
    drop(one);
    let response = two.send(site.request(Method::HEAD, "/small")).await.unwrap();
    drop(response);
    site.get("/small").await.unwrap();
    let used: Vec<u64> = origin.requests().iter().map(|r| r.head.connection).collect();
    assert_eq!(used[0], used[1]);
}

#[tokio::test]
async fn answers_without_a_body_return_the_connection_at_once() {
    let origin = Origin::http();
    origin.handle("/none", |_, _| Reply::new(204));
    let site = Site::new(&Pool::new(limits(1)), &origin);
    for (method, path) in
        [(Method::HEAD, "/small"), (Method::GET, "/none"), (Method::GET, "/empty")]
    {
        let response = site.lease().await.send(site.request(method, path)).await.unwrap();
        // Not polled, not dropped: the next request has the connection all the same.
        site.get("/small").await.unwrap();
        drop(response);
    }
    assert_eq!(origin.counters().connections_accepted, 1);
}

#[tokio::test]
async fn a_body_dropped_in_mid_way_closes_the_connection_and_frees_its_place() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let mut body = site.open("/big").await.unwrap();
    body.chunk().await.unwrap().unwrap();
    drop(body);
    site.get("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 2);
    origin.until(|seen| seen.connections_open == 1).await;
}

#[tokio::test]
async fn a_request_dropped_before_its_answer_closes_the_connection() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let gate = Gate::new();
    let _ = origin.script("/small").once(Fault::HoldHead(gate.clone()));
    let task = tokio::spawn({
        let site = site.clone();
        async move { site.get("/small").await }
    });
    origin.until(|seen| seen.requests == 1).await;
    task.abort();
    site.get("/small").await.unwrap();
    assert_eq!(site.pool.connections_open(), 1);
    gate.open();
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_passes_its_turn_on() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let held = site.lease().await;
    let waiting = |site: &Site| {
        let site = site.clone();
        tokio::spawn(async move { site.get("/small").await.unwrap() })
    };
    let (gone, served) = (waiting(&site), waiting(&site));
    settle().await;
    gone.abort();
    settle().await;
    drop(held);
    served.await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 1);
}

#[tokio::test]
async fn a_waiter_cancelled_between_grant_and_receipt_passes_its_turn_on() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let held = site.lease().await;
    let mut gone = Box::pin(site.pool.lease());
    assert!(futures_poll(gone.as_mut()).is_pending());
    let served = tokio::spawn({
        let site = site.clone();
        async move { site.get("/small").await.unwrap() }
    });
    settle().await;
    drop(held);
    // The lease lies in the channel of the first, which goes without looking.
    drop(gone);
    served.await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 1);
}

fn futures_poll<F: Future + Unpin>(future: F) -> std::task::Poll<F::Output> {
    let mut future = future;
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::Pin::new(&mut future).poll(&mut cx)
}

#[tokio::test]
async fn waiters_that_are_gone_justify_no_connection() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(limits(2)), &origin);
    let (one, two) = (site.lease().await, site.lease().await);
    let mut gone: Vec<_> = (0..50).map(|_| Box::pin(site.pool.lease())).collect();
    for waiting in &mut gone {
        assert!(futures_poll(waiting.as_mut()).is_pending());
    }
    drop(gone);
    drop((one, two));
    site.get("/small").await.unwrap();
    assert_eq!(site.pool.stats().connections, 2);
}

#[tokio::test]
async fn an_idle_connection_closed_by_the_server_is_noticed() {
    let origin = Origin::http();
    let _ = origin.script("/small").once(Fault::CloseAfterResponse);
    let site = Site::new(&Pool::new(limits(1)), &origin);
    site.get("/small").await.unwrap();
    origin.until(|seen| seen.connections_open == 0).await;
    site.get_again("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 2);
}

#[tokio::test]
async fn an_answer_that_says_close_hands_its_connection_to_nobody() {
    let origin = Origin::http();
    let _ = origin.connections().always(ConnectionFault::LastResponse(1));
    let site = Site::new(&Pool::new(limits(1)), &origin);
    for _ in 0..5 {
        // No second try is needed.
        site.get("/small").await.unwrap();
    }
    assert_eq!(origin.counters().connections_accepted, 5);
}

#[tokio::test]
async fn warming_up_opens_connections_ahead_of_need() {
    let origin = Origin::http();
    let site = Site::new(&Pool::new(Limits::default()), &origin);
    site.pool.warm(4);
    origin.until(|seen| seen.connections_open == 4).await;
    site.get_all(4, "/small").await;
    assert_eq!(origin.counters().connections_accepted, 4);
}

#[tokio::test(start_paused = true)]
async fn unused_connections_expire() {
    let origin = Origin::http();
    let pool = Pool::new(Limits { idle_timeout: std::time::Duration::ZERO, ..limits(1) });
    let site = Site::new(&pool, &origin);
    drop(site.lease().await);
    assert_eq!(site.pool.connections_open(), 1);
    // The clock stands still and jumps to the sweep.
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(site.pool.connections_open(), 0);
}
