//! One file's way from its origin to its destination, over all attempts.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use trunkline_proto::digest::{Digest, Hasher};
use trunkline_proto::range::{ByteRange, Validator};
use url::Url;

use crate::blocking;
use crate::credentials::strip;
use crate::engine::Engine;
use crate::error::{Class, ErrorKind};
use crate::event::{Event, JobId, Observer, Receipt};
use crate::exchange::{Answer, Ask};
use crate::fetch::hash_up_to;
use crate::head::{accepts_ranges, check_identity, check_range, check_unchanged, validator};
use crate::large::{self, LARGE_BYTES_MIN, LargeFile};
use crate::partial::{
    Partial, RESUMABLE_BYTES_MIN, ResumeState, Small, Target, file_error, write_small,
};
use crate::plan::Job;
use crate::writer::Writer;

/// Bodies up to this size are gathered and written at once: one open, one write, one rename.
const SMALL_BYTES_MAX: u64 = 64 * 1024;

/// The state of one download.
pub(crate) struct Download<'a> {
    engine: &'a Engine,
    id: JobId,
    job: &'a Job,
    /// What stands at the destination, once that matters.
    target: Option<Target>,
    observer: &'a Arc<dyn Observer>,
    ask: Ask,
    place: Place,
    /// What is known of the file since the first head.
    known: Option<Known>,
    /// Bytes received over the network.
    received: u64,
    /// The furthest position reached in any attempt; only beyond it is progress.
    furthest: u64,
    progressed: bool,
    /// Whether it began anew once, since the file was replaced or ranges did not work.
    began_anew: bool,
    /// Whether the server turned out to ignore ranges.
    ranges_ignored: bool,
}

/// Where the bytes go.
enum Place {
    /// Not opened yet.
    Closed,
    File {
        partial: Partial,
        writer: Writer,
    },
    Device {
        writer: Writer,
    },
}

#[derive(Clone, Debug)]
struct Known {
    length: u64,
    validator: Validator,
}

