//! The receiving side: requests come in, each is started.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use trunkline_listen::{Drain, Receiver};
use trunkline_proto::nbd::{Command, Header, Request};

use super::respond::{Permits, Responder};
use crate::error::SessionError;
use crate::limits::READ_PART_BYTES_MAX;

/// Room for requests that came together, in bytes.
pub(super) const INPUT_BYTES: usize = 8 * 1024;

/// Reads requests until the client disconnects or `drain` starts, then waits for those under
/// way. Dropping this future drops them.
pub(super) async fn run(
    receiver: Receiver,
    input: BytesMut,
    responder: Arc<Responder>,
    drain: &Drain,
) -> Result<(), SessionError> {
    let requests = Arc::new(Semaphore::new(responder.limits.requests_max as usize));
    let mut reading = ReadLoop { receiver, input, responder, requests, tasks: JoinSet::new() };
    tokio::select! {
        read = reading.requests() => read?,
        () = drain.started() => {}
    }
    while let Some(ended) = reading.tasks.join_next().await {
        ended.map_err(|_| SessionError::RequestLost)?;
    }
    Ok(())
}

struct ReadLoop {
    receiver: Receiver,
    input: BytesMut,
    responder: Arc<Responder>,
    requests: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

impl ReadLoop {
    /// Starts requests until the client is done.
    async fn requests(&mut self) -> Result<(), SessionError> {
        let style = self.responder.agreement.style;
        loop {
            let Some(header) = Header::decode(style, &mut self.input)? else {
                if !self.more().await? {
                    return Ok(());
                }
                continue;
            };
            while let Some(ended) = self.tasks.try_join_next() {
                // A lost request would leave the client waiting for ever.
                ended.map_err(|_| SessionError::RequestLost)?;
            }
            let request = acquire(&self.requests, 1).await;
            let payload_bytes = self.payload_bytes(&header)?;
            let judged = self.responder.agreement.judge(&header);
            let held = match &judged {
                Ok(Request { command: Command::Read { whole: false }, length, .. })
                    if self.responder.chunked() =>
                {
                    (*length).min(u64::from(READ_PART_BYTES_MAX))
                }
                Ok(Request { command: Command::Read { .. }, length, .. }) => *length,
                _ => u64::from(payload_bytes),
            };
            let permits = Permits { request, payload: self.responder.hold(held).await };
            let payload = self.payload(payload_bytes).await?;
            match judged {
                Ok(Request { command: Command::Disconnect, .. }) => return Ok(()),
                Ok(request) => {
                    let responder = Arc::clone(&self.responder);
                    self.start(async move { responder.serve(request, payload, permits).await });
                }
                Err(refusal) => self.responder.refuse(&header, refusal, permits).await,
            }
        }
    }

    /// Runs a request on the spot as far as it goes without waiting, and as a task from there.
    fn start(&mut self, serve: impl Future<Output = ()> + Send + 'static) {
        let mut serve = Box::pin(serve);
        let mut cx = Context::from_waker(Waker::noop());
        // The task polls once more with its own waker, so a wake-up lost here is not missed.
        if pin!(&mut serve).poll(&mut cx) == Poll::Pending {
            self.tasks.spawn(serve);
        }
    }

    /// The length of the payload that follows a header; one that was not agreed ends the session.
    fn payload_bytes(&self, header: &Header) -> Result<u32, SessionError> {
        let agreement = &self.responder.agreement;
        let announced = header.payload_bytes(agreement.style);
        match u32::try_from(announced) {
            Ok(length) if length <= agreement.block_sizes.payload_max => Ok(length),
            _ => Err(SessionError::Payload(announced)),
        }
    }

    /// Takes a payload that follows its header, in memory of its own.
    async fn payload(&mut self, length: u32) -> Result<Bytes, SessionError> {
        let length = length as usize;
        if length == 0 {
            return Ok(Bytes::new());
        }
        let mut payload = BytesMut::with_capacity(length);
        let here = length.min(self.input.len());
        payload.extend_from_slice(&self.input[..here]);
        self.input.advance(here);
        while payload.len() < length {
            let left = (length - payload.len()) as u64;
            let mut bounded = (&mut self.receiver).take(left);
            if bounded.read_buf(&mut payload).await? == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
        }
        Ok(payload.freeze())
    }

    /// Receives more; false when the client has closed.
    async fn more(&mut self) -> Result<bool, SessionError> {
        self.input.reserve(INPUT_BYTES);
        Ok(self.receiver.read_buf(&mut self.input).await? > 0)
    }
}

/// Waits for `count` permits of a semaphore that is never closed.
pub(super) async fn acquire(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    let permits = Arc::clone(semaphore).acquire_many_owned(count).await;
    permits.expect("the semaphore of a session is never closed")
}
