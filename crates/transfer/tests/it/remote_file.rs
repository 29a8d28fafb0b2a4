//! Random reads of a file on a server.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use trunkline_testkit::{Fault, Resource, bytes};
use trunkline_transfer::{Error, ErrorKind, RemoteFile};

use crate::bench::{Bench, WAYS, Way};

const SIZE: usize = 2_000_000;

/// Remote files use the range lane: in clear text and under TLS.
const LANES: [Way; 2] = [Way::Range, Way::RangeTls];

async fn open(bench: &Bench) -> Result<RemoteFile, Error> {
    RemoteFile::open(&bench.engine, &bench.url("/file"), HeaderMap::new()).await
}

async fn read(file: &RemoteFile, offset: u64, length: usize) -> Result<Vec<u8>, Error> {
    let mut buffer = vec![0; length];
    file.read_at(offset, &mut buffer).await.map(|()| buffer)
}

#[tokio::test]
async fn size_and_bytes_are_had_without_head() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(1, SIZE);
        bench.put(&body);
        let _ = bench.origin.script("/file").also(Fault::HeadRefused(405));
        let file = open(&bench).await.unwrap();
        assert_eq!(file.size(), SIZE as u64);
        assert!(file.validator().is_some());
        for (offset, length) in [(0, 1), (0, 4096), (1_234_567, 100_000), (SIZE - 1, 1), (7, 0)] {
            let got = read(&file, offset as u64, length).await.unwrap();
            assert!(got == body[offset..offset + length], "{offset}+{length}");
        }
        let requests = bench.origin.requests();
        assert!(requests.iter().all(|request| request.head.method == "GET"));
        assert_eq!(requests.len(), 5, "{way:?}: one to open, one a read, none for nothing");
        assert_eq!(bench.origin.counters().connections_accepted, 1, "{way:?}");
    }
}

#[tokio::test]
async fn an_empty_file_is_empty() {
    for way in LANES {
        let bench = Bench::new(way);
        bench.put(&bytes(2, 0));
        let file = open(&bench).await.unwrap();
        assert_eq!(file.size(), 0);
        read(&file, 0, 0).await.unwrap();
        assert_kind!(read(&file, 0, 1).await, ErrorKind::Length { .. });
    }
}

#[tokio::test]
async fn a_read_beyond_the_end_asks_for_nothing() {
    let bench = Bench::new(Way::Range);
    bench.put(&bytes(3, SIZE));
    let file = open(&bench).await.unwrap();
    assert_kind!(read(&file, SIZE as u64 - 5, 6).await, ErrorKind::Length { .. });
    assert_kind!(read(&file, u64::MAX, 2).await, ErrorKind::Length { .. });
    assert_eq!(bench.origin.counters().requests, 1);
}

#[tokio::test]
async fn a_server_without_ranges_is_told_apart() {
    for way in LANES {
        let bench = Bench::new(way);
        bench.put(&bytes(4, SIZE));
        let _ = bench.origin.script("/file").also(Fault::IgnoreRange);
        let error = assert_kind!(open(&bench).await, ErrorKind::RangeIgnored);
        assert_eq!(error.attempts, 1);
        let _ = bench.origin.script("/file").also(Fault::NoLength);
        assert_kind!(open(&bench).await, ErrorKind::LengthUnknown);
    }
}

#[tokio::test]
async fn ranges_that_are_ignored_later_are_never_wrong_bytes() {
    for way in LANES {
        let bench = Bench::new(way);
        bench.put(&bytes(5, SIZE));
        let file = open(&bench).await.unwrap();
        let _ = bench.origin.script("/file").also(Fault::IgnoreRange);
        assert_kind!(read(&file, 1000, 4096).await, ErrorKind::RangeIgnored);
    }
}

