use crate::client::{connect, exchange, h2, identity, loopback, over_tls, post};
use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use trunkline_listen::{BodyError, Drain, Limits, Peer, RequestBody, Server, TlsFacts};
use trunkline_testkit::Authority;

const GET: &str = "GET /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// Tells version, peer, TLS and the length of the body.
async fn describe(request: Request<RequestBody>) -> Response<Full<Bytes>> {
    let peer = request.extensions().get::<Peer>().copied().unwrap();
    assert!(matches!(peer, Peer::Tcp(address) if address.ip().is_loopback()));
    let tls =
        request.extensions().get::<TlsFacts>().map(|facts| facts.client_certificate.is_some());
    let version = request.version();
    let (status, len) = match request.into_body().collect().await {
        Ok(body) => (StatusCode::OK, body.to_bytes().len()),
        Err(BodyError::TooLong { .. }) => (StatusCode::PAYLOAD_TOO_LARGE, 0),
        Err(_) => (StatusCode::BAD_REQUEST, 0),
    };
    let text = format!("{version:?} certificate {tls:?} body {len}");
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

fn start(server: impl FnOnce(Server) -> Server) -> SocketAddr {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    let server = server(Server::new(listener));
    tokio::spawn(async move {
        let drain = Drain::new(Duration::ZERO);
        server.serve_http(&drain, describe).await
    });
    address
}

#[tokio::test]
async fn clear_text_speaks_both_versions_on_one_port() {
    let address = start(|server| server);
    let answer = exchange(connect(address).await, GET).await;
    assert!(answer.ends_with("HTTP/1.1 certificate None body 0"), "{answer}");
    let mut send = h2(connect(address).await).await;
    let answer = send.send_request(post(b"12345")).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "HTTP/2.0 certificate None body 5");
}

#[tokio::test]
async fn alpn_chooses_the_version_under_tls() {
    let authority = Authority::new("server");
    let identity = identity(&authority, None);
    let address = start(|server| server.tls(identity));
    for (alpn, version) in [("http/1.1", "HTTP/1.1"), ("", "HTTP/1.1")] {
        let alpn: &[&str] = if alpn.is_empty() { &[] } else { &[alpn] };
        let tls = over_tls(connect(address).await, &authority, alpn, None).await.unwrap();
        let answer = exchange(tls, GET).await;
        assert!(answer.ends_with(&format!("{version} certificate Some(false) body 0")), "{answer}");
    }
    let tls = over_tls(connect(address).await, &authority, &["h2"], None).await.unwrap();
    let answer = h2(tls).await.send_request(post(b"")).await.unwrap();
    assert_eq!(answer.version(), ::http::Version::HTTP_2);
}

#[tokio::test]
async fn a_client_authority_lets_in_whom_it_signed_and_nobody_else() {
    let (authority, clients) = (Authority::new("server"), Authority::new("clients"));
    let identity = identity(&authority, Some(&clients));
    let address = start(|server| server.tls(identity));
    let known = clients.client("robot");
    let tls = over_tls(connect(address).await, &authority, &[], Some(&known)).await.unwrap();
    assert!(exchange(tls, GET).await.ends_with("certificate Some(true) body 0"));
    if let Ok(mut tls) = over_tls(connect(address).await, &authority, &[], None).await {
        assert!(tls.read_u8().await.is_err());
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_announced_or_not() {
    let limits = Limits { body_bytes_max: 10, ..Limits::default() };
    let address = start(|server| server.limits(limits));
    let head = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    let cases = [
        ("content-length: 10\r\n\r\n0123456789", "200"),
        ("content-length: 11\r\n\r\n0123456789a", "413"),
        ("transfer-encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n", "413"),
    ];
    for (rest, status) in cases {
        let answer = exchange(connect(address).await, &format!("{head}{rest}")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let mut send = h2(connect(address).await).await;
    assert_eq!(send.send_request(post(&[0; 11])).await.unwrap().status(), 413);
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused() {
    let limits = Limits { header_bytes_max: 8 << 10, ..Limits::default() };
    let address = start(|server| server.limits(limits));
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "x".repeat(20_000));
    let answer = exchange(connect(address).await, &long).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let mut send = h2(connect(address).await).await;
    let mut request = post(b"");
    request.headers_mut().insert("x-long", "x".repeat(20_000).parse().unwrap());
    match send.send_request(request).await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        Err(error) => assert!(!error.is_timeout()),
    }
}

#[tokio::test]
async fn a_client_that_sends_nothing_or_half_a_head_is_let_go() {
    let limits = Limits { header_timeout: Duration::from_millis(100), ..Limits::default() };
    let authority = Authority::new("server");
    let clear = start(|server| server.limits(limits));
    let tls = start(|server| server.limits(limits).tls(identity(&authority, None)));
    for (address, text) in [(clear, ""), (clear, "PRI"), (clear, "GET / HT"), (tls, "")] {
        // The wait for the end is bounded by the client's patience.
        exchange(connect(address).await, text).await;
    }
}

#[tokio::test]
async fn connections_over_the_limit_wait_their_turn() {
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let address = start(|server| server.limits(limits));
    let first = connect(address).await;
    let second = tokio::spawn(async move { exchange(connect(address).await, GET).await });
    assert!(exchange(first, GET).await.starts_with("HTTP/1.1 200"));
    assert!(second.await.unwrap().starts_with("HTTP/1.1 200"));
}
