use std::fs;

use bytes::Bytes;
use rustix::process::Signal;
use trunkline_testkit::{Fault, Gate, Origin, Resource, bytes, sha256_hex};

use crate::process::Running;
use crate::scene::{Scene, exists, fill};

/// Streamed to a partial file.
const MIDDLE: usize = 8 << 20;
/// Fetched in chunks.
const LARGE: usize = 40 << 20;

/// An origin that sends the first half of `/f` and holds the rest of the first answer back.
fn half(len: usize) -> (Origin, Bytes) {
    let (origin, body) = (Origin::http(), bytes(5, len));
    origin.put("/f", Resource::new(body.clone()));
    let _ = origin.script("/f").once(Fault::HoldAfter(len as u64 / 2, Gate::new()));
    (origin, body)
}

/// Waits until the partial file of `f` has a good part of what was sent.
fn watch_partial(scene: &Scene, running: &mut Running) {
    let path = scene.path(".f.trunkline-part");
    running.watch("the partial file", || {
        fs::metadata(&path).ok().filter(|partial| partial.len() > MIDDLE as u64 / 4)
    });
}

/// Runs again: the rest comes by a range, and the bytes are right.
fn go_on(scene: &Scene, origin: &Origin, body: &Bytes) {
    let before = origin.counters().body_bytes_sent;
    let sum = format!("sha256:{}", sha256_hex(body));
    scene.get(&["--checksum", &sum, &origin.url("/f")]).succeed();
    assert!(scene.read("f") == *body);
    assert_eq!(scene.names("."), ["f"], "nothing is left beside the file");
    let again = origin.requests_to("/f").last().unwrap().head.clone();
    let range = again.header("range").expect("only the rest is asked for");
    assert!(range.starts_with("bytes=") && !range.starts_with("bytes=0-"), "{range}");
    assert!(again.header("if-range").is_some());
    let sent = origin.counters().body_bytes_sent - before;
    assert!(sent < body.len() as u64, "{sent} bytes once more");
}

#[test]
fn ctrl_c_leaves_no_half_file_and_the_next_run_goes_on() {
    let ((origin, body), scene) = (half(MIDDLE), Scene::new());
    let mut running = scene.get(&[&origin.url("/f")]).start();
    watch_partial(&scene, &mut running);
    running.signal(Signal::INT);
    let ran = running.wait().expect(130);
    assert!(ran.stderr.contains("run the same command again"), "{}", ran.stderr);
    assert_eq!(scene.names("."), [".f.trunkline-part", ".f.trunkline-state"]);
    go_on(&scene, &origin, &body);
}

#[test]
fn ctrl_c_keeps_the_older_file() {
    let ((origin, body), scene) = (half(MIDDLE), Scene::new());
    scene.write("f", "older");
    let mut running = scene.get(&[&origin.url("/f")]).start();
    watch_partial(&scene, &mut running);
    running.signal(Signal::INT);
    running.wait().expect(130);
    assert_eq!(scene.read("f"), b"older");
    go_on(&scene, &origin, &body);
}

#[test]
fn sigterm_is_143() {
    let ((origin, body), scene) = (half(MIDDLE), Scene::new());
    let mut running = scene.get(&["--json", &origin.url("/f")]).start();
    watch_partial(&scene, &mut running);
    running.signal(Signal::TERM);
    let ran = running.wait().expect(143);
    let text = ran.text();
    let summary: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["exit_code"], &summary["cancelled"]), (&143.into(), &1.into()));
    assert!(!exists(&scene.path("f")));
    go_on(&scene, &origin, &body);
}

#[test]
fn kill_9_leaves_no_half_file_and_the_next_run_goes_on() {
    let ((origin, body), scene) = (half(MIDDLE), Scene::new());
    let mut running = scene.get(&[&origin.url("/f")]).start();
    watch_partial(&scene, &mut running);
    running.signal(Signal::KILL);
    running.wait().expect(137);
    assert!(!exists(&scene.path("f")));
    go_on(&scene, &origin, &body);
}

#[test]
fn one_of_many_goes_on_too() {
    let ((origin, body), scene) = (half(MIDDLE), Scene::new());
    fill(&origin, 2);
    let urls = ["/f0", "/f", "/f1"].map(|path| origin.url(path));
    let mut running = scene.get(&[]).args(&urls).start();
    watch_partial(&scene, &mut running);
    let others = || exists(&scene.path("f0")) && exists(&scene.path("f1"));
    running.watch("the other files", || others().then_some(()));
    running.signal(Signal::INT);
    let ran = running.wait().expect(130);
    assert!(ran.stderr.contains(" stopped; "), "{}", ran.stderr);
    let (requests, sent) = (origin.counters().requests, origin.counters().body_bytes_sent);
    scene.get(&["--continue"]).args(&urls).succeed();
    assert!(scene.read("f") == body);
    assert_eq!(scene.names("."), ["f", "f0", "f1"]);
    // Two looks at complete files, and the rest of the third.
    assert_eq!(origin.counters().requests - requests, 3);
    assert!(origin.counters().body_bytes_sent - sent < MIDDLE as u64);
}

/// Runs until a large file's state on disk shows progress, and stops it by a signal.
fn stop_large(signal: Signal, code: i32) {
    let origin = Origin::builder().bytes_per_second(12 << 20).start();
    let (scene, body) = (Scene::new(), bytes(6, LARGE));
    origin.put("/f", Resource::new(body.clone()));
    let mut running = scene.get(&[&origin.url("/f")]).start();
    let state = scene.path(".f.trunkline-state");
    running.watch("saved progress", || {
        fs::read_to_string(&state).ok().filter(|state| state.contains("\"done\":[["))
    });
    running.signal(signal);
    running.wait().expect(code);
    assert!(!exists(&scene.path("f")));
    go_on(&scene, &origin, &body);
}

#[test]
fn a_large_file_goes_on_after_ctrl_c() {
    stop_large(Signal::INT, 130);
}

#[test]
fn a_large_file_goes_on_after_kill_9() {
    stop_large(Signal::KILL, 137);
}

#[test]
fn a_file_that_changed_meanwhile_is_begun_anew() {
    let ((origin, _), scene) = (half(MIDDLE), Scene::new());
    let mut running = scene.get(&[&origin.url("/f")]).start();
    watch_partial(&scene, &mut running);
    running.signal(Signal::INT);
    running.wait().expect(130);
    let newer = bytes(77, MIDDLE);
    origin.put("/f", Resource::new(newer.clone()));
    scene.get(&[&origin.url("/f")]).succeed();
    assert!(scene.read("f") == newer);
    assert_eq!(scene.names("."), ["f"]);
}

#[test]
fn ctrl_c_is_heard_while_a_list_is_awaited() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    // A pipe that stays open gives one line and then nothing.
    let (reader, writer) = std::io::pipe().unwrap();
    use std::io::Write as _;
    writeln!(&writer, "{}\n{}", origin.url("/f0"), origin.url("/f0?again")).unwrap();
    let mut running = scene.get(&["-i", "-"]).stdin(reader).start();
    running.watch("the first file", || exists(&scene.path("f0")).then_some(()));
    running.signal(Signal::INT);
    running.wait().expect(130);
    drop(writer);
}
