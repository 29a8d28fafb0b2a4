//! `cargo xtask`: set-up, tests, benches, tidy: everything a person or CI runs around the code.
//!
//! It depends on none of our crates, so it still runs when one of them does not build.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "xtask talks to the terminal")]

mod bench;
mod command;
mod gate;
mod interrupt;
mod lab;
mod measure;
mod setup;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, tests, benches and tidiness of Trunkline")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need (Debian packages, cargo-deny)
    Setup(setup::Arguments),
    /// Run everything that must pass before a change lands
    Test(gate::Arguments),
    /// Check the crate graph, sizes, names, purity and documents
    Tidy,
    /// Two hosts with a round-trip time between them
    Lab(lab::Arguments),
    /// Measure our program and its peers over the same link
    Bench(bench::Arguments),
    /// Run one command and write what it cost: the benches call this
    #[command(hide = true)]
    Measure(measure::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Setup(arguments) => setup::run(&arguments),
        Task::Test(arguments) => gate::run(&arguments),
        Task::Tidy => tidy::run(),
        Task::Lab(arguments) => lab::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Measure(arguments) => measure::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
