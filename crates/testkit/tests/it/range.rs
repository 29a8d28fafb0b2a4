use crate::client::{Raw, Response};
use trunkline_testkit::{Fault, Origin, Resource};

fn origin() -> Origin {
    let origin = Origin::http();
    origin.put("/r", Resource::new("0123456789").etag("\"v1\""));
    origin
}

fn range(origin: &Origin, fields: &str) -> Response {
    Raw::connect(origin).request("GET", "/r", fields).unwrap()
}

#[test]
fn a_range_is_answered_to_the_byte() {
    let origin = origin();
    let response = range(&origin, "range: bytes=2-4\r\n");
    assert_eq!((response.status, &response.body[..]), (206, &b"234"[..]));
    assert_eq!(response.header("content-range"), Some("bytes 2-4/10"));
    assert_eq!(range(&origin, "range: bytes=10-\r\n").header("content-range"), Some("bytes */10"));
    let stale = range(&origin, "range: bytes=2-4\r\nif-range: \"v0\"\r\n");
    assert_eq!((stale.status, stale.body.len()), (200, 10));
}

#[test]
fn each_lie_about_a_range_is_told_as_scripted() {
    let origin = origin();
    origin
        .script("/r")
        .once(Fault::IgnoreRange)
        .then(Fault::ContentRangeStart(-1))
        .then(Fault::ContentRangeTotal(99))
        .then(Fault::NoContentRange)
        .then(Fault::RangeCap(1))
        .then(Fault::OtherEtag("\"v2\"".into()))
        .then(Fault::NoAcceptRanges);
    let asked = "range: bytes=2-4\r\nif-range: \"v1\"\r\n";
    // A request without a range leaves the script alone.
    assert_eq!(range(&origin, "").status, 200);
    let whole = range(&origin, asked);
    assert_eq!((whole.status, whole.body.len()), (200, 10));
    let shifted = range(&origin, asked);
    assert_eq!(shifted.header("content-range"), Some("bytes 1-3/10"));
    assert_eq!(shifted.body, b"234");
    assert_eq!(range(&origin, asked).header("content-range"), Some("bytes 2-4/99"));
    let unlabelled = range(&origin, asked);
    assert_eq!((unlabelled.status, unlabelled.header("content-range")), (206, None));
    let capped = range(&origin, asked);
    assert_eq!((capped.status, &capped.body[..]), (206, &b"2"[..]));
    assert_eq!(capped.header("content-range"), Some("bytes 2-2/10"));
    let other = range(&origin, asked);
    assert_eq!((other.status, other.header("etag")), (206, Some("\"v2\"")));
    let silent = range(&origin, asked);
    assert_eq!((silent.status, silent.header("accept-ranges")), (206, None));
    assert_eq!(range(&origin, asked).status, 206);
}

#[test]
fn head_can_be_refused_or_left_without_a_length_while_get_works() {
    let origin = origin();
    origin.script("/r").times(2, Fault::HeadRefused(405)).always(Fault::HeadWithoutLength);
    let head = || Raw::connect(&origin).request("HEAD", "/r", "").unwrap();
    assert_eq!(head().status, 405);
    assert_eq!(range(&origin, "").status, 200);
    assert_eq!(head().status, 405);
    let bare = head();
    assert_eq!((bare.status, bare.header("content-length")), (200, None));
}