#[tokio::test]
async fn another_content_range_is_never_wrong_bytes() {
    for way in LANES {
        for fault in
            [Fault::ContentRangeStart(1), Fault::ContentRangeStart(-1), Fault::NoContentRange]
        {
            let bench = Bench::new(way);
            let body = bytes(6, SIZE);
            bench.put(&body);
            let file = open(&bench).await.unwrap();
            let _ = bench.origin.script("/file").once(fault.clone());
            let got = read(&file, 1000, 4096).await.unwrap();
            assert!(got == body[1000..5096]);
            let _ = bench.origin.script("/file").always(fault);
            assert_kind!(read(&file, 1000, 4096).await, ErrorKind::RangeMismatch { .. });
        }
        let bench = Bench::new(way);
        bench.put(&bytes(6, SIZE));
        let file = open(&bench).await.unwrap();
        let _ = bench.origin.script("/file").always(Fault::ContentRangeTotal(SIZE as u64 + 1));
        assert_kind!(read(&file, 1000, 4096).await, ErrorKind::Changed { .. });
    }
}

#[tokio::test]
async fn a_capped_range_is_followed_by_a_request_for_the_rest() {
    for way in LANES {
        let bench = Bench::new(way);
        let body = bytes(7, SIZE);
        bench.put(&body);
        let _ = bench.origin.script("/file").also(Fault::RangeCap(30_000));
        let file = open(&bench).await.unwrap();
        let got = read(&file, 500, 100_000).await.unwrap();
        assert!(got == body[500..100_500]);
        let ranges = bench.ranges();
        assert_eq!(
            ranges.iter().flatten().map(String::as_str).collect::<Vec<_>>(),
            [
                "bytes=0-0",
                "bytes=500-100499",
                "bytes=30500-100499",
                "bytes=60500-100499",
                "bytes=90500-100499"
            ]
        );
    }
}

#[tokio::test]
async fn a_file_that_changed_is_an_error_and_never_a_mix() {
    for way in LANES {
        let bench = Bench::new(way);
        bench.put(&bytes(8, SIZE));
        let file = open(&bench).await.unwrap();
        bench.put(&bytes(9, SIZE));
        let error = assert_kind!(read(&file, 0, 4096).await, ErrorKind::Changed { .. });
        assert_eq!(error.attempts, 1);
        bench.put(&bytes(8, SIZE));
        let other = Fault::OtherEtag("\"other\"".to_owned());
        let _ = bench.origin.script("/file").once(other);
        assert_kind!(read(&file, 0, 4096).await, ErrorKind::Changed { .. });
        read(&file, 0, 4096).await.unwrap();
    }
}

#[tokio::test]
async fn a_compressed_range_is_refused() {
    for way in LANES {
        for fault in [Fault::Gzip, Fault::ClaimGzip] {
            let bench = Bench::new(way);
            bench.put(&bytes(10, SIZE));
            let script = bench.origin.script("/file").always(fault.clone());
            assert_kind!(open(&bench).await, ErrorKind::Encoded { .. });
            let _ = script.clear();
            let file = open(&bench).await.unwrap();
            let _ = bench.origin.script("/file").always(fault);
            assert_kind!(read(&file, 0, 4096).await, ErrorKind::Encoded { .. });
        }
    }
}

#[tokio::test]
async fn a_redirect_is_resolved_once_and_again_when_its_target_expires() {
    for way in LANES {
        for status in [403, 404] {
            let bench = Bench::new(way);
            let body = bytes(11, SIZE);
            for path in ["/signed/1", "/signed/2"] {
                bench.origin.put(path, Resource::new(body.clone()));
            }
            let _ = bench
                .origin
                .script("/file")
                .once(Fault::Redirect(302, "/signed/1".to_owned()))
                .always(Fault::Redirect(302, "/signed/2".to_owned()));
            let file = open(&bench).await.unwrap();
            for _ in 0..3 {
                read(&file, 10, 1000).await.unwrap();
            }
            assert_eq!(bench.origin.requests_to("/file").len(), 1, "{way:?}: resolved once");
            let _ = bench.origin.script("/signed/1").always(Fault::Status(status));
            for _ in 0..3 {
                let got = read(&file, 10, 1000).await.unwrap();
                assert!(got == body[10..1010]);
            }
            assert_eq!(bench.origin.requests_to("/file").len(), 2, "{way:?}");
            let _ = bench.origin.script("/signed/2").always(Fault::Status(status));
            let error = read(&file, 10, 1000).await.unwrap_err();
            assert_eq!(error.kind.status().map(|s| s.as_u16()), Some(status));
        }
    }
}

