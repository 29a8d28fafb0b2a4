//! A repository's index in any of its three spellings.

use std::borrow::Cow;

use super::{Compression, Error, Limits, StringMatrix, dcf, expand, rds};

/// Reads `PACKAGES`, `PACKAGES.gz` or `PACKAGES.rds`; the content, not a name, tells which.
///
/// # Errors
/// Any [`Error`] of the format the file turns out to be in.
pub fn read_index(bytes: &[u8], limits: &Limits) -> Result<StringMatrix, Error> {
    let expanded = match Compression::detect(bytes) {
        Compression::None if bytes.len() <= limits.expanded_bytes_max => Cow::Borrowed(bytes),
        _ => Cow::Owned(expand(bytes, limits)?),
    };
    if rds::is_xdr(&expanded) {
        rds::read(&expanded)?.into_string_matrix()
    } else {
        dcf::read(&expanded, limits)
    }
}
