//! Large files: chunks over several connections of the range lane, written where they belong.
//!
//! One worker runs through the file from its start; where a round trip costs time, others help
//! from the end. A worker that fails gives its chunk back and ends; the rest go on, and only when
//! nobody is left does the attempt fail. What is there is saved from time to time, so that the
//! next attempt, in this process or a later one, asks only for what is missing.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use tokio::task::{JoinHandle, JoinSet};
use trunkline_proto::range::{ByteRange, Validator};

use crate::blocking;
use crate::chunks::Chunks;
use crate::credentials::strip;
use crate::download::{Download, check_digest};
use crate::engine::Engine;
use crate::error::ErrorKind;
use crate::event::{Event, JobId, Observer};
use crate::exchange::{Answer, Ask};
use crate::fetch::digest_of;
use crate::head::{check_identity, check_range, check_unchanged};
use crate::partial::{Partial, ResumeState, file_error, save_state};
use crate::plan::LaneChoice;
use crate::retry::{Again, decide};
use crate::writer::write_at;

/// Bodies of at least this size are fetched in chunks.
pub const LARGE_BYTES_MIN: u64 = 32 << 20;

/// Bytes read before they are written; each worker has one or two such buffers. Larger ones fall
/// out of the cache between the two and cost twice the CPU.
const BUFFER_BYTES: usize = 256 << 10;

/// A first answer faster than this comes from next door: one connection fills the line there.
const NEAR: Duration = Duration::from_millis(2);

/// How often the state is saved.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// What the first answer told.
pub(crate) struct LargeFile {
    pub(crate) length: u64,
    pub(crate) validator: Option<Validator>,
    /// Whether parts can be asked for.
    pub(crate) ranges: bool,
}

/// Fetches a file whose whole body has begun to come.
pub(crate) async fn begin(
    download: &mut Download<'_>,
    answer: Answer,
    file: LargeFile,
) -> Result<u64, ErrorKind> {
    let mut partial = download.take_partial().await?;
    let mut state = None;
    if let Some(validator) = &file.validator {
        let mut fresh =
            ResumeState::new(&strip(&download.ask().first), file.length, validator.to_string());
        fresh.done = Some(Vec::new());
        partial.save(&fresh);
        state = Some(fresh);
    }
    let mut chunks = Chunks::new(file.length);
    let helpers = if file.ranges { helpers(download.engine(), answer.latency) } else { 0 };
    // A large body leaves the object lane when it can: HTTP/2 costs a third of its speed.
    let open = if answer.is_range_lane() || !file.ranges {
        chunks.take(0).map(|range| Open { answer, index: 0, range, is_whole: true })
    } else {
        None
    };
    let shared = Shared::new(download, &partial, chunks, &file, state);
    run(download, partial, shared, open, helpers).await
}

/// Goes on with a file that an earlier attempt or run left.
pub(crate) async fn resume(
    download: &mut Download<'_>,
    state: ResumeState,
) -> Result<u64, ErrorKind> {
    let partial = download.take_partial().await?;
    let mut chunks = Chunks::new(state.length);
    let there = partial.file().metadata().map_or(0, |metadata| metadata.len());
    // A range that the file does not have was never written, whatever the state says.
    let done: Vec<_> = state.done.iter().flatten().filter(|(_, end)| *end <= there).collect();
    let done: Vec<(u64, u64)> = done.into_iter().copied().collect();
    chunks.restore(&done);
    let validator = state.validator.parse().ok();
    let length = state.length;
    let (id, observer) = download.reporter();
    let resumed_from = chunks.bytes_done();
    observer.event(id, Event::Head { length: Some(length), resumed_from });
    let file = LargeFile { length, validator, ranges: true };
    let helpers = helpers(download.engine(), NEAR);
    let shared = Shared::new(download, &partial, chunks, &file, Some(state));
    run(download, partial, shared, None, helpers).await
}

fn helpers(engine: &Engine, latency: Duration) -> usize {
    let others = engine.inner.settings.limits.connections_per_origin.saturating_sub(1);
    if latency < NEAR { 0 } else { others }
}

/// An answer that is being read.
struct Open {
    answer: Answer,
    index: usize,
    range: ByteRange,
    /// Whether the body goes on beyond the chunk.
    is_whole: bool,
}

/// What the workers of one file share.
struct Shared {
    engine: Engine,
    ask: Ask,
    file: Arc<File>,
    path: PathBuf,
    length: u64,
    validator: Option<Validator>,
    id: JobId,
    observer: Arc<dyn Observer>,
    progress: Mutex<Progress>,
    state_path: PathBuf,
}

