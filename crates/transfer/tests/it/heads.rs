//! Heads that are too large, no heads at all, and interim answers.

use trunkline_testkit::{Fault, Resource, bytes};
use trunkline_transfer::ErrorKind;
use trunkline_transport as transport;

use crate::bench::{Bench, WAYS, WAYS_HTTP1, Way};

const SMALL: usize = 40_000;

#[tokio::test]
async fn a_head_of_a_megabyte_is_a_typed_error() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(1, SMALL));
        bench.origin.put("/other", Resource::new(bytes(2, SMALL)));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::HeaderSize(1 << 20));
        let error = assert_kind!(bench.get().await, ErrorKind::Connection(_));
        assert!(error.attempts <= 5, "{way:?}: {error:?}");
        bench.assert_older_alone();
        bench.run(&bench.job("/other")).await.unwrap();
        bench.assert_whole(&bytes(2, SMALL));
    }
}

#[tokio::test]
async fn a_bomb_of_headers_is_a_typed_error_and_asked_for_once() {
    for way in WAYS_HTTP1 {
        let bench = Bench::new(way);
        bench.put(&bytes(3, SMALL));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::HeaderCount(5_000));
        assert_kind!(
            bench.get().await,
            ErrorKind::Connection(
                transport::Error::BrokenHttp1 { .. } | transport::Error::BrokenHead(_)
            )
        );
        assert_eq!(bench.origin.requests_to("/file").len(), 1, "{way:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn many_headers_and_a_large_one_are_no_fault() {
    for way in WAYS {
        for fault in [Fault::HeaderCount(500), Fault::HeaderSize(60_000)] {
            let bench = Bench::new(way);
            let body = bytes(4, SMALL);
            bench.put(&body);
            let _ = bench.origin.script("/file").always(fault);
            bench.get().await.unwrap();
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(5, SMALL);
        bench.put(&body);
        let _ = bench.origin.script("/file").always(Fault::Interim(5));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_flood_of_interim_answers_brings_the_file_or_a_typed_error() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(6, SMALL);
        bench.put(&body);
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::Interim(3_000));
        match bench.get().await {
            Ok(_) => bench.assert_whole(&body),
            Err(error) => {
                assert!(matches!(&error.kind, ErrorKind::Connection(_)), "{way:?}: {error:?}");
                bench.assert_older_alone();
            }
        }
    }
}

#[tokio::test]
async fn a_status_line_that_is_none_is_a_typed_error() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(7, SMALL));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::BadStatusLine);
        let error = assert_kind!(bench.get().await, ErrorKind::Connection(_));
        assert!(error.attempts <= 5, "{way:?}: {error:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_the_head_is_tried_again() {
    for way in WAYS {
        for fault in [Fault::CloseBeforeHead, Fault::ResetBeforeHead] {
            let bench = Bench::new(way);
            let body = bytes(8, SMALL);
            bench.put(&body);
            let _ = bench.origin.script("/file").times(2, fault.clone());
            bench.get().await.unwrap_or_else(|error| panic!("{way:?} {fault:?}: {error:?}"));
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn connections_that_always_end_before_the_head_are_a_typed_error() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(9, SMALL));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::CloseBeforeHead);
        assert_kind!(bench.get().await, ErrorKind::Connection(_));
        let asked = bench.origin.requests_to("/file").len();
        assert!(asked <= 8, "{way:?}: {asked}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_stale_warm_connection_costs_no_attempt() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(10, SMALL);
        bench.put(&body);
        let _ = bench.origin.script("/file").times(3, Fault::CloseAfterResponse);
        for _ in 0..4 {
            let receipt = bench.get().await.unwrap();
            assert_eq!(receipt.attempts, 1, "{way:?}");
            bench.assert_whole(&body);
        }
        // A stale socket is noticed or met; met, the request went out twice.
        assert!(bench.origin.counters().connections_accepted >= 4 || way == Way::Http2, "{way:?}");
    }
}
