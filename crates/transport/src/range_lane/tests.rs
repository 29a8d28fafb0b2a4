use std::sync::OnceLock;
use std::task::Poll;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_rustls::{TlsAcceptor, server};

use super::*;
use crate::tls::fixtures::{Authority, HOST, Leaf};
use crate::tls::{Roots, SessionStore, TlsClient, TlsOptions};

/// A certificate and the directory-less client that trusts it, made once.
pub(super) fn leaf() -> &'static Leaf {
    static LEAF: OnceLock<Leaf> = OnceLock::new();
    LEAF.get_or_init(Leaf::self_signed)
}

/// A client that trusts [`leaf`], with sessions of its own.
pub(super) fn client() -> TlsClient {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("leaf.pem");
    std::fs::write(&path, &leaf().certificate_pem).unwrap();
    let sessions = SessionStore::default();
    let roots = Roots::Only(vec![path]);
    TlsClient::new(TlsOptions { roots, sessions, ..TlsOptions::default() }).unwrap()
}

pub(super) fn server_name() -> ServerName<'static> {
    ServerName::try_from(HOST).unwrap()
}

fn clear() -> (RangeConnection, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (RangeConnection::clear(Carrier::Unix(near), Forwarding::default()), far)
}

type FarTls = server::TlsStream<UnixStream>;

async fn secure(config: ServerConfig) -> (RangeConnection, FarTls) {
    let (connection, far, _) = secure_with(&client(), &Arc::new(config)).await;
    (connection, far)
}

async fn secure_with(
    client: &TlsClient,
    config: &Arc<ServerConfig>,
) -> (RangeConnection, FarTls, HandshakeKind) {
    let (near, far) = UnixStream::pair().unwrap();
    let acceptor = TlsAcceptor::from(Arc::clone(config));
    let config = client.ranges().unwrap();
    let (near, far) = tokio::join!(
        RangeConnection::tls(Carrier::Unix(near), config, server_name(), HOST),
        acceptor.accept(far)
    );
    let (connection, kind) = near.unwrap();
    (connection, far.unwrap(), kind)
}

fn get() -> &'static Request<()> {
    static GET: OnceLock<Request<()>> = OnceLock::new();
    GET.get_or_init(|| Request::get("https://origin.test/file").body(()).unwrap())
}

/// Reads one request's head.
pub(super) async fn request<S: AsyncRead + Unpin>(far: &mut S) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(far.read_u8().await.unwrap());
    }
    head
}

/// Takes a request and answers it.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(far: &mut S, answer: &[u8]) {
    request(far).await;
    far.write_all(answer).await.unwrap();
    far.flush().await.unwrap();
}

async fn body(connection: &mut RangeConnection) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let mut block = [0; 7];
    loop {
        match connection.read(&mut block).await? {
            0 => return Ok(body),
            received => body.extend_from_slice(&block[..received]),
        }
    }
}

/// Sends a request and has it answered.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut RangeConnection,
    far: &mut S,
    bytes: &[u8],
) -> Result<Response<BodyFraming>, Error> {
    tokio::join!(connection.send(get()), answer(far, bytes)).0
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhellohello";

#[tokio::test]
async fn one_connection_carries_one_exchange_after_another() {
    let (mut connection, mut far) = clear();
    for _ in 0..3 {
        assert!(connection.is_reusable() && !connection.is_stale());
        let response = exchange(&mut connection, &mut far, HELLO).await.unwrap();
        assert_eq!(*response.body(), BodyFraming::Length(10));
        assert!(!connection.is_reusable(), "the body is still to come");
        assert!(matches!(connection.send(get()).await, Err(Error::Unsent)));
        assert_eq!(body(&mut connection).await.unwrap(), b"hellohello");
    }
    let chunked = b"HTTP/1.1 206 P\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    exchange(&mut connection, &mut far, chunked).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"abc");
    assert!(connection.is_reusable());
}

#[tokio::test]
async fn a_last_answer_spends_the_connection() {
    let last = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";
    let (mut connection, mut far) = clear();
    exchange(&mut connection, &mut far, last).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"x");
    assert!(!connection.is_reusable() && connection.is_stale());
}

