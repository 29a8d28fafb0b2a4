//! File names come from URLs, which come from redirects.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use trunkline_proto::file_name::{file_url_to_path, from_url_path};

fuzz_target!(|text: &str| {
    let name = from_url_path(text);
    assert!(!name.is_empty() && name.len() <= 255);
    assert!(!name.chars().any(|c| c.is_control() || c == '\\'));
    let components: Vec<_> = Path::new(&name).components().collect();
    assert!(matches!(components[..], [Component::Normal(only)] if only == name.as_str()));
    if let Ok(path) = file_url_to_path(text) {
        assert!(path.starts_with('/') && !path.contains('\0'));
    }
});
