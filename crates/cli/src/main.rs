//! The `trunkline` command: reads arguments and environment, shows progress, and maps what
//! happened to an exit code. Everything else is in the libraries below it.

mod commands;
mod environment;
mod exit;
mod flags;
mod logging;
mod render;
mod secret_input;
mod settings;
mod signals;
mod tour;

use clap::Parser as _;

use crate::flags::{Cli, Command};

fn main() -> std::process::ExitCode {
    let cli = Cli::parse_from(commands::garage::named(std::env::args_os()));
    let exit = match cli.command {
        Command::Get(args) => commands::get::main(*args).unwrap_or_else(|error| {
            render::error(&error.to_string());
            error.exit()
        }),
        Command::Cran(args) => commands::cran::main(args),
        Command::Nbd(args) => commands::nbd::main(*args).unwrap_or_else(|error| {
            render::error(&error.to_string());
            error.exit()
        }),
        Command::Tour(args) => commands::tour::main(&args),
        Command::Ostree(command) => commands::ostree::main(command),
        Command::Treehub(command) => commands::treehub::main(command),
        Command::GaragePush(args) => commands::garage::push(*args),
        Command::GarageCheck(args) => commands::garage::check(*args),
    };
    exit.into()
}
