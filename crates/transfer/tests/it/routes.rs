//! The way to an origin: proxies, Unix sockets, certificate authorities; and how fast.

use std::time::{Duration, Instant};

use trunkline_proto::no_proxy::NoProxy;
use trunkline_testkit::{Authority, ConnectProxy, Origin, SocksProxy, bytes};
use trunkline_transfer::{Class, EngineSettings, ErrorKind, ProxyRules};
use trunkline_transport::{self as transport, ProxyError};

use crate::bench::{Bench, WAYS, Way, trusting};

const SMALL: usize = 40_000;

fn through(url: &str, no_proxy: &str) -> impl Fn(&mut EngineSettings) {
    let route: trunkline_transfer::ProxyRoute = url.parse().unwrap();
    let no_proxy = NoProxy::parse(no_proxy);
    move |settings| {
        settings.network.proxies = ProxyRules {
            http: Some(route.clone()),
            https: Some(route.clone()),
            no_proxy: no_proxy.clone(),
        };
    }
}

/// Whether a failed dial is this error of a proxy.
fn is_proxy_error(kind: &ErrorKind, is: impl Fn(&ProxyError) -> bool) -> bool {
    match kind {
        ErrorKind::Pool(trunkline_pool::Error::Dial(error)) => {
            matches!(&**error, transport::Error::Proxy { source, .. } if is(source))
        }
        _ => false,
    }
}

#[tokio::test]
async fn http_proxies_carry_every_way() {
    for way in WAYS {
        for login in [None, Some(("me", "hush"))] {
            let proxy = match login {
                None => ConnectProxy::start(),
                Some((user, password)) => ConnectProxy::with_credentials(user, password),
            };
            let url = login.map_or(proxy.url(), |(user, password)| proxy.url_with(user, password));
            let bench = Bench::with(way, through(&url, ""));
            let body = bytes(1, SMALL);
            bench.put(&body);
            bench.get().await.unwrap_or_else(|error| panic!("{way:?}: {error:?}"));
            bench.assert_whole(&body);
            let tunnels = proxy.tunnels();
            assert!(!tunnels.is_empty() && tunnels.iter().all(|tunnel| tunnel.allowed));
            let tls = matches!(way, Way::Http2 | Way::RangeTls);
            assert!(tunnels.iter().all(|tunnel| tunnel.tunnel == tls), "{way:?}: {tunnels:?}");
            let request = &bench.origin.requests()[0].head;
            assert!(request.header("proxy-authorization").is_none(), "{way:?}: it leaks");
        }
    }
}

