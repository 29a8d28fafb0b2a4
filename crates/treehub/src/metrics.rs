//! What the server counts, in Prometheus' text form.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    answers: [AtomicU64; 6],
    pub(crate) objects_stored: AtomicU64,
    pub(crate) objects_refused: AtomicU64,
    pub(crate) packs: AtomicU64,
    pub(crate) refs_moved: AtomicU64,
}

impl Metrics {
    pub(crate) fn count_answer(&self, status: StatusCode) {
        add(&self.answers[usize::from(status.as_u16() / 100).min(5)], 1);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::from("# TYPE treehub_answers_total counter\n");
        for (class, count) in self.answers.iter().enumerate().skip(1) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "treehub_answers_total{{class=\"{class}xx\"}} {count}");
        }
        for (name, count) in [
            ("objects_stored", &self.objects_stored),
            ("objects_refused", &self.objects_refused),
            ("packs", &self.packs),
            ("refs_moved", &self.refs_moved),
        ] {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "# TYPE treehub_{name}_total counter");
            let _ = writeln!(text, "treehub_{name}_total {count}");
        }
        text
    }
}

pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
