//! The core of the R package.
//!
//! R and this library talk in R's own serialization format: a request is an R list that
//! `serialize()` turned into bytes, a reply is bytes for `unserialize()`. So nothing here touches
//! R's memory or its API: a panic cannot leave R half-way, no binding has to match R's version,
//! and R's thread is never needed for the transfers. The C side (`src/trunkline.c` of the
//! package) waits for a reply in short steps and looks for the user's interrupt in between.
//!
//! A [`Core`] owns one thread, one engine and its one pool. It lives as long as R has a reference
//! to it.

mod core;
mod download;
mod indexes;
mod job;
mod message;
mod settings;
pub mod sys;

pub use crate::core::Core;
pub use crate::job::{Job, Progress};
