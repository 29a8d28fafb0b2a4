//! Dirtree objects: `(a(say)a(sayay))`, both arrays sorted by name.

use std::collections::BTreeMap;

use super::checksum::Checksum;
use super::commit::checksum;
use super::error::FormatError;
use super::variant::{
    ALIGN_1, ArrayReader, ArrayWriter, TupleReader, TupleWriter, VariantError, string,
};

const OBJECT: &str = "dirtree";

/// The names of a directory, read in place.
///
/// [`parse`](Self::parse) has checked every entry, so that walking it cannot fail half-way.
#[derive(Debug, Clone, Copy)]
pub struct DirTree<'a> {
    files: ArrayReader<'a>,
    directories: ArrayReader<'a>,
}

/// A subdirectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory {
    /// Its names.
    pub tree: Checksum,
    /// Its owner and mode.
    pub meta: Checksum,
}

impl<'a> DirTree<'a> {
    /// Reads a `.dirtree` object; does not hash it.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not a dirtree, a name is unsafe or names do not ascend.
    pub fn parse(data: &'a [u8]) -> Result<Self, FormatError> {
        let variant = FormatError::variant(OBJECT);
        let (files, directories) = split(data).map_err(&variant)?;
        let tree = Self { files, directories };
        let mut previous = None;
        for entry in tree.files.iter() {
            let (name, sum) = file_entry(entry.map_err(&variant)?).map_err(&variant)?;
            checksum("file", sum)?;
            check_name(name, &mut previous)?;
        }
        previous = None;
        for entry in tree.directories.iter() {
            let (name, tree, meta) = directory_entry(entry.map_err(&variant)?).map_err(&variant)?;
            checksum("dirtree", tree)?;
            checksum("dirmeta", meta)?;
            check_name(name, &mut previous)?;
        }
        Ok(tree)
    }

    /// Files and symbolic links in order of name.
    pub fn files(&self) -> impl Iterator<Item = (&'a str, Checksum)> + use<'a> {
        self.files.iter().map(|entry| {
            let (name, sum) = entry.and_then(file_entry).expect("invariant: parse() checked it");
            (name, Checksum::from_slice(sum).expect("invariant: parse() checked it"))
        })
    }

    /// Subdirectories in order of name.
    pub fn directories(&self) -> impl Iterator<Item = (&'a str, Directory)> + use<'a> {
        self.directories.iter().map(|entry| {
            let (name, tree, meta) =
                entry.and_then(directory_entry).expect("invariant: parse() checked it");
            let sum = |bytes| Checksum::from_slice(bytes).expect("invariant: parse() checked it");
            (name, Directory { tree: sum(tree), meta: sum(meta) })
        })
    }
}

fn split(data: &[u8]) -> Result<(ArrayReader<'_>, ArrayReader<'_>), VariantError> {
    let mut tuple = TupleReader::new(data);
    let files = ArrayReader::new(tuple.variable(ALIGN_1)?, ALIGN_1)?;
    Ok((files, ArrayReader::new(tuple.last(ALIGN_1)?, ALIGN_1)?))
}

fn file_entry(data: &[u8]) -> Result<(&str, &[u8]), VariantError> {
    let mut tuple = TupleReader::new(data);
    let name = string(tuple.variable(ALIGN_1)?)?;
    Ok((name, tuple.last(ALIGN_1)?))
}

fn directory_entry(data: &[u8]) -> Result<(&str, &[u8], &[u8]), VariantError> {
    let mut tuple = TupleReader::new(data);
    let name = string(tuple.variable(ALIGN_1)?)?;
    let tree = tuple.variable(ALIGN_1)?;
    Ok((name, tree, tuple.last(ALIGN_1)?))
}

fn check_name<'a>(name: &'a str, previous: &mut Option<&'a str>) -> Result<(), FormatError> {
    if matches!(name, "" | "." | "..") || name.contains('/') {
        return Err(FormatError::NameUnsafe { name: name.to_owned() });
    }
    if previous.is_some_and(|previous| previous >= name) {
        return Err(FormatError::Order { name: name.to_owned() });
    }
    *previous = Some(name);
    Ok(())
}

/// Builds a dirtree; sorts by name, and a name given twice means the later.
#[derive(Debug, Clone, Default)]
pub struct DirTreeBuilder {
    files: BTreeMap<String, Checksum>,
    directories: BTreeMap<String, Directory>,
}

impl DirTreeBuilder {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or symbolic link.
    pub fn file(&mut self, name: &str, sum: Checksum) -> &mut Self {
        self.files.insert(name.to_owned(), sum);
        self
    }

