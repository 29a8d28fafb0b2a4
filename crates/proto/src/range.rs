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

    /// Cuts the range into pieces of at most `bytes_max` bytes, in order.
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
        let (unit, rest) = text.trim().split_once(' ').ok_or(ContentRangeError)?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return Err(ContentRangeError);
        }
        let (range, length) = rest.trim().split_once('/').ok_or(ContentRangeError)?;
        if range == "*" {
            return Ok(Self::Unsatisfied { complete_length: number(length)? });
        }
        let complete_length = if length == "*" { None } else { Some(number(length)?) };
        let (first, last) = range.split_once('-').ok_or(ContentRangeError)?;
        let end = number(last)?.checked_add(1).ok_or(ContentRangeError)?;
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
    /// date that is old enough. Weak ETags never qualify.
    pub fn from_headers(
        etag: Option<&str>,
        last_modified: Option<&str>,
        date: Option<&str>,
    ) -> Option<Self> {
        if let Some(etag) = etag.map(str::trim) {
            let is_strong = etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"');
            return (is_strong && is_line(etag)).then(|| Self(Kind::Etag(etag.to_owned())));
        }
        let last_modified = last_modified.map(str::trim).filter(|text| is_line(text))?;
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

    /// Whether both are of the same version of the file.
    pub fn same_as(&self, other: &Self) -> bool {
        self == other
    }
}

fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

impl fmt::Display for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Etag(text) => write!(f, "etag {text}"),
            Kind::LastModified(text) => write!(f, "modified {text}"),
        }
    }
}

/// A line that is no validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a validator's line")]
pub struct ValidatorError;

impl FromStr for Validator {
    type Err = ValidatorError;

    fn from_str(text: &str) -> Result<Self, ValidatorError> {
        let (kind, value) = text.split_once(' ').ok_or(ValidatorError)?;
        if value.is_empty() || !is_line(value) {
            return Err(ValidatorError);
        }
        match kind {
            "etag" => Ok(Self(Kind::Etag(value.to_owned()))),
            "modified" => Ok(Self(Kind::LastModified(value.to_owned()))),
            _ => Err(ValidatorError),
        }
    }
}

#[cfg(test)]
mod tests;
