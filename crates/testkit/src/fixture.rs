//! Small inputs that every test needs: a directory, bytes, a digest.

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// A fresh directory, removed when the value is dropped.
///
/// # Panics
/// When the system's temporary directory cannot be written.
pub fn temp_dir() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("trunkline-test-")
        .tempdir()
        .expect("the temporary directory is writable")
}

/// `len` pseudo-random bytes that depend on nothing but `seed` (xorshift64*): incompressible, so
/// a codec cannot hide a mistake, and equal in every run.
pub fn bytes(seed: u64, len: usize) -> Bytes {
    // A seed of zero would stay zero for ever; spread small seeds over the whole word.
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        out.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    out.truncate(len);
    Bytes::from(out)
}

/// The SHA-256 of `data` in lower-case hexadecimal.
pub fn sha256_hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_depend_on_the_seed_alone() {
        assert_eq!(bytes(7, 100), bytes(7, 100));
        assert_ne!(bytes(7, 100), bytes(8, 100));
        assert_eq!(bytes(7, 100)[..10], bytes(7, 10)[..]);
        assert_eq!(bytes(0, 3).len(), 3);
    }

    #[test]
    fn sha256_of_nothing_is_the_known_value() {
        assert!(sha256_hex(b"").starts_with("e3b0c44298fc1c14"));
    }
}
