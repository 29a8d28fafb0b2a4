//! `cargo xtask test`: everything that must pass before a change lands, in the order in which it
//! fails soonest.

mod tally;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use self::tally::Tally;
use crate::{command, setup, tidy};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Go on after a failed step, and fail at the end
    #[arg(long)]
    keep_going: bool,
    /// Leave steps out (setup, fmt, clippy, tidy, test, doc, deny), for a quick turn at one's desk
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    skip: Vec<String>,
}

/// What a step that did not fail has to say.
enum Verdict {
    Passed,
    /// Passed, but something could not be checked: said again in the summary.
    PassedBut(String),
}

/// A step's work; the tally is for the one step that counts tests.
type Work = fn(&mut Tally) -> Result<Verdict>;

const STEPS: [(&str, Work); 7] = [
    ("setup", |_| setup::run(&setup::Arguments::for_tests()).map(|()| Verdict::Passed)),
    ("fmt", |_| passes(command::cargo().args(["fmt", "--all", "--check"]))),
    ("tidy", |_| tidy::run().map(|()| Verdict::Passed)),
    ("clippy", |_| {
        let lint = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        passes(command::cargo().args(lint))
    }),
    ("test", run_tests),
    ("doc", |_| {
        passes(
            command::cargo()
                .args(["doc", "--workspace", "--no-deps", "--locked"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    }),
    ("deny", |_| check_dependencies()),
];

/// Runs every step that was not left out.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(unknown) =
        arguments.skip.iter().find(|name| STEPS.iter().all(|(step, _)| step != name))
    {
        bail!("`--skip {unknown}`: there is no such step; see --help");
    }
    let mut tally = Tally::default();
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for (name, work) in STEPS {
        if arguments.skip.iter().any(|skipped| skipped == name) {
            lines.push(format!("{name:<8} skipped, as asked"));
            continue;
        }
        println!("==> {name}");
        let start = Instant::now();
        let outcome = work(&mut tally);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(Verdict::Passed) => lines.push(format!("{name:<8} ok      {seconds:8.1} s")),
            Ok(Verdict::PassedBut(gap)) => {
                lines.push(format!("{name:<8} ok      {seconds:8.1} s  ({gap})"));
            }
            Err(error) => {
                println!("{name} failed: {error:#}");
                lines.push(format!("{name:<8} FAILED  {seconds:8.1} s"));
                failed.push(name);
                if !arguments.keep_going {
                    break;
                }
            }
        }
    }
    println!("\n==> summary\n{}", lines.join("\n"));
    println!("\n{}", tally.closing_lines());
    // Standard error is unbuffered and standard output is not: keep their order in a log.
    std::io::stdout().flush()?;
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn passes(command: &mut Command) -> Result<Verdict> {
    command::run(command).map(|()| Verdict::Passed)
}

/// Unit, integration and doc tests, every binary even after a failure, so that the sum is whole.
fn run_tests(tally: &mut Tally) -> Result<Verdict> {
    let mut cargo = command::cargo();
    cargo.args(["test", "--workspace", "--locked", "--no-fail-fast"]).stdout(Stdio::piped());
    // The setup before this step installed the judges: a test without its judge fails.
    cargo.env("TRUNKLINE_JUDGES", "all");
    let start = Instant::now();
    let mut child = cargo.spawn().context("could not start cargo test")?;
    let lines = BufReader::new(child.stdout.take().expect("stdout was asked for")).lines();
    for line in lines {
        let line = line?;
        println!("{line}");
        tally.note(&line);
    }
    let status = child.wait()?;
    tally.took(start.elapsed());
    if !status.success() {
        bail!("`cargo test` ended with {status}");
    }
    if tally.passed() == 0 {
        bail!("no test ran");
    }
    Ok(Verdict::Passed)
}

/// How long the advisory database may take to come before we go on without it.
const ADVISORIES_WAIT_MAX: Duration = Duration::from_secs(60);

/// Licences, bans and sources need only what is on disk; advisories need a database from outside.
fn check_dependencies() -> Result<Verdict> {
    let deny = || {
        let mut cargo = command::cargo();
        cargo.args(["deny", "--all-features", "--log-level", "warn"]);
        cargo
    };
    command::run(deny().args(["--offline", "check", "licenses", "bans", "sources"]))?;
    let has_database = ends_well_within(deny().args(["fetch", "db"]), ADVISORIES_WAIT_MAX);
    if !has_database {
        let gap = "advisories skipped: their database cannot be had here";
        println!("deny: {gap}");
        return Ok(Verdict::PassedBut(gap.to_owned()));
    }
    command::run(deny().args(["check", "--disable-fetch", "advisories"]))?;
    Ok(Verdict::Passed)
}

/// Whether a quiet command succeeds in time; one that hangs is ended.
fn ends_well_within(command: &mut Command, limit: Duration) -> bool {
    let Ok(mut child) =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    else {
        return false;
    };
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(None) | Err(_) => {
                // Already ended or not ours to end: either way there is no database.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
