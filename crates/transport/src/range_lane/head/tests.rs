use proptest::prelude::*;

use super::*;

fn parse_get(head: &str) -> Result<Option<Head>, HeadError> {
    parse(&Method::GET, head.as_bytes())
}

fn framing_of(head: &str) -> Result<(BodyFraming, bool), HeadError> {
    let head = parse_get(head)?.expect("a final answer");
    Ok((*head.response.body(), head.keep_alive))
}

fn written(request: &Request<()>, forwarding: &Forwarding) -> String {
    let mut out = Vec::new();
    write_request(&mut out, request, forwarding);
    String::from_utf8(out).unwrap()
}

#[test]
fn requests_have_origin_form_and_host_first() {
    let request = Request::get("https://example.org:8443/a%20b?c=d")
        .header("range", "bytes=0-9")
        .body(())
        .unwrap();
    assert_eq!(
        written(&request, &Forwarding::default()),
        "GET /a%20b?c=d HTTP/1.1\r\nHost: example.org:8443\r\nrange: bytes=0-9\r\n\r\n"
    );
    let request = Request::head("http://example.org").header("host", "other").body(()).unwrap();
    assert_eq!(written(&request, &Forwarding::default()), "HEAD / HTTP/1.1\r\nHost: other\r\n\r\n");
}

#[test]
fn forwarding_proxies_get_the_absolute_form_and_credentials_once() {
    let request = Request::get("http://example.org/x")
        .header("proxy-authorization", "Basic old")
        .body(())
        .unwrap();
    let authorization = Some(HeaderValue::from_static("Basic bmV3"));
    let forwarding = Forwarding { absolute_form: true, authorization };
    assert_eq!(
        written(&request, &forwarding),
        "GET http://example.org/x HTTP/1.1\r\nHost: example.org\r\n\
         Proxy-Authorization: Basic bmV3\r\n\r\n"
    );
}

#[test]
fn framing_follows_the_head() {
    use BodyFraming::{Chunked, Length, Unsupported, UntilClose};
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", (Length(12), true)),
        ("HTTP/1.1 206 P\r\nContent-Length: 7, 7\r\nContent-Length: 7\r\n\r\n", (Length(7), true)),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, Close\r\n\r\n",
            (Length(1), false),
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", (Length(1), false)),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n",
            (Length(1), true),
        ),
        ("HTTP/1.1 204 N\r\n\r\n", (Length(0), true)),
        ("HTTP/1.1 304 N\r\nContent-Length: 99\r\n\r\n", (Length(0), true)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:  Chunked \r\n\r\n", (Chunked, true)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", (Unsupported, false)),
        ("HTTP/1.1 200 OK\r\n\r\n", (UntilClose, false)),
        ("HTTP/1.1 200\r\n\r\n", (UntilClose, false)),
    ];
    for (head, expected) in cases {
        assert_eq!(framing_of(head), Ok(expected), "{head}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let cases = [
        ("Content-Length: 5\r\nContent-Length: 6\r\n", HeadError::ContentLength),
        ("Content-Length: 5, 6\r\n", HeadError::ContentLength),
        ("Content-Length: +5\r\n", HeadError::ContentLength),
        ("Content-Length: \r\n", HeadError::ContentLength),
        ("Content-Length: 0x5\r\n", HeadError::ContentLength),
        ("Content-Length: 18446744073709551616\r\n", HeadError::ContentLength),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", HeadError::ConflictingFraming),
        ("Name : value\r\n", HeadError::Malformed),
        ("Folded: a\r\n b\r\n", HeadError::Malformed),
    ];
    for (fields, expected) in cases {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        assert_eq!(parse_get(&head).unwrap_err(), expected, "{fields}");
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse_get(old).unwrap_err(), HeadError::ConflictingFraming);
    assert_eq!(parse_get("SSH-2.0-x\r\n\r\n").unwrap_err(), HeadError::Malformed);
    let switch = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    assert_eq!(parse_get(switch).unwrap_err(), HeadError::Malformed);
}

#[test]
fn answers_to_head_have_no_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let parsed = parse(&Method::HEAD, head).unwrap().unwrap();
    assert_eq!(*parsed.response.body(), BodyFraming::Length(0));
    assert_eq!(parsed.response.headers()[CONTENT_LENGTH], "1000");
    assert!(parsed.keep_alive);
}

#[test]
fn informational_answers_are_skipped() {
    assert!(parse_get("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n").unwrap().is_none());
}

#[test]
fn heads_are_bounded() {
    let mut scanned = 0;
    let endless = vec![b'a'; HEAD_BYTES_MAX];
    assert_eq!(
        head_length(&endless, &mut scanned),
        Err(HeadError::TooLong { bytes_max: HEAD_BYTES_MAX })
    );
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
    assert_eq!(
        parse_get(&many).unwrap_err(),
        HeadError::TooManyHeaders { headers_max: HEADERS_MAX }
    );
    let most = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX));
    assert_eq!(parse_get(&most).unwrap().unwrap().response.headers().len(), HEADERS_MAX);
}

proptest! {
    #[test]
    fn the_end_is_found_however_the_head_drips_in(
        fields in prop::collection::vec("[A-Za-z]{1,9}: [ -~]{0,20}", 0..6),
        body in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        for field in &fields {
            bytes.extend_from_slice(field.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let length = bytes.len();
        bytes.extend_from_slice(&body);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut scanned = 0;
        for cut in cuts {
            let found = head_length(&bytes[..cut], &mut scanned).unwrap();
            prop_assert_eq!(found, (cut >= length).then_some(length));
            if found.is_some() { break; }
        }
    }

    #[test]
    fn any_head_is_answered_without_panic(head in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&Method::GET, &head);
        let mut plausible = b"HTTP/1.1 200 OK\r\n".to_vec();
        plausible.extend_from_slice(&head);
        let _ = parse(&Method::GET, &plausible);
    }
}