#[tokio::test]
async fn stalls_resets_cuts_and_busy_servers_are_tried_again() {
    let faults = [
        Fault::StallAfter(1_000),
        Fault::NeverAnswer,
        Fault::Status(503),
        Fault::Status(500),
        Fault::RetryAfter(429, 0),
        Fault::ResetBeforeHead,
        Fault::CloseBeforeHead,
        Fault::CutAfter(1_000),
        Fault::ResetAfter(50_000),
        Fault::LengthTooLong(1),
    ];
    for way in LANES {
        for fault in &faults {
            let bench = Bench::new(way);
            let body = bytes(12, SIZE);
            bench.put(&body);
            let file = open(&bench).await.unwrap();
            let _ = bench.origin.script("/file").once(fault.clone());
            let got = read(&file, 77, 100_000).await;
            let got = got.unwrap_or_else(|error| panic!("{way:?} {fault:?}: {error:?}"));
            assert!(got == body[77..100_077], "{way:?} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_fails_for_ever_is_a_typed_error() {
    for way in LANES {
        let bench = Bench::new(way);
        bench.put(&bytes(13, SIZE));
        let file = open(&bench).await.unwrap();
        let _ = bench.origin.script("/file").always(Fault::Status(503));
        let error = assert_kind!(read(&file, 0, 10).await, ErrorKind::Status { .. });
        assert_eq!(error.attempts, 5);
        let _ = bench.origin.script("/file").clear().always(Fault::RetryAfter(503, 3600));
        assert_kind!(read(&file, 0, 10).await, ErrorKind::RetryLater { .. });
        let _ = bench.origin.script("/file").clear().always(Fault::NeverAnswer);
        assert_kind!(read(&file, 0, 10).await, ErrorKind::Stalled { .. });
    }
}

#[tokio::test]
async fn concurrent_reads_agree_with_the_file_whatever_happens_on_the_way() {
    for way in LANES {
        let bench = Bench::new(way);
        let body = bytes(14, SIZE);
        bench.put(&body);
        let file = Arc::new(open(&bench).await.unwrap());
        let script = bench.origin.script("/file");
        let _ = [
            Fault::CutAfter(100),
            Fault::Status(503),
            Fault::RangeCap(5_000),
            Fault::ResetAfter(2_000),
            Fault::CloseAfterResponse,
            Fault::ContentRangeStart(3),
            Fault::DelayHead(Duration::from_millis(20)),
        ]
        .into_iter()
        .cycle()
        .take(35)
        .fold(script, |script, fault| script.pass(3).then(fault));
        // Offsets and lengths from the fixture's own generator: equal in every run.
        let seeds = bytes(15, 200 * 8);
        let reads = seeds.chunks(8).map(|seed| {
            let offset = u32::from_le_bytes(seed[..4].try_into().unwrap()) as usize % SIZE;
            let length = u32::from_le_bytes(seed[4..].try_into().unwrap()) as usize % 40_000;
            let length = length.min(SIZE - offset);
            let (file, body) = (Arc::clone(&file), body.clone());
            tokio::spawn(async move {
                let got = read(&file, offset as u64, length).await.unwrap();
                assert!(got == body[offset..offset + length], "{offset}+{length}");
            })
        });
        for read in reads.collect::<Vec<_>>() {
            read.await.unwrap();
        }
        // The origin counts closing connections too: the pool's own count is meant.
        let peak = bench.engine.stats_total().connections_peak;
        assert!(peak <= 6, "{way:?}: {peak}");
    }
}
