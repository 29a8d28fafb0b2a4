//! The crate over a real engine and a scripted origin, and judged by R itself: every answer is
//! compared with R's on generated input.
//!
//! Without `Rscript` the tests that need it say that they are skipped and pass.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod closure;
mod download;
mod index;
mod indexes;
mod install;
mod mirror;
mod parse;
mod served;
mod world;