    /// Adds a subdirectory.
    pub fn directory(&mut self, name: &str, directory: Directory) -> &mut Self {
        self.directories.insert(name.to_owned(), directory);
        self
    }

    /// The bytes of the `.dirtree` object; their SHA-256 is its name.
    pub fn encode(&self) -> Vec<u8> {
        let mut files = ArrayWriter::new(ALIGN_1);
        for (name, sum) in &self.files {
            let mut entry = TupleWriter::new();
            entry.string(name);
            files.push(&entry.last(ALIGN_1, sum.as_bytes()));
        }
        let mut directories = ArrayWriter::new(ALIGN_1);
        for (name, directory) in &self.directories {
            let mut entry = TupleWriter::new();
            entry.string(name).variable(ALIGN_1, directory.tree.as_bytes());
            directories.push(&entry.last(ALIGN_1, directory.meta.as_bytes()));
        }
        let mut tuple = TupleWriter::new();
        tuple.variable(ALIGN_1, &files.finish());
        tuple.last(ALIGN_1, &directories.finish())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refuses_names_that_could_leave_the_directory() {
        for name in ["..", ".", "", "a/b"] {
            let mut builder = DirTreeBuilder::new();
            builder.file(name, Checksum::of(b""));
            assert_eq!(
                DirTree::parse(&builder.encode()).unwrap_err(),
                FormatError::NameUnsafe { name: name.to_owned() }
            );
        }
    }

    #[test]
    fn refuses_names_out_of_order() {
        let mut files = ArrayWriter::new(ALIGN_1);
        for name in ["b", "a"] {
            let mut entry = TupleWriter::new();
            entry.string(name);
            files.push(&entry.last(ALIGN_1, &[0; 32]));
        }
        let mut tuple = TupleWriter::new();
        tuple.variable(ALIGN_1, &files.finish());
        let bytes = tuple.last(ALIGN_1, &[]);
        assert_eq!(
            DirTree::parse(&bytes).unwrap_err(),
            FormatError::Order { name: "a".to_owned() }
        );
    }

    proptest! {
        #[test]
        fn round_trips(
            files in prop::collection::btree_map("[a-zäø.]{3,20}", any::<[u8; 32]>(), 0..40),
            directories in prop::collection::btree_map("[a-z]{1,9}", any::<[u8; 32]>(), 0..40),
        ) {
            let mut builder = DirTreeBuilder::new();
            for (name, sum) in &files {
                builder.file(name, Checksum::from_bytes(*sum));
            }
            for (name, sum) in &directories {
                let sum = Checksum::from_bytes(*sum);
                builder.directory(name, Directory { tree: sum, meta: Checksum::of(b"") });
            }
            let bytes = builder.encode();
            prop_assume!(!files.contains_key("..."));
            let tree = DirTree::parse(&bytes).unwrap();
            let read: BTreeMap<_, _> =
                tree.files().map(|(name, sum)| (name.to_owned(), *sum.as_bytes())).collect();
            prop_assert_eq!(read, files);
            let read: BTreeMap<_, _> = tree
                .directories()
                .map(|(name, directory)| (name.to_owned(), *directory.tree.as_bytes()))
                .collect();
            prop_assert_eq!(read, directories);
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(tree) = DirTree::parse(&data) {
                let _ = (tree.files().count(), tree.directories().count());
            }
        }
    }
}
