//! Every flag, once. Names follow curl where curl has one.

pub(crate) mod garage;
pub(crate) mod ostree;
pub(crate) mod treehub;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use trunkline_proto::digest::Digest;
use trunkline_transfer::IN_FLIGHT_DEFAULT;

use crate::commands::cran::CranArgs;
use crate::commands::nbd::NbdArgs;
use crate::tour::TourArgs;

/// Moves many things over few warm connections.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch files: many URLs over one pool of warm connections.
    Get(Box<GetArgs>),
    /// R packages: download, install, mirror.
    Cran(CranArgs),
    /// Serve images over NBD: remote ones at the line's speed, local ones by sendfile.
    Nbd(Box<NbdArgs>),
    /// See on this machine what warm connections are worth: needs nothing, leaves nothing.
    Tour(TourArgs),
    /// Move commits between OSTree repositories and servers.
    #[command(subcommand)]
    Ostree(ostree::OstreeCommand),
    /// Serve OSTree objects.
    #[command(subcommand)]
    Treehub(treehub::TreehubCommand),
    /// As the program of this name from aktualizr.
    #[command(hide = true)]
    GaragePush(Box<garage::PushArgs>),
    /// As the program of this name from aktualizr.
    #[command(hide = true)]
    GarageCheck(Box<garage::CheckArgs>),
}

const GET_EXAMPLES: &str = "\
Examples:
  Fetch one file, resuming what an earlier run left:
    trunkline get https://example.org/image.iso
  Fetch a list into a folder (URL [TAB destination [TAB algorithm:hex]] a line):
    trunkline get -i list.txt -d packages --stats
  From a pipe, with machine-readable events:
    generate-urls | trunkline get -i - -d out --json
  With a checksum, through a private CA:
    trunkline get --cacert ca.pem --checksum sha256:9f86d0... https://host/file

Exit codes: 0 done, 1 failures of several kinds, 2 usage, 3 network, 4 TLS, 5 HTTP status,
6 credentials, 7 wrong bytes (nothing was kept), 8 local file, 9 time-out, 130 interrupted.";

/// What `trunkline get` takes.
#[derive(Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct GetArgs {
    /// URLs to fetch: http, https or file
    #[arg(value_name = "URL", required_unless_present = "input_file")]
    pub(crate) urls: Vec<String>,
    /// Read URLs from a file, `-` is standard input: lines of URL [TAB destination [TAB
    /// algorithm:hex]], an aria2 input file, or a curl -K file's url/output pairs
    #[arg(short, long, value_name = "LIST")]
    pub(crate) input_file: Option<PathBuf>,
    /// Put files into this folder, made if it is missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Write the one URL's file here; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Leave complete files alone (right checksum, or the server's size and date) and fetch only
    /// what is missing
    #[arg(short = 'c', long = "continue")]
    pub(crate) keep: bool,
    /// What the one URL's bytes must hash to, as sha256:HEX (also md5, sha1, sha512)
    #[arg(long, value_name = "ALGORITHM:HEX")]
    pub(crate) checksum: Option<Digest>,
    /// Refuse a web page (text/html) in place of a file
    #[arg(long)]
    pub(crate) refuse_html: bool,
    /// Give up on a file after this many seconds, all attempts included
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_time: Option<f64>,
    /// Flush each file to the disk before it gets its name
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Transfers in flight at a time
    #[arg(long, value_name = "N", default_value_t = IN_FLIGHT_DEFAULT)]
    pub(crate) max_in_flight: usize,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output_style: OutputArgs,
}

