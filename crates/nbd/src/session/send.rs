//! The sending side: replies leave in the order they finish, many in one call to the kernel.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use trunkline_listen::Sender;
use trunkline_proto::nbd::{ReplyEncoder, ReplyStyle, RequestId};

use super::respond::Permits;
use crate::content::{FileSlice, zero_bytes};
use crate::error::{Error, SessionError};

/// Most buffers handed to the kernel at once.
const SLICES_MAX: usize = 64;
/// Most bytes that one call has the kernel send from a file, so that other clients get turns.
const SEND_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most replies taken from the queue at once.
const REPLIES_MAX: usize = 32;

/// A reply, or one part of a read's, and what its request holds until it is sent.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) parts: Vec<Part>,
    /// Set when the reply still needs its end mark, which tells whether the files could be sent.
    pub(super) end: Option<RequestId>,
    pub(super) request: Option<OwnedSemaphorePermit>,
    pub(super) payload: OwnedSemaphorePermit,
}

/// Bytes of a reply.
#[derive(Debug)]
pub(super) enum Part {
    Bytes(Bytes),
    File(FileSlice),
}

impl Reply {
    /// A reply that is all in one buffer.
    pub(super) fn whole(head: BytesMut, permits: Permits) -> Self {
        let parts = vec![Part::Bytes(head.freeze())];
        Self { parts, end: None, request: Some(permits.request), payload: permits.payload }
    }

    /// A reply without bytes yet.
    pub(super) fn with_payload(payload: OwnedSemaphorePermit) -> Self {
        Self { parts: Vec::with_capacity(4), end: None, request: None, payload }
    }
}

/// Sends replies until the queue closes, then closes the connection.
pub(super) async fn run(
    sender: Sender,
    mut queue: mpsc::Receiver<Reply>,
    style: ReplyStyle,
) -> Result<(), SessionError> {
    let mut sending = Sending { sender, waiting: Vec::new(), encoder: ReplyEncoder::new(style) };
    let mut replies = Vec::with_capacity(REPLIES_MAX);
    // Permits go back only when the bytes they stand for have left.
    let mut held = Vec::with_capacity(REPLIES_MAX);
    while queue.recv_many(&mut replies, REPLIES_MAX).await > 0 {
        for reply in replies.drain(..) {
            sending.reply(reply.parts, reply.end).await?;
            held.push((reply.request, reply.payload));
            if sending.waiting.is_empty() {
                held.clear();
            }
        }
        sending.flush().await?;
        held.clear();
    }
    // The client may be gone already, which is no fault once all was sent.
    let _ = sending.sender.shutdown().await;
    Ok(())
}

struct Sending {
    sender: Sender,
    /// Buffers not yet handed to the kernel.
    waiting: Vec<Bytes>,
    encoder: ReplyEncoder,
}

impl Sending {
    async fn reply(
        &mut self,
        parts: Vec<Part>,
        end: Option<RequestId>,
    ) -> Result<(), SessionError> {
        let mut failure = None;
        for part in parts {
            match part {
                Part::Bytes(bytes) => self.push(bytes).await?,
                Part::File(slice) => {
                    self.write_waiting().await?;
                    if let Some(error) = self.file(&slice).await? {
                        failure = Some(error);
                    }
                }
            }
        }
        match (end, failure) {
            (None, None) => {}
            // Without chunks, or with more to come, success was already claimed.
            (None, Some(error)) => return Err(SessionError::ReplyCut(error)),
            (Some(id), failure) => {
                let mut tail = BytesMut::new();
                match failure {
                    None => self.encoder.end_of_read(&mut tail, id),
                    Some(error) => {
                        self.encoder.error(&mut tail, id, error.wire(), &error.to_string());
                    }
                }
                self.push(tail.freeze()).await?;
            }
        }
        Ok(())
    }

    async fn push(&mut self, bytes: Bytes) -> Result<(), SessionError> {
        self.waiting.push(bytes);
        if self.waiting.len() >= SLICES_MAX { self.write_waiting().await } else { Ok(()) }
    }

    /// Has the kernel send a part of a file. When the file fails, zeroes keep the frame and the
    /// error is returned; where nothing can tell the client, the session must end.
    async fn file(&mut self, slice: &FileSlice) -> Result<Option<Error>, SessionError> {
        let mut done = 0;
        while done < slice.length {
            let mut offset = slice.offset + done;
            let count = (slice.length - done).min(SEND_FILE_BYTES_MAX) as usize;
            let sent = self.sender.write_by(|socket| {
                Ok(rustix::fs::sendfile(socket, &slice.file.file, Some(&mut offset), count)?)
            });
            let failure = match sent.await {
                Ok(0) => Error::Shrunk { name: Arc::clone(&slice.file.name) },
                Ok(sent) => {
                    done += sent as u64;
                    continue;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if is_of_client(&error) => return Err(error.into()),
                Err(error) => Error::local(&slice.file.name, error),
            };
            if !self.encoder.chunked() {
                return Err(SessionError::ReplyCut(failure));
            }
            tracing::warn!(error = %failure, "a file could not be sent");
            for zeroes in zero_bytes(slice.length - done) {
                self.push(zeroes).await?;
            }
            return Ok(Some(failure));
        }
        Ok(None)
    }

    async fn write_waiting(&mut self) -> Result<(), SessionError> {
        let mut first = 0;
        while first < self.waiting.len() {
            let slices: Vec<IoSlice<'_>> =
                self.waiting[first..].iter().map(|bytes| IoSlice::new(bytes)).collect();
            let mut sent = self.sender.write_vectored(&slices).await?;
            if sent == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into());
            }
            while sent > 0 {
                let now = sent.min(self.waiting[first].len());
                self.waiting[first].advance(now);
                sent -= now;
                if self.waiting[first].is_empty() {
                    first += 1;
                }
            }
        }
        self.waiting.clear();
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), SessionError> {
        self.write_waiting().await?;
        Ok(self.sender.flush().await?)
    }
}

/// Whether an error of sending from a file is the connection's and not the file's.
fn is_of_client(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    matches!(
        error.kind(),
        K::BrokenPipe | K::ConnectionReset | K::ConnectionAborted | K::NotConnected | K::TimedOut
    )
}
