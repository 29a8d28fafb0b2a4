use crate::client::Raw;
use std::time::{Duration, Instant};
use trunkline_testkit::{Origin, Resource, bytes};

#[test]
fn each_request_costs_a_round_trip_and_a_new_connection_one_more() {
    let rtt = Duration::from_millis(60);
    let origin = Origin::builder().rtt(rtt).start();
    origin.put("/f", Resource::new("file"));
    let started = Instant::now();
    let mut raw = Raw::connect(&origin);
    raw.get("/f").unwrap();
    assert!(started.elapsed() >= 2 * rtt);
    let started = Instant::now();
    raw.get("/f").unwrap();
    assert!(started.elapsed() >= rtt);
}

#[test]
fn requests_under_way_together_share_the_round_trip() {
    let rtt = Duration::from_millis(400);
    let origin = Origin::builder().rtt(rtt).start();
    origin.put("/f", Resource::new("file"));
    let mut raw = Raw::connect(&origin);
    raw.get("/f").unwrap();
    let started = Instant::now();
    raw.send(&"GET /f HTTP/1.1\r\nhost: x\r\n\r\n".repeat(5));
    for _ in 0..5 {
        assert_eq!(raw.response(false).unwrap().body, b"file");
    }
    assert!(started.elapsed() < 2 * rtt);
}

#[test]
fn bandwidth_bounds_the_time_from_below() {
    let origin = Origin::builder().bytes_per_second(200_000).start();
    let body = bytes(4, 50_000);
    origin.put("/f", Resource::new(body.clone()));
    let started = Instant::now();
    assert_eq!(Raw::connect(&origin).get("/f").unwrap().body, body);
    assert!(started.elapsed() >= Duration::from_millis(200));
}
