//! Message digests that verify a transfer: names, hex forms, and streaming computation.

use std::fmt;
use std::str::FromStr;

use md5::Digest as _;
use thiserror::Error;

/// Longest digest, in bytes (SHA-512).
const DIGEST_BYTES_MAX: usize = 64;

/// The algorithms that published checksums use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// MD5 (RFC 1321): guards against accidents only; R's PACKAGES files have it.
    Md5,
    /// SHA-1 (RFC 3174): guards against accidents only.
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-512 (FIPS 180-4).
    Sha512,
}

/// All of them; no two have the same length, so that bare hex tells its algorithm.
const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];

impl Algorithm {
    /// The digest's length in bytes.
    pub fn length(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// The name in lower case without dash.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }
}

impl FromStr for Algorithm {
    type Err = DigestError;

    /// Reads a name in any case, with or without a dash before the number.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "md5" => Ok(Self::Md5),
            "sha1" | "sha-1" => Ok(Self::Sha1),
            "sha256" | "sha-256" => Ok(Self::Sha256),
            "sha512" | "sha-512" => Ok(Self::Sha512),
            _ => Err(DigestError::UnknownAlgorithm { name: text.to_owned() }),
        }
    }
}

/// A digest with its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    /// Zero beyond the algorithm's length.
    bytes: [u8; DIGEST_BYTES_MAX],
}

impl Digest {
    /// A digest from its bytes.
    ///
    /// # Errors
    /// [`DigestError::Length`] when the number of bytes is not the algorithm's.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, DigestError> {
        if bytes.len() != algorithm.length() {
            let (expected, found) = (2 * algorithm.length(), 2 * bytes.len());
            return Err(DigestError::Length { algorithm, expected, found });
        }
        let mut padded = [0; DIGEST_BYTES_MAX];
        padded[..bytes.len()].copy_from_slice(bytes);
        Ok(Self { algorithm, bytes: padded })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes, as many as the algorithm has.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.length()]
    }

    /// The bytes in lower-case hex.
    pub fn to_hex(&self) -> String {
        use fmt::Write as _;
        self.as_bytes().iter().fold(String::with_capacity(128), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    /// Reads `algorithm:hex`, `algorithm=hex` (aria2), or bare hex, whose length tells the
    /// algorithm.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let text = text.trim();
        let (algorithm, hex) = match text.split_once([':', '=']) {
            Some((name, hex)) => (name.parse()?, hex.trim()),
            None => (by_length(text)?, text),
        };
        let mut bytes = [0; DIGEST_BYTES_MAX];
        let length = decode_hex(hex, &mut bytes, algorithm)?;
        Self::new(algorithm, &bytes[..length])
    }
}

fn by_length(hex: &str) -> Result<Algorithm, DigestError> {
    ALGORITHMS
        .into_iter()
        .find(|algorithm| 2 * algorithm.length() == hex.len())
        .ok_or(DigestError::Bare { digits: hex.len() })
}

fn decode_hex(
    hex: &str,
    bytes: &mut [u8; DIGEST_BYTES_MAX],
    algorithm: Algorithm,
) -> Result<usize, DigestError> {
    let expected = 2 * algorithm.length();
    if hex.len() != expected {
        return Err(DigestError::Length { algorithm, expected, found: hex.len() });
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let digit = |c: u8| (c as char).to_digit(16).ok_or(DigestError::NotHex);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(algorithm.length())
}

/// A checksum that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DigestError {
    /// The algorithm's name is not known.
    #[error("`{name}` is no known checksum; use md5, sha1, sha256 or sha512")]
    UnknownAlgorithm {
        /// The name found.
        name: String,
    },
    /// The number of hex digits is not the algorithm's.
    #[error("a {} checksum has {expected} hex digits, not {found}", algorithm.as_str())]
    Length {
        /// The algorithm.
        algorithm: Algorithm,
        /// Digits needed.
        expected: usize,
        /// Digits found.
        found: usize,
    },
    /// A character is no hex digit.
    #[error("a checksum is written in hex digits")]
    NotHex,
    /// Bare hex of a length that no algorithm has.
    #[error("{digits} hex digits are no md5, sha1, sha256 or sha512; write algorithm:hex")]
    Bare {
        /// Digits found.
        digits: usize,
    },
}

/// Computes a digest from pieces.
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
}

impl Hasher {
    /// A hasher that has seen nothing.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Md5 => State::Md5(md5::Md5::new()),
            Algorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Md5(state) => state.update(bytes),
            State::Sha1(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Digest {
        let of = |algorithm, bytes: &[u8]| {
            Digest::new(algorithm, bytes).expect("the algorithm's own length")
        };
        match self.0 {
            State::Md5(state) => of(Algorithm::Md5, &state.finalize()),
            State::Sha1(state) => of(Algorithm::Sha1, &state.finalize()),
            State::Sha256(state) => of(Algorithm::Sha256, &state.finalize()),
            State::Sha512(state) => of(Algorithm::Sha512, &state.finalize()),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(algorithm: Algorithm, bytes: &[u8]) -> String {
        let mut hasher = Hasher::new(algorithm);
        bytes.chunks(3).for_each(|chunk| hasher.update(chunk));
        hasher.finish().to_hex()
    }

    #[test]
    fn the_standards_test_vectors() {
        assert_eq!(hash(Algorithm::Md5, b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        assert_eq!(hash(Algorithm::Sha1, b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            hash(Algorithm::Sha256, b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hash(Algorithm::Sha512, b"abc"),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        );
    }

    #[test]
    fn every_spelling_of_a_checksum() {
        let hex = "d41d8cd98f00b204e9800998ecf8427e";
        let expected = Digest::from_str(&format!("md5:{hex}")).unwrap();
        for text in [format!("MD5={hex}"), hex.to_owned(), format!(" md5: {}", hex.to_uppercase())]
        {
            assert_eq!(text.parse::<Digest>().unwrap(), expected, "{text}");
        }
        assert_eq!("sha-256".parse::<Algorithm>().unwrap(), Algorithm::Sha256);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!("abc".parse::<Digest>(), Err(DigestError::Bare { digits: 3 }));
        let wrong = "sha256:12".parse::<Digest>();
        assert!(matches!(wrong, Err(DigestError::Length { expected: 64, found: 2, .. })));
        let wrong = format!("md5:{}", "é".repeat(16)).parse::<Digest>();
        assert_eq!(wrong, Err(DigestError::NotHex));
        let wrong = "crc32:00000000".parse::<Digest>();
        assert!(matches!(wrong, Err(DigestError::UnknownAlgorithm { .. })));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Digest>();
        }

        #[test]
        fn what_is_shown_is_read(bytes in prop::collection::vec(any::<u8>(), 64)) {
            for algorithm in ALGORITHMS {
                let digest = Digest::new(algorithm, &bytes[..algorithm.length()]).unwrap();
                let name = algorithm.as_str();
                for text in [
                    digest.to_string(),
                    digest.to_hex(),
                    format!("{}={}", name.to_uppercase(), digest.to_hex()),
                ] {
                    prop_assert_eq!(text.parse::<Digest>(), Ok(digest));
                }
            }
        }

        #[test]
        fn pieces_hash_like_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..400), at: prop::sample::Index) {
            let at = at.index(bytes.len() + 1);
            for algorithm in ALGORITHMS {
                let mut whole = Hasher::new(algorithm);
                whole.update(&bytes);
                let mut pieces = Hasher::new(algorithm);
                pieces.update(&bytes[..at]);
                pieces.update(&bytes[at..]);
                prop_assert_eq!(whole.finish(), pieces.finish());
            }
        }
    }
}
