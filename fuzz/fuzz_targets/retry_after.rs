//! Retry-After comes from servers that are in trouble.
#![no_main]

use std::time::{Duration, SystemTime};

use libfuzzer_sys::fuzz_target;
use trunkline_proto::{http_date, retry_after};

fuzz_target!(|input: (&str, u32)| {
    let (text, now_s) = input;
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now_s.into());
    let wait = retry_after::parse(text, now);
    if let Some(date) = http_date::parse(text) {
        let written = http_date::format(date).expect("what was read can be written");
        assert_eq!(http_date::parse(&written), Some(date));
        assert!(wait.is_some());
    }
});
