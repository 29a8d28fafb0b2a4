//! Statuses, Retry-After, types and codings; HEAD before a transfer.

use std::time::{Duration, Instant, SystemTime};

use http::StatusCode;
use trunkline_testkit::{Fault, Resource, bytes};
use trunkline_transfer::{Class, ErrorKind, Existing};

use crate::bench::{Bench, WAYS, Way, sha256};

const SMALL: usize = 40_000;

#[tokio::test]
async fn a_status_that_may_pass_is_waited_out() {
    for way in WAYS {
        for status in [408, 429, 500, 502, 503, 504] {
            let bench = Bench::new(way);
            let body = bytes(1, SMALL);
            bench.put(&body);
            let _ = bench.origin.script("/file").times(2, Fault::Status(status));
            let receipt = bench.get().await.unwrap();
            bench.assert_whole(&body);
            assert_eq!(receipt.attempts, 3, "{way:?} {status}");
            assert_eq!(bench.origin.counters().connections_accepted, 1, "{way:?} {status}");
        }
    }
}

#[tokio::test]
async fn a_status_that_never_passes_is_an_error_after_the_attempts_allowed() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(2, SMALL));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::Status(503));
        let error = assert_kind!(
            bench.get().await,
            ErrorKind::Status { status, .. } if *status == StatusCode::SERVICE_UNAVAILABLE
        );
        assert_eq!(error.attempts, 5, "{way:?}");
        assert_eq!(bench.origin.counters().requests, 5, "{way:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn the_wait_that_the_server_asks_for_is_kept() {
    for way in WAYS {
        for fault in [Fault::RetryAfter(503, 1), Fault::RetryAfter(429, 1)] {
            let bench = Bench::new(way);
            let body = bytes(3, SMALL);
            bench.put(&body);
            let _ = bench.origin.script("/file").once(fault.clone());
            let started = Instant::now();
            bench.get().await.unwrap();
            assert!(started.elapsed() >= Duration::from_secs(1), "{way:?} {fault:?}");
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn a_date_to_come_back_at_is_kept() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(4, SMALL);
    bench.put(&body);
    let _ = bench.origin.script("/file").once(Fault::RetryAfterDate(503, 2));
    let started = Instant::now();
    bench.get().await.unwrap();
    // Dates have whole seconds: up to one is lost.
    assert!(started.elapsed() >= Duration::from_millis(900));
    bench.assert_whole(&body);
}

#[tokio::test]
async fn an_hour_is_not_waited_but_reported_at_once() {
    for way in WAYS {
        for status in [429, 503] {
            let bench = Bench::new(way);
            bench.put(&bytes(5, SMALL));
            bench.older();
            let _ = bench.origin.script("/file").always(Fault::RetryAfter(status, 3600));
            let started = Instant::now();
            let error = assert_kind!(
                bench.get().await,
                ErrorKind::RetryLater { wait, .. } if *wait == Duration::from_secs(3600)
            );
            assert!(started.elapsed() < Duration::from_secs(10));
            assert_eq!(error.attempts, 1, "{way:?}");
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn a_429_holds_back_the_other_requests_of_its_origin() {
    let bench = Bench::new(Way::Http2);
    bench.put(&bytes(6, SMALL));
    bench.origin.put("/other", Resource::new(bytes(7, SMALL)));
    let _ = bench.origin.script("/file").once(Fault::RetryAfter(429, 1));
    let mut other = bench.job("/other");
    other.destination = bench.folder().join("other");
    let started = Instant::now();
    let second = async {
        bench.origin.until(|counters| counters.requests == 1).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        bench.run(&other).await.unwrap();
        assert!(started.elapsed() >= Duration::from_secs(1));
    };
    let (first, ()) = tokio::join!(bench.get(), second);
    first.unwrap();
}

#[tokio::test]
async fn a_final_status_is_never_tried_again() {
    for way in WAYS {
        for status in [400, 404, 410, 405, 416, 451, 501] {
            let bench = Bench::new(way);
            bench.older();
            let _ = bench.origin.script("/file").always(Fault::Status(status));
            let error = assert_kind!(
                bench.get().await,
                ErrorKind::Status { status: got, .. } if got.as_u16() == status
            );
            assert_eq!(error.attempts, 1, "{way:?} {status}");
            assert_eq!(bench.origin.counters().requests, 1, "{way:?} {status}");
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn an_unauthorised_answer_says_whether_credentials_were_sent() {
    for way in WAYS {
        for status in [401, 403] {
            let bench = Bench::new(way);
            bench.older();
            let _ = bench.origin.script("/file").always(Fault::Status(status));
            let error = assert_kind!(
                bench.get().await,
                ErrorKind::Authentication { status: got, had_credentials: false }
                    if got.as_u16() == status
            );
            assert_eq!(error.kind.class(), Class::Authentication);
            assert_eq!(bench.origin.counters().requests, 1, "{way:?} {status}");
            let mut job = bench.job("/file");
            job.url.set_username("me").unwrap();
            assert_kind!(
                bench.run(&job).await,
                ErrorKind::Authentication { had_credentials: true, .. }
            );
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn a_compressed_body_is_refused_whether_it_is_one_or_only_says_so() {
    for way in WAYS {
        for fault in [Fault::Gzip, Fault::ClaimGzip] {
            let bench = Bench::new(way);
            bench.put(&bytes(8, SMALL));
            bench.older();
            let _ = bench.origin.script("/file").always(fault);
            assert_kind!(
                bench.get().await,
                ErrorKind::Encoded { encoding } if encoding == "gzip"
            );
            bench.assert_older_alone();
            let asked = bench.origin.requests_to("/file");
            assert_eq!(asked[0].head.header("accept-encoding"), Some("identity"), "{way:?}");
            assert_eq!(asked.len(), 1, "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_web_page_in_place_of_a_package_is_refused_on_request() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::HtmlPage);
        let mut job = bench.job("/file");
        job.refuse_html = true;
        assert_kind!(bench.run(&job).await, ErrorKind::WebPage);
        bench.assert_older_alone();
        job.refuse_html = false;
        bench.run(&job).await.unwrap();
        assert!(std::fs::read(bench.destination()).unwrap().starts_with(b"<!DOCTYPE html>"));
    }
}

#[tokio::test]
async fn an_empty_answer_is_an_empty_file() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(9, 0));
        bench.older();
        let receipt = bench.get().await.unwrap();
        assert_eq!(receipt.bytes, 0, "{way:?}");
        bench.assert_whole(b"");
    }
}

#[tokio::test]
async fn an_empty_answer_does_not_pass_a_checksum() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(9, 0));
        bench.older();
        let mut job = bench.job("/file");
        job.check = Some(sha256(b"something"));
        assert_kind!(bench.run(&job).await, ErrorKind::Checksum { .. });
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_204_or_a_part_nobody_asked_for_is_no_file() {
    for way in WAYS {
        for status in [204, 206, 304] {
            let bench = Bench::new(way);
            bench.older();
            let _ = bench.origin.script("/file").always(Fault::Status(status));
            let error = bench.get().await.unwrap_err();
            let typed =
                matches!(&error.kind, ErrorKind::Status { .. } | ErrorKind::RangeMismatch { .. });
            assert!(typed, "{way:?} {status}: {error:?}");
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn a_complete_file_is_known_by_head_and_not_fetched() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(10, SMALL);
        bench.put(&body);
        std::fs::write(bench.destination(), &body).unwrap();
        let mut job = bench.job("/file");
        job.existing = Existing::Keep;
        let receipt = bench.run(&job).await.unwrap();
        assert!(receipt.unchanged, "{way:?}");
        assert_eq!(receipt.bytes, SMALL as u64);
        assert_eq!(bench.origin.requests_to("/file")[0].head.method, "HEAD");
        assert_eq!(bench.origin.counters().requests, 1, "{way:?}");
    }
}

#[tokio::test]
async fn a_head_that_tells_nothing_only_means_that_the_file_is_fetched() {
    let faults = [
        Fault::HeadRefused(403),
        Fault::HeadRefused(405),
        Fault::HeadRefused(501),
        Fault::HeadRefused(503),
        Fault::HeadWithoutLength,
    ];
    for way in WAYS {
        for fault in &faults {
            let bench = Bench::new(way);
            let body = bytes(11, SMALL);
            bench.put(&body);
            std::fs::write(bench.destination(), &body).unwrap();
            let _ = bench.origin.script("/file").also(fault.clone());
            let mut job = bench.job("/file");
            job.existing = Existing::Keep;
            let receipt = bench.run(&job).await.unwrap();
            assert!(!receipt.unchanged, "{way:?} {fault:?}");
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn a_head_without_answer_only_costs_time() {
    let bench = Bench::new(Way::Http2);
    let body = bytes(12, SMALL);
    bench.put(&body);
    bench.older();
    let _ = bench.origin.script("/file").once(Fault::NeverAnswer);
    let mut job = bench.job("/file");
    job.existing = Existing::Keep;
    bench.run(&job).await.unwrap();
    bench.assert_whole(&body);
}

#[tokio::test]
async fn a_file_that_is_newer_or_of_another_size_is_fetched() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(13, SMALL);
        let mut job = bench.job("/file");
        job.existing = Existing::Keep;
        std::fs::write(bench.destination(), bytes(14, SMALL)).unwrap();
        let later = SystemTime::now() + Duration::from_secs(3600);
        bench.origin.put("/file", Resource::new(body.clone()).last_modified(later));
        assert!(!bench.run(&job).await.unwrap().unchanged, "{way:?}");
        bench.assert_whole(&body);
        std::fs::write(bench.destination(), bytes(14, 10)).unwrap();
        bench.put(&body);
        assert!(!bench.run(&job).await.unwrap().unchanged, "{way:?}");
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_file_with_the_right_checksum_needs_no_request() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(15, SMALL);
    bench.put(&body);
    std::fs::write(bench.destination(), &body).unwrap();
    let mut job = bench.job("/file");
    job.existing = Existing::Keep;
    job.check = Some(sha256(&body));
    assert!(bench.run(&job).await.unwrap().unchanged);
    assert_eq!(bench.origin.counters().requests, 0);
    std::fs::write(bench.destination(), bytes(16, SMALL)).unwrap();
    assert!(!bench.run(&job).await.unwrap().unchanged);
    bench.assert_whole(&body);
}

#[tokio::test]
async fn a_mirror_serves_what_the_first_place_cannot() {
    for way in WAYS {
        let faults = [
            Fault::Status(404),
            Fault::Status(503),
            Fault::ClaimGzip,
            Fault::CorruptByte(5),
            Fault::ResetBeforeHead,
            Fault::BadStatusLine,
            Fault::NeverAnswer,
        ];
        for fault in faults {
            let bench = Bench::with(way, |settings| settings.patience.retry.retries = 1);
            let body = bytes(17, SMALL);
            bench.put(&body);
            bench.origin.put("/mirror", Resource::new(body.clone()));
            let _ = bench.origin.script("/file").always(fault.clone());
            let mut job = bench.job("/file");
            job.check = Some(sha256(&body));
            job.mirrors = vec![bench.url("/gone"), bench.url("/mirror")];
            bench.run(&job).await.unwrap_or_else(|error| panic!("{way:?} {fault:?}: {error:?}"));
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn the_last_mirrors_error_is_reported_when_none_serves() {
    let bench = Bench::new(Way::Http1);
    bench.older();
    let mut job = bench.job("/one");
    job.mirrors = vec![bench.url("/two")];
    let error = assert_kind!(bench.run(&job).await, ErrorKind::Status { .. });
    assert!(error.url.to_string().ends_with("/two"));
    bench.assert_older_alone();
}

#[tokio::test]
async fn a_job_that_takes_longer_than_its_time_is_timed_out() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(18, SMALL));
        bench.older();
        let drip = Fault::Drip { bytes: 10, every: Duration::from_millis(50) };
        let _ = bench.origin.script("/file").always(drip);
        let mut job = bench.job("/file");
        job.time_max = Some(Duration::from_millis(300));
        assert_kind!(bench.run(&job).await, ErrorKind::TimedOut { .. });
        bench.assert_older_alone();
    }
}
