//! The files that are moved: generated once, from a seed, under `target/bench`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use md5::{Digest as _, Md5};

use super::generator::Generator;
use crate::command;

/// A set of files that one case moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Set {
    /// 150 files of log-normal sizes, 39.85 MB in all: what a set of R packages looks like.
    Packages,
    /// 10,000 files of 5 KB: what an OSTree commit looks like.
    Objects,
    /// One file of 1 GiB.
    Large,
}

const PACKAGES: usize = 150;
const PACKAGES_BYTES: u64 = 39_850_000;
/// Spread of the sizes: with it the median is about 208 KB and the largest some 1.5 MB.
const PACKAGES_SIGMA: f64 = 0.7;
const OBJECTS: usize = 10_000;
const OBJECT_BYTES: u64 = 5 * 1024;
const LARGE_BYTES: u64 = 1 << 30;
/// A new version makes old fixtures be generated anew.
const VERSION: u32 = 1;

/// One file of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Below the served folder.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// In hexadecimal.
    pub(super) md5: String,
}

impl Entry {
    /// The last part of its path, under which a client stores it.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().expect("rsplit yields at least one part")
    }
}

impl Set {
    fn folder(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::Objects => "objects",
            Self::Large => "large",
        }
    }

    fn plan(self) -> Vec<(String, u64)> {
        match self {
            Self::Packages => package_sizes()
                .into_iter()
                .enumerate()
                .map(|(index, bytes)| (format!("packages/pkg{index:03}_1.0.tar.gz"), bytes))
                .collect(),
            Self::Objects => (0..OBJECTS)
                .map(|index| {
                    (format!("objects/{:02x}/object{index:05}.filez", index % 256), OBJECT_BYTES)
                })
                .collect(),
            Self::Large => vec![("large/image.bin".to_owned(), LARGE_BYTES)],
        }
    }
}

/// Log-normal, scaled so that they add up to the byte.
fn package_sizes() -> Vec<u64> {
    let mut generator = Generator::new(7);
    let raw: Vec<f64> =
        (0..PACKAGES).map(|_| (PACKAGES_SIGMA * generator.normal()).exp()).collect();
    let sum: f64 = raw.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let scale = PACKAGES_BYTES as f64 / sum;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1e3 to 1e7")]
    let mut sizes: Vec<u64> = raw.iter().map(|size| (size * scale) as u64).collect();
    sizes[0] += PACKAGES_BYTES - sizes.iter().sum::<u64>();
    sizes
}

/// The folder that the lab's nginx serves.
pub(super) fn served_directory() -> PathBuf {
    command::workspace_root().join("target/bench/www")
}

/// Makes the set's files unless they are there, and lists them.
///
/// # Errors
/// The files cannot be written, or the list cannot be read.
pub(super) fn make(set: Set) -> Result<Vec<Entry>> {
    let root = served_directory();
    let manifest = root.join(format!("{}.{VERSION}.manifest", set.folder()));
    if let Ok(text) = std::fs::read_to_string(&manifest) {
        return text.lines().map(|line| parse(line).context("a broken manifest")).collect();
    }
    println!("bench: generating {}", set.folder());
    let mut entries = Vec::new();
    for (index, (path, bytes)) in set.plan().into_iter().enumerate() {
        let seed = u64::try_from(index)? + 1;
        let md5 = write_file(&root.join(&path), bytes, Generator::new(seed))?;
        entries.push(Entry { path, bytes, md5 });
    }
    let mut text = String::new();
    for Entry { path, bytes, md5 } in &entries {
        writeln!(text, "{md5} {bytes} {path}")?;
    }
    // Last, so that a manifest vouches for files that are complete.
    std::fs::write(manifest, text)?;
    Ok(entries)
}

fn parse(line: &str) -> Option<Entry> {
    let mut fields = line.splitn(3, ' ');
    let (md5, bytes, path) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?);
    Some(Entry { path: path.to_owned(), bytes, md5: md5.to_owned() })
}

const CHUNK_BYTES: usize = 1 << 16;

fn write_file(path: &Path, bytes: u64, mut generator: Generator) -> Result<String> {
    std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
    let mut file = File::create(path)?;
    let mut digest = Md5::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        generator.fill(&mut chunk[..length]);
        digest.update(&chunk[..length]);
        file.write_all(&chunk[..length])?;
        left -= u64::try_from(length)?;
    }
    Ok(hexadecimal(&digest.finalize()))
}

/// Checks that `directory` holds the expected files, each to the byte, and nothing else.
///
/// # Errors
/// Names the first file that is missing, wrong or too much.
pub(super) fn verify<'a>(
    directory: &Path,
    expected: impl Iterator<Item = (&'a str, &'a Entry)>,
) -> Result<()> {
    let mut expected: BTreeMap<&str, &Entry> = expected.collect();
    for found in std::fs::read_dir(directory)? {
        let found = found?;
        let name = found.file_name();
        let name = name.to_string_lossy();
        let Some(entry) = expected.remove(&*name) else {
            bail!("left {name} behind, which nobody asked for");
        };
        let md5 = digest_file(&found.path())?;
        if md5 != entry.md5 {
            bail!("{name} has the md5 {md5} instead of {}", entry.md5);
        }
    }
    match expected.keys().next() {
        Some(missing) => bail!("{missing} is missing, with {} others", expected.len() - 1),
        None => Ok(()),
    }
}

fn digest_file(path: &Path) -> Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Md5::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(hexadecimal(&digest.finalize()));
        }
        digest.update(&chunk[..length]);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_add_up_and_have_the_shape_asked_for() {
        let mut sizes = package_sizes();
        sizes.sort_unstable();
        assert_eq!(sizes.len(), PACKAGES);
        assert_eq!(sizes.iter().sum::<u64>(), PACKAGES_BYTES);
        assert!((180_000..240_000).contains(&sizes[PACKAGES / 2]), "{}", sizes[PACKAGES / 2]);
    }

    #[test]
    fn verification_finds_wrong_missing_and_unasked_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let md5 = write_file(&path, 100_000, Generator::new(3)).unwrap();
        let entry = Entry { path: "x/a".into(), bytes: 100_000, md5 };
        let check = |names: &[&str]| {
            verify(directory.path(), names.iter().map(|name| (*name, &entry)))
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(&["a"]), Ok(()));
        assert!(check(&["a", "b"]).unwrap_err().starts_with("b is missing"));
        assert!(check(&[]).unwrap_err().starts_with("left a behind"));
        std::fs::write(&path, "wrong").unwrap();
        assert!(check(&["a"]).unwrap_err().starts_with("a has the md5"));
    }

    #[test]
    fn a_manifest_line_is_read_back() {
        let entry = Entry { path: "large/image.bin".into(), bytes: 5, md5: "ab".into() };
        assert_eq!(parse("ab 5 large/image.bin"), Some(entry));
        assert_eq!(parse("ab five large/image.bin"), None);
    }
}
