use std::fs;
use std::os::unix::fs::FileTypeExt as _;

use trunkline_testkit::{Fault, Origin, Resource, bytes, sha256_hex};

use crate::scene::{Scene, body, exists, fill, list};

#[test]
fn urls_become_files_named_like_them() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    origin.put("/dir/", Resource::new("index"));
    origin.put("/with%20blank", Resource::new("blank"));
    let urls = ["/f0", "/f1?query=1", "/dir/", "/with%20blank"].map(|path| origin.url(path));
    scene.get(&urls.each_ref().map(String::as_str)).succeed();
    assert_eq!(scene.names("."), ["f0", "f1", "index.html", "with blank"]);
    assert_eq!(scene.read("f1"), body(1));
}

#[test]
fn the_folder_is_made() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    scene.get(&["-d", "a/b", &origin.url("/f0")]).succeed();
    assert_eq!(scene.read("a/b/f0"), body(0));
    scene.get(&["-o", "c/d/e", &origin.url("/f0")]).succeed();
    assert_eq!(scene.read("c/d/e"), body(0));
}

#[test]
fn standard_output_gets_the_exact_bytes() {
    let (origin, scene) = (Origin::http(), Scene::new());
    let large = bytes(7, 3 << 20);
    origin.put("/large", Resource::new(large.clone()));
    let sum = format!("sha256:{}", sha256_hex(&large));
    let ran = scene.get(&["-o", "-", "--checksum", &sum, &origin.url("/large")]).succeed();
    assert!(ran.stdout == large, "{} bytes", ran.stdout.len());
    assert_eq!(ran.stderr, "");
    assert!(scene.names(".").is_empty());
}

#[test]
fn standard_output_that_is_a_file_is_written_into() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    let path = scene.write("log", "before\n");
    let append = fs::OpenOptions::new().append(true).open(path).unwrap();
    scene.get(&["-o", "-", &origin.url("/f0")]).stdout(append).succeed();
    assert_eq!(scene.read("log"), [b"before\n", &body(0)[..]].concat());
    assert_eq!(scene.names("."), ["log"]);
}

#[test]
fn a_device_stays_a_device() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    scene.get(&["-o", "/dev/null", &origin.url("/f0")]).succeed();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn what_is_complete_is_not_fetched_again() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 4);
    scene.get(&["-i", "-", "--continue"]).input(list(&origin, 2)).succeed();
    let (requests, sent) = (origin.counters().requests, origin.counters().body_bytes_sent);
    let sum = |number| format!("\tf{number}\tsha256:{}\n", sha256_hex(&body(number)));
    let text = format!(
        "{}{}{}{}\n{}\n",
        origin.url("/f0"),
        sum(0),
        list(&origin, 4)
            .lines()
            .skip(1)
            .take(1)
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
        origin.url("/f2"),
        origin.url("/f3")
    );
    let ran = scene.get(&["-i", "-", "--continue"]).input(text).succeed();
    assert!(ran.stderr.contains("4 done (2 were complete before)"), "{}", ran.stderr);
    // By its checksum without a request, by its date with HEAD, two others in full.
    assert_eq!(origin.counters().requests - requests, 3);
    let fetched = (body(2).len() + body(3).len()) as u64;
    assert_eq!(origin.counters().body_bytes_sent - sent, fetched);
}

#[test]
fn what_is_not_complete_is_replaced() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    scene.write("f0", "something older");
    scene.write("f1", bytes(99, body(1).len()));
    let sum = sha256_hex(&body(1));
    let text = format!("{}\n{}\tf1\tsha256:{sum}\n", origin.url("/f0"), origin.url("/f1"));
    scene.get(&["-i", "-", "--continue"]).input(text).succeed();
    assert_eq!((scene.read("f0"), scene.read("f1")), (body(0).to_vec(), body(1).to_vec()));
}

#[test]
fn a_wrong_checksum_keeps_the_older_file() {
    let (origin, scene) = (Origin::http(), Scene::new());
    for (path, len) in [("/small", 1000), ("/middle", 3 << 20)] {
        origin.put(path, Resource::new(bytes(1, len)));
        scene.write(&path[1..], "older");
        let right = format!("sha256:{}", sha256_hex(&bytes(1, len)));
        let wrong = format!("sha256:{}", sha256_hex(b"other"));
        let ran = scene.get(&["--checksum", &wrong, &origin.url(path)]).fail(7);
        assert!(ran.stderr.contains(&wrong) && ran.stderr.contains(&right), "{}", ran.stderr);
        assert_eq!(scene.read(&path[1..]), b"older");
        scene.get(&["--checksum", &right, &origin.url(path)]).succeed();
        assert_eq!(scene.read(&path[1..]), bytes(1, len));
    }
    assert_eq!(scene.names("."), ["middle", "small"]);
}

#[test]
fn every_kind_of_checksum_is_known() {
    let (origin, scene) = (Origin::http(), Scene::new());
    origin.put("/abc", Resource::new("abc"));
    for sum in [
        "md5:900150983cd24fb0d6963f7d28e17f72",
        "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ] {
        scene.get(&["--checksum", sum, &origin.url("/abc")]).succeed();
    }
    scene.get(&["--checksum", "md5:nothex", &origin.url("/abc")]).fail(2);
}

#[test]
fn a_failed_answer_leaves_the_older_file() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    scene.write("f0", "older");
    origin.script("/f0").always(Fault::CutAfter(500));
    scene.get(&["--retry", "0", &origin.url("/f0")]).fail(3);
    assert_eq!(scene.read("f0"), b"older");
    assert_eq!(scene.names("."), ["f0"]);
}

#[test]
fn a_file_url_may_have_blanks_or_percent_20() {
    let scene = Scene::new();
    let source = scene.write("with blank/the file", "local");
    let raw = format!("file://{source}");
    let encoded = raw.replace(' ', "%20");
    for (url, to) in [(&raw, "one"), (&encoded, "two")] {
        scene.get(&["-o", to, url]).succeed();
        assert_eq!(scene.read(to), b"local");
    }
    scene.get(&["-i", "-", "-d", "out"]).input(raw).succeed();
    assert_eq!(scene.read("out/the file"), b"local");
    let ran = scene.get(&["-o", "three", "file:///no/such/file"]).fail(8);
    assert!(ran.stderr.contains("/no/such/file"), "{}", ran.stderr);
    assert!(!exists(&scene.path("three")));
}

#[test]
fn a_link_is_followed_and_stays() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    scene.write("real", "older");
    std::os::unix::fs::symlink("real", scene.path("f0")).unwrap();
    scene.get(&[&origin.url("/f0")]).succeed();
    assert!(fs::symlink_metadata(scene.path("f0")).unwrap().is_symlink());
    assert_eq!(scene.read("real"), body(0));
}

#[test]
fn a_web_page_in_place_of_a_file_can_be_refused() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    origin.script("/f0").always(Fault::HtmlPage);
    scene.get(&["--refuse-html", &origin.url("/f0")]).fail(7);
    assert!(scene.names(".").is_empty());
    scene.get(&[&origin.url("/f0")]).succeed();
}
