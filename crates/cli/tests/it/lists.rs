use std::fs;

use trunkline_testkit::{Origin, sha256_hex};

use crate::scene::{Scene, body, fill, list};

#[test]
fn our_own_form_names_destinations_and_checksums() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    let url = |number| origin.url(&format!("/f{number}"));
    let sum = sha256_hex(&body(2));
    let text =
        format!("# three\n\n{}\n{}\tsub/one\n{}\ttwo\tsha256:{sum}\n", url(0), url(1), url(2));
    scene.write("list", text);
    scene.get(&["-i", "list", "-d", "out"]).succeed();
    assert_eq!(scene.names("out"), ["f0", "sub", "two"]);
    assert_eq!(scene.read("out/f0"), body(0));
    assert_eq!(scene.read("out/sub/one"), body(1));
    assert_eq!(scene.read("out/two"), body(2));
}

#[test]
fn an_aria2_input_file_is_a_list() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    let gone = origin.url("/gone");
    let sum = sha256_hex(&body(1));
    let text = format!(
        "{gone}\t{}\n  out=zero\n  dir=sub\n{}\n  out=one\n  checksum=sha-256={sum}\n  header=X-A: b\n",
        origin.url("/f0"),
        origin.url("/f1"),
    );
    scene.write("list", text);
    scene.get(&["-i", "list"]).succeed();
    assert_eq!(scene.read("sub/zero"), body(0), "from the mirror");
    assert_eq!(scene.read("one"), body(1));
    assert_eq!(origin.requests_to("/f1")[0].head.header("x-a"), Some("b"));
    assert_eq!(origin.requests_to("/f0")[0].head.header("x-a"), None);
}

#[test]
fn a_curl_config_file_is_a_list() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    let url = |number| origin.url(&format!("/f{number}"));
    let text = format!(
        "# curl -K\nurl = \"{}\"\noutput = \"a \\\"b\\\"\"\n--url {}\n-o one\nurl={}\nremote-name\n",
        url(0),
        url(1),
        url(2)
    );
    scene.write("list", text);
    scene.get(&["-i", "list", "-d", "out"]).succeed();
    assert_eq!(scene.names("out"), ["a \"b\"", "f2", "one"]);
    assert_eq!(scene.read("out/a \"b\""), body(0));
    assert_eq!(scene.read("out/one"), body(1));
}

#[test]
fn a_list_comes_from_standard_input_beside_urls() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    let ran = scene.get(&["-i", "-", &origin.url("/f2")]).input(list(&origin, 2)).succeed();
    assert_eq!(scene.names("."), ["f0", "f1", "f2"]);
    assert!(ran.stderr.starts_with("trunkline: 3 done; 3.0 kB in "), "{}", ran.stderr);
}

#[test]
fn a_bad_line_stops_no_other_line() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    let text = format!(
        "{}\nnot a url\nftp://h/x\n{}\ta\tsha256:zz\n{}\n",
        origin.url("/f0"),
        origin.url("/f0"),
        origin.url("/f1")
    );
    let ran = scene.get(&["-i", "-"]).input(text).fail(2);
    assert_eq!(scene.names("."), ["f0", "f1"]);
    for told in ["line 2: ", "line 3: ", "line 4: ", "2 done, 3 failed"] {
        assert!(ran.stderr.contains(told), "{told} is not in {}", ran.stderr);
    }
}

#[test]
fn two_lines_for_one_destination_are_refused() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    let text = format!("{}\tsame\n{}\tsame\n", origin.url("/f0"), origin.url("/f1"));
    let ran = scene.get(&["-i", "-"]).input(text).fail(2);
    assert_eq!(scene.read("same"), body(0));
    assert!(ran.stderr.contains("destination of an earlier URL"), "{}", ran.stderr);
}

#[test]
fn a_list_that_is_not_there_is_told() {
    let scene = Scene::new();
    let ran = scene.get(&["-i", "nowhere"]).fail(2);
    assert!(ran.stderr.contains("cannot read the list `nowhere`"), "{}", ran.stderr);
}

#[test]
fn a_long_list_takes_less_than_100_mb() {
    // The benchmark runs five times as many; here a system call may be slow.
    const LINES: usize = 20_000;
    const MEMORY_KB_MAX: u64 = 100_000;
    let scene = Scene::new();
    let source = scene.write("source", "small\n");
    let lines: String =
        (0..LINES).map(|number| format!("file://{source}\t{}/{number}\n", number / 1000)).collect();
    scene.write("list", lines);
    let mut peak_kb = 0;
    let running = scene.get(&["-i", "list", "-d", "out"]).start();
    let ran = running.wait_looking(|id| peak_kb = peak_kb.max(memory_peak_kb(id).unwrap_or(0)));
    let ran = ran.expect(0);
    assert!(ran.stderr.contains("20000 done"), "{}", ran.stderr);
    assert_eq!(scene.names("out/7").len(), 1000);
    assert!(peak_kb > 0 && peak_kb < MEMORY_KB_MAX, "{peak_kb} kB");
}

/// The most memory that a process has held so far; `None` once it has ended.
fn memory_peak_kb(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
