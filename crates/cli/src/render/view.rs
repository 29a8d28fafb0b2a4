//! Turns events into what the user asked to see.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use trunkline_transfer::{Engine, Event, JobId, Observer, Report};

use crate::commands::get_list::ListProblem;
use crate::exit::Exit;
use crate::flags::OutputArgs;
use crate::render::progress::Progress;
use crate::render::{error, human, json};

/// Shows a plan's course.
#[derive(Debug)]
pub(crate) struct View {
    json: bool,
    quiet: bool,
    stats: bool,
    /// One job needs no summary.
    is_single: bool,
    progress: Option<Progress>,
}

impl View {
    /// `jobs` is their number, if it is known; `output` the one file's place.
    pub(crate) fn new(style: &OutputArgs, jobs: Option<u64>, output: Option<&Path>) -> Self {
        // A bar and the data on the same terminal would spoil each other.
        let data_on_terminal = output.is_some_and(|output| output == Path::new("-"))
            && std::io::stdout().is_terminal();
        let wants_bar = !style.json && !style.quiet && style.verbose == 0 && !data_on_terminal;
        let progress = (wants_bar && std::io::stderr().is_terminal()).then(|| Progress::new(jobs));
        Self {
            json: style.json,
            quiet: style.quiet,
            stats: style.stats,
            is_single: jobs == Some(1),
            progress,
        }
    }

    pub(crate) fn observer(self: &Arc<Self>) -> Arc<dyn Observer> {
        Arc::clone(self) as Arc<dyn Observer>
    }

    /// A line of the list that cannot be used.
    pub(crate) fn problem(&self, problem: &ListProblem) {
        if self.json {
            json::line(&serde_json::json!({"event": "problem", "message": problem.to_string()}));
        }
        self.say(&problem.to_string());
    }

    fn say(&self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(text),
            None => error(text),
        }
    }

    /// The end of the plan.
    pub(crate) fn finish(&self, report: &Report, engine: &Engine, exit: Exit) {
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        if self.json {
            json::line(&json::summary(report, engine, exit));
            return;
        }
        let wants_summary = !self.is_single || self.progress.is_some() || !report.is_success();
        if !self.quiet && wants_summary {
            error(&human::summary(report));
        }
        if self.stats {
            for line in human::stats(report, engine).lines() {
                error(line);
            }
        }
    }
}

impl Observer for View {
    fn event(&self, job: JobId, event: Event<'_>) {
        if self.json
            && let Some(value) = json::event(job, &event)
        {
            json::line(&value);
        }
        if let Event::Failed { error } = &event {
            self.say(&error.to_string());
        }
        let Some(progress) = &self.progress else { return };
        match event {
            Event::Head { length: Some(length), resumed_from } => {
                progress.length(length, resumed_from);
            }
            Event::Received { bytes } => progress.received(bytes),
            Event::Restarted { bytes } => progress.restarted(bytes),
            Event::Done { .. } | Event::Failed { .. } => progress.ended(),
            _ => {}
        }
    }
}
