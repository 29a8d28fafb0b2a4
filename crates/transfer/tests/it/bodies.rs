//! Where a body stops, what is said of its length, and bodies that do not come.

use std::time::{Duration, Instant};

use trunkline_testkit::{Fault, Gate, Resource, bytes};
use trunkline_transfer::ErrorKind;
use trunkline_transport as transport;

use crate::bench::{Bench, OLDER, STALL, WAYS, WAYS_HTTP1, Way, sha256};

const BODY: usize = 3_000_000;
const SMALL: usize = 40_000;

#[tokio::test]
async fn a_cut_body_is_resumed_where_it_broke() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(1, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::CutAfter(1_000_000));
        bench.older();
        let receipt = bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(receipt.bytes, BODY as u64, "{way:?}");
        assert_eq!(receipt.attempts, 2, "{way:?}");
        let requests = bench.origin.requests_to("/file");
        assert_eq!(requests.len(), 2, "{way:?}");
        let again = &requests[1].head;
        let start: u64 = again
            .header("range")
            .and_then(|range| range.strip_prefix("bytes="))
            .and_then(|range| range.split('-').next())
            .unwrap()
            .parse()
            .unwrap();
        // HTTP/2 may lose what was in flight when the connection broke.
        assert!(start > 0 && start <= 1_000_000, "{way:?}: {start}");
        if way != Way::Http2 {
            assert_eq!(start, 1_000_000, "{way:?}");
        }
        assert!(again.header("if-range").is_some(), "{way:?}");
        assert_eq!(requests[1].status, Some(206), "{way:?}");
    }
}

#[tokio::test]
async fn a_reset_body_is_resumed() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(2, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::ResetAfter(1_500_000));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_cut_small_body_is_fetched_again() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(3, SMALL);
        bench.put(&body);
        let _ = bench
            .origin
            .script("/file")
            .once(Fault::CutAfter(0))
            .then(Fault::CutAfter(10_000))
            .then(Fault::ResetAfter(SMALL as u64 - 1));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.origin.requests_to("/file").len(), 4, "{way:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_cut_for_ever_at_one_place_ends_in_a_typed_error() {
    for way in WAYS {
        for length in [SMALL, BODY] {
            let bench = Bench::new(way);
            bench.put(&bytes(4, length));
            let fault = Fault::CutAfter(20_000).and(Fault::IgnoreRange);
            let _ = bench.origin.script("/file").always(fault);
            bench.older();
            let error =
                assert_kind!(bench.get().await, ErrorKind::Connection(transport::Error::Truncated));
            assert!(error.attempts <= 6, "{way:?}: {}", error.attempts);
            assert_eq!(std::fs::read(bench.destination()).unwrap(), OLDER);
        }
    }
}

