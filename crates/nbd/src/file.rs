//! A local image file, read-only. Reads name parts of the file; the session has the kernel send
//! them.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;

use crate::content::{Content, FileSlice, NamedFile, Piece, blocking};
use crate::error::Error;
use crate::export::{Export, Extent, ExtentKind, Verb, push_extent};

/// Most extents found by one query; the client asks again from where the answer ends.
const EXTENTS_MAX: usize = 4096;

/// An image in a local file or block device.
#[derive(Debug)]
pub struct FileExport {
    file: Arc<NamedFile>,
    size: u64,
    identity: String,
}

impl FileExport {
    /// Opens `path` for reading. Blocks.
    ///
    /// # Errors
    /// [`Error::Local`] when it cannot be opened or measured.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name: Arc<str> = path.display().to_string().into();
        let measured = || {
            let file = File::open(path)?;
            // The end of a block device is found by seeking; its metadata says zero.
            let size = seek(&file, SeekFrom::End(0))?;
            let meta = file.metadata()?;
            if meta.is_dir() {
                return Err(std::io::ErrorKind::IsADirectory.into());
            }
            Ok((file, size, meta))
        };
        let (file, size, meta) = measured().map_err(|error| Error::local(&name, error))?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let identity = format!(
            "file:{} {} {} {}.{:09}",
            path.display(),
            meta.ino(),
            size,
            meta.mtime(),
            meta.mtime_nsec()
        );
        Ok(Self { file: Arc::new(NamedFile { file, name }), size, identity })
    }
}

impl Export for FileExport {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        let file = Arc::clone(&self.file);
        let slice = FileSlice { file, offset, length: u64::from(length) };
        Box::pin(std::future::ready(Ok(Piece::File(slice).into())))
    }

    fn extents(&self, offset: u64, length: u64) -> Verb<'_, Vec<Extent>> {
        let (file, size) = (Arc::clone(&self.file), self.size);
        Box::pin(blocking(move || {
            file_extents(&file.file, offset, length, size)
                .map_err(|error| Error::local(&file.name, error.into()))
        }))
    }

    fn prefetch(&self, offset: u64, length: u64) -> Verb<'_, ()> {
        let advised =
            fadvise(&self.file.file, offset, std::num::NonZero::new(length), Advice::WillNeed);
        let advised = advised.map_err(|error| Error::local(&self.file.name, error.into()));
        Box::pin(std::future::ready(advised))
    }

    fn identity(&self) -> Option<String> {
        Some(self.identity.clone())
    }
}

/// Data and holes of a file. The shared file position it moves is used for nothing else.
pub(crate) fn file_extents(
    file: &File,
    offset: u64,
    length: u64,
    size: u64,
) -> Result<Vec<Extent>, Errno> {
    let end = offset + length;
    let mut extents = Vec::new();
    let mut at = offset;
    while at < end && extents.len() < EXTENTS_MAX {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(size),
            Err(Errno::NXIO) => size,
            // A file system that knows no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error),
        };
        push_extent(&mut extents, Extent { length: data - at, kind: ExtentKind::Hole });
        at = data;
        if at >= end {
            break;
        }
        let hole = match seek(file, SeekFrom::Hole(at)) {
            Ok(hole) => hole.min(size),
            Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => size,
            Err(error) => return Err(error),
        };
        // A file that is changed under us may answer oddly; never stand still.
        let hole = if hole > at { hole } else { size };
        push_extent(&mut extents, Extent { length: hole - at, kind: ExtentKind::Data });
        at = hole;
    }
    Ok(extents)
}
