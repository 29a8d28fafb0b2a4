//! Scripted origins, proxies and fixtures for tests.
//!
//! [`Origin`] is an HTTP/1.1 and HTTP/2 server on loopback that behaves well until a test says
//! otherwise. What it does wrong is written as a script of [`Fault`]s per path, and
//! [`ConnectionFault`]s per connection; what it saw is kept in a log and in counters, so that a
//! test can assert not only that the bytes are right but how many connections, handshakes and
//! requests they took.
//!
//! ```
//! use trunkline_testkit::{Fault, Origin, Resource, bytes};
//!
//! let origin = Origin::http();
//! origin.put("/a.bin", Resource::new(bytes(1, 20_000)));
//! origin.script("/a.bin").once(Fault::CutAfter(7_000)).then(Fault::Status(503));
//! // The third request, and each later one, gets all 20,000 bytes.
//! let url = origin.url("/a.bin");
//! # assert!(url.starts_with("http://127.0.0.1:"));
//! assert_eq!(origin.counters().requests, 0);
//! ```
//!
//! Each server runs on a thread of its own with its own runtime, so synchronous and asynchronous
//! tests can use it alike, and stops when dropped. This crate is a development dependency only:
//! it panics on misuse, as a test should.

mod background;
mod connection;
pub mod cran_repo;
mod effect;
mod fault;
mod fixture;
mod frame_tap;
mod gate;
mod h1;
mod h2;
pub mod judge;
mod log;
mod oauth;
mod origin;
mod proxy;
mod reply;
mod request;
mod resource;
pub mod rscript;
mod script;
mod serve;
mod site;
mod socks;
mod tls;
mod upload;
mod wire;

pub use fault::{ConnectionFault, Fault, StreamReset};
pub use fixture::{bytes, sha256_hex, temp_dir};
pub use gate::Gate;
pub use log::{ConnectionRecord, Counters, RequestRecord, Upload};
pub use oauth::TokenIssuer;
pub use origin::{Origin, OriginBuilder, Protocols, Shelf};
pub use proxy::{ConnectProxy, Tunnel};
pub use reply::Reply;
pub use request::Received;
pub use resource::Resource;
pub use script::{ConnectionScript, PathScript};
pub use socks::SocksProxy;
pub use tls::{Authority, Identity};
