//! HTTP/1.1 and HTTP/2 over accepted streams.

use crate::accept::Server;
use crate::drain::{Drain, Drained};
use crate::limits::{
    H2_CONNECTION_WINDOW_BYTES, H2_PING_INTERVAL, H2_PING_TIMEOUT, H2_STREAM_WINDOW_BYTES, Limits,
};
use crate::opening::{Rewound, Version, read_version};
use crate::stream::Stream;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::error::Error as StdError;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

/// The least buffer hyper works with for an HTTP/1.1 head.
const H1_BUFFER_BYTES_MIN: usize = 8 << 10;

/// Why a request's body could not be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The client stopped, or broke the protocol.
    #[error("the client ended the request body early: {0}")]
    Client(#[source] hyper::Error),
    /// The body is longer than the limit; answer 413.
    #[error("the request body is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: u64,
    },
}

/// A request's body, which fails once it exceeds the server's limit.
#[derive(Debug)]
pub struct RequestBody {
    inner: Incoming,
    left: u64,
    bytes_max: u64,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(frame) => frame.map_err(BodyError::Client)?,
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                let bytes_max = self.bytes_max;
                return Poll::Ready(Some(Err(BodyError::TooLong { bytes_max })));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Server {
    /// Answers HTTP requests by `service` until drained. The protocol is chosen by ALPN, or by
    /// the client's first bytes. Each request's extensions hold the [`Peer`](crate::Peer) and,
    /// under TLS, the [`TlsFacts`](crate::TlsFacts).
    ///
    /// A request whose Content-Length exceeds the limit is answered 413 and never reaches the
    /// service. A service has no way to fail: what went wrong is a response it makes.
    pub async fn serve_http<S, Fut, B>(self, drain: &Drain, service: S) -> Drained
    where
        S: Fn(Request<RequestBody>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let limits = self.limits;
        let watched = drain.clone();
        let session = move |stream: Stream| {
            serve_connection(stream, limits, watched.clone(), service.clone())
        };
        self.serve_streams(drain, session).await
    }
}

async fn serve_connection<S, Fut, B>(stream: Stream, limits: Limits, drain: Drain, service: S)
where
    S: Fn(Request<RequestBody>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let (peer, tls) = (stream.peer(), stream.tls());
    let chosen = tls.as_ref().and_then(|facts| facts.alpn.as_deref());
    let opened = match chosen {
        Some(b"h2") => Ok((Version::H2, Rewound::untouched(stream))),
        Some(_) => Ok((Version::H1, Rewound::untouched(stream))),
        // hyper's clock for the head starts with the protocol: before that, ours runs.
        None => tokio::select! {
            opened = read_version(stream) => opened,
            () = tokio::time::sleep(limits.header_timeout) => return,
            () = drain.started() => return,
        },
    };
    let (version, io) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::debug!(%peer, %error, "connection ended"),
    };
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        if let Some(facts) = &tls {
            request.extensions_mut().insert(facts.clone());
        }
        answer(request, limits.body_bytes_max, service.clone())
    });
    let result = match version {
        Version::H1 => {
            let connection = h1_builder(limits).serve_connection(TokioIo::new(io), answer);
            let mut connection = pin!(connection);
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = drain.started() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
        Version::H2 => {
            let connection = h2_builder(limits).serve_connection(TokioIo::new(io), answer);
            let mut connection = pin!(connection);
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = drain.started() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

fn h1_builder(limits: Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes_max.max(H1_BUFFER_BYTES_MIN));
    builder
}

fn h2_builder(limits: Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams_max)
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(H2_PING_INTERVAL)
        .keep_alive_timeout(H2_PING_TIMEOUT);
    builder
}

async fn answer<S, Fut, B>(
    request: Request<Incoming>,
    bytes_max: u64,
    service: S,
) -> Result<Response<Either<B, Empty<Bytes>>>, Infallible>
where
    S: Fn(Request<RequestBody>) -> Fut,
    Fut: Future<Output = Response<B>>,
    B: Body<Data = Bytes>,
{
    if request.body().size_hint().lower() > bytes_max {
        let mut refusal = Response::new(Either::Right(Empty::new()));
        *refusal.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(refusal);
    }
    let request = request.map(|inner| RequestBody { inner, left: bytes_max, bytes_max });
    Ok(service(request).await.map(Either::Left))
}
