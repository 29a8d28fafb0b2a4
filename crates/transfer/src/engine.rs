//! The engine: one a process, owner of the one pool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;
use trunkline_pool::{OriginPool, Pool, Stats};
use trunkline_transport::Origin;
use url::Url;

use crate::credentials::{Auth, basic, bearer};
use crate::display::SafeUrl;
use crate::error::{Error, ErrorKind};
use crate::exchange::{Answer, Ask};
use crate::rate::RateLimit;
use crate::request::{Reply, Request};
use crate::retrier::Retrier;
use crate::settings::{EngineSettings, OriginProfile};

/// Runs transfers over one warm pool. Clones share it; made by the entry point and handed to
/// every face.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: EngineSettings,
    pub(crate) pool: Pool,
    pub(crate) rate: Option<RateLimit>,
    profiles: Mutex<HashMap<Origin, OriginProfile>>,
    /// Origins that answered 429 with a time to wait: all requests to them wait.
    pauses: Mutex<HashMap<Origin, Instant>>,
}

impl Engine {
    /// An engine with an empty pool. Must be used within a tokio runtime with time and I/O.
    pub fn new(settings: EngineSettings) -> Self {
        let pool = Pool::new(settings.limits);
        let rate = settings.rate_bytes_per_second.map(RateLimit::new);
        let profiles = Mutex::default();
        Self { inner: Arc::new(Inner { settings, pool, rate, profiles, pauses: Mutex::default() }) }
    }

    /// Gives one origin settings of its own. Must come before the first request to it, since
    /// connections are made by the settings of their origin.
    pub fn configure(&self, origin: Origin, profile: OriginProfile) {
        let mut profiles = self.inner.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        profiles.insert(origin, profile);
    }

    /// What it was made with.
    pub fn settings(&self) -> &EngineSettings {
        &self.inner.settings
    }

    /// Counts of each origin so far.
    pub fn stats(&self) -> Vec<(Origin, Stats)> {
        self.inner.pool.stats()
    }

    /// Counts of all origins together.
    pub fn stats_total(&self) -> Stats {
        self.stats().into_iter().fold(Stats::default(), |sum, (_, stats)| sum.plus(stats))
    }

    /// Opens up to `connections` connections to a URL's origin ahead of need. Returns at once.
    ///
    /// # Errors
    /// [`ErrorKind::Url`] when the URL has no origin.
    pub fn warm(&self, url: &Url, connections: usize) -> Result<(), Error> {
        let origin = self.origin_pool(url).map_err(|kind| Error::new(url, kind, 0))?;
        origin.warm(connections);
        Ok(())
    }

    /// Fails what waits, closes what idles; transfers under way may end.
    pub fn close(&self) {
        self.inner.pool.close();
    }

    /// Sends a request, retried where that is safe, and reads its whole answer.
    ///
    /// # Errors
    /// [`Error`] when no answer could be had, when a status that may pass by itself did not
    /// within the retries, or when the answer is too large. Every other status is an answer.
    pub async fn send(&self, request: Request) -> Result<Reply, Error> {
        let mut ask = Ask::from_request(&request);
        let mut retrier = self.retrier(request.idempotent);
        loop {
            let attempt = async {
                let answer = self.exchange(&mut ask).await?;
                read_reply(answer, request.reply_bytes_max).await
            };
            match attempt.await {
                Ok(reply) => return Ok(reply),
                Err(kind) => {
                    let planned = retrier.next(&request.url, kind, false)?;
                    tokio::time::sleep(planned.wait).await;
                }
            }
        }
    }

