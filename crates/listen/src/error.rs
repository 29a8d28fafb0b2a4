//! What can go wrong before a session runs.

use crate::listener::Address;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a socket cannot be listened on, or a connection not be handed over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address asked for.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody listens on this Unix socket already.
    #[error("{} is in use by a running server; stop it or choose another path", .0.display())]
    SocketInUse(PathBuf),
    /// There is something else than a socket at this path; it is not removed.
    #[error("{} exists and is no socket; remove it or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// `LISTEN_FDS` or `LISTEN_PID` is not a number.
    #[error("socket activation: {variable} is `{value}`, which is not a number")]
    ActivationNumber {
        /// The variable's name.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// A descriptor passed by the service manager is not a listening stream socket.
    #[error("socket activation: descriptor {descriptor} is not a listening stream socket")]
    ActivationDescriptor {
        /// The descriptor's number.
        descriptor: i32,
    },
    /// The descriptors were taken before: there is only one set per process.
    #[error("socket activation: the sockets have been taken already")]
    ActivationTaken,
    /// A file of the TLS identity cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the TLS identity is not PEM, or holds nothing of the kind expected.
    #[error("{origin}: no {expected} in PEM form found")]
    TlsPem {
        /// The file, or what was given in its place.
        origin: String,
        /// `certificate` or `private key`.
        expected: &'static str,
    },
    /// Certificate and key do not belong together, or are of a kind not supported.
    #[error("the TLS certificate or key cannot be used: {0}")]
    TlsIdentity(#[source] rustls::Error),
    /// The authority for client certificates cannot be used.
    #[error("the authority for client certificates cannot be used: {0}")]
    TlsClientAuthority(#[source] rustls::server::VerifierBuilderError),
    /// The client did not complete the TLS handshake.
    #[error("TLS handshake failed: {0}")]
    Handshake(#[source] io::Error),
    /// The client did not complete the TLS handshake in time.
    #[error("TLS handshake not done within {0:?}")]
    HandshakeTimeout(Duration),
    /// TLS was asked for on a stream that has it.
    #[error("the stream is under TLS already")]
    AlreadyTls,
}
