//! Ranges and validators when a transfer goes on where it broke.

use trunkline_testkit::{Fault, Resource, bytes};
use trunkline_transfer::{ErrorKind, Job};

use crate::bench::{Bench, PARTIAL, WAYS, Watch, Way, sha256};

const BODY: usize = 3_000_000;
const CUT: Fault = Fault::CutAfter(1_000_000);

#[tokio::test]
async fn a_server_that_ignores_the_range_sends_the_whole_file() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(1, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(CUT).then(Fault::IgnoreRange);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.origin.requests_to("/file").len(), 2, "{way:?}");
    }
}

#[tokio::test]
async fn a_wrong_content_range_is_never_written() {
    let lies = [
        Fault::ContentRangeStart(-1),
        Fault::ContentRangeStart(7),
        Fault::ContentRangeTotal(BODY as u64 + 1),
        Fault::NoContentRange,
    ];
    for way in WAYS {
        for lie in &lies {
            let bench = Bench::new(way);
            let body = bytes(2, BODY);
            bench.put(&body);
            let _ = bench.origin.script("/file").once(CUT).then(lie.clone());
            bench.get().await.unwrap_or_else(|error| panic!("{way:?} {lie:?}: {error:?}"));
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn an_origin_that_always_lies_about_ranges_is_a_typed_error() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(3, BODY));
        let _ = bench.origin.script("/file").also(Fault::ContentRangeStart(7)).always(CUT);
        let error = assert_kind!(bench.get().await, ErrorKind::RangeMismatch { .. });
        assert!(error.attempts <= 6, "{way:?}: {}", error.attempts);
        assert!(!bench.destination().exists(), "{way:?}");
    }
}

#[tokio::test]
async fn a_part_of_the_rest_is_not_the_rest() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(4, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(CUT).times(3, Fault::RangeCap(100_000));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_file_that_changed_is_fetched_anew_and_never_mixed() {
    for way in WAYS {
        let bench = Bench::new(way);
        let new = bytes(6, BODY);
        bench.put(&bytes(5, BODY));
        let _ = bench.origin.script("/file").once(CUT);
        bench.get_while_it_becomes(Resource::new(new.clone())).await.unwrap();
        bench.assert_whole(&new);
        let requests = bench.origin.requests_to("/file");
        assert_eq!(requests.len(), 2, "{way:?}: If-Range brings the new file at once");
    }
}

#[tokio::test]
async fn a_206_with_another_validator_is_not_appended() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(7, BODY);
        bench.put(&body);
        let _ =
            bench.origin.script("/file").once(CUT).then(Fault::OtherEtag("\"other\"".to_owned()));
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        let ranges = bench.ranges();
        assert_eq!(ranges.len(), 3, "{way:?}: cut, refused part, whole: {ranges:?}");
        assert_eq!(ranges[2], None, "{way:?}");
    }
}

#[tokio::test]
async fn a_file_that_changed_its_length_under_the_same_tag_is_fetched_anew() {
    for way in WAYS {
        for length in [500_000, 1_000_000, 2_000_000, 4_000_000] {
            let bench = Bench::new(way);
            let new = bytes(8, length);
            bench.origin.put("/file", Resource::new(bytes(9, BODY)).etag("\"same\""));
            let _ = bench.origin.script("/file").once(CUT);
            let becomes = Resource::new(new.clone()).etag("\"same\"");
            bench.get_while_it_becomes(becomes).await.unwrap();
            bench.assert_whole(&new);
        }
    }
}

#[tokio::test]
async fn a_file_without_a_strong_validator_is_fetched_anew() {
    for way in WAYS {
        for weak in [true, false] {
            let bench = Bench::new(way);
            let body = bytes(10, BODY);
            let resource = Resource::new(body.clone());
            let resource = if weak {
                resource.etag("W/\"weak\"")
            } else {
                resource.without_etag().without_last_modified()
            };
            bench.origin.put("/file", resource);
            let _ = bench.origin.script("/file").once(CUT);
            bench.get().await.unwrap();
            bench.assert_whole(&body);
            assert_eq!(bench.ranges(), [None, None], "{way:?}: nothing may be appended");
        }
    }
}

#[tokio::test]
async fn a_last_modified_date_is_validator_enough() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(11, BODY);
        bench.origin.put("/file", Resource::new(body.clone()).without_etag());
        let _ = bench.origin.script("/file").once(CUT);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert!(bench.ranges()[1].is_some(), "{way:?}");
        assert_eq!(bench.origin.requests_to("/file")[1].status, Some(206), "{way:?}");
    }
}

