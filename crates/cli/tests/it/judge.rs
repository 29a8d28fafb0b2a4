use std::collections::BTreeSet;

use rustix::process::Signal;
use trunkline_testkit::{bytes, sha256_hex};

use crate::nginx::Nginx;
use crate::scene::Scene;

#[test]
fn nginx_counts_at_most_six_connections_for_150_files() {
    let Some(nginx) = Nginx::start() else { return };
    let scene = Scene::new();
    let ca = scene.write("ca.pem", nginx.ca_pem());
    let body = |number: u64| bytes(number, 20_000 + number as usize);
    let lines: String = (0..150)
        .map(|number| {
            let sum = sha256_hex(&body(number));
            format!(
                "{}\tf{number}\tsha256:{sum}\n",
                nginx.put(&format!("f{number}"), &body(number))
            )
        })
        .collect();
    scene.get(&["-i", "-", "-d", "out", "--cacert", &ca]).input(lines).succeed();
    assert_eq!(scene.names("out").len(), 150);
    let log = nginx.log();
    let connections: BTreeSet<_> = log.iter().map(|line| &line[0]).collect();
    assert!((1..=6).contains(&connections.len()), "{} connections", connections.len());
    assert_eq!(log.len(), 150, "nothing is asked for twice");
    assert!(log.iter().all(|line| line[1] == "HTTP/2.0" && line[2] == "200"));
}

#[test]
fn nginx_sends_only_the_rest_after_a_stop() {
    let Some(nginx) = Nginx::start() else { return };
    let scene = Scene::new();
    let ca = scene.write("ca.pem", nginx.ca_pem());
    for (name, len) in [("middle", 12 << 20), ("large", 40 << 20)] {
        let body = bytes(3, len);
        let url = nginx.put(&format!("slow/{name}"), &body);
        let state = scene.path(&format!(".{name}.trunkline-state"));
        let partial = scene.path(&format!(".{name}.trunkline-part"));
        let mut running = scene.get(&["--cacert", &ca, &url]).start();
        running.watch("progress on disk", || {
            let state = std::fs::read_to_string(&state).ok()?;
            let written = std::fs::metadata(&partial).ok()?.len();
            let streamed = state.contains("\"done\":null") && written > 1 << 20;
            (streamed || state.contains("\"done\":[[")).then_some(())
        });
        running.signal(Signal::INT);
        running.wait().expect(130);
        let fast = nginx.put(name, &body);
        assert_ne!(fast, url, "another URL is another file");
        scene.get(&["--cacert", &ca, &url]).succeed();
        assert!(scene.read(name) == body);
        let log = nginx.log();
        let last = log.iter().rev().find(|line| line[2] == "206").expect("a range was asked for");
        assert!(last[3].parse::<usize>().unwrap() < len, "{last:?}");
    }
}
