//! Commit objects: `(a{sv}aya(say)sstayay)`.

use super::checksum::Checksum;
use super::error::FormatError;
use super::object_id::{ObjectId, ObjectKind};
use super::variant::{ALIGN_1, ALIGN_8, Dict, TupleReader, TupleWriter, VariantError, string};

const OBJECT: &str = "commit";

/// A commit, read in place.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// Properties such as `version`, `ostree.ref-binding`, `ostree.sizes`.
    pub metadata: Dict<'a>,
    /// The commit this one follows.
    pub parent: Option<Checksum>,
    /// First line of the description.
    pub subject: &'a str,
    /// The rest of the description.
    pub body: &'a str,
    /// Seconds since 1970 in UTC.
    pub timestamp_s: u64,
    /// Names of the root directory.
    pub root_tree: Checksum,
    /// Owner and mode of the root directory.
    pub root_meta: Checksum,
}

impl<'a> Commit<'a> {
    /// Reads a `.commit` object; does not hash it.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not a commit.
    pub fn parse(data: &'a [u8]) -> Result<Self, FormatError> {
        let variant = FormatError::variant(OBJECT);
        let fields = Fields::read(data).map_err(&variant)?;
        let parent = match fields.parent {
            [] => None,
            bytes => Some(checksum("parent", bytes)?),
        };
        Ok(Self {
            metadata: Dict::new(fields.metadata).map_err(&variant)?,
            parent,
            subject: string(fields.subject).map_err(&variant)?,
            body: string(fields.body).map_err(&variant)?,
            timestamp_s: fields.timestamp_s,
            root_tree: checksum("root dirtree", fields.root_tree)?,
            root_meta: checksum("root dirmeta", fields.root_meta)?,
        })
    }

    /// The root directory's dirtree.
    pub fn root_tree_id(&self) -> ObjectId {
        ObjectId::new(self.root_tree, ObjectKind::DirTree)
    }

    /// The root directory's dirmeta.
    pub fn root_meta_id(&self) -> ObjectId {
        ObjectId::new(self.root_meta, ObjectKind::DirMeta)
    }
}

struct Fields<'a> {
    metadata: &'a [u8],
    parent: &'a [u8],
    subject: &'a [u8],
    body: &'a [u8],
    timestamp_s: u64,
    root_tree: &'a [u8],
    root_meta: &'a [u8],
}

impl<'a> Fields<'a> {
    fn read(data: &'a [u8]) -> Result<Self, VariantError> {
        let mut tuple = TupleReader::new(data);
        let metadata = tuple.variable(ALIGN_8)?;
        let parent = tuple.variable(ALIGN_1)?;
        let _related = tuple.variable(ALIGN_1)?;
        let subject = tuple.variable(ALIGN_1)?;
        let body = tuple.variable(ALIGN_1)?;
        let timestamp_s = u64::from_be_bytes(tuple.fixed(ALIGN_8)?);
        let root_tree = tuple.variable(ALIGN_1)?;
        let root_meta = tuple.last(ALIGN_1)?;
        Ok(Self { metadata, parent, subject, body, timestamp_s, root_tree, root_meta })
    }
}

/// What a new commit says; mirrors [`Commit`].
#[derive(Debug, Clone)]
pub struct CommitFields<'a> {
    /// A serialised `a{sv}` (see [`super::variant::DictWriter`]); empty for none.
    pub metadata: &'a [u8],
    /// The commit this one follows.
    pub parent: Option<Checksum>,
    /// First line of the description.
    pub subject: &'a str,
    /// The rest of the description.
    pub body: &'a str,
    /// Seconds since 1970 in UTC.
    pub timestamp_s: u64,
    /// Names of the root directory.
    pub root_tree: Checksum,
    /// Owner and mode of the root directory.
    pub root_meta: Checksum,
}

impl CommitFields<'_> {
    /// The bytes of the `.commit` object; their SHA-256 is its name.
    pub fn encode(&self) -> Vec<u8> {
        let mut tuple = TupleWriter::new();
        tuple
            .variable(ALIGN_8, self.metadata)
            .variable(ALIGN_1, self.parent.as_ref().map_or(&[][..], |sum| sum.as_bytes()))
            .variable(ALIGN_1, &[])
            .string(self.subject)
            .string(self.body)
            .fixed(ALIGN_8, &self.timestamp_s.to_be_bytes())
            .variable(ALIGN_1, self.root_tree.as_bytes());
        tuple.last(ALIGN_1, self.root_meta.as_bytes())
    }
}

pub(super) fn checksum(field: &'static str, bytes: &[u8]) -> Result<Checksum, FormatError> {
    Checksum::from_slice(bytes).ok_or(FormatError::ChecksumLength { field, bytes: bytes.len() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::variant::DictWriter;
    use super::*;

    proptest! {
        #[test]
        fn round_trips(
            parent in prop::option::of(any::<[u8; 32]>()),
            subject in "[^\0]{0,60}",
            body in "[^\0]{0,300}",
            timestamp_s in any::<u64>(),
            version in "[^\0]{0,300}",
        ) {
            let mut metadata = DictWriter::new();
            metadata.string("version", &version);
            let metadata = metadata.finish();
            let fields = CommitFields {
                metadata: &metadata,
                parent: parent.map(Checksum::from_bytes),
                subject: &subject,
                body: &body,
                timestamp_s,
                root_tree: Checksum::of(b"tree"),
                root_meta: Checksum::of(b"meta"),
            };
            let bytes = fields.encode();
            let commit = Commit::parse(&bytes).unwrap();
            prop_assert_eq!(commit.parent, fields.parent);
            prop_assert_eq!(commit.subject, &subject[..]);
            prop_assert_eq!(commit.body, &body[..]);
            prop_assert_eq!(commit.timestamp_s, timestamp_s);
            prop_assert_eq!(commit.root_tree, fields.root_tree);
            prop_assert_eq!(commit.root_meta, fields.root_meta);
            prop_assert_eq!(commit.metadata.get("version").unwrap().as_str(), Some(&version[..]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Commit::parse(&data);
        }
    }
}
