//! `trunkline cran`: R packages.

mod args;
mod download;
mod error;
mod install;
mod mirror;
mod session;

pub(crate) use args::CranArgs;
use args::CranCommand;

use crate::{exit::Exit, logging, render};

/// Threads for files, besides the one for the network.
const FILE_THREADS_MAX: usize = 8;

/// Runs the command.
pub(crate) fn main(args: CranArgs) -> Exit {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS_MAX)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            render::error(&format!("cannot start: {error}"));
            return Exit::File;
        }
    };
    let output = match &args.command {
        CranCommand::Download(args) => &args.output,
        CranCommand::Install(args) => &args.output,
        CranCommand::Mirror(args) => &args.output,
        CranCommand::WithMirror(args) => &args.output,
    };
    logging::start(output.verbose);
    let ended = runtime.block_on(async {
        match args.command {
            CranCommand::Download(args) => download::run(*args).await,
            CranCommand::Install(args) => install::run(*args).await,
            CranCommand::Mirror(args) => mirror::run(*args).await,
            CranCommand::WithMirror(args) => mirror::run_with(*args).await,
        }
    });
    runtime.shutdown_background();
    ended.unwrap_or_else(|error| {
        render::error(&error.to_string());
        error.exit()
    })
}
