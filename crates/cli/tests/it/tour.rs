use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn tour(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.arg("tour").args(arguments);
    command
}

#[test]
fn an_interrupted_tour_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    // At this round trip the tour would take a quarter of a minute.
    let mut child = tour(&["--files", "100", "--size-kib", "1", "--rtt-ms", "500"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    // The heads of the columns come when the files are about to.
    while !line.contains("connections") || !line.contains("requests") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the tour ended early");
    }
    assert_eq!(temporary.path().read_dir().unwrap().count(), 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("Next:"), "{rest}");
}

#[test]
fn json_is_all_that_is_printed() {
    let temporary = tempfile::tempdir().unwrap();
    let output = tour(&["--files", "10", "--size-kib", "4", "--rtt-ms", "2", "--json"])
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["jobs"][0]["rows"][0]["connections"], 10);
    assert_eq!(object["jobs"][0]["rows"][1]["connections"], 1);
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
}

#[test]
fn nonsense_is_refused_by_name() {
    let output = tour(&["--files", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--files"));
}
