//! One exchange: credentials, redirects and the stall rule around a single request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, IF_RANGE, LOCATION, RANGE, RETRY_AFTER,
};
use http::{Method, StatusCode};
use trunkline_pool::{OriginPool, RangeLease};
use trunkline_proto::range::{ByteRange, Validator};
use trunkline_proto::retry_after;
use trunkline_transport::BodyFraming;
use url::Url;

use crate::credentials::{Auth, strip};
use crate::engine::Engine;
use crate::error::ErrorKind;
use crate::plan::LaneChoice;
use crate::redirect;
use crate::request::{Payload, Request};
use crate::retry::is_passing;
use crate::stall::StallClock;

/// Bytes of an unwanted body that are read so that its HTTP/1.1 connection stays warm.
const DISCARD_BYTES_MAX: usize = 64 * 1024;

/// Bytes of an error body that are shown to the user.
const DETAIL_BYTES_MAX: usize = 200;

/// Bytes read at once from a range connection when the caller has no buffer of its own.
const BLOCK_BYTES: usize = 256 * 1024;

/// What is asked, over all its redirects and attempts.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// The caller's URL.
    pub(crate) first: Url,
    /// Where its redirects led before, so that they are not walked again.
    pub(crate) resolved: Option<Url>,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload,
    pub(crate) lane: LaneChoice,
    pub(crate) range: Option<ByteRange>,
    pub(crate) if_range: Option<Validator>,
    /// A redirect may fall from https to http: the bytes are checked.
    pub(crate) downgrade: bool,
}

impl Ask {
    pub(crate) fn get(url: Url, headers: HeaderMap) -> Self {
        Self {
            method: Method::GET,
            first: url,
            resolved: None,
            headers,
            payload: Payload::Empty,
            lane: LaneChoice::Object,
            range: None,
            if_range: None,
            downgrade: false,
        }
    }

    pub(crate) fn from_request(request: &Request) -> Self {
        Self {
            method: request.method.clone(),
            payload: request.payload.clone(),
            ..Self::get(request.url.clone(), request.headers.clone())
        }
    }

    fn range_headers(&self, headers: &mut HeaderMap) {
        let Some(range) = self.range else { return };
        let value = HeaderValue::try_from(range.header_value()).expect("digits and a dash");
        headers.insert(RANGE, value);
        let if_range = self.if_range.as_ref().map(|v| HeaderValue::try_from(v.if_range_value()));
        if let Some(Ok(value)) = if_range {
            headers.insert(IF_RANGE, value);
        }
    }
}

/// An answer whose body still comes.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The URL that answered, after redirects, without user information.
    pub url: Url,
    /// Whether credentials were sent.
    pub had_credentials: bool,
    /// From the request to the head: a round trip and the server's own time.
    pub latency: Duration,
    body: Body,
    clock: StallClock,
    engine: Engine,
}

enum Body {
    Object { body: trunkline_pool::Body, left: Bytes },
    Range { lease: RangeLease, length: Option<u64> },
}

impl Answer {
    /// The body's exact length when the framing tells it, in bytes.
    pub fn length(&self) -> Option<u64> {
        match &self.body {
            Body::Object { body, .. } => body.length(),
            Body::Range { length, .. } => *length,
        }
    }

