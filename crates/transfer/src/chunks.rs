//! Which parts of a large file are there, being fetched, or missing: pure bookkeeping.

use trunkline_proto::range::ByteRange;

/// Smallest chunk, in bytes: each costs a round trip on its connection.
pub const CHUNK_BYTES_MIN: u64 = 8 << 20;

/// Most chunks of one file: bounds the state that is saved.
pub const CHUNKS_MAX: u64 = 4096;

/// One chunk: it grows from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    /// Bytes before this offset (of the file) are written.
    at: u64,
    end: u64,
    taken: bool,
}

/// The chunks of one file.
#[derive(Debug)]
pub(crate) struct Chunks {
    chunk_bytes: u64,
    chunks: Vec<Chunk>,
}

impl Chunks {
    pub(crate) fn new(length: u64) -> Self {
        let chunk_bytes = length.div_ceil(CHUNKS_MAX).max(CHUNK_BYTES_MIN);
        let starts = (0..length).step_by(usize::try_from(chunk_bytes).unwrap_or(usize::MAX));
        let chunks = starts
            .map(|at| Chunk { at, end: (at + chunk_bytes).min(length), taken: false })
            .collect();
        Self { chunk_bytes, chunks }
    }

    /// Takes over the ranges that an earlier run completed, as far as they begin a chunk.
    pub(crate) fn restore(&mut self, done: &[(u64, u64)]) {
        for chunk in &mut self.chunks {
            let within = done.iter().find(|(start, end)| *start <= chunk.at && chunk.at < *end);
            if let Some((_, end)) = within {
                chunk.at = (*end).min(chunk.end);
            }
        }
    }

    /// Takes one chunk if it is missing and nobody has it; returns what is missing of it.
    pub(crate) fn take(&mut self, index: usize) -> Option<ByteRange> {
        let chunk = self.chunks.get_mut(index).filter(|chunk| !chunk.taken)?;
        let missing = ByteRange::new(chunk.at, chunk.end)?;
        chunk.taken = true;
        Some(missing)
    }

    /// Takes the first missing chunk.
    pub(crate) fn take_first(&mut self) -> Option<(usize, ByteRange)> {
        (0..self.chunks.len()).find_map(|index| Some((index, self.take(index)?)))
    }

    /// Takes the last missing chunk: those who help begin at the end, so that the stream that
    /// runs through the file from its start is cut off once only, where they meet.
    pub(crate) fn take_last(&mut self) -> Option<(usize, ByteRange)> {
        (0..self.chunks.len()).rev().find_map(|index| Some((index, self.take(index)?)))
    }

    /// Notes that the bytes of a chunk before `at` are written.
    pub(crate) fn advance(&mut self, index: usize, at: u64) {
        let chunk = &mut self.chunks[index];
        chunk.at = at.clamp(chunk.at, chunk.end);
    }

    /// Somebody else may take what is missing of it.
    pub(crate) fn give_back(&mut self, index: usize) {
        self.chunks[index].taken = false;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.at == chunk.end)
    }

    pub(crate) fn missing(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.at < chunk.end && !chunk.taken).count()
    }

    pub(crate) fn bytes_done(&self) -> u64 {
        self.done_ranges().iter().map(|(start, end)| end - start).sum()
    }

    /// Complete ranges, start and exclusive end, neighbours joined.
    pub(crate) fn done_ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (index, chunk) in self.chunks.iter().enumerate() {
            let start = index as u64 * self.chunk_bytes;
            if chunk.at == start {
                continue;
            }
            match ranges.last_mut() {
                Some((_, end)) if *end == start => *end = chunk.at,
                _ => ranges.push((start, chunk.at)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const C: u64 = CHUNK_BYTES_MIN;

    #[test]
    fn the_last_chunk_may_be_short() {
        let mut chunks = Chunks::new(3 * C + 5);
        assert_eq!(chunks.missing(), 4);
        assert_eq!(chunks.take_last(), Some((3, ByteRange::new(3 * C, 3 * C + 5).unwrap())));
    }

    #[test]
    fn huge_files_have_no_more_than_the_limit() {
        assert!(Chunks::new(1 << 50).missing() as u64 <= CHUNKS_MAX);
    }

    #[test]
    fn both_ends_meet() {
        let mut chunks = Chunks::new(4 * C);
        let index = |taken: Option<(usize, ByteRange)>| taken.map(|(index, _)| index);
        assert_eq!(index(chunks.take_first()), Some(0));
        assert_eq!(index(chunks.take_last()), Some(3));
        assert_eq!(index(chunks.take_last()), Some(2));
        assert!(chunks.take(1).is_some());
        assert!(chunks.take(2).is_none());
        assert!(chunks.take(4).is_none());
        assert_eq!(chunks.take_last(), None);
    }

    #[test]
    fn a_broken_chunk_goes_on_where_it_broke() {
        let mut chunks = Chunks::new(2 * C);
        chunks.take(1);
        chunks.advance(1, C + 100);
        chunks.give_back(1);
        assert_eq!(chunks.take(1), ByteRange::new(C + 100, 2 * C));
        assert_eq!(chunks.done_ranges(), [(C, C + 100)]);
    }

    proptest! {
        #[test]
        fn what_is_done_survives_a_restart(at in proptest::collection::vec(0..=C, 1..40)) {
            let length = at.len() as u64 * C;
            let mut chunks = Chunks::new(length);
            for (index, at) in at.iter().enumerate() {
                chunks.take(index);
                chunks.advance(index, index as u64 * C + at);
            }
            let mut restored = Chunks::new(length);
            restored.restore(&chunks.done_ranges());
            prop_assert_eq!(restored.done_ranges(), chunks.done_ranges());
            prop_assert_eq!(restored.is_done(), at.iter().all(|at| *at == C));
            prop_assert_eq!(restored.bytes_done(), at.iter().sum::<u64>());
        }
    }
}
