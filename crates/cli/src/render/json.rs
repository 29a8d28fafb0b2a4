//! `--json`: one object a line on standard output. Its fields are a promise
//! (docs/promises/json-events.md).

use std::io::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use trunkline_pool::Stats;
use trunkline_transfer::{Engine, Event, JobId, Report};

use crate::exit::Exit;

/// Writes one object as a line.
pub(crate) fn line(value: &impl Serialize) {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    // A reader that went away wants nothing more.
    let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
}

/// A job's event; progress is not shown one by one.
pub(crate) fn event(job: JobId, event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::Started { url, destination } => json!({
            "event": "started", "id": job, "url": url.as_str(), "destination": destination,
        }),
        Event::Head { length, resumed_from } => json!({
            "event": "head", "id": job, "length": length, "resumed_from": resumed_from,
        }),
        Event::Restarted { bytes } => json!({
            "event": "restarted", "id": job, "bytes": bytes,
        }),
        Event::Retrying { attempt, pause, reason } => json!({
            "event": "retrying", "id": job, "attempt": attempt,
            "pause_seconds": pause.as_secs_f64(), "reason": reason,
        }),
        Event::Done { receipt } => json!({
            "event": "done", "id": job, "bytes": receipt.bytes,
            "bytes_received": receipt.bytes_received, "attempts": receipt.attempts,
            "unchanged": receipt.unchanged, "seconds": receipt.elapsed.as_secs_f64(),
        }),
        Event::Failed { error } => json!({
            "event": "failed", "id": job, "url": error.url.as_str(),
            "class": class(error.kind.class()), "status": error.kind.status().map(|s| s.as_u16()),
            "attempts": error.attempts, "message": error.kind.to_string(),
        }),
        _ => return None,
    })
}

fn class(class: trunkline_transfer::Class) -> String {
    format!("{class:?}").to_ascii_lowercase()
}

/// The last line.
pub(crate) fn summary(report: &Report, engine: &Engine, exit: Exit) -> Value {
    let origins: Vec<Value> = engine
        .stats()
        .into_iter()
        .map(|(origin, stats)| json!({"origin": origin.to_string(), "counters": counters(&stats)}))
        .collect();
    json!({
        "event": "summary", "done": report.done, "unchanged": report.unchanged,
        "failed": report.failed, "cancelled": report.cancelled,
        "bytes_received": report.bytes_received, "retries": report.retries,
        "seconds": report.elapsed.as_secs_f64(), "exit_code": exit.code(),
        "counters": counters(&engine.stats_total()), "origins": origins,
    })
}

fn counters(stats: &Stats) -> Value {
    json!({
        "connections": stats.connections, "connections_peak": stats.connections_peak,
        "handshakes_full": stats.handshakes_full,
        "handshakes_resumed": stats.handshakes_resumed,
        "dials_failed": stats.dials_failed, "requests": stats.requests,
        "bytes_received": stats.bytes_received, "bytes_sent": stats.bytes_sent,
    })
}
