//! Chains, loops, and what must not cross an origin.

use http::{HeaderValue, StatusCode};
use trunkline_proto::secret::Secret;
use trunkline_testkit::{Fault, Origin, Reply, Resource, bytes};
use trunkline_transfer::{Auth, Engine, ErrorKind};
use trunkline_transport::{Roots, TlsClient, TlsOptions};

use crate::bench::{Bench, WAYS, Way, impatient, sha256, silent};

const SMALL: usize = 40_000;

#[tokio::test]
async fn a_chain_is_followed_to_its_end() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(1, SMALL);
        bench.put(&body);
        bench.origin.redirect_chain("/hop", 20, "/file");
        bench.run(&bench.job("/hop/0")).await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.origin.counters().connections_accepted, 1, "{way:?}");
        assert_eq!(bench.origin.counters().requests, 21, "{way:?}");
    }
}

#[tokio::test]
async fn a_loop_ends_at_the_limit() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.older();
        let _ = bench.origin.script("/a").always(Fault::Redirect(302, "/b".to_owned()));
        let _ = bench.origin.script("/b").always(Fault::Redirect(307, "/a".to_owned()));
        let error = assert_kind!(
            bench.run(&bench.job("/a")).await,
            ErrorKind::RedirectLimit { redirects_max: 20 }
        );
        assert_eq!(error.attempts, 1);
        assert_eq!(bench.origin.counters().requests, 21, "{way:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn every_status_that_redirects_is_followed() {
    for way in WAYS {
        for status in [301, 302, 303, 307, 308] {
            let bench = Bench::new(way);
            let body = bytes(2, SMALL);
            bench.put(&body);
            let _ = bench.origin.script("/go").always(Fault::Redirect(status, "/file".to_owned()));
            bench.run(&bench.job("/go")).await.unwrap();
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn a_redirect_to_nowhere_is_a_typed_error() {
    for target in ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://"] {
        let bench = Bench::new(Way::Http1);
        bench.older();
        let _ = bench.origin.script("/go").always(Fault::Redirect(302, target.to_owned()));
        assert_kind!(
            bench.run(&bench.job("/go")).await,
            ErrorKind::RedirectTarget { status: StatusCode::FOUND }
        );
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_redirect_without_location_is_no_file() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.older();
        let _ = bench.origin.script("/go").always(Fault::Status(302));
        assert_kind!(
            bench.run(&bench.job("/go")).await,
            ErrorKind::Status { status: StatusCode::FOUND, .. }
        );
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn credentials_cookies_and_the_callers_headers_stay_with_their_origin() {
    for way in [Way::Http1, Way::Range] {
        let bench = Bench::with(way, |settings| {
            let identity = &mut settings.identity;
            identity.auth = Auth::Basic { user: "me".to_owned(), password: Secret::new("hush") };
            identity.headers.insert("x-engine", HeaderValue::from_static("secret"));
        });
        let other = Origin::http();
        let body = bytes(3, SMALL);
        other.put("/there", Resource::new(body.clone()));
        let _ = bench.origin.script("/go").always(Fault::Redirect(302, "/home".to_owned()));
        let _ = bench.origin.script("/home").always(Fault::Redirect(302, other.url("/there")));
        let mut job = bench.job("/go");
        for (name, value) in
            [("cookie", "session=secret"), ("x-private", "secret"), ("private-token", "secret")]
        {
            job.headers.insert(name, HeaderValue::from_static(value));
        }
        bench.run(&job).await.unwrap();
        bench.assert_whole(&body);
        for path in ["/go", "/home"] {
            let home = &bench.origin.requests_to(path)[0].head;
            for name in ["authorization", "cookie", "x-private", "private-token", "x-engine"] {
                assert!(home.header(name).is_some(), "{way:?} {path}: {name} must be kept");
            }
        }
        let away = &other.requests_to("/there")[0].head;
        for (name, value) in &away.headers {
            assert!(!value.contains("secret") && !value.contains("Basic"), "{way:?}: {name}");
        }
        assert!(away.header("user-agent").is_some());
    }
}

#[tokio::test]
async fn headers_do_not_come_back_by_way_of_another_origin() {
    let bench = Bench::new(Way::Http1);
    let other = Origin::http();
    let body = bytes(4, SMALL);
    bench.put(&body);
    let _ = bench.origin.script("/go").always(Fault::Redirect(302, other.url("/x")));
    let _ = other.script("/x").always(Fault::Redirect(302, bench.origin.url("/file")));
    let mut job = bench.job("/go");
    job.headers.insert("x-private", HeaderValue::from_static("secret"));
    bench.run(&job).await.unwrap();
    bench.assert_whole(&body);
    assert!(bench.origin.requests_to("/file")[0].head.header("x-private").is_none());
}

#[tokio::test]
async fn https_falls_to_http_only_with_a_checksum() {
    for way in [Way::Http2, Way::RangeTls] {
        let bench = Bench::new(way);
        let plain = Origin::http();
        let body = bytes(5, SMALL);
        plain.put("/there", Resource::new(body.clone()));
        let _ = bench.origin.script("/go").always(Fault::Redirect(301, plain.url("/there")));
        bench.older();
        let mut job = bench.job("/go");
        assert_kind!(bench.run(&job).await, ErrorKind::RedirectDowngrade { .. });
        assert_eq!(plain.counters().requests, 0, "{way:?}");
        bench.assert_older_alone();
        job.check = Some(sha256(&body));
        bench.run(&job).await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_redirect_that_works_only_once_is_not_needed_to_resume() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(6, 3_000_000);
        bench.put(&body);
        let _ = bench
            .origin
            .script("/once")
            .once(Fault::Redirect(302, "/file".to_owned()))
            .always(Fault::Status(410));
        let _ = bench.origin.script("/file").once(Fault::CutAfter(1_000_000));
        bench.run(&bench.job("/once")).await.unwrap();
        bench.assert_whole(&body);
        assert_eq!(bench.origin.requests_to("/once").len(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn a_redirect_target_that_expired_is_asked_for_anew() {
    for way in WAYS {
        for length in [3_000_000, 34 << 20] {
            let bench = Bench::new(way);
            let body = bytes(7, length);
            for path in ["/signed/1", "/signed/2"] {
                bench.origin.put(path, Resource::new(body.clone()));
            }
            let _ = bench
                .origin
                .script("/go")
                .once(Fault::Redirect(302, "/signed/1".to_owned()))
                .always(Fault::Redirect(302, "/signed/2".to_owned()));
            let _ = bench
                .origin
                .script("/signed/1")
                .once(Fault::CutAfter(1_000_000))
                .always(Fault::Status(403));
            bench
                .run(&bench.job("/go"))
                .await
                .unwrap_or_else(|error| panic!("{way:?} {length}: {error:?}"));
            bench.assert_whole(&body);
        }
    }
}

#[tokio::test]
async fn a_redirect_target_that_is_down_is_not_stuck_to() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(8, SMALL);
    let gone = Origin::http();
    gone.put("/there", Resource::new(bytes(9, SMALL)));
    let _ = gone.script("/there").always(Fault::ResetBeforeHead);
    bench.put(&body);
    let _ = bench
        .origin
        .script("/go")
        .once(Fault::Redirect(302, gone.url("/there")))
        .always(Fault::Redirect(302, "/file".to_owned()));
    bench.run(&bench.job("/go")).await.unwrap();
    bench.assert_whole(&body);
}

#[tokio::test]
async fn a_post_is_followed_only_where_it_stays_a_post() {
    let bench = Bench::new(Way::Http1);
    let _ = bench.origin.script("/go/307").always(Fault::Redirect(307, "/sink".to_owned()));
    let _ = bench.origin.script("/go/302").always(Fault::Redirect(302, "/sink".to_owned()));
    bench.origin.handle("/sink", |_, body| Reply::new(200).body(body.to_vec()));
    let post = |path: &str| {
        let mut request = trunkline_transfer::Request::new(http::Method::POST, bench.url(path));
        request.payload = trunkline_transfer::Payload::Bytes("body".into());
        bench.engine.send(request)
    };
    assert_eq!(post("/go/307").await.unwrap().body, "body");
    assert_eq!(post("/go/302").await.unwrap().status, StatusCode::FOUND);
    assert_eq!(bench.origin.requests_to("/sink").len(), 1);
}

#[tokio::test]
async fn the_system_roots_are_not_read_for_clear_text() {
    let roots = Roots::Only(vec![]);
    let tls = TlsClient::new(TlsOptions { roots, ..TlsOptions::default() }).unwrap();
    let origin = Origin::http();
    origin.put("/file", Resource::new(bytes(10, 10)));
    let engine = Engine::new(impatient(trunkline_transfer::EngineSettings::new(tls)));
    let folder = trunkline_testkit::temp_dir();
    let destination = folder.path().join("out");
    let job = trunkline_transfer::Job::new(origin.url("/file").parse().unwrap(), destination);
    engine.fetch(0, &job, &silent()).await.unwrap();
}
