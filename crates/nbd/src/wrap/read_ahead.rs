//! Reads ahead of sequential readers, so that a far source delivers at the line's speed.
//!
//! A reader that asks for one range after another is followed by fetches of large chunks, some
//! of them under way at any time; small requests are answered out of these chunks, so that
//! adjacent requests are one fetch. A reader that jumps gets exactly what it asks for. How far to
//! run ahead is learnt from the reader: it doubles whenever the reader has to wait for a chunk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use crate::content::{Content, Piece};
use crate::error::Error;
use crate::export::{Export, Extent, Verb, Writable};

mod streams;

#[cfg(test)]
mod tests;

use streams::Streams;

/// Bounds of a [`ReadAhead`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAheadLimits {
    /// Length of a fetch for a sequential reader.
    pub chunk_bytes: u32,
    /// How far to run ahead of one reader at most.
    pub window_bytes_max: u64,
    /// Chunks held for all readers together, fetched or under way.
    pub held_bytes_max: u64,
}

impl Default for ReadAheadLimits {
    fn default() -> Self {
        Self { chunk_bytes: 1 << 20, window_bytes_max: 16 << 20, held_bytes_max: 32 << 20 }
    }
}

/// What a [`ReadAhead`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadAheadCounts {
    /// Reads answered from chunks alone.
    pub hits: u64,
    /// Reads for which the source was asked directly.
    pub direct: u64,
    /// Chunks fetched.
    pub chunks: u64,
}

/// An export that runs ahead of its readers.
#[derive(Debug)]
pub struct ReadAhead {
    inner: Arc<dyn Export>,
    limits: ReadAheadLimits,
    state: Mutex<State>,
    hits: AtomicU64,
    direct: AtomicU64,
    chunks: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    streams: Streams,
    /// Chunks by offset; they do not overlap.
    chunks: BTreeMap<u64, Chunk>,
    held_bytes: u64,
    /// Grows with each read; tells old chunks from new ones.
    turn: u64,
}

/// The result of a fetch, once there is one. A fetch that ends without one was cut off.
#[derive(Clone, Debug)]
struct Fetch(watch::Receiver<Option<Result<Bytes, Error>>>);

impl Fetch {
    fn is_done(&self) -> bool {
        self.0.borrow().is_some()
    }

    async fn result(mut self) -> Result<Bytes, Error> {
        let done = self.0.wait_for(Option::is_some).await;
        done.map_or(None, |result| result.clone()).unwrap_or(Err(Error::Stopping))
    }
}

#[derive(Debug)]
struct Chunk {
    length: u64,
    /// Bytes of it that readers have not had yet.
    unread: u64,
    used: u64,
    fetch: Fetch,
}

/// Where a piece of a read comes from.
#[derive(Debug)]
enum Source {
    Chunk { start: u64, fetch: Fetch, from: u64, to: u64 },
    Direct { offset: u64, length: u32 },
}

impl ReadAhead {
    /// Runs ahead of readers of `inner`, which should be slow to answer and safe to ask often.
    pub fn new(inner: Arc<dyn Export>, limits: ReadAheadLimits) -> Self {
        Self {
            inner,
            limits,
            state: Mutex::default(),
            hits: AtomicU64::new(0),
            direct: AtomicU64::new(0),
            chunks: AtomicU64::new(0),
        }
    }

