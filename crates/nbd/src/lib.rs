//! Serves images over the NBD protocol.
//!
//! An [`Export`] is a sized run of bytes that can be read anywhere; sources ([`FileExport`]) and
//! wraps implement it and stack. A [`Server`] serves the exports of a [`Catalogue`] to each
//! accepted [`Stream`](trunkline_listen::Stream). Listening is the caller's part; nothing here prints, reads the
//! environment or chooses exit codes.

mod buffers;
mod content;
mod error;
mod export;
mod file;
mod limits;
mod remote;
mod session;
mod stats;
pub mod wrap;

pub use content::{Content, FileSlice, NamedFile, Piece};
pub use error::{Error, SessionError};
pub use export::{Catalogue, Entry, Export, Extent, ExtentKind, Verb, Writable, Zeroing};
pub use file::FileExport;
pub use limits::{READ_PART_BYTES_MAX, SessionLimits};
pub use remote::RemoteExport;
pub use session::Server;
pub use stats::{ServeCounts, ServeStats};
