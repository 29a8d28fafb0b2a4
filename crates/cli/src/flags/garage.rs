//! The options of garage-push and garage-check, as scripts give them.

use std::path::PathBuf;

use clap::Args;

/// What both take.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Credentials (json or zip containing json)
    #[arg(short = 'j', long, value_name = "FILE")]
    pub(crate) credentials: PathBuf,
    /// Override path to CA root certificates, in the same format as curl --cacert
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Maximum number of parallel requests
    #[arg(long, value_name = "N", default_value_t = 30,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) jobs: usize,
    /// Walk the tree of objects
    #[arg(short, long)]
    pub(crate) walk_tree: bool,
    /// Verbose logging
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Quiet mode
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Log level, 0 to 5
    #[arg(long, value_name = "LEVEL")]
    pub(crate) loglevel: Option<u8>,
}

/// What garage-push takes.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// Location of the OSTree repository
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) repo: PathBuf,
    /// Ref or commit to push
    #[arg(short = 'r', long = "ref", value_name = "REF")]
    pub(crate) name: String,
    /// Manifest describing the repository branches used in the image
    #[arg(long, value_name = "FILE")]
    pub(crate) repo_manifest: Option<PathBuf>,
    /// Check arguments and credentials and say what would be sent, but send nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Do not hash objects before they are sent
    #[arg(long)]
    pub(crate) disable_integrity_checks: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What garage-check takes.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Commit to check
    #[arg(short = 'r', long = "ref", value_name = "COMMIT")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}
