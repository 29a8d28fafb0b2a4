//! The kit does what its vocabulary says. Clients here are raw sockets, hyper's connection layer
//! and, where it is installed, curl.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

mod client;

mod body; // where the body stops, lengths, chunks, codings
mod connection; // limits, closings, counters
mod curl; // an outside judge
mod h2; // streams, resets, GOAWAY
mod head; // statuses, redirects, heads, timing
mod line; // latency and bandwidth
mod oauth; // tokens
mod proxy; // CONNECT and SOCKS5
mod range; // ranges, right and wrong
mod tls; // handshakes, resumption, client certificates
mod upload; // bodies received
