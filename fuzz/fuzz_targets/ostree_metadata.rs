//! Metadata objects of a repository or a server: read or refused, and what is read can be walked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::ostree::delta::Superblock;
use trunkline_proto::ostree::variant::Dict;
use trunkline_proto::ostree::{BareUserMeta, Commit, DirMeta, DirTree, FileHeader, Summary};

fuzz_target!(|data: &[u8]| {
    if let Ok(tree) = DirTree::parse(data) {
        for (name, _) in tree.files() {
            assert!(!name.is_empty() && !name.contains('/') && name != "..");
        }
        let _ = tree.directories().count();
    }
    if let Ok(dict) = Dict::new(data) {
        assert_eq!(dict.iter().count(), dict.len());
    }
    if let Ok((header, bytes)) = FileHeader::parse_archive(data) {
        let again = header.encode_archive(bytes);
        assert_eq!(FileHeader::parse_archive(&again[8..]), Ok((header, bytes)));
    }
    let _ = (Commit::parse(data), DirMeta::parse(data), Summary::parse(data));
    let _ = (BareUserMeta::parse(data), Superblock::recognise(data));
});
