//! HTTP dates (RFC 9110 §5.6.7), in all three spellings.

use std::time::{Duration, SystemTime};

/// The first second that a date's four digits cannot name: the start of the year 10000, in
/// seconds after 1970.
const SECONDS_MAX: u64 = 253_402_300_800;

/// Reads a date; `None` when it is none, or when it lies before 1970.
pub fn parse(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text.trim()).ok()
}

/// Writes a date in the preferred spelling, without its fraction of a second. `None` when it
/// lies before 1970 or after 9999: file times can.
pub fn format(time: SystemTime) -> Option<String> {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since_1970 < Duration::from_secs(SECONDS_MAX)).then(|| httpdate::fmt_http_date(time))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_three_spellings_name_one_moment() {
        let moment = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), moment);
        assert_eq!(parse("Sunday, 06-Nov-94 08:49:37 GMT"), moment);
        assert_eq!(parse(" Sun Nov  6 08:49:37 1994 "), moment);
    }

    #[test]
    fn a_moment_that_has_no_http_date_is_not_written() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(format(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), None);
        assert_eq!(format(at(SECONDS_MAX)), None);
        assert_eq!(format(at(SECONDS_MAX - 1)).as_deref(), Some("Fri, 31 Dec 9999 23:59:59 GMT"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read(seconds in 0..SECONDS_MAX) {
            let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let text = format(moment).unwrap();
            prop_assert_eq!(parse(&text), Some(moment));
        }
    }
}
