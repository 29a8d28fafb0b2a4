//! What can keep the command from serving, and what it tells when asked.

use std::io::Write as _;
use std::path::PathBuf;

use thiserror::Error;
use trunkline_nbd::ServeCounts;
use trunkline_nbd::wrap::{CacheError, OverlayError, PartitionError, ViewError};
use trunkline_transfer::Engine;

use super::open::Opened;
use crate::exit::Exit;
use crate::settings::SettingsError;

/// What keeps the command from serving.
#[derive(Debug, Error)]
pub(crate) enum NbdError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("--export `{text}`: write NAME=URL")]
    Export { text: String },
    #[error("`{text}`: use an http, https or file URL, or a path")]
    Source { text: String },
    #[error("two exports are named `{name}`; give each its own name")]
    SameName { name: String },
    #[error("an overlay file serves one image; give one, or use --overlay tmp")]
    SharedOverlay,
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error("--offset and --size: {0}")]
    View(#[from] ViewError),
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Image(#[from] trunkline_nbd::Error),
    #[error(transparent)]
    Listen(#[from] trunkline_listen::Error),
    #[error("cannot make a folder for the private socket: {0}")]
    PrivateSocket(std::io::Error),
    #[error("cannot write the process id to `{}`: {source}", path.display())]
    Pidfile { path: PathBuf, source: std::io::Error },
    #[error("cannot run the command: {0}")]
    Run(std::io::Error),
    #[error("cannot start: {0}")]
    Start(std::io::Error),
}

impl NbdError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Image(trunkline_nbd::Error::Remote(error))
            | Self::Partition(PartitionError::Read(trunkline_nbd::Error::Remote(error))) => {
                Exit::from(error.kind.class())
            }
            Self::Image(_)
            | Self::Overlay(_)
            | Self::Cache(_)
            | Self::Partition(_)
            | Self::PrivateSocket(_)
            | Self::Pidfile { .. } => Exit::File,
            Self::Listen(_) => Exit::Network,
            Self::Run(_) | Self::Start(_) => Exit::Mixed,
            Self::Settings(_)
            | Self::SharedOverlay
            | Self::View(_)
            | Self::Export { .. }
            | Self::Source { .. }
            | Self::SameName { .. } => Exit::Usage,
        }
    }
}

/// Prints the counters on standard error.
pub(crate) fn report(served: &ServeCounts, opened: &Opened, engine: &Engine) {
    let (ahead, cache, origin) = (opened.read_ahead(), opened.cache(), engine.stats_total());
    let text = format!(
        "clients {}, reads {} ({} bytes), writes {} ({} bytes), other requests {}, failed {}\n\
         read-ahead: {} reads answered from {} chunks, {} reads passed on\n\
         cache: {} bytes from disk, {} bytes fetched\n\
         origins: {} connections ({} at once), {} full and {} resumed handshakes, {} requests, \
         {} bytes received\n",
        served.clients,
        served.reads,
        served.read_bytes,
        served.writes,
        served.written_bytes,
        served.other_requests,
        served.failed_requests,
        ahead.hits,
        ahead.chunks,
        ahead.direct,
        cache.hit_bytes,
        cache.miss_bytes,
        origin.connections,
        origin.connections_peak,
        origin.handshakes_full,
        origin.handshakes_resumed,
        origin.requests,
        origin.bytes_received,
    );
    // Nobody is left to tell when standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
