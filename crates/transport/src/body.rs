//! Bodies: what a request carries, and what an answer brings.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::Notify;

use crate::error::Error;
use crate::http::classify_body;

/// A stream of bytes with a known length, produced while it is sent.
pub trait BodySource: Send {
    /// The next chunk, or `None` at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;
}

/// A request's body. Its length is always known, so that requests are never chunked.
pub struct RequestBody {
    kind: Kind,
    remaining: u64,
    gate: Option<Gate>,
}

enum Kind {
    Empty,
    Full(Option<Bytes>),
    Source(Box<dyn BodySource>),
}

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self { kind: Kind::Empty, remaining: 0, gate: None }
    }

    /// A body in memory.
    pub fn full(bytes: Bytes) -> Self {
        let remaining = bytes.len() as u64;
        Self { kind: Kind::Full(Some(bytes)), remaining, gate: None }
    }

    /// A body of `length` bytes that is produced while it is sent.
    pub fn source(length: u64, source: Box<dyn BodySource>) -> Self {
        Self { kind: Kind::Source(source), remaining: length, gate: None }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// Holds the body back until the gate opens (Expect: 100-continue, RFC 9110 §10.1.1).
    pub(crate) fn hold(&mut self) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let waiter = Arc::clone(&notify);
        self.gate = Some(Gate { opened: Box::pin(async move { waiter.notified().await }) });
        notify
    }
}

struct Gate {
    opened: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(gate) = &mut self.gate {
            if gate.opened.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.gate = None;
        }
        let chunk = match &mut self.kind {
            Kind::Empty => None,
            Kind::Full(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Kind::Source(source) => match source.poll_chunk(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(chunk) => chunk,
            },
        };
        match chunk {
            Some(Ok(bytes)) => {
                let Some(remaining) = self.remaining.checked_sub(bytes.len() as u64) else {
                    return Poll::Ready(Some(Err(length_error("longer"))));
                };
                self.remaining = remaining;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None if self.remaining > 0 => Poll::Ready(Some(Err(length_error("shorter")))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// A file that grew or shrank while it was sent must not pass for the announced one.
fn length_error(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the body is {how} than announced"))
}

/// An answer's body, chunk by chunk.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self { incoming }
    }

    /// The exact length when the framing tells it (Content-Length), in bytes.
    pub fn length(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// Whether the end has been reached, without polling.
    pub fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// The next chunk, or `None` after the last one; trailers are passed over.
    ///
    /// # Errors
    /// [`Error::Truncated`] and the other errors of a connection that broke in mid-body.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(classify_body(error))));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
            }
        }
    }
}
