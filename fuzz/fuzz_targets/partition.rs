//! Images come from anywhere: no partition table may panic, or ask for unbounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::partition::{Gpt, Mbr, SECTOR_BYTES, SECTOR_BYTES_LARGE};

fuzz_target!(|input: (&[u8], &[u8], u32)| {
    let (sector, entries, number) = input;
    if let Ok(mbr) = Mbr::parse(sector) {
        for entry in mbr.entries().into_iter().flatten() {
            assert!(entry.range().start.checked_add(entry.range().size).is_some());
        }
    }
    for sector_bytes in [SECTOR_BYTES, SECTOR_BYTES_LARGE] {
        if let Ok(gpt) = Gpt::parse(sector, sector_bytes) {
            assert!(gpt.entries_bytes() <= 1 << 20);
            let _ = gpt.entries_at();
            let _ = gpt.find(entries, number);
        }
    }
});
