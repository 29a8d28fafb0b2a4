//! `bench ostree`: one commit, moved every way.

mod fixture;
mod hub;
mod rows;
mod tree;
mod ways;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use self::fixture::Fixture;
use self::hub::Hub;
use self::rows::{Row, Table, memory_mib};
use self::tree::{NOISE_PERCENT, Shape};
use self::ways::{Lacks, Setting, Source, Way};
use super::bars::Bar;
use super::get::build;
use super::rounds::{self, round_trip_s};
use super::samples::Samples;
use super::scratch::Scratch;
use super::{CAVEATS, Options};
use crate::interrupt::Interrupt;
use crate::lab::{Host, Lab, LinkSpec, Nginx, SERVER_NAME};
use crate::setup;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Instead of the tables: so many files of 1 KB each way once, for the memory they take
    #[arg(long, value_name = "N", conflicts_with = "large_gib")]
    objects: Option<usize>,
    /// Instead of the tables: one file of so many GiB each way once, for the memory it takes
    #[arg(long, value_name = "N")]
    large_gib: Option<u64>,
}

const TAR_POST: &str = "curl POST of a tar (floor)";
const TAR_GET: &str = "curl GET of the tar, h2 (floor)";
const TAR_GET_H1: &str = "curl GET of the tar, h1 (floor)";
const PUSH: &str = "push, packs";
const PUSH_PART: &str = "push, packs, 5 %";
const PUSH_NOTHING: &str = "push, packs, nothing new";
const PUSH_PLAIN: &str = "push, plain";
const PUSH_PLAIN_PART: &str = "push, plain, 5 %";
const PUSH_PLAIN_NOTHING: &str = "push, plain, nothing new";
const OSTREE_NGINX: &str = "ostree pull, nginx";
const OSTREE_NGINX_PART: &str = "ostree pull, nginx, 5 %";
const OSTREE_HUB: &str = "ostree pull, our server";
const PULL: &str = "pull, packs";
const PULL_PART: &str = "pull, packs, 5 %";
const PULL_NOTHING: &str = "pull, packs, nothing new";
const PULL_PLAIN: &str = "pull, plain, our server";
const PULL_NGINX: &str = "pull, plain, nginx";
const PULL_NGINX_PART: &str = "pull, plain, nginx, 5 %";
const PULL_NGINX_NOTHING: &str = "pull, plain, nginx, nothing new";
const DEPLOY: &str = "deploy";
const DEPLOY_PART: &str = "deploy, 5 %";
const CHECK: &str = "check of the whole tree";
const CHECK_PLAIN: &str = "check of the whole tree, plain";

