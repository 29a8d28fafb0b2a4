use crate::client::Raw;
use std::io::{ErrorKind, Write as _};
use std::time::Duration;
use trunkline_testkit::{Fault, Origin, bytes, sha256_hex};

#[test]
fn a_put_is_kept_and_hashed() {
    let origin = Origin::http();
    let body = bytes(5, 100_000);
    let mut raw = Raw::connect(&origin);
    raw.send("PUT /u HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n");
    raw.tcp.write_all(&body).unwrap();
    assert_eq!(raw.response(false).unwrap().status, 201);
    let upload = &origin.uploads()[0];
    assert_eq!((upload.path.as_str(), upload.len), ("/u", 100_000));
    assert_eq!(upload.sha256, sha256_hex(&body));
    assert_eq!(upload.body, body);
    assert_eq!(origin.requests()[0].body_sha256.as_ref(), Some(&upload.sha256));
}

#[test]
fn a_chunked_post_is_put_together() {
    let origin = Origin::http();
    let mut raw = Raw::connect(&origin);
    raw.send("POST /u HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    raw.send("3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\ntrailer: x\r\n\r\n");
    assert_eq!(raw.response(false).unwrap().status, 201);
    assert_eq!(origin.uploads()[0].body, "abcdefg");
}

const EXPECT: &str =
    "PUT /u HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";

#[test]
fn expect_is_honoured_answered_early_or_ignored() {
    let origin = Origin::http();
    origin.script("/u").pass(1).then(Fault::EarlyAnswer(413)).then(Fault::IgnoreExpect);
    let mut raw = Raw::connect(&origin);
    raw.send(EXPECT);
    assert_eq!(raw.response(false).unwrap().status, 100);
    raw.send("body");
    assert_eq!(raw.response(false).unwrap().status, 201);

    raw.send(EXPECT);
    let early = raw.response(false).unwrap();
    assert_eq!((early.status, early.header("connection")), (413, Some("close")));

    let mut raw = Raw::connect(&origin);
    raw.tcp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    raw.send(EXPECT);
    assert_eq!(raw.response(false).unwrap_err().kind(), ErrorKind::WouldBlock);
    raw.tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    raw.send("body");
    assert_eq!(raw.response(false).unwrap().status, 201);
    assert_eq!(origin.uploads().len(), 2);
}

#[test]
fn missing_credentials_are_told_before_the_body_when_the_client_asks() {
    let origin = Origin::http();
    origin.script("/u").always(Fault::RequireAuthorization("Basic x".into()));
    let mut raw = Raw::connect(&origin);
    raw.send(EXPECT);
    assert_eq!(raw.response(false).unwrap().status, 401);
}

#[test]
fn an_upload_can_be_cut_in_the_middle() {
    let origin = Origin::http();
    origin.script("/u").once(Fault::CutUploadAfter(1_000));
    let mut raw = Raw::connect(&origin);
    raw.send("PUT /u HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n");
    raw.tcp.write_all(&[7; 1_000]).unwrap();
    assert!(raw.response(false).is_err());
    assert!(origin.uploads().is_empty());
}
