//! A tree like a small root file system: log-normal sizes, part of each file incompressible, deep
//! folders, symbolic links; and a second generation in which a twentieth of the files changed.
//!
//! What goes where is decided first, as plain data, so that the number of objects is known before a
//! byte is written.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::generator::Generator;

/// Folders but for the root, in a tree of the default size.
const FOLDERS: usize = 780;
const DEPTH_MAX: usize = 9;
/// Natural logarithm of the median size in bytes, and the spread around it.
const SIZE_MU: f64 = 8.09;
const SIZE_SIGMA: f64 = 2.02;
/// Shorter ones would be the same by chance.
const FILE_BYTES_MIN: f64 = 32.0;
const FILE_BYTES_MAX: f64 = 12e6;
/// So many in a hundred entries are symbolic links.
const LINKS_PERCENT: u64 = 7;
pub(super) const NOISE_PERCENT: u64 = 36;
const WORDS: usize = 4000;
const PIECE_BYTES_MIN: u64 = 64;
const PIECE_BYTES_MAX: u64 = 4096;
/// Modes of every 97th folder, in turn; all others have the first.
const FOLDER_MODES: [u32; 6] = [0o755, 0o755, 0o755, 0o700, 0o1777, 0o775];
/// Chosen so that the changed files of [`Shape::default`] lie below as many folders as in the image
/// that the first measurements were made with.
const SEED: u64 = 8748;

/// How large a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    /// Files and symbolic links, each an object.
    pub(super) files: usize,
    /// Files that change from the first generation to the second.
    pub(super) changed: usize,
    /// Every file has this size, in bytes, instead of its own.
    pub(super) file_bytes: Option<u64>,
    /// So many bytes in a hundred do not compress.
    pub(super) noise_percent: u64,
}

impl Default for Shape {
    /// 6,702 objects of a commit, and 698 that are new in the next.
    fn default() -> Self {
        Self { files: 5916, changed: 279, file_bytes: None, noise_percent: NOISE_PERCENT }
    }
}

/// What a tree will be.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Paths of folders below the root.
    folders: Vec<String>,
    entries: Vec<Entry>,
    noise_percent: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    folder: usize,
    bytes: u64,
    is_link: bool,
    changes: bool,
    seed: u64,
}

impl Plan {
    pub(super) fn new(shape: Shape) -> Self {
        let mut generator = Generator::new(SEED);
        let mut folders = folders(&mut generator);
        folders.truncate(shape.files);
        let links_percent = if shape.file_bytes.is_some() { 0 } else { LINKS_PERCENT };
        let mut entries: Vec<Entry> = (0..shape.files)
            .map(|index| {
                // One for each folder first: empty ones would be one and the same object.
                let folder = if index < folders.len() {
                    index
                } else {
                    below(&mut generator, folders.len())
                };
                let own_bytes = size(&mut generator);
                Entry {
                    folder,
                    bytes: shape.file_bytes.unwrap_or(own_bytes),
                    is_link: generator.next() % 100 < links_percent,
                    changes: false,
                    seed: generator.next(),
                }
            })
            .collect();
        let mut left = shape.changed;
        while left > 0 && !entries.is_empty() {
            let entry = below(&mut generator, entries.len());
            let entry = &mut entries[entry];
            if !entry.is_link && !entry.changes {
                entry.changes = true;
                left -= 1;
            }
        }
        Self { folders, entries, noise_percent: shape.noise_percent }
    }

    /// Objects of the first commit: files, dirtrees, dirmetas, the commit.
    pub(super) fn objects(&self) -> usize {
        self.entries.len() + self.folders.len() + 1 + self.folder_modes().len() + 1
    }

    /// Objects that the second commit has and the first has not.
    pub(super) fn objects_new(&self) -> usize {
        let mut trees = BTreeSet::new();
        let mut files = 0;
        for entry in self.entries.iter().filter(|entry| entry.changes) {
            files += 1;
            trees.insert("");
            let mut path = self.folders[entry.folder].as_str();
            while let Some((parent, _)) = path.rsplit_once('/') {
                trees.insert(path);
                path = parent;
            }
            trees.insert(path);
        }
        files + trees.len() + 1
    }

    fn folder_modes(&self) -> BTreeSet<u32> {
        (0..self.folders.len()).map(folder_mode).collect()
    }