impl<'a> Download<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        id: JobId,
        job: &'a Job,
        url: &Url,
        observer: &'a Arc<dyn Observer>,
    ) -> Self {
        let mut ask = Ask::get(url.clone(), job.headers.clone());
        ask.lane = job.lane;
        ask.downgrade = job.check.is_some();
        Self {
            engine,
            id,
            job,
            target: None,
            observer,
            ask,
            place: Place::Closed,
            known: None,
            received: 0,
            furthest: 0,
            progressed: false,
            began_anew: false,
            ranges_ignored: false,
        }
    }

    /// Whether the last attempt brought bytes that no attempt had brought before.
    pub(crate) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progressed)
    }

    /// Whether a failure means that the whole file is to be asked for from its start, which is
    /// done once and at once: what was there of another version has been given up.
    pub(crate) fn begins_anew(&mut self, kind: &ErrorKind) -> bool {
        self.ranges_ignored |= matches!(kind, ErrorKind::RangeIgnored);
        matches!(kind, ErrorKind::Changed { .. } | ErrorKind::RangeIgnored)
            && !std::mem::replace(&mut self.began_anew, true)
    }

    pub(crate) fn receipt(&self, bytes: u64, attempts: u32) -> Receipt {
        Receipt {
            bytes,
            bytes_received: self.received,
            attempts,
            unchanged: false,
            elapsed: std::time::Duration::ZERO,
        }
    }

    /// After the last attempt: wrong bytes are removed, an unfinished beginning is kept.
    pub(crate) fn give_up(&mut self, kind: &ErrorKind) {
        if kind.class() == Class::Integrity
            && let Place::File { partial, .. } = std::mem::replace(&mut self.place, Place::Closed)
        {
            partial.discard();
        }
    }

    /// One attempt; returns the file's size.
    pub(crate) async fn attempt(&mut self) -> Result<u64, ErrorKind> {
        if let Some(state) = self.open_earlier().await? {
            return Box::pin(large::resume(self, state)).await;
        }
        let offset = self.settle().await?;
        self.ask.range = None;
        self.ask.if_range = None;
        if let (Some(known), true) = (&self.known, offset > 0) {
            if offset == known.length {
                return self.finish(known.length).await;
            }
            self.ask.range = ByteRange::new(offset, known.length);
            self.ask.if_range = Some(known.validator.clone());
        }
        let answer = self.engine.exchange(&mut self.ask).await?;
        let Some((answer, offset)) = self.accept(answer, offset).await? else {
            return Err(ErrorKind::Connection(trunkline_transport::Error::Truncated));
        };
        self.receive(answer, offset).await
    }

    /// Looks for what an earlier run left; returns its state when it was fetched in chunks.
    async fn open_earlier(&mut self) -> Result<Option<ResumeState>, ErrorKind> {
        let (Place::Closed, None) = (&self.place, &self.known) else { return Ok(None) };
        // Without a state there is nothing to resume and nothing is opened: most files are
        // small and never have a partial file at all.
        if !crate::partial::has_state(&self.job.destination) {
            return Ok(None);
        }
        let Target::File(destination) = self.target()? else { return Ok(None) };
        let (destination, url) = (destination.clone(), strip(&self.ask.first));
        let (partial, state) = blocking::run(move || Partial::open(&destination, &url)).await?;
        let Some(state) = state else {
            self.place = self.file_place(partial, 0, self.hasher());
            return Ok(None);
        };
        let Ok(validator) = state.validator.parse::<Validator>() else {
            self.place = self.file_place(partial, 0, self.hasher());
            return self.restart().await.map(|()| None);
        };
        let length = state.length;
        self.known = Some(Known { length, validator });
        if state.done.is_some() {
            self.place = self.file_place(partial, 0, None);
            return Ok(Some(state));
        }
        let hasher = self.hasher();
        let file = Arc::clone(partial.file());
        let path = partial.path().to_owned();
        let (offset, hasher) = blocking::run(move || {
            hash_prefix(&file, length, hasher).map_err(|source| file_error("read", &path, source))
        })
        .await?;
        self.place = self.file_place(partial, offset, hasher);
        self.furthest = self.furthest.max(offset);
        Ok(None)
    }

    fn target(&mut self) -> Result<&Target, ErrorKind> {
        match self.target {
            Some(ref target) => Ok(target),
            None => Ok(self.target.insert(Target::of(self.job)?)),
        }
    }

    fn file_place(&self, partial: Partial, offset: u64, hasher: Option<Hasher>) -> Place {
        let in_place = self.engine.inner.settings.files.write_in_place;
        let writer = Writer::new(Arc::clone(partial.file()), offset, hasher, in_place);
        Place::File { partial, writer }
    }

    fn hasher(&self) -> Option<Hasher> {
        self.job.check.map(|check| Hasher::new(check.algorithm()))
    }

    /// What a broken attempt leaves to go on from; returns the position reached. Bytes that
    /// cannot be resumed are given up.
    async fn settle(&mut self) -> Result<u64, ErrorKind> {
        let position = self.flush().await?;
        let resumable = self.known.as_ref().is_some_and(|known| position <= known.length);
        if position > 0 && !resumable {
            self.restart().await?;
            return Ok(0);
        }
        Ok(position)
    }

    /// Waits until everything received is written; returns the position reached.
    async fn flush(&mut self) -> Result<u64, ErrorKind> {
        let (writer, path) = match &mut self.place {
            Place::Closed => return Ok(0),
            Place::File { partial, writer } => (writer, partial.path().to_owned()),
            Place::Device { writer } => (writer, self.job.destination.clone()),
        };
        writer.settle().await.map_err(|source| file_error("write", &path, source))?;
        Ok(writer.position())
    }

    /// Gives up what came so far.
    pub(crate) async fn restart(&mut self) -> Result<(), ErrorKind> {
        self.known = None;
        match std::mem::replace(&mut self.place, Place::Closed) {
            Place::Closed => {}
            Place::File { mut partial, writer } => {
                let bytes = writer.position();
                drop(writer);
                let partial = blocking::run(move || {
                    partial.restart()?;
                    Ok(partial)
                })
                .await?;
                self.place = self.file_place(partial, 0, self.hasher());
                self.observer.event(self.id, Event::Restarted { bytes });
            }
            Place::Device { writer } if writer.position() == 0 => {
                self.place = Place::Device { writer };
            }
            // What was written into a pipe cannot be taken back.
            Place::Device { writer } => {
                let received = writer.position();
                return Err(ErrorKind::Length { expected: 0, received });
            }
        }
        Ok(())
    }

    /// Judges the head: the answer with the offset at which its body begins, or `None` when the
    /// file has to be asked for from its start.
    async fn accept(
        &mut self,
        answer: Answer,
        offset: u64,
    ) -> Result<Option<(Answer, u64)>, ErrorKind> {
        match (answer.status, self.ask.range) {
            (StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION, range) => {
                check_identity(&answer.headers, self.job.refuse_html)?;
                if range.is_some() {
                    self.restart().await?;
                }
                Ok(Some((answer, 0)))
            }
            (StatusCode::PARTIAL_CONTENT, Some(asked)) => {
                check_identity(&answer.headers, self.job.refuse_html)?;
                let known = self.known.as_ref().expect("a range is asked for a known file");
                let (_, total) = check_range(answer.status, &answer.headers, asked)?;
                let same_length = total.is_none_or(|total| total == known.length);
                let unchanged = check_unchanged(Some(&known.validator), &answer.headers);
                if same_length && unchanged.is_ok() {
                    return Ok(Some((answer, offset)));
                }
                self.restart().await?;
                Ok(None)
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                self.restart().await?;
                Ok(None)
            }
            (StatusCode::PARTIAL_CONTENT, None) => Err(ErrorKind::RangeMismatch {
                start: 0,
                end: 1,
                sent: answer.header(&http::header::CONTENT_RANGE).unwrap_or("none").to_owned(),
            }),
            _ => Err(answer.into_status_error().await),
        }
    }

    async fn receive(&mut self, answer: Answer, offset: u64) -> Result<u64, ErrorKind> {
        // Of a file that is known, all has to come, however much of it this answer carries.
        let length = match &self.known {
            Some(known) if offset > 0 => Some(known.length),
            _ => answer.length(),
        };
        let resumed_from = offset;
        self.observer.event(self.id, Event::Head { length, resumed_from });
        let validator = validator(&answer.headers);
        if let (Some(length), 0, Place::Closed) = (length, offset, &self.place)
            && length <= SMALL_BYTES_MAX
        {
            return self.receive_small(answer, length).await;
        }
        let is_file = matches!(self.target()?, Target::File(_));
        match length {
            Some(length) if is_file && offset == 0 && length >= LARGE_BYTES_MIN => {
                let validator = validator.filter(|_| !self.ranges_ignored);
                let ranges = validator.is_some() && accepts_ranges(&answer.headers);
                let open = LargeFile { length, validator, ranges };
                Box::pin(large::begin(self, answer, open)).await
            }
            _ => {
                if offset == 0 {
                    self.known = length
                        .zip(validator)
                        .map(|(length, validator)| Known { length, validator });
                }
                Box::pin(self.receive_stream(answer, length)).await
            }
        }
    }

    async fn receive_small(&mut self, mut answer: Answer, length: u64) -> Result<u64, ErrorKind> {
        let mut parts: Vec<Bytes> = Vec::new();
        let mut received = 0;
        while let Some(chunk) = answer.chunk().await? {
            self.count(chunk.len());
            received += chunk.len() as u64;
            parts.push(chunk);
        }
        if received != length {
            return Err(ErrorKind::Length { expected: length, received });
        }
        if let Some(expected) = self.job.check {
            let mut hasher = Hasher::new(expected.algorithm());
            parts.iter().for_each(|part| hasher.update(part));
            check_digest(expected, hasher.finish())?;
        }
        // Small enough to be written in place: the page cache takes it in microseconds, less
        // than handing it to another thread costs.
        let fsync = self.engine.inner.settings.files.fsync;
        match write_small(self.job, &parts, fsync)? {
            Small::Placed => Ok(length),
            Small::IsDevice => {
                self.open_place().await?;
                for part in parts {
                    self.push(part).await?;
                }
                self.flush().await?;
                self.finish(length).await
            }
        }
    }

    async fn push(&mut self, chunk: Bytes) -> Result<(), ErrorKind> {
        let (writer, path) = match &mut self.place {
            Place::File { partial, writer } => (writer, partial.path()),
            Place::Device { writer } => (writer, self.job.destination.as_path()),
            Place::Closed => unreachable!("opened before"),
        };
        writer.push(chunk).await.map_err(|source| file_error("write", path, source))?;
        let position = writer.position();
        self.reached(position);
        Ok(())
    }

    async fn receive_stream(
        &mut self,
        mut answer: Answer,
        length: Option<u64>,
    ) -> Result<u64, ErrorKind> {
        self.open_place().await?;
        self.save_state();
        loop {
            let Some(chunk) = answer.chunk().await? else { break };
            self.count(chunk.len());
            self.push(chunk).await?;
        }
        let received = self.flush().await?;
        match length {
            Some(expected) if expected != received => Err(ErrorKind::Length { expected, received }),
            _ => self.finish(received).await,
        }
    }

    async fn open_place(&mut self) -> Result<(), ErrorKind> {
        if !matches!(self.place, Place::Closed) {
            return Ok(());
        }
        let hasher = self.hasher();
        self.place = match self.target()? {
            Target::File(destination) => {
                let (destination, url) = (destination.clone(), strip(&self.ask.first));
                let open = move || {
                    let (mut partial, earlier) = Partial::open(&destination, &url)?;
                    if earlier.is_some() {
                        partial.restart()?;
                    }
                    Ok(partial)
                };
                self.file_place(blocking::run(open).await?, 0, hasher)
            }
            Target::Device(device) => {
                let device = device.clone();
                let file = blocking::run(move || device.open()).await?;
                Place::Device { writer: Writer::device(file, hasher) }
            }
        };
        Ok(())
    }

    /// Makes a later run able to go on, when the file is worth it and the server can.
    fn save_state(&mut self) {
        let Some(known) = &self.known else { return };
        if known.length < RESUMABLE_BYTES_MIN {
            return;
        }
        if let Place::File { partial, .. } = &mut self.place {
            let line = known.validator.to_string();
            partial.save(&ResumeState::new(&strip(&self.ask.first), known.length, line));
        }
    }

    /// Verifies the checksum and gives the file its name.
    async fn finish(&mut self, length: u64) -> Result<u64, ErrorKind> {
        match std::mem::replace(&mut self.place, Place::Closed) {
            Place::Closed => unreachable!("a body was received into a place"),
            Place::Device { mut writer } => {
                verify(self.job.check, writer.digest())?;
            }
            Place::File { partial, mut writer } => {
                if let Err(wrong) = verify(self.job.check, writer.digest()) {
                    partial.discard();
                    return Err(wrong);
                }
                drop(writer);
                let fsync = self.engine.inner.settings.files.fsync;
                blocking::run(move || partial.commit(fsync)).await?;
            }
        }
        Ok(length)
    }

    fn count(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.observer.event(self.id, Event::Received { bytes: bytes as u64 });
    }

    fn reached(&mut self, position: u64) {
        if position > self.furthest {
            self.furthest = position;
            self.progressed = true;
        }
    }
}

