//! A directory of archive-z2 repositories, one a namespace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trunkline_proto::ostree::{Checksum, ObjectId, RefName, Storage};

use super::{Document, Reader, Staged, Stat, Store, StoreError};
use crate::routes::Namespace;

const CONFIG: &str = "[core]\nrepo_version=1\nmode=archive-z2\n";
const DIRECTORIES: [&str; 7] =
    ["objects", "refs/heads", "refs/remotes", "refs/mirrors", "tmp", "state", "extensions"];
/// Beginning of temporary names in `tmp/`.
const TEMPORARY_PREFIX: &str = "trunkline-";

/// How old a temporary file is that nobody is writing any more: no upload takes a day.
const LEFTOVER_AGE: Duration = Duration::from_secs(24 * 3600);

/// What a crash may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Killing the process costs nothing; a power cut may cost the last seconds.
    Rename,
    /// Nothing that was acknowledged is lost in a power cut.
    Sync,
}

/// Keeps each namespace as `<root>/<namespace>/`, an archive-z2 repository.
///
/// Several servers may share the directory: objects get their names by rename, and refs are moved
/// under a file lock.
#[derive(Debug)]
pub struct DirectoryStore {
    root: PathBuf,
    durability: Durability,
    sequence: AtomicU64,
}

impl DirectoryStore {
    /// A store in `root`, which is made if it is not there.
    ///
    /// # Errors
    /// [`StoreError::File`] when it cannot be made.
    pub fn open(root: &Path, durability: Durability) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(file_error("make", root))?;
        let root = fs::canonicalize(root).map_err(file_error("find", root))?;
        remove_leftovers(&root)?;
        Ok(Self { root, durability, sequence: AtomicU64::new(0) })
    }

    fn repository(&self, namespace: &Namespace) -> PathBuf {
        self.root.join(namespace.as_str())
    }

    fn object_path(&self, namespace: &Namespace, id: &ObjectId) -> PathBuf {
        let mut path = self.repository(namespace);
        path.push("objects");
        path.push(id.path(Storage::Archive));
        path
    }

    /// Makes the namespace's repository unless it is there.
    fn prepare(&self, namespace: &Namespace) -> Result<PathBuf, StoreError> {
        let repository = self.repository(namespace);
        let config = repository.join("config");
        if config.exists() {
            return Ok(repository);
        }
        for directory in DIRECTORIES {
            let path = repository.join(directory);
            fs::create_dir_all(&path).map_err(file_error("make", &path))?;
        }
        self.replace(&repository, &config, CONFIG.as_bytes())?;
        Ok(repository)
    }

    fn temporary(&self, repository: &Path) -> PathBuf {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        repository.join("tmp").join(format!("{TEMPORARY_PREFIX}{}-{number}", std::process::id()))
    }

    /// Writes a whole file under a temporary name, then gives it its own.
    fn replace(&self, repository: &Path, path: &Path, data: &[u8]) -> Result<(), StoreError> {
        let mut temporary = Temporary::create(self.temporary(repository))?;
        temporary.write(data)?;
        if self.durability == Durability::Rename {
            return temporary.rename(path);
        }
        temporary.sync()?;
        temporary.rename(path)?;
        // The name is in the directory, which has a life of its own.
        let parent = path.parent().expect("invariant: files lie in a directory");
        let directory = File::open(parent).map_err(file_error("open", parent))?;
        directory.sync_all().map_err(file_error("sync", parent))
    }
}

impl Store for DirectoryStore {
    fn stat(&self, namespace: &Namespace, id: &ObjectId) -> Result<Option<Stat>, StoreError> {
        let path = self.object_path(namespace, id);
        Ok(found(fs::metadata(&path), "look at", &path)?.map(|metadata| stat(&metadata)))
    }

