//! Other people's programs as judges: skipped at a desk that lacks them, demanded by the gate.

use std::{env, path::PathBuf};

/// Where a program is, looked up in `PATH` and the folders of system programs.
///
/// Without it, says on standard error that the calling test is skipped; but where
/// `TRUNKLINE_JUDGES=all` (`cargo xtask test` sets it, after its setup) the test fails, so that a
/// green run cannot hide a judge that was not there.
///
/// # Panics
/// When the program is absent and `TRUNKLINE_JUDGES=all`.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let found = env::split_paths(&path).chain(system).map(|f| f.join(name)).find(|p| p.is_file());
    if found.is_none() {
        absent(name);
    }
    found
}

/// Says that a judge is absent, or fails the test; see [`program`].
///
/// # Panics
/// When `TRUNKLINE_JUDGES=all`.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn absent(name: &str) {
    let all = env::var_os("TRUNKLINE_JUDGES").is_some_and(|value| value == "all");
    assert!(!all, "`{name}` is not installed; `cargo xtask setup` installs it");
    eprintln!("skipped: `{name}` is not installed");
}
