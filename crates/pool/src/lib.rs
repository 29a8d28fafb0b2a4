//! Which warm connection carries the next request.
//!
//! A [`Pool`] holds the connections of many origins; an [`OriginPool`] those of one. A request
//! waits in order for a lease ([`OriginPool::lease`]); the pool grows from one connection to the
//! limit while queued work justifies it, shares HTTP/2 connections between requests, and takes a
//! connection back only when its exchange ended cleanly. It never retries: a failed exchange
//! returns a typed error, and one layer above decides.
//!
//! ```no_run
//! use http::Request;
//! use trunkline_pool::{Limits, Pool};
//! use trunkline_transport::{Origin, OriginSettings, RequestBody, TlsClient, TlsOptions};
//!
//! # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::new(Limits::default());
//! let tls = TlsClient::new(TlsOptions::default())?;
//! let url: url::Url = "https://example.org/a.tar.gz".parse()?;
//! let settings = || Ok::<_, std::io::Error>(OriginSettings::new(tls.clone()));
//! let origin = pool.origin(&Origin::from_url(&url)?, settings)?;
//! let request = Request::get(url.as_str()).body(RequestBody::empty())?;
//! let response = origin.lease().await?.send(request).await.map_err(|failed| failed.error)?;
//! let mut body = response.into_body();
//! while let Some(chunk) = body.chunk().await {
//!     let bytes = chunk?;
//!     // Read to its end, the body gives its connection back.
//! #   drop(bytes);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A whole program that fetches many files is in this crate's `examples/fetch_many.rs`.

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
