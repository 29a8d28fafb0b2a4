//! One origin, one engine, one folder; and the ways over which the same fault can come.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trunkline_proto::digest::{Algorithm, Digest, Hasher};
use trunkline_testkit::{Origin, Protocols, Resource, temp_dir};
use trunkline_transfer::{
    Engine, EngineSettings, Error, Event, Job, JobId, LaneChoice, Observer, Receipt, RetryPolicy,
    Silent,
};
use trunkline_transport::{Roots, TlsClient, TlsOptions};
use url::Url;

/// Asserts that a transfer failed with that kind; gives the error back.
macro_rules! assert_kind {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {{
        let error = $result.unwrap_err();
        assert!(matches!(&error.kind, $pattern $(if $guard)?), "{error:?}");
        error
    }};
}

/// The protocol and lane that carry a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Object lane, HTTP/1.1 in clear text.
    Http1,
    /// Object lane, HTTP/2 over TLS.
    Http2,
    /// Range lane in clear text.
    Range,
    /// Range lane over TLS.
    RangeTls,
}

pub(crate) const WAYS: [Way; 4] = [Way::Http1, Way::Http2, Way::Range, Way::RangeTls];

/// The ways on which HTTP/1.1's framing can be broken.
pub(crate) const WAYS_HTTP1: [Way; 3] = [Way::Http1, Way::Range, Way::RangeTls];

/// How long nothing may come. Long enough for a busy machine, short enough for a test.
pub(crate) const STALL: Duration = Duration::from_millis(700);

/// When a transfer that ought to end counts as hanging.
const HANG: Duration = Duration::from_secs(30);

impl Way {
    pub(crate) fn origin(self) -> Origin {
        match self {
            Self::Http1 | Self::Range => Origin::builder().protocols(Protocols::H1).start(),
            Self::Http2 | Self::RangeTls => Origin::https(),
        }
    }

    pub(crate) fn lane(self) -> LaneChoice {
        match self {
            Self::Http1 | Self::Http2 => LaneChoice::Object,
            Self::Range | Self::RangeTls => LaneChoice::Range,
        }
    }
}

/// A TLS client that trusts one authority.
pub(crate) fn trusting(pem: &str) -> TlsClient {
    let folder = temp_dir();
    let path = folder.path().join("ca.pem");
    fs::write(&path, pem).unwrap();
    let roots = Roots::Only(vec![path]);
    TlsClient::new(TlsOptions { roots, ..TlsOptions::default() }).unwrap()
}

/// Settings that trust the origin, fail fast and retry at once.
pub(crate) fn settings(origin: &Origin) -> EngineSettings {
    let tls = match origin.unix_path() {
        None if origin.url("/").starts_with("https:") => trusting(origin.ca_pem()),
        _ => TlsClient::new(TlsOptions::default()).unwrap(),
    };
    impatient(EngineSettings::new(tls))
}

pub(crate) fn impatient(mut settings: EngineSettings) -> EngineSettings {
    settings.network.connect_timeout = Duration::from_secs(5);
    settings.patience.stall_timeout = STALL;
    settings.patience.retry = RetryPolicy {
        retries: 4,
        pause_first: Duration::from_millis(2),
        pause_max: Duration::from_millis(10),
        retry_after_max: Duration::from_secs(5),
    };
    settings
}

pub(crate) fn silent() -> Arc<dyn Observer> {
    Arc::new(Silent)
}

pub(crate) fn sha256(body: &[u8]) -> Digest {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(body);
    hasher.finish()
}

pub(crate) struct Bench {
    pub(crate) origin: Origin,
    pub(crate) engine: Engine,
    pub(crate) lane: LaneChoice,
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(way: Way) -> Self {
        Self::with(way, |_| {})
    }

    pub(crate) fn with(way: Way, edit: impl FnOnce(&mut EngineSettings)) -> Self {
        Self::at(way.origin(), way.lane(), edit)
    }

    pub(crate) fn at(
        origin: Origin,
        lane: LaneChoice,
        edit: impl FnOnce(&mut EngineSettings),
    ) -> Self {
        let mut settings = settings(&origin);
        edit(&mut settings);
        Self { origin, engine: Engine::new(settings), lane, folder: temp_dir() }
    }

