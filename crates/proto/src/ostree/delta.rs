//! Static deltas: named and recognised, never taken apart.
//!
//! The format of a delta's parts is called an implementation detail by libostree, so Trunkline
//! carries the files as they are. A delta lies below `deltas/<2>/<rest>/`, where the 43 or 87
//! characters are `to` or `from-to`, each checksum in modified base64 (`_` for `/`, no `=`).

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig as Config};

use super::checksum::Checksum;
use super::commit::checksum;
use super::error::FormatError;
use super::variant::{ALIGN_1, ALIGN_8, Dict, TupleReader, VariantError};

/// Digits of a checksum in modified base64.
const BASE64_DIGITS: usize = 43;

/// The two commits a delta leads between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeltaName {
    /// The commit a device has; `None` for a delta from nothing.
    pub from: Option<Checksum>,
    /// The commit it gets.
    pub to: Checksum,
}

impl DeltaName {
    /// The directory below the repository: `deltas/<2>/<rest>`.
    pub fn path(&self) -> String {
        let name = match self.from {
            Some(from) => format!("{}-{}", encode(&from), encode(&self.to)),
            None => encode(&self.to),
        };
        format!("deltas/{}/{}", &name[..2], &name[2..])
    }

    /// Reads the two components after `deltas/`; `None` when they name no delta.
    pub fn from_path(prefix: &str, rest: &str) -> Option<Self> {
        if prefix.len() != 2 {
            return None;
        }
        let name = format!("{prefix}{rest}");
        if !name.is_ascii() {
            return None;
        }
        if name.len() == BASE64_DIGITS {
            return Some(Self { from: None, to: decode(&name)? });
        }
        let (from, to) = (name.get(..BASE64_DIGITS)?, name.get(BASE64_DIGITS + 1..)?);
        if name.as_bytes()[BASE64_DIGITS] != b'-' {
            return None;
        }
        Some(Self { from: Some(decode(from)?), to: decode(to)? })
    }
}

/// Whether this is the name of a delta's file: `superblock`, `meta` or a part's number.
pub fn is_part_name(name: &str) -> bool {
    let number = !name.is_empty() && name.len() <= 9 && name.bytes().all(|c| c.is_ascii_digit());
    number || matches!(name, "superblock" | "meta")
}

fn base64() -> GeneralPurpose {
    const CONFIG: GeneralPurposeConfig = Config::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone);
    let alphabet =
        Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+_")
            .expect("invariant: 64 different characters");
    GeneralPurpose::new(&alphabet, CONFIG)
}

fn encode(sum: &Checksum) -> String {
    base64().encode(sum.as_bytes())
}

fn decode(text: &str) -> Option<Checksum> {
    Checksum::from_slice(&base64().decode(text).ok()?)
}

/// The head of a delta's superblock: enough to know which commits it claims to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// When it was made, in seconds since 1970.
    pub timestamp_s: u64,
    /// The commits.
    pub name: DeltaName,
}

impl Superblock {
    /// Recognises a superblock `(a{sv}tayay(commit)aya(uayttay)a(yaytt))`; parts are not looked at.
    ///
    /// # Errors
    /// [`FormatError`] when the head is not that of a superblock.
    pub fn recognise(data: &[u8]) -> Result<Self, FormatError> {
        let (timestamp_s, from, to) =
            Self::head(data).map_err(FormatError::variant("delta superblock"))?;
        let from = match from {
            [] => None,
            bytes => Some(checksum("from", bytes)?),
        };
        Ok(Self { timestamp_s, name: DeltaName { from, to: checksum("to", to)? } })
    }

    fn head(data: &[u8]) -> Result<(u64, &[u8], &[u8]), VariantError> {
        let mut tuple = TupleReader::new(data);
        Dict::new(tuple.variable(ALIGN_8)?)?;
        let timestamp_s = u64::from_be_bytes(tuple.fixed(ALIGN_8)?);
        let from = tuple.variable(ALIGN_1)?;
        Ok((timestamp_s, from, tuple.variable(ALIGN_1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::variant::TupleWriter;
    use super::*;

    #[test]
    fn names_round_trip() {
        for from in [None, Some(Checksum::of(b"from"))] {
            let name = DeltaName { from, to: Checksum::of(b"to") };
            let path = name.path();
            let mut parts = path.split('/').skip(1);
            let (prefix, rest) = (parts.next().unwrap(), parts.next().unwrap());
            assert_eq!(DeltaName::from_path(prefix, rest), Some(name));
            assert_eq!(DeltaName::from_path(prefix, &rest[1..]), None);
        }
        assert_eq!(DeltaName::from_path("..", ".."), None);
        assert_eq!(DeltaName::from_path("é", "x"), None);
        assert!(is_part_name("0") && is_part_name("superblock") && !is_part_name("../x"));
    }

    #[test]
    fn recognises_a_superblock() {
        let to = Checksum::of(b"to");
        let mut tuple = TupleWriter::new();
        tuple
            .variable(ALIGN_8, &[])
            .fixed(ALIGN_8, &7u64.to_be_bytes())
            .variable(ALIGN_1, &[])
            .variable(ALIGN_1, to.as_bytes());
        let bytes = tuple.last(ALIGN_1, b"opaque");
        let block = Superblock::recognise(&bytes).unwrap();
        assert_eq!(block, Superblock { timestamp_s: 7, name: DeltaName { from: None, to } });
        assert!(Superblock::recognise(b"").is_err());
    }
}