/// What the fetching of large files needs of a download.
impl Download<'_> {
    pub(crate) fn engine(&self) -> &Engine {
        self.engine
    }

    pub(crate) fn ask(&self) -> &Ask {
        &self.ask
    }

    pub(crate) fn job(&self) -> &Job {
        self.job
    }

    pub(crate) fn reporter(&self) -> (JobId, Arc<dyn Observer>) {
        (self.id, Arc::clone(self.observer))
    }

    /// Opens the partial file and hands it over.
    pub(crate) async fn take_partial(&mut self) -> Result<Partial, ErrorKind> {
        self.open_place().await?;
        match std::mem::replace(&mut self.place, Place::Closed) {
            Place::File { partial, .. } => Ok(partial),
            _ => unreachable!("only files are fetched in chunks"),
        }
    }

    /// Notes what a large file's workers brought.
    pub(crate) fn brought(&mut self, received: u64, done: u64) {
        self.received += received;
        self.reached(done);
    }

    /// Forgets what is known of the file, so that the next attempt looks at what is on disk.
    pub(crate) fn forget(&mut self) {
        self.known = None;
    }
}

/// Feeds what an earlier run left to the hasher; returns how much that is, never more than the
/// whole.
fn hash_prefix(
    file: &File,
    length: u64,
    mut hasher: Option<Hasher>,
) -> std::io::Result<(u64, Option<Hasher>)> {
    let mut offset = file.metadata()?.len().min(length);
    if let Some(hasher) = &mut hasher {
        offset = hash_up_to(&mut &*file, offset, hasher)?;
    }
    file.set_len(offset)?;
    Ok((offset, hasher))
}

fn verify(expected: Option<Digest>, actual: Option<Digest>) -> Result<(), ErrorKind> {
    match (expected, actual) {
        (Some(expected), Some(actual)) => check_digest(expected, actual),
        _ => Ok(()),
    }
}

pub(crate) fn check_digest(expected: Digest, actual: Digest) -> Result<(), ErrorKind> {
    if expected == actual {
        Ok(())
    } else {
        Err(ErrorKind::Checksum { expected: Box::new(expected), actual: Box::new(actual) })
    }
}