/// Fetches until `bytes` came, then drops the transfer.
async fn interrupt(bench: &Bench, job: &Job, bytes: u64) {
    let watch = Watch::new();
    let observer: std::sync::Arc<dyn trunkline_transfer::Observer> = watch.clone();
    tokio::select! {
        result = bench.engine.fetch(0, job, &observer) => panic!("ended: {result:?}"),
        () = watch.until(bytes) => {}
    }
}

#[tokio::test]
async fn a_dropped_transfer_leaves_what_the_next_run_resumes() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(12, BODY);
        bench.put(&body);
        bench.older();
        let script = bench.origin.script("/file").always(Fault::StallAfter(2_000_000));
        let mut job = bench.job("/file");
        job.check = Some(sha256(&body));
        interrupt(&bench, &job, 2_000_000).await;
        assert_eq!(std::fs::read(bench.destination()).unwrap(), crate::bench::OLDER);
        assert_eq!(bench.names(), [PARTIAL[0], PARTIAL[1], "out"], "{way:?}");
        let _ = script.clear();
        let receipt = bench.run(&job).await.unwrap();
        bench.assert_whole(&body);
        assert!(receipt.bytes_received < BODY as u64, "{way:?}: {receipt:?}");
        let again = bench.ranges().pop().unwrap();
        assert!(again.is_some(), "{way:?}");
    }
}

#[tokio::test]
async fn a_dropped_small_transfer_leaves_nothing() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(13, 40_000));
        bench.older();
        let _ = bench.origin.script("/file").always(Fault::StallAfter(20_000));
        interrupt(&bench, &bench.job("/file"), 20_000).await;
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_read_or_is_of_another_file_is_put_aside() {
    let way = Way::Http1;
    let spoil: [fn(&std::path::Path); 4] = [
        |state| std::fs::write(state, b"").unwrap(),
        |state| std::fs::write(state, b"{\"version\":1,\"url\":").unwrap(),
        |state| {
            let text = std::fs::read_to_string(state).unwrap();
            std::fs::write(state, text.replace("\"version\":1", "\"version\":99")).unwrap();
        },
        |state| {
            let text = std::fs::read_to_string(state).unwrap();
            std::fs::write(state, text.replace("sha256:", "sha256:00")).unwrap();
        },
    ];
    for (n, spoil) in spoil.into_iter().enumerate() {
        let bench = Bench::new(way);
        let body = bytes(14, BODY);
        bench.put(&body);
        let script = bench.origin.script("/file").always(Fault::StallAfter(2_000_000));
        interrupt(&bench, &bench.job("/file"), 2_000_000).await;
        spoil(&bench.folder().join(PARTIAL[1]));
        let _ = script.clear();
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.ranges().pop().unwrap(), None, "{n}");
    }
}

#[tokio::test]
async fn a_partial_of_another_url_is_never_continued() {
    let bench = Bench::new(Way::Http1);
    let (one, two) = (bytes(15, BODY), bytes(16, BODY));
    bench.put(&one);
    bench.origin.put("/two", Resource::new(two.clone()));
    let _ = bench.origin.script("/file").always(Fault::StallAfter(2_000_000));
    interrupt(&bench, &bench.job("/file"), 2_000_000).await;
    bench.run(&bench.job("/two")).await.unwrap();
    bench.assert_whole(&two);
}

#[tokio::test]
async fn a_partial_with_wrong_bytes_is_caught_by_the_checksum_and_removed() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(17, BODY);
    bench.put(&body);
    let script = bench.origin.script("/file").always(Fault::StallAfter(2_000_000));
    let mut job = bench.job("/file");
    job.check = Some(sha256(&body));
    interrupt(&bench, &job, 2_000_000).await;
    let partial = bench.folder().join(PARTIAL[0]);
    let length = std::fs::metadata(&partial).unwrap().len();
    std::fs::write(&partial, vec![0; usize::try_from(length).unwrap()]).unwrap();
    let _ = script.clear();
    assert_kind!(bench.run(&job).await, ErrorKind::Checksum { .. });
    assert!(bench.names().is_empty());
    bench.run(&job).await.unwrap();
    bench.assert_whole(&body);
}

#[tokio::test]
async fn a_partial_that_is_longer_than_the_file_does_no_harm() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(18, BODY);
    bench.put(&body);
    let script = bench.origin.script("/file").always(Fault::StallAfter(2_000_000));
    let mut job = bench.job("/file");
    job.check = Some(sha256(&body));
    interrupt(&bench, &job, 2_000_000).await;
    let mut longer = body.to_vec();
    longer.extend_from_slice(b"and more");
    std::fs::write(bench.folder().join(PARTIAL[0]), longer).unwrap();
    let _ = script.clear();
    bench.run(&job).await.unwrap();
    bench.assert_whole(&body);
}
