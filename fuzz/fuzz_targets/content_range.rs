//! Content-Range headers and validators come from servers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::range::{ContentRange, Validator};

fuzz_target!(|text: &str| {
    if let Ok(ContentRange::Satisfied { range, complete_length }) = text.parse() {
        assert!(range.start() < range.end());
        assert!(complete_length.is_none_or(|length| range.end() <= length));
    }
    if let Ok(validator) = text.parse::<Validator>() {
        assert_eq!(validator.to_string().parse(), Ok(validator));
    }
    let mut parts = text.split('\n');
    if let Some(validator) = Validator::from_headers(parts.next(), parts.next(), parts.next()) {
        assert!(!validator.if_range_value().starts_with("W/"));
        assert_eq!(validator.to_string().parse(), Ok(validator));
    }
});
