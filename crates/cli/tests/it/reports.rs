use std::process::{Command, Stdio};

use trunkline_testkit::{Fault, Origin};

use crate::process::{Running, program};
use crate::scene::{Scene, fill, list};

#[test]
fn the_summary_says_what_was_done_and_what_failed() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    let text = list(&origin, 3) + &origin.url("/gone") + "\n";
    let ran = scene.get(&["-i", "-"]).input(text).fail(5);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(lines[0].starts_with(&format!("trunkline: {}: ", origin.url("/gone"))), "{lines:?}");
    assert!(lines[1].starts_with("trunkline: 3 done, 1 failed; 3.0 kB in "), "{lines:?}");
}

#[test]
fn one_file_needs_no_summary_and_quiet_needs_none_at_all() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    assert_eq!(scene.get(&[&origin.url("/f0")]).succeed().all_output(), "");
    let quiet = scene.get(&["-q", "-i", "-"]).input(list(&origin, 2)).succeed();
    assert_eq!(quiet.all_output(), "");
    let failed = scene.get(&["-q", &origin.url("/gone")]).fail(5);
    assert_eq!(failed.stderr.lines().count(), 1, "errors are told: {}", failed.stderr);
}

#[test]
fn stats_show_how_few_connections_there_were() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 10);
    let ca = scene.ca(&origin);
    let ran =
        scene.get(&["--stats", "-i", "-", "--cacert", &ca]).input(list(&origin, 10)).succeed();
    let line = format!(
        "{}: connections 1 (at most 1 at once), TLS handshakes 1 full and 0 resumed, \
         failed connects 0, requests 10, received ",
        origin.url("")
    );
    assert!(ran.stderr.contains(&line), "{}", ran.stderr);
    assert!(ran.stderr.contains("retries 0"), "{}", ran.stderr);
    let seen = origin.counters();
    assert_eq!((seen.connections_accepted, seen.handshakes_full, seen.requests), (1, 1, 10));
}

#[test]
fn retries_are_counted() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    origin.script("/f0").once(Fault::RetryAfter(503, 0));
    let ran = scene.get(&["--stats", "-i", "-"]).input(list(&origin, 2)).succeed();
    assert!(ran.stderr.contains("retries 1"), "{}", ran.stderr);
}

#[test]
fn a_pipe_gets_no_progress() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    let ran = scene.get(&["-i", "-"]).input(list(&origin, 3)).succeed();
    assert!(!ran.all_output().contains(['\r', '\u{1b}']), "{:?}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[test]
fn a_terminal_gets_progress() {
    let Some(program) = program("script") else { return };
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    scene.write("list", list(&origin, 3));
    let run = |flags: &str| {
        let line = format!("{} get -i list {flags}", env!("CARGO_BIN_EXE_trunkline"));
        let mut command = Command::new(&program);
        command.args(["-qec", &line, "/dev/null"]).current_dir(scene.path("."));
        command.env_clear().env("TERM", "xterm").env("PATH", "/usr/bin:/bin");
        command.env("SHELL", "/bin/sh").stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command, None).wait().expect(0).text()
    };
    let shown = run("");
    assert!(shown.contains('\u{1b}'), "no progress in {shown:?}");
    assert!(shown.contains("3 done"), "no summary in {shown:?}");
    for silent in ["--quiet", "--json"] {
        let shown = run(silent);
        assert!(!shown.contains('\u{1b}'), "progress in {shown:?}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let scene = Scene::new();
    let text = scene.get(&["--help"]).succeed().text();
    for part in [
        "trunkline get https://example.org/image.iso",
        "trunkline get -i list.txt -d packages --stats",
        "generate-urls | trunkline get -i - -d out --json",
        "--checksum sha256:",
        "Exit codes:",
        "130 interrupted",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let version = scene.get(&[]).fail(2);
    assert!(version.stderr.contains("Usage"), "{}", version.stderr);
}
