//! Flags of `trunkline ostree`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trunkline_ostree::push::JOBS_DEFAULT;
use trunkline_proto::ostree::{Checksum, RefName};
use url::Url;

use super::{NetworkArgs, OutputArgs};

const PUSH_EXAMPLES: &str = "\
Examples:
  To the server that a credentials file names:
    trunkline ostree push --repo build/ostree_repo --ref main --credentials credentials.zip
  To a server by URL, saying only what would be sent:
    trunkline ostree push --repo repo --ref main --dry-run https://host/api/v3";

/// What to do with commits.
#[derive(Debug, Subcommand)]
pub(crate) enum OstreeCommand {
    /// Send a commit, and point the server's ref at it.
    #[command(after_help = PUSH_EXAMPLES)]
    Push(Box<PushArgs>),
    /// Bring a commit into a local archive repository.
    Pull(Box<PullArgs>),
    /// Is everything a commit needs on the server, and sound? Fails when it is not.
    Check(Box<CheckArgs>),
    /// Bring a commit from one server to another, streamed; both must have packs.
    Deploy(Box<DeployArgs>),
    /// Send what the server lacks of a commit or has corrupt, and nothing else.
    Repair(Box<PushArgs>),
}

/// Which server, and who asks.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Base URL of the repository, such as https://host/api/v3
    #[arg(value_name = "URL", required_unless_present = "credentials")]
    pub(crate) server: Option<Url>,
    /// credentials.zip or treehub.json: server, tokens, client certificate
    #[arg(short = 'j', long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Requests in flight at a time on a server without packs
    #[arg(long, value_name = "N", default_value_t = JOBS_DEFAULT,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) jobs: usize,
    /// Do not use packs even when the server has them
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output_style: OutputArgs,
}

/// What `push` and `repair` take.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The local repository, of any mode
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) repo: PathBuf,
    /// A branch of it, which the server's branch of that name will follow, or a commit
    #[arg(short = 'r', long = "ref", value_name = "REF")]
    pub(crate) name: String,
    /// Say what would be sent and write nothing, refs included
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Ask for every object, even of a commit that the server has
    #[arg(short, long)]
    pub(crate) walk: bool,
    /// Move the ref even when the commit does not follow the present one
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not hash objects before they are sent
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Send the static deltas that lead to the commit as well (servers with packs)
    #[arg(long)]
    pub(crate) deltas: bool,
    /// Send this JSON manifest of how the commit was made as well
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What `pull` takes.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The local archive repository, made when it is not there
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) repo: PathBuf,
    /// The branch to follow
    #[arg(short = 'r', long = "ref", value_name = "REF", required_unless_present = "commit")]
    pub(crate) name: Option<RefName>,
    /// This commit instead of where the branch points
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<Checksum>,
    /// How many generations of parents to bring as well
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) depth: u32,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What `check` takes.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A branch of the server, or a commit
    #[arg(short = 'r', long = "ref", value_name = "REF")]
    pub(crate) name: String,
    /// Only look whether the commit object is there
    #[arg(long)]
    pub(crate) commit_only: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What `deploy` takes; URL and credentials are those of the server that gets the commit.
#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    /// Base URL of the server that has the commit
    #[arg(long, value_name = "URL", required_unless_present = "from_credentials")]
    pub(crate) from: Option<Url>,
    /// credentials.zip or treehub.json of the server that has the commit
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) from_credentials: Option<PathBuf>,
    /// The commit
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Checksum,
    /// The ref to point at it
    #[arg(short = 'r', long = "ref", value_name = "REF")]
    pub(crate) name: Option<RefName>,
    /// Move the ref even when the commit does not follow the present one
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