const HUB_PORT: u16 = 9443;
const TARGET_PORT: u16 = 9444;
/// The promise is in MB: 150 MB are 143 MiB.
const MEMORY_MIB_MAX: f64 = 150e6 / 1_048_576.0;
/// The bars are for this round trip.
const JUDGED_RTT_MS: u64 = 20;
/// Files of a repository that is only made to be large.
const SMALL_FILE_BYTES: u64 = 1024;

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    setup::run(&setup::Arguments::for_benches())?;
    println!("{CAVEATS}");
    let shape = match (arguments.objects, arguments.large_gib) {
        (Some(files), _) => {
            let file_bytes = Some(SMALL_FILE_BYTES);
            Shape { files, changed: files / 20, file_bytes, noise_percent: NOISE_PERCENT }
        }
        (None, Some(gib)) => {
            Shape { files: 1, changed: 0, file_bytes: Some(gib << 30), noise_percent: 100 }
        }
        (None, None) => Shape::default(),
    };
    let is_large = shape != Shape::default();
    let interrupt = Interrupt::listen()?;
    let trunkline = match &options.trunkline {
        Some(program) => program.canonicalize().context("--trunkline")?,
        None => build()?,
    };
    let scratch = if arguments.large_gib.is_some() { Scratch::on_disk() } else { Scratch::make() }?;
    let served = scratch.beside("served")?;
    let fixture = Fixture::make(shape, &served)?;
    let mut tables = Vec::new();
    let mut bars = Vec::new();
    let rtts = if is_large { &[JUDGED_RTT_MS] } else { &options.rtt[..] };
    for &rtt_ms in rtts {
        let link = LinkSpec { rtt: Duration::from_millis(rtt_ms), mbit: None };
        let lab = Lab::up_with_uploads(link, &served, Some(&scratch.beside("uploads")?))?;
        let hub = Hub::start(&lab, &trunkline, scratch.beside("hub")?, HUB_PORT)?;
        let target = Hub::start(&lab, &trunkline, scratch.beside("target")?, TARGET_PORT)?;
        let setting = Setting {
            trunkline: &trunkline,
            authority: &lab.certificates.authority,
            fixture: &fixture,
            served: &served,
            out: &scratch.out(),
            hub: &hub,
            target: &target,
        };
        let url = format!("https://{SERVER_NAME}:{}/", Nginx::H2_PORT);
        let rtt_s = round_trip_s(&lab, Host::Client, &url)?;
        println!("\nround trip: {:.1} ms", rtt_s * 1000.0);
        let made = if is_large { vec![once_each(shape)] } else { compared(rtt_ms) };
        for mut table in made {
            let name = table.name.clone();
            table.rows.retain(|row| options.wants(&name, row.label));
            let rounds = if is_large { 1 } else { options.rounds };
            rows::run(&mut table, rounds, &lab, &setting, &scratch, &interrupt)?;
            print!("{}", table.render());
            tables.push(table);
        }
        if is_large {
            bars.extend(tables.iter().flat_map(judge_memory));
        } else if rtt_ms == JUDGED_RTT_MS {
            bars.extend(judge(&tables));
        }
    }
    if let Some(path) = &options.json {
        let value: Vec<_> = tables.iter().map(Table::to_json).collect();
        std::fs::write(path, serde_json::to_string_pretty(&value)?)?;
    }
    if !rounds::judge(&bars) && options.strict {
        bail!("a bar was missed");
    }
    Ok(())
}

/// Push, pull, and from server to server.
fn compared(rtt_ms: u64) -> Vec<Table> {
    let push = |plain, lacks| Way::Push { plain, lacks };
    let pull = |from, plain, lacks| Way::Pull { from, plain, lacks };
    vec![
        Table {
            name: format!("push, {rtt_ms} ms"),
            reference: TAR_POST,
            rows: vec![
                Row::new(TAR_POST, Way::TarPost),
                Row::new(PUSH, push(false, Lacks::All)),
                Row::new(PUSH_PLAIN, push(true, Lacks::All)),
                Row::new(PUSH_PART, push(false, Lacks::Part)),
                Row::new(PUSH_PLAIN_PART, push(true, Lacks::Part)),
                Row::new(PUSH_NOTHING, push(false, Lacks::Nothing)),
                Row::new(PUSH_PLAIN_NOTHING, push(true, Lacks::Nothing)),
            ],
        },
        Table {
            name: format!("pull, {rtt_ms} ms"),
            reference: TAR_GET,
            rows: vec![
                Row::new(TAR_GET, Way::TarGet { http1: false }),
                Row::new(TAR_GET_H1, Way::TarGet { http1: true }),
                Row::slow(OSTREE_NGINX, Way::OstreePull(Source::Nginx, Lacks::All)),
                Row::slow(OSTREE_HUB, Way::OstreePull(Source::Hub, Lacks::All)),
                Row::slow(OSTREE_NGINX_PART, Way::OstreePull(Source::Nginx, Lacks::Part)),
                Row::new(PULL, pull(Source::Hub, false, Lacks::All)),
                Row::new(PULL_PLAIN, pull(Source::Hub, true, Lacks::All)),
                Row::new(PULL_NGINX, pull(Source::Nginx, false, Lacks::All)),
                Row::new(PULL_PART, pull(Source::Hub, false, Lacks::Part)),
                Row::new(PULL_NGINX_PART, pull(Source::Nginx, false, Lacks::Part)),
                Row::new(PULL_NOTHING, pull(Source::Hub, false, Lacks::Nothing)),
                Row::new(PULL_NGINX_NOTHING, pull(Source::Nginx, false, Lacks::Nothing)),
            ],
        },
        Table {
            name: format!("server to server and check, {rtt_ms} ms"),
            reference: DEPLOY,
            rows: vec![
                Row::new(DEPLOY, Way::Deploy(Lacks::All)),
                Row::new(DEPLOY_PART, Way::Deploy(Lacks::Part)),
                Row::new(CHECK, Way::Check { plain: false }),
                Row::slow(CHECK_PLAIN, Way::Check { plain: true }),
            ],
        },
    ]
}

