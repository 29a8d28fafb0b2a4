//! Bodies: what a request carries, and what an answer brings.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

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
    progress: Option<Arc<Progress>>,
}

enum Kind {
    Empty,
    Full(Option<Bytes>),
    Source(Box<dyn BodySource>),
}

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self { kind: Kind::Empty, remaining: 0, progress: None }
    }

    /// A body in memory.
    pub fn full(bytes: Bytes) -> Self {
        let remaining = bytes.len() as u64;
        Self { kind: Kind::Full(Some(bytes)), remaining, progress: None }
    }

    /// A body of `length` bytes that is produced while it is sent.
    pub fn source(length: u64, source: Box<dyn BodySource>) -> Self {
        Self { kind: Kind::Source(source), remaining: length, progress: None }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// Lets the connection follow the body and, with `held`, keep it back until
    /// [`Progress::release`] (Expect: 100-continue, RFC 9110 §10.1.1). `None` when there is
    /// nothing to send.
    pub(crate) fn follow(&mut self, held: bool) -> Option<Arc<Progress>> {
        if self.is_empty() {
            return None;
        }
        let steps = Steps { held, ..Steps::default() };
        let progress = Arc::new(Progress { steps: Mutex::new(steps) });
        self.progress = Some(Arc::clone(&progress));
        Some(progress)
    }

    /// Leaves word of a failure for the exchange.
    fn fail(&self, error: io::Error) -> io::Error {
        if let Some(progress) = &self.progress {
            progress.fail(&error);
        }
        error
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(Ok)),
            Kind::Source(source) => source.poll_chunk(cx),
        }
    }
}

/// How far a request's body has come, shared with the connection that sends it.
///
/// An answer may come before the body was sent. The connection is then in mid-request: it can
/// carry no other, and the rest of the body has nobody to go to.
#[derive(Debug)]
pub(crate) struct Progress {
    steps: Mutex<Steps>,
}

#[derive(Debug, Default)]
struct Steps {
    held: bool,
    done: bool,
    abandoned: bool,
    /// What the source failed with: HTTP/2 tells the peer of it and keeps nothing.
    failed: Option<io::Error>,
    waker: Option<Waker>,
}

impl Progress {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a body go that was held back.
    pub(crate) fn release(&self) {
        self.change(|steps| steps.held = false);
    }

    /// Fails what is left of the body, which ends the connection.
    pub(crate) fn abandon(&self) {
        self.change(|steps| steps.abandoned = true);
    }

    /// Whether the whole body has been handed over.
    pub(crate) fn is_done(&self) -> bool {
        self.steps().done
    }

    /// What the body itself failed with, if it did.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.steps().failed.take()
    }

    fn fail(&self, error: &io::Error) {
        let copy = io::Error::new(error.kind(), error.to_string());
        self.steps().failed.get_or_insert(copy);
    }

    fn finish(&self) {
        self.steps().done = true;
    }

    fn change(&self, edit: impl FnOnce(&mut Steps)) {
        let waker = {
            let mut steps = self.steps();
            edit(&mut steps);
            steps.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut steps = self.steps();
        if steps.abandoned && !steps.done {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if !steps.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            steps.waker = Some(cx.waker().clone());
        }
        if steps.held { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(progress) = &self.progress {
            match progress.poll_turn(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Ok(())) => {}
            }
        }
        let chunk = match self.poll_source(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(chunk) => chunk,
        };
        match chunk {
            Some(Ok(bytes)) => {
                let Some(remaining) = self.remaining.checked_sub(bytes.len() as u64) else {
                    return Poll::Ready(Some(Err(self.fail(length_error("longer")))));
                };
                self.remaining = remaining;
                if let (0, Some(progress)) = (remaining, &self.progress) {
                    progress.finish();
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(self.fail(error)))),
            None if self.remaining > 0 => {
                Poll::Ready(Some(Err(self.fail(length_error("shorter")))))
            }
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
