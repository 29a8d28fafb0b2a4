//! A loopback mirror: any client, any version of R, one warm pool.
//!
//! The mirror answers `/TOKEN/https/cran.example.org/src/contrib/...` with what is at
//! `https://cran.example.org/src/contrib/...`. Every process that asks it shares the engine's
//! connections. Indexes are revalidated, packages are kept on disk, and once a package of an index
//! is asked for, those that will most likely be asked for next are fetched ahead ([`prefetch`]).
//!
//! A client with the token in its URLs may use the mirror; nobody else gets more than a 404.

pub mod prefetch;
mod route;
mod service;
mod store;

pub use route::{Route, Token, mirrored};
pub use service::{Body, Mirror, MirrorOptions, MirrorStats};
pub use store::{STORE_BYTES_MAX_DEFAULT, Store};
