use super::*;
use proptest::prelude::*;

fn range(start: u64, end: u64) -> ByteRange {
    ByteRange::new(start, end).unwrap()
}

#[test]
fn a_range_header_counts_its_last_byte_in() {
    assert_eq!(range(0, 1).header_value(), "bytes=0-0");
    assert_eq!(range(500, 1000).header_value(), "bytes=500-999");
    assert_eq!(ByteRange::new(5, 5), None);
}

#[test]
fn content_ranges_by_the_grammar() {
    let satisfied = |start, end, complete_length| {
        Ok(ContentRange::Satisfied { range: range(start, end), complete_length })
    };
    assert_eq!("bytes 0-99/1234".parse(), satisfied(0, 100, Some(1234)));
    assert_eq!("bytes 0-9/*".parse(), satisfied(0, 10, None));
    let beyond = Ok(ContentRange::Unsatisfied { complete_length: 7 });
    assert_eq!("bytes */7".parse(), beyond);
    for bad in [
        "",
        "bytes",
        "bytes 0-9",
        "bytes 9-0/10",
        "bytes 0-10/10",
        "bytes +0-9/10",
        "bytes -9/10",
        "items 0-9/10",
        "bytes  0-9/10",
        "bytes=0-9/10",
        "bytes 0-9/10, 20-29/30",
        "bytes 0-9/10 x",
        "bytes 0-9/",
        "bytes /10",
        "bytes 0-18446744073709551615/*",
        "bytes */*",
        "bytes 0 - 9/10",
    ] {
        assert_eq!(bad.parse::<ContentRange>(), Err(ContentRangeError), "{bad}");
    }
}

#[test]
fn only_strong_validators_count() {
    let date = Some("Tue, 01 Dec 2026 10:00:00 GMT");
    let strong = Validator::from_headers(Some("\"abc\""), None, date).unwrap();
    assert_eq!(strong.if_range_value(), "\"abc\"");
    assert_eq!(Validator::from_headers(Some("W/\"abc\""), date, date), None);
    assert_eq!(Validator::from_headers(Some("abc"), None, date), None);
    let old = Some("Tue, 01 Dec 2026 09:59:59 GMT");
    assert!(Validator::from_headers(None, old, date).is_some());
    assert_eq!(Validator::from_headers(None, date, date), None);
    assert_eq!(Validator::from_headers(None, old, None), None);
    assert_eq!(Validator::from_headers(None, Some("yesterday"), date), None);
    assert_eq!(Validator::from_headers(None, None, date), None);
}

#[test]
fn a_weak_tag_is_not_replaced_by_a_date() {
    let (old, date) = ("Tue, 01 Dec 2026 09:00:00 GMT", "Tue, 01 Dec 2026 10:00:00 GMT");
    for tag in ["W/\"abc\"", "w/\"abc\"", "abc", "", "\"", "\"a\"b\"", "\"a\u{7}\""] {
        assert_eq!(Validator::from_headers(Some(tag), Some(old), Some(date)), None, "{tag}");
    }
}

#[test]
fn a_stored_validator_is_held_to_the_same_rules() {
    for bad in [
        "",
        "etag",
        "etag ",
        "etag abc",
        "etag W/\"abc\"",
        "etag \"a\nb\"",
        "etag \"a\"b\"",
        "modified soon",
        "modified  Tue, 01 Dec 2026 10:00:00 GMT",
        "other \"abc\"",
        "\"abc\"",
    ] {
        assert_eq!(bad.parse::<Validator>(), Err(ValidatorError), "{bad}");
    }
}

#[test]
fn dates_are_the_same_however_they_are_spelt() {
    let read = |line: &str| line.parse::<Validator>().unwrap();
    let date = read("modified Sun, 06 Nov 1994 08:49:37 GMT");
    assert!(date.same_as(&read("modified Sunday, 06-Nov-94 08:49:37 GMT")));
    assert!(!date.same_as(&read("modified Sun, 06 Nov 1994 08:49:38 GMT")));
    assert!(!date.same_as(&read("etag \"Sun, 06 Nov 1994 08:49:37 GMT\"")));
    assert!(!read("etag \"a\"").same_as(&read("etag \"A\"")));
}

#[test]
fn the_largest_range_is_cut_without_overflow() {
    let whole = range(0, u64::MAX);
    let pieces: Vec<_> = whole.split(u64::MAX - 1).collect();
    assert_eq!(pieces, [range(0, u64::MAX - 1), range(u64::MAX - 1, u64::MAX)]);
    let mut ranges = vec![whole, range(u64::MAX - 1, u64::MAX)];
    coalesce(&mut ranges, u64::MAX, 1);
    assert_eq!(ranges, [whole]);
}

#[test]
fn near_ranges_are_joined() {
    let mut ranges = vec![range(20, 30), range(0, 10), range(12, 20), range(100, 110)];
    coalesce(&mut ranges, 2, 1000);
    assert_eq!(ranges, [range(0, 30), range(100, 110)]);
    let mut ranges = vec![range(0, 10), range(10, 20), range(20, 30)];
    coalesce(&mut ranges, 0, 20);
    assert_eq!(ranges, [range(0, 20), range(20, 30)]);
}

proptest! {
    #[test]
    fn no_header_panics(text in ".*") {
        let _ = text.parse::<ContentRange>();
        let _ = text.parse::<Validator>();
        let _ = Validator::from_headers(Some(&text), Some(&text), Some(&text));
    }

    #[test]
    fn pieces_cover_the_range(start in 0u64..1000, length in 1u64..5000, bytes_max in 1u64..700) {
        let whole = range(start, start + length);
        let pieces: Vec<_> = whole.split(bytes_max).collect();
        prop_assert_eq!(pieces[0].start(), start);
        prop_assert_eq!(pieces.last().unwrap().end(), whole.end());
        prop_assert!(pieces.windows(2).all(|pair| pair[0].end() == pair[1].start()));
        prop_assert!(pieces.iter().all(|piece| piece.len() <= bytes_max));
    }

    #[test]
    fn joining_loses_no_byte(parts in prop::collection::vec((0u64..500, 1u64..50), 0..30), gap in 0u64..20) {
        let mut ranges: Vec<_> = parts.iter().map(|(s, l)| range(*s, s + l)).collect();
        let before = ranges.clone();
        coalesce(&mut ranges, gap, 200);
        for byte in before.iter().flat_map(|r| r.start()..r.end()) {
            prop_assert!(ranges.iter().any(|r| r.start() <= byte && byte < r.end()));
        }
        prop_assert!(ranges.is_sorted());
        // Parts are shorter than the limit, so nothing longer can have come of them.
        prop_assert!(ranges.iter().all(|r| r.len() <= 200));
    }

    #[test]
    fn content_ranges_survive_their_text(start: u32, length in 1u64..1 << 40, more in 0u64..1 << 40) {
        let end = u64::from(start) + length;
        let range = range(start.into(), end);
        for (text, complete_length) in [("*".to_owned(), None), ((end + more).to_string(), Some(end + more))] {
            let text = format!("bytes {}-{}/{text}", range.start(), range.end() - 1);
            prop_assert_eq!(text.parse(), Ok(ContentRange::Satisfied { range, complete_length }));
        }
    }

    #[test]
    fn a_validator_survives_its_line(tag in "[!#-~]{0,40}") {
        let etag = format!("\"{tag}\"");
        let validator = Validator::from_headers(Some(&etag), None, None).unwrap();
        prop_assert_eq!(validator.to_string().parse::<Validator>().unwrap(), validator);
    }
}
