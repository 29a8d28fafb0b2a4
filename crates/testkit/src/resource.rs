//! What an origin has at a path: bytes, validators, type.

use crate::fixture::sha256_hex;
use bytes::Bytes;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2024-01-01 00:00:00 UTC: a date without a fraction, so that HTTP's one-second dates are exact.
const LAST_MODIFIED_DEFAULT_S: u64 = 1_704_067_200;

/// A named body with its validators. Made with a strong ETag from its content and a fixed
/// Last-Modified date.
#[derive(Clone, Debug)]
pub struct Resource {
    pub(crate) body: Bytes,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<SystemTime>,
    pub(crate) content_type: String,
}

impl Resource {
    /// A resource of type `application/octet-stream`.
    pub fn new(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self {
            etag: Some(format!("\"{}\"", &sha256_hex(&body)[..16])),
            body,
            last_modified: Some(UNIX_EPOCH + Duration::from_secs(LAST_MODIFIED_DEFAULT_S)),
            content_type: "application/octet-stream".to_owned(),
        }
    }

    /// Sends this ETag, quotes included (`"v1"`, `W/"v1"`).
    #[must_use]
    pub fn etag(mut self, etag: &str) -> Self {
        self.etag = Some(etag.to_owned());
        self
    }

    /// Sends no ETag.
    #[must_use]
    pub fn without_etag(mut self) -> Self {
        self.etag = None;
        self
    }

    /// Sends this Last-Modified date, rounded down to whole seconds.
    #[must_use]
    pub fn last_modified(mut self, at: SystemTime) -> Self {
        let whole = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.last_modified = Some(UNIX_EPOCH + Duration::from_secs(whole));
        self
    }

    /// Sends no Last-Modified date.
    #[must_use]
    pub fn without_last_modified(mut self) -> Self {
        self.last_modified = None;
        self
    }

    /// Sends this Content-Type.
    #[must_use]
    pub fn content_type(mut self, value: &str) -> Self {
        value.clone_into(&mut self.content_type);
        self
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}
