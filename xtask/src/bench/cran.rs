//! `bench cran`: what R's users get.

use std::{fmt::Write as _, os::unix::fs::symlink, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::bars::Bar;
use super::fixtures::{self, Entry, Set};
use super::get::build;
use super::peers::{Peer, Tool};
use super::r_ways::RWay;
use super::rounds::{self, Case, CaseResult, Runner};
use super::{CAVEATS, Options, table};
use crate::interrupt::Interrupt;
use crate::lab::{Host, Lab, LinkSpec, Nginx};
use crate::{command, setup};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
}

const PACKAGES: &str = "R download.packages";
const LOOP: &str = "R download.file, a loop";
const VECTOR: &str = "R download.file, a vector";
const MULTI: &str = "curl::multi_download";
const OURS_PACKAGES: &str = "download_packages";
const OURS_LOOP: &str = "download.file, a loop, enabled";
const OURS_VECTOR: &str = "download_file, a vector";
const MIRROR_COLD: &str = "R download.packages, mirror";
const MIRROR_WARM: &str = "R download.packages, mirror that has all";
const INDEXES: &str = "R available.packages, 6 repositories";
const OURS_INDEXES: &str = "available_packages, 6 repositories";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    setup::run(&setup::Arguments::for_benches())?;
    println!("{CAVEATS}");
    let trunkline = match &options.trunkline {
        Some(program) => program.canonicalize().context("--trunkline")?,
        None => build()?,
    };
    install_package(&library())?;
    write_repository(&fixtures::make(Set::Packages)?)?;
    let runner = Runner { options, trunkline, interrupt: Interrupt::listen()? };
    let mut results = Vec::new();
    let mut bars = Vec::new();
    for &rtt_ms in &options.rtt {
        let link = LinkSpec { rtt: Duration::from_millis(rtt_ms), mbit: None };
        let lab = Lab::up(link, &fixtures::served_directory())?;
        for (case, judge) in [
            (packages(rtt_ms), judge_packages as fn(&CaseResult) -> Vec<Bar>),
            (indexes(rtt_ms), judge_indexes),
        ] {
            let result = runner.run(&lab, &case)?;
            print!("{}", table::render(&result));
            bars.extend(judge(&result));
            results.push(result);
        }
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&table::to_json(&results))?)?;
    }
    if !rounds::judge(&bars) && options.strict {
        bail!("a bar was missed");
    }
    Ok(())
}

/// Where the R package is installed for the bench.
pub(super) fn library() -> std::path::PathBuf {
    command::workspace_root().join("target/bench/r-library")
}

fn install_package(library: &Path) -> Result<()> {
    std::fs::create_dir_all(library)?;
    let mut install = Command::new("R");
    install
        .args(["CMD", "INSTALL", "--no-test-load", "-l"])
        .arg(library)
        .arg(command::workspace_root().join("r/trunkline"))
        .env("CARGO_TARGET_DIR", command::workspace_root().join("target"));
    command::run(&mut install)
}

/// Indexes in front of the generated files, which are no valid packages: they are only fetched.
fn write_repository(entries: &[Entry]) -> Result<()> {
    let root = fixtures::served_directory();
    let mut index = String::new();
    for entry in entries {
        let name = entry.name().trim_end_matches("_1.0.tar.gz");
        writeln!(
            index,
            "Package: {name}\nVersion: 1.0\nDepends: R (>= 3.5)\nMD5sum: {}\n",
            entry.md5
        )?;
    }
    let folder = root.join("packages");
    std::fs::write(folder.join("PACKAGES"), index)?;
    let code = "d <- commandArgs(TRUE); m <- read.dcf(file.path(d, 'PACKAGES'))
        rownames(m) <- m[, 'Package']; saveRDS(m, file.path(d, 'PACKAGES.rds'), compress = 'xz')";
    command::run(Command::new("Rscript").args(["--vanilla", "-e", code]).arg(&folder))?;
    for repository in ["src".to_owned()].into_iter().chain((1..=6).map(|n| format!("{n}/src"))) {
        let folder = root.join(repository);
        std::fs::create_dir_all(&folder)?;
        let contrib = folder.join("contrib");
        if !contrib.exists() {
            symlink(root.join("packages"), contrib)?;
        }
    }
    Ok(())
}

fn case(name: String, reference: &'static str, peers: Vec<Peer>) -> Case {
    Case {
        name,
        set: Set::Packages,
        copies: 1,
        port: Nginx::H2_PORT,
        host: Host::Client,
        reference,
        peers,
    }
}

fn packages(rtt_ms: u64) -> Case {
    let row = |label, way| Peer::new(label, Tool::R(way));
    let peers = vec![
        Peer::slow(PACKAGES, Tool::R(RWay::Packages)),
        Peer::slow(LOOP, Tool::R(RWay::Loop)),
        row(VECTOR, RWay::Vector),
        row(MULTI, RWay::MultiDownload),
        row(OURS_PACKAGES, RWay::OursPackages),
        row(OURS_LOOP, RWay::OursLoop),
        row(OURS_VECTOR, RWay::OursVector),
        row(MIRROR_COLD, RWay::MirrorCold),
        row(MIRROR_WARM, RWay::MirrorWarm),
    ];
    case(format!("150 packages for R, {rtt_ms} ms, h2"), PACKAGES, peers)
}

fn judge_packages(result: &CaseResult) -> Vec<Bar> {
    let name = &result.name;
    let slow = result.wall_s(PACKAGES);
    let times_as_fast = |row: &'static str, at_least: f64| {
        let ratio = slow.zip(result.wall_s(row)).map(|(slow, ours)| slow / ours);
        Bar::at_least(format!("{name}: {row}: times as fast as R's"), ratio, Some(at_least))
    };
    let round_trips = |row: &'static str| Some(result.wall_s(row)? / 150.0 / result.rtt_s);
    let loop_connections = result.row(OURS_LOOP).and_then(super::samples::Samples::connections_max);
    vec![
        times_as_fast(OURS_PACKAGES, 45.0),
        times_as_fast(MIRROR_COLD, 25.0),
        times_as_fast(MIRROR_WARM, 60.0),
        Bar::at_most(
            format!("{name}: round trips a file in an enabled loop"),
            round_trips(OURS_LOOP),
            Some(1.3),
        ),
        Bar::at_most(format!("{name}: connections of that loop"), loop_connections, Some(1.0)),
    ]
}

fn indexes(rtt_ms: u64) -> Case {
    let peers = vec![
        Peer::new(INDEXES, Tool::R(RWay::Indexes)),
        Peer::new(OURS_INDEXES, Tool::R(RWay::OursIndexes)),
    ];
    case(format!("six indexes for R, {rtt_ms} ms, h2"), INDEXES, peers)
}

fn judge_indexes(result: &CaseResult) -> Vec<Bar> {
    let third = result.wall_s(INDEXES).map(|wall_s| wall_s / 3.0);
    let what = format!("{}: s, to a third of R's", result.name);
    vec![Bar::at_most(what, result.wall_s(OURS_INDEXES), third)]
}
