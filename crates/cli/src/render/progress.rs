//! One progress line on a terminal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redraws a second: more only flickers.
const REDRAWS_PER_SECOND: u8 = 10;

/// The progress of a plan whose size becomes known while it runs.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Jobs in all, once that is known; 0 before.
    jobs: AtomicU64,
    done: AtomicU64,
}

impl Progress {
    pub(crate) fn new(jobs: Option<u64>) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{msg} {wide_bar:.cyan/blue} {decimal_bytes}/{decimal_total_bytes} \
                        {decimal_bytes_per_sec} {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        let progress =
            Self { bar, jobs: AtomicU64::new(jobs.unwrap_or(0)), done: AtomicU64::new(0) };
        progress.tell();
        progress
    }

    /// A job told its length.
    pub(crate) fn length(&self, length: u64, already: u64) {
        self.bar.inc_length(length);
        self.bar.inc(already);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    pub(crate) fn restarted(&self, bytes: u64) {
        self.bar.set_position(self.bar.position().saturating_sub(bytes));
    }

    pub(crate) fn ended(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, text: &str) {
        self.bar.suspend(|| super::error(text));
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn tell(&self) {
        let (done, jobs) = (self.done.load(Ordering::Relaxed), self.jobs.load(Ordering::Relaxed));
        self.bar.set_message(if jobs > 0 { format!("{done}/{jobs}") } else { done.to_string() });
    }
}
