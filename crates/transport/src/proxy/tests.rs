use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};
use trunkline_proto::secret::Secret;

use super::*;

fn proxy(credentials: Option<(&str, &str)>) -> Proxy {
    Proxy {
        host: "proxy.test".to_owned(),
        port: 3128,
        tls: false,
        credentials: credentials.map(|(user, password)| (user.to_owned(), Secret::new(password))),
    }
}

/// Answers each expected message by a reply, then hands the stream back.
async fn script(mut far: DuplexStream, steps: &[(&[u8], &[u8])]) -> DuplexStream {
    for (expected, reply) in steps {
        let mut got = vec![0; expected.len()];
        far.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, expected, "{}", String::from_utf8_lossy(&got));
        far.write_all(reply).await.unwrap();
    }
    far
}

async fn connect(reply: &[u8]) -> Result<DuplexStream, ProxyError> {
    let (near, far) = duplex(1 << 16);
    let proxy = proxy(None);
    let request = connect_request("origin.test:443", &proxy);
    let steps = [(request.as_slice(), reply)];
    let (result, _far) = tokio::join!(http_connect(near, "origin.test:443", &proxy), async {
        let mut far = script(far, &steps).await;
        far.shutdown().await.unwrap();
        far
    });
    result
}

#[test]
fn connect_names_the_target_and_sends_credentials() {
    let request = connect_request("[::1]:443", &proxy(Some(("user", "pass word"))));
    assert_eq!(
        String::from_utf8(request).unwrap(),
        "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\
         Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=\r\n\r\n"
    );
}

#[tokio::test]
async fn not_a_byte_past_the_head_is_read() {
    let reply = b"HTTP/1.1 200 Connection established\r\nVia: x\r\nContent-Length: 3\r\n\r\nhello";
    let mut stream = connect(reply).await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"hello");
}

#[tokio::test]
async fn refusals_are_typed() {
    let wants_login = connect(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    assert!(matches!(wants_login, Err(ProxyError::AuthenticationRequired)));
    let refused = connect(b"HTTP/1.0 503 No\r\nA: b\r\n\r\n").await;
    assert!(matches!(refused, Err(ProxyError::Refused { status: 503 })));
    let no_proxy = connect(b"220 smtp.test ESMTP\r\n\r\n").await;
    assert!(matches!(no_proxy, Err(ProxyError::Malformed { protocol: HTTP })));
    let closed = connect(b"HTTP/1.1 200 OK\r\n").await;
    assert!(matches!(closed, Err(ProxyError::Io(_))));
}

#[tokio::test]
async fn an_endless_head_is_given_up() {
    let mut reply = b"HTTP/1.1 200 OK\r\n".to_vec();
    while reply.len() <= CONNECT_HEAD_BYTES_MAX {
        reply.extend_from_slice(b"X-Filler: and more\r\n");
    }
    let result = connect(&reply).await;
    assert!(matches!(result, Err(ProxyError::Malformed { protocol: HTTP })));
}

async fn socks(
    host: &str,
    proxy: &Proxy,
    steps: &[(&[u8], &[u8])],
) -> (Result<DuplexStream, ProxyError>, DuplexStream) {
    let (near, far) = duplex(1 << 12);
    tokio::join!(socks5(near, host, 443, proxy), script(far, steps))
}

#[tokio::test]
async fn socks_sends_names_to_the_proxy_and_leaves_the_origins_bytes() {
    let request = b"\x05\x01\x00\x03\x0borigin.test\x01\xbb";
    let reply = b"\x05\x00\x00\x03\x05bound\x00\x50tls";
    let steps: [(&[u8], &[u8]); 2] = [(b"\x05\x01\x00", b"\x05\x00"), (request, reply)];
    let (result, far) = socks("origin.test", &proxy(None), &steps).await;
    drop(far);
    let mut rest = Vec::new();
    result.unwrap().read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"tls");
}

