//! Installs packages by `R CMD INSTALL`, several at a time, while later files still download.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use futures_util::{
    FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream::FuturesUnordered,
};
use tokio::process::Command;

use crate::{
    closure::InstallOrder,
    download::DownloadError,
    schedule::{Outcome, Schedule},
};

/// How packages are installed.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The R program.
    pub program: PathBuf,
    /// The library they go to.
    pub library: PathBuf,
    /// All libraries R shall see meanwhile (`R_LIBS`), `library` first.
    pub libraries: Vec<PathBuf>,
    /// Installations under way at a time.
    pub jobs_max: usize,
    /// The folder for one log a package, `NAME.out` as R names it.
    pub logs: PathBuf,
    /// Further arguments of `R CMD INSTALL`.
    pub arguments: Vec<String>,
}

/// What happens during an installation.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallEvent<'a> {
    /// A package's file is there.
    Downloaded {
        /// The package.
        package: &'a str,
        /// Its file.
        path: &'a Path,
    },
    /// A package's file cannot be had.
    DownloadFailed {
        /// The package.
        package: &'a str,
        /// Why.
        error: &'a DownloadError,
    },
    /// An installation began.
    Started {
        /// The package.
        package: &'a str,
    },
    /// An installation ended.
    Finished {
        /// The package.
        package: &'a str,
        /// How; an error is about starting R, not about the package.
        status: &'a io::Result<ExitStatus>,
        /// What R said meanwhile.
        log: &'a Path,
    },
}

/// Installs a set of packages as their files arrive.
///
/// `files` yields each package's name with its file. What cannot be downloaded or fails to
/// install takes with it only the packages that need it. Returns how each package ended, in the
/// order of installation. Dropping the future ends the installations under way; R removes what
/// they left in the library when it next installs there.
pub async fn install(
    order: InstallOrder,
    files: impl Stream<Item = (String, Result<PathBuf, DownloadError>)>,
    options: &InstallOptions,
    mut observe: impl FnMut(InstallEvent<'_>),
) -> Vec<(String, Outcome)> {
    // R's own lock covers the whole library and would let only one installation run.
    let lock = if options.jobs_max > 1 { "--pkglock" } else { "--lock" };
    let mut schedule = Schedule::new(order, options.jobs_max);
    let mut paths: HashMap<String, PathBuf> = HashMap::new();
    let mut files = std::pin::pin!(files.fuse());
    let mut running: FuturesUnordered<BoxFuture<'_, (String, io::Result<ExitStatus>)>> =
        FuturesUnordered::new();
    loop {
        while let Some(package) = schedule.start_next() {
            observe(InstallEvent::Started { package: &package });
            let path = paths.remove(&package).unwrap_or_default();
            running.push(
                async move {
                    let status = install_one(&package, &path, lock, options).await;
                    (package, status)
                }
                .boxed(),
            );
        }
        if schedule.is_done() {
            break;
        }
        tokio::select! {
            Some((package, status)) = running.next() => {
                let log = log_path(options, &package);
                observe(InstallEvent::Finished { package: &package, status: &status, log: &log });
                schedule.finished(&package, status.is_ok_and(|status| status.success()));
            }
            Some((package, file)) = files.next() => match file {
                Ok(path) => {
                    observe(InstallEvent::Downloaded { package: &package, path: &path });
                    paths.insert(package.clone(), path);
                    schedule.downloaded(&package, true);
                }
                Err(error) => {
                    observe(InstallEvent::DownloadFailed { package: &package, error: &error });
                    schedule.downloaded(&package, false);
                }
            },
            // Nothing runs and no file comes any more: the rest was never going to be there.
            else => break,
        }
    }
    schedule.outcomes().map(|(package, outcome)| (package.to_owned(), outcome.clone())).collect()
}

fn log_path(options: &InstallOptions, package: &str) -> PathBuf {
    options.logs.join(format!("{package}.out"))
}

async fn install_one(
    package: &str,
    path: &Path,
    lock: &str,
    options: &InstallOptions,
) -> io::Result<ExitStatus> {
    let log = File::create(log_path(options, package))?;
    let libraries = std::env::join_paths(&options.libraries).map_err(io::Error::other)?;
    let mut command = Command::new(&options.program);
    command
        .args(["CMD", "INSTALL", lock])
        .args(&options.arguments)
        .arg("-l")
        .arg(&options.library)
        .arg(path)
        .env("R_LIBS", libraries)
        // Packages are the unit of parallelism; a make inside each would multiply it.
        .env_remove("MAKEFLAGS")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true);
    command.status().await
}
