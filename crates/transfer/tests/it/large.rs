//! Files that are fetched in chunks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trunkline_testkit::{Fault, Origin, Resource, bytes};
use trunkline_transfer::{ErrorKind, LARGE_BYTES_MIN, LaneChoice, Observer};
use trunkline_transport as transport;

use crate::bench::{Bench, OLDER, PARTIAL, Watch, Way, sha256};

const LARGE: usize = LARGE_BYTES_MIN as usize + 3_000_001;
const MIB: u64 = 1 << 20;

const WAYS: [Way; 3] = [Way::Http1, Way::Http2, Way::Range];

/// The range that a request asked for, end exclusive.
fn asked(range: &str) -> (u64, u64) {
    let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    (start.parse().unwrap(), end.parse::<u64>().unwrap() + 1)
}

fn bench(way: Way, seed: u64) -> (Bench, Bytes) {
    let bench = Bench::new(way);
    let body = bytes(seed, LARGE);
    bench.put(&body);
    (bench, body)
}

#[tokio::test]
async fn a_cut_large_file_asks_only_for_the_rest() {
    for way in [Way::Range, Way::RangeTls] {
        // One connection: what it had is what is kept.
        let bench = Bench::with(way, |settings| settings.limits.connections_per_origin = 1);
        let body = bytes(1, LARGE);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::CutAfter(20 * MIB));
        let receipt = bench.get().await.unwrap();
        bench.assert_whole(&body);
        let ranges = bench.ranges();
        assert_eq!(ranges[0], None);
        let (first, _) = asked(ranges[1].as_deref().unwrap());
        assert_eq!(first, 20 * MIB, "{way:?}: {ranges:?}");
        assert_eq!(receipt.bytes_received, LARGE as u64, "{way:?}: no byte came twice");
        let again = &bench.origin.requests_to("/file")[1].head;
        assert!(again.header("if-range").is_some());
    }
}

#[tokio::test]
async fn a_large_file_that_is_cut_again_and_again_keeps_what_it_has() {
    for way in WAYS {
        let (bench, body) = bench(way, 2);
        let _ = bench.origin.script("/file").times(12, Fault::CutAfter(3 * MIB));
        let receipt = bench.get().await.unwrap();
        bench.assert_whole(&body);
        let much = receipt.bytes_received;
        // A first body that the object lane gives up costs what was in flight.
        assert!(much < LARGE as u64 + 16 * MIB, "{way:?}: {much}");
    }
}

#[tokio::test]
async fn a_large_file_from_afar_comes_over_several_connections() {
    let origin = Origin::builder().tls().rtt(Duration::from_millis(10)).start();
    let bench = Bench::at(origin, LaneChoice::Range, |_| {});
    let body = bytes(3, LARGE);
    bench.put(&body);
    let mut job = bench.job("/file");
    job.check = Some(sha256(&body));
    let receipt = bench.run(&job).await.unwrap();
    bench.assert_whole(&body);
    let counters = bench.origin.counters();
    assert!(counters.connections_accepted > 1, "{counters:?}");
    assert!(counters.connections_open_max <= 6, "{counters:?}");
    assert!(receipt.bytes_received <= LARGE as u64 + 6 * MIB);
}

#[tokio::test]
async fn chunks_that_break_are_fetched_again_over_several_connections() {
    let origin = Origin::builder().tls().rtt(Duration::from_millis(10)).start();
    let bench = Bench::at(origin, LaneChoice::Range, |_| {});
    let body = bytes(4, LARGE);
    bench.put(&body);
    let _ = bench
        .origin
        .script("/file")
        .pass(1)
        .then(Fault::CutAfter(MIB))
        .then(Fault::Status(503))
        .then(Fault::ResetAfter(2 * MIB))
        .then(Fault::CloseBeforeHead)
        .then(Fault::StallAfter(100));
    bench.get().await.unwrap();
    bench.assert_whole(&body);
}

#[tokio::test]
async fn a_large_file_that_changed_midway_is_the_whole_new_one() {
    for way in [Way::Range, Way::RangeTls] {
        // One connection: nobody else completes the old file meanwhile.
        let bench = Bench::with(way, |settings| settings.limits.connections_per_origin = 1);
        bench.put(&bytes(5, LARGE));
        let new = bytes(6, LARGE);
        let _ = bench.origin.script("/file").once(Fault::CutAfter(20 * MIB));
        bench.older();
        bench.get_while_it_becomes(Resource::new(new.clone())).await.unwrap();
        bench.assert_whole(&new);
    }
}

