//! `trunkline nbd` between an origin that misbehaves and a client that checks every byte.

use std::process::{Command, Output};

use bytes::Bytes;
use trunkline_testkit::{Fault, Origin, Resource, bytes};

/// Odd on purpose, and more than one fetch ahead.
const SIZE: usize = (3 << 20) + 511;

/// What came of copying an image.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// Every byte.
    Exact,
    /// Nothing was served at all; this is the reason.
    NotServed(String),
    /// The client was told of an error; this is the log.
    Error(String),
    /// Wrong bytes without an error: never.
    Wrong,
}

fn judges(programs: &[&str]) -> bool {
    programs.iter().all(|program| trunkline_testkit::judge::program(program).is_some())
}

fn nbd(arguments: &[&str], run: &str) -> Output {
    let mut command = Command::new("timeout");
    command.arg("60").arg(env!("CARGO_BIN_EXE_trunkline")).arg("nbd");
    for proxy in ["http_proxy", "https_proxy", "ALL_PROXY", "HTTPS_PROXY", "all_proxy"] {
        command.env_remove(proxy);
    }
    command.args(arguments).args(["--run", run]).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Serves `url` and has nbdcopy fetch it all.
fn copy(url: &str, expected: &Bytes) -> Came {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("copy");
    // The mark tells a failure of the client from one before it.
    let run = format!("echo client; nbdcopy \"$uri\" {}", target.display());
    let output = nbd(&["--timeout", "2", "--retry", "2", url], &run);
    let told = text(&output.stderr);
    if !text(&output.stdout).contains("client") {
        return Came::NotServed(told);
    }
    match output.status.success() {
        true if std::fs::read(&target).unwrap() == expected[..] => Came::Exact,
        true => Came::Wrong,
        false => Came::Error(told),
    }
}

/// An origin with an image, and the faults set by `script`.
fn with_faults(script: impl FnOnce(&Origin)) -> Came {
    let origin = Origin::http();
    let image = bytes(3, SIZE);
    origin.put("/image", Resource::new(image.clone()).etag("\"one\""));
    script(&origin);
    copy(&origin.url("/image"), &image)
}

/// As [`with_faults`] with one fault all the time.
fn always(fault: Fault) -> Came {
    with_faults(|origin| {
        origin.script("/image").always(fault);
    })
}

/// As [`with_faults`] with one fault once, after the image was opened.
fn once(fault: Fault) -> Came {
    with_faults(|origin| {
        origin.script("/image").pass(1).then(fault);
    })
}

fn assert_not_served(came: &Came, reason: &str) {
    let Came::NotServed(told) = came else { panic!("{came:?}") };
    assert!(told.contains(reason), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "one clear line: {told}");
}

fn assert_error(came: &Came, reason: &str) {
    let Came::Error(told) = came else { panic!("{came:?}") };
    assert!(told.contains(reason), "{told}");
}

#[test]
fn servers_that_are_only_odd_are_served_exactly() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    for fault in [
        Fault::None,
        Fault::HeadRefused(405),
        Fault::HeadRefused(403),
        Fault::HeadWithoutLength,
        Fault::NoAcceptRanges,
        Fault::RangeCap(64 << 10),
        Fault::CloseAfterResponse,
        Fault::Interim(2),
    ] {
        assert_eq!(always(fault.clone()), Came::Exact, "{fault:?}");
    }
}

#[test]
fn what_passes_by_itself_is_not_seen_by_the_client() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    for fault in [
        Fault::Status(500),
        Fault::Status(503),
        Fault::RetryAfter(429, 1),
        Fault::ResetBeforeHead,
        Fault::CutAfter(1000),
        Fault::ResetAfter(1000),
        Fault::StallAfter(1000),
        Fault::NeverAnswer,
    ] {
        assert_eq!(once(fault.clone()), Came::Exact, "{fault:?}");
    }
}

