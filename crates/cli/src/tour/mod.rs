//! `trunkline tour`: what warm connections are worth, on one machine and with nothing installed.
//!
//! The tour starts a TLS origin of its own on loopback behind a simulated round trip and does a
//! job against it in several ways, from a new client per file to Trunkline's own. Each job is a
//! section of one table.

mod answer;
mod args;
mod certificate;
mod delay;
mod error;
mod files;
mod jobs;
mod origin;
mod scratch;
mod table;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::args::TourArgs;
pub(crate) use self::error::TourError;
pub(crate) use self::table::Style;

use self::files::FileSet;
use self::jobs::{Site, Way};
use self::origin::OriginSettings;
use self::table::{Row, Scene, Table, times};

/// The most bytes of files, which are all held in memory.
const BYTES_MAX: u64 = 512 << 20;

/// What to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TourOptions {
    /// Files to bring; at least one.
    pub(crate) files: usize,
    /// Their median size in bytes.
    pub(crate) median_bytes: u64,
    /// The simulated round trip.
    pub(crate) round_trip: Duration,
    /// Whether the origin speaks HTTP/2 besides HTTP/1.1.
    pub(crate) http2: bool,
    /// How it is printed.
    pub(crate) style: Style,
}

/// Runs the tour within a tokio runtime with time and I/O.
///
/// Dropping the future ends the tour: its server stops and its temporary folder is removed. That
/// is how an interrupt should end it.
///
/// # Errors
/// [`TourError`]; the folder is removed in that case too.
pub(crate) async fn run(options: TourOptions, out: &mut impl Write) -> Result<(), TourError> {
    let files = FileSet::generate(options.files, options.median_bytes, BYTES_MAX)
        .map(Arc::new)
        .ok_or(TourError::TooLarge { bytes_max: BYTES_MAX })?;
    let scene = Scene {
        files: files.as_slice().len(),
        bytes: files.bytes(),
        rtt_ms: u64::try_from(options.round_trip.as_millis()).unwrap_or(u64::MAX),
        http: if options.http2 { "HTTP/2" } else { "HTTP/1.1 alone" },
    };
    let mut table = Table::new(out, options.style);
    table.open(&scene)?;
    let origin = OriginSettings { round_trip: options.round_trip, http2: options.http2 };
    let site = Site::make(files, origin)?;
    show_get(&site, &scene, &mut table).await?;
    table.close(&scene, "trunkline get --help")
}

/// The get job: many files from one origin.
async fn show_get(
    site: &Site,
    scene: &Scene,
    table: &mut Table<'_, impl Write>,
) -> Result<(), TourError> {
    table.section("get", "Fetch all files, each verified by its SHA-256")?;
    let mut rows = Vec::with_capacity(Way::ALL.len());
    for way in Way::ALL {
        let measured = site.measure(way).await?;
        let row = Row {
            way: way.id(),
            label: way.label(),
            items: scene.files,
            items_done: measured.files,
            elapsed: measured.elapsed,
            counts: measured.counts,
        };
        table.row(row)?;
        rows.push(row);
    }
    table.seen(&moral(&rows))
}

/// Two sentences of what the table shows.
fn moral(rows: &[Row]) -> String {
    let [cold, .., ours] = rows else { return String::new() };
    let plural = if ours.counts.connections == 1 { "connection" } else { "connections" };
    format!(
        "\
A new client per file, as a process per file has it, waits a round trip for TCP, one for TLS and
one for its request: {:.0} ms a file here, however small the file is. Trunkline opened {} {plural}
and kept requests under way on all of them at once: the same files in {:.2} s, {} as fast.",
        cold.seconds() * 1e3 / cold.items as f64,
        ours.counts.connections,
        ours.seconds(),
        times(ours.times_faster(cold)),
    )
}

#[cfg(test)]
mod tests;
