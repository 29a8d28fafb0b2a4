//! libnbd, qemu, nbdkit and fio against a served file.

use std::fs;
use std::sync::Arc;

use trunkline_nbd::FileExport;
use trunkline_proto::nbd::{Policy, TlsMode};

use crate::fixture::{LIBNBD_PYTHON, Served, identity, image, judges, run};

fn served() -> Served {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    image(&path);
    Served::new(directory, Arc::new(FileExport::open(&path).unwrap()))
}

#[test]
fn nbdinfo_describes_and_lists_the_export() {
    if !judges(&["nbdinfo"]) {
        return;
    }
    let served = served();
    let text = served.run("nbdinfo", &[&served.uri()]);
    for expected in [
        "export-size: 9437695",
        "is_read_only: true",
        "can_multi_conn: true",
        "can_df: true",
        "can_cache: true",
        "base:allocation",
        "block_size_minimum: 1",
        "block_size_maximum: 33554432",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
    let list = format!("nbd+unix:///?socket={}", served.socket().display());
    let text = served.run("nbdinfo", &["--list", &list]);
    assert!(text.contains("export=\"disk\"") && text.contains("an image for tests"), "{text}");
    let map = served.run("nbdinfo", &["--map", &served.uri()]);
    let kinds: Vec<_> = map.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(kinds, ["0", "3", "0"], "{map}");
    let unknown = format!("nbd+unix:///other?socket={}", served.socket().display());
    assert!(!run("nbdinfo", &[&unknown]).status.success());
    assert_eq!(served.stop().cut_off, 0);
}

#[test]
fn nbdcopy_brings_the_exact_image() {
    if !judges(&["nbdcopy"]) {
        return;
    }
    let served = served();
    let expected = fs::read(served.path("image")).unwrap();
    for flags in [
        &["-C", "1"][..],
        &["-C", "4"],
        &["--no-extents", "-C", "4"],
        &["--request-size=4194304", "--no-extents"],
        &["--synchronous"],
    ] {
        let copy = served.path("copy");
        let copy = copy.to_str().unwrap();
        let uri = served.uri();
        served.run("nbdcopy", &[flags, &[&uri, copy]].concat());
        assert!(fs::read(copy).unwrap() == expected, "nbdcopy {flags:?} brought other bytes");
    }
}

#[test]
fn simple_replies_and_the_oldest_option_still_work() {
    if !judges(&[LIBNBD_PYTHON]) {
        return;
    }
    let served = served();
    let socket = served.socket();
    let image = served.path("image");
    for (go, structured) in [("True", "False"), ("False", "False"), ("False", "True")] {
        let script = format!(
            "h.set_request_structured_replies({structured})\n\
             h.set_export_name('disk')\n\
             if not {go}: h.set_handshake_flags(0)\n\
             h.connect_unix({socket:?})\n\
             data = open({image:?}, 'rb').read()\n\
             for at, n in [(0, 512), (2097151, 70000), (1048577, 4000000), (len(data) - 3, 3)]:\n\
            \x20   assert h.pread(n, at) == data[at:at+n], (at, n)\n\
             h.shutdown()",
        );
        served.python(&script);
    }
}

#[test]
fn wrong_requests_get_their_error_and_the_session_goes_on() {
    if !judges(&[LIBNBD_PYTHON]) {
        return;
    }
    served().python(
        "h.set_strict_mode(0)\n\
         h.connect_uri(u)\n\
         import errno\n\
         def fails(code, f, *a):\n\
        \x20   try: f(*a)\n\
        \x20   except nbd.Error as e: assert e.errnum == code, (f, e.errnum)\n\
        \x20   else: assert False, (f, a)\n\
         size = h.get_size()\n\
         fails(errno.EINVAL, h.pread, 512, size)\n\
         fails(errno.EINVAL, h.pread, 512, size - 511)\n\
         fails(errno.EPERM, h.pwrite, b'x' * 512, 0)\n\
         fails(errno.EPERM, h.trim, 512, 0)\n\
         fails(errno.EPERM, h.zero, 512, 0)\n\
         fails(errno.EINVAL, h.flush)\n\
         fails(errno.EINVAL, h.pread, 512, 0, 0x40)\n\
         h.cache(1 << 20, 0)\n\
         assert len(h.pread(512, 0, nbd.CMD_FLAG_DF)) == 512\n\
         h.shutdown()",
    );
}

#[test]
fn a_client_that_breaks_the_protocol_harms_only_itself() {
    if !judges(&[LIBNBD_PYTHON]) {
        return;
    }
    let served = served();
    served.python(
        "import socket\n\
         h.connect_uri(u)\n\
         s = socket.socket(socket.AF_UNIX)\n\
         s.connect(u.split('socket=')[1])\n\
         s.send(b'GET / HTTP/1.1\\r\\n\\r\\n')\n\
         while s.recv(100): pass\n\
         assert len(h.pread(512, 0)) == 512\n\
         h.shutdown()",
    );
}

#[test]
fn qemu_reads_compares_and_converts() {
    if !judges(&["qemu-img", "qemu-io"]) {
        return;
    }
    let served = served();
    let (uri, image) = (served.uri(), served.path("image"));
    let info = served.run("qemu-img", &["info", "--output=json", "-f", "raw", &uri]);
    assert!(info.contains("\"virtual-size\""), "{info}");
    let image = image.to_str().unwrap();
    served.run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &uri, image]);
    let copy = served.path("copy.qcow2");
    let copy = copy.to_str().unwrap();
    served.run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, copy]);
    served.run("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", copy, image]);
    served.run("qemu-io", &["-r", "-f", "raw", "-c", "read 512 3M", "-c", "map", &uri]);

    // A qcow2 image is bytes like any other; its format is the client's affair.
    let directory = tempfile::tempdir().unwrap();
    let moved = directory.path().join("image.qcow2");
    fs::copy(copy, &moved).unwrap();
    let nested = Served::new(directory, Arc::new(FileExport::open(&moved).unwrap()));
    nested.run("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", &nested.uri(), image]);
}

