//! Reads the indexes of all repositories at once over one pool.

use std::{
    io,
    path::{Path, PathBuf},
};

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::PRAGMA};
use trunkline_proto::cran::{self, ArchiveIndex, Limits, StringMatrix, read_index};
use trunkline_transfer::{Engine, Request};
use url::Url;

use crate::{
    index::RepositoryIndex,
    repository::{join_local, local_path},
};

/// Largest index or archive listing fetched, in bytes as served. CRAN's are 1 and 4 MB.
pub const INDEX_BYTES_MAX: u64 = 128 << 20;

/// An index's spellings, in the order in which R tries them.
const SPELLINGS: [&str; 3] = ["PACKAGES.rds", "PACKAGES.gz", "PACKAGES"];
const ARCHIVE_LISTING: &str = "Meta/archive.rds";

/// Why a repository's index or archive listing could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The repository's URL is none.
    #[error("\u{2018}{url}\u{2019} is not the URL of a repository: {source}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        #[source]
        source: url::ParseError,
    },
    /// The repository could not be reached.
    #[error(transparent)]
    Transfer(#[from] trunkline_transfer::Error),
    /// The repository answered with a status that says no (R: "cannot open URL").
    #[error("cannot open URL '{url}': HTTP status was '{status}'")]
    Status {
        /// The file asked for, without credentials.
        url: String,
        /// The answer.
        status: StatusCode,
    },
    /// The file is not what its format demands.
    #[error("cannot read {place}: {source}")]
    Format {
        /// URL or path of the file.
        place: String,
        /// Which rule it breaks.
        #[source]
        source: cran::Error,
    },
    /// A file of a `file:` repository cannot be read.
    #[error("cannot open file '{}': {source}", path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl IndexError {
    /// Whether another spelling of the index may still be there.
    fn is_about_this_file(&self) -> bool {
        match self {
            Self::Status { status, .. } => {
                *status != StatusCode::UNAUTHORIZED
                    && *status != StatusCode::PROXY_AUTHENTICATION_REQUIRED
            }
            Self::Format { .. } => true,
            Self::Local { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Transfer(error) => error.kind.status().is_some(),
            Self::Url { .. } => false,
        }
    }
}

/// What to send along with requests for indexes.
#[derive(Clone, Debug, Default)]
pub struct IndexRequest {
    /// Headers beyond the engine's own.
    pub headers: HeaderMap,
    /// Let caches on the way answer; R does not (`cacheOK = FALSE`).
    pub cache_ok: bool,
    /// Bounds on what an index may expand to.
    pub limits: Limits,
}

/// Reads one index for each folder, all at once; results are in the order of the folders.
///
/// R tries `PACKAGES.rds`, then `.gz`, then the plain file, and so does this; but a repository
/// that cannot be reached at all, or wants credentials, is asked once and not three times.
pub async fn read_indexes(
    engine: &Engine,
    contrib_urls: &[String],
    request: &IndexRequest,
) -> Vec<Result<RepositoryIndex, IndexError>> {
    join_all(contrib_urls.iter().map(|contrib_url| async move {
        let table = read_one(engine, contrib_url, request).await?;
        Ok(RepositoryIndex { contrib_url: contrib_url.clone(), table })
    }))
    .await
}

/// Reads a repository's listing of superseded versions.
///
/// # Errors
/// [`IndexError`]; with status 404, or `NotFound` for a local repository, when it has none.
pub async fn read_archive(
    engine: &Engine,
    contrib_url: &str,
    request: &IndexRequest,
) -> Result<ArchiveIndex, IndexError> {
    let (place, bytes) = read_file(engine, contrib_url, ARCHIVE_LISTING, request).await?;
    decode(place, bytes, request.limits, ArchiveIndex::read).await
}

async fn read_one(
    engine: &Engine,
    contrib_url: &str,
    request: &IndexRequest,
) -> Result<StringMatrix, IndexError> {
    let mut spellings = SPELLINGS.iter().peekable();
    loop {
        let spelling = spellings.next().expect("the last spelling's failure returns");
        let read = async {
            let (place, bytes) = read_file(engine, contrib_url, spelling, request).await?;
            decode(place, bytes, request.limits, read_index).await
        };
        match read.await {
            Err(error) if error.is_about_this_file() && spellings.peek().is_some() => {
                tracing::debug!(%error, "trying the index in another spelling");
            }
            result => return result,
        }
    }
}

/// The bytes of a file of a repository, with its place for messages.
async fn read_file(
    engine: &Engine,
    contrib_url: &str,
    file: &str,
    request: &IndexRequest,
) -> Result<(String, Vec<u8>), IndexError> {
    match local_path(contrib_url) {
        Some(folder) => read_local(folder, file).await,
        None => read_remote(engine, contrib_url, file, request).await,
    }
}

async fn read_local(folder: &Path, file: &str) -> Result<(String, Vec<u8>), IndexError> {
    let path = join_local(folder, file);
    match tokio::fs::read(&path).await {
        Ok(bytes) => Ok((path.display().to_string(), bytes)),
        Err(source) => Err(IndexError::Local { path, source }),
    }
}

async fn read_remote(
    engine: &Engine,
    contrib_url: &str,
    file: &str,
    request: &IndexRequest,
) -> Result<(String, Vec<u8>), IndexError> {
    let url = Url::parse(&format!("{contrib_url}/{file}"))
        .map_err(|source| IndexError::Url { url: contrib_url.to_owned(), source })?;
    let mut headers = request.headers.clone();
    if !request.cache_ok {
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    }
    let ask =
        Request { headers, reply_bytes_max: INDEX_BYTES_MAX, ..Request::new(Method::GET, url) };
    let reply = engine.send(ask).await?;
    let place = reply.url.to_string();
    if reply.status.is_success() {
        Ok((place, reply.body.to_vec()))
    } else {
        Err(IndexError::Status { url: place, status: reply.status })
    }
}

/// Decodes away from the thread that moves bytes: CRAN's index takes a tenth of a second.
async fn decode<T: Send + 'static>(
    place: String,
    bytes: Vec<u8>,
    limits: Limits,
    read: fn(&[u8], &Limits) -> Result<T, cran::Error>,
) -> Result<T, IndexError> {
    let decoded = tokio::task::spawn_blocking(move || read(&bytes, &limits)).await;
    match decoded {
        Ok(result) => result.map_err(|source| IndexError::Format { place, source }),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Only a runtime that shuts down cancels blocking work; whoever waited is gone too.
        Err(_) => Err(IndexError::Local {
            path: place.into(),
            source: io::Error::new(io::ErrorKind::Interrupted, "stopped"),
        }),
    }
}
