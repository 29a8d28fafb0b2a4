//! Numbers in words that people read.

use std::fmt::Write as _;
use std::time::Duration;

use trunkline_pool::Stats;
use trunkline_transfer::{Engine, Report};

/// Bytes with a decimal unit.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit < UNITS.len() - 1 {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Seconds with sensible precision.
pub(crate) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}

/// One line about a plan.
pub(crate) fn summary(report: &Report) -> String {
    let mut line = format!("{} done", report.done);
    if report.unchanged > 0 {
        let _ = write!(line, " ({} were complete before)", report.unchanged);
    }
    if report.failed > 0 {
        let _ = write!(line, ", {} failed", report.failed);
    }
    if report.cancelled > 0 {
        let _ = write!(line, ", {} stopped", report.cancelled);
    }
    let rate = report.bytes_received as f64 / report.elapsed.as_secs_f64().max(1e-3);
    let _ = write!(
        line,
        "; {} in {} ({}/s)",
        bytes(report.bytes_received),
        seconds(report.elapsed),
        bytes(rate as u64)
    );
    line
}

/// The counters of `--stats`, a line an origin.
pub(crate) fn stats(report: &Report, engine: &Engine) -> String {
    let mut text = String::new();
    for (origin, stats) in engine.stats() {
        let _ = writeln!(text, "{origin}: {}", counters(&stats));
    }
    let _ = write!(text, "retries {}", report.retries);
    text
}

fn counters(stats: &Stats) -> String {
    format!(
        "connections {} (at most {} at once), TLS handshakes {} full and {} resumed, \
         failed connects {}, requests {}, received {}, sent {}",
        stats.connections,
        stats.connections_peak,
        stats.handshakes_full,
        stats.handshakes_resumed,
        stats.dials_failed,
        stats.requests,
        bytes(stats.bytes_received),
        bytes(stats.bytes_sent)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1000), "1.0 kB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(39_850_000), "39.9 MB");
    }
}
