//! The command as its users run it: arguments in; output, files and exit code out.

#![allow(clippy::unwrap_used, reason = "a failed step fails its test")]

mod nbd;
mod tour;
