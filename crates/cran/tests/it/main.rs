//! Judged by R itself: every answer of this crate is compared with R's on generated input.
//!
//! Without `Rscript` these tests say that they are skipped and pass.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod closure;
mod index;
mod parse;
mod world;