#[tokio::test]
async fn socks_sends_literals_as_addresses() {
    let v4: [(&[u8], &[u8]); 2] = [
        (b"\x05\x01\x00", b"\x05\x00"),
        (b"\x05\x01\x00\x01\xc0\x00\x02\x07\x01\xbb", b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"),
    ];
    assert!(socks("192.0.2.7", &proxy(None), &v4).await.0.is_ok());
    let mut request = b"\x05\x01\x00\x04".to_vec();
    request.extend_from_slice(&[0; 15]);
    request.extend_from_slice(b"\x01\x01\xbb");
    let mut reply = b"\x05\x00\x00\x04".to_vec();
    reply.extend_from_slice(&[0; 18]);
    let v6: [(&[u8], &[u8]); 2] = [(b"\x05\x01\x00", b"\x05\x00"), (&request, &reply)];
    assert!(socks("::1", &proxy(None), &v6).await.0.is_ok());
}

#[tokio::test]
async fn socks_logs_in_when_asked() {
    let with_login = proxy(Some(("user", "pw")));
    let steps: [(&[u8], &[u8]); 3] = [
        (b"\x05\x02\x00\x02", b"\x05\x02"),
        (b"\x01\x04user\x02pw", b"\x01\x00"),
        (b"\x05\x01\x00\x03\x01o\x01\xbb", b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"),
    ];
    assert!(socks("o", &with_login, &steps).await.0.is_ok());
    let refused: [(&[u8], &[u8]); 2] =
        [(b"\x05\x02\x00\x02", b"\x05\x02"), (b"\x01\x04user\x02pw", b"\x01\x01")];
    let (result, _) = socks("o", &with_login, &refused).await;
    assert!(matches!(result, Err(ProxyError::SocksAuthentication)));
    let (result, _) = socks("o", &proxy(None), &[(b"\x05\x01\x00", b"\x05\xff")]).await;
    assert!(matches!(result, Err(ProxyError::SocksAuthentication)));
}

#[tokio::test]
async fn socks_refusals_carry_the_reply_code() {
    let steps: [(&[u8], &[u8]); 2] = [
        (b"\x05\x01\x00", b"\x05\x00"),
        (b"\x05\x01\x00\x03\x01o\x01\xbb", b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"),
    ];
    let (result, _) = socks("o", &proxy(None), &steps).await;
    match result {
        Err(ProxyError::SocksRefused { code: 5, meaning: "connection refused" }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_one_byte_of_length_is_refused() {
    assert!(socks_request(&"a".repeat(255), 1).is_ok());
    assert!(matches!(socks_request(&"a".repeat(256), 1), Err(ProxyError::TooLongForSocks)));
    assert!(matches!(socks_login("u", &"p".repeat(256)), Err(ProxyError::TooLongForSocks)));
}

proptest! {
    #[test]
    fn any_reply_is_answered_without_panic(head in any::<[u8; 5]>(), choice in any::<[u8; 2]>()) {
        if let Ok(rest) = socks_reply(head) {
            prop_assert!(head[0] == VERSION && head[1] == 0);
            prop_assert!(rest <= 255 + 2);
        }
        let _ = socks_choice(choice);
    }

    #[test]
    fn any_head_is_answered_without_panic(head in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(status) = connect_status(&head) {
            prop_assert!(status < 1000);
        }
    }

    #[test]
    fn a_status_is_read_back(status in 100u16..1000, reason in "[ -~]{0,40}") {
        let head = format!("HTTP/1.1 {status} {reason}\r\nServer: x\r\n\r\n");
        prop_assert_eq!(connect_status(head.as_bytes()).unwrap(), status);
    }

    #[test]
    fn a_request_holds_the_name_and_the_port(name in "[a-z]{1,63}(\\.[a-z]{1,63}){0,2}", port: u16) {
        let request = socks_request(&name, port).unwrap();
        prop_assert_eq!(usize::from(request[4]), name.len());
        prop_assert_eq!(&request[5..5 + name.len()], name.as_bytes());
        prop_assert!(request.ends_with(&port.to_be_bytes()));
    }
}
