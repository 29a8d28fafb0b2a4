//! Why a lease could not be had.

use std::sync::Arc;

use thiserror::Error;
use trunkline_transport as transport;

/// Why no connection can carry a request.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection could be made; all that waited for it get the same error.
    #[error(transparent)]
    Dial(Arc<transport::Error>),
    /// The pool was closed while the request waited.
    #[error("the pool is closed")]
    Closed,
}
