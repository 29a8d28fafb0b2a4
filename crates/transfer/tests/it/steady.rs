//! Bodies that are worked on as they arrive.

use http::Method;
use trunkline_testkit::{Fault, bytes};
use trunkline_transfer::{Error, Piece, Request};

use crate::bench::{Bench, Way};

const BODY: usize = 3_000_000;
const OBJECT_WAYS: [Way; 2] = [Way::Http1, Way::Http2];

/// Reads to the end; the body, and how often it began anew.
async fn read(bench: &Bench) -> Result<(Vec<u8>, usize), Error> {
    let url = bench.origin.url("/file").parse().unwrap();
    let mut answer = bench.engine.open_steady(Request::new(Method::GET, url)).await?;
    let (mut body, mut restarts) = (Vec::new(), 0);
    loop {
        match answer.next().await? {
            Piece::Data(data) => body.extend_from_slice(&data),
            Piece::Restart => {
                body.clear();
                restarts += 1;
            }
            Piece::End => return Ok((body, restarts)),
        }
    }
}

#[tokio::test]
async fn a_cut_body_goes_on_where_it_was_cut() {
    for way in OBJECT_WAYS {
        let bench = Bench::new(way);
        let body = bytes(1, BODY);
        bench.put(&body);
        // More often than attempts without progress are allowed.
        let _ = bench.origin.script("/file").times(6, Fault::CutAfter(300_000));
        let (read, restarts) = read(&bench).await.unwrap();
        assert!(read == body, "{way:?}");
        assert_eq!(restarts, 0, "{way:?}");
        assert_eq!(bench.origin.requests_to("/file").len(), 7, "{way:?}");
    }
}

#[tokio::test]
async fn a_server_without_ranges_begins_anew_and_bytes_are_never_mixed() {
    for way in OBJECT_WAYS {
        for lie in [Fault::IgnoreRange, Fault::ContentRangeStart(7), Fault::NoContentRange] {
            let bench = Bench::new(way);
            let body = bytes(2, BODY);
            bench.put(&body);
            let cut = Fault::CutAfter(1_000_000);
            let _ = bench.origin.script("/file").once(cut).then(lie.clone());
            let (read, restarts) = read(&bench).await.unwrap();
            assert!(read == body, "{way:?} {lie:?}");
            assert_eq!(restarts, 1, "{way:?} {lie:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_always_cut_at_one_place_is_an_error_in_the_end() {
    for way in OBJECT_WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(3, BODY));
        let cut = Fault::CutAfter(1_000_000);
        let _ = bench.origin.script("/file").also(Fault::IgnoreRange).always(cut);
        let error = read(&bench).await.unwrap_err();
        assert!(error.attempts <= 6, "{way:?}: {error:?}");
    }
}
