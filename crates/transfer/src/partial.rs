//! A file under construction: beside its destination, locked, resumable, renamed when complete.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trunkline_proto::digest::{Algorithm, Hasher};
use url::Url;

use crate::error::ErrorKind;
use crate::plan::Job;

/// Files below this size are begun anew rather than resumed in a later run: what is saved would
/// cost more than fetching it.
pub const RESUMABLE_BYTES_MIN: u64 = 1 << 20;

/// The format of the state file; another number is ignored.
const STATE_VERSION: u32 = 1;

/// How long a lock is waited for: a transfer that was just stopped in this process holds it until
/// its last write has ended.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// How often a lock that is waited for is tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Longest file name that common file systems take, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What is needed to go on in a later run, in a small file beside the partial one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResumeState {
    version: u32,
    /// SHA-256 of the URL: signed URLs are secrets and do not belong on disk.
    url: String,
    /// The whole length in bytes.
    pub(crate) length: u64,
    /// The validator's line.
    pub(crate) validator: String,
    /// Complete ranges of a file that is fetched in chunks, start and exclusive end; `None` for
    /// one that grows from its start.
    pub(crate) done: Option<Vec<(u64, u64)>>,
}

impl ResumeState {
    pub(crate) fn new(url: &Url, length: u64, validator: String) -> Self {
        Self { version: STATE_VERSION, url: url_id(url), length, validator, done: None }
    }
}

fn url_id(url: &Url) -> String {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(url.as_str().as_bytes());
    hasher.finish().to_string()
}

/// A partial file. Dropped before [`commit`](Self::commit) it is removed, unless a saved state
/// makes it worth keeping.
#[derive(Debug)]
pub(crate) struct Partial {
    file: Arc<File>,
    path: PathBuf,
    state_path: PathBuf,
    destination: PathBuf,
    /// Whether a later run can go on with it.
    resumable: bool,
    ended: bool,
}

impl Partial {
    /// Opens or makes the partial file of a destination and locks it against other processes.
    ///
    /// Returns the state of an earlier run when it is of the same URL. Blocks.
    pub(crate) fn open(
        destination: &Path,
        url: &Url,
    ) -> Result<(Self, Option<ResumeState>), ErrorKind> {
        let path = beside(destination, ".trunkline-part");
        let state_path = beside(destination, ".trunkline-state");
        let file = open_locked(&path, destination)?;
        let state = fs::read(&state_path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<ResumeState>(&bytes).ok())
            .filter(|state| state.version == STATE_VERSION && state.url == url_id(url));
        if state.is_none() {
            file.set_len(0).map_err(|source| file_error("write", &path, source))?;
            let _ = fs::remove_file(&state_path);
        }
        let resumable = state.is_some();
        let partial = Self {
            file: Arc::new(file),
            path,
            state_path,
            destination: destination.to_owned(),
            resumable,
            ended: false,
        };
        Ok((partial, state))
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the state is kept, for savers that run elsewhere.
    pub(crate) fn state_path(&self) -> &Path {
        &self.state_path
    }

    /// Saves the state, so that a later run can go on. Failing to is no failure of the transfer.
    pub(crate) fn save(&mut self, state: &ResumeState) {
        self.resumable = save_state(&self.state_path, state);
    }

    /// Begins anew: the bytes so far are worth nothing. Blocks.
    pub(crate) fn restart(&mut self) -> Result<(), ErrorKind> {
        self.resumable = false;
        let _ = fs::remove_file(&self.state_path);
        self.file.set_len(0).map_err(|source| file_error("write", &self.path, source))
    }

    /// Gives the complete file its final name. Blocks.
    pub(crate) fn commit(mut self, fsync: bool) -> Result<(), ErrorKind> {
        if fsync {
            self.file.sync_all().map_err(|source| file_error("flush", &self.path, source))?;
        }
        fs::rename(&self.path, &self.destination)
            .map_err(|source| file_error("rename to", &self.destination, source))?;
        self.ended = true;
        if fsync {
            sync_folder(&self.destination);
        }
        if self.resumable {
            let _ = fs::remove_file(&self.state_path);
        }
        Ok(())
    }

    /// Removes it, state and all: its bytes are wrong.
    pub(crate) fn discard(mut self) {
        self.resumable = false;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.ended && !self.resumable {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_file(&self.state_path);
        }
    }
}

/// Whether an earlier run left something for this destination.
pub(crate) fn has_state(destination: &Path) -> bool {
    beside(destination, ".trunkline-state").exists()
}

/// Writes the state file so that it is the old or the new one; returns whether it is there.
pub(crate) fn save_state(path: &Path, state: &ResumeState) -> bool {
    let new = path.with_extension("trunkline-state-new");
    let Ok(bytes) = serde_json::to_vec(state) else { return false };
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, path)).is_ok()
}

