//! Who asks: basic, bearer, netrc, OAuth2, client certificates.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use trunkline_proto::netrc::Netrc;
use trunkline_proto::secret::Secret;
use trunkline_testkit::{Authority, Fault, Origin, Resource, TokenIssuer, bytes};
use trunkline_transfer::{Auth, Engine, ErrorKind, Job, TokenSource};
use trunkline_transport::{Identity, Roots, TlsClient, TlsOptions};

use crate::bench::{Bench, WAYS, Way, silent};

const SMALL: usize = 10_000;
/// `me:hush`.
const BASIC: &str = "Basic bWU6aHVzaA==";

fn basic() -> Auth {
    Auth::Basic { user: "me".to_owned(), password: Secret::new("hush") }
}

#[tokio::test]
async fn basic_credentials_are_sent_from_url_settings_and_netrc() {
    for way in WAYS {
        let netrc = "machine other login a password b machine 127.0.0.1 login me password hush";
        let benches = [
            Bench::with(way, |settings| settings.identity.auth = basic()),
            Bench::with(way, |settings| {
                settings.identity.netrc = Some(Arc::new(Netrc::parse(netrc).unwrap()));
            }),
            Bench::new(way),
        ];
        for (n, bench) in benches.iter().enumerate() {
            let body = bytes(1, SMALL);
            bench.put(&body);
            let _ =
                bench.origin.script("/file").also(Fault::RequireAuthorization(BASIC.to_owned()));
            let mut job = bench.job("/file");
            if n == 2 {
                job.url.set_username("me").unwrap();
                job.url.set_password(Some("hush")).unwrap();
            }
            bench.run(&job).await.unwrap_or_else(|error| panic!("{way:?} {n}: {error:?}"));
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn wrong_credentials_are_not_tried_again() {
    for way in WAYS {
        let bench = Bench::with(way, |settings| {
            settings.identity.auth = Auth::Bearer(Secret::new("wrong"));
        });
        bench.put(&bytes(2, SMALL));
        bench.older();
        let _ = bench.origin.script("/file").also(Fault::RequireAuthorization(BASIC.to_owned()));
        assert_kind!(
            bench.get().await,
            ErrorKind::Authentication { status: StatusCode::UNAUTHORIZED, had_credentials: true }
        );
        assert_eq!(bench.origin.counters().requests, 1);
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_secret_is_in_no_error() {
    let bench = Bench::new(Way::Http1);
    let mut job = bench.job("/file");
    job.url = format!("{}?sig=topsecret", bench.origin.url("/file")).parse().unwrap();
    job.url.set_username("me").unwrap();
    job.url.set_password(Some("hush")).unwrap();
    let error = bench.run(&job).await.unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("hush"), "{text}");
    }
}

struct Tokens {
    bench: Bench,
    issuer: TokenIssuer,
}

fn tokens(way: Way, secret: &str, expires_in_s: u64) -> Tokens {
    let origin = way.origin();
    let issuer = TokenIssuer::new("client", "right").expires_in_s(expires_in_s);
    origin.token_endpoint("/token", &issuer);
    let _ = origin.script("/many/*").also(Fault::RequireBearer(issuer.clone()));
    for n in 0..40 {
        origin.put(&format!("/many/{n}"), Resource::new(bytes(n, SMALL)));
    }
    let endpoint = origin.url("/token").parse().unwrap();
    let source = TokenSource::new(endpoint, "client".to_owned(), Secret::new(secret), None);
    let bench = Bench::at(origin, way.lane(), |settings| {
        settings.identity.auth = Auth::OAuth2(Arc::new(source));
    });
    Tokens { bench, issuer }
}

impl Tokens {
    async fn fetch(&self, count: u64) -> Vec<Result<(), Arc<trunkline_transfer::Error>>> {
        let jobs: Vec<Job> = (0..count)
            .map(|n| {
                let mut job = self.bench.job(&format!("/many/{n}"));
                job.destination = self.bench.folder().join(n.to_string());
                job
            })
            .collect();
        let observer = silent();
        let all = jobs.iter().map(|job| self.bench.engine.fetch(0, job, &observer));
        join_all(all).await.into_iter().map(|result| result.map(|_| ())).collect()
    }
}

#[tokio::test]
async fn forty_parallel_transfers_fetch_one_token() {
    for way in WAYS {
        let tokens = tokens(way, "right", 3600);
        for result in tokens.fetch(40).await {
            result.unwrap();
        }
        assert_eq!(tokens.issuer.issued(), 1, "{way:?}");
        assert_eq!(tokens.bench.origin.counters().requests, 41, "{way:?}");
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let tokens = tokens(Way::Http1, "right", 1);
    tokens.fetch(1).await.pop().unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(950)).await;
    tokens.fetch(1).await.pop().unwrap().unwrap();
    assert_eq!(tokens.issuer.issued(), 2);
    let refused = tokens.bench.origin.requests().iter().any(|r| r.status == Some(401));
    assert!(!refused, "no request was refused");
}

#[tokio::test]
async fn a_revoked_token_is_renewed_once_for_all() {
    for way in WAYS {
        let tokens = tokens(way, "right", 3600);
        tokens.fetch(1).await.pop().unwrap().unwrap();
        tokens.issuer.revoke_all();
        for result in tokens.fetch(40).await {
            result.unwrap();
        }
        assert_eq!(tokens.issuer.issued(), 2, "{way:?}");
    }
}

#[tokio::test]
async fn a_token_that_is_never_good_is_renewed_once_and_then_an_error() {
    let tokens = tokens(Way::Http1, "right", 3600);
    let _ = tokens.bench.origin.script("/many/0").always(Fault::Status(401));
    let error = assert_kind!(
        tokens.fetch(1).await.pop().unwrap(),
        ErrorKind::Authentication { had_credentials: true, .. }
    );
    assert_eq!(error.attempts, 1);
    assert_eq!(tokens.issuer.issued(), 2);
}

#[tokio::test]
async fn a_wrong_secret_fails_at_once() {
    let tokens = tokens(Way::Http1, "wrong", 3600);
    assert_kind!(
        tokens.fetch(1).await.pop().unwrap(),
        ErrorKind::Token { status: StatusCode::UNAUTHORIZED, detail } if detail == "invalid_client"
    );
    assert_eq!(tokens.bench.origin.requests_to("/token").len(), 1);
    assert_eq!(tokens.bench.origin.requests_to("/many/0").len(), 0);
}

#[tokio::test]
async fn a_client_certificate_opens_the_door() {
    let server = Authority::new("server authority");
    let people = Authority::new("people authority");
    for lane in [Way::Http2.lane(), Way::Range.lane()] {
        let folder = trunkline_testkit::temp_dir();
        let (roots, chain, key) = (
            folder.path().join("roots.pem"),
            folder.path().join("chain.pem"),
            folder.path().join("key.pem"),
        );
        let me = people.client("me");
        std::fs::write(&roots, server.pem()).unwrap();
        std::fs::write(&chain, &me.chain_pem).unwrap();
        std::fs::write(&key, &me.key_pem).unwrap();
        let client = |identity| {
            let roots = Roots::Only(vec![roots.clone()]);
            TlsClient::new(TlsOptions { roots, identity, ..TlsOptions::default() }).unwrap()
        };
        let origin =
            || Origin::builder().authority(&server).require_client_certificate(&people).start();
        let identity = Identity::from_pem_files(&chain, Some(&key)).unwrap();
        let bench = Bench::at(origin(), lane, |settings| {
            settings.network.tls = client(Some(identity));
        });
        let body = bytes(3, SMALL);
        bench.put(&body);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
        assert!(bench.origin.connection_records().iter().all(|c| c.client_certificate));

        let bench = Bench::at(origin(), lane, |settings| settings.network.tls = client(None));
        bench.older();
        let error = bench.get().await.unwrap_err();
        let typed = matches!(&error.kind, ErrorKind::Pool(_) | ErrorKind::Connection(_));
        assert!(typed, "{lane:?}: {error:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn one_engine_serves_two_origins_with_their_own_credentials() {
    let bench = Bench::new(Way::Http1);
    let other = Origin::http();
    bench.put(&bytes(4, SMALL));
    other.put("/file", Resource::new(bytes(5, SMALL)));
    let _ = bench.origin.script("/file").also(Fault::RequireAuthorization(BASIC.to_owned()));
    let _ = other.script("/file").also(Fault::RequireAuthorization("Bearer token".to_owned()));
    let configure = |engine: &Engine, url: &str, auth: Auth| {
        let origin = trunkline_transport::Origin::from_url(&url.parse().unwrap()).unwrap();
        let profile = trunkline_transfer::OriginProfile { auth: Some(auth), ..Default::default() };
        engine.configure(origin, profile);
    };
    configure(&bench.engine, &bench.origin.url("/"), basic());
    configure(&bench.engine, &other.url("/"), Auth::Bearer(Secret::new("token")));
    bench.get().await.unwrap();
    let mut job = bench.job("/file");
    job.url = other.url("/file").parse().unwrap();
    bench.run(&job).await.unwrap();
    bench.assert_whole(&bytes(5, SMALL));
}
