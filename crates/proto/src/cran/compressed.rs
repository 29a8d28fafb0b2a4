//! The four ways R compresses a file, told apart by their first bytes as R's `gzfile()` does.

use std::{
    fmt,
    io::{self, Read},
};

use super::Error;

/// Bounds on what a repository's file may cost us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest size of a file after expansion, in bytes.
    ///
    /// CRAN's index of 23,000 packages expands to 12 MB and its archive listing to 20 MB.
    pub expanded_bytes_max: usize,
    /// Largest number of cells (packages times fields) in an index.
    pub cells_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { expanded_bytes_max: 256 << 20, cells_max: 32 << 20 }
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952, one or more members.
    Gzip,
    /// bzip2, one or more streams.
    Bzip2,
    /// The .xz format, one or more streams.
    Xz,
    /// RFC 8878; R writes it from 4.5 on when asked, no repository is known to serve it.
    Zstd,
}

impl Compression {
    /// Tells the compression from a file's first bytes.
    #[must_use]
    pub fn detect(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [b'B', b'Z', b'h', ..] => Self::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// Memory an xz stream may ask for, in KiB: `xz -9` needs 65 MiB, and R never asks for more.
const XZ_MEMORY_KIB_MAX: u32 = 80 << 10;

/// Undoes a file's compression, whatever it is.
///
/// # Errors
/// [`Error::TooLarge`] as soon as the output passes [`Limits::expanded_bytes_max`] (so a small
/// file cannot fill the memory), [`Error::Damaged`] or [`Error::UnsupportedCompression`].
pub fn expand(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    let compression = Compression::detect(bytes);
    let expanded = match compression {
        Compression::None => read_bounded(bytes, bytes.len(), limits),
        Compression::Gzip => {
            read_bounded(flate2::bufread::MultiGzDecoder::new(bytes), bytes.len() * 4, limits)
        }
        Compression::Bzip2 => {
            read_bounded(bzip2::bufread::MultiBzDecoder::new(bytes), bytes.len() * 6, limits)
        }
        Compression::Xz => {
            let reader = lzma_rust2::XzReader::new_mem_limit(bytes, true, XZ_MEMORY_KIB_MAX);
            read_bounded(reader, bytes.len() * 8, limits)
        }
        Compression::Zstd => return Err(Error::UnsupportedCompression { compression }),
    };
    expanded
        .map_err(|source| Error::Damaged { compression, source })?
        .ok_or(Error::TooLarge { limit_bytes: limits.expanded_bytes_max })
}

/// Reads to the end; `Ok(None)` when there is more than the limit.
fn read_bounded(
    reader: impl Read,
    expected_bytes: usize,
    limits: &Limits,
) -> io::Result<Option<Vec<u8>>> {
    let limit = limits.expanded_bytes_max;
    let mut expanded = Vec::with_capacity(expected_bytes.min(limit));
    // One byte beyond the limit tells "exactly at the limit" from "too much".
    let cut = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(cut).read_to_end(&mut expanded)?;
    Ok((expanded.len() <= limit).then_some(expanded))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PLAIN: &[u8] = b"Package: a\nVersion: 1.0\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_compression_yields_the_same_bytes() {
        let limits = Limits::default();
        for packed in [PLAIN.to_vec(), gzip(PLAIN), bzip2(PLAIN)] {
            assert_eq!(expand(&packed, &limits).unwrap(), PLAIN);
        }
    }

    #[test]
    fn gzip_members_are_read_one_after_the_other() {
        let both = [gzip(b"Package: a\n"), gzip(b"Version: 1\n")].concat();
        assert_eq!(expand(&both, &Limits::default()).unwrap(), b"Package: a\nVersion: 1\n");
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let limits = Limits { expanded_bytes_max: 1 << 20, ..Limits::default() };
        let zeros = vec![0; (1 << 20) + 1];
        for bomb in [zeros.clone(), gzip(&zeros), bzip2(&zeros)] {
            let error = expand(&bomb, &limits).unwrap_err();
            assert!(matches!(error, Error::TooLarge { limit_bytes: 1_048_576 }), "{error}");
        }
        let at_limit = &zeros[1..];
        assert_eq!(expand(&gzip(at_limit), &limits).unwrap(), at_limit);
    }

    #[test]
    fn a_cut_file_is_damaged_not_short() {
        for packed in [gzip(PLAIN), bzip2(PLAIN)] {
            let error = expand(&packed[..packed.len() - 3], &Limits::default()).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
        }
    }

    #[test]
    fn zstd_is_named_in_the_refusal() {
        let error = expand(&[0x28, 0xb5, 0x2f, 0xfd, 0], &Limits::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "zstd compression is not supported: ask for another form of the index"
        );
    }
}
