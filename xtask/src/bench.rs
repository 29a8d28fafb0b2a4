//! `cargo xtask bench …`: our program and its peers, in turn, over the same link.

mod bars;
mod cran;
mod fixtures;
mod generator;
mod get;
mod lists;
mod ostree;
mod peers;
mod r_ways;
mod rounds;
mod samples;
mod scratch;
mod table;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    which: Which,
}

#[derive(Subcommand)]
enum Which {
    /// Many files, many small objects, one large file
    Get(get::Arguments),
    /// R packages: R's own ways, ours, and an unchanged R behind the mirror
    Cran(cran::Arguments),
    /// OSTree: a commit pushed, pulled, deployed and checked, over single objects and over packs
    Ostree(ostree::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.which {
        Which::Get(arguments) => get::run(arguments),
        Which::Cran(arguments) => cran::run(arguments),
        Which::Ostree(arguments) => ostree::run(arguments),
    }
}

/// Options that every bench has.
#[derive(Args, Debug)]
struct Options {
    /// Only cases and rows with one of these words in their name
    #[arg(long, value_delimiter = ',', value_name = "WORD")]
    rows: Vec<String>,
    /// How often each row is run; slow rows are run at most twice
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Round-trip times in milliseconds
    #[arg(long, value_delimiter = ',', default_values_t = [20_u64, 100], value_name = "MS")]
    rtt: Vec<u64>,
    /// Also write every sample to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure this program instead of building `trunkline` in release
    #[arg(long, value_name = "PROGRAM")]
    trunkline: Option<PathBuf>,
    /// Fail when a bar is missed
    #[arg(long)]
    strict: bool,
}

impl Options {
    /// Whether `--rows` asks for this row of this case.
    fn wants(&self, case: &str, row: &str) -> bool {
        let words = &self.rows;
        words.is_empty() || words.iter().any(|word| case.contains(word) || row.contains(word))
    }
}

/// Printed before any figure.
const CAVEATS: &str = "\
What makes these numbers lie:
  - server, clients and the delay line share this machine's cores: read ratios, not seconds;
  - the link has a delay and no loss, and delays a packet by some 0.3 ms more than it is told;
  - h2load throws bodies away and checks nothing: it is a floor, not a peer;
  - files come from the page cache and go to memory; nothing here waits for a disk;
  - peers run with the options shown in BENCHMARKS.md and else their defaults;
  - rows with few rounds, or whose range is wide, prove little. Other load on the machine spoils all.
";
