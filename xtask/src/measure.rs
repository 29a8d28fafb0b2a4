//! What one command costs: wall time, CPU and peak memory of it and all its children.
//!
//! The kernel reports peak memory only as the largest of all children a process ever had, so each
//! measured command gets a parent of its own: this program again, as `xtask measure`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeValLike as _;
use serde_json::{Value, json};

use crate::interrupt::Interrupt;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where to write the figures, as JSON
    #[arg(long)]
    report: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Where a measured command's output goes, in the folder that [`measure`] is given.
pub(crate) const OUTPUT: &str = "output.log";

/// The figures of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// User and system time together.
    pub(crate) cpu: Duration,
    /// The largest resident set of the command and its children, each for itself.
    pub(crate) memory_bytes_max: u64,
}

/// `xtask measure`: runs the command and writes its figures.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (program, rest) = arguments.command.split_first().context("no command")?;
    let start = Instant::now();
    let status =
        Command::new(program).args(rest).status().with_context(|| format!("`{program}`"))?;
    let wall = start.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let report = json!({
        "wall_us": u64::try_from(wall.as_micros())?,
        "cpu_us": usage.user_time().num_microseconds() + usage.system_time().num_microseconds(),
        "memory_kib_max": usage.max_rss(),
        "status": status.code(),
    });
    std::fs::write(&arguments.report, report.to_string())?;
    Ok(())
}

/// Runs `words` as arguments of `host` (which names where), under [`run`], and collects the figures.
///
/// # Errors
/// The command fails, takes longer than `limit`, or a signal asked us to stop; it is ended then.
pub(crate) fn measure(
    mut host: Command,
    words: &[String],
    directory: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Cost> {
    use std::os::unix::process::CommandExt as _;
    let report = directory.join("cost.json");
    let log = directory.join(OUTPUT);
    let _ = std::fs::remove_file(&report);
    let mut child = host
        .arg(std::env::current_exe()?)
        .args(["measure", "--report"])
        .arg(&report)
        .arg("--")
        .args(words)
        .env("HOME", directory) // no .curlrc, no caches from earlier runs
        .stdin(Stdio::null())
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?)
        .process_group(0)
        .spawn()?;
    let deadline = Instant::now() + limit;
    // The wall time is taken by the child, so our steps here cost it nothing.
    while child.try_wait()?.is_none() {
        if interrupt.is_set() || Instant::now() > deadline {
            let group = nix::unistd::Pid::from_raw(i32::try_from(child.id())?);
            killpg(group, Signal::SIGKILL)?;
            child.wait()?;
            interrupt.check()?;
            bail!("took longer than {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let text =
        std::fs::read_to_string(&report).map_err(|_| anyhow::anyhow!("{}", tail(&said())))?;
    let report: Value = serde_json::from_str(&text)?;
    if report["status"] != 0 {
        bail!("ended with status {}: {}", report["status"], tail(&said()));
    }
    let number = |field: &str| report[field].as_u64().with_context(|| format!("no {field}"));
    Ok(Cost {
        wall: Duration::from_micros(number("wall_us")?),
        cpu: Duration::from_micros(number("cpu_us")?),
        memory_bytes_max: number("memory_kib_max")? * 1024,
    })
}

/// The last lines of what a command said, on one line.
fn tail(text: &str) -> String {
    const LINES_MAX: usize = 3;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_command_are_written_with_its_status() {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("cost.json");
        let command = ["sh", "-c", "exit 3"].map(str::to_owned).to_vec();
        run(&Arguments { report: report.clone(), command }).unwrap();
        let text = std::fs::read_to_string(report).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["status"], 3);
        assert!(value["wall_us"].as_u64().unwrap() > 0);
        assert!(value["memory_kib_max"].as_u64().unwrap() > 0);
    }

    #[test]
    fn only_the_end_of_a_complaint_is_kept() {
        assert_eq!(tail("a\nb\n\nc\nd\n"), "b | c | d");
        assert_eq!(tail(""), "");
    }
}
