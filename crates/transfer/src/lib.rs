//! Runs transfers over the pool: retry, resume, verify, atomic files, remote files, uploads.
//!
//! An [`Engine`] owns the one pool of a process. It brings files ([`Engine::fetch`] for one,
//! [`Engine::run`] for many), sends requests ([`Engine::send`]) and opens remote files for random
//! reads ([`RemoteFile`]). It knows nothing of packages, images or repositories, never prints,
//! and never reads the environment.
//!
//! This is the only layer that retries. A destination is afterwards the complete, verified new
//! file or what it was before.
//!
//! ```no_run
//! use std::{future::pending, sync::Arc};
//!
//! use futures_util::stream;
//! use trunkline_transfer::{Engine, EngineSettings, IN_FLIGHT_DEFAULT, Job, Silent};
//! use trunkline_transport::{TlsClient, TlsOptions};
//!
//! # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::new(EngineSettings::new(TlsClient::new(TlsOptions::default())?));
//! let files = ["a.tar.gz", "b.tar.gz"].map(|name| {
//!     let url = format!("https://example.org/{name}").parse().expect("a valid URL");
//!     Job::new(url, name.into())
//! });
//! let jobs = stream::iter(files);
//! let report = engine.run(jobs, IN_FLIGHT_DEFAULT, Arc::new(Silent), pending()).await;
//! assert_eq!(report.done, 2);
//! # Ok(())
//! # }
//! ```
//!
//! A whole program that fetches many files is in this crate's `examples/fetch_many.rs`.

mod blocking;
mod chunks;
mod credentials;
mod display;
mod download;
mod engine;
mod error;
mod event;
mod exchange;
mod fetch;
mod head;
mod large;
mod local;
mod oauth2;
mod partial;
mod plan;
mod rate;
mod redirect;
mod remote;
mod report;
mod request;
mod retrier;
mod retry;
mod route;
mod run;
mod settings;
mod stall;
mod steady;
mod upload;
mod writer;

pub use chunks::{CHUNK_BYTES_MIN, CHUNKS_MAX};
pub use credentials::Auth;
pub use display::SafeUrl;
pub use engine::Engine;
pub use error::{Class, Error, ErrorKind};
pub use event::{Event, JobId, Observer, Receipt, Silent};
pub use exchange::Answer;
pub use large::LARGE_BYTES_MIN;
pub use oauth2::TokenSource;
pub use partial::RESUMABLE_BYTES_MIN;
pub use plan::{Existing, Job, LaneChoice};
pub use redirect::REDIRECTS_MAX_DEFAULT;
pub use remote::RemoteFile;
pub use report::{FAILURES_KEPT_MAX, Report};
pub use request::{Payload, PayloadSource, REPLY_BYTES_MAX_DEFAULT, Reply, Request};
pub use retry::{
    FREE_RETRIES_MAX, PAUSE_FIRST, PAUSE_MAX, RETRIES_DEFAULT, RETRY_AFTER_MAX, RetryPolicy,
};
pub use route::{ProxyRoute, ProxyRules, ProxyUrlError};
pub use run::IN_FLIGHT_DEFAULT;
pub use settings::{
    EngineSettings, Files, Identity, Network, OriginProfile, Patience, STALL_TIMEOUT_DEFAULT,
};
pub use steady::{Piece, SteadyAnswer};
