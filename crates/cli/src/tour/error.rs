//! What can keep the tour from its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use trunkline_transfer as transfer;
use trunkline_transport::TlsSetupError;

/// Why the tour did not come to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum TourError {
    /// The files would not fit into memory with ease.
    #[error("the files would have more than {bytes_max} bytes in all; ask for fewer or smaller")]
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// The throw-away certificate could not be made.
    #[error("cannot make the certificate of the tour's server: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The TLS server could not be set up.
    #[error("cannot set up the TLS of the tour's server: {0}")]
    Tls(#[from] rustls::Error),
    /// The client could not be told to trust the tour's server.
    #[error("cannot set up TLS: {0}")]
    Trust(#[from] TlsSetupError),
    /// The server found no place on the loopback address.
    #[error("cannot start the tour's server: {0}")]
    Listen(#[from] trunkline_listen::Error),
    /// The server got no thread.
    #[error("cannot start the tour's server: {0}")]
    Thread(#[source] io::Error),
    /// The temporary folder could not be made or filled.
    #[error("cannot write to the temporary folder `{}` (TMPDIR names another): {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the tour was not brought or was not what it should be.
    #[error("the tour's own server failed it, which is a fault in trunkline: {0}")]
    Fetch(Arc<transfer::Error>),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
}
