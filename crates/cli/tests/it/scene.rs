//! The words that the tests are written in: a folder, and the command run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use trunkline_testkit::{Origin, temp_dir};

use crate::process::{Ran, Running};

/// A folder of its own for one test; the command runs in it.
#[derive(Debug)]
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: temp_dir() }
    }

    /// `trunkline get` with these arguments, in an environment that holds nothing but `HOME`,
    /// which is the scene's folder.
    pub(crate) fn get(&self, arguments: &[&str]) -> Invocation {
        let mut command = self.command();
        command.arg("get").args(arguments);
        Invocation { command, input: None }
    }

    /// The bare command.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.current_dir(self.folder.path()).env_clear().env("HOME", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The whole path of a name in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// What a file holds.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in a folder of the scene, sorted, hidden ones included.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Writes the certificate that an origin wants to be trusted; returns its path.
    pub(crate) fn ca(&self, origin: &Origin) -> String {
        self.write("ca.pem", origin.ca_pem())
    }
}

/// A command line that has not begun.
#[derive(Debug)]
pub(crate) struct Invocation {
    command: Command,
    input: Option<Vec<u8>>,
}

impl Invocation {
    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// What comes on standard input.
    pub(crate) fn input(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.input = Some(text.into());
        self
    }

    /// Where standard output goes instead of a pipe.
    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    /// Where standard input comes from.
    pub(crate) fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.command.stdin(stdin);
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> Running {
        Running::start(self.command, self.input)
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Ran {
        self.start().wait()
    }

    /// Runs it; fails the test unless everything was done.
    pub(crate) fn succeed(self) -> Ran {
        self.run().expect(0)
    }

    /// Runs it; fails the test unless it ends with this code.
    pub(crate) fn fail(self, code: i32) -> Ran {
        self.run().expect(code)
    }
}

/// An origin with `count` files `/f0`, `/f1`, ... of different content.
pub(crate) fn fill(origin: &Origin, count: usize) {
    for number in 0..count {
        origin.put(&format!("/f{number}"), trunkline_testkit::Resource::new(body(number)));
    }
}

/// What [`fill`] puts into file `number`.
pub(crate) fn body(number: usize) -> bytes::Bytes {
    trunkline_testkit::bytes(number as u64, 1000 + number)
}

/// A list of the files of [`fill`].
pub(crate) fn list(origin: &Origin, count: usize) -> String {
    (0..count).map(|number| origin.url(&format!("/f{number}")) + "\n").collect()
}

/// Whether a path is there, as something.
pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
