//! Results for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::rounds::{CaseResult, Row};
use super::samples::{Sample, Samples, float};

const HEAD: [&str; 11] = [
    "row",
    "n",
    "median s (min-max)",
    "ratio",
    "requests",
    "MB",
    "conns",
    "full/resumed",
    "CPU s",
    "CPU us/req",
    "MiB",
];

/// A table with one line a row; `ratio` is that of the median times to the reference row's.
pub(super) fn render(result: &CaseResult) -> String {
    render_rows(&result.name, result.reference, &labelled(result))
}

/// As [`render`], of rows by their labels.
pub(super) fn render_rows(name: &str, reference: &str, rows: &[(&str, &Samples)]) -> String {
    let reference_s = rows
        .iter()
        .find(|(label, _)| *label == reference)
        .and_then(|(_, samples)| Some(samples.wall_s()?.median));
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|(label, samples)| line(label, samples, reference_s)));
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| lines.iter().filter_map(|line| line.get(column)).map(String::len).max())
        .map(|width| width.unwrap_or(0))
        .collect();
    let mut text = format!("\n## {name} (ratio to {reference})\n");
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            // Names to the left, figures to the right; a failure may run on.
            let written = if column == 0 {
                write!(text, "{cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
            written.expect("writing to a String cannot fail");
        }
        text.push('\n');
    }
    for (label, samples) in rows {
        if let Some(failure) = &samples.failure {
            writeln!(text, "{label}: FAILED: {failure}").expect("writing to a String cannot fail");
        }
    }
    text
}

fn labelled(result: &CaseResult) -> Vec<(&str, &Samples)> {
    result.rows.iter().map(|Row { peer, samples }| (peer.label, samples)).collect()
}

fn line(label: &str, samples: &Samples, reference: Option<f64>) -> Vec<String> {
    let (Some(wall), Some(cpu), Some(memory)) =
        (samples.wall_s(), samples.cpu_s(), samples.memory_mib_max())
    else {
        return vec![label.to_owned(), "0".to_owned()];
    };
    let count = |figure: fn(&Sample) -> u64| {
        let spread = samples.spread(|sample| float(figure(sample))).expect("there is a run");
        format!("{:.0}", spread.median)
    };
    let bytes = samples.spread(|sample| float(sample.traffic.body_bytes)).expect("there is a run");
    let per_request = samples
        .spread(|sample| {
            1e6 * sample.cost.cpu.as_secs_f64() / float(sample.traffic.requests.max(1))
        })
        .expect("there is a run");
    vec![
        label.to_owned(),
        samples.runs.len().to_string(),
        format!("{:.3} ({:.3}-{:.3})", wall.median, wall.min, wall.max),
        reference.map_or_else(|| "-".to_owned(), |time| format!("{:.2}", wall.median / time)),
        count(|sample| sample.traffic.requests),
        format!("{:.2}", bytes.median / 1e6),
        count(|sample| sample.traffic.connections),
        format!(
            "{}/{}",
            count(|sample| sample.traffic.handshakes_full),
            count(|sample| sample.traffic.handshakes_resumed)
        ),
        format!("{:.3}", cpu.median),
        format!("{:.1}", per_request.median),
        format!("{memory:.1}"),
    ]
}

/// Every sample, for later comparison.
pub(super) fn to_json(results: &[CaseResult]) -> Value {
    let case = |result: &CaseResult| {
        let rows = rows_to_json(&labelled(result));
        json!({ "case": result.name, "rtt_s": result.rtt_s, "rows": rows })
    };
    Value::Array(results.iter().map(case).collect())
}

/// Every sample of rows by their labels.
pub(super) fn rows_to_json(rows: &[(&str, &Samples)]) -> Value {
    let sample = |run: &Sample| {
        json!({
            "wall_s": run.cost.wall.as_secs_f64(),
            "cpu_s": run.cost.cpu.as_secs_f64(),
            "memory_bytes_max": run.cost.memory_bytes_max,
            "requests": run.traffic.requests,
            "body_bytes": run.traffic.body_bytes,
            "connections": run.traffic.connections,
            "handshakes_full": run.traffic.handshakes_full,
            "handshakes_resumed": run.traffic.handshakes_resumed,
        })
    };
    let row = |(label, samples): &(&str, &Samples)| {
        json!({
            "row": label,
            "runs": samples.runs.iter().map(sample).collect::<Vec<_>>(),
            "failure": samples.failure,
        })
    };
    Value::Array(rows.iter().map(row).collect())
}
