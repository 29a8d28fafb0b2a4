//! The served protocol, as foreign clients see it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed step fails its test")]

mod clients;
mod fixture;