    /// The counters now.
    pub fn counts(&self) -> ReadAheadCounts {
        ReadAheadCounts {
            hits: self.hits.load(Relaxed),
            direct: self.direct.load(Relaxed),
            chunks: self.chunks.load(Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements that can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides where the bytes of a read come from and starts the fetches ahead of it.
    fn plan(&self, offset: u64, length: u64) -> Vec<Source> {
        let end = offset + length;
        let mut state = self.lock();
        state.turn += 1;
        let ReadAheadLimits { chunk_bytes, held_bytes_max, .. } = self.limits;
        let ahead = state.streams.observe(offset, end, chunk_bytes.into(), held_bytes_max);
        let mut plan = Vec::with_capacity(2);
        let mut at = offset;
        while at < end {
            if let Some((start, chunk)) = state.chunks.range(..=at).next_back() {
                let stop = (start + chunk.length).min(end);
                if stop > at {
                    let (start, fetch) = (*start, chunk.fetch.clone());
                    plan.push(Source::Chunk { start, fetch, from: at, to: stop });
                    at = stop;
                    continue;
                }
            }
            let next = state.chunks.range(at..).next().map_or(end, |(start, _)| *start);
            if ahead.is_some() && self.start_fetch(&mut state, at) {
                continue;
            }
            let stop = next.min(end);
            plan.push(Source::Direct { offset: at, length: (stop - at) as u32 });
            at = stop;
        }
        if let Some(window) = ahead {
            self.run_ahead(&mut state, end, window);
        }
        plan
    }

    /// Starts the chunks that are missing in the `window` bytes from `at` on.
    fn run_ahead(&self, state: &mut State, mut at: u64, window: u64) {
        let end = at.saturating_add(window).min(self.inner.size());
        while at < end {
            let covering = state.chunks.range(..=at).next_back();
            match covering.map(|(start, chunk)| start + chunk.length) {
                Some(stop) if stop > at => at = stop,
                _ if !self.start_fetch(state, at) => return,
                _ => {}
            }
        }
    }

    /// Starts one chunk at `at`; false when there is no room for it.
    fn start_fetch(&self, state: &mut State, at: u64) -> bool {
        let next = state.chunks.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
        let chunk_bytes = u64::from(self.limits.chunk_bytes);
        let stop = (at + chunk_bytes).min(self.inner.size()).min(next);
        let length = stop - at;
        if length == 0 || !state.make_room(length, self.limits.held_bytes_max) {
            return false;
        }
        let inner = Arc::clone(&self.inner);
        let (done, fetch) = watch::channel(None);
        // A task of its own: it goes on when the reader that caused it goes away.
        tokio::spawn(async move {
            let read = inner.read(at, length as u32).await;
            let bytes = match read {
                Ok(content) => content.into_bytes().await,
                Err(error) => Err(error),
            };
            // Nobody may be left who wants it.
            let _ = done.send(Some(bytes));
        });
        let used = state.turn;
        let chunk = Chunk { length, unread: length, used, fetch: Fetch(fetch) };
        state.chunks.insert(at, chunk);
        state.held_bytes += length;
        self.chunks.fetch_add(1, Relaxed);
        true
    }

    async fn assemble(&self, offset: u64, length: u64) -> Result<Content, Error> {
        let plan = self.plan(offset, length);
        let from_chunks = plan.iter().all(|source| matches!(source, Source::Chunk { .. }));
        if from_chunks { &self.hits } else { &self.direct }.fetch_add(1, Relaxed);
        let mut content = Content::with_capacity(plan.len());
        for source in plan {
            match source {
                Source::Direct { offset, length } => {
                    content.append(self.inner.read(offset, length).await?);
                }
                Source::Chunk { start, fetch, from, to } => {
                    let stale = fetch.is_done();
                    if !stale {
                        self.lock().streams.waited(from, self.limits.window_bytes_max);
                    }
                    match fetch.result().await {
                        Ok(bytes) => {
                            let part = bytes.slice((from - start) as usize..(to - start) as usize);
                            content.push(Piece::Bytes(part));
                            self.lock().consume(start, to - from);
                        }
                        Err(error) => {
                            self.lock().forget(start);
                            if !stale {
                                return Err(error);
                            }
                            // It failed while nobody waited; that is no answer to this reader.
                            let again = self.inner.read(from, (to - from) as u32).await?;
                            content.append(again);
                        }
                    }
                }
            }
        }
        Ok(content)
    }
}

impl State {
    /// Frees chunks, oldest first, until `length` more bytes may be held. Chunks under way are
    /// not freed, since someone may wait for them.
    fn make_room(&mut self, length: u64, held_bytes_max: u64) -> bool {
        while self.held_bytes + length > held_bytes_max {
            let done = self.chunks.iter().filter(|(_, chunk)| chunk.fetch.is_done());
            // The chunks of the present turn are about to be read.
            let old = done.filter(|(_, chunk)| chunk.used < self.turn);
            let Some(start) = old.min_by_key(|(_, chunk)| chunk.used).map(|(start, _)| *start)
            else {
                return false;
            };
            self.forget(start);
        }
        true
    }

    /// Notes that bytes of a chunk were handed out; one that is used up is dropped.
    fn consume(&mut self, start: u64, length: u64) {
        let turn = self.turn;
        let Some(chunk) = self.chunks.get_mut(&start) else { return };
        chunk.used = turn;
        chunk.unread = chunk.unread.saturating_sub(length);
        if chunk.unread == 0 {
            self.forget(start);
        }
    }

    fn forget(&mut self, start: u64) {
        if let Some(chunk) = self.chunks.remove(&start) {
            self.held_bytes -= chunk.length;
        }
    }
}

impl Export for ReadAhead {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        Box::pin(self.assemble(offset, length.into()))
    }

    fn extents(&self, offset: u64, length: u64) -> Verb<'_, Vec<Extent>> {
        self.inner.extents(offset, length)
    }

    fn prefetch(&self, offset: u64, length: u64) -> Verb<'_, ()> {
        let mut state = self.lock();
        state.turn += 1;
        self.run_ahead(&mut state, offset, length);
        drop(state);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Chunks would not see writes, so what is written to must not be under this wrap.
    fn writable(&self) -> Option<&dyn Writable> {
        None
    }

    fn preferred_block_bytes(&self) -> u32 {
        self.inner.preferred_block_bytes()
    }

    fn identity(&self) -> Option<String> {
        self.inner.identity()
    }
}
