//! Exports over exports: each adds one behaviour.

mod read_ahead;

pub use read_ahead::{ReadAhead, ReadAheadCounts, ReadAheadLimits};