/// How a command speaks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print connections, handshakes, requests and retries at the end
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print events as JSON lines on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Log what the engine does to standard error; twice for more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// How origins are reached; every command that talks to servers takes these.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// Add a header, as `Name: value`; `@FILE` reads them from a file. Not sent to another
    /// origin on a redirect
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// The User-Agent header, sent verbatim
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,
    /// User name for Basic authentication; `USER:PASSWORD` also works but shows in the process
    /// list
    #[arg(short, long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Password for --user: `-` asks, `+FILE` reads a file, `-FD` a file descriptor
    #[arg(long, value_name = "SOURCE", allow_hyphen_values = true)]
    pub(crate) password: Option<String>,
    /// Bearer token: `-` asks, `+FILE` reads a file, `-FD` a file descriptor
    #[arg(long, value_name = "SOURCE", allow_hyphen_values = true, conflicts_with = "user")]
    pub(crate) token: Option<String>,
    /// Fetch tokens from this OAuth2 endpoint by client credentials
    #[arg(long, value_name = "URL", requires_all = ["client_id", "client_secret"])]
    pub(crate) oauth2: Option<url::Url>,
    /// OAuth2 client id
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// OAuth2 client secret: `-` asks, `+FILE` reads a file, `-FD` a file descriptor
    #[arg(long, value_name = "SOURCE", allow_hyphen_values = true)]
    pub(crate) client_secret: Option<String>,
    /// OAuth2 scope
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// Take credentials from ~/.netrc, or the file that NETRC names
    #[arg(short, long)]
    pub(crate) netrc: bool,
    /// Take credentials from this netrc file
    #[arg(long, value_name = "FILE")]
    pub(crate) netrc_file: Option<PathBuf>,
    /// Trust the CA certificates in this PEM file instead of the system's
    #[arg(long, alias = "cainfo", value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Trust the CA certificates in this folder instead of the system's
    #[arg(long, value_name = "DIR")]
    pub(crate) capath: Option<PathBuf>,
    /// Client certificate: PEM (with its key, or see --key) or PKCS#12 (.p12, .pfx)
    #[arg(short = 'E', long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Password of a PKCS#12 client certificate: `-` asks, `+FILE` reads a file, `-FD` a file
    /// descriptor
    #[arg(long, value_name = "SOURCE", allow_hyphen_values = true, requires = "cert")]
    pub(crate) pass: Option<String>,
    /// Accept any server certificate. Dangerous
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Lowest TLS version
    #[arg(long, value_name = "VERSION", value_parser = ["1.2", "1.3"])]
    pub(crate) tls_min: Option<String>,
    /// Proxy: http://, https://, socks5:// or socks5h://, with user:password@ if it asks.
    /// Default: HTTPS_PROXY, http_proxy, ALL_PROXY
    #[arg(short = 'x', long, value_name = "URL")]
    // Parsed later: a message of the argument parser would repeat its password.
    pub(crate) proxy: Option<String>,
    /// Hosts reached without proxy: names, .suffixes, addresses, CIDR, host:port or `*`.
    /// Default: NO_PROXY
    #[arg(long, value_name = "LIST")]
    pub(crate) noproxy: Option<String>,
    /// Use this address for a host and port instead of asking DNS
    #[arg(long, value_name = "HOST:PORT:ADDRESS[,ADDRESS]")]
    pub(crate) resolve: Vec<String>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Connect to this Unix socket in place of every host
    #[arg(long, alias = "unix-socket-path", value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Speak HTTP/1.1 only
    #[arg(long = "http1.1", conflicts_with = "http2_prior_knowledge")]
    pub(crate) http1: bool,
    /// Speak HTTP/2 without asking first, also in clear text
    #[arg(long)]
    pub(crate) http2_prior_knowledge: bool,
    /// Connections to one origin at most
    #[arg(long, alias = "connections", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_connections: Option<u16>,
    /// Seconds for making a connection
    #[arg(long, value_name = "SECONDS")]
    pub(crate) connect_timeout: Option<f64>,
    /// Give up when nothing came from the server for this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Repeated attempts for what may pass by itself; attempts that brought bytes do not count
    #[arg(long, value_name = "N")]
    pub(crate) retry: Option<u32>,
    /// Redirects followed for one URL
    #[arg(long, value_name = "N")]
    pub(crate) max_redirs: Option<u32>,
    /// Follow redirects from https to http (allowed anyway for files with a checksum)
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
    /// Bytes a second at most, all transfers together; with suffix k, M or G
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) limit_rate: Option<u64>,
}

/// Reads `500k`, `2M`, `1.5G` or plain bytes; powers of 1024, as curl has them.
fn parse_rate(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, factor) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1u64 << 10),
        Some('m' | 'M') => (&text[..text.len() - 1], 1 << 20),
        Some('g' | 'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * factor as f64) as u64),
        _ => Err("give bytes a second, as 500k or 2M".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn rates_are_curls() {
        assert_eq!(parse_rate("500k"), Ok(512_000));
        assert_eq!(parse_rate("1.5M"), Ok(1_572_864));
        assert_eq!(parse_rate("7"), Ok(7));
        assert!(parse_rate("fast").is_err());
        assert!(parse_rate("-1").is_err());
    }
}
