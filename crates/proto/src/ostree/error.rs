//! What can be wrong with the bytes of a metadata object.

use super::variant::VariantError;

/// The bytes are not an object of the type they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A checksum field has neither 0 (where allowed) nor 32 bytes.
    #[error("{field} has {bytes} bytes where a checksum has 32")]
    ChecksumLength {
        /// Which field.
        field: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// A file name that could leave its directory: empty, `.`, `..` or with a slash.
    #[error("unsafe file name {name:?} in a dirtree")]
    NameUnsafe {
        /// The name.
        name: String,
    },
    /// The mode is that of another kind of file than this object may hold.
    #[error("mode {mode:o} is not allowed here")]
    Mode {
        /// The whole `st_mode`.
        mode: u32,
    },
    /// Names of a dirtree must ascend strictly, else one name could mean two things.
    #[error("{name:?} is out of order in a dirtree")]
    Order {
        /// The first name that is not greater than the one before.
        name: String,
    },
    /// A symbolic link's target where there must be none, or none where there must be one.
    #[error("symbolic link target and mode contradict each other")]
    SymlinkTarget,
    /// The serialisation itself is broken.
    #[error("{object}: {source}")]
    Variant {
        /// Which format was being read.
        object: &'static str,
        /// What is broken.
        #[source]
        source: VariantError,
    },
}

impl FormatError {
    /// Says which format a broken serialisation was found in; for `map_err`.
    pub(super) fn variant(object: &'static str) -> impl Fn(VariantError) -> Self {
        move |source| Self::Variant { object, source }
    }
}
