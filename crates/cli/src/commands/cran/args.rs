//! What `trunkline cran` takes.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use trunkline_cran::{Dependencies, PackageType, Request, closure::Field};
use trunkline_proto::cran::Version;
use trunkline_transfer::IN_FLIGHT_DEFAULT;

use crate::flags::{NetworkArgs, OutputArgs};

/// R packages: many at a time, verified, in dependency order.
#[derive(Debug, Args)]
pub(crate) struct CranArgs {
    #[command(subcommand)]
    pub(crate) command: CranCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CranCommand {
    /// Download packages, with their dependencies if asked
    #[command(after_help = DOWNLOAD_EXAMPLES)]
    Download(Box<DownloadArgs>),
    /// Install packages by R CMD INSTALL while later ones still download
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(Box<InstallArgs>),
    /// Serve all repositories to local clients from one warm pool, fetching ahead
    #[command(after_help = MIRROR_EXAMPLES)]
    Mirror(Box<MirrorArgs>),
    /// Run one command with R's repositories behind a mirror of its own
    WithMirror(Box<WithMirrorArgs>),
}

const DOWNLOAD_EXAMPLES: &str = "\
Examples:
  The newest version, and one from the archive:
    trunkline cran download zoo data.table==1.14.8 -d packages
  Everything that is needed for a package, without asking R:
    trunkline cran download --dependencies strong --repos https://cloud.r-project.org \\
        --r-version 4.4.1 ggplot2
  What a lock file says:
    trunkline cran download --lockfile renv.lock -d packages";

const INSTALL_EXAMPLES: &str = "\
Examples:
  A package with its dependencies, four installations at a time:
    trunkline cran install --jobs 4 ggplot2
  The versions of a lock file into a library of their own:
    trunkline cran install --lockfile renv.lock --lib ./library";

const MIRROR_EXAMPLES: &str = "\
Examples:
  Start it, and let R find it:
    trunkline cran mirror --port 4321 --print-rprofile >> ~/.Rprofile
    trunkline cran mirror --port 4321
  For one command:
    trunkline cran with-mirror -- Rscript -e 'install.packages(\"zoo\")'";

/// Which repositories, for which R.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Repositories")]
pub(crate) struct RepositoryArgs {
    /// A repository's root, as NAME=URL or URL; several are asked in this order. Default: what
    /// R's profile says
    #[arg(long, value_name = "[NAME=]URL")]
    pub(crate) repos: Vec<String>,
    /// The type of package: source, win.binary or mac.binary[.FLAVOUR]
    #[arg(long = "type", value_name = "TYPE", default_value = "source")]
    pub(crate) package_type: PackageType,
    /// The R program to ask and to install with
    #[arg(long, value_name = "PROGRAM", default_value = "R")]
    pub(crate) r: PathBuf,
    /// Take this for R's version and ask no R; needs --repos or --lockfile
    #[arg(long, value_name = "VERSION")]
    pub(crate) r_version: Option<Version>,
    /// Which dependencies to get: none, strong (Depends, Imports, LinkingTo), suggested (strong,
    /// and what the named packages suggest; R's TRUE), most, all, or fields between commas
    #[arg(long, value_name = "WHICH", value_parser = parse_dependencies)]
    pub(crate) dependencies: Option<Dependencies>,
    /// Get the packages of this lock file (renv.lock) in their versions
    #[arg(long, value_name = "FILE")]
    pub(crate) lockfile: Option<PathBuf>,
    /// Write what was got to this lock file, with checksums
    #[arg(long, value_name = "FILE")]
    pub(crate) write_lockfile: Option<PathBuf>,
    /// Transfers in flight at a time
    #[arg(long, value_name = "N", default_value_t = IN_FLIGHT_DEFAULT)]
    pub(crate) max_in_flight: usize,
}

#[derive(Debug, Args)]
pub(crate) struct DownloadArgs {
    /// Packages: NAME or NAME==VERSION
    #[arg(value_name = "PACKAGE", required_unless_present = "lockfile")]
    pub(crate) packages: Vec<Request>,
    /// Put files into this folder, made if it is missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) destdir: PathBuf,
    #[command(flatten)]
    pub(crate) repositories: RepositoryArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Packages: NAME or NAME==VERSION
    #[arg(value_name = "PACKAGE", required_unless_present = "lockfile")]
    pub(crate) packages: Vec<Request>,
    /// The library to install to. Default: R's first
    #[arg(short, long, value_name = "DIR")]
    pub(crate) lib: Option<PathBuf>,
    /// Installations under way at a time
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) jobs: usize,
    /// Keep the packages' files in this folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) destdir: Option<PathBuf>,
    /// Keep one log a package in this folder. Default: a temporary one, kept after a failure
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
    /// A further argument for R CMD INSTALL
    #[arg(long = "install-opt", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) install_opts: Vec<String>,
    #[command(flatten)]
    pub(crate) repositories: RepositoryArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How a mirror keeps and guesses.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Mirror")]
pub(crate) struct StoreArgs {
    /// The folder for files. Default: trunkline/cran below XDG_CACHE_HOME or ~/.cache
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Keep at most this many GiB
    #[arg(long, value_name = "GIB", default_value_t = 10)]
    pub(crate) cache_size: u64,
    /// Fetch nothing ahead
    #[arg(long)]
    pub(crate) no_prefetch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MirrorArgs {
    /// The port on 127.0.0.1; 0 is any
    #[arg(short, long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Listen here instead, for other machines too: put TLS and access control in front
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "port")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// The file with the secret part of the mirror's URLs, made if it is missing. Default: token
    /// beside the cache
    #[arg(long, value_name = "FILE", conflicts_with = "no_token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let every process that reaches the port use the mirror
    #[arg(long)]
    pub(crate) no_token: bool,
    /// Print what to put into Rprofile.site or .Rprofile, and end; needs --port
    #[arg(long)]
    pub(crate) print_rprofile: bool,
    /// End when the process that started it ends
    #[arg(long)]
    pub(crate) exit_with_parent: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WithMirrorArgs {
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn parse_dependencies(text: &str) -> Result<Dependencies, String> {
    let fields = |names: &[Field]| Dependencies::Fields(names.to_vec());
    Ok(match text {
        "none" | "FALSE" => Dependencies::None,
        "strong" | "NA" => Dependencies::Strong,
        "suggested" | "TRUE" => Dependencies::StrongAndSuggested,
        "most" => fields(&trunkline_cran::closure::MOST),
        "all" => {
            let mut all = trunkline_cran::closure::MOST.to_vec();
            all.push(Field::Enhances);
            Dependencies::Fields(all)
        }
        list => {
            let field = |name: &str| {
                Field::from_name(name.trim())
                    .ok_or_else(|| format!("`{name}` is no dependency field"))
            };
            Dependencies::Fields(list.split(',').map(field).collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_rs_words_or_ours() {
        assert_eq!(parse_dependencies("NA"), Ok(Dependencies::Strong));
        assert_eq!(parse_dependencies("suggested"), Ok(Dependencies::StrongAndSuggested));
        let fields = vec![Field::Imports, Field::LinkingTo];
        assert_eq!(parse_dependencies("Imports, LinkingTo"), Ok(Dependencies::Fields(fields)));
        assert!(parse_dependencies("imports").is_err());
    }
}
