//! The running command: its output gathered, its end awaited, no longer than a minute.

use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than any test needs, on any machine.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);

/// Between two looks at what a test waits for.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// The exit code; 128 + its number for a signal, as shells have it.
    pub(crate) fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.code().or(self.status.signal().map(|signal| 128 + signal)).unwrap()
    }

    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Fails the test, with what the command said, unless it ended with `code`.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}\n{}", self.text(), self.stderr);
        self
    }

    /// Everything it said.
    pub(crate) fn all_output(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.stdout), self.stderr)
    }
}

/// The command under way; dropped before its end it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts a command; what goes to pipes is gathered. `input` becomes its standard input.
    pub(crate) fn start(mut command: Command, input: Option<Vec<u8>>) -> Self {
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // A command that ends without reading everything is no failure of the test.
            std::thread::spawn(move || stdin.write_all(&input));
        }
        let stdout = child.stdout.take().map(gather);
        let stderr = child.stderr.take().map(gather);
        Self { child, stdout, stderr }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Looks until `found` finds something, as long as the command runs.
    pub(crate) fn watch<T>(&mut self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended ({ended:?}) before {what}");
            assert!(started.elapsed() < RUN_TIME_MAX, "never saw {what}");
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits for the end; `look` is called from time to time until then.
    pub(crate) fn wait_looking(mut self, mut look: impl FnMut(u32)) -> Ran {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            look(self.id());
            assert!(started.elapsed() < RUN_TIME_MAX, "the command hangs");
            std::thread::sleep(LOOK_INTERVAL);
        };
        let output = |reader: Option<JoinHandle<Vec<u8>>>| {
            reader.map(|reader| reader.join().unwrap()).unwrap_or_default()
        };
        let stdout = output(self.stdout.take());
        let stderr = String::from_utf8_lossy(&output(self.stderr.take())).into_owned();
        Ran { status, stdout, stderr }
    }

    /// Waits for the end.
    pub(crate) fn wait(self) -> Ran {
        self.wait_looking(|_| ())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gather(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// A program of the system, if it is installed.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    trunkline_testkit::judge::program(name)
}
