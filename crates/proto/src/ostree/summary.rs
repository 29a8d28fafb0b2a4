//! The summary of a repository: `(a(s(taya{sv}))a{sv})`, refs sorted by name.

use std::collections::BTreeMap;

use super::checksum::Checksum;
use super::commit::checksum;
use super::error::FormatError;
use super::ref_name::RefName;
use super::variant::{
    ALIGN_1, ALIGN_8, ArrayReader, ArrayWriter, Dict, DictWriter, TupleReader, TupleWriter,
    VariantError, string,
};

const OBJECT: &str = "summary";

/// A summary, read in place.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    /// The refs in the order written.
    pub refs: Vec<(&'a str, SummaryRef)>,
    /// Properties of the repository.
    pub metadata: Dict<'a>,
}

/// What a summary says of one ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryRef {
    /// Length in bytes of the commit object.
    pub commit_bytes: u64,
    /// The commit the ref points to.
    pub commit: Checksum,
    /// The commit's time, in seconds since 1970, when given.
    pub timestamp_s: Option<u64>,
}

impl<'a> Summary<'a> {
    /// Reads a summary file.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not a summary.
    pub fn parse(data: &'a [u8]) -> Result<Self, FormatError> {
        let variant = FormatError::variant(OBJECT);
        let mut tuple = TupleReader::new(data);
        let refs_data = tuple.variable(ALIGN_8).map_err(&variant)?;
        let metadata = tuple.last(ALIGN_8).and_then(Dict::new).map_err(&variant)?;
        let array = ArrayReader::new(refs_data, ALIGN_8).map_err(&variant)?;
        let mut refs = Vec::new();
        for entry in array.iter() {
            let entry = entry.and_then(Entry::read).map_err(&variant)?;
            let timestamp_s = entry
                .metadata
                .get("ostree.commit.timestamp")
                .and_then(|value| value.as_u64())
                .map(u64::swap_bytes); // stored big-endian inside a native `t`
            let commit = checksum("ref", entry.commit)?;
            let commit_bytes = entry.commit_bytes;
            refs.push((entry.name, SummaryRef { commit_bytes, commit, timestamp_s }));
        }
        Ok(Self { refs, metadata })
    }
}

struct Entry<'a> {
    name: &'a str,
    commit_bytes: u64,
    commit: &'a [u8],
    metadata: Dict<'a>,
}

impl<'a> Entry<'a> {
    fn read(data: &'a [u8]) -> Result<Self, VariantError> {
        let mut entry = TupleReader::new(data);
        let name = string(entry.variable(ALIGN_1)?)?;
        let mut value = TupleReader::new(entry.last(ALIGN_8)?);
        // The one number here in the writer's own order, not big-endian: little in practice.
        let commit_bytes = u64::from_le_bytes(value.fixed(ALIGN_8)?);
        let commit = value.variable(ALIGN_1)?;
        let metadata = Dict::new(value.last(ALIGN_8)?)?;
        Ok(Self { name, commit_bytes, commit, metadata })
    }
}

/// Builds a summary; mirrors [`Summary`].
#[derive(Debug, Clone, Default)]
pub struct SummaryBuilder {
    refs: BTreeMap<RefName, SummaryRef>,
    last_modified_s: Option<u64>,
}

impl SummaryBuilder {
    /// A summary without refs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a ref, or replaces it.
    pub fn add(&mut self, name: RefName, target: SummaryRef) -> &mut Self {
        self.refs.insert(name, target);
        self
    }

    /// Sets `ostree.summary.last-modified`, in seconds since 1970.
    pub fn last_modified_s(&mut self, seconds: u64) -> &mut Self {
        self.last_modified_s = Some(seconds);
        self
    }

    /// The bytes of the summary file.
    pub fn encode(&self) -> Vec<u8> {
        let mut refs = ArrayWriter::new(ALIGN_8);
        for (name, target) in &self.refs {
            let mut metadata = DictWriter::new();
            if let Some(seconds) = target.timestamp_s {
                metadata.value("ostree.commit.timestamp", "t", &seconds.to_be_bytes());
            }
            let mut value = TupleWriter::new();
            value
                .fixed(ALIGN_8, &target.commit_bytes.to_le_bytes())
                .variable(ALIGN_1, target.commit.as_bytes());
            let value = value.last(ALIGN_8, &metadata.finish());
            let mut entry = TupleWriter::new();
            entry.string(name.as_str());
            refs.push(&entry.last(ALIGN_8, &value));
        }
        let mut metadata = DictWriter::new();
        metadata.string("ostree.summary.mode", "archive-z2");
        if let Some(seconds) = self.last_modified_s {
            metadata.value("ostree.summary.last-modified", "t", &seconds.to_be_bytes());
        }
        metadata.value("ostree.summary.tombstone-commits", "b", &[0]);
        let mut tuple = TupleWriter::new();
        tuple.variable(ALIGN_8, &refs.finish());
        tuple.last(ALIGN_8, &metadata.finish())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips(
            refs in prop::collection::btree_map("[a-z]{1,5}(/[a-z]{1,80}){0,3}", (any::<u64>(), any::<[u8; 32]>(), prop::option::of(any::<u64>())), 0..12),
            last_modified_s in any::<u64>(),
        ) {
            let mut builder = SummaryBuilder::new();
            builder.last_modified_s(last_modified_s);
            for (name, (commit_bytes, sum, timestamp_s)) in &refs {
                builder.add(name.parse().unwrap(), SummaryRef {
                    commit_bytes: *commit_bytes,
                    commit: Checksum::from_bytes(*sum),
                    timestamp_s: *timestamp_s,
                });
            }
            let bytes = builder.encode();
            let summary = Summary::parse(&bytes).unwrap();
            let read: BTreeMap<_, _> = summary.refs.iter().map(|(name, target)| {
                ((*name).to_owned(), (target.commit_bytes, *target.commit.as_bytes(), target.timestamp_s))
            }).collect();
            prop_assert_eq!(read, refs);
            prop_assert_eq!(summary.metadata.get("ostree.summary.mode").unwrap().as_str(), Some("archive-z2"));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Summary::parse(&data);
        }
    }
}