#[tokio::test]
async fn a_large_file_whose_parts_have_another_validator_is_begun_anew() {
    for way in WAYS {
        let (bench, body) = bench(way, 7);
        let other = Fault::OtherEtag("\"other\"".to_owned());
        let _ = bench.origin.script("/file").once(Fault::CutAfter(20 * MIB)).then(other);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_large_file_that_changes_for_ever_is_a_typed_error() {
    let (bench, _) = bench(Way::Range, 8);
    bench.older();
    let count = std::sync::atomic::AtomicU64::new(0);
    let body = bytes(8, LARGE);
    bench.origin.handle("/restless", move |request, _| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let reply = trunkline_testkit::Reply::new(if request.header("range").is_some() {
            206
        } else {
            200
        });
        let reply = reply.header("etag", format!("\"v{n}\"")).header("accept-ranges", "bytes");
        match request.header("range").map(asked) {
            Some((start, end)) => reply
                .header("content-range", format!("bytes {start}-{}/{LARGE}", end - 1))
                .body(body.slice(start as usize..end as usize)),
            None => reply.body(body.clone()),
        }
    });
    let _ = bench.origin.script("/restless").always(Fault::CutAfter(5 * MIB));
    assert_kind!(bench.run(&bench.job("/restless")).await, ErrorKind::Changed { .. });
    bench.assert_older_alone();
}

#[tokio::test]
async fn a_large_file_without_working_ranges_comes_in_one_piece() {
    for way in WAYS {
        let (bench, body) = bench(way, 9);
        let _ =
            bench.origin.script("/file").also(Fault::IgnoreRange).once(Fault::CutAfter(20 * MIB));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_large_file_that_is_always_cut_without_ranges_ends_in_a_typed_error() {
    let (bench, _) = bench(Way::Range, 10);
    bench.older();
    let _ = bench.origin.script("/file").also(Fault::IgnoreRange).always(Fault::CutAfter(MIB));
    assert_kind!(
        bench.get().await,
        ErrorKind::Connection(transport::Error::Truncated) | ErrorKind::RangeIgnored
    );
    let asked = bench.origin.requests_to("/file").len();
    assert!(asked <= 16, "{asked}");
    bench.assert_older_alone();
}

#[tokio::test]
async fn a_large_file_without_validator_is_never_put_together_from_parts() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(11, LARGE);
        let bare = Resource::new(body.clone()).without_etag().without_last_modified();
        bench.origin.put("/file", bare);
        let _ = bench.origin.script("/file").once(Fault::CutAfter(20 * MIB));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert!(bench.ranges().iter().all(Option::is_none), "{way:?}: {:?}", bench.ranges());
    }
}

#[tokio::test]
async fn a_server_that_caps_ranges_is_asked_for_the_rest() {
    let (bench, body) = bench(Way::Range, 12);
    let _ =
        bench.origin.script("/file").also(Fault::RangeCap(3 * MIB)).once(Fault::CutAfter(10 * MIB));
    bench.get().await.unwrap();
    bench.assert_whole(&body);
}

#[tokio::test]
async fn a_wrong_content_range_is_never_written_into_a_large_file() {
    for lie in [Fault::ContentRangeStart(1), Fault::NoContentRange] {
        let (bench, body) = bench(Way::Range, 13);
        let _ = bench.origin.script("/file").once(Fault::CutAfter(20 * MIB)).times(2, lie);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_dropped_large_transfer_is_resumed_by_the_next_run() {
    for way in [Way::Range, Way::Http2] {
        let (bench, body) = bench(way, 14);
        bench.older();
        let script = bench.origin.script("/file").always(Fault::StallAfter(20 * MIB));
        let mut job = bench.job("/file");
        job.check = Some(sha256(&body));
        let watch = Watch::new();
        let observer: Arc<dyn Observer> = watch.clone();
        tokio::select! {
            result = bench.engine.fetch(0, &job, &observer) => panic!("ended: {result:?}"),
            () = watch.until(8 * MIB) => {}
        }
        assert_eq!(std::fs::read(bench.destination()).unwrap(), OLDER);
        assert_eq!(bench.names(), [PARTIAL[0], PARTIAL[1], "out"], "{way:?}");
        let _ = script.clear();
        let receipt = bench.run(&job).await.unwrap();
        bench.assert_whole(&body);
        let again = receipt.bytes_received;
        assert!(again < LARGE as u64, "{way:?}: {again} bytes came in the second run");
    }
}

#[tokio::test]
async fn a_large_file_with_a_flipped_bit_is_not_kept() {
    for way in WAYS {
        let (bench, body) = bench(way, 15);
        bench.older();
        let _ = bench.origin.script("/file").also(Fault::CorruptByte(100));
        let mut job = bench.job("/file");
        job.check = Some(sha256(&body));
        assert_kind!(bench.run(&job).await, ErrorKind::Checksum { .. });
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_large_file_that_stalls_for_ever_is_a_typed_error_and_resumable() {
    let bench = Bench::with(Way::Range, |settings| settings.limits.connections_per_origin = 1);
    let body = bytes(16, LARGE);
    bench.put(&body);
    bench.older();
    let script = bench.origin.script("/file").once(Fault::StallAfter(9 * MIB));
    let _ = bench.origin.script("/file").always(Fault::NeverAnswer);
    assert_kind!(bench.get().await, ErrorKind::Stalled { .. });
    assert_eq!(std::fs::read(bench.destination()).unwrap(), OLDER);
    assert_eq!(bench.names(), [PARTIAL[0], PARTIAL[1], "out"]);
    let _ = script.clear();
    let receipt = bench.get().await.unwrap();
    bench.assert_whole(&body);
    assert!(receipt.bytes_received <= LARGE as u64 - 9 * MIB, "{receipt:?}");
}
