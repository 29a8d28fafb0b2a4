//! Which warm connection carries the next request.
//!
//! A [`Pool`] holds the connections of many origins; an [`OriginPool`] those of one. A request
//! waits in order for a lease ([`OriginPool::lease`]); the pool grows from one connection to the
//! limit while queued work justifies it, shares HTTP/2 connections between requests, and takes a
//! connection back only when its exchange ended cleanly. It never retries: a failed exchange
//! returns a typed error, and one layer above decides.

mod budget;
mod error;
mod idle;
mod lease;
mod limits;
mod origin_pool;
pub mod policy;
mod pool;
mod state;
mod stats;

pub use error::Error;
pub use lease::{Body, ObjectLease, RangeLease};
pub use limits::{
    CAP_RECOVERY, CONNECTIONS_IN_ALL_DEFAULT, CONNECTIONS_PER_ORIGIN_DEFAULT, HTTP2_STRIKES_MAX,
    IDLE_TIMEOUT_DEFAULT, Limits, STREAMS_PER_CONNECTION_MAX,
};
pub use origin_pool::OriginPool;
pub use pool::Pool;
pub use stats::Stats;
