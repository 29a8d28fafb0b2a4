//! Files at hand: a bounded folder on disk, keyed by URL and User-Agent.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use trunkline_proto::digest::{Algorithm, Hasher};

/// Size of the store unless told otherwise, in bytes.
pub const STORE_BYTES_MAX_DEFAULT: u64 = 10 << 30;

/// How much of the limit a clean-up leaves, in percent: so that not every new file needs one.
const KEPT_PERCENT: u64 = 90;

/// The store's folder.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    bytes_max: u64,
}

/// Where one URL's file is in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) body: PathBuf,
    note: PathBuf,
}

/// What is known about a stored file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// For whoever looks into the folder.
    pub(super) url: String,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// What the stored bytes hash to, where they were compared with an index.
    #[serde(default)]
    pub(super) digest: Option<String>,
}

impl Store {
    /// A store in a folder, which is made if it is missing, for its owner alone: it may hold what
    /// others have no credentials for.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self { folder: folder.to_owned(), bytes_max })
    }

    /// Where the file of a URL is or will be. Some repositories choose by User-Agent what they
    /// serve under one URL, so it is a part of the key.
    pub(super) fn entry(&self, url: &str, user_agent: &str) -> io::Result<Entry> {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(url.as_bytes());
        hasher.update(b"\0");
        hasher.update(user_agent.as_bytes());
        let key = hasher.finish().to_hex();
        let folder = self.folder.join(&key[..2]);
        fs::create_dir_all(&folder)?;
        Ok(Entry { body: folder.join(&key[2..]), note: folder.join(format!("{}.json", &key[2..])) })
    }

    /// Removes the files that were used least recently until the store is well below its limit.
    ///
    /// # Errors
    /// Whatever the system says about the folder; files that vanish meanwhile are no error.
    pub fn clean_up(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for folder in fs::read_dir(&self.folder)?.flatten() {
            let Ok(entries) = fs::read_dir(folder.path()) else { continue };
            for entry in entries.flatten() {
                let Ok(facts) = entry.metadata() else { continue };
                let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((used, facts.len(), entry.path()));
            }
        }
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.bytes_max {
            return Ok(());
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.bytes_max / 100 * KEPT_PERCENT {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
        Ok(())
    }
}

impl Entry {
    /// The size of the stored file in bytes; `None` when there is none. Marks it as used.
    pub(super) fn size(&self) -> Option<u64> {
        let file = fs::File::open(&self.body).ok()?;
        // The time of use decides what a clean-up removes; without write access it is not kept.
        let _ = file.set_modified(SystemTime::now());
        file.metadata().ok().map(|facts| facts.len())
    }

    /// What is known about the stored file; `None` when there is none or the note is damaged.
    pub(super) fn note(&self) -> Option<Note> {
        let note = fs::read(&self.note).ok()?;
        self.body.exists().then(|| serde_json::from_slice(&note).ok())?
    }

    /// Stores a file with its note. The body is in place before the note that vouches for it.
    pub(super) fn put(&self, body: &[u8], note: &Note) -> io::Result<()> {
        // Without its old note a half-replaced file is fetched anew.
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        write_whole(&self.body, body)?;
        self.vouch(note)
    }

    /// Notes what is known about the file that is stored.
    pub(super) fn vouch(&self, note: &Note) -> io::Result<()> {
        write_whole(&self.note, &serde_json::to_vec(note).map_err(io::Error::other)?)
    }
}

fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    fs::write(&partial, content)?;
    fs::rename(&partial, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(bytes_max: u64) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), bytes_max).unwrap();
        (folder, store)
    }

    #[test]
    fn a_file_is_found_under_its_url_and_user_agent() {
        let (_folder, store) = store(1000);
        let entry = store.entry("https://x/PACKAGES", "R").unwrap();
        assert_eq!((entry.size(), entry.note()), (None, None));
        let note = Note { etag: Some("\"1\"".to_owned()), ..Note::default() };
        entry.put(b"body", &note).unwrap();
        assert_eq!((entry.size(), entry.note()), (Some(4), Some(note)));
        assert_eq!(store.entry("https://x/PACKAGES", "pak").unwrap().size(), None);
        fs::remove_file(&entry.body).unwrap();
        assert_eq!(entry.note(), None, "a note alone vouches for nothing");
    }

    #[test]
    fn a_new_folder_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("a/b");
        Store::open(&folder, 1).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let (_folder, store) = store(2000);
        let entries: Vec<Entry> =
            (0..5).map(|i| store.entry(&format!("https://x/{i}"), "R").unwrap()).collect();
        for (age, entry) in entries.iter().enumerate() {
            fs::write(&entry.body, vec![0; 500]).unwrap();
            let used = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + age as u64);
            fs::File::options().append(true).open(&entry.body).unwrap().set_modified(used).unwrap();
        }
        assert_eq!(entries[0].size(), Some(500), "just used");
        store.clean_up().unwrap();
        let kept: Vec<bool> = entries.iter().map(|entry| entry.body.exists()).collect();
        assert_eq!(kept, [true, false, false, true, true]);
    }
}
