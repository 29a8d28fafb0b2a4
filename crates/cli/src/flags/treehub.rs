//! Flags of `trunkline treehub`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const SERVE_EXAMPLES: &str = "\
Examples:
  For this machine, open to everybody on it:
    trunkline treehub serve --root objects
  For a network, with TLS and tokens (lines of: push|read TOKEN [NAMESPACE]):
    trunkline treehub serve --root objects --listen 0.0.0.0:443 \\
      --tls-cert cert.pem --tls-key key.pem --tokens tokens.txt --anonymous read";

/// The server.
#[derive(Debug, Subcommand)]
pub(crate) enum TreehubCommand {
    /// Serve the Treehub API, and packs, until stopped.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
}

/// What somebody without a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Anonymous {
    /// Nothing.
    None,
    /// Fetch and check.
    Read,
    /// Everything.
    Push,
}

/// What `serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where objects are kept: a repository in a folder for each namespace
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Address and port to listen on; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Take only clients that show a certificate of this authority, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Tokens, a line each: `push TOKEN [NAMESPACE]` or `read TOKEN [NAMESPACE]`
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// What is open without a token. Default: everything on a loopback address without --tokens,
    /// else nothing
    #[arg(long, value_name = "WHAT")]
    pub(crate) anonymous: Option<Anonymous>,
    /// Make sure that what was acknowledged survives a power cut
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Longest request body in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 30)]
    pub(crate) body_max: u64,
    /// Seconds that requests under way have to end when the server is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u64,
    /// Log what happens to standard error; twice for more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}
