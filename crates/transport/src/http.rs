//! HTTP/1.1 and HTTP/2 exchanges over one connection, on hyper's connection layer.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use http::header::{EXPECT, HOST, HeaderValue, PROXY_AUTHORIZATION};
use http::{Request, Response, Uri, Version};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::body::{Progress, RequestBody, ResponseBody};
use crate::error::{Error, is_cut};
use crate::frames::{Signals, Watched};

/// The longest head accepted, in bytes: a megabyte of headers is an attack or a mistake.
pub const HEAD_BYTES_MAX: usize = 256 * 1024;

/// The most headers accepted in one head.
pub const HEADERS_MAX: usize = 1000;

/// HTTP/2 flow-control window of one stream, in bytes. A window of `w` allows `w / RTT` bytes a
/// second: 4 MiB gives 200 MiB/s at 20 ms.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;

/// HTTP/2 flow-control window of one connection, in bytes.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Largest HTTP/2 frame accepted, in bytes; larger frames cost fewer wake-ups.
const FRAME_BYTES_MAX: u32 = 64 << 10;

/// Interval of HTTP/2 pings while streams are open, so that a dead path is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long a body waits for `100 Continue` before it is sent all the same (RFC 9110 §10.1.1
/// leaves the time to the client; curl waits as long).
const CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// Largest body, in bytes, that is sent without asking first on HTTP/1.1.
const EXPECT_ABOVE_BYTES: u64 = 1 << 20;

/// How requests are addressed on a connection that ends at a forwarding proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forwarding {
    /// Use the absolute form (RFC 9112 §3.2.2).
    pub(crate) absolute_form: bool,
    /// The proxy's credentials, as a header value marked sensitive.
    pub(crate) authorization: Option<HeaderValue>,
}

/// A failed exchange, with the request when it may be sent again as it is.
#[derive(Debug)]
pub struct SendError {
    /// What happened.
    pub error: Error,
    /// The untouched request, when no byte of it was written.
    pub unsent: Option<Box<Request<RequestBody>>>,
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// An HTTP/1.1 connection: one exchange at a time.
#[derive(Debug)]
pub struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    forwarding: Forwarding,
    used: bool,
    /// The body of the exchange under way or of the last one.
    upload: Option<Arc<Progress>>,
}

impl Drop for Http1 {
    fn drop(&mut self) {
        // hyper would go on sending a body that nobody waits for, or wait for ever for one that
        // is held back.
        if let Some(upload) = &self.upload {
            upload.abandon();
        }
    }
}

impl Http1 {
    pub(crate) async fn start<S>(stream: S, forwarding: Forwarding) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(Error::Http)?;
        // The driver ends with the connection; what went wrong reaches the exchange itself.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, forwarding, used: false, upload: None })
    }

    /// Whether the peer has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether another request may follow an exchange whose answer was read to its end: the
    /// peer has not closed the connection and got the whole of the request.
    pub fn is_reusable(&self) -> bool {
        !self.is_closed() && self.upload.as_deref().is_none_or(Progress::is_done)
    }

    /// Sends one request with an absolute URI and waits for the answer's head.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, SendError> {
        let reused = std::mem::replace(&mut self.used, true);
        if self.sender.ready().await.is_err() {
            return Err(SendError { error: Error::Unsent, unsent: Some(Box::new(request)) });
        }
        let held = self.address(&mut request);
        self.upload = request.body_mut().follow(held);
        let held = self.upload.as_ref().filter(|_| held).map(Arc::clone);
        if let Some(upload) = &held {
            release_on_continue(&mut request, Arc::clone(upload));
        }
        let answer = self.sender.try_send_request(request);
        let answer = match held {
            None => answer.await,
            Some(upload) => release_after_wait(answer, &upload).await,
        };
        match answer {
            Ok(response) => Ok(response.map(ResponseBody::new)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                let error = match unsent {
                    Some(_) => Error::Unsent,
                    None => classify(error.into_error(), reused),
                };
                Err(SendError { error, unsent })
            }
        }
    }

    /// Puts the request into HTTP/1.1's form: target, `Host`, proxy credentials, `Expect`.
    /// Returns whether the body is held back until the server asks for it.
    fn address(&self, request: &mut Request<RequestBody>) -> bool {
        *request.version_mut() = Version::HTTP_11;
        if let Some(host) = host_of(request.uri()) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        if let Some(value) = &self.forwarding.authorization {
            request.headers_mut().insert(PROXY_AUTHORIZATION, value.clone());
        }
        if !self.forwarding.absolute_form {
            *request.uri_mut() = origin_form(request.uri());
        }
        let held = http_body::Body::size_hint(request.body()).lower() > EXPECT_ABOVE_BYTES;
        if held {
            request.headers_mut().insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
        held
    }
}

fn release_on_continue(request: &mut Request<RequestBody>, upload: Arc<Progress>) {
    hyper::ext::on_informational(request, move |head| {
        if head.status() == http::StatusCode::CONTINUE {
            upload.release();
        }
    });
}

/// Waits for the answer, and lets the body go when the server keeps silent about `Expect`.
async fn release_after_wait<F: Future>(answer: F, upload: &Progress) -> F::Output {
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => return answer,
        () = tokio::time::sleep(CONTINUE_WAIT) => upload.release(),
    }
    answer.await
}

