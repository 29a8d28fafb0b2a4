//! HTTP dates (RFC 9110 §5.6.7), in all three spellings.

use std::time::SystemTime;

/// Reads a date; `None` when it is none.
pub fn parse(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text.trim()).ok()
}

/// Writes a date in the preferred spelling.
pub fn format(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}
