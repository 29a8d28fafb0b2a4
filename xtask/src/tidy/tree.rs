//! The files that are ours: tracked by git, or about to be.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::source;
use crate::command;

/// Text files of the workspace, by path from its root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// One text file; what is derived from it is derived once.
#[derive(Debug)]
pub(super) struct File {
    /// From the root, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
    /// Rust only: comments and literals blanked out, line for line.
    pub(super) code: String,
    /// Rust only: `code` without `#[cfg(test)]` modules; empty for files that are tests.
    pub(super) shipped_code: String,
}

impl Tree {
    /// Everything git tracks or would track; files that are not UTF-8 are left out.
    ///
    /// # Errors
    /// git fails or a listed file cannot be read.
    pub(super) fn load() -> Result<Self> {
        let root = command::workspace_root();
        let list = command::output(Command::new("git").current_dir(&root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut files = Vec::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            if let Some(text) = read_text(&root.join(path))? {
                files.push(File::new(path, text));
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|one, other| one.path == other.path);
        Ok(Self { files })
    }

    pub(super) fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| File::new(path, (*text).into())).collect() }
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let (mut code, mut shipped_code) = (String::new(), String::new());
        if is_rust(path) {
            code = source::code_only(&text);
            if !is_test_path(path) {
                shipped_code = source::without_test_modules(&code);
            }
        }
        Self { path: path.to_owned(), text, code, shipped_code }
    }

    pub(super) fn is_rust(&self) -> bool {
        is_rust(&self.path)
    }

    /// The file's name without its folder.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().expect("rsplit yields at least one part")
    }

    /// The crate's short name, as in `crates/NAME/…`; `xtask` for ourselves.
    pub(super) fn room(&self) -> Option<&str> {
        match self.path.split_once('/')? {
            ("crates", rest) => rest.split_once('/').map(|(room, _)| room),
            ("xtask", _) => Some("xtask"),
            _ => None,
        }
    }
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// Files that hold only tests, examples or benches: laws about shipped code do not bind them.
fn is_test_path(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    name == "tests.rs"
        || name.ends_with("_tests.rs")
        || parts.iter().any(|part| ["tests", "benches", "examples", "fuzz"].contains(part))
        || path.starts_with("crates/testkit/")
}

/// `None` for binary files and for what git lists but the work tree lacks (a deletion not staged).
fn read_text(path: &Path) -> Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(_) if !path.is_file() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
    }
}
