//! `bench get`: what `trunkline get` promises.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::bars::Bar;
use super::fixtures::{self, Set};
use super::peers::{Peer, Tool};
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

const OURS: &str = "trunkline get";
const OURS_ONE: &str = "trunkline get, 1 connection";
const OURS_16: &str = "trunkline get, 16 connections";
const FLOOR_6: &str = "h2load, 6 connections (floor)";
const FLOOR_1: &str = "h2load, 1 connection (floor)";
const CURL_EACH: &str = "curl, a process per file";
const CURL_Z: &str = "curl -Z";
const CURL_Z_H1: &str = "curl -Z --http1.1";
const CURL_ONE: &str = "curl";
const CURL_ONE_H1: &str = "curl --http1.1";
const ARIA2_16: &str = "aria2c -j16";
const ARIA2_6: &str = "aria2c -j6";
const ARIA2_SPLIT: &str = "aria2c -x6";
const WGET2: &str = "wget2, 10 threads";

/// Streams that nginx allows on one connection unless told otherwise.
const STREAMS: u32 = 128;
/// Connections to one origin unless the user says otherwise: what the pool promises.
const CONNECTIONS_MAX: f64 = 6.0;
/// Round trips from here on are too long for the rows that pay one for each file.
const LONG_RTT_MS: u64 = 50;

const OURS_DEFAULT: Peer = Peer::new(OURS, Tool::Ours { http1: false, connections_max: None });

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    setup::run(&setup::Arguments::for_benches())?;
    println!("{CAVEATS}");
    let trunkline = match &options.trunkline {
        Some(program) => program.canonicalize().context("--trunkline")?,
        None => build()?,
    };
    let interrupt = Interrupt::listen()?;
    let runner = Runner { options, trunkline, interrupt };
    let mut results = Vec::new();
    let mut bars = Vec::new();
    for &rtt_ms in &options.rtt {
        let cases = [packages_h2(rtt_ms), packages_h1(rtt_ms), objects(rtt_ms)];
        let judges: [fn(&CaseResult, u64) -> Vec<Bar>; 3] =
            [judge_packages_h2, judge_packages_h1, judge_objects];
        // Small objects say at 100 ms what they said at 20.
        let count = if rtt_ms < LONG_RTT_MS { 3 } else { 2 };
        let link = LinkSpec { rtt: Duration::from_millis(rtt_ms), mbit: None };
        let judged = cases.into_iter().zip(judges).take(count);
        for (result, judge) in run_cases(&runner, link, judged)? {
            bars.extend(judge(&result, rtt_ms));
            results.push(result);
        }
    }
    let link = LinkSpec { rtt: Duration::ZERO, mbit: None };
    let judges: [fn(&CaseResult, u64) -> Vec<Bar>; 3] =
        [judge_objects_loopback, judge_large, judge_long_list];
    let cases = [objects_loopback(), large(), long_list()];
    for (result, judge) in run_cases(&runner, link, cases.into_iter().zip(judges))? {
        bars.extend(judge(&result, 0));
        results.push(result);
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&table::to_json(&results))?)?;
    }
    if !rounds::judge(&bars) && options.strict {
        bail!("a bar was missed");
    }
    Ok(())
}

/// Runs the cases that `--rows` leaves over, in one lab, and prints each table as it comes.
fn run_cases<J>(
    runner: &Runner<'_>,
    link: LinkSpec,
    cases: impl Iterator<Item = (Case, J)>,
) -> Result<Vec<(CaseResult, J)>> {
    let wanted = |case: &Case| case.peers.iter().any(|peer| runner.wants(&case.name, peer.label));
    let cases: Vec<(Case, J)> = cases.filter(|(case, _)| wanted(case)).collect();
    let mut results = Vec::new();
    if cases.is_empty() {
        return Ok(results);
    }
    let root = fixtures::served_directory();
    std::fs::create_dir_all(&root)?;
    let lab = Lab::up(link, &root)?;
    for (case, judge) in cases {
        let result = runner.run(&lab, &case)?;
        print!("{}", table::render(&result));
        results.push((result, judge));
    }
    Ok(results)
}

