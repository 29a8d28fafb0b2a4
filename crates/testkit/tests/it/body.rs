use crate::client::{Raw, get};
use std::io::ErrorKind;
use std::io::Read as _;
use std::time::{Duration, Instant};
use trunkline_testkit::{Fault, Gate, Origin, Resource, bytes};

fn origin() -> (Origin, bytes::Bytes) {
    let origin = Origin::http();
    let body = bytes(1, 20_000);
    origin.put("/a.bin", Resource::new(body.clone()));
    (origin, body)
}

#[test]
fn without_a_script_the_body_is_exact_and_the_connection_kept() {
    let (origin, body) = origin();
    let mut raw = Raw::connect(&origin);
    for _ in 0..3 {
        let response = raw.get("/a.bin").unwrap();
        assert_eq!((response.status, &response.body[..]), (200, &body[..]));
        assert!(response.header("etag").is_some());
    }
    let head = raw.request("HEAD", "/a.bin", "").unwrap();
    assert_eq!(head.header("content-length"), Some("20000"));
    assert_eq!(origin.counters().connections_accepted, 1);
    assert_eq!(origin.counters().requests, 4);
}

#[test]
fn cut_after_closes_in_the_middle_and_the_next_request_is_served() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::CutAfter(7_000));
    let cut = get(&origin, "/a.bin").unwrap();
    assert_eq!(cut.error.unwrap().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(cut.body, &body[..7_000]);
    assert_eq!(get(&origin, "/a.bin").unwrap().body, body);
}

#[test]
fn a_head_request_does_not_use_up_a_body_fault() {
    let (origin, _) = origin();
    origin.script("/a.bin").once(Fault::CutAfter(1));
    assert_eq!(Raw::connect(&origin).request("HEAD", "/a.bin", "").unwrap().status, 200);
    assert!(get(&origin, "/a.bin").unwrap().error.is_some());
}

#[test]
fn reset_after_is_a_tcp_reset() {
    let (origin, _) = origin();
    origin.script("/a.bin").once(Fault::ResetAfter(100));
    let error = match get(&origin, "/a.bin") {
        Ok(response) => response.error.unwrap(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn stall_after_sends_a_part_and_nothing_more() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::StallAfter(500));
    let mut raw = Raw::connect(&origin);
    raw.tcp.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let response = raw.get("/a.bin").unwrap();
    assert_eq!(response.error.unwrap().kind(), ErrorKind::WouldBlock);
    assert_eq!(response.body, &body[..500]);
}

#[test]
fn hold_after_waits_for_the_gate() {
    let (origin, body) = origin();
    let gate = Gate::new();
    origin.script("/a.bin").once(Fault::HoldAfter(500, gate.clone()));
    let mut raw = Raw::connect(&origin);
    raw.send("GET /a.bin HTTP/1.1\r\nhost: x\r\n\r\n");
    origin.block_until(|counters| counters.body_bytes_sent == 500);
    gate.open();
    assert_eq!(raw.response(false).unwrap().body, body);
}

#[test]
fn drip_takes_its_time() {
    let (origin, _) = origin();
    origin.put("/short", Resource::new("12345"));
    let every = Duration::from_millis(20);
    origin.script("/short").once(Fault::Drip { bytes: 1, every });
    let started = Instant::now();
    assert_eq!(get(&origin, "/short").unwrap().body, b"12345");
    assert!(started.elapsed() >= 5 * every);
}

#[test]
fn corrupt_byte_changes_one_bit_and_nothing_else() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::CorruptByte(9));
    let response = get(&origin, "/a.bin").unwrap();
    let wrong: Vec<usize> = (0..body.len()).filter(|&i| response.body[i] != body[i]).collect();
    assert_eq!(wrong, [9]);
}

#[test]
fn length_too_long_ends_early() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::LengthTooLong(10));
    let response = get(&origin, "/a.bin").unwrap();
    assert_eq!(response.header("content-length"), Some("20010"));
    assert_eq!(response.error.unwrap().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(response.body, body);
}

#[test]
fn length_too_short_leaves_bytes_before_the_next_response() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::LengthTooShort(10));
    let mut raw = Raw::connect(&origin);
    assert_eq!(raw.get("/a.bin").unwrap().body, &body[..19_990]);
    raw.tcp.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(raw.rest().unwrap(), &body[19_990..]);
}

#[test]
fn no_length_ends_with_the_connection() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::NoLength);
    let response = get(&origin, "/a.bin").unwrap();
    assert_eq!((response.header("content-length"), response.error.is_some()), (None, false));
    assert_eq!(response.body, body);
}

/// Everything after the head, to the end of the connection.
fn chunked(origin: &Origin) -> String {
    origin.put("/c", Resource::new("hello"));
    let mut raw = Raw::connect(origin);
    raw.send("GET /c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let response = raw.response(false).unwrap();
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    String::from_utf8(response.body).unwrap()
}

#[test]
fn chunks_can_be_right_and_wrong_in_each_way() {
    let (origin, _) = origin();
    origin
        .script("/c")
        .once(Fault::Chunked)
        .then(Fault::BadChunkSize(2))
        .then(Fault::NoFinalChunk)
        .then(Fault::DataAfterFinalChunk);
    assert_eq!(chunked(&origin), "5\r\nhello\r\n0\r\n\r\n");
    assert!(chunked(&origin).starts_with("2\r\nhe\r\nxyz\r\n"));
    assert_eq!(chunked(&origin), "5\r\nhello\r\n");
    assert_eq!(chunked(&origin), "5\r\nhello\r\n0\r\n\r\nleft over from nowhere");
}

#[test]
fn gzip_is_real_and_the_claim_is_not() {
    let (origin, body) = origin();
    origin.script("/a.bin").once(Fault::Gzip).then(Fault::ClaimGzip);
    let real = get(&origin, "/a.bin").unwrap();
    assert_eq!(real.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&real.body[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, body);
    let claimed = get(&origin, "/a.bin").unwrap();
    assert_eq!(claimed.header("content-encoding"), Some("gzip"));
    assert_eq!(claimed.body, body);
}

#[test]
fn a_resource_can_be_swapped_while_an_answer_is_under_way() {
    let (origin, body) = origin();
    let gate = Gate::new();
    origin.script("/a.bin").once(Fault::HoldAfter(500, gate.clone()));
    let mut raw = Raw::connect(&origin);
    raw.send("GET /a.bin HTTP/1.1\r\nhost: x\r\n\r\n");
    origin.block_until(|counters| counters.body_bytes_sent == 500);
    origin.put("/a.bin", Resource::new("new"));
    assert_eq!(get(&origin, "/a.bin").unwrap().body, b"new");
    gate.open();
    assert_eq!(raw.response(false).unwrap().body, body);
}
