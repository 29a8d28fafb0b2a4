//! How a pool ends.

use trunkline_pool::{Error, Limits, Pool};
use trunkline_testkit::{Fault, Gate, Origin};

use crate::site::{Site, limits, read, settle};

#[tokio::test]
async fn closing_fails_those_that_wait_and_closes_what_idles() {
    for origin in [Origin::http(), Origin::https()] {
        let pool = Pool::new(limits(1));
        let site = Site::new(&pool, &origin);
        let gate = Gate::new();
        let _ = origin.script("/big").once(Fault::HoldAfter(10, gate.clone()));
        let body = site.open("/big").await.unwrap();
        let waiting = tokio::spawn({
            let site = site.clone();
            async move { site.pool.lease_range().await.map(drop) }
        });
        settle().await;
        pool.close();
        assert!(matches!(waiting.await.unwrap(), Err(Error::Closed)));
        assert!(matches!(site.pool.lease().await, Err(Error::Closed)));
        // What is under way may end, and its connection ends with it.
        gate.open();
        assert_eq!(read(body).await.unwrap().len(), 8 << 20);
        origin.until(|seen| seen.connections_open == 0).await;
        assert_eq!(site.pool.connections_open(), 0);
    }
}

#[tokio::test]
async fn dropping_the_last_clone_closes_the_connections() {
    for origin in [Origin::http(), Origin::https()] {
        let pool = Pool::new(Limits::default());
        let clone = pool.clone();
        let site = Site::new(&pool, &origin).weak();
        site.get("/small").await.unwrap();
        drop(pool);
        site.get("/small").await.unwrap();
        drop(clone);
        origin.until(|seen| seen.connections_open == 0).await;
        assert!(matches!(site.pool.lease().await, Err(Error::Closed)));
    }
}

#[test]
fn leases_and_pools_outlive_their_runtime() {
    for origin in [Origin::http(), Origin::https()] {
        let pool = Pool::new(limits(1));
        let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let first = runtime();
        let site = first.block_on(async { Site::new(&pool, &origin) });
        let lease = first.block_on(site.lease());
        let body = if lease.is_http2() { first.block_on(site.open("/big")).ok() } else { None };
        // A dial in its course when the runtime ends.
        first.spawn({
            let site = site.clone();
            async move { site.get("/small").await.map(drop) }
        });
        drop(first);
        drop(lease);
        drop(body);
        // The pool serves another runtime: what the first one dialled is dead and replaced.
        runtime().block_on(site.get_again("/small")).unwrap();
        drop(pool);
        drop(site);
    }
}

#[test]
fn a_lease_dropped_outside_of_any_runtime_passes_its_turn_on() {
    let origin = Origin::http();
    let pool = Pool::new(limits(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let site = runtime.block_on(async { Site::new(&pool, &origin) });
    let body = runtime.block_on(site.open("/big")).unwrap();
    let waiting = runtime.spawn({
        let site = site.clone();
        async move { site.get("/small").await.map(drop) }
    });
    // Closes its connection, so that the waiter needs a dial.
    std::thread::spawn(move || drop(body)).join().unwrap();
    runtime.block_on(waiting).unwrap().unwrap();
}
