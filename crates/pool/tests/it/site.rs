//! An origin, a pool, and the few words that tests say to them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use tokio::task::JoinSet;
use trunkline_pool::{Body, Error, Limits, ObjectLease, OriginPool, Pool};
use trunkline_testkit::{Origin, Resource, temp_dir};
use trunkline_transport as transport;
use trunkline_transport::settings::HttpVersion;
use trunkline_transport::{OriginSettings, RequestBody, Roots, TlsClient, TlsOptions};
use url::Url;

/// What went wrong with one request.
#[derive(Debug)]
pub(crate) enum Failure {
    Lease(Error),
    Exchange(transport::Error),
}

impl Failure {
    pub(crate) fn exchange(self) -> transport::Error {
        match self {
            Self::Exchange(error) => error,
            Self::Lease(error) => panic!("no lease: {error:?}"),
        }
    }
}

/// One origin's pool, with requests in words.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) pool: Arc<OriginPool>,
    base: String,
    /// Kept open, unless the test closes it.
    _all: Option<Pool>,
}

pub(crate) fn limits(per_origin: usize) -> Limits {
    Limits { connections_per_origin: per_origin, ..Limits::default() }
}

pub(crate) fn origin_of(url: &str) -> transport::Origin {
    transport::Origin::from_url(&Url::parse(url).unwrap()).unwrap()
}

pub(crate) fn settings(origin: &Origin, version: HttpVersion) -> OriginSettings {
    let secure = origin.url("/").starts_with("https");
    let directory = temp_dir();
    let mut options = TlsOptions::default();
    if secure {
        let file = directory.path().join("ca.pem");
        std::fs::write(&file, origin.ca_pem()).unwrap();
        options.roots = Roots::Only(vec![file]);
    }
    OriginSettings { version, ..OriginSettings::new(TlsClient::new(options).unwrap()) }
}

impl Site {
    pub(crate) fn of(pool: &Pool, origin: &Origin, version: HttpVersion) -> Self {
        origin.put("/small", Resource::new("small"));
        origin.put("/empty", Resource::new(""));
        origin.put("/big", Resource::new(trunkline_testkit::bytes(1, 8 << 20)));
        let base = origin.url("");
        let settings = || Ok::<_, transport::Error>(settings(origin, version));
        let made = pool.origin(&origin_of(&origin.url("/")), settings).unwrap();
        Self { pool: made, base, _all: Some(pool.clone()) }
    }

    pub(crate) fn new(pool: &Pool, origin: &Origin) -> Self {
        Self::of(pool, origin, HttpVersion::Auto)
    }

    /// The same, but it does not keep the pool open.
    pub(crate) fn weak(self) -> Self {
        Self { _all: None, ..self }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::empty());
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", self.base).parse().unwrap();
        request
    }

    pub(crate) async fn lease(&self) -> ObjectLease {
        self.pool.lease().await.unwrap()
    }

    /// The head of an answer, with its body to be read.
    pub(crate) async fn open(&self, path: &str) -> Result<Body, Failure> {
        let lease = self.pool.lease().await.map_err(Failure::Lease)?;
        let request = self.request(Method::GET, path);
        let response = lease.send(request).await.map_err(|e| Failure::Exchange(e.error))?;
        Ok(response.into_body())
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        read(self.open(path).await?).await.map_err(Failure::Exchange)
    }

    /// As [`get`](Self::get), again while that is safe at once.
    pub(crate) async fn get_again(&self, path: &str) -> Result<Vec<u8>, Failure> {
        for _ in 0..50 {
            match self.get(path).await {
                Err(Failure::Exchange(error)) if error.retry() != transport::RetryClass::Never => {}
                other => return other,
            }
        }
        panic!("50 tries were not enough");
    }

    /// So many requests at once; all must succeed.
    pub(crate) async fn get_all(&self, count: usize, path: &'static str) {
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let site = self.clone();
            tasks.spawn(async move { site.get_again(path).await });
        }
        while let Some(done) = tasks.join_next().await {
            assert!(!done.unwrap().unwrap().is_empty());
        }
    }
}

pub(crate) async fn read(mut body: Body) -> Result<Vec<u8>, transport::Error> {
    let mut all = Vec::new();
    while let Some(chunk) = body.chunk().await {
        let chunk: Bytes = chunk?;
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

/// Lets every task that can run do so; time does not pass.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
