//! Byte ranges and the validators that make them safe (RFC 9110 §14, §13.1.5, §8.8).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::http_date;

/// A Last-Modified date is a strong validator only when it lies at least this far before the
/// answer's Date (RFC 9110 §8.8.2.2 names one second as the resolution to beat).
const STRONG_DATE_AGE: Duration = Duration::from_secs(1);

/// Bytes `start..end` of a file; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    start: u64,
    end: u64,
}

impl ByteRange {
    /// The range `start..end` (end exclusive); `None` when it is empty.
    pub fn new(start: u64, end: u64) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// The first byte.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The byte after the last.
    pub fn end(self) -> u64 {
        self.end
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// The value of a Range header (RFC 9110 §14.2), where the end is inclusive.
    pub fn header_value(self) -> String {
        format!("bytes={}-{}", self.start, self.end - 1)
    }

    /// Cuts the range into pieces of at most `bytes_max` bytes, in order; 0 counts as 1.
    pub fn split(self, bytes_max: u64) -> impl Iterator<Item = Self> {
        let step = bytes_max.max(1);
        let mut start = self.start;
        std::iter::from_fn(move || {
            let piece = Self::new(start, self.end.min(start.saturating_add(step)))?;
            start = piece.end;
            Some(piece)
        })
    }
}

/// Joins ranges that overlap or lie at most `gap_max` bytes apart, as long as the result has at
/// most `bytes_max` bytes. The result is sorted.
pub fn coalesce(ranges: &mut Vec<ByteRange>, gap_max: u64, bytes_max: u64) {
    ranges.sort_unstable();
    let mut joined: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..) {
        if let Some(last) = joined.last_mut() {
            let near = range.start <= last.end.saturating_add(gap_max);
            let end = last.end.max(range.end);
            if near && (end - last.start <= bytes_max || end == last.end) {
                last.end = end;
                continue;
            }
        }
        joined.push(range);
    }
    *ranges = joined;
}

/// A Content-Range header's value (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// The range that the body carries.
    Satisfied {
        /// The range.
        range: ByteRange,
        /// The whole file's length, when it is told.
        complete_length: Option<u64>,
    },
    /// The answer to a range beyond the end (status 416).
    Unsatisfied {
        /// The whole file's length.
        complete_length: u64,
    },
}

/// A Content-Range header that does not follow the grammar or contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a valid Content-Range; `bytes FIRST-LAST/LENGTH` is expected")]
pub struct ContentRangeError;

impl FromStr for ContentRange {
    type Err = ContentRangeError;

    fn from_str(text: &str) -> Result<Self, ContentRangeError> {
        let text = text.trim_matches([' ', '\t']);
        let (unit, rest) = text.split_once(' ').ok_or(ContentRangeError)?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return Err(ContentRangeError);
        }
        let (range, length) = rest.split_once('/').ok_or(ContentRangeError)?;
        if range == "*" {
            return Ok(Self::Unsatisfied { complete_length: number(length)? });
        }
        let complete_length = if length == "*" { None } else { Some(number(length)?) };
        let (first, last) = range.split_once('-').ok_or(ContentRangeError)?;
        let end = number(last)?.checked_add(1).ok_or(ContentRangeError)?;
        // The end is exclusive here, so a file of 2^64 bytes cannot be named; none exists.
        let range = ByteRange::new(number(first)?, end).ok_or(ContentRangeError)?;
        if complete_length.is_some_and(|length| range.end > length) {
            return Err(ContentRangeError);
        }
        Ok(Self::Satisfied { range, complete_length })
    }
}

/// Digits alone: `parse` would also take a sign.
fn number(text: &str) -> Result<u64, ContentRangeError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ContentRangeError);
    }
    text.parse().map_err(|_| ContentRangeError)
}

/// What tells two versions of a file apart for certain: a strong validator (RFC 9110 §8.8.1).
///
/// Its text form is one line, which can be kept beside a partial file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Validator(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// With its quotes.
    Etag(String),
    /// As the server wrote it.
    LastModified(String),
}

impl Validator {
    /// The strong validator that an answer's headers give: a strong ETag, else a Last-Modified
    /// date that is old enough (RFC 9110 §13.1.5, §8.8.2.2).
    ///
    /// An answer with an ETag that is weak or malformed has no strong validator, whatever its
    /// date: the date may stand in only where there is no entity tag.
    pub fn from_headers(
        etag: Option<&str>,
        last_modified: Option<&str>,
        date: Option<&str>,
    ) -> Option<Self> {
        if let Some(etag) = etag.map(str::trim) {
            return is_strong_etag(etag).then(|| Self(Kind::Etag(etag.to_owned())));
        }
        let last_modified = last_modified?.trim();
        let modified = http_date::parse(last_modified)?;
        let sent = http_date::parse(date?)?;
        let age = sent.duration_since(modified).ok()?;
        (age >= STRONG_DATE_AGE).then(|| Self(Kind::LastModified(last_modified.to_owned())))
    }

    /// The value of an If-Range header.
    pub fn if_range_value(&self) -> &str {
        match &self.0 {
            Kind::Etag(text) | Kind::LastModified(text) => text,
        }
    }

    /// Whether both are for certain of the same version of the file: the same entity tag, octet by
    /// octet (RFC 9110 §8.8.3.2), or dates of the same second, however they are spelt. A tag and a
    /// date are never the same.
    pub fn same_as(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Etag(mine), Kind::Etag(theirs)) => mine == theirs,
            (Kind::LastModified(mine), Kind::LastModified(theirs)) => {
                // Both are dates, by construction.
                mine == theirs || http_date::parse(mine) == http_date::parse(theirs)
            }
            _ => false,
        }
    }
}

/// Whether a text is a strong entity tag (RFC 9110 §8.8.3). Blanks between the quotes, which the
/// grammar does not have, are let through: servers send them, and they compare like the rest.
fn is_strong_etag(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.chars().any(|c| c == '"' || c.is_control()))
}

impl fmt::Display for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Etag(text) => write!(f, "etag {text}"),
            Kind::LastModified(text) => write!(f, "modified {text}"),
        }
    }
}

/// A line that is no validator; what lies beside it cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a validator's line")]
pub struct ValidatorError;

impl FromStr for Validator {
    type Err = ValidatorError;

    fn from_str(text: &str) -> Result<Self, ValidatorError> {
        // The line lay in a file that anything may have changed: what is read back is held to the
        // same rules as what a server sends.
        match text.split_once(' ') {
            Some(("etag", tag)) if is_strong_etag(tag) => Ok(Self(Kind::Etag(tag.to_owned()))),
            Some(("modified", date)) if date.trim() == date && http_date::parse(date).is_some() => {
                Ok(Self(Kind::LastModified(date.to_owned())))
            }
            _ => Err(ValidatorError),
        }
    }
}

#[cfg(test)]
mod tests;
