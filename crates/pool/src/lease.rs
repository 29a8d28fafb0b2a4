//! The right to use a connection: comes home by itself after a clean end, else closes it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{Request, Response, Version};
use trunkline_transport::{Error, RangeConnection, Reason, RequestBody, ResponseBody, SendError};

use crate::origin_pool::OriginPool;
use crate::state::{Held, Slot};
use crate::stats::Counters;

/// The right to send one request on a connection of the object lane.
#[derive(Debug)]
pub struct ObjectLease {
    origin: Arc<OriginPool>,
    /// `None` once the connection has come home or was closed.
    slot: Option<Slot>,
    /// Whether an exchange has begun that has not ended cleanly.
    begun: bool,
    /// Whether the server said that it closes the connection after this answer.
    last: bool,
}

impl ObjectLease {
    pub(crate) fn new(origin: Arc<OriginPool>, slot: Slot) -> Self {
        Self { origin, slot: Some(slot), begun: false, last: false }
    }

    /// Sends a request with an absolute URI and waits for the answer's head.
    ///
    /// The connection returns to the pool when the body has been read to its end; a body that is
    /// dropped before closes an HTTP/1.1 connection and resets an HTTP/2 stream.
    ///
    /// # Errors
    /// What the exchange met; the request itself when no byte of it was written.
    pub async fn send(
        mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, SendError> {
        Counters::add(&self.origin.counters.requests);
        self.begun = true;
        let result = match &mut self.slot {
            Some(Slot::Http1(held)) => held.connection.send(request).await,
            Some(Slot::Http2 { connection, .. }) => connection.send(request).await,
            None => Err(SendError { error: Error::Unsent, unsent: Some(Box::new(request)) }),
        };
        match result {
            Ok(response) => {
                self.origin.meter().count_payload(1);
                self.last = !keeps_alive(&response);
                Ok(response.map(|body| Body::new(body, self)))
            }
            Err(failure) => {
                self.learn(&failure.error);
                Err(failure)
            }
        }
    }

    /// Whether this is a stream of a shared connection.
    pub fn is_http2(&self) -> bool {
        matches!(self.slot, Some(Slot::Http2 { .. }))
    }

    /// Lets the origin learn from a failure.
    fn learn(&self, error: &Error) {
        let mut state = self.origin.lock();
        let id = match &self.slot {
            Some(Slot::Http2 { id, .. }) => *id,
            Some(Slot::Http1(_))
                if matches!(error, Error::ClosedBeforeAnswer { reused: false }) =>
            {
                let others = state.open().saturating_sub(1);
                if others > 0 {
                    state.lower_cap(others, Instant::now());
                }
                return;
            }
            _ => return,
        };
        match error {
            Error::RefusedStream | Error::StreamReset { reason: Reason::ENHANCE_YOUR_CALM } => {
                state.lower_streams(id);
            }
            Error::StreamReset { reason: Reason::HTTP_1_1_REQUIRED } => state.require_http1(),
            // One answer given up, or a body that failed on this side: the others go on.
            Error::StreamReset { reason: Reason::CANCEL | Reason::NO_ERROR }
            | Error::RequestBody(_) => {}
            Error::StreamReset { .. } | Error::BrokenHttp2 { .. } => state.stream_broke(id),
            Error::Unsent => state.stream_unsent(id),
            _ => state.drain(id),
        }
    }

    /// The exchange ended as it should: the connection is as good as before.
    fn finish(&mut self) {
        self.begun = false;
        if let Some(Slot::Http2 { id, .. }) = &self.slot {
            self.origin.lock().http2_worked(*id);
        }
        self.come_home();
    }

    fn come_home(&mut self) {
        let now = Instant::now();
        let want = self.origin.want();
        match self.slot.take() {
            Some(Slot::Http1(held)) => {
                let reusable = !self.begun && !self.last && held.connection.is_reusable();
                let held = reusable.then_some(held);
                self.origin.lock().return_http1(held, now, want);
            }
            Some(Slot::Http2 { id, .. }) => self.origin.lock().return_stream(id, now),
            None => return,
        }
        self.origin.pump();
    }
}

/// Whether the connection stays open after this answer (RFC 9112 §9.3).
fn keeps_alive<B>(response: &Response<B>) -> bool {
    let names = |token: &str| {
        let values = response.headers().get_all(CONNECTION).iter();
        values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|name| name.trim().eq_ignore_ascii_case(token))
    };
    match response.version() {
        Version::HTTP_10 => names("keep-alive"),
        Version::HTTP_11 => !names("close"),
        _ => true,
    }
}

impl Drop for ObjectLease {
    fn drop(&mut self) {
        self.come_home();
    }
}

/// An answer's body, holding its lease until the end.
#[derive(Debug)]
pub struct Body {
    inner: ResponseBody,
    lease: ObjectLease,
}

impl Body {
    fn new(inner: ResponseBody, lease: ObjectLease) -> Self {
        let mut body = Self { inner, lease };
        if body.inner.is_end() {
            body.lease.finish();
        }
        body
    }

    /// The exact length when the framing tells it, in bytes.
    pub fn length(&self) -> Option<u64> {
        self.inner.length()
    }

    /// The next chunk, or `None` after the last one.
    ///
    /// # Errors
    /// What broke the connection or the framing; the body is then incomplete.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// As [`chunk`](Self::chunk), for callers that poll.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let poll = self.inner.poll_chunk(cx);
        if let Poll::Ready(Some(Ok(chunk))) = &poll {
            self.lease.origin.meter().count_payload(chunk.len() as u64);
        }
        match &poll {
            Poll::Ready(None) => self.lease.finish(),
            Poll::Ready(Some(Err(error))) => self.lease.learn(error),
            Poll::Ready(Some(Ok(_))) if self.inner.is_end() => self.lease.finish(),
            _ => {}
        }
        poll
    }
}

/// The right to use a connection of the range lane, for any number of exchanges.
#[derive(Debug)]
pub struct RangeLease {
    origin: Arc<OriginPool>,
    held: Option<Held<Box<RangeConnection>>>,
    begun: bool,
}

impl RangeLease {
    pub(crate) fn new(origin: Arc<OriginPool>, held: Held<Box<RangeConnection>>) -> Self {
        Self { origin, held: Some(held), begun: false }
    }

    /// The connection; requests sent on it are counted by [`count_request`](Self::count_request).
    pub fn connection(&mut self) -> &mut RangeConnection {
        self.begun = true;
        &mut self.held.as_mut().expect("held until dropped").connection
    }

    /// Counts a request for the origin's figures.
    pub fn count_request(&self) {
        Counters::add(&self.origin.counters.requests);
    }

    /// Counts bytes of bodies for the origin's figures and the stall rule.
    pub fn count_received(&self, bytes: usize) {
        self.origin.meter().count_received(bytes);
        self.origin.meter().count_payload(bytes as u64);
    }
}

impl Drop for RangeLease {
    fn drop(&mut self) {
        let reusable =
            |held: &Held<Box<RangeConnection>>| !self.begun || held.connection.is_reusable();
        let held = self.held.take().filter(reusable);
        let want = self.origin.want();
        self.origin.lock().return_range(held, Instant::now(), want);
        self.origin.pump();
    }
}