#[test]
fn fio_verifies_many_reads_in_flight() {
    if !judges(&["fio"]) {
        return;
    }
    let served = served();
    let uri = format!("--uri={}", served.uri());
    served.run(
        "fio",
        &[
            "--name=reads",
            "--ioengine=nbd",
            &uri,
            "--rw=randread",
            "--bs=4k",
            "--iodepth=16",
            "--size=8M",
            "--io_size=16M",
            "--numjobs=4",
        ],
    );
    let counts = served.server.stats.counts();
    assert!(counts.reads >= 4096 && counts.failed_requests == 0, "{counts:?}");
}

#[test]
fn nbdkit_can_serve_what_is_served_here() {
    if !judges(&["nbdkit", "nbdcopy"]) {
        return;
    }
    let served = served();
    let copy = served.path("copy");
    let uri = format!("uri={}", served.uri());
    let command = format!("nbdcopy \"$uri\" {}", copy.display());
    served.run("nbdkit", &["-r", "-U", "-", "nbd", &uri, "--run", &command]);
    assert!(fs::read(&copy).unwrap() == fs::read(served.path("image")).unwrap());
}

#[test]
fn required_tls_lets_in_only_those_who_speak_it() {
    if !judges(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    image(&path);
    let (identity, chain) = identity();
    fs::write(directory.path().join("ca-cert.pem"), chain).unwrap();
    let export = Arc::new(FileExport::open(&path).unwrap());
    let served = Served::with(directory, export, |server| {
        server.tls = Some(identity);
        server.policy = Policy { tls: TlsMode::Require, list: true };
    });
    let uri = format!(
        "nbds+unix://localhost/disk?socket={}&tls-certificates={}",
        served.socket().display(),
        served.directory.path().display()
    );
    assert!(!run("nbdinfo", &[&served.uri()]).status.success());
    let text = served.run("nbdinfo", &[&uri]);
    assert!(text.contains("with TLS"), "{text}");
    let copy = served.path("copy");
    served.run("nbdcopy", &[&uri, copy.to_str().unwrap()]);
    assert!(fs::read(&copy).unwrap() == fs::read(served.path("image")).unwrap());
}

#[test]
fn a_file_that_shrinks_gives_errors_not_zeroes() {
    if !judges(&[LIBNBD_PYTHON]) {
        return;
    }
    let served = served();
    let image = served.path("image");
    let script = format!(
        "import os, errno\n\
         h.connect_uri(u)\n\
         os.truncate({image:?}, 1 << 20)\n\
         try: h.pread(65536, 7 << 20)\n\
         except nbd.Error as e: assert e.errnum == errno.EIO, e.errnum\n\
         else: assert False\n\
         assert len(h.pread(512, 0)) == 512\n\
         h.shutdown()"
    );
    served.python(&script);
}