    fn open(
        &self,
        namespace: &Namespace,
        id: &ObjectId,
        offset: u64,
    ) -> Result<Option<(Stat, Reader)>, StoreError> {
        let path = self.object_path(namespace, id);
        let Some(mut file) = found(File::open(&path), "open", &path)? else { return Ok(None) };
        let metadata = file.metadata().map_err(file_error("look at", &path))?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset)).map_err(file_error("read", &path))?;
        }
        Ok(Some((stat(&metadata), Box::new(file))))
    }

    fn stage(&self, namespace: &Namespace, id: &ObjectId) -> Result<Box<dyn Staged>, StoreError> {
        let repository = self.prepare(namespace)?;
        let temporary = Temporary::create(self.temporary(&repository))?;
        Ok(Box::new(StagedFile { temporary, path: self.object_path(namespace, id) }))
    }

    fn settle(&self, namespace: &Namespace) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        // One call for all objects of a pack instead of one for each.
        let path = self.prepare(namespace)?;
        let directory = File::open(&path).map_err(file_error("open", &path))?;
        rustix::fs::syncfs(&directory)
            .map_err(|error| file_error("sync", &path)(io::Error::from(error)))
    }

    fn read_ref(
        &self,
        namespace: &Namespace,
        name: &RefName,
    ) -> Result<Option<Checksum>, StoreError> {
        let path = self.repository(namespace).join(name.path());
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => None,
            result => found(result, "read", &path)?,
        };
        text.map(|text| {
            Checksum::from_hex(text.trim_ascii_end())
                .map_err(|_| StoreError::RefDamaged { name: name.clone() })
        })
        .transpose()
    }

    fn swap_ref(
        &self,
        namespace: &Namespace,
        name: &RefName,
        expected: Option<Checksum>,
        new: Checksum,
    ) -> Result<bool, StoreError> {
        let repository = self.prepare(namespace)?;
        let lock_path = repository.join("state").join("trunkline-refs.lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(file_error("open", &lock_path))?;
        lock.lock().map_err(file_error("lock", &lock_path))?;
        if self.read_ref(namespace, name)? != expected {
            return Ok(false);
        }
        let path = repository.join(name.path());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(file_error("make", parent))?;
        }
        self.settle(namespace)?;
        self.replace(&repository, &path, format!("{new}\n").as_bytes())?;
        Ok(true)
    }

    fn refs(&self, namespace: &Namespace) -> Result<Vec<(RefName, Checksum)>, StoreError> {
        let heads = self.repository(namespace).join("refs/heads");
        let mut refs = Vec::new();
        let mut unread = vec![(heads, String::new())];
        while let Some((directory, prefix)) = unread.pop() {
            let Some(entries) = found(fs::read_dir(&directory), "list", &directory)? else {
                continue;
            };
            for entry in entries {
                let entry = entry.map_err(file_error("list", &directory))?;
                let Ok(component) = entry.file_name().into_string() else { continue };
                let name = format!("{prefix}{component}");
                let kind = entry.file_type().map_err(file_error("look at", &entry.path()))?;
                if kind.is_dir() {
                    unread.push((entry.path(), format!("{name}/")));
                } else if let Ok(name) = name.parse::<RefName>()
                    && let Some(commit) = self.read_ref(namespace, &name)?
                {
                    refs.push((name, commit));
                }
            }
        }
        refs.sort();
        Ok(refs)
    }

    fn read_document(
        &self,
        namespace: &Namespace,
        document: &Document,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.repository(namespace).join(document.path());
        found(fs::read(&path), "read", &path)
    }

    fn write_document(
        &self,
        namespace: &Namespace,
        document: &Document,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let repository = self.prepare(namespace)?;
        let path = repository.join(document.path());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(file_error("make", parent))?;
        }
        self.replace(&repository, &path, data)
    }
}

/// Removes what servers left in `tmp/` that were killed. Young files may be another server's.
fn remove_leftovers(root: &Path) -> Result<(), StoreError> {
    for namespace in fs::read_dir(root).map_err(file_error("list", root))? {
        let temporary = namespace.map_err(file_error("list", root))?.path().join("tmp");
        let Some(entries) = found(fs::read_dir(&temporary), "list", &temporary)? else { continue };
        for entry in entries {
            let entry = entry.map_err(file_error("list", &temporary))?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX);
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|time| time.elapsed().ok());
            if is_ours && age.is_some_and(|age| age > LEFTOVER_AGE) {
                // Another server may have been quicker.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    Ok(())
}

/// A file that is removed unless it gets its name.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: Option<File>,
    renamed: bool,
}

impl Temporary {
    fn create(path: PathBuf) -> Result<Self, StoreError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(file_error("create", &path))?;
        Ok(Self { path, file: Some(file), renamed: false })
    }

    fn write(&mut self, data: &[u8]) -> Result<(), StoreError> {
        let file = self.file.as_mut().expect("invariant: nothing is written once sealed");
        file.write_all(data).map_err(file_error("write", &self.path))
    }

    fn sync(&self) -> Result<(), StoreError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_data().map_err(file_error("sync", &self.path))
    }

    fn rename(mut self, path: &Path) -> Result<(), StoreError> {
        fs::rename(&self.path, path).map_err(file_error("rename", path))?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Left behind it costs space and nothing else.
            let _ = fs::remove_file(&self.path);
        }
    }
}

struct StagedFile {
    temporary: Temporary,
    path: PathBuf,
}

impl Staged for StagedFile {
    fn write(&mut self, data: &[u8]) -> Result<(), StoreError> {
        self.temporary.write(data)
    }

    fn seal(&mut self) -> Result<(), StoreError> {
        // A pack may have more objects than a process may have open files.
        self.temporary.file = None;
        Ok(())
    }

    fn publish(self: Box<Self>) -> Result<(), StoreError> {
        let parent = self.path.parent().expect("invariant: objects lie in a directory");
        match fs::create_dir(parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file_error("make", parent)(error));
            }
            _ => {}
        }
        self.temporary.rename(&self.path)
    }
}

fn stat(metadata: &fs::Metadata) -> Stat {
    let bytes = metadata.len();
    let tag = format!("{bytes:x}-{:x}-{:x}", metadata.mtime(), metadata.mtime_nsec());
    Stat { bytes, tag }
}

/// `None` when the file is not there.
fn found<T>(
    result: io::Result<T>,
    action: &'static str,
    path: &Path,
) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(file_error(action, path)(error)),
    }
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { action, path, source }
}

/// Reads everything that is left.
pub(crate) fn read_all(mut reader: Reader, stat: &Stat) -> Result<Vec<u8>, StoreError> {
    let mut data = Vec::with_capacity(usize::try_from(stat.bytes).unwrap_or(0));
    reader.read_to_end(&mut data).map_err(StoreError::Read)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_a_killed_server_left_goes_after_a_day() {
        let root = tempfile::tempdir().unwrap();
        let temporary = root.path().join("default/tmp");
        fs::create_dir_all(&temporary).unwrap();
        let make = |name: &str, age: Duration| {
            let file = File::create(temporary.join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        make("trunkline-1-1", LEFTOVER_AGE * 2);
        make("trunkline-1-2", LEFTOVER_AGE / 2);
        make("others", LEFTOVER_AGE * 2);
        DirectoryStore::open(root.path(), Durability::Rename).unwrap();
        let mut left: Vec<_> = fs::read_dir(&temporary)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["others", "trunkline-1-2"]);
    }
}