#[tokio::test]
async fn bytes_beyond_the_body_spend_the_connection() {
    for surplus in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy".as_slice(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\ny",
    ] {
        let (mut connection, mut far) = clear();
        exchange(&mut connection, &mut far, surplus).await.unwrap();
        assert_eq!(body(&mut connection).await.unwrap(), b"x");
        assert!(!connection.is_reusable());
    }
    let (mut connection, mut far) = secure(leaf().server()).await;
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n";
    exchange(&mut connection, &mut far, head).await.unwrap();
    far.write_all(&[1; 40_001]).await.unwrap();
    far.flush().await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap().len(), 40_000);
    assert!(connection.is_stale());
}

#[tokio::test]
async fn unread_codings_are_reported_and_spend_the_connection() {
    let gzip = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    let (mut connection, mut far) = clear();
    let response = exchange(&mut connection, &mut far, gzip).await.unwrap();
    assert_eq!(*response.body(), BodyFraming::Unsupported);
    assert!(!connection.is_reusable());
    assert!(connection.read(&mut [0; 9]).await.is_err());
}

#[tokio::test]
async fn informational_answers_are_passed_over_within_limits() {
    let early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let (mut connection, mut far) = clear();
    let mut bytes = early.repeat(INFORMATIONAL_MAX);
    bytes.extend_from_slice(HELLO);
    exchange(&mut connection, &mut far, &bytes).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"hellohello");
    let error = exchange(&mut connection, &mut far, &early.repeat(INFORMATIONAL_MAX + 1))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::BrokenHead(HeadError::TooManyInformational)), "{error:?}");
    assert!(!connection.is_reusable());
}

#[tokio::test]
async fn an_end_before_the_answer_tells_whether_the_connection_was_used() {
    let (mut connection, mut far) = clear();
    let (result, ()) = tokio::join!(connection.send(get()), async {
        request(&mut far).await;
        drop(far);
    });
    assert!(matches!(result, Err(Error::ClosedBeforeAnswer { reused: false })), "{result:?}");
    let (mut connection, mut far) = secure(leaf().server()).await;
    exchange(&mut connection, &mut far, HELLO).await.unwrap();
    body(&mut connection).await.unwrap();
    let (result, ()) = tokio::join!(connection.send(get()), async {
        request(&mut far).await;
        drop(far);
    });
    assert!(matches!(result, Err(Error::ClosedBeforeAnswer { reused: true })), "{result:?}");
}

#[tokio::test]
async fn a_request_that_never_left_is_unsent() {
    let (mut connection, far) = clear();
    drop(far);
    assert!(matches!(connection.send(get()).await, Err(Error::Unsent)));
    assert!(!connection.is_reusable());
}

#[tokio::test]
async fn an_end_in_mid_answer_is_truncation() {
    for cut in [
        b"HTTP/1.1 200 OK\r\nContent-Le".as_slice(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        let (mut connection, mut far) = clear();
        let send = async {
            connection.send(get()).await?;
            body(&mut connection).await
        };
        let (result, ()) = tokio::join!(send, async {
            answer(&mut far, cut).await;
            drop(far);
        });
        assert!(matches!(result, Err(Error::Truncated)), "{result:?}");
    }
}

#[tokio::test]
async fn under_tls_only_close_notify_ends_a_body_without_length() {
    const OPEN: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhello";
    let (mut connection, mut far) = secure(leaf().server()).await;
    exchange(&mut connection, &mut far, OPEN).await.unwrap();
    far.shutdown().await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"hello");
    assert!(!connection.is_reusable());
    let (mut connection, mut far) = secure(leaf().server()).await;
    exchange(&mut connection, &mut far, OPEN).await.unwrap();
    drop(far.into_inner().0);
    assert!(matches!(body(&mut connection).await, Err(Error::Truncated)));
    let (mut connection, mut far) = clear();
    exchange(&mut connection, &mut far, OPEN).await.unwrap();
    drop(far);
    assert_eq!(body(&mut connection).await.unwrap(), b"hello");
}