/// What became of a small file.
pub(crate) enum Small {
    /// It has its final name.
    Placed,
    /// The destination is a device or pipe, which takes bytes but no name.
    IsDevice,
}

/// Writes a whole small file under its final name at once. Blocks, but briefly.
///
/// Nothing is asked about the destination beforehand: when the name is free, which a rename that
/// replaces nothing finds out, that is one system call less for each of many files.
pub(crate) fn write_small(
    job: &Job,
    parts: &[bytes::Bytes],
    fsync: bool,
) -> Result<Small, ErrorKind> {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if job.output.is_some() {
        return Ok(Small::IsDevice);
    }
    if job.output.is_some() {
        return Ok(Small::IsDevice);
    }
    let destination = job.destination.as_path();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // The process id is asked for once: on Linux each call is a system call.
    static PROCESS: OnceLock<u32> = OnceLock::new();
    let process = PROCESS.get_or_init(std::process::id);
    let path = beside(destination, &format!(".trunkline-{process}-{number}"));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        for part in parts {
            file.write_all(part)?;
        }
        if fsync {
            file.sync_all()?;
        }
        Ok(())
    };
    if let Err(source) = write() {
        let _ = fs::remove_file(&path);
        // In a folder such as /dev nothing can be made, and nothing needs to be.
        return match Target::of(job) {
            Ok(Target::Device(_)) => Ok(Small::IsDevice),
            _ => Err(file_error("write", &path, source)),
        };
    }
    let placed = place(&path, job);
    if !matches!(placed, Ok(Small::Placed)) {
        let _ = fs::remove_file(&path);
    } else if fsync {
        sync_folder(destination);
    }
    placed
}

/// Gives a temporary file its name.
fn place(path: &Path, job: &Job) -> Result<Small, ErrorKind> {
    let destination = &job.destination;
    if rename_new(path, destination) {
        return Ok(Small::Placed);
    }
    match Target::of(job)? {
        Target::Device(_) => Ok(Small::IsDevice),
        Target::File(real) => fs::rename(path, &real)
            .map(|()| Small::Placed)
            .map_err(|source| file_error("rename to", destination, source)),
    }
}

/// Renames to a name that is free; `false` when it is not, or when that cannot be found out in
/// one step here.
#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn rename_new(_from: &Path, _to: &Path) -> bool {
    false
}

/// What stands at a destination before a transfer.
pub(crate) enum Target {
    /// Nothing or a regular file: written beside it and renamed.
    File(PathBuf),
    /// A device or pipe: written into.
    Device(Device),
}

/// A place that is written into as it is, without a partial file.
#[derive(Clone)]
pub(crate) enum Device {
    Named(PathBuf),
    Open(Arc<File>),
}

impl Device {
    /// Blocks: a named pipe waits for its reader.
    pub(crate) fn open(&self) -> Result<Arc<File>, ErrorKind> {
        match self {
            Self::Open(file) => Ok(Arc::clone(file)),
            Self::Named(path) => {
                let file = OpenOptions::new().write(true).open(path);
                file.map(Arc::new).map_err(|source| file_error("write", path, source))
            }
        }
    }
}

