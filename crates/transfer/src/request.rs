//! One request with its small answer: what the faces use beside whole files.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

/// Largest answer read into memory unless the caller says otherwise, in bytes.
pub const REPLY_BYTES_MAX_DEFAULT: u64 = 16 << 20;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL, http or https.
    pub url: Url,
    /// Headers for the URL's origin; they do not follow a redirect elsewhere.
    pub headers: HeaderMap,
    /// What is sent.
    pub payload: Payload,
    /// Whether sending it twice is as good as once. GET, HEAD, PUT, DELETE, OPTIONS are by
    /// definition (RFC 9110 §9.2.2); a POST is when the caller says so.
    pub idempotent: bool,
    /// Largest answer accepted, in bytes.
    pub reply_bytes_max: u64,
}

impl Request {
    /// A request without headers and payload.
    pub fn new(method: Method, url: Url) -> Self {
        let idempotent = method.is_idempotent();
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            payload: Payload::Empty,
            idempotent,
            reply_bytes_max: REPLY_BYTES_MAX_DEFAULT,
        }
    }
}

/// What a request sends. Each attempt starts from the beginning, so a payload can be read again.
#[derive(Clone, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A file, read while it is sent; it must keep its length meanwhile.
    File(PathBuf),
    /// Bytes made while they are sent.
    Stream(Arc<dyn PayloadSource>),
}

/// Makes a payload anew for each attempt.
pub trait PayloadSource: Send + Sync {
    /// The exact length in bytes.
    fn length(&self) -> u64;

    /// Starts from the beginning.
    ///
    /// # Errors
    /// Whatever prevents reading it; the transfer then fails as a local error.
    fn open(&self) -> std::io::Result<Box<dyn trunkline_transport::BodySource>>;
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Stream(source) => write!(f, "Stream({})", source.length()),
        }
    }
}

/// A complete answer. Every final status is an answer; only the caller knows which are good.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, of exactly the announced length.
    pub body: Bytes,
    /// The URL that answered, after redirects.
    pub url: Url,
}