#[tokio::test]
async fn an_idle_connection_is_stale_once_closed_or_spoken_to() {
    let (mut connection, mut far) = clear();
    assert!(!connection.is_stale());
    far.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
    assert!(connection.is_stale());
    let (mut connection, far) = clear();
    drop(far);
    assert!(connection.is_stale());
    // A TLS 1.3 server sends tickets unasked: they are no news.
    let (mut connection, mut far) = secure(leaf().server()).await;
    far.flush().await.unwrap();
    assert!(!connection.is_stale());
    exchange(&mut connection, &mut far, HELLO).await.unwrap();
    body(&mut connection).await.unwrap();
    assert!(!connection.is_stale());
    far.write_all(b"?").await.unwrap();
    far.flush().await.unwrap();
    assert!(connection.is_stale());
    let (mut connection, mut far) = secure(leaf().server()).await;
    far.shutdown().await.unwrap();
    assert!(connection.is_stale());
}

#[tokio::test]
async fn sessions_are_resumed() {
    let (client, config) = (client(), Arc::new(leaf().server()));
    let (mut connection, mut far, kind) = secure_with(&client, &config).await;
    assert_eq!(kind, HandshakeKind::Full);
    exchange(&mut connection, &mut far, HELLO).await.unwrap();
    body(&mut connection).await.unwrap();
    let (mut connection, mut far, kind) = secure_with(&client, &config).await;
    assert_eq!(kind, HandshakeKind::Resumed);
    exchange(&mut connection, &mut far, HELLO).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"hellohello");
}

#[tokio::test]
async fn tls_1_2_is_read_too() {
    let config = leaf().server_with(&[&rustls::version::TLS12], None);
    let (mut connection, mut far) = secure(config).await;
    exchange(&mut connection, &mut far, HELLO).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"hellohello");
    assert!(!connection.is_stale());
}

#[tokio::test]
async fn keys_can_change_in_mid_body_and_in_between() {
    let (mut connection, mut far) = secure(leaf().server()).await;
    far.get_mut().1.refresh_traffic_keys().unwrap();
    far.flush().await.unwrap();
    assert!(!connection.is_stale());
    exchange(&mut connection, &mut far, &HELLO[..HELLO.len() - 5]).await.unwrap();
    far.get_mut().1.refresh_traffic_keys().unwrap();
    far.write_all(b"HELLO").await.unwrap();
    far.flush().await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"helloHELLO");
    exchange(&mut connection, &mut far, HELLO).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), b"hellohello");
}

#[tokio::test]
async fn a_refused_certificate_is_typed_and_the_server_learns_of_it() {
    let (near, far) = UnixStream::pair().unwrap();
    let stranger = Authority::new("Nobody").leaf();
    let acceptor = TlsAcceptor::from(Arc::new(stranger.server()));
    let config = client().ranges().unwrap();
    let (near, far) = tokio::join!(
        RangeConnection::tls(Carrier::Unix(near), config, server_name(), HOST),
        acceptor.accept(far)
    );
    let error = near.unwrap_err();
    assert!(matches!(error, Error::UntrustedIssuer { .. }), "{error:?}");
    let alert = far.unwrap_err();
    let alert = alert.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    assert!(matches!(alert, Some(rustls::Error::AlertReceived(_))), "{alert:?}");
}

#[tokio::test]
async fn a_dropped_connection_says_goodbye() {
    let (connection, mut far) = secure(leaf().server()).await;
    drop(connection);
    // Without close_notify this would be an error.
    assert_eq!(far.read(&mut [0; 1]).await.unwrap(), 0);
}

/// Polls a future once and drops it.
async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() {
    let (mut connection, mut far) = secure(leaf().server()).await;
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    exchange(&mut connection, &mut far, head).await.unwrap();
    let sent: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let pieces = sent.clone();
    let writer = tokio::spawn(async move {
        for piece in pieces.chunks(777) {
            far.write_all(piece).await.unwrap();
            far.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        far
    });
    let mut received = Vec::new();
    let mut block = [0; 5000];
    while received.len() < sent.len() {
        match poll_once(connection.read(&mut block)).await {
            Some(result) => received.extend_from_slice(&block[..result.unwrap()]),
            None => tokio::task::yield_now().await,
        }
    }
    assert!(received == sent);
    assert!(connection.is_reusable());
    writer.await.unwrap();
}

#[tokio::test]
async fn a_cancelled_send_spends_the_connection() {
    let (mut connection, _far) = clear();
    assert!(poll_once(connection.send(get())).await.is_none());
    assert!(!connection.is_reusable());
}
