//! Tells sequential readers from others. Pure: what was read in, how far to run ahead out.

/// Readers told apart; the one that was quiet longest gives way.
const STREAMS_MAX: usize = 32;
/// Requests that a reader may be out of order by, as a multiple of their length: clients with
/// several requests in flight, or several connections, do not keep order.
const DISORDER: u64 = 16;
/// Reads after which a reader that was not among them no longer has a share of what may be held.
const RECENT_READS: u64 = 512;
/// Reads in a row before a reader counts as sequential.
const RUN_MIN: u32 = 2;

/// The readers seen lately.
#[derive(Debug, Default)]
pub(super) struct Streams {
    all: Vec<Stream>,
    turn: u64,
}

#[derive(Debug)]
struct Stream {
    /// End of the farthest read.
    next: u64,
    /// Reads in a row.
    run: u32,
    /// How far to run ahead, in bytes.
    window: u64,
    seen: u64,
}

impl Streams {
    /// Takes note of a read. `Some` when it belongs to a sequential reader: how far to run ahead
    /// of it, in bytes, at first `window_first`. The windows of all sequential readers together
    /// stay below `held_max`, so that none pushes out what another is about to read.
    pub(super) fn observe(
        &mut self,
        offset: u64,
        end: u64,
        window_first: u64,
        held_max: u64,
    ) -> Option<u64> {
        self.turn += 1;
        let turn = self.turn;
        let slack = (end - offset).saturating_mul(DISORDER);
        let near = |stream: &&mut Stream| stream.next.abs_diff(offset) <= slack;
        let nearest =
            self.all.iter_mut().filter(near).min_by_key(|stream| stream.next.abs_diff(offset));
        if let Some(stream) = nearest {
            stream.next = stream.next.max(end);
            stream.run = stream.run.saturating_add(1);
            stream.seen = turn;
            let (run, window) = (stream.run, stream.window);
            return (run >= RUN_MIN).then(|| window.min(held_max / (self.sequential() + 1)));
        }
        if self.all.len() == STREAMS_MAX {
            let oldest = self.all.iter().enumerate().min_by_key(|(_, stream)| stream.seen);
            let oldest = oldest.map_or(0, |(at, _)| at);
            self.all.swap_remove(oldest);
        }
        self.all.push(Stream { next: end, run: 1, window: window_first, seen: turn });
        None
    }

    /// Sequential readers of late.
    fn sequential(&self) -> u64 {
        let is_one =
            |stream: &&Stream| stream.run >= RUN_MIN && self.turn - stream.seen < RECENT_READS;
        self.all.iter().filter(is_one).count() as u64
    }

    /// The reader near `offset` has to wait for a chunk: run further ahead from now on.
    pub(super) fn waited(&mut self, offset: u64, window_max: u64) {
        let nearest = self.all.iter_mut().min_by_key(|stream| stream.next.abs_diff(offset));
        if let Some(stream) = nearest {
            stream.window = (stream.window * 2).min(window_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn read(streams: &mut Streams, offset: u64, length: u64) -> Option<u64> {
        streams.observe(offset, offset + length, MIB, 8 * MIB)
    }

    #[test]
    fn the_second_read_in_a_row_runs_ahead_and_waiting_widens() {
        let mut streams = Streams::default();
        assert_eq!(read(&mut streams, 0, 4096), None);
        assert_eq!(read(&mut streams, 4096, 4096), Some(MIB));
        streams.waited(8192, 3 * MIB);
        assert_eq!(read(&mut streams, 8192, 4096), Some(2 * MIB));
        streams.waited(12288, 3 * MIB);
        assert_eq!(read(&mut streams, 12288, 4096), Some(3 * MIB));
    }

    #[test]
    fn many_readers_share_what_may_be_held() {
        let mut streams = Streams::default();
        let readers = 8_u64;
        let mut windows = vec![0; readers as usize];
        for step in 0..20 {
            for reader in 0..readers {
                let offset = (reader << 30) + step * 4096;
                windows[reader as usize] = read(&mut streams, offset, 4096).unwrap_or(0);
                streams.waited(offset, 8 * MIB);
            }
        }
        assert!(windows.iter().sum::<u64>() < 8 * MIB, "{windows:?}");
    }

    #[test]
    fn jumps_are_left_alone() {
        let mut streams = Streams::default();
        for step in 0..1000_u64 {
            let offset = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 40);
            assert_eq!(read(&mut streams, offset, 4096), None, "read {step}");
        }
        assert_eq!(streams.all.len(), STREAMS_MAX);
    }

    #[test]
    fn interleaved_readers_each_count() {
        let mut streams = Streams::default();
        for step in 0..10 {
            for reader in 0..4 {
                let ahead = read(&mut streams, (reader << 30) + step * MIB, MIB);
                assert_eq!(ahead.is_some(), step > 0);
            }
        }
    }

    proptest! {
        #[test]
        fn a_little_disorder_is_still_sequential(swaps in proptest::collection::vec(0_usize..60, 0..30)) {
            let mut order: Vec<u64> = (0..64).collect();
            for at in swaps {
                order.swap(at, at + 3);
            }
            prop_assume!(order.iter().enumerate().all(|(at, to)| (*to).abs_diff(at as u64) < 8));
            let mut streams = Streams::default();
            let ahead = order.iter().filter(|at| read(&mut streams, *at * 4096, 4096).is_some());
            prop_assert_eq!(ahead.count(), 63);
        }
    }
}