#[test]
fn servers_that_cannot_be_trusted_are_refused_at_the_start() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    assert_not_served(&always(Fault::IgnoreRange), "range");
    assert_not_served(&always(Fault::Gzip), "");
    assert_not_served(&always(Fault::IgnoreRange.and(Fault::Chunked)), "");
    assert_not_served(&always(Fault::Status(404)), "404");
}

#[test]
fn servers_that_turn_bad_give_errors_and_never_wrong_bytes() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    let after_opening = |fault: Fault| {
        with_faults(|origin| {
            origin.script("/image").pass(1).always(fault);
        })
    };
    for fault in [
        Fault::IgnoreRange,
        Fault::ContentRangeStart(512),
        Fault::NoContentRange,
        Fault::ContentRangeTotal(SIZE as u64 - 1),
        Fault::OtherEtag("\"two\"".to_owned()),
        Fault::ClaimGzip,
        Fault::Gzip,
        Fault::LengthTooShort(100),
        Fault::Status(416),
    ] {
        assert_error(&after_opening(fault.clone()), "");
        println!("{fault:?} is told as an error");
    }
}

#[test]
fn an_image_replaced_while_it_is_read_is_an_error() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    let came = with_faults(|origin| {
        origin.script("/image").pass(2).always(Fault::OtherEtag("\"two\"".to_owned()));
    });
    assert_error(&came, "changed");
}

#[test]
fn empty_images_and_redirects_are_served() {
    if !judges(&["nbdcopy", "nbdinfo"]) {
        return;
    }
    let origin = Origin::http();
    origin.put("/empty", Resource::new(Bytes::new()));
    let output = nbd(&[&origin.url("/empty")], "nbdinfo --size \"$uri\"");
    assert_eq!(text(&output.stdout).trim(), "0", "{}", text(&output.stderr));

    let image = bytes(4, SIZE);
    origin.put("/image", Resource::new(image.clone()).etag("\"one\""));
    origin.script("/moved").always(Fault::Redirect(302, "/image".to_owned()));
    assert_eq!(copy(&origin.url("/moved"), &image), Came::Exact);
    assert_eq!(origin.requests_to("/moved").len(), 1, "the redirect is resolved once");
}

#[test]
fn a_sequential_copy_is_few_requests_over_few_connections() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    let origin = Origin::http();
    let image = bytes(5, 24 << 20);
    origin.put("/image", Resource::new(image.clone()).etag("\"one\""));
    assert_eq!(copy(&origin.url("/image"), &image), Came::Exact);
    let counters = origin.counters();
    assert!(counters.requests <= 40, "{counters:?}");
    assert!(counters.connections_accepted <= 16, "{counters:?}");
}

#[test]
fn the_command_ends_as_what_it_ran() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::write(&image, [7; 4096]).unwrap();
    let image = image.to_str().unwrap();
    assert_eq!(nbd(&[image], "exit 0").status.code(), Some(0));
    assert_eq!(nbd(&[image], "exit 42").status.code(), Some(42));
    assert_eq!(nbd(&[image], "test -S \"$unixsocket\"").status.code(), Some(0));
    let output = nbd(&["-p", "0", "-e", "a b", image], "echo $uri $port $nbd");
    assert!(text(&output.stdout).starts_with("nbd://127.0.0.1:"), "{output:?}");
    assert!(text(&output.stdout).contains("/a%20b "), "{output:?}");
    assert_eq!(nbd(&["ftp://host/image"], "true").status.code(), Some(2));
    assert_eq!(nbd(&["/no/such/image"], "true").status.code(), Some(8));
    assert_eq!(nbd(&[image, "--offset", "1M"], "true").status.code(), Some(2));
}

