//! The flags of `trunkline tour`.

use std::time::Duration;

use clap::Args;

use super::{Style, TourOptions};

const TOUR_EXAMPLES: &str = "\
Examples:
  See what connections cost at 20 ms, in about a quarter of a minute:
    trunkline tour
  Across an ocean, with a server that knows HTTP/1.1 alone:
    trunkline tour --rtt-ms 100 --http1
  For a program:
    trunkline tour --files 40 --json";

/// What `trunkline tour` takes.
#[derive(Clone, Debug, Args)]
#[command(after_help = TOUR_EXAMPLES)]
pub(crate) struct TourArgs {
    /// Files to fetch
    #[arg(long, value_name = "N", default_value_t = 150,
          value_parser = clap::value_parser!(u16).range(2..=2000))]
    pub(crate) files: u16,
    /// Half of the files are smaller than this, in KiB; a few are ten times larger
    #[arg(long, value_name = "KIB", default_value_t = 150,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) size_kib: u16,
    /// The simulated round trip, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(0..=2000))]
    pub(crate) rtt_ms: u16,
    /// Let the server speak HTTP/1.1 alone
    #[arg(long)]
    pub(crate) http1: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

impl From<&TourArgs> for TourOptions {
    fn from(args: &TourArgs) -> Self {
        Self {
            files: args.files.into(),
            median_bytes: u64::from(args.size_kib) << 10,
            round_trip: Duration::from_millis(args.rtt_ms.into()),
            http2: !args.http1,
            style: if args.json { Style::Json } else { Style::Text },
        }
    }
}