struct Progress {
    chunks: Chunks,
    received: u64,
    state: Option<ResumeState>,
    saved: Instant,
}

async fn run(
    download: &mut Download<'_>,
    mut partial: Partial,
    shared: Arc<Shared>,
    open: Option<Open>,
    helpers: usize,
) -> Result<u64, ErrorKind> {
    let mut workers = JoinSet::new();
    workers.spawn(Arc::clone(&shared).work(open, true));
    for _ in 0..helpers.min(shared.lock().chunks.missing()) {
        workers.spawn(Arc::clone(&shared).work(None, false));
    }
    let mut unfinished = Unfinished { shared: &shared, ended: false };
    let mut failure = None;
    while let Some(ended) = workers.join_next().await {
        match ended {
            Ok(Ok(())) if shared.lock().chunks.is_done() => break,
            Ok(Ok(())) => {}
            Ok(Err(kind)) if decide(&kind, true) == Again::Never => {
                failure = Some(kind);
                break;
            }
            Ok(Err(kind)) => failure = failure.or(Some(kind)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => failure = failure.or(Some(ErrorKind::Cancelled)),
        }
    }
    workers.shutdown().await;
    unfinished.ended = true;
    let (is_done, received, done) = {
        let progress = shared.lock();
        (progress.chunks.is_done(), progress.received, progress.chunks.bytes_done())
    };
    download.brought(received, done);
    if !is_done {
        let kind = failure.unwrap_or(ErrorKind::Cancelled);
        if let ErrorKind::Changed { .. } | ErrorKind::RangeIgnored = kind {
            partial.restart()?;
            let (id, observer) = download.reporter();
            observer.event(id, Event::Restarted { bytes: done });
        } else if let Some(state) = shared.current_state() {
            partial.save(&state);
        }
        // The next attempt goes on from the state that was saved, as a later run would.
        download.forget();
        return Err(kind);
    }
    finish(download, partial, shared.length).await
}

/// Saves the state of a transfer that is dropped, so that the next run goes on from here.
struct Unfinished<'a> {
    shared: &'a Shared,
    ended: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let (false, Some(state)) = (self.ended, self.shared.current_state()) {
            // As small as the state is, this is quick; without it an older state is there.
            save_state(&self.shared.state_path, &state);
        }
    }
}

/// Verifies the whole file and gives it its name.
async fn finish(download: &Download<'_>, partial: Partial, length: u64) -> Result<u64, ErrorKind> {
    if let Some(expected) = download.job().check {
        let actual = digest_of(partial.path().to_owned(), expected).await?;
        if let Err(wrong) = check_digest(expected, actual) {
            partial.discard();
            return Err(wrong);
        }
    }
    let fsync = download.engine().inner.settings.files.fsync;
    blocking::run(move || partial.commit(fsync)).await?;
    Ok(length)
}

