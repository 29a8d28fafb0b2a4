//! What can go wrong while an image is served.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use thiserror::Error;
use trunkline_proto::nbd::{HeaderError, Violation, WireError};

/// A failed operation on an export. Cheap to clone, since several readers may wait for one fetch.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A local file could not be used.
    #[error("{name}: {source}")]
    Local {
        /// The file, as the user knows it.
        name: Arc<str>,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The source ended before the size that it stated when it was opened.
    #[error("{name} became shorter while it was served; open it again")]
    Shrunk {
        /// The source, as the user knows it.
        name: Arc<str>,
    },
    /// The server of a remote image failed or cannot be trusted.
    #[error(transparent)]
    Remote(Arc<trunkline_transfer::Error>),
    /// A write to an export that takes none.
    #[error("the export is read-only; serve it with an overlay to write")]
    ReadOnly,
    /// Zeroes were asked for on condition that they are quick, and they are not.
    #[error("zeroes cannot be written faster than data here")]
    NotFast,
    /// A task of this program ended before its work was done.
    #[error("the server is stopping")]
    Stopping,
}

impl Error {
    pub(crate) fn local(name: &Arc<str>, source: io::Error) -> Self {
        Self::Local { name: Arc::clone(name), source: Arc::new(source) }
    }

    /// The code that a client is told.
    pub fn wire(&self) -> WireError {
        match self {
            Self::Local { source, .. } => match source.raw_os_error().map(Errno::from_raw_os_error)
            {
                // The protocol's advice: quota and file size limits count as a full disk.
                Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => WireError::NoSpace,
                Some(Errno::NOMEM) => WireError::NoMemory,
                _ => WireError::Io,
            },
            Self::Shrunk { .. } | Self::Remote(_) => WireError::Io,
            Self::ReadOnly => WireError::NotPermitted,
            Self::NotFast => WireError::NotSupported,
            Self::Stopping => WireError::Shutdown,
        }
    }
}

/// Why a client's session ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The connection broke.
    #[error("the connection to the client broke: {0}")]
    Connection(#[from] io::Error),
    /// TLS could not be started.
    #[error(transparent)]
    Tls(#[from] trunkline_listen::Error),
    /// The client broke the rules of the handshake.
    #[error(transparent)]
    Handshake(#[from] Violation),
    /// The client broke the framing of requests.
    #[error(transparent)]
    Frame(#[from] HeaderError),
    /// The client announced more payload than was agreed.
    #[error("the client announced a payload of {0} bytes")]
    Payload(u64),
    /// The server's policy offers TLS that it was not given.
    #[error("TLS is offered but not set up; this is a fault of the server")]
    TlsNotConfigured,
    /// The client did not finish the handshake in time.
    #[error("the client did not finish the handshake in time")]
    HandshakeTimeout,
    /// The source failed after parts of a reply had been sent that cannot be taken back.
    #[error("a reply could not be completed: {0}")]
    ReplyCut(Error),
    /// A request's task ended without an answer.
    #[error("a request ended without an answer")]
    RequestLost,
}