    /// The next chunk of the body, or `None` after the last.
    ///
    /// # Errors
    /// What broke the connection; [`ErrorKind::Stalled`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ErrorKind> {
        let chunk = match &mut self.body {
            Body::Object { left, .. } if !left.is_empty() => return Ok(Some(std::mem::take(left))),
            Body::Object { body, .. } => self.clock.watch(body.chunk()).await?.transpose()?,
            Body::Range { .. } => {
                let mut block = BytesMut::zeroed(BLOCK_BYTES);
                let received = self.read_range(&mut block).await?;
                block.truncate(received);
                (received > 0).then(|| block.freeze())
            }
        };
        if let Some(chunk) = &chunk {
            self.engine.pace(chunk.len()).await;
        }
        Ok(chunk)
    }

    /// Reads into the caller's buffer; 0 is the end of the body.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn read_into(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        if let Body::Range { .. } = self.body {
            let received = self.read_range(buffer).await?;
            self.engine.pace(received).await;
            return Ok(received);
        }
        let Some(mut chunk) = self.chunk().await? else { return Ok(0) };
        let taken = chunk.split_to(chunk.len().min(buffer.len()));
        buffer[..taken.len()].copy_from_slice(&taken);
        if let Body::Object { left, .. } = &mut self.body {
            *left = chunk;
        }
        Ok(taken.len())
    }

    async fn read_range(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        let Body::Range { lease, .. } = &mut self.body else { return Ok(0) };
        let received = self.clock.watch(lease.connection().read(buffer)).await??;
        lease.count_received(received);
        Ok(received)
    }

    /// Whether the body comes over a connection of the range lane.
    pub(crate) fn is_range_lane(&self) -> bool {
        matches!(self.body, Body::Range { .. })
    }

    /// A header as text; `None` when it is absent or not ASCII.
    pub fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Reads a short unwanted body, so that the connection stays warm.
    async fn discard(mut self) {
        let mut read = 0;
        while read < DISCARD_BYTES_MAX {
            match self.chunk().await {
                Ok(Some(chunk)) => read += chunk.len(),
                _ => return,
            }
        }
    }

    /// Turns a status that says no into an error, with the body's first line as detail.
    pub(crate) async fn into_status_error(mut self) -> ErrorKind {
        let status = self.status;
        if matches!(status.as_u16(), 401 | 403 | 407) {
            let had_credentials = self.had_credentials;
            self.discard().await;
            return ErrorKind::Authentication { status, had_credentials };
        }
        let retry_after = self
            .header(&RETRY_AFTER)
            .and_then(|value| retry_after::parse(value, std::time::SystemTime::now()));
        let is_text = self
            .header(&http::header::CONTENT_TYPE)
            .is_some_and(|kind| kind.starts_with("text/plain") || kind.contains("json"));
        let mut detail = String::new();
        if is_text && let Ok(Some(chunk)) = self.chunk().await {
            let text = String::from_utf8_lossy(&chunk[..chunk.len().min(DETAIL_BYTES_MAX)]);
            let line = text.lines().next().unwrap_or_default();
            detail = line.chars().filter(|c| !c.is_control()).collect();
        }
        self.discard().await;
        ErrorKind::Status { status, detail, retry_after }
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Engine {
    /// One attempt, redirects and a renewed token included. Statuses that may pass by themselves
    /// are errors here, so that the caller's retry sees them; all others are answers.
    pub(crate) async fn exchange(&self, ask: &mut Ask) -> Result<Answer, ErrorKind> {
        let redirects_max = self.inner.settings.patience.redirects_max;
        let mut url = ask.resolved.clone().unwrap_or_else(|| ask.first.clone());
        let mut headers = ask.headers.clone();
        let mut away = redirect::cross(&ask.first, &url, &mut headers);
        let mut refused: Option<HeaderValue> = None;
        let mut redirects = 0;
        let mut from_earlier = ask.resolved.take().is_some();
        loop {
            // Boxed: it is the larger part of a transfer's future, which is moved when its task
            // is made.
            let asking = Box::pin(self.ask_once(ask, &url, &headers, away, refused.as_ref()));
            let (answer, auth, sent) = asking.await?;
            let renewable = matches!(auth, Auth::OAuth2(_)) && refused.is_none();
            if answer.status == StatusCode::UNAUTHORIZED && renewable {
                answer.discard().await;
                refused = sent;
                continue;
            }
            if from_earlier && is_expired(answer.status) {
                // A signed URL expires; the first one leads to a fresh one.
                answer.discard().await;
                from_earlier = false;
                url = ask.first.clone();
                headers = ask.headers.clone();
                away = false;
                continue;
            }
            let follows = redirect::is_redirect(answer.status)
                && redirect::may_follow(answer.status, &ask.method)
                && answer.headers.contains_key(LOCATION);
            if !follows {
                return self.sort_out(ask, answer).await;
            }
            redirects += 1;
            if redirects > redirects_max {
                return Err(ErrorKind::RedirectLimit { redirects_max });
            }
            let downgrade = ask.downgrade || self.inner.settings.patience.redirect_downgrade;
            let target = redirect::target(&url, answer.status, &answer.headers, downgrade)?;
            answer.discard().await;
            away |= redirect::cross(&url, &target, &mut headers);
            url = target;
        }
    }

    async fn sort_out(&self, ask: &mut Ask, answer: Answer) -> Result<Answer, ErrorKind> {
        if !is_passing(answer.status) {
            ask.resolved = (answer.url != ask.first).then(|| answer.url.clone());
            return Ok(answer);
        }
        let origin = trunkline_transport::Origin::from_url(&answer.url).ok();
        let status = answer.status;
        let error = answer.into_status_error().await;
        if let (ErrorKind::Status { retry_after: Some(wait), .. }, Some(origin)) = (&error, origin)
        {
            // 429 speaks of the client, not of the request: everybody waits.
            if status == StatusCode::TOO_MANY_REQUESTS
                && *wait <= self.inner.settings.patience.retry.retry_after_max
            {
                self.pause_origin(&origin, *wait);
            }
        }
        Err(error)
    }

    async fn ask_once(
        &self,
        ask: &Ask,
        url: &Url,
        private: &HeaderMap,
        away: bool,
        refused: Option<&HeaderValue>,
    ) -> Result<(Answer, Auth, Option<HeaderValue>), ErrorKind> {
        let origin = self.origin_pool(url)?;
        self.wait_for_origin(origin.origin()).await;
        let mut headers = self.base_headers(!away);
        for (name, value) in private {
            headers.insert(name.clone(), value.clone());
        }
        let mut auth = Auth::None;
        let mut authorization = headers.get(AUTHORIZATION).cloned();
        if authorization.is_none() {
            auth = self.auth_for(url, &ask.first);
            authorization = self.authorization(&auth, refused).await?;
            if let Some(value) = &authorization {
                headers.insert(AUTHORIZATION, value.clone());
            }
        }
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        ask.range_headers(&mut headers);
        let mut answer = match ask.lane {
            LaneChoice::Range => self.send_range(ask, &origin, url, headers).await?,
            LaneChoice::Object => self.send_object(ask, &origin, url, headers).await?,
        };
        answer.had_credentials = authorization.is_some();
        Ok((answer, auth, authorization))
    }

    async fn send_object(
        &self,
        ask: &Ask,
        origin: &Arc<OriginPool>,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<Answer, ErrorKind> {
        let body = ask.payload.body(origin.meter()).await?;
        let request = build(&ask.method, url, headers, body)?;
        let lease = origin.lease().await?;
        let mut clock = self.clock(origin);
        let sent = Instant::now();
        let response = clock.watch(lease.send(request)).await?;
        let response = response.map_err(|failed| ErrorKind::Connection(failed.error))?;
        let (head, body) = response.into_parts();
        let body = Body::Object { body, left: Bytes::new() };
        Ok(self.answer(head, url, body, clock, sent.elapsed()))
    }

    /// As [`send_object`](Self::send_object) on the range lane; framing that it does not read
    /// goes back to the object lane.
    async fn send_range(
        &self,
        ask: &Ask,
        origin: &Arc<OriginPool>,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<Answer, ErrorKind> {
        let request = build(&ask.method, url, headers, ())?;
        let mut lease = origin.lease_range().await?;
        lease.count_request();
        let mut clock = self.clock(origin);
        let sent = Instant::now();
        let response = clock.watch(lease.connection().send(&request)).await??;
        origin.meter().count_payload(1);
        let (head, framing) = response.into_parts();
        let length = match framing {
            BodyFraming::Unsupported => {
                drop(lease);
                let (parts, ()) = request.into_parts();
                return self.send_object(ask, origin, url, parts.headers).await;
            }
            BodyFraming::Length(length) => Some(length),
            _ => None,
        };
        let body = Body::Range { lease, length };
        Ok(self.answer(head, url, body, clock, sent.elapsed()))
    }

    fn clock(&self, origin: &Arc<OriginPool>) -> StallClock {
        let after = self.inner.settings.patience.stall_timeout;
        StallClock::start(Arc::clone(origin.meter()), after)
    }

    fn answer(
        &self,
        head: http::response::Parts,
        url: &Url,
        body: Body,
        clock: StallClock,
        latency: Duration,
    ) -> Answer {
        Answer {
            status: head.status,
            headers: head.headers,
            url: strip(url),
            had_credentials: false,
            latency,
            body,
            clock,
            engine: self.clone(),
        }
    }
}

/// Statuses with which a place says that it no longer serves a file.
fn is_expired(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 404 | 410)
}

fn build<B>(
    method: &Method,
    url: &Url,
    headers: HeaderMap,
    body: B,
) -> Result<http::Request<B>, ErrorKind> {
    let bare = strip(url);
    let uri = bare[..url::Position::AfterQuery]
        .parse::<http::Uri>()
        .map_err(|_| ErrorKind::Url { reason: "it is too long or not valid in HTTP" })?;
    let mut request = http::Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}
