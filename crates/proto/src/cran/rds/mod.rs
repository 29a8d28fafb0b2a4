//! R's serialization format, as far as repositories use it: `PACKAGES.rds` and
//! `Meta/archive.rds`.
//!
//! `saveRDS()` writes big-endian XDR, format version 3 (2 before R 3.6), compressed or not. Data
//! only: closures, environments and other things that could do something when loaded are refused.
//! (R Internals, section 1.8 "Serialization Formats"; R: `src/main/serialize.c`.)

mod altrep;
mod object;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use object::{Object, Value};
pub use read::{is_xdr, read};
pub use write::write;

/// How deep lists may be nested. A data frame in a list with attributes of its own needs 4.
pub const DEPTH_MAX: usize = 32;

/// Type codes of the format (R Internals 1.1.1 and 1.8).
mod code {
    pub(super) const SYMBOL: u8 = 1;
    pub(super) const PAIRLIST: u8 = 2;
    pub(super) const CHAR: u8 = 9;
    pub(super) const LOGICAL: u8 = 10;
    pub(super) const INTEGER: u8 = 13;
    pub(super) const REAL: u8 = 14;
    pub(super) const STRINGS: u8 = 16;
    pub(super) const LIST: u8 = 19;
    pub(super) const RAW: u8 = 24;
    pub(super) const ALTREP: u8 = 238;
    pub(super) const ATTRIBUTED_PAIRLIST: u8 = 239;
    pub(super) const NULL: u8 = 254;
    pub(super) const REFERENCE: u8 = 255;
}

/// Bits of an item's flag word, above the type code.
mod flag {
    pub(super) const OBJECT: u32 = 1 << 8;
    pub(super) const ATTRIBUTES: u32 = 1 << 9;
    pub(super) const TAG: u32 = 1 << 10;
    /// Encoding bits of a string, in the "levels" part of the word.
    pub(super) const LATIN1: u32 = 1 << (12 + 2);
    pub(super) const UTF8: u32 = 1 << (12 + 3);
    pub(super) const ASCII: u32 = 1 << (12 + 6);
}

/// R's `NA_integer_`, and `NA` in a logical vector.
const NA_INTEGER: i32 = i32::MIN;
