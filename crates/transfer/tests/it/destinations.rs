//! What is on disk, whatever happened.

use std::fs;
use std::io::Read as _;
use std::process::Command;

use trunkline_testkit::{Fault, Gate, Resource, bytes, temp_dir};
use trunkline_transfer::{ErrorKind, Job};

use crate::bench::{Bench, WAYS, Way, sha256};

const BODY: usize = 3_000_000;

#[tokio::test]
async fn of_two_transfers_to_one_destination_the_second_is_told_so() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(1, BODY);
        bench.put(&body);
        bench.origin.put("/other", Resource::new(bytes(2, BODY)));
        let gate = Gate::new();
        let _ = bench.origin.script("/file").always(Fault::HoldAfter(1_000_000, gate.clone()));
        let second = async {
            while !bench.names().iter().any(|name| name.ends_with("-part")) {
                tokio::task::yield_now().await;
            }
            let result = bench.run(&bench.job("/other")).await;
            gate.open();
            assert_kind!(result, ErrorKind::Busy { path } if *path == bench.destination());
        };
        let (first, ()) = tokio::join!(bench.get(), second);
        first.unwrap();
        bench.assert_whole(&body);
    }
}

#[tokio::test]
async fn a_folder_is_no_destination() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.put(&bytes(3, 100));
        fs::create_dir(bench.destination()).unwrap();
        assert_kind!(bench.get().await, ErrorKind::File { .. });
        assert!(bench.destination().is_dir());
        // Small files are not looked for beforehand, so the file may have been asked for.
        assert_eq!(bench.names(), ["out"], "{way:?}: nothing is left beside it");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_a_file_error_without_retries() {
    for length in [100, BODY] {
        let bench = Bench::new(Way::Http1);
        bench.put(&bytes(4, length));
        let job = Job::new(bench.url("/file"), bench.folder().join("missing/out"));
        let error = assert_kind!(bench.run(&job).await, ErrorKind::File { .. });
        assert_eq!(error.attempts, 1);
        assert!(bench.names().is_empty());
    }
}

#[tokio::test]
async fn a_device_takes_the_bytes_and_stays_a_device() {
    for way in WAYS {
        for length in [100, BODY] {
            let bench = Bench::new(way);
            let body = bytes(5, length);
            bench.put(&body);
            let mut job = Job::new(bench.url("/file"), "/dev/null".into());
            job.lane = way.lane();
            job.check = Some(sha256(&body));
            let receipt = bench.run(&job).await.unwrap();
            assert_eq!(receipt.bytes, length as u64);
            job.check = Some(sha256(b"other"));
            assert_kind!(bench.run(&job).await, ErrorKind::Checksum { .. });
        }
    }
}

#[tokio::test]
async fn a_full_device_is_a_file_error() {
    let bench = Bench::new(Way::Http1);
    bench.put(&bytes(6, BODY));
    let job = Job::new(bench.url("/file"), "/dev/full".into());
    assert_kind!(bench.run(&job).await, ErrorKind::File { .. });
}

#[tokio::test]
async fn a_pipe_takes_the_bytes_in_order_also_over_a_cut() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(7, BODY);
        bench.put(&body);
        let _ = bench.origin.script("/file").once(Fault::CutAfter(1_000_000));
        let pipe = bench.destination();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            fs::File::open(pipe).unwrap().read_to_end(&mut got).unwrap();
            got
        });
        bench.get().await.unwrap();
        assert!(reader.join().unwrap() == body, "{way:?}");
        assert_eq!(bench.names(), ["out"]);
    }
}

/// A file system of one megabyte, gone when dropped.
struct Tiny {
    folder: tempfile::TempDir,
}

impl Tiny {
    fn mount() -> Option<Self> {
        let folder = temp_dir();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(folder.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self { folder })
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_a_file_error_and_the_older_file_stays() {
    let Some(tiny) = Tiny::mount() else {
        eprintln!("SKIPPED: a tmpfs cannot be mounted here");
        return;
    };
    for way in WAYS {
        for length in [BODY, 40 << 20] {
            let bench = Bench::new(way);
            bench.put(&bytes(8, length));
            let destination = tiny.folder.path().join("out");
            fs::write(&destination, b"older").unwrap();
            let mut job = bench.job("/file");
            job.destination = destination.clone();
            let error = assert_kind!(bench.run(&job).await, ErrorKind::File { .. });
            assert_eq!(error.attempts, 1, "{way:?}");
            assert_eq!(fs::read(&destination).unwrap(), b"older");
            for entry in fs::read_dir(tiny.folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }
    let bench = Bench::new(Way::Http1);
    bench.put(&bytes(9, 60_000));
    let filled = fs::write(tiny.folder.path().join("filler"), vec![1; (1 << 20) - 20_000]);
    let mut job = bench.job("/file");
    job.destination = tiny.folder.path().join("out");
    let failed = bench.run(&job).await;
    if filled.is_ok() {
        assert_kind!(failed, ErrorKind::File { .. });
    }
    assert!(!job.destination.exists());
}

#[tokio::test]
async fn a_link_stays_a_link_and_its_file_is_replaced() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(10, 1_000);
    bench.put(&body);
    let real = bench.folder().join("real");
    fs::write(&real, b"old").unwrap();
    std::os::unix::fs::symlink(&real, bench.destination()).unwrap();
    bench.get().await.unwrap();
    assert!(fs::symlink_metadata(bench.destination()).unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), body);
}