#[test]
fn an_overlay_file_keeps_what_clients_wrote() {
    if !judges(&["qemu-io", "qemu-img"]) {
        return;
    }
    let origin = Origin::http();
    let image = bytes(6, 1 << 20);
    origin.put("/image", Resource::new(image.clone()).etag("\"one\""));
    let url = origin.url("/image");
    let folder = tempfile::tempdir().unwrap();
    let overlay = folder.path().join("overlay");
    let overlay = overlay.to_str().unwrap();
    let write = "qemu-io -f raw -c 'write -P 9 5000 70000' -c 'write -z 512k 64k' \
                 -c flush -c 'discard 900k 64k' \"$uri\" && qemu-io -f raw -c 'write -P 8 4096 512' \"$uri\"";
    let output = nbd(&["--overlay", overlay, &url], write);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let read = "qemu-io -r -f raw -c 'read -P 9 5000 70000' -c 'read -P 0 512k 64k' \
                -c 'read -P 8 4096 512' -c 'read -P 0 900k 64k' \"$uri\"";
    let output = nbd(&["--overlay", overlay, &url], read);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!text(&output.stdout).contains("verification failed"), "{}", text(&output.stdout));
    assert_eq!(origin.uploads().len(), 0);

    // Another version of the image is another base.
    origin.put("/image", Resource::new(image).etag("\"two\""));
    let output = nbd(&["--overlay", overlay, &url], "true");
    assert_eq!(output.status.code(), Some(8));
    assert!(text(&output.stderr).contains("was made over"), "{}", text(&output.stderr));
}

#[test]
fn a_cache_spares_the_origin_in_the_next_run() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    let origin = Origin::http();
    let image = bytes(8, SIZE);
    origin.put("/image", Resource::new(image.clone()).etag("\"one\""));
    let folder = tempfile::tempdir().unwrap();
    let cache = format!("{}:64M", folder.path().join("cache").display());
    for run in 0..2 {
        let before = origin.counters().requests;
        let copy = folder.path().join("copy");
        let command = format!("nbdcopy \"$uri\" {}", copy.display());
        let output = nbd(&["--cache", &cache, "--stats", &origin.url("/image")], &command);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(std::fs::read(&copy).unwrap() == image[..]);
        let asked = origin.counters().requests - before;
        // Opening asks once, so that a new version is noticed.
        assert!(run == 0 || asked == 1, "{asked} requests: {}", text(&output.stderr));
    }
    origin.put("/image", Resource::new(bytes(9, SIZE)).etag("\"two\""));
    let copy = folder.path().join("copy");
    let command = format!("nbdcopy \"$uri\" {}", copy.display());
    let output = nbd(&["--cache", &cache, &origin.url("/image")], &command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        std::fs::read(&copy).unwrap() == bytes(9, SIZE)[..],
        "another version is another image"
    );
}

#[test]
fn partitions_are_found_where_sfdisk_put_them() {
    if !judges(&["sfdisk", "nbdcopy"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let mut content = bytes(7, 32 << 20).to_vec();
    for (label, number, start, size) in
        [("gpt", 2, 16384, 4096), ("dos", 2, 16384, 4096), ("dos", 5, 28672, 8192)]
    {
        content[..1 << 20].fill(0);
        let end = content.len() - (1 << 20);
        content[end..].fill(0);
        std::fs::write(&image, &content).unwrap();
        let mut table = format!("label: {label}\nstart=2048, size=8192\nstart=16384, size=4096\n");
        if label == "dos" {
            table += "start=24576, size=20480, type=5\nstart=28672, size=8192\n";
        }
        let script =
            format!("printf '{}' | sfdisk -q {}", table.replace('\n', "\\n"), image.display());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        let disk = std::fs::read(&image).unwrap();
        let copy = folder.path().join("copy");
        let run = format!("nbdcopy \"$uri\" {}", copy.display());
        let output = nbd(&["--partition", &number.to_string(), image.to_str().unwrap()], &run);
        assert!(output.status.success(), "{label} {number}: {}", text(&output.stderr));
        let expected = &disk[start * 512..][..size * 512];
        assert!(std::fs::read(&copy).unwrap() == expected, "{label} {number}");
    }
    let output = nbd(&["--partition", "9", image.to_str().unwrap()], "true");
    assert!(text(&output.stderr).contains("no partition 9"), "{}", text(&output.stderr));
}
