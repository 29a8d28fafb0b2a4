use super::*;

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use trunkline_transfer::{Engine, EngineSettings, Reply, Request};
use trunkline_transport::{Roots, TlsClient, TlsOptions};

use crate::tour::scratch::Scratch;

/// An origin without a delay and an engine that trusts it.
struct Bench {
    files: Arc<FileSet>,
    origin: Origin,
    engine: Engine,
    _scratch: Scratch,
}

impl Bench {
    fn new(http2: bool) -> Self {
        let files = Arc::new(FileSet::generate(2, 10_000, u64::MAX).unwrap());
        let certificate = Certificate::make().unwrap();
        let settings = OriginSettings { round_trip: Duration::ZERO, http2 };
        let origin = Origin::start(Arc::clone(&files), &certificate, settings).unwrap();
        let scratch = Scratch::make(&certificate).unwrap();
        let roots = Roots::Only(vec![scratch.authority().to_owned()]);
        let tls = TlsClient::new(TlsOptions { roots, ..TlsOptions::default() }).unwrap();
        let engine = Engine::new(EngineSettings::new(tls));
        Self { files, origin, engine, _scratch: scratch }
    }

    async fn ask(&self, method: Method, headers: &[(HeaderName, &str)]) -> Reply {
        let mut request = Request::new(method, self.origin.url(&self.files.as_slice()[1]));
        for (name, value) in headers {
            request.headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        self.engine.send(request).await.unwrap()
    }
}

#[tokio::test]
async fn files_and_ranges_come_exactly_over_both_versions() {
    for http2 in [true, false] {
        let bench = Bench::new(http2);
        let file = bench.files.as_slice()[1].clone();
        let length = file.body.len();

        let whole = bench.ask(Method::GET, &[]).await;
        assert_eq!(whole.status, StatusCode::OK);
        assert_eq!(whole.body, file.body);
        assert_eq!(whole.headers[ETAG], file.etag.as_str());
        assert_eq!(whole.headers[CONTENT_LENGTH], length.to_string().as_str());

        let part = bench.ask(Method::GET, &[(RANGE, "bytes=100-199")]).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.body, file.body.slice(100..200));
        let told = format!("bytes 100-199/{length}");
        assert_eq!(part.headers[CONTENT_RANGE], told.as_str());

        let stale = [(RANGE, "bytes=100-199"), (IF_RANGE, "\"other\"")];
        let stale = bench.ask(Method::GET, &stale).await;
        assert_eq!((stale.status, stale.body), (StatusCode::OK, file.body.clone()));

        let head = bench.ask(Method::HEAD, &[]).await;
        assert_eq!(head.headers[CONTENT_LENGTH], length.to_string().as_str());
        assert!(head.body.is_empty());

        bench.engine.close();
        let counts = bench.origin.stop();
        assert_eq!((counts.connections, counts.handshakes_full, counts.requests), (1, 1, 4));
    }
}

#[tokio::test]
async fn the_origin_and_the_engine_count_the_same() {
    let bench = Bench::new(true);
    bench.ask(Method::GET, &[]).await;
    bench.ask(Method::GET, &[]).await;
    let ours = bench.engine.stats_total();
    bench.engine.close();
    let theirs = bench.origin.stop();
    assert_eq!(ours.connections, theirs.connections);
    assert_eq!(ours.handshakes_full, theirs.handshakes_full);
    assert_eq!(ours.requests, theirs.requests);
}

#[tokio::test]
async fn dropping_the_origin_cuts_its_connections() {
    let bench = Bench::new(true);
    bench.ask(Method::GET, &[]).await;
    let url = bench.origin.url(&bench.files.as_slice()[0]);
    drop(bench.origin);
    let mut request = Request::new(Method::POST, url);
    // Not to be sent again, so that the test does not wait for retries.
    request.idempotent = false;
    assert!(bench.engine.send(request).await.is_err());
}
