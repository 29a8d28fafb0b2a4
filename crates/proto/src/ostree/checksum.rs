//! A SHA-256, the name of every OSTree object.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A SHA-256 in binary form; shown and parsed as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum([u8; 32]);

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a checksum: 64 lower-case hexadecimal digits are expected")]
pub struct ChecksumParseError;

impl Checksum {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// Wraps 32 bytes that are a checksum already.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A checksum from a slice; `None` unless it has 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The SHA-256 of `data`.
    pub fn of(data: &[u8]) -> Self {
        Self(Sha256::digest(data).into())
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 digits.
    pub fn to_hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 0xf] {
                text.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
            }
        }
        text
    }

    /// Reads 64 digits given as bytes, without a `str` in between.
    ///
    /// # Errors
    /// [`ChecksumParseError`] when the length or a digit is wrong; upper case is refused, since
    /// paths are compared byte by byte.
    pub fn from_hex(text: &[u8]) -> Result<Self, ChecksumParseError> {
        if text.len() != 64 {
            return Err(ChecksumParseError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, ChecksumParseError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(ChecksumParseError),
    }
}

impl FromStr for Checksum {
    type Err = ChecksumParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_hex(text.as_bytes())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_hex())
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_is_strict() {
        let sum = Checksum::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sum.to_string(), text);
        assert_eq!(text.parse(), Ok(sum));
        assert_eq!(text.to_uppercase().parse::<Checksum>(), Err(ChecksumParseError));
        assert_eq!(text[1..].parse::<Checksum>(), Err(ChecksumParseError));
        assert_eq!(Checksum::from_slice(&sum.as_bytes()[1..]), None);
    }
}
