//! From what was typed to open exports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderMap;
use trunkline_nbd::wrap::{
    self, CACHE_BYTES_DEFAULT, Cache, CacheCounts, Overlay, ReadAhead, ReadAheadCounts,
    ReadAheadLimits, View,
};
use trunkline_nbd::{Catalogue, Entry, Export, FileExport, RemoteExport};
use trunkline_transfer::Engine;
use url::Url;

use super::args::{ImageArgs, NbdArgs, parse_size};
use super::outcome::NbdError;

/// The exports, and what can tell about them.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) catalogue: Catalogue,
    read_ahead: Vec<Arc<ReadAhead>>,
    caches: Vec<Arc<Cache>>,
}

impl Opened {
    /// Opens every image named on the command line.
    pub(crate) async fn all(args: &NbdArgs, engine: &Engine) -> Result<Self, NbdError> {
        let mut opened = Self::default();
        let images = usize::from(args.url.is_some()) + args.exports.len();
        if images > 1 && args.image.overlay.as_ref().is_some_and(|path| path.as_os_str() != TMP) {
            return Err(NbdError::SharedOverlay);
        }
        if let Some(text) = &args.url {
            opened.add(args, engine, &args.export_name, text).await?;
        }
        for export in &args.exports {
            let wrong = || NbdError::Export { text: export.clone() };
            let (name, text) = export.split_once('=').ok_or_else(wrong)?;
            opened.add(args, engine, name, text).await?;
        }
        Ok(opened)
    }

    /// Makes what clients wrote durable, whether or not they asked for it.
    pub(crate) async fn flush(&self) -> Result<(), NbdError> {
        for entry in self.catalogue.entries() {
            if let Some(writable) = entry.export.writable() {
                writable.flush().await?;
            }
        }
        Ok(())
    }

    /// The counters of all read-ahead together.
    pub(crate) fn read_ahead(&self) -> ReadAheadCounts {
        let sum = |sum: ReadAheadCounts, one: ReadAheadCounts| ReadAheadCounts {
            hits: sum.hits + one.hits,
            direct: sum.direct + one.direct,
            chunks: sum.chunks + one.chunks,
        };
        self.read_ahead.iter().map(|one| one.counts()).fold(ReadAheadCounts::default(), sum)
    }

    /// The counters of all caches together.
    pub(crate) fn cache(&self) -> CacheCounts {
        let sum = |sum: CacheCounts, one: CacheCounts| CacheCounts {
            hit_bytes: sum.hit_bytes + one.hit_bytes,
            miss_bytes: sum.miss_bytes + one.miss_bytes,
        };
        self.caches.iter().map(|one| one.counts()).fold(CacheCounts::default(), sum)
    }

    async fn add(
        &mut self,
        args: &NbdArgs,
        engine: &Engine,
        name: &str,
        text: &str,
    ) -> Result<(), NbdError> {
        if self.catalogue.entries().iter().any(|entry| entry.name == name) {
            return Err(NbdError::SameName { name: name.to_owned() });
        }
        let (export, description) = self.open(args, engine, text).await?;
        let export = wrapped(&args.image, export).await?;
        self.catalogue.add(Entry { name: name.to_owned(), description, export });
        Ok(())
    }

    async fn open(
        &mut self,
        args: &NbdArgs,
        engine: &Engine,
        text: &str,
    ) -> Result<(Arc<dyn Export>, String), NbdError> {
        let Some(url) = url(text)? else {
            let export: Arc<dyn Export> = Arc::new(FileExport::open(Path::new(text))?);
            return Ok((export, text.to_owned()));
        };
        if url.scheme() == "file" {
            let wrong = |()| NbdError::Source { text: text.to_owned() };
            let path = url.to_file_path().map_err(wrong)?;
            let export: Arc<dyn Export> = Arc::new(FileExport::open(&path)?);
            return Ok((export, path.display().to_string()));
        }
        let remote = RemoteExport::open(engine, &url, HeaderMap::new()).await?;
        let mut export: Arc<dyn Export> = Arc::new(remote);
        if let Some(text) = &args.image.cache {
            let (folder, bytes_max) = cache_place(text);
            let cache = Arc::new(Cache::open(export, &folder, bytes_max)?);
            self.caches.push(Arc::clone(&cache));
            export = cache;
        }
        // What clients are told must not show credentials or signatures.
        let description = trunkline_transfer::SafeUrl::new(&url).to_string();
        if args.image.no_read_ahead {
            return Ok((export, description));
        }
        let limits = ReadAheadLimits::default();
        let ahead = Arc::new(ReadAhead::new(export, limits));
        self.read_ahead.push(Arc::clone(&ahead));
        Ok((ahead, description))
    }
}

/// Folder and bound of `DIR[:SIZE]`. What follows the last colon is a part of the folder's name
/// unless it is a size.
fn cache_place(text: &str) -> (PathBuf, u64) {
    match text.rsplit_once(':').map(|(folder, size)| (folder, parse_size(size))) {
        Some((folder, Ok(bytes_max))) => (folder.into(), bytes_max),
        _ => (text.into(), CACHE_BYTES_DEFAULT),
    }
}

/// The value of --overlay that is no file.
const TMP: &str = "tmp";

/// What the arguments make of an image.
async fn wrapped(
    args: &ImageArgs,
    mut export: Arc<dyn Export>,
) -> Result<Arc<dyn Export>, NbdError> {
    if let Some(number) = args.partition {
        export = Arc::new(wrap::partition(export, number).await?);
    }
    if args.offset > 0 || args.size.is_some() {
        export = Arc::new(View::new(export, args.offset, args.size)?);
    }
    Ok(match &args.overlay {
        None => export,
        Some(path) if path.as_os_str() == TMP => Arc::new(Overlay::temporary(export)?),
        Some(path) => Arc::new(Overlay::open(export, path)?),
    })
}

/// The URL in `text`; `None` when it is a path.
fn url(text: &str) -> Result<Option<Url>, NbdError> {
    let is_url = text.contains("://") || text.starts_with("file:");
    if !is_url {
        return Ok(None);
    }
    let wrong = || NbdError::Source { text: text.to_owned() };
    let url = Url::parse(text).map_err(|_| wrong())?;
    if matches!(url.scheme(), "http" | "https" | "file") { Ok(Some(url)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_may_name_its_size() {
        assert_eq!(cache_place("/var/cache:2G"), ("/var/cache".into(), 2 << 30));
        assert_eq!(cache_place("/a:b"), ("/a:b".into(), CACHE_BYTES_DEFAULT));
        assert_eq!(cache_place("/a"), ("/a".into(), CACHE_BYTES_DEFAULT));
    }

    #[test]
    fn paths_and_urls_are_told_apart() {
        assert!(url("/dev/disk:1").unwrap().is_none());
        assert!(url("image.raw").unwrap().is_none());
        assert_eq!(url("file:/a").unwrap().unwrap().scheme(), "file");
        assert!(url("https://h/i").unwrap().is_some());
        assert!(url("ftp://h/i").is_err());
        assert!(url("https://").is_err());
    }
}
