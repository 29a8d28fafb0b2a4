//! OSTree formats, read and written without libostree.
//!
//! Everything here is a function of bytes: no file is opened and nothing is sent. The readers are
//! strict where libostree is lenient (a value that is not in GVariant normal form is an error, not a
//! default), since each object either hashes to its name or is refused.
//!
//! Where to start: [`ObjectId`] names an object, [`Closure`] walks a commit, [`FilezDecoder`]
//! verifies a file object as it streams by, [`FilezEncoder`] makes one.
//!
//! Source of the formats: `ostree-core.h` and the manual "Anatomy of an OSTree repository"; the
//! serialisation is the GVariant specification 1.0.

mod checksum;
mod closure;
mod commit;
mod deflate;
pub mod delta;
mod dirmeta;
mod dirtree;
mod error;
mod file_header;
mod filez;
mod object_id;
mod ref_name;
mod summary;
pub mod variant;
mod verify;

pub use checksum::{Checksum, ChecksumParseError};
pub use closure::{Closure, ClosureError, ClosureLimits};
pub use commit::{Commit, CommitFields};
pub use dirmeta::{DirMeta, DirMetaFields};
pub use dirtree::{DirTree, DirTreeBuilder, Directory};
pub use error::FormatError;
pub use file_header::{BareUserMeta, FileHeader, Xattrs};
pub use filez::{
    COMPRESSION_LEVEL_DEFAULT, Filez, FilezDecoder, FilezEncoder, FilezError, FilezLimits,
};
pub use object_id::{OBJECT_ID_BYTES, ObjectId, ObjectIdError, ObjectKind, Storage};
pub use ref_name::{REF_NAME_BYTES_MAX, RefName, RefNameError};
pub use summary::{Summary, SummaryBuilder, SummaryRef};
pub use verify::{METADATA_BYTES_MAX, ObjectVerifier, VerifyError, VerifyLimits};
