//! How many connections there are, and what becomes of requests when one ends.

use std::time::Duration;

use futures_util::future::join_all;
use trunkline_testkit::{ConnectionFault, Fault, Origin, Protocols, Resource, StreamReset, bytes};
use trunkline_transfer::{ErrorKind, Job, LaneChoice};

use crate::bench::{Bench, WAYS, Way, silent};

/// So many small files, all at once; each must come, whole.
async fn fetch_many(bench: &Bench, count: u64, context: &str) {
    let jobs: Vec<Job> = (0..count)
        .map(|n| {
            let path = format!("/many/{n}");
            bench.origin.put(&path, Resource::new(bytes(n, 3_000)));
            let mut job = bench.job(&path);
            job.destination = bench.folder().join(n.to_string());
            job
        })
        .collect();
    let observer = silent();
    let all = jobs.iter().map(|job| bench.engine.fetch(0, job, &observer));
    for result in join_all(all).await {
        result.unwrap_or_else(|error| panic!("{context}: {error:?}"));
    }
    for n in 0..count {
        let got = std::fs::read(bench.folder().join(n.to_string())).unwrap();
        assert!(got == bytes(n, 3_000), "{context}: file {n}");
    }
    assert_eq!(bench.names().len() as u64, count, "{context}: stray files");
}

#[tokio::test]
async fn many_files_take_few_connections_and_one_full_handshake_each() {
    for (origin, connections, name) in [(Origin::https(), 4, "h2"), (Origin::https_h1(), 6, "h1")] {
        let bench = Bench::at(origin, LaneChoice::Object, |_| {});
        fetch_many(&bench, 50, name).await;
        let counters = bench.origin.counters();
        assert_eq!(counters.requests, 50, "{name}");
        assert!(counters.connections_accepted <= connections, "{name}: {counters:?}");
        let handshakes = counters.handshakes_full + counters.handshakes_resumed;
        assert_eq!(handshakes, counters.connections_accepted, "{name}");
    }
}

#[tokio::test]
async fn an_origin_that_refuses_connections_above_two_serves_all_files_and_the_cap_is_learnt() {
    for (origin, name) in [
        (Origin::builder().protocols(Protocols::H1).connections_max(2).start(), "clear"),
        (Origin::builder().tls().protocols(Protocols::H1).connections_max(2).start(), "tls h1"),
        (Origin::builder().tls().connections_max(2).start(), "tls h2"),
    ] {
        let bench = Bench::at(origin, LaneChoice::Object, |_| {});
        // Slow enough that more connections would be wanted.
        let _ = bench.origin.script("/many/*").always(Fault::DelayHead(Duration::from_millis(20)));
        fetch_many(&bench, 50, name).await;
        let refused = bench.origin.counters().connections_refused;
        assert!(refused <= 12, "{name}: {refused} refused");
        fetch_many(&bench, 50, name).await;
        let later = bench.origin.counters().connections_refused;
        assert!(later <= refused + 1, "{name}: the cap is learnt: {refused}, then {later}");
    }
}

#[tokio::test]
async fn an_origin_that_resets_now_and_then_serves_all_files() {
    let bench = Bench::new(Way::Http1);
    let _ = bench
        .origin
        .connections()
        .pass(1)
        .times(2, ConnectionFault::ResetOnAccept)
        .pass(1)
        .once(ConnectionFault::ResetOnAccept);
    fetch_many(&bench, 50, "resets").await;
}

#[tokio::test]
async fn an_origin_that_refuses_every_connection_is_a_typed_error() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.older();
        let _ = bench.origin.connections().always(ConnectionFault::ResetOnAccept);
        let error = assert_kind!(bench.get().await, ErrorKind::Connection(_) | ErrorKind::Pool(_));
        assert_eq!(error.attempts, 5, "{way:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn an_origin_where_nobody_listens_is_a_typed_error() {
    let bench = Bench::new(Way::Http1);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    bench.older();
    let mut job = bench.job("/file");
    job.url = format!("http://127.0.0.1:{port}/file").parse().unwrap();
    assert_kind!(bench.run(&job).await, ErrorKind::Pool(_));
    bench.assert_older_alone();
}

