//! Payloads as bodies: files are read in blocks on the blocking pool, one block ahead.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::task::JoinHandle;
use trunkline_transport::{BodySource, Meter, RequestBody};

use crate::error::ErrorKind;
use crate::request::Payload;

/// Bytes read from a file at once.
const BLOCK_BYTES: usize = 256 * 1024;

/// Files up to this size are read before the request is sent.
const SMALL_BYTES_MAX: u64 = 64 * 1024;

impl Payload {
    /// The body of one attempt.
    pub(crate) async fn body(&self, meter: &Arc<Meter>) -> Result<RequestBody, ErrorKind> {
        match self {
            Self::Empty => Ok(RequestBody::empty()),
            Self::Bytes(bytes) => Ok(RequestBody::full(bytes.clone())),
            Self::File(path) => {
                let opened = path.clone();
                let read = tokio::task::spawn_blocking(move || open(File::open(opened)?));
                let opened = read.await.map_err(io::Error::other).and_then(|result| result);
                let fail = |source| ErrorKind::File { action: "read", path: path.clone(), source };
                Ok(match opened.map_err(fail)? {
                    Opened::Small(bytes) => RequestBody::full(bytes),
                    Opened::Large(file, length) => {
                        let blocks = FileBlocks { state: State::Idle(Some(file)) };
                        metered(length, Box::new(blocks), meter)
                    }
                })
            }
            Self::Stream(source) => {
                let fail =
                    |source| ErrorKind::Connection(trunkline_transport::Error::RequestBody(source));
                Ok(metered(source.length(), source.open().map_err(fail)?, meter))
            }
        }
    }
}

enum Opened {
    Small(Bytes),
    Large(File, u64),
}

fn open(mut file: File) -> io::Result<Opened> {
    let length = file.metadata()?.len();
    if length > SMALL_BYTES_MAX {
        return Ok(Opened::Large(file, length));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.read_to_end(&mut bytes)?;
    Ok(Opened::Small(bytes.into()))
}

fn metered(length: u64, inner: Box<dyn BodySource>, meter: &Arc<Meter>) -> RequestBody {
    RequestBody::source(length, Box::new(Metered { inner, meter: Arc::clone(meter) }))
}

/// Counts what leaves, so that a long upload does not look like a stall.
struct Metered {
    inner: Box<dyn BodySource>,
    meter: Arc<Meter>,
}

impl BodySource for Metered {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let chunk = ready!(self.inner.poll_chunk(cx));
        if let Some(Ok(bytes)) = &chunk {
            self.meter.count_payload(bytes.len() as u64);
        }
        Poll::Ready(chunk)
    }
}

/// A file, block by block.
struct FileBlocks {
    state: State,
}

enum State {
    Idle(Option<File>),
    Reading(JoinHandle<io::Result<(File, Bytes)>>),
}

impl BodySource for FileBlocks {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match &mut self.state {
                State::Idle(file) => {
                    let Some(file) = file.take() else { return Poll::Ready(None) };
                    self.state = State::Reading(tokio::task::spawn_blocking(move || {
                        let mut block = Vec::with_capacity(BLOCK_BYTES);
                        (&file).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
                        Ok((file, block.into()))
                    }));
                }
                State::Reading(read) => {
                    let read = ready!(std::pin::Pin::new(read).poll(cx));
                    match read.map_err(io::Error::other).and_then(|result| result) {
                        Ok((_, block)) if block.is_empty() => {
                            self.state = State::Idle(None);
                            return Poll::Ready(None);
                        }
                        Ok((file, block)) => {
                            self.state = State::Idle(Some(file));
                            return Poll::Ready(Some(Ok(block)));
                        }
                        Err(error) => {
                            self.state = State::Idle(None);
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
            }
        }
    }
}
