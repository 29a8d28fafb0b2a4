//! Runs the rows of a case in turn, so that what disturbs one round disturbs every row alike.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::fixtures::{self, Set};
use super::lists::Lists;
use super::peers::{Peer, Setting};
use super::samples::{Sample, Samples};
use super::scratch::Scratch;
use super::{Options, bars::Bar};
use crate::interrupt::Interrupt;
use crate::lab::{Host, Lab, SERVER_NAME, Traffic};
use crate::{command, measure};

/// A run that takes longer than this has hung.
const RUN_MAX: Duration = Duration::from_secs(300);

/// One table: a set of files over one port, and who moves them.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) set: Set,
    /// How often the set is fetched, under other names.
    pub(super) copies: usize,
    pub(super) port: u16,
    /// Where the client runs: on the server's host it speaks over loopback.
    pub(super) host: Host,
    /// The row whose time is 1.
    pub(super) reference: &'static str,
    pub(super) peers: Vec<Peer>,
}

/// What a case gave.
#[derive(Clone, Debug)]
pub(super) struct CaseResult {
    pub(super) name: String,
    pub(super) reference: &'static str,
    /// As measured on the link.
    pub(super) rtt_s: f64,
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) peer: Peer,
    pub(super) samples: Samples,
}

impl CaseResult {
    pub(super) fn row(&self, label: &str) -> Option<&Samples> {
        self.rows.iter().find(|row| row.peer.label == label).map(|row| &row.samples)
    }

    /// The median time of a row.
    pub(super) fn wall_s(&self, label: &str) -> Option<f64> {
        Some(self.row(label)?.wall_s()?.median)
    }

    pub(super) fn cpu_s(&self, label: &str) -> Option<f64> {
        Some(self.row(label)?.cpu_s()?.median)
    }

    /// The quickest row that stores files and is not ours.
    pub(super) fn best_peer_s(&self) -> Option<f64> {
        self.rows
            .iter()
            .filter(|row| row.peer.stores_files() && !row.peer.is_ours())
            .filter_map(|row| Some(row.samples.wall_s()?.median))
            .min_by(f64::total_cmp)
    }
}

/// What all cases of a bench share.
pub(super) struct Runner<'a> {
    pub(super) options: &'a Options,
    pub(super) trunkline: PathBuf,
    pub(super) interrupt: Interrupt,
}

impl Runner<'_> {
    /// Whether `--rows` asks for this row of this case.
    pub(super) fn wants(&self, case: &str, row: &str) -> bool {
        self.options.wants(case, row)
    }

    /// Runs every row of the case `rounds` times.
    ///
    /// # Errors
    /// The lab fails or the user interrupts; a peer that fails is only noted in its row.
    pub(super) fn run(&self, lab: &Lab, case: &Case) -> Result<CaseResult> {
        let entries = fixtures::make(case.set)?;
        let directory = command::workspace_root().join("target/bench/run");
        let base = format!("https://{SERVER_NAME}:{}", case.port);
        let lists = Lists::write(&directory, &base, &entries, case.copies)?;
        let mut rows: Vec<Row> = case
            .peers
            .iter()
            .filter(|peer| self.wants(&case.name, peer.label))
            .map(|peer| Row { peer: *peer, samples: Samples::default() })
            .collect();
        let scratch = Scratch::make()?;
        let out = scratch.out();
        let setting = Setting {
            trunkline: &self.trunkline,
            authority: &lab.certificates.authority,
            lists: &lists,
            out: &out,
        };
        let rtt_s = round_trip_s(lab, case.host, &format!("{base}/"))?;
        for round in 0..self.options.rounds {
            eprintln!("bench: {}, round {} of {}", case.name, round + 1, self.options.rounds);
            let count = rows.len().max(1);
            // Another row goes first each time: being first has its price.
            rows.rotate_left(round % count);
            for row in &mut rows {
                if round >= row.peer.rounds_max || row.samples.failure.is_some() {
                    continue;
                }
                match self.run_once(lab, case, &row.peer, &setting, &scratch) {
                    Ok(sample) => row.samples.runs.push(sample),
                    Err(error) => row.samples.failure = Some(format!("{error:#}")),
                }
                self.interrupt.check()?;
            }
        }
        let place = |row: &Row| case.peers.iter().position(|peer| *peer == row.peer);
        rows.sort_by_key(place);
        Ok(CaseResult { name: case.name.clone(), reference: case.reference, rtt_s, rows })
    }

    fn run_once(
        &self,
        lab: &Lab,
        case: &Case,
        peer: &Peer,
        setting: &Setting<'_>,
        scratch: &Scratch,
    ) -> Result<Sample> {
        scratch.fresh()?;
        let directory = setting.lists.directory.as_path();
        let words = peer.tool.command(setting)?;
        let log_start = std::fs::metadata(&lab.nginx.log)?.len();
        let accepted_before = lab.nginx.accepted()?;
        let host = lab.command(case.host);
        let cost = measure::measure(host, &words, directory, RUN_MAX, &self.interrupt)?;
        let mut traffic = settled_traffic(&lab.nginx.log, log_start)?;
        // Asking is a connection too: one before, one now.
        traffic.connections = lab.nginx.accepted()?.saturating_sub(accepted_before + 1);
        if peer.stores_files() {
            let expected = setting.lists.jobs.iter().map(|job| (job.name.as_str(), &job.entry));
            fixtures::verify(setting.out, expected)?;
        } else if traffic.refused > 0 {
            bail!("{} requests were refused", traffic.refused);
        }
        Ok(Sample { cost, traffic })
    }
}

/// The best of a few connects from `host`: what the link takes at least, in seconds.
///
/// # Errors
/// curl fails.
pub(super) fn round_trip_s(lab: &Lab, host: Host, url: &str) -> Result<f64> {
    const TRIES: usize = 5;
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let mut curl = lab.command(host);
        let times = "%{time_connect} %{time_namelookup}";
        curl.args(["curl", "-q", "-s", "-o", "/dev/null", "-w", times, "--cacert"]);
        let text = command::output(curl.arg(&lab.certificates.authority).arg(url))?;
        let mut times = text.split(' ').filter_map(|time| time.parse::<f64>().ok());
        if let (Some(connect), Some(lookup)) = (times.next(), times.next()) {
            best = best.min(connect - lookup);
        }
    }
    Ok(best)
}

/// nginx writes a line when it is done with a request, which may be after the client has left.
///
/// # Errors
/// The log cannot be read.
pub(super) fn settled_traffic(log: &Path, start: u64) -> Result<Traffic> {
    const LOOKS_MAX: usize = 50;
    let mut traffic = Traffic::since(log, start)?;
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(Duration::from_millis(20));
        let later = Traffic::since(log, start)?;
        if later == traffic {
            break;
        }
        traffic = later;
    }
    Ok(traffic)
}

/// Prints the bars and says whether all that were measured are met.
pub(super) fn judge(bars: &[Bar]) -> bool {
    println!("\n## Bars");
    for bar in bars {
        println!("{bar}");
    }
    bars.iter().all(|bar| bar.is_met() != Some(false))
}