    /// Puts a body at `/file`.
    pub(crate) fn put(&self, body: &Bytes) {
        self.origin.put("/file", Resource::new(body.clone()));
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        self.origin.url(path).parse().unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where [`job`](Self::job) puts its file.
    pub(crate) fn destination(&self) -> PathBuf {
        self.folder().join("out")
    }

    pub(crate) fn job(&self, path: &str) -> Job {
        let mut job = Job::new(self.url(path), self.destination());
        job.lane = self.lane;
        job
    }

    pub(crate) async fn get(&self) -> Result<Receipt, Arc<Error>> {
        self.run(&self.job("/file")).await
    }

    pub(crate) async fn run(&self, job: &Job) -> Result<Receipt, Arc<Error>> {
        let observer = silent();
        let work = self.engine.fetch(0, job, &observer);
        match tokio::time::timeout(HANG, work).await {
            Ok(result) => result,
            Err(_) => panic!("hangs: {:?} {:#?}", self.engine.stats(), self.origin.requests()),
        }
    }

    /// An older file under the final name, which a failure must leave as it is.
    pub(crate) fn older(&self) {
        fs::write(self.destination(), OLDER).unwrap();
    }

    /// The older file is as it was, and nothing else is there.
    pub(crate) fn assert_older_alone(&self) {
        assert_eq!(fs::read(self.destination()).unwrap(), OLDER);
        assert_eq!(self.names(), ["out"]);
    }

    /// The destination holds exactly this, and nothing else is there.
    pub(crate) fn assert_whole(&self, body: &[u8]) {
        let got = fs::read(self.destination()).unwrap();
        // Not assert_eq: nobody reads a megabyte of numbers.
        assert!(got == body, "{} bytes where {} belong, or others", got.len(), body.len());
        assert_eq!(self.names(), ["out"]);
    }

    /// All names in the folder, hidden ones too, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The Range headers of the GET requests to `/file`, in order.
    pub(crate) fn ranges(&self) -> Vec<Option<String>> {
        self.origin
            .requests_to("/file")
            .iter()
            .map(|request| request.head.header("range").map(ToOwned::to_owned))
            .collect()
    }
}

pub(crate) const OLDER: &[u8] = b"the older good file";

/// What a resumable partial leaves beside the destination.
pub(crate) const PARTIAL: [&str; 2] = [".out.trunkline-part", ".out.trunkline-state"];

/// Lets a test wait until so many bytes of bodies came.
#[derive(Debug)]
pub(crate) struct Watch {
    received: tokio::sync::watch::Sender<u64>,
}

impl Watch {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { received: tokio::sync::watch::Sender::new(0) })
    }

    pub(crate) async fn until(&self, bytes: u64) {
        let mut received = self.received.subscribe();
        let reached = received.wait_for(|received| *received >= bytes);
        tokio::time::timeout(Duration::from_secs(20), reached).await.unwrap().unwrap();
    }
}

impl Observer for Watch {
    fn event(&self, _job: JobId, event: Event<'_>) {
        if let Event::Received { bytes } = event {
            self.received.send_modify(|received| *received += bytes);
        }
    }
}

/// Does something between a failed attempt and the next one.
pub(crate) struct OnRetry<F>(pub(crate) F);

impl<F: Fn() + Send + Sync> Observer for OnRetry<F> {
    fn event(&self, _job: JobId, event: Event<'_>) {
        if let Event::Retrying { .. } = event {
            (self.0)();
        }
    }
}

impl Bench {
    /// Fetches `/file`, and puts another resource in its place after the first failed attempt.
    pub(crate) async fn get_while_it_becomes(
        &self,
        resource: Resource,
    ) -> Result<Receipt, Arc<Error>> {
        let shelf = self.origin.shelf();
        let change = move || shelf.put("/file", resource.clone());
        let observer: Arc<dyn Observer> = Arc::new(OnRetry(change));
        self.engine.fetch(0, &self.job("/file"), &observer).await
    }
}
