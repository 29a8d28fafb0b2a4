//! `file:` URLs: copied with the same guarantees as a download.

use std::fs::File;
use std::sync::Arc;

use trunkline_proto::digest::Hasher;
use trunkline_proto::file_name::file_url_to_path;
use url::Url;

use crate::blocking;
use crate::download::check_digest;
use crate::engine::Engine;
use crate::error::ErrorKind;
use crate::event::{Event, JobId, Observer, Receipt};
use crate::partial::{Partial, Target, file_error};
use crate::plan::Job;

/// Bytes copied at once.
const BLOCK_BYTES: usize = 1 << 20;

pub(crate) async fn copy(
    engine: &Engine,
    id: JobId,
    job: &Job,
    url: &Url,
    observer: &Arc<dyn Observer>,
) -> Result<Receipt, ErrorKind> {
    let source = file_url_to_path(url.as_str())
        .map_err(|_| ErrorKind::Url { reason: "only file: URLs of this machine can be read" })?;
    let copying = Copying {
        source: source.into(),
        check: job.check,
        fsync: engine.inner.settings.files.fsync,
        id,
        observer: Arc::clone(observer),
    };
    let url = url.clone();
    let bytes = match &Target::of(job)? {
        Target::File(destination) => {
            let destination = destination.clone();
            blocking::run(move || copying.to_file(&destination, &url)).await?
        }
        Target::Device(device) => {
            let device = device.clone();
            blocking::run(move || copying.run(&*device.open()?)).await?
        }
    };
    Ok(Receipt {
        bytes,
        bytes_received: 0,
        attempts: 1,
        unchanged: false,
        elapsed: std::time::Duration::ZERO,
    })
}

struct Copying {
    source: std::path::PathBuf,
    check: Option<trunkline_proto::digest::Digest>,
    fsync: bool,
    id: JobId,
    observer: Arc<dyn Observer>,
}

impl Copying {
    fn to_file(&self, destination: &std::path::Path, url: &Url) -> Result<u64, ErrorKind> {
        let (mut partial, _) = Partial::open(destination, url)?;
        partial.restart()?;
        let bytes = self.run(partial.file())?;
        partial.commit(self.fsync)?;
        Ok(bytes)
    }

    fn run(&self, mut to: &File) -> Result<u64, ErrorKind> {
        use std::io::{Read as _, Write as _};
        let read_error = |source| file_error("read", &self.source, source);
        let mut from = File::open(&self.source).map_err(read_error)?;
        let metadata = from.metadata().map_err(read_error)?;
        if metadata.is_dir() {
            return Err(read_error(std::io::ErrorKind::IsADirectory.into()));
        }
        let length = metadata.is_file().then_some(metadata.len());
        self.observer.event(self.id, Event::Head { length, resumed_from: 0 });
        let mut hasher = self.check.map(|check| Hasher::new(check.algorithm()));
        let mut block = vec![0; BLOCK_BYTES];
        let mut bytes = 0;
        loop {
            let read = from.read(&mut block).map_err(read_error)?;
            if read == 0 {
                break;
            }
            if let Some(hasher) = &mut hasher {
                hasher.update(&block[..read]);
            }
            to.write_all(&block[..read])
                .map_err(|source| file_error("write", std::path::Path::new("copy"), source))?;
            bytes += read as u64;
            self.observer.event(self.id, Event::Received { bytes: read as u64 });
        }
        if let (Some(expected), Some(hasher)) = (self.check, hasher) {
            check_digest(expected, hasher.finish())?;
        }
        Ok(bytes)
    }
}
