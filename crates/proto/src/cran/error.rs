//! Why an index, an archive listing or a lock file could not be read.

use super::{Compression, InvalidVersion};

/// A repository's file broke one of its format's rules, or one of our limits.
///
/// Every variant is the fault of the file: nothing here depends on the network or on this machine.
/// Ask the repository for the file again, or for another spelling of the index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file, once expanded, is larger than [`Limits::expanded_bytes_max`](super::Limits).
    #[error("the file expands to more than {limit_bytes} bytes: raise the limit if it is genuine")]
    TooLarge {
        /// The limit that was in force, in bytes.
        limit_bytes: usize,
    },
    /// An index has more cells (records times distinct tags) than
    /// [`Limits::cells_max`](super::Limits).
    #[error("the index has more than {limit} cells: raise the limit if it is genuine")]
    TooManyCells {
        /// The limit that was in force.
        limit: usize,
    },
    /// A file of records has more distinct tags than any real one.
    #[error("the file has more than {limit} distinct fields")]
    TooManyFields {
        /// The limit that was in force.
        limit: usize,
    },
    /// A compressed file is cut short or damaged.
    #[error("the {compression} data is damaged or cut short")]
    Damaged {
        /// How the file said it was compressed.
        compression: Compression,
        /// What the decoder found.
        #[source]
        source: std::io::Error,
    },
    /// A compression this build has no decoder for.
    #[error("{compression} compression is not supported: ask for another form of the index")]
    UnsupportedCompression {
        /// How the file said it was compressed.
        compression: Compression,
    },
    /// A line is neither `Tag: value` nor a continuation (R: "Line starting ... is malformed!").
    #[error("line {line} starting '{start} ...' is malformed")]
    MalformedLine {
        /// Line number, from 1.
        line: usize,
        /// The first characters of the line.
        start: String,
    },
    /// A record begins with a continuation line.
    #[error("line {line} continues a field, but its record has none yet")]
    StrayContinuation {
        /// Line number, from 1.
        line: usize,
    },
    /// The file is not R's XDR serialization format.
    #[error("this is not an R data file in XDR format (version 2 or 3)")]
    NotXdr,
    /// The data ends in the middle of an item, or an item claims more than is there.
    #[error("the R data ends early, at byte {offset}")]
    EndsEarly {
        /// Where reading stopped, in bytes of the expanded data.
        offset: usize,
    },
    /// An item of a type that no index or archive listing has any use for.
    #[error("the R data holds an item of type {code}, which has no place in a repository's file")]
    UnexpectedType {
        /// The `SEXPTYPE` or pseudo-type code, as in R Internals 1.8.
        code: u8,
    },
    /// Lists within lists, deeper than [`rds::DEPTH_MAX`](super::rds::DEPTH_MAX).
    #[error("the R data is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit that was in force.
        limit: usize,
    },
    /// A back reference to a symbol that was never written.
    #[error("the R data refers to symbol {index}, which it does not define")]
    DanglingReference {
        /// The index, from 1.
        index: usize,
    },
    /// A compact (ALTREP) vector whose description makes no sense.
    #[error("the R data holds a compact vector of class {class} that cannot be unfolded")]
    BadCompactVector {
        /// The ALTREP class name.
        class: String,
    },
    /// The index is not a character matrix with column names.
    #[error("the index is not a character matrix with column names")]
    NotAMatrix,
    /// `Meta/archive.rds` is not a named list of data frames.
    #[error("the archive listing is not a named list of data frames")]
    NotAnArchive,
    /// A lock file is not JSON, or lacks what every lock file has.
    #[error("the lock file is not one renv would write")]
    BadLockfile(#[source] serde_json::Error),
    /// A version that R would refuse.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
}