fn judge(tables: &[Table]) -> Vec<Bar> {
    let find = |label: &str| tables.iter().find_map(|table| table.row(label));
    let wall = |label: &str| Some(find(label)?.wall_s()?.median);
    let requests = |label: &str| Some(find(label)?.spread(requests_of)?.max);
    let connections = |label: &str| find(label).and_then(Samples::connections_max);
    let get = [TAR_GET, TAR_GET_H1].map(wall).into_iter().flatten().min_by(f64::total_cmp);
    let post = wall(TAR_POST);
    // A connection with TLS takes two round trips; requests one after the other one each.
    let round_trips = requests(PUSH_NOTHING).zip(connections(PUSH_NOTHING));
    let round_trips = round_trips.map(|(requests, connections)| requests + 2.0 * connections);
    let times = wall(OSTREE_NGINX).zip(wall(PULL_NGINX)).map(|(theirs, ours)| theirs / ours);
    vec![
        Bar::at_most("push, packs: s, to 1.5 x the tar", wall(PUSH), post.map(|s| 1.5 * s)),
        Bar::at_most("push, packs, 5 %: s", wall(PUSH_PART), Some(0.4)),
        Bar::at_most("push, nothing new: handshakes", connections(PUSH_NOTHING), Some(1.0)),
        Bar::at_most("push, nothing new: round trips", round_trips, Some(3.0)),
        Bar::at_most("push, plain: s, to 2.5 x the tar", wall(PUSH_PLAIN), post.map(|s| 2.5 * s)),
        Bar::at_most("pull, packs: s, to 2 x the tar", wall(PULL), get.map(|s| 2.0 * s)),
        Bar::at_least("pull, nginx: times as fast as ostree pull", times, Some(6.0)),
        Bar::at_most("deploy: s", wall(DEPLOY), Some(3.0)),
        Bar::at_most("check of the whole tree: requests", requests(CHECK), Some(1.0)),
    ]
}

fn requests_of(sample: &super::samples::Sample) -> f64 {
    super::samples::float(sample.traffic.requests)
}

/// Every way that is ours, for what it holds in memory.
fn once_each(shape: Shape) -> Table {
    let lacks = Lacks::All;
    Table {
        name: format!("memory, {} files, {:?} bytes each", shape.files, shape.file_bytes),
        reference: PUSH,
        rows: vec![
            Row::slow(PUSH, Way::Push { plain: false, lacks }),
            Row::slow(PUSH_PLAIN, Way::Push { plain: true, lacks }),
            Row::slow(PUSH_PART, Way::Push { plain: false, lacks: Lacks::Part }),
            Row::slow(PULL, Way::Pull { from: Source::Hub, plain: false, lacks }),
            Row::slow(PULL_NGINX, Way::Pull { from: Source::Nginx, plain: false, lacks }),
            Row::slow(DEPLOY, Way::Deploy(lacks)),
            Row::slow(CHECK, Way::Check { plain: false }),
        ],
    }
}

fn judge_memory(table: &Table) -> Vec<Bar> {
    let mut bars = Vec::new();
    for row in &table.rows {
        let client = row.samples.memory_mib_max();
        let what = format!("{}: peak memory of the client, MiB", row.label);
        bars.push(Bar::at_most(what, client, Some(MEMORY_MIB_MAX)));
        if !row.server.is_empty() {
            let what = format!("{}: peak memory of the server, MiB", row.label);
            bars.push(Bar::at_most(what, Some(memory_mib(&row.server)), Some(MEMORY_MIB_MAX)));
        }
    }
    bars
}
