//! The command as its users run it: arguments in; output, files and exit code out.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cran;
mod tour;
