//! Walks a commit's closure through a store.

use trunkline_proto::ostree::{Checksum, Closure, ClosureError, ObjectId, ObjectKind, VerifyError};

use crate::reply::Failure;
use crate::routes::Namespace;
use crate::service::Treehub;
use crate::store::{StoreError, read_all};

/// What a walk tells about each object, in order.
pub(crate) enum Found {
    /// It is reachable. Whether it is there is known only for commits and dirtrees, later.
    Object(ObjectId),
    /// A commit or dirtree that is needed and not there.
    Missing(ObjectId),
    /// A commit or dirtree that is there and broken.
    Broken(ObjectId, String),
}

/// Why a walk stopped.
pub(crate) enum Stop {
    Store(StoreError),
    /// The closure grows too large.
    Limit(String),
    /// Whoever listens wants no more.
    Listener(std::io::Error),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Store(error) => error.into(),
            Stop::Limit(text) => {
                Self::new(http::StatusCode::PAYLOAD_TOO_LARGE, "closure_too_large", text)
            }
            Stop::Listener(error) => Self::bad_request(error.to_string()),
        }
    }
}

impl From<Stop> for std::io::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Store(error) => Self::other(error),
            Stop::Limit(text) => Self::other(text),
            Stop::Listener(error) => error,
        }
    }
}

/// A walk that goes on from commit to commit and tells of each object once.
pub(crate) struct Walk<'a> {
    hub: &'a Treehub,
    namespace: &'a Namespace,
    closure: Closure,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(hub: &'a Treehub, namespace: &'a Namespace) -> Self {
        Self { hub, namespace, closure: Closure::new(hub.inner.settings.closure) }
    }

    /// Walks one more commit.
    pub(crate) fn commit(
        &mut self,
        commit: Checksum,
        parents_max: u32,
        tell: &mut dyn FnMut(Found) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let limit = |error: ClosureError| Stop::Limit(error.to_string());
        let mut found = Vec::new();
        self.closure.want(commit, parents_max, &mut found).map_err(limit)?;
        loop {
            for id in found.drain(..) {
                // A parent that is not there was never promised; it is told once it was seen.
                if !self.closure.is_optional(id) {
                    tell(Found::Object(id))?;
                }
            }
            let Some(id) = self.closure.next() else { return Ok(()) };
            let optional = self.closure.is_optional(id);
            let Some((stat, reader)) = self.hub.inner.store.open(self.namespace, &id, 0)? else {
                if !optional {
                    tell(Found::Missing(id))?;
                }
                continue;
            };
            if stat.bytes > self.hub.inner.settings.verify.metadata_bytes_max {
                let max = self.hub.inner.settings.verify.metadata_bytes_max;
                tell(Found::Broken(id, VerifyError::TooLong { max }.to_string()))?;
                continue;
            }
            if optional {
                tell(Found::Object(id))?;
            }
            let data = read_all(reader, &stat)?;
            match self.closure.feed(id, &data, &mut found) {
                Ok(()) => {}
                Err(ClosureError::Format { source, .. }) => {
                    tell(Found::Broken(id, source.to_string()))?;
                }
                Err(error) => return Err(limit(error)),
            }
        }
    }

    /// Walks a commit that somebody has, so that nothing of it is told later.
    pub(crate) fn forget(&mut self, commit: Checksum) -> Result<(), Stop> {
        let id = ObjectId::new(commit, ObjectKind::Commit);
        if self.hub.inner.store.stat(self.namespace, &id)?.is_none() {
            return Ok(());
        }
        self.commit(commit, 0, &mut |_| Ok(()))
    }
}
