//! What the user sees: messages and progress on standard error, data on standard output.

mod human;
mod json;
mod progress;
mod view;

pub(crate) use view::View;

use std::io::Write as _;

/// One error line.
pub(crate) fn error(message: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "trunkline: {message}");
}
