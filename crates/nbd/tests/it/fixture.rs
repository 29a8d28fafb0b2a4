//! A server on a Unix socket, images, and foreign clients.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trunkline_listen::{Drain, Drained, Listener, TlsIdentity};
use trunkline_nbd::{Catalogue, Entry, Export, Server};

/// A running server; stops when dropped.
pub(crate) struct Served {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) server: Server,
    runtime: Runtime,
    drain: Drain,
    task: Option<JoinHandle<Drained>>,
}

impl Served {
    /// Serves `export` as `disk`.
    pub(crate) fn new(directory: tempfile::TempDir, export: Arc<dyn Export>) -> Self {
        Self::with(directory, export, |_| {})
    }

    /// As [`Served::new`], with settings of the server changed first.
    pub(crate) fn with(
        directory: tempfile::TempDir,
        export: Arc<dyn Export>,
        settings: impl FnOnce(&mut Server),
    ) -> Self {
        let mut catalogue = Catalogue::default();
        let description = "an image for tests".to_owned();
        catalogue.add(Entry { name: "disk".to_owned(), description, export });
        let mut server = Server::new(catalogue);
        settings(&mut server);
        let runtime = Runtime::new().unwrap();
        let drain = Drain::new(Duration::from_secs(5));
        let task = {
            let (server, drain) = (server.clone(), drain.clone());
            let path = directory.path().join("socket");
            let _inside = runtime.enter();
            let listener = Listener::bind_unix(&path, 0o600).unwrap();
            runtime.spawn(async move {
                let (server, stop) = (Arc::new(server), drain.clone());
                let session = move |stream| {
                    let (server, stop) = (Arc::clone(&server), stop.clone());
                    async move {
                        let _ = server.serve(stream, &stop).await;
                    }
                };
                trunkline_listen::Server::new(listener).serve_streams(&drain, session).await
            })
        };
        Self { directory, server, runtime, drain, task: Some(task) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///disk?socket={}", self.socket().display())
    }

    /// Runs a client to its end; it must succeed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = run(program, arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// Runs Python with libnbd: `h` is a handle, `u` the URI.
    pub(crate) fn python(&self, script: &str) -> String {
        let python = python().expect("judges() was asked before");
        let script = format!("import nbd\nh = nbd.NBD()\nu = {:?}\n{script}", self.uri());
        self.run(python, &["-c", &script])
    }

    pub(crate) fn stop(mut self) -> Drained {
        self.drain.start();
        let task = self.task.take().unwrap();
        self.runtime.block_on(task).unwrap()
    }
}

/// Stands for Python with libnbd in [`judges`].
pub(crate) const LIBNBD_PYTHON: &str = "python3 with libnbd";

/// Whether the foreign programs are there. `TRUNKLINE_JUDGES=all` makes their absence a failure.
pub(crate) fn judges(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|program| !installed(program)).collect();
    let strict = std::env::var_os("TRUNKLINE_JUDGES").is_some_and(|value| value == "all");
    assert!(missing.is_empty() || !strict, "not installed: {missing:?}");
    if !missing.is_empty() {
        println!("skipped, not installed: {missing:?}");
    }
    missing.is_empty()
}

fn installed(program: &str) -> bool {
    if program == LIBNBD_PYTHON { python().is_some() } else { which(program).is_some() }
}

/// The Python that has libnbd's bindings: Debian's, even if another one comes first.
fn python() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"]
        .into_iter()
        .find(|python| run(python, &["-c", "import nbd"]).status.success())
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Runs a program to its end, for a minute at most.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new("timeout").arg("60").arg(program).args(arguments).output().unwrap()
}

/// Bytes that depend on their offset, so that misplaced ones are seen.
pub(crate) fn pattern(offset: u64, length: usize) -> Vec<u8> {
    let words = offset / 8..=(offset + length as u64) / 8;
    let mixed =
        words.flat_map(|word| (word ^ 0x5bd1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    mixed.skip((offset % 8) as usize).take(length).collect()
}

/// An image with data, then a hole, then data to an odd end.
pub(crate) fn image(path: &Path) -> u64 {
    let file = File::create(path).unwrap();
    let size = (9 << 20) + 511;
    file.set_len(size).unwrap();
    for start in [0_u64, 1 << 20, 6 << 20, 7 << 20, 8 << 20, 9 << 20] {
        let length = (size - start).min(1 << 20) as usize;
        file.write_all_at(&pattern(start, length), start).unwrap();
    }
    size
}

/// A self-signed identity and its certificate in PEM.
pub(crate) fn identity() -> (TlsIdentity, String) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let chain = certified.cert.pem();
    let key = certified.signing_key.serialize_pem();
    (TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes(), None, &[]).unwrap(), chain)
}
