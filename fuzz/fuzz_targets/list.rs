//! Transfer lists are written by other people's scripts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::list::ListParser;

fuzz_target!(|text: &str| {
    let mut parser = ListParser::new();
    let mut entries = Vec::new();
    let mut lines = 0;
    for line in text.split_inclusive('\n') {
        lines += 1;
        let (complete, errors) = parser.line(line);
        assert!(errors.iter().all(|error| error.line == lines));
        entries.extend(complete);
    }
    entries.extend(parser.finish());
    assert!(parser.finish().is_empty());
    assert!(entries.len() <= lines);
    for entry in &entries {
        assert!(!entry.url.is_empty());
        assert!((1..=lines).contains(&entry.line));
    }
});
