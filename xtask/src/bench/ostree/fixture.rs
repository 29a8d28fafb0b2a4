//! The repositories that are moved: made once by `ostree commit`, copied to memory for a bench.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::tree::{Plan, Shape};
use crate::command;

/// The branch of all of them.
pub(super) const BRANCH: &str = "img";
/// A new version makes old fixtures be made anew.
const VERSION: u32 = 1;

/// Two archive repositories with the same branch: in `old` it points to the first commit, in `new`
/// to the second, whose parent is there as well.
#[derive(Clone, Debug)]
pub(super) struct Fixture {
    pub(super) old: Repository,
    pub(super) new: Repository,
    /// `old` as one tar file; only for the default shape.
    pub(super) tar: PathBuf,
}

/// An archive repository.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) path: PathBuf,
    /// Where the branch points, 64 digits.
    pub(super) commit: String,
    /// Objects in it.
    pub(super) objects: usize,
}

impl Fixture {
    /// Makes the fixture under `target/bench` unless it is there, and copies it to `scratch`.
    ///
    /// # Errors
    /// `ostree` or `tar` fails, or another number of objects came out than was planned.
    pub(super) fn make(shape: Shape, scratch: &Path) -> Result<Self> {
        let kept = command::workspace_root().join("target/bench/ostree").join(folder(shape));
        if !kept.join("done").exists() {
            println!("bench: making a repository of {} files", shape.files);
            if kept.exists() {
                fs::remove_dir_all(&kept)?;
            }
            fs::create_dir_all(&kept)?;
            make(&Plan::new(shape), shape == Shape::default(), &kept)?;
            fs::write(kept.join("done"), "")?;
        }
        // What both have in common is one file in `kept`, and stays so.
        command::run(Command::new("cp").arg("-a").arg(&kept).arg(scratch))?;
        let copy = scratch.join(kept.file_name().context("a folder has a name")?);
        Ok(Self {
            old: Repository::open(copy.join("old"))?,
            new: Repository::open(copy.join("new"))?,
            tar: copy.join("old.tar"),
        })
    }
}

fn folder(shape: Shape) -> String {
    let bytes = shape.file_bytes.map_or_else(String::new, |bytes| format!("-{bytes}"));
    format!("{}{bytes}.{VERSION}", shape.files)
}

impl Repository {
    fn open(path: PathBuf) -> Result<Self> {
        let commit = fs::read_to_string(path.join("refs/heads").join(BRANCH))?.trim().to_owned();
        Ok(Self { objects: count_objects(&path)?, path, commit })
    }

    /// Makes `to` a repository of its own with the same objects, by hard links: objects are
    /// replaced by renaming and never written to.
    ///
    /// # Errors
    /// `cp` fails.
    pub(super) fn link_to(&self, to: &Path) -> Result<()> {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        command::run(Command::new("cp").arg("-al").arg(&self.path).arg(to))
    }
}

/// Files below `objects/`.
///
/// # Errors
/// A folder cannot be listed.
pub(super) fn count_objects(repository: &Path) -> Result<usize> {
    let mut count = 0;
    for folder in fs::read_dir(repository.join("objects"))? {
        count += fs::read_dir(folder?.path())?.count();
    }
    Ok(count)
}

fn ostree(repository: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("ostree");
    command.arg(format!("--repo={}", repository.display())).args(arguments);
    command::output(&mut command)
}

fn make(plan: &Plan, has_tar: bool, kept: &Path) -> Result<()> {
    let (tree, old, new) = (kept.join("tree"), kept.join("old"), kept.join("new"));
    plan.write(&tree)?;
    ostree(&old, &["init", "--mode=archive-z2"])?;
    commit(&old, &tree, "2020-01-01 00:00:00 +0000")?;
    ostree(&old, &["summary", "-u"])?;
    command::run(Command::new("cp").arg("-al").arg(&old).arg(&new))?;
    plan.change(&tree)?;
    commit(&new, &tree, "2020-02-01 00:00:00 +0000")?;
    ostree(&new, &["summary", "-u"])?;
    fs::remove_dir_all(&tree)?;
    let counts = (count_objects(&old)?, count_objects(&new)?);
    let planned = (plan.objects(), plan.objects() + plan.objects_new());
    if counts != planned {
        bail!("{counts:?} objects in place of {planned:?}");
    }
    if !has_tar {
        return Ok(());
    }
    let mut tar = Command::new("tar");
    command::run(tar.arg("-cf").arg(kept.join("old.tar")).arg("-C").arg(kept).arg("old"))
}

fn commit(repository: &Path, tree: &Path, timestamp: &str) -> Result<()> {
    let (branch, time) = (format!("--branch={BRANCH}"), format!("--timestamp={timestamp}"));
    let fixed = ["commit", "--owner-uid=0", "--owner-gid=0", "--no-xattrs", "--subject=bench"];
    let tree = tree.display().to_string();
    ostree(repository, &[&fixed[..], &[&branch, &time, &tree]].concat()).map(drop)
}
