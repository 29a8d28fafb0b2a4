//! Verifies an object of any kind as its stored bytes stream by.

use sha2::{Digest, Sha256};

use super::checksum::Checksum;
use super::commit::Commit;
use super::dirmeta::DirMeta;
use super::dirtree::DirTree;
use super::error::FormatError;
use super::filez::{FilezDecoder, FilezError, FilezLimits};
use super::object_id::{ObjectId, ObjectKind};
use super::variant::Dict;

/// Longest metadata object in bytes that libostree reads (`OSTREE_MAX_METADATA_SIZE` since 2023).
pub const METADATA_BYTES_MAX: u64 = 128 << 20;

/// How much an object may ask of its reader.
#[derive(Debug, Clone, Copy)]
pub struct VerifyLimits {
    /// Longest metadata object in bytes; it is held in memory.
    pub metadata_bytes_max: u64,
    /// For file objects, which are not held in memory.
    pub filez: FilezLimits,
}

impl Default for VerifyLimits {
    fn default() -> Self {
        Self { metadata_bytes_max: METADATA_BYTES_MAX, filez: FilezLimits::default() }
    }
}

/// Why an object is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A sound object, but another one: its bytes hash to another name.
    #[error("corrupt: the content hashes to {actual}")]
    Checksum {
        /// What the bytes hash to.
        actual: Checksum,
    },
    /// A broken file object.
    #[error("corrupt: {0}")]
    Filez(#[from] FilezError),
    /// A broken metadata object.
    #[error("corrupt: {0}")]
    Format(#[from] FormatError),
    /// Objects of this kind stay in their repository.
    #[error("objects of this kind are not transferred")]
    Kind,
    /// Longer than allowed.
    #[error("a metadata object of more than {max} bytes")]
    TooLong {
        /// The limit in bytes.
        max: u64,
    },
}

/// Takes the stored bytes of one object (a file object as `.filez`) and says whether they are what
/// its name promises. A commitmeta has no hash; it is only checked to be a dictionary.
#[derive(Debug)]
pub struct ObjectVerifier {
    id: ObjectId,
    limits: VerifyLimits,
    state: State,
}

#[derive(Debug)]
enum State {
    File(Box<FilezDecoder>),
    Metadata(Vec<u8>),
}

impl ObjectVerifier {
    /// Ready for the first byte of `id`.
    pub fn new(id: ObjectId, limits: VerifyLimits) -> Self {
        let state = match id.kind {
            ObjectKind::File => State::File(Box::new(FilezDecoder::new(limits.filez))),
            _ => State::Metadata(Vec::new()),
        };
        Self { id, limits, state }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`VerifyError`] as soon as the object cannot be sound any more.
    pub fn push(&mut self, input: &[u8]) -> Result<(), VerifyError> {
        match &mut self.state {
            State::File(decoder) => Ok(decoder.push(input, &mut |_| ())?),
            State::Metadata(held) => {
                let max = self.limits.metadata_bytes_max;
                if (held.len() + input.len()) as u64 > max {
                    return Err(VerifyError::TooLong { max });
                }
                held.extend_from_slice(input);
                Ok(())
            }
        }
    }

    /// Says that there are no more bytes. Returns the bytes of a metadata object, and nothing for a
    /// file object.
    ///
    /// # Errors
    /// [`VerifyError`] when the object is not sound or another than `id`.
    pub fn finish(self) -> Result<Vec<u8>, VerifyError> {
        match self.state {
            State::File(decoder) => {
                let actual = decoder.finish()?.checksum;
                same(self.id, actual).map(|()| Vec::new())
            }
            State::Metadata(held) => verify_metadata(self.id, &held).map(|()| held),
        }
    }
}

fn same(id: ObjectId, actual: Checksum) -> Result<(), VerifyError> {
    if id.checksum == actual { Ok(()) } else { Err(VerifyError::Checksum { actual }) }
}

fn verify_metadata(id: ObjectId, data: &[u8]) -> Result<(), VerifyError> {
    if id.kind.is_hashed_metadata() {
        same(id, Checksum::from_bytes(Sha256::digest(data).into()))?;
    }
    match id.kind {
        ObjectKind::Commit => drop(Commit::parse(data)?),
        ObjectKind::DirTree => drop(DirTree::parse(data)?),
        ObjectKind::DirMeta => drop(DirMeta::parse(data)?),
        ObjectKind::CommitMeta => {
            Dict::new(data).map_err(FormatError::variant("commitmeta"))?;
        }
        ObjectKind::File | ObjectKind::TombstoneCommit | ObjectKind::PayloadLink => {
            return Err(VerifyError::Kind);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{DirMetaFields, DirTreeBuilder};
    use super::*;

    fn verify(id: ObjectId, data: &[u8]) -> Result<Vec<u8>, VerifyError> {
        let mut verifier = ObjectVerifier::new(id, VerifyLimits::default());
        for piece in data.chunks(5) {
            verifier.push(piece)?;
        }
        verifier.finish()
    }

    #[test]
    fn metadata_is_hashed_and_parsed() {
        let data = DirTreeBuilder::new().file("a", Checksum::of(b"")).encode();
        let id = ObjectId::new(Checksum::of(&data), ObjectKind::DirTree);
        assert_eq!(verify(id, &data), Ok(data.clone()));
        let other = ObjectId::new(Checksum::of(b"other"), ObjectKind::DirTree);
        assert_eq!(verify(other, &data), Err(VerifyError::Checksum { actual: id.checksum }));
        let meta = ObjectId::new(id.checksum, ObjectKind::DirMeta);
        assert!(matches!(verify(meta, &data), Err(VerifyError::Format(_))));
        let link = ObjectId::new(id.checksum, ObjectKind::PayloadLink);
        assert_eq!(verify(link, &data), Err(VerifyError::Kind));
    }

    #[test]
    fn limits_hold() {
        let data = DirMetaFields::default().encode();
        let id = ObjectId::new(Checksum::of(&data), ObjectKind::DirMeta);
        let limits = VerifyLimits { metadata_bytes_max: 3, ..VerifyLimits::default() };
        let mut verifier = ObjectVerifier::new(id, limits);
        assert_eq!(verifier.push(&data), Err(VerifyError::TooLong { max: 3 }));
    }
}
