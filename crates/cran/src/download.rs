//! Brings the files of a plan, from the first place that has them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{Stream, StreamExt as _, stream};
use http::HeaderMap;
use trunkline_proto::digest::{Algorithm, Digest, Hasher};
use trunkline_transfer::{Engine, Existing, Job, JobId, Observer};
use url::Url;

use crate::plan::{Candidate, Digests, PackagePlan, Place};

/// How files are brought.
#[derive(Clone)]
pub struct DownloadOptions {
    /// The folder they go to; it must exist.
    pub destination: PathBuf,
    /// Headers beyond the engine's own.
    pub headers: HeaderMap,
    /// Transfers under way at a time.
    pub in_flight_max: usize,
    /// Leave files alone that are there already and have the right checksum.
    pub keep_complete: bool,
    /// Who is told about progress; jobs are numbered as the plans are.
    pub observer: Arc<dyn Observer>,
}

/// Why no place had a package's file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The last place's transfer failed.
    #[error(transparent)]
    Transfer(#[from] Arc<trunkline_transfer::Error>),
    /// The place's URL is none.
    #[error("\u{2018}{url}\u{2019} is not a URL: {source}")]
    Url {
        /// What the plan said.
        url: String,
        /// What is wrong with it.
        #[source]
        source: url::ParseError,
    },
    /// The file is not in the local repository (R: "package ... does not exist on the local
    /// repository").
    #[error("cannot open file '{}': {source}", path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file in the local repository is not the one its index describes.
    #[error("the checksum of {} is {actual} where its index says {expected}", path.display())]
    LocalChecksum {
        /// The file.
        path: PathBuf,
        /// What the index says.
        expected: Box<Digest>,
        /// What the file has.
        actual: Box<Digest>,
    },
    /// The plan names no place.
    #[error("no repository to get it from")]
    Nowhere,
}

/// Brings all files, several at a time; yields each plan's number with where its file is, as they
/// end.
///
/// A file of a local repository stays where it is, as in R. Everything else ends in the
/// destination folder, verified against the index it was planned from; a file that is not the one
/// described never gets its name there.
pub fn download<'a>(
    engine: &'a Engine,
    plans: &'a [PackagePlan],
    options: &'a DownloadOptions,
) -> impl Stream<Item = (usize, Result<PathBuf, DownloadError>)> + 'a {
    let one = move |(number, plan): (usize, &'a PackagePlan)| async move {
        (number, download_one(engine, number as JobId, plan, options).await)
    };
    stream::iter(plans.iter().enumerate()).map(one).buffer_unordered(options.in_flight_max.max(1))
}

async fn download_one(
    engine: &Engine,
    id: JobId,
    plan: &PackagePlan,
    options: &DownloadOptions,
) -> Result<PathBuf, DownloadError> {
    let mut failed = DownloadError::Nowhere;
    for group in plan.candidates.chunk_by(can_stand_in) {
        let result = match &group[0].place {
            Place::Local(path) => use_local(path.clone(), &group[0].digests).await,
            Place::Remote(_) => fetch(engine, id, plan, group, options).await,
        };
        match result {
            Ok(path) => return Ok(path),
            Err(error) => {
                tracing::debug!(package = plan.name, %error, "one place less");
                failed = error;
            }
        }
    }
    Err(failed)
}

/// Whether two places can be tried in one transfer: both remote, with the same bytes.
fn can_stand_in(one: &Candidate, other: &Candidate) -> bool {
    matches!((&one.place, &other.place), (Place::Remote(_), Place::Remote(_)))
        && one.digests == other.digests
}

async fn fetch(
    engine: &Engine,
    id: JobId,
    plan: &PackagePlan,
    group: &[Candidate],
    options: &DownloadOptions,
) -> Result<PathBuf, DownloadError> {
    let mut urls = Vec::with_capacity(group.len());
    for candidate in group {
        let Place::Remote(url) = &candidate.place else { continue };
        let parsed = Url::parse(url);
        urls.push(parsed.map_err(|source| DownloadError::Url { url: url.clone(), source })?);
    }
    let mirrors = urls.split_off(1);
    let url = urls.pop().ok_or(DownloadError::Nowhere)?;
    let check = expected(&group[0].digests);
    let existing = match (options.keep_complete, check) {
        (true, Some(_)) => Existing::Keep,
        _ => Existing::Replace,
    };
    let job = Job {
        mirrors,
        headers: options.headers.clone(),
        check,
        existing,
        refuse_html: true,
        ..Job::new(url, options.destination.join(&plan.file_name))
    };
    engine.fetch(id, &job, &options.observer).await?;
    Ok(job.destination)
}

/// The strongest digest an index gives; its form was checked when the plan was made.
fn expected(digests: &Digests) -> Option<Digest> {
    let sha256 = digests.sha256.as_ref().map(|hex| format!("sha256:{hex}"));
    let md5 = digests.md5.as_ref().map(|hex| format!("md5:{hex}"));
    sha256.or(md5).and_then(|text| text.parse().ok())
}

async fn use_local(path: PathBuf, digests: &Digests) -> Result<PathBuf, DownloadError> {
    let check = expected(digests);
    let checked = path.clone();
    let work = move || -> Result<(), DownloadError> {
        let fail = |source| DownloadError::Local { path: checked.clone(), source };
        let file = std::fs::File::open(&checked).map_err(fail)?;
        let Some(expected) = check else { return Ok(()) };
        let actual = hash(file, expected.algorithm()).map_err(fail)?;
        if actual == expected {
            Ok(())
        } else {
            let (expected, actual) = (Box::new(expected), Box::new(actual));
            Err(DownloadError::LocalChecksum { path: checked.clone(), expected, actual })
        }
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map(|()| path),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(DownloadError::Nowhere),
    }
}

/// The digest of a file that is there, for lock files.
///
/// # Errors
/// Whatever prevents reading it.
pub fn digest_of(path: &Path, algorithm: Algorithm) -> io::Result<Digest> {
    hash(std::fs::File::open(path)?, algorithm)
}

fn hash(mut file: std::fs::File, algorithm: Algorithm) -> io::Result<Digest> {
    /// Bytes read at a time.
    const BLOCK_BYTES: usize = 256 << 10;
    let mut hasher = Hasher::new(algorithm);
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        match io::Read::read(&mut file, &mut block)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&block[..read]),
        }
    }
}