impl Shared {
    fn new(
        download: &Download<'_>,
        partial: &Partial,
        chunks: Chunks,
        file: &LargeFile,
        state: Option<ResumeState>,
    ) -> Arc<Self> {
        let (id, observer) = download.reporter();
        let mut ask = download.ask().clone();
        ask.lane = LaneChoice::Range;
        ask.if_range = file.validator.clone();
        let progress = Progress { chunks, received: 0, state, saved: Instant::now() };
        Arc::new(Self {
            engine: download.engine().clone(),
            ask,
            file: Arc::clone(partial.file()),
            path: partial.path().to_owned(),
            length: file.length,
            validator: file.validator.clone(),
            id,
            observer,
            progress: Mutex::new(progress),
            state_path: partial.state_path().to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(
        self: Arc<Self>,
        mut open: Option<Open>,
        from_start: bool,
    ) -> Result<(), ErrorKind> {
        loop {
            let mut current = match open.take() {
                Some(open) => open,
                None => match self.ask_for_chunk(from_start).await? {
                    Some(open) => open,
                    None => return Ok(()),
                },
            };
            let copied = self.copy(&mut current.answer, current.index, current.range).await;
            if let Err(kind) = copied {
                self.lock().chunks.give_back(current.index);
                return Err(kind);
            }
            if current.is_whole {
                let next = current.index + 1;
                let range = self.lock().chunks.take(next);
                if let Some(range) = range.filter(|range| range.start() == current.range.end()) {
                    open = Some(Open { index: next, range, ..current });
                }
            }
        }
    }

    async fn ask_for_chunk(&self, from_start: bool) -> Result<Option<Open>, ErrorKind> {
        let taken = {
            let chunks = &mut self.lock().chunks;
            if from_start { chunks.take_first() } else { chunks.take_last() }
        };
        let Some((index, range)) = taken else { return Ok(None) };
        match self.ask(range).await {
            Ok(answer) => Ok(Some(Open { answer, index, range, is_whole: false })),
            Err(kind) => {
                self.lock().chunks.give_back(index);
                Err(kind)
            }
        }
    }

    async fn ask(&self, range: ByteRange) -> Result<Answer, ErrorKind> {
        let mut ask = self.ask.clone();
        ask.range = Some(range);
        let answer = self.engine.exchange(&mut ask).await?;
        if !matches!(answer.status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Err(answer.into_status_error().await);
        }
        check_identity(&answer.headers, false)?;
        check_unchanged(self.validator.as_ref(), &answer.headers)?;
        let (_, total) = check_range(answer.status, &answer.headers, range)?;
        if total.is_some_and(|total| total != self.length) {
            let (was, is) = (self.length, total.unwrap_or_default());
            return Err(ErrorKind::Changed {
                was: format!("{was} bytes"),
                is: format!("{is} bytes"),
            });
        }
        Ok(answer)
    }

    /// Copies one chunk's bytes to their place; whatever came before a failure is kept.
    async fn copy(
        &self,
        answer: &mut Answer,
        index: usize,
        range: ByteRange,
    ) -> Result<(), ErrorKind> {
        let in_place = self.engine.inner.settings.files.write_in_place;
        let mut at = range.start();
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut writing: Option<(JoinHandle<io::Result<Vec<u8>>>, u64)> = None;
        let mut failure = None;
        while at < range.end() && failure.is_none() {
            let wanted = BUFFER_BYTES.min(usize::try_from(range.end() - at).unwrap_or(usize::MAX));
            let filled;
            (filled, failure) = self.fill(answer, &mut buffer[..wanted]).await;
            let offset = at;
            at += filled as u64;
            if in_place {
                let written = write_at(&self.file, &buffer[..filled], offset);
                written.map_err(|source| file_error("write", &self.path, source))?;
                self.wrote(index, at).await;
                continue;
            }
            let spare = match writing.take() {
                Some(earlier) => self.wait(index, earlier).await?,
                None => vec![0; BUFFER_BYTES],
            };
            let full = std::mem::replace(&mut buffer, spare);
            let file = Arc::clone(&self.file);
            let write = move || {
                write_at(&file, &full[..filled], offset)?;
                Ok(full)
            };
            writing = Some((tokio::task::spawn_blocking(write), at));
        }
        if let Some(last) = writing {
            self.wait(index, last).await?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Fills a buffer; returns how far it came and what stopped it.
    async fn fill(&self, answer: &mut Answer, buffer: &mut [u8]) -> (usize, Option<ErrorKind>) {
        let mut filled = 0;
        while filled < buffer.len() {
            match answer.read_into(&mut buffer[filled..]).await {
                Ok(0) => return (filled, Some(trunkline_transport::Error::Truncated.into())),
                Ok(bytes) => {
                    filled += bytes;
                    self.count(bytes as u64);
                }
                Err(kind) => return (filled, Some(kind)),
            }
        }
        (filled, None)
    }

    /// Waits for a write, notes it, and gives its buffer back.
    async fn wait(
        &self,
        index: usize,
        (write, at): (JoinHandle<io::Result<Vec<u8>>>, u64),
    ) -> Result<Vec<u8>, ErrorKind> {
        let written = write.await.map_err(io::Error::other).and_then(|result| result);
        let buffer = written.map_err(|source| file_error("write", &self.path, source))?;
        self.wrote(index, at).await;
        Ok(buffer)
    }

    /// Notes that a chunk is written up to `at`; saves the state when that is due.
    async fn wrote(&self, index: usize, at: u64) {
        let due = {
            let mut progress = self.lock();
            progress.chunks.advance(index, at);
            let due = progress.state.is_some() && progress.saved.elapsed() >= SAVE_INTERVAL;
            if due {
                progress.saved = Instant::now();
            }
            due
        };
        if let Some(state) = due.then(|| self.current_state()).flatten() {
            let path = self.state_path.clone();
            // Only one worker saves at a time: the next is due an interval later.
            let _ = tokio::task::spawn_blocking(move || save_state(&path, &state)).await;
        }
    }

    fn current_state(&self) -> Option<ResumeState> {
        let mut progress = self.lock();
        let done = progress.chunks.done_ranges();
        let state = progress.state.as_mut()?;
        state.done = Some(done);
        Some(state.clone())
    }

    fn count(&self, bytes: u64) {
        self.lock().received += bytes;
        self.observer.event(self.id, Event::Received { bytes });
    }
}
