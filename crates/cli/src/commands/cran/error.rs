//! What keeps a `trunkline cran` command from doing its work.

use std::{io, path::PathBuf};

use thiserror::Error;
use trunkline_cran::{PlanError, r_setup::RSetupError};

use crate::{exit::Exit, settings::SettingsError};

#[derive(Debug, Error)]
pub(crate) enum CranError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    R(#[from] RSetupError),
    #[error("no repository is set: give --repos, or set options(repos = ) in R's profile")]
    NoRepositories,
    #[error("no repository's index could be read")]
    NoIndex,
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("--r-version asks no R, so it cannot tell where to install; leave it out")]
    InstallWithoutR,
    #[error("R has no library to install to; give --lib")]
    NoLibrary,
    #[error("--print-rprofile needs --port or --listen, so that R finds the mirror again")]
    NoPort,
    #[error("cannot understand the lock file `{}`: {source}", path.display())]
    Lockfile {
        path: PathBuf,
        #[source]
        source: trunkline_proto::cran::Error,
    },
    #[error("`{}` holds no token: letters and digits, 16 or more", path.display())]
    Token { path: PathBuf },
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Listen(#[from] trunkline_listen::Error),
}

impl CranError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Settings(_)
            | Self::NoRepositories
            | Self::InstallWithoutR
            | Self::NoLibrary
            | Self::NoPort
            | Self::Lockfile { .. }
            | Self::Token { .. } => Exit::Usage,
            Self::NoIndex | Self::Listen(_) => Exit::Network,
            Self::Plan(_) => Exit::Status,
            Self::R(_) | Self::File { .. } => Exit::File,
        }
    }

    /// An error about a file, for `map_err`.
    pub(crate) fn file(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