/// An HTTP/2 connection: many exchanges at once; clones share it.
#[derive(Clone, Debug)]
pub struct Http2 {
    sender: http2::SendRequest<RequestBody>,
    /// What the server's frames said of the connection as a whole.
    signals: Arc<Signals>,
}

impl Http2 {
    pub(crate) async fn start<S>(stream: S) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let signals = Arc::new(Signals::default());
        let stream = Watched::new(stream, Arc::clone(&signals));
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .keep_alive_interval(PING_INTERVAL)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|source| Error::BrokenHttp2 { source })?;
        // The driver ends with the connection; what went wrong reaches the exchanges.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, signals })
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether the server takes no new stream: it has sent GOAWAY (RFC 9113 §6.8). Streams that
    /// are open may still be answered.
    pub fn is_going_away(&self) -> bool {
        self.signals.is_going_away()
    }

    /// Streams the server allows at once, as known so far (SETTINGS_MAX_CONCURRENT_STREAMS,
    /// RFC 9113 §6.5.2).
    pub fn streams_max(&self) -> usize {
        self.signals.streams_max()
    }

    /// Sends one request with an absolute URI and waits for the answer's head.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, SendError> {
        *request.version_mut() = Version::HTTP_2;
        // The authority stands in the pseudo-header (RFC 9113 §8.3.1).
        request.headers_mut().remove(HOST);
        let upload = request.body_mut().follow(false);
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response.map(ResponseBody::new)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                let own_failure = upload.as_deref().and_then(Progress::failure);
                let error = match (&unsent, own_failure) {
                    (Some(_), _) => Error::Unsent,
                    (None, Some(failure)) => Error::RequestBody(failure),
                    (None, None) => classify(error.into_error(), false),
                };
                Err(SendError { error, unsent })
            }
        }
    }
}

pub(crate) fn host_of(uri: &Uri) -> Option<HeaderValue> {
    let authority = uri.authority()?;
    let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = match authority.port_u16() {
        Some(port) if port != default_port => format!("{}:{port}", authority.host()),
        _ => authority.host().to_owned(),
    };
    HeaderValue::try_from(host).ok()
}

fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    path.parse().unwrap_or_else(|_| Uri::from_static("/"))
}

/// The typed error of an exchange that brought no head.
fn classify(error: hyper::Error, reused: bool) -> Error {
    if let Some(inner) = source_of::<h2::Error>(&error) {
        if let Some(refusal) = inner.get_io().and_then(Error::client_certificate) {
            return refusal;
        }
        return classify_http2(inner.reason(), inner.is_io(), inner.is_go_away(), inner.is_reset())
            .unwrap_or(if inner.is_io() {
                Error::ClosedBeforeAnswer { reused }
            } else {
                Error::BrokenHttp2 { source: error }
            });
    }
    if error.is_canceled() {
        return Error::Unsent;
    }
    if error.is_incomplete_message() || error.is_closed() {
        return Error::ClosedBeforeAnswer { reused };
    }
    if error.is_parse() {
        return Error::BrokenHttp1 { source: error };
    }
    if error.is_user() || error.is_body_write_aborted() {
        if let Some(io) = source_of::<std::io::Error>(&error) {
            return Error::RequestBody(std::io::Error::new(io.kind(), io.to_string()));
        }
        return Error::Http(error);
    }
    match source_of::<std::io::Error>(&error) {
        Some(io) if is_cut(io) => Error::ClosedBeforeAnswer { reused },
        Some(io) => Error::client_certificate(io)
            .unwrap_or_else(|| Error::Io(std::io::Error::new(io.kind(), io.to_string()))),
        None => Error::Http(error),
    }
}

/// The typed error of a body that ended wrongly.
pub(crate) fn classify_body(error: hyper::Error) -> Error {
    if let Some(inner) = source_of::<h2::Error>(&error) {
        return classify_http2(inner.reason(), inner.is_io(), inner.is_go_away(), inner.is_reset())
            .unwrap_or(if inner.is_io() {
                Error::Truncated
            } else {
                Error::BrokenHttp2 { source: error }
            });
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return Error::Truncated;
    }
    if error.is_parse() {
        return Error::BrokenHttp1 { source: error };
    }
    match source_of::<std::io::Error>(&error) {
        Some(io) if is_cut(io) => Error::Truncated,
        // hyper reports bad chunk framing as an input error of the body's decoder.
        Some(io) if io.kind() == std::io::ErrorKind::InvalidInput => {
            Error::BrokenHttp1 { source: error }
        }
        Some(io) => Error::client_certificate(io)
            .unwrap_or_else(|| Error::Io(std::io::Error::new(io.kind(), io.to_string()))),
        None => Error::Http(error),
    }
}

fn classify_http2(
    reason: Option<h2::Reason>,
    io: bool,
    go_away: bool,
    reset: bool,
) -> Option<Error> {
    match reason {
        _ if io => None,
        Some(h2::Reason::REFUSED_STREAM) => Some(Error::RefusedStream),
        Some(h2::Reason::NO_ERROR) if go_away => Some(Error::GoAway),
        Some(reason) if reset || reason == h2::Reason::HTTP_1_1_REQUIRED => {
            Some(Error::StreamReset { reason })
        }
        _ => None,
    }
}

fn source_of<T: StdError + 'static>(error: &hyper::Error) -> Option<&T> {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(found) = inner.downcast_ref::<T>() {
            return Some(found);
        }
        source = inner.source();
    }
    None
}