    /// Sends a request and hands out its answer while the body still comes, for bodies that are
    /// worked on as they arrive. Retries end with the head.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn open(&self, request: Request) -> Result<Answer, Error> {
        let mut ask = Ask::from_request(&request);
        let mut retrier = self.retrier(request.idempotent);
        loop {
            match self.exchange(&mut ask).await {
                Ok(answer) => return Ok(answer),
                Err(kind) => {
                    let planned = retrier.next(&request.url, kind, false)?;
                    tokio::time::sleep(planned.wait).await;
                }
            }
        }
    }

    pub(crate) fn retrier(&self, idempotent: bool) -> Retrier {
        Retrier::new(self.inner.settings.patience.retry, idempotent)
    }

    pub(crate) fn origin_pool(&self, url: &Url) -> Result<Arc<OriginPool>, ErrorKind> {
        let origin = Origin::from_url(url)
            .map_err(|_| ErrorKind::Url { reason: "use http, https or file" })?;
        self.inner.pool.origin(&origin, || {
            let profiles = self.inner.profiles.lock().unwrap_or_else(PoisonError::into_inner);
            let network = profiles.get(&origin).and_then(|profile| profile.network.as_ref());
            Ok(network.unwrap_or(&self.inner.settings.network).settings_for(&origin))
        })
    }

    /// The credentials for a request to `url` that began at `first`.
    pub(crate) fn auth_for(&self, url: &Url, first: &Url) -> Auth {
        let origin = Origin::from_url(url).ok();
        if let Some(origin) = &origin {
            let profiles = self.inner.profiles.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(auth) = profiles.get(origin).and_then(|profile| profile.auth.clone()) {
                return auth;
            }
        }
        let identity = &self.inner.settings.identity;
        let at_home = origin.is_some() && origin == Origin::from_url(first).ok();
        if at_home && !identity.auth.is_none() {
            return identity.auth.clone();
        }
        let from_url = Auth::from_url(url);
        if !from_url.is_none() {
            return from_url;
        }
        let entry = identity
            .netrc
            .as_ref()
            .zip(origin.as_ref())
            .and_then(|(netrc, origin)| netrc.lookup(origin.host()));
        match entry {
            Some((user, password)) => {
                Auth::Basic { user: user.to_owned(), password: password.clone() }
            }
            None => Auth::None,
        }
    }

    /// The Authorization value of `auth`; a token is fetched when needed.
    pub(crate) async fn authorization(
        &self,
        auth: &Auth,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, ErrorKind> {
        match auth {
            Auth::None => Ok(None),
            Auth::Basic { user, password } => Ok(basic(user, password)),
            Auth::Bearer(token) => Ok(bearer(token)),
            Auth::OAuth2(source) => match source.header(self, refused).await {
                Ok(header) => Ok(Some(header)),
                Err(error) => Err(error.kind),
            },
        }
    }

    /// Holds all requests to an origin back for `wait`.
    pub(crate) fn pause_origin(&self, origin: &Origin, wait: Duration) {
        let until = Instant::now() + wait;
        let mut pauses = self.inner.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = pauses.entry(origin.clone()).or_insert(until);
        *entry = (*entry).max(until);
    }

    /// Waits until the origin takes requests again.
    pub(crate) async fn wait_for_origin(&self, origin: &Origin) {
        loop {
            let until = {
                let mut pauses = self.inner.pauses.lock().unwrap_or_else(PoisonError::into_inner);
                match pauses.get(origin).copied() {
                    Some(until) if until > Instant::now() => until,
                    Some(_) => {
                        pauses.remove(origin);
                        return;
                    }
                    None => return,
                }
            };
            tokio::time::sleep_until(until).await;
        }
    }

    /// Accounts for bytes under the rate limit.
    pub(crate) async fn pace(&self, bytes: usize) {
        if let Some(rate) = &self.inner.rate {
            rate.take(bytes).await;
        }
    }

    pub(crate) fn base_headers(&self, at_home: bool) -> HeaderMap {
        let identity = &self.inner.settings.identity;
        let mut headers = if at_home { identity.headers.clone() } else { HeaderMap::new() };
        headers.entry(http::header::USER_AGENT).or_insert_with(|| identity.user_agent.clone());
        headers
    }
}

impl Error {
    /// An error about a URL, which is made safe to show.
    pub(crate) fn new(url: &Url, kind: ErrorKind, attempts: u32) -> Self {
        Self { url: SafeUrl::new(url), kind, attempts }
    }
}

async fn read_reply(mut answer: Answer, bytes_max: u64) -> Result<Reply, ErrorKind> {
    let announced = answer.length().unwrap_or(0);
    if announced > bytes_max {
        return Err(ErrorKind::TooLarge { bytes_max });
    }
    let mut body = BytesMut::with_capacity(announced as usize);
    while let Some(chunk) = answer.chunk().await? {
        if (body.len() + chunk.len()) as u64 > bytes_max {
            return Err(ErrorKind::TooLarge { bytes_max });
        }
        body.extend_from_slice(&chunk);
    }
    let (status, headers, url) = (answer.status, answer.headers, answer.url);
    Ok(Reply { status, headers, body: body.freeze(), url })
}
