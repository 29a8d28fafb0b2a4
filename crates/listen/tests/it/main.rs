//! Servers on real sockets: what is accepted, limited, drained.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activation; // sockets passed in, lack of descriptors
mod client;
mod drain; // the graceful stop
mod http; // both versions, limits
mod socket; // binding, Unix socket files
mod streams; // bare streams, STARTTLS
