//! The range lane against hyper: the same scripted server must give the same heads and bodies, or
//! fail both, however its bytes are cut.

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::tests::{client, leaf, request, server_name};
use super::*;
use crate::tls::fixtures::HOST;

/// What the range lane does, so that hyper can stand in for it.
trait RangeSource {
    async fn send(&mut self, request: &Request<()>) -> Result<Response<()>, ()>;
    /// Bytes of the body, 0 at its end.
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, ()>;
}

impl RangeSource for RangeConnection {
    async fn send(&mut self, request: &Request<()>) -> Result<Response<()>, ()> {
        Ok(RangeConnection::send(self, request).await.map_err(drop)?.map(drop))
    }

    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, ()> {
        RangeConnection::read(self, buf).await.map_err(drop)
    }
}

struct OverHyper {
    sender: http1::SendRequest<Empty<Bytes>>,
    body: Option<hyper::body::Incoming>,
    left: Bytes,
}

impl OverHyper {
    async fn new<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, body: None, left: Bytes::new() }
    }
}

impl RangeSource for OverHyper {
    async fn send(&mut self, request: &Request<()>) -> Result<Response<()>, ()> {
        self.sender.ready().await.map_err(drop)?;
        let mut request = request.clone().map(|()| Empty::new());
        *request.uri_mut() = http::Uri::from_static("/file");
        request.headers_mut().insert("host", http::HeaderValue::from_static(HOST));
        let (head, body) = self.sender.send_request(request).await.map_err(drop)?.into_parts();
        self.body = Some(body);
        Ok(Response::from_parts(head, ()))
    }

    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, ()> {
        while self.left.is_empty() {
            let Some(body) = &mut self.body else { return Ok(0) };
            match body.frame().await {
                None => return Ok(0),
                Some(frame) => self.left = frame.map_err(drop)?.into_data().unwrap_or_default(),
            }
        }
        let taken = self.left.split_to(self.left.len().min(buf.len()));
        buf[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}

/// One answer of a script.
#[derive(Clone, Debug)]
struct Answer {
    head_only: bool,
    hints: usize,
    framing: Framing,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunks { most: usize },
    Close,
}

impl Answer {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(self.hints);
        bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: script\r\nX-Two: a\r\nX-Two: b\r\n");
        let field = match self.framing {
            Framing::Length => format!("Content-Length: {}\r\n\r\n", self.body.len()),
            Framing::Chunks { .. } => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
            Framing::Close => "Connection: close\r\n\r\n".to_owned(),
        };
        bytes.extend_from_slice(field.as_bytes());
        if self.head_only {
            return bytes;
        }
        if let Framing::Chunks { most } = self.framing {
            for chunk in self.body.chunks(most) {
                bytes.extend_from_slice(format!("{:X};x=y\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\nTrailer: z\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

#[derive(Clone, Debug)]
struct Script {
    answers: Vec<Answer>,
    /// Where each answer's bytes are cut into writes, in thousandths of its length.
    cuts: Vec<usize>,
    /// The last answer's bytes stop there, in thousandths; 1000 is whole.
    stop: usize,
    /// Whether TLS ends by `close_notify`.
    farewell: bool,
    record_bytes: Option<usize>,
    read_bytes: usize,
}

fn script() -> impl Strategy<Value = Script> {
    let framing = prop_oneof![
        3 => Just(Framing::Length),
        2 => (1_usize..20_000).prop_map(|most| Framing::Chunks { most }),
        1 => Just(Framing::Close),
    ];
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..50),
        (any::<u8>(), 1_usize..90_000)
            .prop_map(|(seed, length)| (0..length).map(|at| seed ^ (at % 253) as u8).collect()),
    ];
    let answer = (prop::bool::weighted(0.15), 0_usize..3, framing, body)
        .prop_map(|(head_only, hints, framing, body)| Answer { head_only, hints, framing, body });
    (
        prop::collection::vec(answer, 1..4),
        prop::collection::vec(0_usize..1000, 0..8),
        prop_oneof![3 => Just(1000_usize), 1 => 0_usize..1000],
        any::<bool>(),
        prop::option::of(100_usize..16_000),
        1_usize..40_000,
    )
        .prop_map(|(answers, mut cuts, stop, farewell, record_bytes, read_bytes)| {
            cuts.sort_unstable();
            Script { answers, cuts, stop, farewell, record_bytes, read_bytes }
        })
}

/// Plays the server's part; writes may fail when the client has given up.
async fn play<S: AsyncRead + AsyncWrite + Unpin>(script: &Script, far: &mut S) {
    for (index, answer) in script.answers.iter().enumerate() {
        if tokio::time::timeout(std::time::Duration::from_secs(5), request(far)).await.is_err() {
            return;
        }
        let mut bytes = answer.bytes();
        let last = index + 1 == script.answers.len();
        if last {
            bytes.truncate(bytes.len() * script.stop / 1000);
        }
        let mut from = 0;
        for cut in script.cuts.iter().chain([&1000]) {
            let until = bytes.len() * cut / 1000;
            if far.write_all(&bytes[from..until]).await.is_err() || far.flush().await.is_err() {
                return;
            }
            from = until;
            tokio::task::yield_now().await;
        }
        if matches!(answer.framing, Framing::Close) {
            return;
        }
    }
}

/// What a client saw of one exchange.
#[derive(Debug, PartialEq)]
struct Seen {
    head: Option<(http::StatusCode, HeaderMap)>,
    /// The body, when it came to its end.
    body: Option<Vec<u8>>,
}

async fn see(script: &Script, mut source: impl RangeSource) -> Vec<Seen> {
    let mut all = Vec::new();
    for answer in &script.answers {
        let method = if answer.head_only { "HEAD" } else { "GET" };
        let uri = format!("https://{HOST}/file");
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let Ok(response) = source.send(&request).await else {
            all.push(Seen { head: None, body: None });
            break;
        };
        let mut body = Vec::new();
        let mut block = vec![0; script.read_bytes];
        let whole = loop {
            match source.read(&mut block).await {
                Ok(0) => break true,
                Ok(received) => body.extend_from_slice(&block[..received]),
                Err(()) => break false,
            }
        };
        let head = Some((response.status(), response.headers().clone()));
        all.push(Seen { head, body: whole.then_some(body) });
        if !whole || matches!(answer.framing, Framing::Close) {
            break;
        }
    }
    all
}

async fn in_clear(script: &Script) -> [Vec<Seen>; 2] {
    let (near, mut far) = UnixStream::pair().unwrap();
    let lane = RangeConnection::clear(Carrier::Unix(near), Forwarding::default());
    let served = async {
        play(script, &mut far).await;
        drop(far);
    };
    let (ours, ()) = tokio::join!(see(script, lane), served);
    let (near, mut far) = UnixStream::pair().unwrap();
    let served = async {
        play(script, &mut far).await;
        drop(far);
    };
    let theirs = async { see(script, OverHyper::new(near).await).await };
    let (theirs, ()) = tokio::join!(theirs, served);
    [ours, theirs]
}

async fn under_tls(script: &Script) -> [Vec<Seen>; 2] {
    let mut config = leaf().server();
    // The body of a record; the header comes on top.
    config.max_fragment_size = script.record_bytes.map(|bytes| bytes + 5);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let serve = |far: UnixStream| {
        let accepting = acceptor.accept(far);
        async move {
            let mut far = accepting.await.unwrap();
            play(script, &mut far).await;
            if script.farewell {
                let _ = far.shutdown().await;
            }
        }
    };
    let client = client();
    let (near, far) = UnixStream::pair().unwrap();
    let config = client.ranges().unwrap();
    let ours = async {
        let handshake = RangeConnection::tls(Carrier::Unix(near), config, server_name(), HOST);
        see(script, handshake.await.unwrap().0).await
    };
    let (ours, ()) = tokio::join!(ours, serve(far));
    let (near, far) = UnixStream::pair().unwrap();
    let connector = TlsConnector::from(client.ranges().unwrap());
    let theirs = async {
        let stream = connector.connect(server_name(), near).await.unwrap();
        see(script, OverHyper::new(stream).await).await
    };
    let (theirs, ()) = tokio::join!(theirs, serve(far));
    [ours, theirs]
}

/// What an undisturbed script must give.
fn expected(script: &Script, tls: bool) -> Option<Vec<Vec<u8>>> {
    let mut bodies = Vec::new();
    for (index, answer) in script.answers.iter().enumerate() {
        let cut = index + 1 == script.answers.len() && script.stop < 1000;
        let close = matches!(answer.framing, Framing::Close);
        if cut || (close && tls && !script.farewell && !answer.head_only) {
            return None;
        }
        bodies.push(if answer.head_only { Vec::new() } else { answer.body.clone() });
        if close {
            break;
        }
    }
    Some(bodies)
}

fn run(script: &Script, tls: bool) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let [ours, theirs] = runtime
        .block_on(async { if tls { under_tls(script).await } else { in_clear(script).await } });
    prop_assert_eq!(&ours, &theirs, "{:?}", (&script.cuts, script.stop, script.read_bytes));
    if let Some(bodies) = expected(script, tls) {
        let seen: Vec<_> = ours.into_iter().map(|seen| seen.body.unwrap_or_default()).collect();
        prop_assert!(seen == bodies, "a body is not what the script sent");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn clear_text_reads_as_by_hyper(script in script()) {
        run(&script, false)?;
    }

    #[test]
    fn tls_reads_as_by_hyper(script in script()) {
        run(&script, true)?;
    }
}
