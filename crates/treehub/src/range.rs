//! The Range header as a server reads it (RFC 9110, section 14).

/// What a Range header asks of a body of known length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All of it: no header, or one that may be ignored (several ranges, another unit, nonsense).
    Whole,
    /// `start..end`, not empty.
    Part { start: u64, end: u64 },
    /// Nothing that is there: 416.
    Unsatisfiable,
}

/// Reads the value of a Range header for a body of `length` bytes.
pub(crate) fn parse(value: Option<&str>, length: u64) -> Asked {
    let Some((first, last)) =
        value.and_then(|value| value.strip_prefix("bytes=")).and_then(|set| set.split_once('-'))
    else {
        return Asked::Whole;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (start, end) = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(length)),
        (Some(first), None) if last.trim().is_empty() => (first, length),
        (None, Some(0)) if first.trim().is_empty() => return Asked::Unsatisfiable,
        (None, Some(suffix)) if first.trim().is_empty() => (length.saturating_sub(suffix), length),
        _ => return Asked::Whole,
    };
    if start < end { Asked::Part { start, end } } else { Asked::Unsatisfiable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms() {
        let part = |start, end| Asked::Part { start, end };
        for (value, asked) in [
            ("bytes=0-9", part(0, 10)),
            ("bytes=90-", part(90, 100)),
            ("bytes=-10", part(90, 100)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=99-1000", part(99, 100)),
            ("bytes=100-", Asked::Unsatisfiable),
            ("bytes=-0", Asked::Unsatisfiable),
            ("bytes=9-0", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("lines=0-1", Asked::Whole),
            ("bytes=x-", Asked::Whole),
            ("bytes=-", Asked::Whole),
        ] {
            assert_eq!(parse(Some(value), 100), asked, "{value}");
        }
        assert_eq!(parse(None, 100), Asked::Whole);
        assert_eq!(parse(Some("bytes=0-"), 0), Asked::Unsatisfiable);
    }
}
