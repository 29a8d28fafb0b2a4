//! Runs the rows of one table in turn.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::hub::Usage;
use super::ways::{Setting, Way};
use crate::bench::rounds::settled_traffic;
use crate::bench::samples::{Sample, Samples};
use crate::bench::scratch::Scratch;
use crate::bench::table;
use crate::interrupt::Interrupt;
use crate::lab::{Host, Lab, Traffic};
use crate::measure;

/// A run that takes longer than this has hung.
const RUN_MAX: Duration = Duration::from_secs(600);

/// One row and its runs.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: &'static str,
    pub(super) way: Way,
    /// Slow rows are run no more often than this.
    pub(super) rounds_max: usize,
    pub(super) samples: Samples,
    /// What our server used in each run.
    pub(super) server: Vec<Usage>,
}

impl Row {
    pub(super) fn new(label: &'static str, way: Way) -> Self {
        let (samples, server) = (Samples::default(), Vec::new());
        Self { label, way, rounds_max: usize::MAX, samples, server }
    }

    pub(super) fn slow(label: &'static str, way: Way) -> Self {
        Self { rounds_max: 1, ..Self::new(label, way) }
    }
}

/// A table: rows that are compared with each other.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// The row whose time is 1.
    pub(super) reference: &'static str,
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn row(&self, label: &str) -> Option<&Samples> {
        self.rows.iter().find(|row| row.label == label).map(|row| &row.samples)
    }

    pub(super) fn render(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(|row| (row.label, &row.samples)).collect();
        let mut text = table::render_rows(&self.name, self.reference, &rows);
        for row in self.rows.iter().filter(|row| !row.server.is_empty()) {
            let cpu: Duration = row.server.iter().map(|usage| usage.cpu).sum();
            let cpu_s = cpu.as_secs_f64() / crate::bench::samples::float(row.server.len() as u64);
            let mib = memory_mib(&row.server);
            writeln!(text, "  server of {}: {cpu_s:.2} CPU s, {mib:.0} MiB", row.label)
                .expect("writing to a String cannot fail");
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let rows: Vec<_> = self.rows.iter().map(|row| (row.label, &row.samples)).collect();
        json!({ "case": self.name, "rows": table::rows_to_json(&rows) })
    }
}

/// The largest of all runs.
pub(super) fn memory_mib(usages: &[Usage]) -> f64 {
    let bytes = usages.iter().map(|usage| usage.memory_bytes_max).max().unwrap_or(0);
    crate::bench::samples::float(bytes) / f64::from(1 << 20)
}

/// Runs every row `rounds` times.
///
/// # Errors
/// The lab fails or the user interrupts; a row that fails is only noted.
pub(super) fn run(
    table: &mut Table,
    rounds: usize,
    lab: &Lab,
    setting: &Setting<'_>,
    scratch: &Scratch,
    interrupt: &Interrupt,
) -> Result<()> {
    for round in 0..rounds {
        eprintln!("bench: {}, round {} of {rounds}", table.name, round + 1);
        for row in &mut table.rows {
            if round >= row.rounds_max || row.samples.failure.is_some() {
                continue;
            }
            scratch.fresh()?;
            match once(row.way, lab, setting, round == 0, interrupt) {
                Ok((sample, usage)) => {
                    row.samples.runs.push(sample);
                    row.server.extend(usage);
                }
                Err(error) => row.samples.failure = Some(format!("{error:#}")),
            }
            interrupt.check()?;
        }
    }
    Ok(())
}

fn once(
    way: Way,
    lab: &Lab,
    setting: &Setting<'_>,
    thoroughly: bool,
    interrupt: &Interrupt,
) -> Result<(Sample, Option<Usage>)> {
    way.prepare(setting)?;
    let words = way.command(setting);
    let log_start = std::fs::metadata(&lab.nginx.log)?.len();
    let accepted_before = lab.nginx.accepted()?;
    setting.hub.reset_peak();
    let before = setting.hub.usage()?;
    let directory = setting.out.parent().context("the scratch folder has a parent")?;
    let cost = measure::measure(lab.command(Host::Client), &words, directory, RUN_MAX, interrupt)?;
    let usage = way.asks_hub().then(|| -> Result<Usage> {
        let after = setting.hub.usage()?;
        Ok(Usage { cpu: after.cpu.saturating_sub(before.cpu), ..after })
    });
    let usage = usage.transpose()?;
    let traffic = if way.is_ours() {
        told_by_ours(directory)?
    } else if way.asks_nginx() {
        let mut traffic = settled_traffic(&lab.nginx.log, log_start)?;
        if way != Way::TarPost {
            // Asking is a connection too: one before, one now. A body that is kept makes nginx a
            // client of its own.
            traffic.connections = lab.nginx.accepted()?.saturating_sub(accepted_before + 1);
        }
        traffic
    } else {
        Traffic::default()
    };
    way.verify(setting, thoroughly)?;
    Ok((Sample { cost, traffic }, usage))
}

/// What our client says of itself, in the last line of its output.
fn told_by_ours(directory: &Path) -> Result<Traffic> {
    let text = std::fs::read_to_string(directory.join(measure::OUTPUT))?;
    let line = text.lines().rfind(|line| line.starts_with('{')).context("no JSON at the end")?;
    traffic(&serde_json::from_str(line)?)
}

fn traffic(told: &Value) -> Result<Traffic> {
    let number = |field: &str| told[field].as_u64().with_context(|| format!("no {field}"));
    Ok(Traffic {
        requests: number("requests")?,
        refused: 0,
        body_bytes: number("bytes_sent")? + number("bytes_received")?,
        connections: number("connections")?,
        handshakes_full: number("handshakes_full")?,
        handshakes_resumed: number("handshakes_resumed")?,
    })
}