#[tokio::test]
async fn every_cut_that_brought_something_is_followed_by_another_attempt() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(5, BODY);
        bench.put(&body);
        // More cuts than there are retries: only fruitless attempts count.
        let _ = bench.origin.script("/file").times(11, Fault::CutAfter(250_000));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_length_that_is_too_long_is_no_complete_file() {
    for way in WAYS {
        for length in [SMALL, BODY] {
            let bench = Bench::new(way);
            let body = bytes(6, length);
            bench.put(&body);
            bench.older();
            let script = bench.origin.script("/file").always(Fault::LengthTooLong(5));
            let error = bench.get().await.unwrap_err();
            assert!(
                matches!(
                    &error.kind,
                    ErrorKind::Connection(_)
                        | ErrorKind::Length { .. }
                        | ErrorKind::RangeMismatch { .. }
                ),
                "{way:?}: {error:?}"
            );
            assert!(error.attempts <= 8, "{way:?}");
            assert_eq!(std::fs::read(bench.destination()).unwrap(), OLDER);
            let _ = script.clear();
            bench.get().await.unwrap();
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn a_length_that_is_too_short_is_caught_by_the_checksum_and_spoils_nothing_else() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(7, SMALL);
        bench.put(&body);
        bench.older();
        let script = bench.origin.script("/file").always(Fault::LengthTooShort(100));
        let mut job = bench.job("/file");
        job.check = Some(sha256(&body));
        let error = bench.run(&job).await.unwrap_err();
        let typed = matches!(
            &error.kind,
            ErrorKind::Checksum { .. } | ErrorKind::Connection(_) | ErrorKind::Length { .. }
        );
        assert!(typed, "{way:?}: {error:?}");
        bench.assert_older_alone();
        // The bytes left over must not be taken for the next answer.
        let _ = script.clear();
        bench.run(&job).await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn bodies_without_a_length_are_complete_when_they_end_well() {
    for way in WAYS {
        for fault in [Fault::NoLength, Fault::Chunked] {
            for length in [0, SMALL, BODY] {
                let bench = Bench::new(way);
                let body = bytes(8, length);
                bench.put(&body);
                let _ = bench.origin.script("/file").always(fault.clone());
                let mut job = bench.job("/file");
                job.check = Some(sha256(&body));
                bench.run(&job).await.unwrap();
                bench.assert_whole(&body);
            }
        }
    }
}

#[tokio::test]
async fn a_body_without_length_that_is_cut_under_tls_is_not_complete() {
    for way in [Way::Http2, Way::RangeTls] {
        let bench = Bench::new(way);
        let body = bytes(9, BODY);
        bench.put(&body);
        bench.older();
        let script =
            bench.origin.script("/file").always(Fault::NoLength.and(Fault::CutAfter(900_000)));
        assert_kind!(bench.get().await, ErrorKind::Connection(transport::Error::Truncated));
        bench.assert_older_alone();
        let _ = script.clear();
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_body_without_length_that_is_cut_under_tls_on_http1_is_not_complete() {
    let origin = trunkline_testkit::Origin::https_h1();
    let bench = Bench::at(origin, Way::Http1.lane(), |_| {});
    bench.put(&bytes(10, BODY));
    bench.older();
    let _ = bench.origin.script("/file").always(Fault::NoLength.and(Fault::CutAfter(900_000)));
    assert_kind!(bench.get().await, ErrorKind::Connection(transport::Error::Truncated));
    bench.assert_older_alone();
}

#[tokio::test]
async fn broken_chunks_are_a_typed_error() {
    for way in WAYS_HTTP1 {
        for after in [0, 1_000, 200_000] {
            let bench = Bench::new(way);
            bench.put(&bytes(11, BODY));
            bench.older();
            let _ = bench.origin.script("/file").always(Fault::BadChunkSize(after));
            assert_kind!(
                bench.get().await,
                ErrorKind::Connection(
                    transport::Error::BrokenHttp1 { .. } | transport::Error::BrokenChunks(_)
                )
            );
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn a_body_without_its_last_chunk_is_fetched_again() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(12, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::NoFinalChunk);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.origin.requests_to("/file").len(), 2, "{way:?}");
    }
}

#[tokio::test]
async fn bytes_after_the_last_chunk_are_never_the_next_answer() {
    for way in WAYS_HTTP1 {
        let bench = Bench::new(way);
        let body = bytes(13, SMALL);
        bench.put(&body);
        bench.origin.put("/other", Resource::new(bytes(14, SMALL)));
        let _ = bench.origin.script("/file").always(Fault::DataAfterFinalChunk);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        bench.run(&bench.job("/other")).await.unwrap();
        bench.assert_whole(&bytes(14, SMALL));
    }
}

#[tokio::test]
async fn an_origin_that_never_answers_is_a_stall_in_about_the_time_allowed() {
    for way in WAYS {
        let bench = Bench::with(way, |settings| settings.patience.retry.retries = 0);
        bench.put(&bytes(15, SMALL));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::NeverAnswer);
        let started = Instant::now();
        assert_kind!(bench.get().await, ErrorKind::Stalled { after } if *after == STALL);
        let took = started.elapsed();
        assert!(took >= STALL, "{way:?}: {took:?}");
        assert!(took < STALL * 5, "{way:?}: {took:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_silent_answer_is_given_up_once_and_then_had() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(16, SMALL);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::NeverAnswer);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_resumed() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(17, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::StallAfter(2_000_000));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.ranges().len(), 2, "{way:?}");
        assert_eq!(bench.ranges()[1].as_deref(), Some("bytes=2000000-2999999"), "{way:?}");
    }
}

#[tokio::test]
async fn a_slow_body_is_no_stall() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(18, 3_000);
        bench.put(&body);
        let drip = Fault::Drip { bytes: 250, every: Duration::from_millis(100) };
        let _ = bench.origin.script("/file").always(drip);
        let receipt = bench.get().await.unwrap();
        assert!(receipt.elapsed > STALL, "{way:?}: it must take longer than the time-out");
        assert_eq!(receipt.attempts, 1, "{way:?}");
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_late_answer_waits_while_other_streams_of_its_origin_live() {
    for way in [Way::Http1, Way::Http2] {
        let bench = Bench::new(way);
        let (late, lively) = (bytes(19, SMALL), bytes(20, 30_000));
        bench.put(&late);
        bench.origin.put("/lively", Resource::new(lively));
        let gate = Gate::new();
        let _ = bench.origin.script("/file").always(Fault::HoldHead(gate.clone()));
        let drip = Fault::Drip { bytes: 1_500, every: Duration::from_millis(100) };
        let _ = bench.origin.script("/lively").always(drip);
        let mut other = bench.job("/lively");
        other.destination = bench.folder().join("lively");
        let waiting = async {
            let receipt = bench.get().await.unwrap();
            assert!(receipt.elapsed > STALL);
            assert_eq!(receipt.attempts, 1, "{way:?}");
        };
        let moving = async {
            bench.run(&other).await.unwrap();
            gate.open();
        };
        tokio::join!(waiting, moving);
        std::fs::remove_file(bench.folder().join("lively")).unwrap();
        bench.assert_whole(&late);
    }
}

#[tokio::test]
async fn fifty_slow_files_all_come_though_each_queues_longer_than_a_stall() {
    for way in WAYS_HTTP1 {
        let bench = Bench::new(way);
        let folder = bench.folder();
        let jobs: Vec<_> = (0..50)
            .map(|n| {
                let path = format!("/many/{n}");
                bench.origin.put(&path, Resource::new(bytes(n, 2_000)));
                let mut job = bench.job(&path);
                job.destination = folder.join(n.to_string());
                job
            })
            .collect();
        let slow = Fault::DelayHead(Duration::from_millis(150));
        let _ = bench.origin.script("/many/*").always(slow);
        let observer = crate::bench::silent();
        let all = jobs.iter().map(|job| bench.engine.fetch(0, job, &observer));
        for result in futures_util::future::join_all(all).await {
            assert_eq!(result.unwrap().attempts, 1, "{way:?}");
        }
        for n in 0..50u64 {
            assert_eq!(std::fs::read(folder.join(n.to_string())).unwrap(), bytes(n, 2_000));
        }
        let counters = bench.origin.counters();
        assert_eq!(counters.requests, 50, "{way:?}");
        assert!(counters.connections_accepted <= 6, "{way:?}: {counters:?}");
    }
}

#[tokio::test]
async fn a_flipped_bit_is_caught_by_the_checksum() {
    for way in WAYS {
        for length in [SMALL, BODY] {
            let bench = Bench::new(way);
            let body = bytes(21, length);
            bench.put(&body);
            bench.older();
            let _ = bench.origin.script("/file").always(Fault::CorruptByte(30_000));
            let mut job = bench.job("/file");
            job.check = Some(sha256(&body));
            assert_kind!(bench.run(&job).await, ErrorKind::Checksum { .. });
            bench.assert_older_alone();
            assert_eq!(bench.origin.requests_to("/file").len(), 1, "{way:?}");
        }
    }
}
