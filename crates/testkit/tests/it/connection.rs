use crate::client::{Raw, get};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use trunkline_testkit::{ConnectionFault, Fault, Origin, Resource, bytes};

fn origin() -> Origin {
    let origin = Origin::http();
    origin.put("/f", Resource::new("file"));
    origin
}

#[test]
fn connections_above_the_limit_are_reset() {
    let origin = Origin::builder().connections_max(2).start();
    origin.put("/f", Resource::new("file"));
    let mut first = Raw::connect(&origin);
    let mut second = Raw::connect(&origin);
    first.get("/f").unwrap();
    second.get("/f").unwrap();
    let refused = get(&origin, "/f").unwrap_err().kind();
    assert!(matches!(refused, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{refused}");
    drop(first);
    origin.block_until(|counters| counters.connections_open == 1);
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
    let counters = origin.counters();
    assert_eq!((counters.connections_refused, counters.connections_open_max), (1, 2));
    origin.limit_connections(None);
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
}

#[test]
fn connections_end_after_their_share_of_responses() {
    let origin = origin();
    origin
        .connections()
        .once(ConnectionFault::LastResponse(2))
        .then(ConnectionFault::CloseAfterResponses(2))
        .then(ConnectionFault::ResetOnAccept)
        .pass(1);
    let mut polite = Raw::connect(&origin);
    assert_eq!(polite.get("/f").unwrap().header("connection"), None);
    assert_eq!(polite.get("/f").unwrap().header("connection"), Some("close"));
    assert_eq!(polite.rest().unwrap(), b"");
    let mut rude = Raw::connect(&origin);
    rude.get("/f").unwrap();
    assert_eq!(rude.get("/f").unwrap().header("connection"), None);
    assert_eq!(rude.rest().unwrap(), b"");
    assert!(get(&origin, "/f").is_err());
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
    let per_connection: Vec<u64> =
        origin.connection_records().iter().map(|record| record.requests).collect();
    assert_eq!(per_connection, [2, 2, 1]);
}

#[test]
fn connections_end_after_their_share_of_bytes() {
    let origin = origin();
    origin.put("/big", Resource::new(bytes(3, 100_000)));
    origin
        .connections()
        .once(ConnectionFault::CloseAfterBytes(60_000))
        .then(ConnectionFault::ResetAfterBytes(60_000));
    let cut = get(&origin, "/big").unwrap();
    assert_eq!(cut.error.as_ref().unwrap().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(cut.head.len() + cut.body.len(), 60_000);
    let error = match get(&origin, "/big") {
        Ok(response) => response.error.unwrap(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(get(&origin, "/big").unwrap().body.len(), 100_000);
}

#[test]
fn close_after_response_makes_a_stale_socket() {
    let origin = origin();
    origin.script("/f").once(Fault::CloseAfterResponse);
    let mut raw = Raw::connect(&origin);
    let response = raw.get("/f").unwrap();
    assert_eq!((&response.body[..], response.header("connection")), (&b"file"[..], None));
    assert!(raw.get("/f").is_err());
}

#[test]
fn a_unix_socket_serves_the_same() {
    let origin = Origin::builder().unix().start();
    origin.put("/f", Resource::new("file"));
    let mut unix = UnixStream::connect(origin.unix_path().unwrap()).unwrap();
    unix.write_all(b"GET /f HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    unix.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("\r\n\r\nfile"), "{text}");
}

#[test]
fn dropping_the_origin_closes_its_connections() {
    let origin = origin();
    let mut raw = Raw::connect(&origin);
    raw.get("/f").unwrap();
    drop(origin);
    assert_eq!(raw.rest().unwrap(), b"");
}

#[test]
fn the_log_tells_what_was_asked() {
    let origin = origin();
    Raw::connect(&origin).request("GET", "/f?x=1", "X-Trace: 7\r\n").unwrap();
    let requests = origin.requests_to("/f");
    assert_eq!(requests.len(), 1);
    let head = &requests[0].head;
    assert_eq!((head.method.as_str(), head.query.as_deref()), ("GET", Some("x=1")));
    assert_eq!(
        (head.header("x-trace"), head.protocol, head.connection),
        (Some("7"), "HTTP/1.1", 1)
    );
    assert_eq!(requests[0].status, Some(200));
}
