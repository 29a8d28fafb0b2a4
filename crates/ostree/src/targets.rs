//! The signed list of targets that devices update to: does it name a commit, and is it still valid?

use serde::Deserialize;
use serde_json::{Map, Value};
use trunkline_proto::ostree::Checksum;

/// Why a list of targets does not offer a commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetsError {
    /// The time it is valid until has passed.
    #[error("targets.json expired at {0}")]
    Expired(String),
    /// The time it is valid until cannot be read.
    #[error("targets.json expires at `{0}`, which is no time of the form 2030-01-31T23:59:59Z")]
    Expiry(String),
    /// Not the JSON that is expected.
    #[error("targets.json cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// No target has the commit.
    #[error("targets.json has no target with the hash {0}")]
    Missing(Checksum),
}

#[derive(Deserialize)]
struct Targets {
    signed: Signed,
}

#[derive(Deserialize)]
struct Signed {
    expires: String,
    targets: Map<String, Value>,
}

/// Checks a targets.json as garage-check does: valid at `now_s` (seconds since 1970), and with a
/// target whose SHA-256 is the commit. Signatures are not looked at.
///
/// # Errors
/// [`TargetsError`] says which rule it breaks.
pub fn check_targets(json: &[u8], commit: &Checksum, now_s: u64) -> Result<(), TargetsError> {
    let Targets { signed } = serde_json::from_slice(json)?;
    let Some(expires_s) = parse_time(&signed.expires) else {
        return Err(TargetsError::Expiry(signed.expires));
    };
    if expires_s <= now_s {
        return Err(TargetsError::Expired(signed.expires));
    }
    let hex = commit.to_hex();
    let names = |target: &Value| {
        let hash = target.get("hashes").and_then(|hashes| hashes.get("sha256"));
        hash.and_then(Value::as_str) == Some(&hex)
    };
    if signed.targets.values().any(names) { Ok(()) } else { Err(TargetsError::Missing(*commit)) }
}

/// Seconds since 1970 of a time in UTC (RFC 3339, ending in `Z`, fractions passed over).
fn parse_time(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let time = time.split_once('.').map_or(time, |(whole, _)| whole);
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let plausible = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !plausible {
        return None;
    }
    // Years that begin in March put the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_to_year = year * 365 + year / 4 - year / 100 + year / 400;
    let days_to_month = (153 * month + 2) / 5;
    let days_to_1970 = 719_468;
    let days = days_to_year + days_to_month + day - 1 - days_to_1970;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-12-01T05:00:00.25Z", Some(1_796_101_200)),
            ("2038-01-19T03:14:08Z", Some(2_147_483_648)),
            ("2038-01-19T03:14:08", None),
            ("2038-13-19T03:14:08Z", None),
            ("2038-01-19Z", None),
            ("x", None),
        ] {
            assert_eq!(parse_time(text), seconds, "{text}");
        }
    }

    #[test]
    fn a_list_must_name_the_commit_and_be_valid() {
        let commit = Checksum::of(b"x");
        let json = format!(
            r#"{{"signed":{{"expires":"2038-01-19T03:14:08Z","targets":{{"a":{{"hashes":{{"sha256":"{commit}"}}}}}}}}}}"#
        );
        let check = |commit, now_s| check_targets(json.as_bytes(), &commit, now_s);
        assert!(check(commit, 2_147_483_647).is_ok());
        assert!(matches!(check(commit, 2_147_483_648), Err(TargetsError::Expired(_))));
        assert!(matches!(check(Checksum::of(b"y"), 0), Err(TargetsError::Missing(_))));
        assert!(matches!(check_targets(b"{}", &commit, 0), Err(TargetsError::Json(_))));
    }
}
