//! Names of objects: a checksum and a type, as a path and in binary.

use std::fmt;
use std::str::FromStr;

use super::checksum::{Checksum, ChecksumParseError};

/// Length of [`ObjectId::to_bytes`].
pub const OBJECT_ID_BYTES: usize = 33;

/// The type of an object. The numbers are libostree's (`OstreeObjectType`) and go over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// A regular file or symbolic link with its owner, mode and extended attributes.
    File = 1,
    /// Names of a directory.
    DirTree = 2,
    /// Owner, mode and extended attributes of a directory.
    DirMeta = 3,
    /// A root directory with subject, time and parent.
    Commit = 4,
    /// Marks a commit that was deleted on purpose.
    TombstoneCommit = 5,
    /// Metadata beside a commit, for instance signatures: bound to its name, not to its hash.
    CommitMeta = 6,
    /// A bare repository's link to an object with the same payload; never sent.
    PayloadLink = 7,
}

impl ObjectKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::File,
        Self::DirTree,
        Self::DirMeta,
        Self::Commit,
        Self::TombstoneCommit,
        Self::CommitMeta,
        Self::PayloadLink,
    ];

    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The file extension in a repository that stores files as `storage` says.
    pub fn extension(self, storage: Storage) -> &'static str {
        match self {
            Self::File => match storage {
                Storage::Archive => "filez",
                Storage::Bare => "file",
            },
            Self::DirTree => "dirtree",
            Self::DirMeta => "dirmeta",
            Self::Commit => "commit",
            Self::TombstoneCommit => "commit-tombstone",
            Self::CommitMeta => "commitmeta",
            Self::PayloadLink => "payload-link",
        }
    }

    /// Whether the name of such an object is the SHA-256 of its stored bytes.
    pub fn is_hashed_metadata(self) -> bool {
        matches!(self, Self::DirTree | Self::DirMeta | Self::Commit)
    }
}

/// How a repository stores file objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// `.filez`: a header, then raw deflate.
    Archive,
    /// `.file`: the file itself.
    Bare,
}

/// Names one object.
///
/// Ordered by checksum, then by kind: the order of a sorted directory listing, so that a sorted list
/// of ids can be merged with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The SHA-256 that names it.
    pub checksum: Checksum,
    /// Its type.
    pub kind: ObjectKind,
}

/// The text or bytes do not name an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectIdError {
    /// The checksum part is wrong.
    #[error(transparent)]
    Checksum(#[from] ChecksumParseError),
    /// No such type of object.
    #[error("unknown object type")]
    Kind,
    /// Not of the form `xx/yyyy.type`.
    #[error("an object's path has the form xx/yyyy.type")]
    Path,
}

impl ObjectId {
    /// An id from its parts.
    pub const fn new(checksum: Checksum, kind: ObjectKind) -> Self {
        Self { checksum, kind }
    }

    /// The path below `objects/`: two digits, a slash, 62 digits, a dot, the type.
    pub fn path(&self, storage: Storage) -> String {
        let hex = self.checksum.to_hex();
        format!("{}/{}.{}", &hex[..2], &hex[2..], self.kind.extension(storage))
    }

    /// Reads a path below `objects/`. Both `filez` and `file` name a file object.
    ///
    /// # Errors
    /// [`ObjectIdError`] says which part is wrong.
    pub fn from_path(path: &str) -> Result<Self, ObjectIdError> {
        let (prefix, rest) = path.split_once('/').ok_or(ObjectIdError::Path)?;
        let (rest, extension) = rest.split_once('.').ok_or(ObjectIdError::Path)?;
        if prefix.len() != 2 || rest.len() != 62 {
            return Err(ObjectIdError::Path);
        }
        let mut digits = [0; 64];
        digits[..2].copy_from_slice(prefix.as_bytes());
        digits[2..].copy_from_slice(rest.as_bytes());
        let kind = if extension == "file" {
            ObjectKind::File
        } else {
            ObjectKind::ALL
                .into_iter()
                .find(|kind| kind.extension(Storage::Archive) == extension)
                .ok_or(ObjectIdError::Kind)?
        };
        Ok(Self::new(Checksum::from_hex(&digits)?, kind))
    }

    /// 32 bytes of checksum, then the kind's number. Byte order equals the order of the type.
    pub fn to_bytes(&self) -> [u8; OBJECT_ID_BYTES] {
        let mut bytes = [self.kind as u8; OBJECT_ID_BYTES];
        bytes[..32].copy_from_slice(self.checksum.as_bytes());
        bytes
    }

    /// Reads [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`ObjectIdError::Kind`] for an unknown number.
    pub fn from_bytes(bytes: &[u8; OBJECT_ID_BYTES]) -> Result<Self, ObjectIdError> {
        let kind = ObjectKind::from_number(bytes[32]).ok_or(ObjectIdError::Kind)?;
        let checksum = Checksum::from_slice(&bytes[..32]).ok_or(ObjectIdError::Path)?;
        Ok(Self::new(checksum, kind))
    }
}

/// `<64 digits>.<type>`, with files as `filez`: how messages name an object.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.checksum, self.kind.extension(Storage::Archive))
    }
}

/// Reads what [`fmt::Display`] writes.
impl FromStr for ObjectId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.is_char_boundary(2) || text.len() < 2 {
            return Err(ObjectIdError::Path);
        }
        Self::from_path(&format!("{}/{}", &text[..2], &text[2..]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_id() -> impl Strategy<Value = ObjectId> {
        (any::<[u8; 32]>(), 1u8..=7).prop_map(|(sum, kind)| {
            ObjectId::new(Checksum::from_bytes(sum), ObjectKind::from_number(kind).unwrap())
        })
    }

    #[test]
    fn refuses_paths_that_name_nothing() {
        let digits = "0".repeat(62);
        for path in ["", "00", "00/x", "0/0.commit", "00/../x.commit", "é/x.commit"] {
            assert!(ObjectId::from_path(path).is_err(), "{path}");
        }
        assert_eq!(ObjectId::from_path(&format!("00/{digits}.exe")), Err(ObjectIdError::Kind));
        assert_eq!(
            ObjectId::from_path(&format!("0G/{digits}.commit")),
            Err(ObjectIdError::Checksum(ChecksumParseError))
        );
        assert!("é".parse::<ObjectId>().is_err());
    }

    proptest! {
        #[test]
        fn every_form_round_trips(id in any_id()) {
            prop_assert_eq!(ObjectId::from_path(&id.path(Storage::Archive)), Ok(id));
            prop_assert_eq!(ObjectId::from_path(&id.path(Storage::Bare)), Ok(id));
            prop_assert_eq!(ObjectId::from_bytes(&id.to_bytes()), Ok(id));
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn byte_order_is_the_order(a in any_id(), b in any_id()) {
            prop_assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = (ObjectId::from_path(&text), text.parse::<ObjectId>());
        }
    }
}
