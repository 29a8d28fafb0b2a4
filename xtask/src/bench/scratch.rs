//! Where clients put what they fetch.
//!
//! In memory where there is room. On ext4 a run pays for the clean-up of the one before: for some
//! seconds it steps over each inode that was just deleted, which cost 10,000 small files more CPU
//! than fetching them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command;

const MEMORY: &str = "/dev/shm";
/// The largest set, twice.
const ROOM_KIB_MIN: u64 = 2 << 20;

/// A folder of this process, taken away when dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// # Errors
    /// The folder cannot be made.
    pub(super) fn make() -> Result<Self> {
        let parent = if room_kib(MEMORY) >= ROOM_KIB_MIN {
            PathBuf::from(MEMORY)
        } else {
            println!("bench: no 2 GiB free in {MEMORY}: files go to disk, which skews small ones");
            command::workspace_root().join("target/bench")
        };
        Self::below(&parent)
    }

    /// On the disk, for what is too large for memory.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(super) fn on_disk() -> Result<Self> {
        Self::below(&command::workspace_root().join("target/bench"))
    }

    fn below(parent: &Path) -> Result<Self> {
        let scratch = Self(parent.join(format!("trunkline-bench-{}", std::process::id())));
        std::fs::create_dir_all(&scratch.0)?;
        Ok(scratch)
    }

    /// An empty folder, whatever was in it.
    ///
    /// # Errors
    /// The old one cannot be removed, or the new one cannot be made.
    pub(super) fn fresh(&self) -> Result<PathBuf> {
        let out = self.out();
        match std::fs::remove_dir_all(&out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => std::fs::create_dir(&out)?,
        }
        Ok(out)
    }

    /// A folder that stays until the end.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn beside(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// The folder that [`fresh`](Self::fresh) empties.
    pub(super) fn out(&self) -> PathBuf {
        self.0.join("out")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is only in the way; there is nobody to tell.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 0 when it cannot be told, or is no folder in memory.
fn room_kib(directory: &str) -> u64 {
    if !Path::new(directory).is_dir() {
        return 0;
    }
    let mut df = Command::new("df");
    df.args(["--block-size=1024", "--output=fstype,avail", directory]);
    let text = command::output(&mut df).unwrap_or_default();
    let mut fields = text.lines().last().unwrap_or_default().split_whitespace();
    match (fields.next(), fields.next()) {
        (Some("tmpfs"), Some(kib)) => kib.parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_folder_is_empty_and_the_last_one_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Scratch(directory.path().join("scratch"));
        std::fs::create_dir(&scratch.0).unwrap();
        let out = scratch.fresh().unwrap();
        std::fs::write(out.join("old"), "").unwrap();
        assert_eq!(std::fs::read_dir(scratch.fresh().unwrap()).unwrap().count(), 0);
        drop(scratch);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
