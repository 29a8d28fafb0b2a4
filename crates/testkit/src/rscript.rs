//! Real R as the judge, where it is installed.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use crate::judge;

/// Where `Rscript` is, looked up in `PATH`.
///
/// Without it the calling test is skipped or fails; see [`judge::program`].
#[must_use]
pub fn find() -> Option<PathBuf> {
    judge::program("Rscript")
}

/// A command that runs R code in a vanilla session with UTF-8 and English messages; arguments
/// added to it are what `commandArgs(TRUE)` returns.
///
/// `None` without R; see [`find`].
#[must_use]
pub fn command(code: &str) -> Option<Command> {
    let mut command = Command::new(find()?);
    command
        .args(["--vanilla", "-e", code])
        .env("LC_ALL", "C.UTF-8")
        .env("LANGUAGE", "en")
        .env_remove("R_LIBS_USER")
        .env_remove("R_PROFILE_USER");
    Some(command)
}

/// Runs R code and returns what it wrote; `None` without R.
///
/// # Panics
/// When the code fails, with its error output.
#[must_use]
pub fn run(code: &str, args: &[&str]) -> Option<String> {
    let output = command(code)?.args(args).output().expect("Rscript can be started");
    Some(stdout(output))
}

/// The standard output of a process that succeeded.
///
/// # Panics
/// When it failed, with its error output.
#[must_use]
pub fn stdout(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "R failed: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("R writes UTF-8 here")
}
