//! How long a server asks to wait (RFC 9110 §10.2.3).

use std::time::{Duration, SystemTime};

use crate::http_date;

/// Reads seconds or a date; a date in the past is no wait. `None` when it is neither.
///
/// The result is what the server asked for, up to `u64::MAX` seconds: the caller has a limit on
/// what it grants.
pub fn parse(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are as good as for ever.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date::parse(text)?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn seconds_and_dates() {
        let now = http_date::parse("Tue, 01 Dec 2026 10:00:00 GMT").unwrap();
        assert_eq!(parse(" 120 ", now), Some(Duration::from_secs(120)));
        let date = "Tue, 01 Dec 2026 10:00:07 GMT";
        assert_eq!(parse(date, now), Some(Duration::from_secs(7)));
        assert_eq!(parse("Tue, 01 Dec 2026 09:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(parse("99999999999999999999999", now), Some(Duration::from_secs(u64::MAX)));
        for bad in ["", "-1", "+1", "1.5", "soon"] {
            assert_eq!(parse(bad, now), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", now_s: u32) {
            let _ = parse(&text, SystemTime::UNIX_EPOCH + Duration::from_secs(now_s.into()));
        }

        #[test]
        fn a_date_is_as_far_as_it_is_ahead(now_s: u32, ahead_s: u32) {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now_s.into());
            let ahead = Duration::from_secs(ahead_s.into());
            let date = http_date::format(now + ahead).unwrap();
            prop_assert_eq!(parse(&date, now), Some(ahead));
            prop_assert_eq!(parse(&ahead_s.to_string(), now), Some(ahead));
        }
    }
}
