//! Answers requests to the mirror.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, Method, Request, Response, StatusCode,
    header::{
        AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
        IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, USER_AGENT,
    },
};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use tokio::{io::AsyncReadExt as _, sync::Mutex as AsyncMutex, sync::Semaphore};
use trunkline_proto::{
    cran::{Limits, read_index},
    digest::Digest,
};
use trunkline_transfer::{self as transfer, Engine, Job, Silent};
use url::Url;

use crate::{
    index::{Index, RepositoryIndex},
    indexes::INDEX_BYTES_MAX,
    mirror::{
        prefetch::Prefetch,
        route::{Kind, Route, Token},
        store::{Entry, Note, Store},
    },
    repository::{PackageType, Platform},
};

/// Files fetched ahead at a time.
const AHEAD_MAX: usize = 64;
/// Indexes kept in memory for guessing; beyond it all are forgotten, which only costs guesses.
const INDEXES_MAX: usize = 64;
/// Bytes read from disk at a time.
const BLOCK_BYTES: usize = 256 << 10;
/// Files up to this size are read at once: as much memory a request under way at most.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// New files after which the store is checked against its limit.
const CLEAN_UP_EVERY: u64 = 256;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// How a mirror behaves.
#[derive(Clone, Debug)]
pub struct MirrorOptions {
    /// The secret part of its URLs; `None` lets every local process use it.
    pub token: Option<Token>,
    /// Fetch ahead what will most likely be asked for.
    pub prefetch: bool,
}

/// What a mirror did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorStats {
    /// Requests answered.
    pub requests: u64,
    /// Of these, with a file that was at hand.
    pub hits: u64,
    /// Files fetched ahead.
    pub prefetched: u64,
    /// Answers from the store because the repository could not be reached.
    pub stale: u64,
}

/// A mirror over an engine; cheap to clone.
#[derive(Clone)]
pub struct Mirror(Arc<Inner>);

struct Inner {
    engine: Engine,
    store: Store,
    options: MirrorOptions,
    /// One lock for each file that is being fetched: whoever comes second waits and finds it.
    flights: Mutex<HashMap<Entry, Weak<AsyncMutex<()>>>>,
    indexes: Mutex<HashMap<String, Known>>,
    ahead: Arc<Semaphore>,
    requests: AtomicU64,
    hits: AtomicU64,
    prefetched: AtomicU64,
    stale: AtomicU64,
    stored: AtomicU64,
}

/// An index that went through the mirror.
#[derive(Clone)]
struct Known {
    index: Arc<Index>,
    prefetch: Arc<Mutex<Prefetch>>,
}

/// What of a client's request matters to a repository.
#[derive(Clone)]
struct Client {
    user_agent: HeaderValue,
    authorization: Option<HeaderValue>,
}

impl Client {
    fn of(headers: &HeaderMap) -> Self {
        let user_agent = headers.get(USER_AGENT).cloned();
        let user_agent = user_agent.unwrap_or_else(|| HeaderValue::from_static("trunkline"));
        Self { user_agent, authorization: headers.get(AUTHORIZATION).cloned() }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, self.user_agent.clone());
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers
    }

    /// The part of the store's key that is not the URL. Credentials are in it too: what one
    /// client may read is not served to another without asking.
    fn key(&self) -> String {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let authorization = self.authorization.as_ref().map(text).unwrap_or_default();
        format!("{}\0{authorization}", text(&self.user_agent))
    }
}

/// Why a file could not be brought.
enum Miss {
    Transfer(Arc<transfer::Error>),
    Status(StatusCode),
    Store(io::Error),
}

impl From<io::Error> for Miss {
    fn from(error: io::Error) -> Self {
        Self::Store(error)
    }
}

impl Mirror {
    /// A mirror that asks through `engine` and keeps files in `store`.
    #[must_use]
    pub fn new(engine: Engine, store: Store, options: MirrorOptions) -> Self {
        Self(Arc::new(Inner {
            engine,
            store,
            options,
            flights: Mutex::default(),
            indexes: Mutex::default(),
            ahead: Arc::new(Semaphore::new(AHEAD_MAX)),
            requests: AtomicU64::default(),
            hits: AtomicU64::default(),
            prefetched: AtomicU64::default(),
            stale: AtomicU64::default(),
            stored: AtomicU64::default(),
        }))
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> MirrorStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MirrorStats {
            requests: get(&self.0.requests),
            hits: get(&self.0.hits),
            prefetched: get(&self.0.prefetched),
            stale: get(&self.0.stale),
        }
    }

