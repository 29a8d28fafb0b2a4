//! `trunkline tour`: what warm connections are worth.

use crate::exit::Exit;
use crate::tour::{self, TourArgs, TourError, TourOptions};
use crate::{render, signals};

/// Threads for files, besides the one for the network.
const FILE_THREADS_MAX: usize = 8;

/// Runs the command.
pub(crate) fn main(args: &TourArgs) -> Exit {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS_MAX)
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(args.into())),
        Err(error) => Err(TourError::Thread(error)),
    };
    ended.unwrap_or_else(|error| {
        render::error(&error.to_string());
        exit_of(&error)
    })
}

async fn run(options: TourOptions) -> Result<Exit, TourError> {
    let mut out = std::io::stdout().lock();
    let (stop, stopped) = signals::stop();
    tokio::select! {
        // The signals are caught from here on, before the tour puts anything on the disk.
        biased;
        () = stop => Ok(stopped.get().map_or(Exit::Success, Exit::Signal)),
        ended = tour::run(options, &mut out) => ended.map(|()| Exit::Success),
    }
}

fn exit_of(error: &TourError) -> Exit {
    match error {
        TourError::TooLarge { .. } => Exit::Usage,
        TourError::Certificate(_) | TourError::Tls(_) | TourError::Trust(_) => Exit::Tls,
        TourError::Listen(_) | TourError::Thread(_) => Exit::Network,
        TourError::Folder { .. } | TourError::Output(_) => Exit::File,
        TourError::Fetch(error) => error.kind.class().into(),
    }
}