    /// Writes the first generation.
    pub(super) fn write(&self, root: &Path) -> Result<()> {
        for (index, folder) in self.folders.iter().enumerate() {
            let path = root.join(folder);
            fs::create_dir_all(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(folder_mode(index)))?;
        }
        fs::set_permissions(root, Permissions::from_mode(FOLDER_MODES[0]))?;
        let words = words();
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.is_link {
                symlink(
                    format!("../f{:05}-t{index}", entry.seed % 100_000),
                    self.path(root, index),
                )
                .context("a symbolic link")?;
            } else {
                self.write_file(root, index, entry.seed, &words)?;
            }
        }
        Ok(())
    }

    /// Turns the first generation into the second.
    pub(super) fn change(&self, root: &Path) -> Result<()> {
        let words = words();
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.changes {
                self.write_file(root, index, !entry.seed, &words)?;
            }
        }
        Ok(())
    }

    fn path(&self, root: &Path, index: usize) -> std::path::PathBuf {
        root.join(&self.folders[self.entries[index].folder]).join(format!("f{index:05}"))
    }

    fn write_file(&self, root: &Path, index: usize, seed: u64, words: &[Vec<u8>]) -> Result<()> {
        let path = self.path(root, index);
        let mut file = BufWriter::new(File::create(&path)?);
        write_body(&mut file, (self.entries[index].bytes, self.noise_percent), seed, words)?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let mode = if index.is_multiple_of(5) { 0o755 } else { 0o644 };
        Ok(fs::set_permissions(&path, Permissions::from_mode(mode))?)
    }
}

fn folder_mode(index: usize) -> u32 {
    if index.is_multiple_of(97) {
        FOLDER_MODES[index % FOLDER_MODES.len()]
    } else {
        FOLDER_MODES[0]
    }
}

fn folders(generator: &mut Generator) -> Vec<String> {
    let mut folders: Vec<String> =
        ["usr", "usr/bin", "usr/lib", "usr/share", "usr/etc", "boot"].map(str::to_owned).to_vec();
    let mut known: BTreeSet<String> = folders.iter().cloned().collect();
    while folders.len() < FOLDERS {
        let parent = 1 + below(generator, folders.len() - 1);
        let path = format!("{}/d{:03x}", folders[parent], generator.next() % 4096);
        if path.matches('/').count() < DEPTH_MAX && known.insert(path.clone()) {
            folders.push(path);
        }
    }
    folders
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 12e6")]
fn size(generator: &mut Generator) -> u64 {
    (SIZE_MU + SIZE_SIGMA * generator.normal()).exp().clamp(FILE_BYTES_MIN, FILE_BYTES_MAX) as u64
}

fn below(generator: &mut Generator, count: usize) -> usize {
    usize::try_from(generator.next() % count as u64).expect("less than a usize")
}

fn words() -> Vec<Vec<u8>> {
    let mut generator = Generator::new(SEED + 1);
    (0..WORDS)
        .map(|_| {
            let letters = 2 + below(&mut generator, 10);
            (0..letters)
                .map(|_| b"abcdefghijklmnopqrstuvwxyz_"[below(&mut generator, 27)])
                .collect()
        })
        .collect()
}

/// Noise, as machine code is, between pieces of text.
fn write_body(
    to: &mut impl Write,
    (bytes, noise_percent): (u64, u64),
    seed: u64,
    words: &[Vec<u8>],
) -> std::io::Result<()> {
    let mut generator = Generator::new(seed);
    let mut piece = Vec::new();
    let mut left = usize::try_from(bytes).expect("files here fit into memory's numbers");
    while left > 0 {
        let length = PIECE_BYTES_MIN + generator.next() % (PIECE_BYTES_MAX - PIECE_BYTES_MIN);
        let length = left.min(usize::try_from(length).expect("at most 4096"));
        piece.clear();
        if generator.next() % 100 < noise_percent {
            piece.resize(length, 0);
            generator.fill(&mut piece);
        } else {
            while piece.len() < length {
                piece.extend_from_slice(&words[below(&mut generator, words.len())]);
                piece.push(b' ');
            }
            piece.truncate(length);
        }
        to.write_all(&piece)?;
        left -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_tree_has_as_many_objects_as_the_image_it_is_made_after() {
        let plan = Plan::new(Shape::default());
        assert_eq!((plan.objects(), plan.objects_new()), (6702, 698));
    }

    #[test]
    fn bodies_have_their_length_and_differ_by_seed() {
        let words = words();
        let body = |bytes, seed| {
            let mut body = Vec::new();
            write_body(&mut body, (bytes, NOISE_PERCENT), seed, &words).unwrap();
            body
        };
        for bytes in [0, 1, 63, 5000] {
            assert_eq!(body(bytes, 1).len() as u64, bytes);
        }
        assert_ne!(body(5000, 1), body(5000, 2));
    }
}