#[tokio::test]
async fn an_origin_that_never_speaks_is_a_typed_error_within_the_time_to_connect() {
    for way in WAYS {
        let bench = Bench::with(way, |settings| {
            settings.network.connect_timeout = Duration::from_millis(500);
            settings.patience.retry.retries = 0;
        });
        bench.older();
        let _ = bench.origin.connections().always(ConnectionFault::Silent);
        assert_kind!(bench.get().await, ErrorKind::Pool(_) | ErrorKind::Stalled { .. });
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_goaway_loses_no_file_and_counts_no_attempt() {
    for streams in [1, 4, 10] {
        let bench = Bench::new(Way::Http2);
        let _ = bench.origin.connections().times(5, ConnectionFault::GoAwayAfter(streams));
        fetch_many(&bench, 50, &format!("goaway after {streams}")).await;
    }
}

#[tokio::test]
async fn an_origin_that_ends_every_connection_after_some_streams_serves_all_files() {
    for fault in [ConnectionFault::GoAwayAfter(10), ConnectionFault::LastResponse(10)] {
        let bench = Bench::new(Way::Http2);
        let _ = bench.origin.connections().always(fault.clone());
        fetch_many(&bench, 50, &format!("{fault:?}")).await;
    }
}

#[tokio::test]
async fn keep_alive_that_ends_is_followed_by_another_connection() {
    for way in [Way::Http1, Way::Range] {
        for fault in [ConnectionFault::LastResponse(3), ConnectionFault::CloseAfterResponses(3)] {
            let bench = Bench::new(way);
            let _ = bench.origin.connections().always(fault.clone());
            fetch_many(&bench, 50, &format!("{way:?} {fault:?}")).await;
        }
    }
}

#[tokio::test]
async fn a_refused_stream_is_free() {
    let bench = Bench::new(Way::Http2);
    let body = bytes(1, 40_000);
    bench.put(&body);
    let _ = bench.origin.script("/file").times(5, Fault::ResetStream(StreamReset::Refused));
    let receipt = bench.get().await.unwrap();
    assert_eq!(receipt.attempts, 1);
    bench.assert_whole(&body);
}

#[tokio::test]
async fn streams_that_are_refused_for_ever_are_a_typed_error() {
    let bench = Bench::new(Way::Http2);
    bench.put(&bytes(2, 40_000));
    bench.older();
    let _ = bench.origin.script("/file").always(Fault::ResetStream(StreamReset::Refused));
    assert_kind!(bench.get().await, ErrorKind::Connection(_));
    let asked = bench.origin.requests_to("/file").len();
    assert!(asked <= 32, "{asked}");
    bench.assert_older_alone();
}

#[tokio::test]
async fn a_reset_stream_is_tried_again() {
    let resets = [
        StreamReset::Internal,
        StreamReset::Cancel,
        StreamReset::EnhanceYourCalm,
        StreamReset::Protocol,
    ];
    for reset in resets {
        for fault in [Fault::ResetStream(reset), Fault::ResetStreamAfter(1_000_000, reset)] {
            let bench = Bench::new(Way::Http2);
            let body = bytes(3, 3_000_000);
            bench.put(&body);
            let _ = bench.origin.script("/file").once(fault.clone());
            bench.get().await.unwrap_or_else(|error| panic!("{fault:?}: {error:?}"));
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn one_reset_stream_does_not_disturb_the_others() {
    let bench = Bench::new(Way::Http2);
    let _ = bench.origin.script("/many/7").once(Fault::ResetStream(StreamReset::Internal));
    fetch_many(&bench, 50, "one reset").await;
}

#[tokio::test]
async fn http2_that_is_always_broken_gives_way_to_http1() {
    let bench = Bench::new(Way::Http2);
    let _ = bench.origin.connections().times(3, ConnectionFault::GarbageH2);
    let _ = bench.origin.connections().always(ConnectionFault::GarbageH2);
    fetch_many(&bench, 50, "garbage").await;
    let requests = bench.origin.requests();
    assert!(requests.iter().all(|request| request.head.protocol == "HTTP/1.1"));
    fetch_many(&bench, 50, "garbage, later").await;
}

#[tokio::test]
async fn connections_that_are_cut_in_mid_stream_lose_no_file() {
    for way in [Way::Http1, Way::Http2, Way::Range] {
        for fault in
            [ConnectionFault::CloseAfterBytes(40_000), ConnectionFault::ResetAfterBytes(40_000)]
        {
            let bench = Bench::new(way);
            let _ = bench.origin.connections().times(3, fault.clone());
            fetch_many(&bench, 50, &format!("{way:?} {fault:?}")).await;
        }
    }
}
