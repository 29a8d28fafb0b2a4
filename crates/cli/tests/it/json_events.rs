use serde_json::Value;
use trunkline_testkit::{Fault, Origin};

use crate::process::Ran;
use crate::scene::{Scene, fill};

fn events(ran: &Ran) -> Vec<Value> {
    ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// The names of an object's fields.
fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn each_event_has_the_promised_fields() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    origin.script("/f1").once(Fault::Status(503));
    let urls = [origin.url("/f0"), origin.url("/f1"), origin.url("/gone"), "nonsense".to_owned()];
    let events = events(&scene.get(&["--json"]).args(&urls).fail(1));
    let first = |kind| *of_kind(&events, kind).first().unwrap_or_else(|| panic!("no {kind}"));
    let promised = [
        ("started", &["destination", "event", "id", "url"][..]),
        ("head", &["event", "id", "length", "resumed_from"]),
        ("retrying", &["attempt", "event", "id", "pause_seconds", "reason"]),
        ("done", &["attempts", "bytes", "bytes_received", "event", "id", "seconds", "unchanged"]),
        ("failed", &["attempts", "class", "event", "id", "message", "status", "url"]),
        ("problem", &["event", "message"]),
    ];
    for (kind, names) in promised {
        assert_eq!(fields(first(kind)), names, "{kind}");
    }
    assert_eq!(of_kind(&events, "started").len(), 3);
    assert_eq!(of_kind(&events, "done").len(), 2);
    let failed = first("failed");
    assert_eq!((&failed["class"], &failed["status"]), (&"status".into(), &404.into()));
    assert_eq!(failed["url"], origin.url("/gone"));
    let retried = of_kind(&events, "done").into_iter().find(|done| done["attempts"] == 2);
    assert_eq!(retried.unwrap()["id"], 1);
}

#[test]
fn the_last_line_is_the_summary() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 5);
    let ca = scene.ca(&origin);
    let urls: Vec<_> = (0..5).map(|number| origin.url(&format!("/f{number}"))).collect();
    let ran = scene.get(&["--json", "--cacert", &ca]).args(&urls).succeed();
    assert_eq!(ran.stderr, "");
    let events = events(&ran);
    let summary = events.last().unwrap();
    let names = [
        "bytes_received",
        "cancelled",
        "counters",
        "done",
        "event",
        "exit_code",
        "failed",
        "origins",
        "retries",
        "seconds",
        "unchanged",
    ];
    assert_eq!(fields(summary), names);
    let names = [
        "bytes_received",
        "bytes_sent",
        "connections",
        "connections_peak",
        "dials_failed",
        "handshakes_full",
        "handshakes_resumed",
        "requests",
    ];
    assert_eq!(fields(&summary["counters"]), names);
    assert_eq!((&summary["done"], &summary["exit_code"]), (&5.into(), &0.into()));
    let counters = &summary["counters"];
    let seen = origin.counters();
    assert_eq!(counters["connections"], seen.connections_accepted);
    assert_eq!(counters["handshakes_full"], seen.handshakes_full);
    assert_eq!(counters["requests"], seen.requests);
    assert_eq!(summary["origins"][0]["origin"], origin.url(""));
    assert_eq!(&summary["origins"][0]["counters"], counters);
}

#[test]
fn the_summary_tells_the_exit_code() {
    let (origin, scene) = (Origin::http(), Scene::new());
    let ran = scene.get(&["--json", &origin.url("/gone")]).fail(5);
    let events = events(&ran);
    assert_eq!(events.last().unwrap()["exit_code"], 5);
}

#[test]
fn json_on_standard_output_and_a_file_there_exclude_each_other() {
    let scene = Scene::new();
    let ran = scene.get(&["--json", "-o", "-", "http://127.0.0.1:1/"]).fail(2);
    assert!(ran.stderr.contains("--json"), "{}", ran.stderr);
}
