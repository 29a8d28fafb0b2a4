//! Exports over exports: each adds one behaviour.

mod cache;
mod overlay;
mod partition;
mod read_ahead;
mod view;

pub use cache::{CACHE_BYTES_DEFAULT, Cache, CacheCounts, CacheError};
pub use overlay::{Overlay, OverlayError};
pub use partition::{PartitionError, partition};
pub use read_ahead::{ReadAhead, ReadAheadCounts, ReadAheadLimits};
pub use view::{View, ViewError};
