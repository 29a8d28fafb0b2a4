//! Checksums come from lists and indexes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::digest::Digest;

fuzz_target!(|text: &str| {
    if let Ok(digest) = text.parse::<Digest>() {
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_hex().parse(), Ok(digest));
    }
});