impl Target {
    /// Looks at the destination; a link to a file stands for that file.
    pub(crate) fn of(job: &Job) -> Result<Self, ErrorKind> {
        if let Some(file) = &job.output {
            return Ok(Self::Device(Device::Open(Arc::clone(file))));
        }
        let destination = &job.destination;
        let Ok(metadata) = fs::metadata(destination) else {
            return Ok(Self::File(destination.to_owned()));
        };
        if metadata.is_dir() {
            return Err(file_error("write", destination, io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            return Ok(Self::Device(Device::Named(destination.to_owned())));
        }
        let is_link = fs::symlink_metadata(destination).is_ok_and(|m| m.is_symlink());
        let real = if is_link { fs::canonicalize(destination).ok() } else { None };
        Ok(Self::File(real.unwrap_or_else(|| destination.to_owned())))
    }
}

pub(crate) fn file_error(action: &'static str, path: &Path, source: io::Error) -> ErrorKind {
    ErrorKind::File { action, path: path.to_owned(), source }
}

/// A hidden name in the destination's folder, so that the rename stays on one file system.
fn beside(destination: &Path, suffix: &str) -> PathBuf {
    let name = destination.file_name().unwrap_or_default().to_string_lossy();
    let mut hidden = format!(".{name}{suffix}");
    if hidden.len() > NAME_BYTES_MAX {
        let mut hasher = Hasher::new(Algorithm::Md5);
        hasher.update(name.as_bytes());
        let digest = hasher.finish().to_string().replace(':', "-");
        hidden = format!(".{digest}{suffix}");
    }
    destination.with_file_name(hidden)
}

/// Opens and locks the partial file. Between opening and locking, another process may have
/// finished and renamed it: then the lock is on the finished file and must not be used.
fn open_locked(path: &Path, destination: &Path) -> Result<File, ErrorKind> {
    let asked = Instant::now();
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|source| file_error("write", path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if asked.elapsed() < LOCK_WAIT => {
                std::thread::sleep(LOCK_INTERVAL);
                continue;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(ErrorKind::Busy { path: destination.to_owned() });
            }
            // A file system without locks is no reason to refuse the work.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => open.dev() == named.dev() && open.ino() == named.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

fn sync_folder(destination: &Path) {
    let folder = destination.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Not every system lets a folder be flushed; the rename itself has succeeded.
    let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        Url::parse("https://h/file").unwrap()
    }

    #[test]
    fn a_partial_file_is_kept_only_with_its_state() {
        let folder = tempfile::tempdir().unwrap();
        let destination = folder.path().join("file");
        let (partial, state) = Partial::open(&destination, &url()).unwrap();
        assert!(state.is_none());
        drop(partial);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let (mut partial, _) = Partial::open(&destination, &url()).unwrap();
        let saved = ResumeState::new(&url(), 5, "etag \"x\"".to_owned());
        partial.save(&saved);
        drop(partial);
        let (partial, state) = Partial::open(&destination, &url()).unwrap();
        assert_eq!(state, Some(saved));
        drop(partial);
        let other = Url::parse("https://h/other").unwrap();
        assert!(Partial::open(&destination, &other).unwrap().1.is_none());
    }

    #[test]
    fn two_writers_of_one_destination_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let destination = folder.path().join("file");
        let (first, _) = Partial::open(&destination, &url()).unwrap();
        let second = Partial::open(&destination, &url());
        assert!(matches!(second, Err(ErrorKind::Busy { .. })));
        first.commit(false).unwrap();
        assert!(destination.exists());
        assert!(Partial::open(&destination, &url()).is_ok());
        assert!(destination.exists());
    }

    #[test]
    fn a_long_name_still_has_a_partial_file() {
        let folder = tempfile::tempdir().unwrap();
        let destination = folder.path().join("n".repeat(255));
        let (partial, _) = Partial::open(&destination, &url()).unwrap();
        partial.commit(true).unwrap();
        assert!(destination.exists());
    }
}
