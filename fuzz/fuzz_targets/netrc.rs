//! A netrc file is the user's own, but its errors must never show what is in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::netrc::Netrc;

fuzz_target!(|text: &str| {
    match Netrc::parse(text) {
        Ok(netrc) => {
            for host in text.split_whitespace().take(16) {
                if let Some((_, password)) = netrc.lookup(host) {
                    assert_eq!(format!("{password:?}"), "Secret(..)");
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("line ")),
    }
});
