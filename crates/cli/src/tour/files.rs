//! The files of the tour: the same in every run, and no machine's own.

use bytes::Bytes;
use trunkline_proto::digest::{Algorithm, Digest, Hasher};

/// Spread of the sizes: the standard deviation of their logarithm. Package repositories have
/// about this one: most files small, a few several times larger.
const SIZE_SIGMA: f64 = 1.0;

/// No file is larger than this many medians.
const SIZE_MEDIANS_MAX: f64 = 12.0;

/// Where the numbers start; any other value makes as good a tour.
const SEED: u64 = 0x7275_6e6b_6c69_6e65;

/// One file with what a client may check it by.
#[derive(Clone, Debug)]
pub(super) struct TourFile {
    /// Its name, without a folder.
    pub(super) name: String,
    /// Its bytes, made once and shared by all answers.
    pub(super) body: Bytes,
    /// The SHA-256 of the bytes.
    pub(super) sha256: Digest,
    /// A strong entity tag, with its quotes (RFC 9110 §8.8.3).
    pub(super) etag: String,
}

/// The files of a tour, in order.
#[derive(Debug)]
pub(super) struct FileSet {
    files: Vec<TourFile>,
}

impl FileSet {
    /// Makes `count` files whose sizes are log-normal around the median; `None` when they would
    /// have more than `bytes_max` bytes in all.
    pub(super) fn generate(count: usize, median_bytes: u64, bytes_max: u64) -> Option<Self> {
        let mut random = SplitMix64(SEED);
        let sizes: Vec<u64> = (0..count).map(|_| size(&mut random, median_bytes)).collect();
        let total: u64 = sizes.iter().sum();
        if total > bytes_max {
            return None;
        }
        let files =
            sizes.into_iter().enumerate().map(|(index, size)| file(&mut random, index, size));
        Some(Self { files: files.collect() })
    }

    /// All files.
    pub(super) fn as_slice(&self) -> &[TourFile] {
        &self.files
    }

    /// The file at a URL's path.
    pub(super) fn at_path(&self, path: &str) -> Option<&TourFile> {
        let name = path.strip_prefix('/')?;
        let index: usize = name.strip_suffix(".bin")?.parse().ok()?;
        self.files.get(index).filter(|file| file.name == name)
    }

    /// Bytes in all.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.body.len() as u64).sum()
    }
}

fn file(random: &mut SplitMix64, index: usize, size: u64) -> TourFile {
    let size = usize::try_from(size).expect("a file's size is bounded by the tour's");
    let mut body = Vec::with_capacity(size + size_of::<u64>());
    while body.len() < size {
        body.extend_from_slice(&random.next().to_le_bytes());
    }
    body.truncate(size);
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(&body);
    let sha256 = hasher.finish();
    let etag = format!("\"{}\"", &sha256.to_hex()[..16]);
    TourFile { name: format!("{index:04}.bin"), body: body.into(), sha256, etag }
}

/// A log-normal size, by Box and Muller's transform.
fn size(random: &mut SplitMix64, median_bytes: u64) -> u64 {
    let (radius, angle) = (random.unit(), random.unit());
    let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
    let medians = (SIZE_SIGMA * normal).exp().min(SIZE_MEDIANS_MAX);
    ((median_bytes as f64 * medians) as u64).max(1)
}

/// The generator of that name (Steele, Lea and Flood, 2014): bytes that do not compress.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_set_is_what_the_tour_promises() {
        let set = FileSet::generate(150, 150 << 10, u64::MAX).unwrap();
        assert_eq!(set.as_slice().len(), 150);
        assert!((30_000_000..=45_000_000).contains(&set.bytes()), "{} bytes", set.bytes());
    }

    #[test]
    fn every_run_has_the_same_files() {
        let digests = |set: FileSet| -> Vec<Digest> {
            set.as_slice().iter().map(|file| file.sha256).collect()
        };
        let (first, second) = (
            FileSet::generate(5, 2000, u64::MAX).unwrap(),
            FileSet::generate(5, 2000, u64::MAX).unwrap(),
        );
        assert_eq!(digests(first), digests(second));
    }

    #[test]
    fn files_are_found_by_their_path_alone() {
        let set = FileSet::generate(3, 100, u64::MAX).unwrap();
        assert_eq!(set.at_path("/0002.bin").unwrap().name, "0002.bin");
        for path in ["/2.bin", "/0003.bin", "0001.bin", "/", "/x/0001.bin", "/0001.bin/"] {
            assert!(set.at_path(path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_set_beyond_the_limit_is_refused_before_it_takes_memory() {
        assert!(FileSet::generate(1000, 1 << 40, 1 << 30).is_none());
    }
}
