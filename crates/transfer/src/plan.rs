//! What to transfer, as plain data.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use trunkline_proto::digest::Digest;
use url::Url;

/// One file to bring.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where it comes from: http, https or file.
    pub url: Url,
    /// Other places with the same bytes, tried in order when the first fails.
    pub mirrors: Vec<Url>,
    /// Headers for this job's origin; they do not follow a redirect to another origin.
    pub headers: HeaderMap,
    /// The file's final path. Its folder must exist.
    pub destination: PathBuf,
    /// Where the bytes go instead: an open pipe, terminal or file, written at its cursor as they
    /// come. What was written cannot be taken back; `destination` is only its name in messages.
    pub output: Option<Arc<File>>,
    /// What the bytes must hash to.
    pub check: Option<Digest>,
    /// What to do with a destination that exists.
    pub existing: Existing,
    /// Refuse a `text/html` answer: a login or block page in place of a file.
    pub refuse_html: bool,
    /// Which lane to begin on.
    pub lane: LaneChoice,
    /// Time for the whole job, all attempts included.
    pub time_max: Option<Duration>,
}

impl Job {
    /// A job with defaults for the rest.
    pub fn new(url: Url, destination: PathBuf) -> Self {
        Self {
            url,
            mirrors: Vec::new(),
            headers: HeaderMap::new(),
            destination,
            output: None,
            check: None,
            existing: Existing::Replace,
            refuse_html: false,
            lane: LaneChoice::Object,
            time_max: None,
        }
    }
}

/// What to do with a destination that exists before the transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Replace it once the new file is complete and verified.
    #[default]
    Replace,
    /// Leave it alone when it is complete: its checksum is right or, without a checksum, the
    /// server's file has the same size and is not newer. Else as `Replace`.
    Keep,
}

/// Which lane a transfer begins on; a large body moves to the range lane by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneChoice {
    /// One of many: HTTP/2 streams where the server has them.
    #[default]
    Object,
    /// Alone and perhaps large: HTTP/1.1 read straight into buffers.
    Range,
}
