//! Which blocks an overlay holds: one bit a block, written back in pages. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of bitmap that are written back together.
pub(super) const PAGE_BYTES: usize = 4096;
const WORD_BITS: u64 = 64;
const PAGE_WORDS: usize = PAGE_BYTES / 8;
const PAGE_BITS: u64 = PAGE_BYTES as u64 * 8;

/// One bit a block, and which pages of bits changed since they were last taken.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    dirty: BTreeSet<u64>,
}

/// A run of blocks with one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) blocks: Range<u64>,
    pub(super) present: bool,
}

impl Bitmap {
    /// Bytes of a bitmap of `blocks`, in whole pages.
    pub(super) fn bytes(blocks: u64) -> u64 {
        blocks.div_ceil(PAGE_BITS) * PAGE_BYTES as u64
    }

    /// All bits clear.
    pub(super) fn new(blocks: u64) -> Self {
        Self { words: vec![0; (Self::bytes(blocks) / 8) as usize], dirty: BTreeSet::new() }
    }

    /// A bitmap that was written before.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self {
            words: words.iter().map(|w| u64::from_le_bytes(*w)).collect(),
            dirty: BTreeSet::new(),
        }
    }

    /// Sets the bits of `blocks`.
    pub(super) fn set(&mut self, blocks: Range<u64>) {
        let mut at = blocks.start;
        while at < blocks.end {
            let stop = ((at / WORD_BITS + 1) * WORD_BITS).min(blocks.end);
            let count = stop - at;
            let mask = if count == WORD_BITS { !0 } else { ((1 << count) - 1) << (at % WORD_BITS) };
            let word = &mut self.words[(at / WORD_BITS) as usize];
            if *word & mask != mask {
                *word |= mask;
                self.dirty.insert(at / PAGE_BITS);
            }
            at = stop;
        }
    }

    /// Whether the bit of `block` is set.
    pub(super) fn has(&self, block: u64) -> bool {
        self.words[(block / WORD_BITS) as usize] & (1 << (block % WORD_BITS)) != 0
    }

    /// The longest run of one state from the start of `blocks`, which is not empty.
    pub(super) fn run(&self, blocks: Range<u64>) -> Run {
        let present = self.has(blocks.start);
        let mut at = blocks.start;
        while at < blocks.end {
            let word = self.words[(at / WORD_BITS) as usize];
            // Bits that differ from the run's state are ones.
            let differs = if present { !word } else { word } >> (at % WORD_BITS);
            if differs != 0 {
                at += u64::from(differs.trailing_zeros());
                break;
            }
            at = (at / WORD_BITS + 1) * WORD_BITS;
        }
        Run { blocks: blocks.start..at.min(blocks.end), present }
    }

    /// Takes the pages that changed, with their number, as they are now.
    pub(super) fn take_dirty(&mut self) -> Vec<(u64, Vec<u8>)> {
        let dirty = std::mem::take(&mut self.dirty);
        let page = |number: &u64| {
            let words = &self.words[*number as usize * PAGE_WORDS..][..PAGE_WORDS];
            (*number, words.iter().flat_map(|word| word.to_le_bytes()).collect())
        };
        dirty.iter().map(page).collect()
    }

    /// Puts pages back that could not be written.
    pub(super) fn put_back(&mut self, pages: impl IntoIterator<Item = u64>) {
        self.dirty.extend(pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set_of_blocks(
            ranges in proptest::collection::vec((0_u64..70_000, 0_u64..3000), 0..12),
            start in 0_u64..70_000,
        ) {
            let blocks = 73_000;
            let (mut bitmap, mut model) = (Bitmap::new(blocks), vec![false; blocks as usize]);
            for (start, length) in ranges {
                bitmap.set(start..start + length);
                model[start as usize..(start + length) as usize].fill(true);
            }
            let pages = bitmap.take_dirty();
            let mut bytes = vec![0; Bitmap::bytes(blocks) as usize];
            for (number, page) in pages {
                bytes[number as usize * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&page);
            }
            prop_assert!(bitmap.take_dirty().is_empty());
            let read = Bitmap::from_bytes(&bytes);
            for (block, set) in (0..).zip(&model) {
                prop_assert_eq!(read.has(block), *set);
            }
            let run = read.run(start..blocks);
            let same = model[start as usize..].iter().take_while(|s| **s == run.present).count();
            prop_assert_eq!(run.blocks, start..start + same as u64);
        }
    }
}
