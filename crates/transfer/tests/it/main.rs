//! Transfers against an origin that does what it must not: each test is named after the outcome
//! that is right. Bytes are exact or the error is typed; a final name never holds anything else.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

#[macro_use]
mod bench;

mod answers; // statuses, Retry-After, types, codings
mod bodies; // cuts, lengths, chunks, stalls
mod connections; // limits, GOAWAY, resets, stale sockets
mod credentials; // basic, bearer, netrc, OAuth2, client certificates
mod destinations; // what is on disk
mod heads; // header bombs, interim answers, status lines
mod large; // files in chunks
mod redirects; // chains, loops, what crosses an origin
mod remote_file; // random reads
mod resume; // ranges and validators
mod routes; // proxies, Unix sockets, certificate authorities, rate
mod steady; // bodies that go on after a cut
mod uploads; // PUT and POST