    /// Answers one request; what goes wrong is an answer too.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body> {
        count(&self.0.requests);
        let target = request.uri().path_and_query().map(http::uri::PathAndQuery::as_str);
        let route = target.and_then(|target| Route::parse(target, self.0.options.token.as_ref()));
        let Some(route) = route else { return refusal(StatusCode::NOT_FOUND, "no such file\n") };
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        }
        let client = Client::of(request.headers());
        let answered = match &route.kind {
            Kind::Index { contrib_url } => {
                self.index(&route.url, contrib_url, &client, request.headers()).await
            }
            Kind::Package { folder_url, file } => {
                self.package(&route.url, folder_url, file, &client).await
            }
            Kind::Other => self.pass(request.method(), &route.url, &client).await,
        };
        let response = answered.unwrap_or_else(|miss| explain(&miss));
        if request.method() == Method::HEAD {
            return response.map(|_| empty());
        }
        response
    }

    /// An index: asked for anew each time, but sent again only when it changed.
    async fn index(
        &self,
        url: &Url,
        contrib_url: &str,
        client: &Client,
        asked: &HeaderMap,
    ) -> Result<Response<Body>, Miss> {
        let entry = self.0.store.entry(url.as_str(), &client.key())?;
        let flight = self.flight(&entry);
        let _turn = flight.lock().await;
        let known = entry.note();
        let mut headers = client.headers();
        let validator = |text: &Option<String>| {
            text.as_ref().and_then(|text| HeaderValue::try_from(text.as_str()).ok())
        };
        if let Some(note) = &known {
            headers.extend(validator(&note.etag).map(|etag| (IF_NONE_MATCH, etag)));
            headers.extend(validator(&note.last_modified).map(|date| (IF_MODIFIED_SINCE, date)));
        }
        let ask = transfer::Request {
            headers,
            reply_bytes_max: INDEX_BYTES_MAX,
            ..transfer::Request::new(Method::GET, url.clone())
        };
        let note = match (self.0.engine.send(ask).await, known) {
            (Ok(reply), Some(note)) if reply.status == StatusCode::NOT_MODIFIED => {
                count(&self.0.hits);
                note
            }
            (Ok(reply), _) if reply.status == StatusCode::OK => {
                let text = |name: &HeaderName| {
                    let value = reply.headers.get(name)?;
                    value.to_str().ok().map(str::to_owned)
                };
                let note = Note {
                    url: url.to_string(),
                    etag: text(&ETAG),
                    last_modified: text(&LAST_MODIFIED),
                    digest: None,
                };
                entry.put(&reply.body, &note)?;
                self.learn(contrib_url, url, reply.body).await;
                note
            }
            (Ok(reply), _) => return Err(Miss::Status(reply.status)),
            // Offline, or the repository is: an index of yesterday is better than none.
            (Err(error), Some(note)) if error.kind.status().is_none() => {
                tracing::warn!(%error, "serving an index that could not be revalidated");
                count(&self.0.stale);
                note
            }
            (Err(error), _) => return Err(Miss::Transfer(Arc::new(error))),
        };
        if !self.knows(contrib_url) {
            let body = tokio::fs::read(&entry.body).await?;
            self.learn(contrib_url, url, body.into()).await;
        }
        let mut response = if is_current(asked, &note) {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            stored(&entry).await?
        };
        let headers = response.headers_mut();
        headers.extend(validator(&note.etag).map(|etag| (ETAG, etag)));
        headers.extend(validator(&note.last_modified).map(|date| (LAST_MODIFIED, date)));
        Ok(response)
    }

    /// A package: from the store if it is there, else fetched, with what may follow it behind.
    async fn package(
        &self,
        url: &Url,
        folder_url: &str,
        file: &str,
        client: &Client,
    ) -> Result<Response<Body>, Miss> {
        self.look_ahead(folder_url, file, client);
        let check = self.expected(folder_url, file);
        let (entry, was_there) = self.bring(url, check, client).await?;
        if was_there {
            count(&self.0.hits);
        }
        Ok(stored(&entry).await?)
    }

    /// Makes sure that a package is in the store; tells whether it was there before.
    async fn bring(
        &self,
        url: &Url,
        check: Option<Digest>,
        client: &Client,
    ) -> Result<(Entry, bool), Miss> {
        let entry = self.0.store.entry(url.as_str(), &client.key())?;
        let flight = self.flight(&entry);
        let _turn = flight.lock().await;
        if entry.size().is_some() && is_right(&entry, check.as_ref()).await {
            return Ok((entry, true));
        }
        let job = Job {
            headers: client.headers(),
            check,
            refuse_html: true,
            ..Job::new(url.clone(), entry.body.clone())
        };
        let observer: Arc<dyn transfer::Observer> = Arc::new(Silent);
        self.0.engine.fetch(0, &job, &observer).await.map_err(Miss::Transfer)?;
        let digest = check.map(|check| check.to_string());
        entry.vouch(&Note { url: url.to_string(), digest, ..Note::default() })?;
        if (self.0.stored.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(CLEAN_UP_EVERY) {
            let store = self.0.store.clone();
            tokio::task::spawn_blocking(move || store.clean_up());
        }
        Ok((entry, false))
    }

    /// Anything else: head and body as they come, nothing kept.
    async fn pass(
        &self,
        method: &Method,
        url: &Url,
        client: &Client,
    ) -> Result<Response<Body>, Miss> {
        let ask = transfer::Request {
            headers: client.headers(),
            ..transfer::Request::new(method.clone(), url.clone())
        };
        let opened = self.0.engine.open(ask).await;
        let mut answer = opened.map_err(|error| Miss::Transfer(Arc::new(error)))?;
        let mut response = Response::new(empty());
        *response.status_mut() = answer.status;
        for name in [CONTENT_TYPE, ETAG, LAST_MODIFIED] {
            if let Some(value) = answer.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        if let Some(length) = answer.length() {
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, io::Error>>(4);
        tokio::spawn(async move {
            loop {
                let chunk = answer.chunk().await.map_err(io::Error::other).transpose();
                let Some(chunk) = chunk else { return };
                // The client went away: dropping the answer stops the transfer.
                if sender.send(chunk).await.is_err() {
                    return;
                }
            }
        });
        let frames = stream::unfold(receiver, |mut receiver| async move {
            let chunk = receiver.recv().await?;
            Some((chunk.map(Frame::data), receiver))
        });
        *response.body_mut() = StreamBody::new(frames).boxed_unsync();
        Ok(response)
    }

    fn flight(&self, entry: &Entry) -> Arc<AsyncMutex<()>> {
        let mut flights = self.0.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(entry).and_then(Weak::upgrade) {
            return flight;
        }
        // Those that landed are forgotten here: the map is as large as what is under way.
        flights.retain(|_, flight| flight.strong_count() > 0);
        let flight = Arc::default();
        flights.insert(entry.clone(), Arc::downgrade(&flight));
        flight
    }

    fn known(&self, contrib_url: &str) -> Option<Known> {
        let indexes = self.0.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.get(contrib_url).cloned()
    }

    fn knows(&self, contrib_url: &str) -> bool {
        self.known(contrib_url).is_some()
    }

    /// Keeps an index in mind for its checksums and for guessing. One that cannot be read is the
    /// client's affair; it went through all the same.
    async fn learn(&self, contrib_url: &str, url: &Url, body: Bytes) {
        if url.path().ends_with("archive.rds") {
            return;
        }
        let folder = contrib_url.to_owned();
        let read = move || {
            let table = read_index(&body, &Limits::default()).ok()?;
            let index = RepositoryIndex { contrib_url: folder, table };
            let index = Index::merge([index], &[], &any_platform());
            let prefetch = Arc::new(Mutex::new(Prefetch::new(&index)));
            Some(Known { index: Arc::new(index), prefetch })
        };
        let Ok(Some(known)) = tokio::task::spawn_blocking(read).await else { return };
        let mut indexes = self.0.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if indexes.len() >= INDEXES_MAX {
            indexes.clear();
        }
        indexes.insert(contrib_url.to_owned(), known);
    }

    /// The digest that an index gives for a file.
    fn expected(&self, folder_url: &str, file: &str) -> Option<Digest> {
        let known = self.known(folder_url)?;
        let (name, _) = file.split_once('_')?;
        let package_type = package_type(file)?;
        let mut rows = known.index.rows_of(name);
        let row = rows.find(|row| row.file_name(&package_type) == file)?;
        let md5 = row.field("MD5sum")?;
        format!("md5:{md5}").parse().ok()
    }

    /// Starts fetching what may be asked for after a package.
    fn look_ahead(&self, folder_url: &str, file: &str, client: &Client) {
        if !self.0.options.prefetch {
            return;
        }
        let Some(known) = self.known(folder_url) else { return };
        let Some(((name, _), package_type)) = file.split_once('_').zip(package_type(file)) else {
            return;
        };
        let guesses = {
            let mut prefetch = known.prefetch.lock().unwrap_or_else(PoisonError::into_inner);
            prefetch.asked(name)
        };
        for guess in guesses {
            let Some(package) = known.index.best(&guess) else { continue };
            let file = package.file_name(&package_type);
            let Ok(url) = Url::parse(&format!("{}/{file}", package.repository())) else { continue };
            let check = self.expected(folder_url, &file);
            let (mirror, client) = (self.clone(), client.clone());
            tokio::spawn(async move {
                let Ok(_slot) = mirror.0.ahead.clone().acquire_owned().await else { return };
                // A guess that fails is no harm: who asks for it will see why.
                if let Ok((_, false)) = mirror.bring(&url, check, &client).await {
                    count(&mirror.0.prefetched);
                }
            });
        }
    }
}

/// Whether the stored file is the one the index describes. It is hashed unless its note says that
/// it was compared before; without an index a name with a version in it is enough.
async fn is_right(entry: &Entry, check: Option<&Digest>) -> bool {
    let Some(check) = check.copied() else { return true };
    if entry.note().is_some_and(|note| note.digest == Some(check.to_string())) {
        return true;
    }
    let path = entry.body.clone();
    let hashed =
        tokio::task::spawn_blocking(move || crate::download::digest_of(&path, check.algorithm()));
    matches!(hashed.await, Ok(Ok(actual)) if actual == check)
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// No filter looks at it: the mirror does not know for which R it is asked.
fn any_platform() -> Platform {
    Platform {
        r_version: "4.0.0".parse().expect("a version"),
        os_type: String::new(),
        subarch: String::new(),
    }
}

fn package_type(file: &str) -> Option<PackageType> {
    let types =
        [PackageType::Source, PackageType::WinBinary, PackageType::MacBinary { flavour: None }];
    types.into_iter().find(|package_type| file.ends_with(package_type.extension()))
}

/// Whether the client has this very index (RFC 9110, section 13.1.2).
fn is_current(asked: &HeaderMap, note: &Note) -> bool {
    let Some(etag) = &note.etag else { return false };
    let asked = asked.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    asked.is_some_and(|asked| asked.split(',').any(|one| one.trim() == etag))
}

/// A stored file as an answer.
async fn stored(entry: &Entry) -> io::Result<Response<Body>> {
    let file = tokio::fs::File::open(&entry.body).await?;
    let length = file.metadata().await?.len();
    if length <= WHOLE_BYTES_MAX {
        // One trip to another thread instead of one for each block: most packages are small, and
        // R asks for the next only when it has this one.
        let mut file = file.into_std().await;
        let read = move || {
            let mut whole = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
            io::Read::read_to_end(&mut io::Read::take(&mut file, length), &mut whole)?;
            Ok::<_, io::Error>(whole)
        };
        let whole = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        return Ok(sized(
            Full::new(whole.into()).map_err(|never| match never {}).boxed_unsync(),
            length,
        ));
    }
    let frames = stream::try_unfold(file, |mut file| async move {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let read = file.read_buf(&mut block).await?;
        Ok((read > 0).then(|| (Frame::data(Bytes::from(block)), file)))
    });
    Ok(sized(StreamBody::new(frames).boxed_unsync(), length))
}

fn sized(body: Body, length_bytes: u64) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, length_bytes.into());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    response
}

fn empty() -> Body {
    text("")
}

fn text(text: &str) -> Body {
    Full::new(Bytes::copy_from_slice(text.as_bytes()))
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn refusal(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = Response::new(text(words));
    *response.status_mut() = status;
    response
}

/// The repository's own status where there is one; else the fault of what is behind us.
fn explain(miss: &Miss) -> Response<Body> {
    match miss {
        Miss::Status(status) => refusal(*status, ""),
        Miss::Transfer(error) => {
            let status = error.kind.status().unwrap_or(StatusCode::BAD_GATEWAY);
            refusal(status, &format!("{error}\n"))
        }
        Miss::Store(error) => {
            tracing::error!(%error, "the store cannot be used");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "the mirror's store cannot be used\n")
        }
    }
}
