use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use trunkline_testkit::{Fault, Origin};

use crate::scene::{Scene, body, exists, fill};

/// An address that refuses connections: bound, so that nobody else gets it, and not listening.
struct Refusing {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Refusing {
    fn new() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = getsockname(&socket).unwrap().try_into().unwrap();
        Self { address, _socket: socket }
    }

    fn url(&self) -> String {
        format!("http://{}/refused", self.address)
    }
}

#[test]
fn success_is_0() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    scene.get(&[&origin.url("/f0")]).fail(0);
}

#[test]
fn several_kinds_of_failure_are_1_and_stop_nothing_else() {
    let (origin, refusing, scene) = (Origin::http(), Refusing::new(), Scene::new());
    fill(&origin, 3);
    let urls = [
        origin.url("/f0"),
        "nonsense".to_owned(),
        origin.url("/f1"),
        origin.url("/gone"),
        refusing.url(),
        origin.url("/f2"),
    ];
    let ran = scene.get(&["--retry", "0"]).args(&urls).fail(1);
    assert_eq!(scene.names("."), ["f0", "f1", "f2"]);
    assert_eq!(scene.read("f2"), body(2));
    for told in ["`nonsense` is no URL", "404", "refused", "3 done, 3 failed"] {
        assert!(ran.stderr.contains(told), "{told} is not in {}", ran.stderr);
    }
}

#[test]
fn usage_is_2() {
    let scene = Scene::new();
    for wrong in [
        &[][..],
        &["--no-such-flag", "http://h/"],
        &["-o", "x", "http://h/a", "http://h/b"],
        &["-o", "x", "-d", "y", "http://h/a"],
        &["--checksum", "md5:900150983cd24fb0d6963f7d28e17f72", "http://h/a", "http://h/b"],
        &["-H", "no colon", "http://h/"],
        &["--resolve", "nonsense", "http://h/"],
        &["--timeout", "-1", "http://h/"],
        &["--max-connections", "0", "http://h/"],
        &["--json", "-o", "-", "http://h/"],
        &["no-scheme/file"],
        &["gopher://h/"],
    ] {
        let ran = scene.get(wrong).fail(2);
        assert!(!ran.stderr.is_empty(), "{wrong:?}");
        assert!(ran.stdout.is_empty(), "{wrong:?}");
    }
}

#[test]
fn a_refused_or_broken_connection_is_3() {
    let (origin, refusing, scene) = (Origin::http(), Refusing::new(), Scene::new());
    scene.get(&["--retry", "0", &refusing.url()]).fail(3);
    origin.script("*").always(Fault::CloseBeforeHead);
    scene.get(&["--retry", "0", &origin.url("/f0")]).fail(3);
}

#[test]
fn an_untrusted_certificate_is_4() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 1);
    let other = scene.write("other.pem", trunkline_testkit::Authority::new("other").pem());
    let ran = scene.get(&["--cacert", &other, "--retry", "0", &origin.url("/f0")]).fail(4);
    assert!(ran.stderr.contains("--cacert"), "it says what to do: {}", ran.stderr);
    assert!(!exists(&scene.path("f0")));
    scene.get(&["-k", &origin.url("/f0")]).succeed();
}

#[test]
fn an_error_status_is_5() {
    let (origin, scene) = (Origin::http(), Scene::new());
    scene.get(&[&origin.url("/gone")]).fail(5);
    assert_eq!(origin.counters().requests, 1, "404 is final at once");
    origin.script("/busy").always(Fault::Status(503));
    scene.get(&["--retry", "0", &origin.url("/busy")]).fail(5);
    origin.script("/loop").always(Fault::Redirect(302, "/loop".to_owned()));
    let ran = scene.get(&["--max-redirs", "3", &origin.url("/loop")]).fail(5);
    assert!(ran.stderr.contains("3 redirects"), "{}", ran.stderr);
}

#[test]
fn refused_credentials_are_6() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    origin.script("/f0").always(Fault::RequireAuthorization("Basic bWU6aHVzaA==".to_owned()));
    let ran = scene.get(&[&origin.url("/f0")]).fail(6);
    assert!(ran.stderr.contains("--user"), "it says what to do: {}", ran.stderr);
    scene.get(&["-u", "me:wrong", &origin.url("/f0")]).fail(6);
    scene.get(&["-u", "me:hush", &origin.url("/f0")]).succeed();
}

#[test]
fn wrong_bytes_are_7_and_are_not_kept() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    let wrong = "md5:900150983cd24fb0d6963f7d28e17f72";
    scene.get(&["--checksum", wrong, &origin.url("/f0")]).fail(7);
    origin.script("/f0").always(Fault::Gzip);
    scene.get(&[&origin.url("/f0")]).fail(7);
    assert!(scene.names(".").is_empty());
}

#[test]
fn a_folder_or_file_that_cannot_be_written_is_8() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    scene.write("file", "");
    std::fs::create_dir(scene.path("f1")).unwrap();
    let (url, other) = (origin.url("/f0"), origin.url("/f1"));
    scene.get(&["-d", "file", &url]).fail(8);
    scene.get(&["-o", "file/below", &url]).fail(8);
    let ran = scene.get(&[&url, &other]).fail(8);
    assert!(ran.stderr.contains("cannot write `f1`"), "{}", ran.stderr);
    assert_eq!(scene.read("f0"), body(0), "the other file is there");
    // /proc takes no new files, not even root's.
    if exists(std::path::Path::new("/proc/self")) {
        scene.get(&["-d", "/proc/self", &url]).fail(8);
    }
}

#[test]
fn a_time_out_is_9() {
    let (origin, scene) = (Origin::http(), Scene::new());
    origin.script("*").always(Fault::NeverAnswer);
    let ran = scene.get(&["--max-time", "0.3", &origin.url("/f0")]).fail(9);
    assert!(ran.stderr.contains("not done within 300ms"), "{}", ran.stderr);
    let ran = scene.get(&["--timeout", "0.3", "--retry", "0", &origin.url("/f0")]).fail(9);
    assert!(ran.stderr.contains("nothing came for 300ms"), "{}", ran.stderr);
}
