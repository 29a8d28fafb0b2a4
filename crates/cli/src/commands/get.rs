//! `trunkline get`: files from a list or from the command line.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;
use trunkline_transfer::{Class, Engine, Files, Job};

use crate::commands::get_list::{self, ListProblem, Planner};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::flags::GetArgs;
use crate::render::{self, View};
use crate::settings::{self, SettingsError};
use crate::{logging, signals};

/// Batches of jobs read ahead of the transfers.
const BATCHES_AHEAD_MAX: usize = 4;

/// Threads for files, besides the one for the network: disks gain nothing from more.
const FILE_THREADS_MAX: usize = 8;

/// What keeps the command from beginning.
#[derive(Debug, Error)]
pub(crate) enum GetError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("{0}")]
    Arguments(&'static str),
    #[error("cannot make the folder `{}`: {source}", path.display())]
    Folder { path: std::path::PathBuf, source: std::io::Error },
    #[error("cannot start: {0}")]
    Runtime(#[source] std::io::Error),
}

impl GetError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Folder { .. } => Exit::File,
            _ => Exit::Usage,
        }
    }
}

/// Runs the command.
pub(crate) fn main(args: GetArgs) -> Result<Exit, GetError> {
    logging::start(args.output_style.verbose);
    check(&args)?;
    let environment = Environment::read();
    let mut settings = settings::engine(&args.network, &environment)?;
    settings.files = Files { fsync: args.fsync, write_in_place: true };
    let time_max = args.max_time.map(|value| settings::seconds("max-time", value)).transpose()?;
    if let Some(folder) = &args.directory {
        std::fs::create_dir_all(folder)
            .map_err(|source| GetError::Folder { path: folder.clone(), source })?;
    }
    // One thread moves the bytes: handing them between threads costs more than a second core
    // brings, and a core carries more than ten gigabits of TLS.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS_MAX)
        .build()
        .map_err(GetError::Runtime)?;
    let exit = runtime.block_on(async move {
        let engine = Engine::new(settings);
        run(args, time_max, &engine).await
    });
    // A read of a slow list or pipe must not hold the process back.
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(exit)
}

fn check(args: &GetArgs) -> Result<(), GetError> {
    let is_single = args.urls.len() == 1 && args.input_file.is_none();
    if args.output.is_some() && !is_single {
        return Err(GetError::Arguments("--output needs exactly one URL; use --directory"));
    }
    if args.output.is_some() && args.directory.is_some() {
        return Err(GetError::Arguments("give either --output or --directory"));
    }
    if args.output_style.json && args.output.as_deref() == Some(Path::new("-")) {
        let text = "--json and --output - both want standard output; write the file elsewhere";
        return Err(GetError::Arguments(text));
    }
    if args.checksum.is_some() && !is_single {
        let text = "--checksum needs exactly one URL; a list has its checksums in column three";
        return Err(GetError::Arguments(text));
    }
    Ok(())
}

async fn run(args: GetArgs, time_max: Option<Duration>, engine: &Engine) -> Exit {
    let in_flight = args.max_in_flight;
    let total = args.input_file.is_none().then_some(args.urls.len() as u64);
    let view = Arc::new(View::new(&args.output_style, total, args.output.as_deref()));
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD_MAX);
    let planner = Planner::new(&args, time_max);
    let problems = Arc::clone(&view);
    let reading = std::thread::spawn(move || {
        let mut classes = BTreeMap::<Class, u64>::new();
        get_list::read(&args, planner, &sender, &mut |problem: ListProblem| {
            if let Some(class) = problem.class() {
                *classes.entry(class).or_default() += 1;
            }
            problems.problem(&problem);
        });
        classes
    });
    let jobs = stream(receiver);
    let (stop, stopped) = signals::stop();
    let mut report = engine.run(jobs, in_flight, view.observer(), stop).await;
    // The reader ends when the list does; on a signal it may hang in a read, and is left behind.
    let signal = stopped.get();
    if signal.is_none() {
        for (class, count) in reading.join().unwrap_or_default() {
            report.add_unusable(class, count);
        }
    }
    let exit = signal.map_or_else(|| Exit::of(&report), Exit::Signal);
    view.finish(&report, engine, exit);
    if signal.is_some() {
        render::error("stopped; run the same command again to go on");
    }
    exit
}

fn stream(mut receiver: mpsc::Receiver<Vec<Job>>) -> impl futures_util::Stream<Item = Job> {
    let mut batch = Vec::new().into_iter();
    futures_util::stream::poll_fn(move |cx| {
        loop {
            if let Some(job) = batch.next() {
                return Poll::Ready(Some(job));
            }
            match ready!(receiver.poll_recv(cx)) {
                Some(next) => batch = next.into_iter(),
                None => return Poll::Ready(None),
            }
        }
    })
}
