//! Flags of `trunkline nbd`. Names follow nbdkit where it has one.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trunkline_proto::nbd::constants::PORT;

use crate::flags::{NetworkArgs, OutputArgs};

const EXAMPLES: &str = "\
Examples:
  Copy a remote image without storing it twice:
    trunkline nbd --run 'qemu-img convert -O qcow2 \"$uri\" disk.qcow2' https://host/disk.img
  Serve two images on a Unix socket:
    trunkline nbd -U /run/images.sock --export a=https://host/a.img --export b=b.img
  Serve to other machines under TLS:
    trunkline nbd -i 0.0.0.0 --tls require --tls-certificates /etc/pki/nbd disk.img

Exit codes: those of `trunkline get`; with --run, the exit code of the command.";

/// What `trunkline nbd` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NbdArgs {
    /// The image: an http or https URL, a file URL or a path
    #[arg(value_name = "URL", required_unless_present = "exports")]
    pub(crate) url: Option<String>,
    /// Name of the export; clients that give no name also get it
    #[arg(short = 'e', long = "export-name", value_name = "NAME", default_value = "")]
    pub(crate) export_name: String,
    /// Serve one more image under this name; may be repeated
    #[arg(long = "export", value_name = "NAME=URL")]
    pub(crate) exports: Vec<String>,
    #[command(flatten)]
    pub(crate) image: ImageArgs,
    #[command(flatten)]
    pub(crate) listening: ListeningArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) running: RunningArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is made of an image.
#[derive(Debug, Args)]
#[command(next_help_heading = "Image")]
pub(crate) struct ImageArgs {
    /// Serve read-only, as images without --overlay are anyway
    #[arg(short = 'r', long, conflicts_with = "overlay")]
    pub(crate) read_only: bool,
    /// Take writes in this file and leave the image as it is; it is made when missing and used
    /// again by the next run. `tmp` is for this run only
    #[arg(long, value_name = "FILE|tmp")]
    pub(crate) overlay: Option<PathBuf>,
    /// Serve one partition (MBR or GPT; logical ones count from 5)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) partition: Option<u32>,
    /// Serve what follows this many bytes; with suffix k, M, G or T
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0")]
    pub(crate) offset: u64,
    /// Serve no more than this many bytes; with suffix k, M, G or T
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Keep what was read of remote images in this folder across runs; SIZE bounds it, with
    /// suffix k, M, G or T (10G unless set)
    #[arg(long, value_name = "DIR[:SIZE]")]
    pub(crate) cache: Option<String>,
    /// Do not read ahead of sequential clients
    #[arg(long)]
    pub(crate) no_read_ahead: bool,
}

/// Reads `512`, `64k`, `2M`, `10G` or `1T`; powers of 1024, as nbdkit has them.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let suffix = text.chars().last().and_then(|last| "kMGT".find(last.to_ascii_uppercase()));
    let suffix = suffix.or(text.ends_with(['k', 'K']).then_some(0));
    let (number, shift) = match suffix {
        Some(place) => (&text[..text.len() - 1], 10 * (place as u32 + 1)),
        None => (text, 0),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "give bytes, as 512, 64k or 10G".to_owned())
}

/// Where to listen.
#[derive(Debug, Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct ListeningArgs {
    /// Listen on a Unix socket; `-` makes a private one that lasts as long as the command
    #[arg(short = 'U', long = "unix", value_name = "PATH", conflicts_with_all = ["port", "address"])]
    pub(crate) unix: Option<PathBuf>,
    /// Listen on this TCP port; 0 lets the system choose
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub(crate) port: u16,
    /// Listen on this IP address; 0.0.0.0 or :: for all
    #[arg(short = 'i', long = "ip-addr", value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) address: IpAddr,
    /// Clients served at once
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) clients_max: usize,
    /// Do not tell clients the names of the exports
    #[arg(long)]
    pub(crate) no_list: bool,
}

/// TLS towards clients.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS towards clients")]
pub(crate) struct TlsArgs {
    /// Whether clients may or must use TLS
    #[arg(long, value_enum, value_name = "MODE", default_value_t = TlsChoice::Off)]
    pub(crate) tls: TlsChoice,
    /// Folder with server-cert.pem and server-key.pem, and ca-cert.pem for --tls-verify-peer
    #[arg(long, value_name = "DIR", required_if_eq_any([("tls", "on"), ("tls", "require")]))]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Let in only clients with a certificate by ca-cert.pem
    #[arg(long, requires = "tls_certificates")]
    pub(crate) tls_verify_peer: bool,
}

/// Values of --tls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsChoice {
    /// No TLS.
    Off,
    /// For clients that ask for it.
    On,
    /// For all clients.
    Require,
}

/// How the command lives with others.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct RunningArgs {
    /// Run a shell command with $uri, $unixsocket, $port and $nbd set, and stop when it ends.
    /// Listens on a private Unix socket unless told where
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: Option<String>,
    /// Write the process id to this file once clients can connect
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(crate) pidfile: Option<PathBuf>,
    /// Print the URI on standard output once clients can connect
    #[arg(long)]
    pub(crate) print_uri: bool,
    /// Stop when the parent process ends
    #[arg(long)]
    pub(crate) exit_with_parent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_size("64k"), Ok(65_536));
        assert_eq!(parse_size("64K"), Ok(65_536));
        assert_eq!(parse_size("2M"), Ok(2 << 20));
        assert_eq!(parse_size("1T"), Ok(1 << 40));
        assert!(parse_size("99999999T").is_err());
        assert!(parse_size("k").is_err());
        assert!(parse_size("-1").is_err());
    }
}