/// Builds our program as users have it, and says where it is.
pub(super) fn build() -> Result<PathBuf> {
    command::run(command::cargo().args(["build", "--release", "--package", "trunkline-cli"]))?;
    let text = command::output(command::cargo().args([
        "metadata",
        "--format-version=1",
        "--no-deps",
        "--locked",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    Ok(PathBuf::from(target).join("release/trunkline"))
}

fn packages_h2(rtt_ms: u64) -> Case {
    let mut peers = vec![
        OURS_DEFAULT,
        Peer::new(FLOOR_6, Tool::H2load { clients: 6, streams: STREAMS }),
        Peer::new(FLOOR_1, Tool::H2load { clients: 1, streams: STREAMS }),
        Peer::new(CURL_Z, Tool::CurlParallel { http1: false }),
        Peer::new(CURL_Z_H1, Tool::CurlParallel { http1: true }),
        Peer::new(ARIA2_16, Tool::Aria2 { files: 16 }),
        Peer::new(WGET2, Tool::Wget2),
    ];
    if rtt_ms < LONG_RTT_MS {
        peers.push(Peer::slow(CURL_EACH, Tool::CurlEach));
    }
    Case {
        name: format!("150 packages, {rtt_ms} ms, h2"),
        set: Set::Packages,
        copies: 1,
        port: Nginx::H2_PORT,
        host: Host::Client,
        reference: FLOOR_6,
        peers,
    }
}

fn judge_packages_h2(result: &CaseResult, rtt_ms: u64) -> Vec<Bar> {
    let name = &result.name;
    let ours = result.wall_s(OURS);
    if rtt_ms >= LONG_RTT_MS {
        return vec![Bar::at_most(
            format!("{name}: s, to the best peer"),
            ours,
            result.best_peer_s(),
        )];
    }
    let speed_up = result.wall_s(CURL_EACH).zip(ours).map(|(each, ours)| each / ours);
    vec![
        Bar::at_most(
            format!("{name}: s, to 1.15 x the floor of 6 connections"),
            ours,
            result.wall_s(FLOOR_6).map(|floor| 1.15 * floor),
        ),
        Bar::at_most(format!("{name}: s, to curl -Z"), ours, result.wall_s(CURL_Z)),
        connections(result),
        Bar::at_least(format!("{name}: times as fast as a curl per file"), speed_up, Some(40.0)),
    ]
}

fn connections(result: &CaseResult) -> Bar {
    let ours = result.row(OURS).and_then(super::samples::Samples::connections_max);
    Bar::at_most(format!("{}: connections", result.name), ours, Some(CONNECTIONS_MAX))
}

fn packages_h1(rtt_ms: u64) -> Case {
    Case {
        name: format!("150 packages, {rtt_ms} ms, h1 only"),
        set: Set::Packages,
        copies: 1,
        port: Nginx::H1_PORT,
        host: Host::Client,
        reference: ARIA2_16,
        peers: vec![
            OURS_DEFAULT,
            Peer::new(OURS_16, Tool::Ours { http1: false, connections_max: Some(16) }),
            Peer::new(ARIA2_16, Tool::Aria2 { files: 16 }),
            Peer::new(ARIA2_6, Tool::Aria2 { files: 6 }),
            Peer::new(CURL_Z, Tool::CurlParallel { http1: false }),
            Peer::new(WGET2, Tool::Wget2),
        ],
    }
}

fn judge_packages_h1(result: &CaseResult, rtt_ms: u64) -> Vec<Bar> {
    let name = &result.name;
    let ours = result.wall_s(OURS);
    if rtt_ms >= LONG_RTT_MS {
        return vec![Bar::at_most(
            format!("{name}: s, to the best peer"),
            ours,
            result.best_peer_s(),
        )];
    }
    let (peer, with_16) = (result.wall_s(ARIA2_16), result.wall_s(OURS_16));
    vec![
        Bar::at_most(format!("{name}: s, to aria2c -j16"), ours, peer),
        Bar::at_most(format!("{name}: s with 16 connections, to aria2c -j16"), with_16, peer),
        connections(result),
    ]
}

fn objects(rtt_ms: u64) -> Case {
    Case {
        name: format!("10,000 objects, {rtt_ms} ms, h2"),
        set: Set::Objects,
        copies: 1,
        port: Nginx::H2_PORT,
        host: Host::Client,
        reference: FLOOR_1,
        peers: vec![
            OURS_DEFAULT,
            Peer::new(OURS_ONE, Tool::Ours { http1: false, connections_max: Some(1) }),
            Peer::new(FLOOR_1, Tool::H2load { clients: 1, streams: STREAMS }),
            Peer::new(FLOOR_6, Tool::H2load { clients: 6, streams: STREAMS }),
            Peer::new(CURL_Z, Tool::CurlParallel { http1: false }),
        ],
    }
}

/// With `STREAMS` in flight, one connection can have that many answers a round trip.
fn judge_objects(result: &CaseResult, _rtt_ms: u64) -> Vec<Bar> {
    let limit = 0.9 * f64::from(STREAMS) / result.rtt_s;
    [OURS, OURS_ONE]
        .map(|row| {
            let rate = result.wall_s(row).map(|wall_s| 10_000.0 / wall_s);
            let what = format!("{}: {row}: objects/s, to 90 % of streams/RTT", result.name);
            Bar::at_least(what, rate, Some(limit))
        })
        .to_vec()
}

fn objects_loopback() -> Case {
    Case {
        name: "10,000 objects, loopback, h2".to_owned(),
        set: Set::Objects,
        copies: 1,
        port: Nginx::H2_PORT,
        host: Host::Server,
        reference: CURL_Z,
        peers: vec![
            OURS_DEFAULT,
            Peer::new(CURL_Z, Tool::CurlParallel { http1: false }),
            Peer::new(FLOOR_1, Tool::H2load { clients: 1, streams: STREAMS }),
        ],
    }
}

fn judge_objects_loopback(result: &CaseResult, _rtt_ms: u64) -> Vec<Bar> {
    let micros = |row, share: f64| result.cpu_s(row).map(|cpu_s| share * cpu_s * 1e6 / 10_000.0);
    let what = format!("{}: client CPU us a request, to 0.6 x curl -Z", result.name);
    vec![Bar::at_most(what, micros(OURS, 1.0), micros(CURL_Z, 0.6))]
}

fn large() -> Case {
    Case {
        name: "one file of 1 GiB, loopback".to_owned(),
        set: Set::Large,
        copies: 1,
        port: Nginx::H2_PORT,
        host: Host::Server,
        reference: CURL_ONE,
        peers: vec![
            OURS_DEFAULT,
            Peer::new(CURL_ONE, Tool::CurlOne { http1: false }),
            Peer::new(CURL_ONE_H1, Tool::CurlOne { http1: true }),
            Peer::new(ARIA2_SPLIT, Tool::Aria2Split { connections: 6 }),
        ],
    }
}

/// curl speaks h2 or h1 here; the better figure of the two is the one to beat.
fn judge_large(result: &CaseResult, _rtt_ms: u64) -> Vec<Bar> {
    let better = |figure: fn(&CaseResult, &str) -> Option<f64>| {
        let rows = [figure(result, CURL_ONE), figure(result, CURL_ONE_H1)];
        rows.into_iter().flatten().min_by(f64::total_cmp)
    };
    let name = &result.name;
    vec![
        Bar::at_most(
            format!("{name}: client CPU s, to 0.75 x curl"),
            result.cpu_s(OURS),
            better(CaseResult::cpu_s).map(|cpu_s| 0.75 * cpu_s),
        ),
        Bar::at_most(
            format!("{name}: s, to curl"),
            result.wall_s(OURS),
            better(CaseResult::wall_s),
        ),
    ]
}

fn long_list() -> Case {
    Case {
        name: "a list of 100,000 lines, loopback, h2".to_owned(),
        set: Set::Objects,
        copies: 10,
        port: Nginx::H2_PORT,
        host: Host::Server,
        reference: OURS,
        peers: vec![Peer { rounds_max: 1, ..OURS_DEFAULT }],
    }
}

fn judge_long_list(result: &CaseResult, _rtt_ms: u64) -> Vec<Bar> {
    let ours = result.row(OURS).and_then(super::samples::Samples::memory_mib_max);
    // The promise is in MB: 100 MB are 95.4 MiB.
    let limit = 100e6 / f64::from(1 << 20);
    vec![Bar::at_most(format!("{}: peak memory, MiB", result.name), ours, Some(limit))]
}
