//! HTTP/2 that breaks.

use trunkline_pool::{HTTP2_STRIKES_MAX, Limits, Pool};
use trunkline_testkit::{ConnectionFault, Fault, Origin, StreamReset};
use trunkline_transport::Error;
use trunkline_transport::settings::HttpVersion;

use crate::site::{Failure, Site, limits};

#[tokio::test]
async fn an_origin_that_breaks_http2_repeatedly_is_spoken_to_in_http1() {
    let origin = Origin::https();
    let _ = origin.connections().always(ConnectionFault::GarbageH2);
    let site = Site::new(&Pool::new(limits(1)), &origin);
    for _ in 0..HTTP2_STRIKES_MAX {
        let error = site.get("/small").await.unwrap_err().exchange();
        assert!(matches!(error, Error::BrokenHttp2 { .. } | Error::Unsent), "{error:?}");
    }
    site.get_again("/small").await.unwrap();
    site.get_all(10, "/small").await;
    assert_eq!(origin.requests().last().unwrap().head.protocol, "HTTP/1.1");
}

#[tokio::test]
async fn one_broken_connection_is_one_strike_however_many_streams_it_had() {
    let origin = Origin::https();
    let _ = origin.connections().once(ConnectionFault::GarbageH2);
    let site = Site::new(&Pool::new(limits(1)), &origin);
    site.get_all(16, "/small").await;
    assert!(origin.requests().iter().all(|request| request.head.protocol == "HTTP/2"));
}

#[tokio::test]
async fn http2_asked_for_by_the_caller_is_not_given_up() {
    let origin = Origin::https();
    let _ = origin.connections().times(5, ConnectionFault::GarbageH2);
    let site = Site::of(&Pool::new(limits(1)), &origin, HttpVersion::Http2);
    site.get_again("/small").await.unwrap();
    assert_eq!(origin.requests().last().unwrap().head.protocol, "HTTP/2");
}

#[tokio::test]
async fn a_cancelled_stream_is_no_strike() {
    let origin = Origin::https();
    let site = Site::new(&Pool::new(limits(1)), &origin);
    let _ = origin.script("/small").times(10, Fault::ResetStream(StreamReset::Cancel));
    for _ in 0..10 {
        let error = site.get("/small").await.unwrap_err().exchange();
        assert!(matches!(error, Error::StreamReset { .. }), "{error:?}");
    }
    site.get("/small").await.unwrap();
    assert_eq!(origin.counters().connections_accepted, 1);
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_fails_at_once() {
    let origin = Origin::https();
    let other = Origin::https();
    let all = Pool::new(Limits::default());
    let settings = || Ok::<_, Error>(crate::site::settings(&other, HttpVersion::Auto));
    let pool = all.origin(&crate::site::origin_of(&origin.url("/")), settings).unwrap();
    let Err(error) = pool.lease().await.map_err(Failure::Lease) else { panic!("a lease") };
    assert!(format!("{error:?}").contains("Certificate"), "{error:?}");
    assert!(pool.stats().dials_failed >= 1);
}