#[tokio::test]
async fn a_proxy_that_wants_a_login_is_a_typed_error_and_asked_once() {
    for way in [Way::Http2, Way::RangeTls] {
        let proxy = ConnectProxy::with_credentials("me", "hush");
        for url in [proxy.url(), proxy.url_with("me", "wrong")] {
            let before = proxy.connections();
            let bench = Bench::with(way, through(&url, ""));
            bench.older();
            let error = bench.get().await.unwrap_err();
            let is = |error: &ProxyError| matches!(error, ProxyError::AuthenticationRequired);
            assert!(is_proxy_error(&error.kind, is), "{way:?}: {error:?}");
            assert_eq!(error.kind.class(), Class::Authentication);
            assert_eq!(proxy.connections(), before + 1, "{way:?}");
            assert_eq!(bench.origin.counters().connections_accepted, 0);
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn a_forwarding_proxy_that_wants_a_login_is_a_typed_error() {
    for way in [Way::Http1, Way::Range] {
        let proxy = ConnectProxy::with_credentials("me", "hush");
        let bench = Bench::with(way, through(&proxy.url(), ""));
        bench.older();
        let error = bench.get().await.unwrap_err();
        assert_eq!(error.kind.class(), Class::Authentication, "{way:?}: {error:?}");
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn socks_proxies_carry_every_way_and_resolve_names() {
    for way in WAYS {
        for login in [None, Some(("me", "hush"))] {
            let proxy = match login {
                None => SocksProxy::start(),
                Some((user, password)) => SocksProxy::with_credentials(user, password),
            };
            let url = login.map_or(proxy.url(), |(user, password)| proxy.url_with(user, password));
            let bench = Bench::with(way, through(&url, ""));
            proxy.resolve("files.origin.test", bench.origin.address());
            let body = bytes(2, SMALL);
            bench.put(&body);
            let mut job = bench.job("/file");
            job.url = bench.origin.url_at("files.origin.test", "/file").parse().unwrap();
            bench.run(&job).await.unwrap_or_else(|error| panic!("{way:?}: {error:?}"));
            bench.assert_whole(&body);
            assert!(proxy.tunnels().iter().all(|tunnel| tunnel.by_name));
        }
    }
}

#[tokio::test]
async fn a_socks_proxy_that_wants_another_login_is_a_typed_error() {
    for way in WAYS {
        let proxy = SocksProxy::with_credentials("me", "hush");
        for url in [proxy.url(), proxy.url_with("me", "wrong")] {
            let bench = Bench::with(way, through(&url, ""));
            bench.older();
            let error = bench.get().await.unwrap_err();
            let is = |error: &ProxyError| matches!(error, ProxyError::SocksAuthentication);
            assert!(is_proxy_error(&error.kind, is), "{way:?}: {error:?}");
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn no_proxy_goes_around() {
    for way in WAYS {
        for exempt in ["*", "127.0.0.1", "127.0.0.0/8"] {
            let proxy = ConnectProxy::start();
            let bench = Bench::with(way, through(&proxy.url(), exempt));
            let body = bytes(3, SMALL);
            bench.put(&body);
            bench.get().await.unwrap();
            bench.assert_whole(&body);
            assert_eq!(proxy.connections(), 0, "{way:?} {exempt}");
        }
    }
}

#[tokio::test]
async fn a_unix_socket_stands_in_for_the_origin() {
    for lane in [Way::Http1.lane(), Way::Range.lane()] {
        let origin = Origin::builder().unix().start();
        let path = origin.unix_path().unwrap().to_owned();
        let bench = Bench::at(origin, lane, |settings| settings.network.unix_socket = Some(path));
        let body = bytes(4, SMALL);
        bench.put(&body);
        bench.get().await.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_unix_socket_that_is_not_there_is_a_typed_error() {
    let bench = Bench::with(Way::Http1, |settings| {
        settings.network.unix_socket = Some("/nonexistent/socket".into());
    });
    bench.older();
    assert_kind!(bench.get().await, ErrorKind::Pool(_));
    bench.assert_older_alone();
}

#[tokio::test]
async fn an_unknown_authority_is_named_and_not_tried_again() {
    let unknown = Authority::new("nobody knows me");
    for lane in [Way::Http2.lane(), Way::Range.lane()] {
        let origin = Origin::builder().authority(&unknown).start();
        let other = Authority::new("somebody else");
        let bench = Bench::at(origin, lane, |settings| {
            settings.network.tls = trusting(other.pem());
        });
        bench.older();
        let error = bench.get().await.unwrap_err();
        let ErrorKind::Pool(trunkline_pool::Error::Dial(inner)) = &error.kind else {
            panic!("{error:?}");
        };
        assert!(
            matches!(
                &**inner,
                transport::Error::UntrustedIssuer { issuer, .. }
                    if issuer.contains("nobody knows me")
            ),
            "{inner:?}"
        );
        assert_eq!(error.attempts, 1);
        assert_eq!(error.kind.class(), Class::Tls);
        bench.assert_older_alone();
    }
}

#[tokio::test]
async fn a_certificate_that_expired_or_is_of_another_host_is_refused() {
    let authority = Authority::new("known");
    for identity in [authority.expired_server(), authority.server_for(&["elsewhere.test"])] {
        for lane in [Way::Http2.lane(), Way::Range.lane()] {
            let origin = Origin::builder().identity(&authority, identity.clone()).start();
            let bench = Bench::at(origin, lane, |_| {});
            bench.older();
            let error = bench.get().await.unwrap_err();
            assert_eq!(error.kind.class(), Class::Tls, "{error:?}");
            assert_eq!(error.attempts, 1);
            bench.assert_older_alone();
        }
    }
}

#[tokio::test]
async fn a_rate_limit_is_kept() {
    for way in WAYS {
        let bench = Bench::with(way, |settings| settings.rate_bytes_per_second = Some(1_000_000));
        let body = bytes(5, 1_000_000);
        bench.put(&body);
        let started = Instant::now();
        bench.get().await.unwrap();
        // A burst of a tenth of a second is free.
        assert!(started.elapsed() >= Duration::from_millis(700), "{way:?}");
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_rate_limit_slower_than_the_stall_rule_is_no_stall() {
    let bench = Bench::with(Way::Http1, |settings| {
        settings.rate_bytes_per_second = Some(20_000);
    });
    let body = bytes(6, SMALL);
    bench.put(&body);
    let receipt = bench.get().await.unwrap();
    assert_eq!(receipt.attempts, 1);
    bench.assert_whole(&body);
}
