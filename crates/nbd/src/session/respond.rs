//! From a judged request to its reply.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use trunkline_proto::nbd::{
    Agreement, Command, Descriptor, ExtentFlags, Header, Refusal, ReplyEncoder, Request, RequestId,
};

use super::read_loop::acquire;
use super::send::{Part, Reply};
use crate::content::{Content, Piece, zero_bytes};
use crate::error::Error;
use crate::export::{Export, Extent, ExtentKind, Writable, Zeroing};
use crate::limits::{READ_PART_BYTES_MAX, SessionLimits};
use crate::stats::{ServeStats, add};

/// Serves the requests of one client.
#[derive(Debug)]
pub(super) struct Responder {
    pub(super) agreement: Arc<Agreement>,
    pub(super) export: Arc<dyn Export>,
    pub(super) replies: mpsc::Sender<Reply>,
    pub(super) sends_files: bool,
    pub(super) stats: Arc<ServeStats>,
    pub(super) payload: Arc<Semaphore>,
    pub(super) limits: SessionLimits,
}

/// What a request holds until its reply is sent.
#[derive(Debug)]
pub(super) struct Permits {
    pub(super) request: OwnedSemaphorePermit,
    pub(super) payload: OwnedSemaphorePermit,
}

impl Responder {
    /// Whether reads may be answered in several chunks.
    pub(super) fn chunked(&self) -> bool {
        self.encoder().chunked()
    }

    /// Waits for room for `bytes` of payload; a request larger than all room gets all of it.
    pub(super) async fn hold(&self, bytes: u64) -> OwnedSemaphorePermit {
        let all = self.limits.payload_bytes_max;
        acquire(&self.payload, u32::try_from(bytes).unwrap_or(all).min(all)).await
    }

    /// Answers a request that must not be carried out.
    pub(super) async fn refuse(&self, header: &Header, refusal: Refusal, permits: Permits) {
        let mut head = BytesMut::new();
        tracing::debug!(?header, reason = refusal.reason, "a request was refused");
        self.encoder().error(&mut head, header.into(), refusal.error, refusal.reason);
        add(&self.stats.failed_requests, 1);
        self.send(Reply::whole(head, permits)).await;
    }

    /// Carries a request out and queues its reply.
    pub(super) async fn serve(&self, request: Request, payload: Bytes, permits: Permits) {
        let id = RequestId::from(&request);
        if let Command::Read { whole } = request.command {
            add(&self.stats.reads, 1);
            add(&self.stats.read_bytes, request.length);
            return self.read(request, whole, permits).await;
        }
        let mut head = BytesMut::new();
        match self.carry_out(request, payload, &mut head).await {
            Ok(()) if head.is_empty() => self.encoder().done(&mut head, id),
            Ok(()) => {}
            Err(error) => self.fail(&mut head, id, &error),
        }
        self.send(Reply::whole(head, permits)).await;
    }

    /// Any command but a read. Leaves `head` empty when the reply is a bare success.
    async fn carry_out(
        &self,
        request: Request,
        payload: Bytes,
        head: &mut BytesMut,
    ) -> Result<(), Error> {
        let Request { offset, length, .. } = request;
        match request.command {
            Command::Write { fua } => {
                add(&self.stats.writes, 1);
                add(&self.stats.written_bytes, length);
                self.writable()?.write(offset, payload).await?;
                self.persist(fua).await
            }
            Command::Trim { fua } => {
                add(&self.stats.writes, 1);
                let how = Zeroing { may_unmap: true, only_fast: true };
                match self.writable()?.zero(offset, length, how).await {
                    // A trim is a hint, and what is slow may be left undone.
                    Ok(()) | Err(Error::NotFast) => self.persist(fua).await,
                    Err(error) => Err(error),
                }
            }
            Command::WriteZeroes { fua, no_hole, fast } => {
                add(&self.stats.writes, 1);
                let how = Zeroing { may_unmap: !no_hole, only_fast: fast };
                self.writable()?.zero(offset, length, how).await?;
                self.persist(fua).await
            }
            Command::Flush => {
                add(&self.stats.other_requests, 1);
                self.persist(true).await
            }
            Command::Cache => {
                add(&self.stats.other_requests, 1);
                self.export.prefetch(offset, length).await
            }
            Command::BlockStatus { one, filtered } => {
                add(&self.stats.other_requests, 1);
                self.block_status(request, one, filtered.then_some(payload), head).await
            }
            Command::Read { .. } | Command::Disconnect => Ok(()),
        }
    }

    async fn block_status(
        &self,
        request: Request,
        one: bool,
        filter: Option<Bytes>,
        head: &mut BytesMut,
    ) -> Result<(), Error> {
        let id = RequestId::from(&request);
        let request = match filter {
            None => request,
            Some(payload) => match self.agreement.judge_status_payload(request, &payload) {
                Ok(request) => request,
                Err(refusal) => {
                    add(&self.stats.failed_requests, 1);
                    self.encoder().error(head, id, refusal.error, refusal.reason);
                    return Ok(());
                }
            },
        };
        let extents = self.export.extents(request.offset, request.length).await?;
        let descriptors = describe(&extents, request.length, one);
        self.encoder().block_status(head, id, Agreement::ALLOCATION_ID, &descriptors);
        Ok(())
    }

    /// Reads, in parts when the client accepts several and one would be large.
    async fn read(&self, request: Request, whole: bool, permits: Permits) {
        let id = RequestId::from(&request);
        let end = request.offset + request.length;
        let parts = self.chunked() && !whole;
        let mut at = request.offset;
        let Permits { request: held, mut payload } = permits;
        loop {
            let left = end - at;
            let length = if parts { left.min(u64::from(READ_PART_BYTES_MAX)) } else { left } as u32;
            let last = u64::from(length) == left;
            let read = self.export.read(at, length).await;
            let read = match read {
                Ok(content) if !self.sends_files => content.load().await,
                read => read,
            };
            let mut reply = Reply::with_payload(payload);
            match read {
                Ok(content) => {
                    debug_assert_eq!(content.len(), u64::from(length), "a read must be whole");
                    self.frame(&mut reply, id, at, content, parts, last);
                }
                Err(error) => {
                    let mut head = BytesMut::new();
                    add(&self.stats.failed_requests, 1);
                    tracing::warn!(offset = at, length, %error, "a read failed");
                    let text = error.to_string();
                    self.encoder().error_at(&mut head, id, error.wire(), &text, at);
                    reply.parts.push(Part::Bytes(head.freeze()));
                    reply.request = Some(held);
                    return self.send(reply).await;
                }
            }
            if last {
                reply.request = Some(held);
                return self.send(reply).await;
            }
            self.send(reply).await;
            at += u64::from(length);
            payload = self.hold((end - at).min(u64::from(READ_PART_BYTES_MAX))).await;
        }
    }

    /// Puts headers before content: holes as such where allowed, data in as few chunks as
    /// possible. A part of a file can still fail while it is sent, so its chunk is never the
    /// last of a reply.
    fn frame(
        &self,
        reply: &mut Reply,
        id: RequestId,
        mut at: u64,
        content: Content,
        holes: bool,
        last: bool,
    ) {
        let encoder = self.encoder();
        let mut pieces = content.into_pieces().into_iter().peekable();
        let is_hole = |piece: &Piece| holes && matches!(piece, Piece::Zeroes(_));
        while let Some(first) = pieces.next() {
            let mut head = BytesMut::new();
            let mut length = first.len();
            if is_hole(&first) {
                let done = last && pieces.peek().is_none();
                encoder.hole(&mut head, id, at, length as u32, done);
                reply.parts.push(Part::Bytes(head.freeze()));
                at += length;
                continue;
            }
            let mut run = vec![first];
            while let Some(next) = pieces.next_if(|next| !is_hole(next)) {
                length += next.len();
                run.push(next);
            }
            let may_fail = run.iter().any(|piece| matches!(piece, Piece::File(_)));
            let ends = last && pieces.peek().is_none();
            encoder.data(&mut head, id, at, length as u32, ends && !may_fail);
            reply.parts.push(Part::Bytes(head.freeze()));
            for piece in run {
                match piece {
                    Piece::Bytes(bytes) => reply.parts.push(Part::Bytes(bytes)),
                    Piece::Zeroes(length) => {
                        reply.parts.extend(zero_bytes(length).map(Part::Bytes));
                    }
                    Piece::File(slice) => reply.parts.push(Part::File(slice)),
                }
            }
            if ends && may_fail && encoder.chunked() {
                reply.end = Some(id);
            }
            at += length;
        }
    }

    fn encoder(&self) -> ReplyEncoder {
        ReplyEncoder::new(self.agreement.style)
    }

    fn writable(&self) -> Result<&dyn Writable, Error> {
        self.export.writable().ok_or(Error::ReadOnly)
    }

    async fn persist(&self, wanted: bool) -> Result<(), Error> {
        if wanted { self.writable()?.flush().await } else { Ok(()) }
    }

    fn fail(&self, head: &mut BytesMut, id: RequestId, error: &Error) {
        add(&self.stats.failed_requests, 1);
        tracing::warn!(%error, "a request failed");
        head.clear();
        self.encoder().error(head, id, error.wire(), &error.to_string());
    }

    async fn send(&self, reply: Reply) {
        // The other end is only gone when the session ends anyway.
        let _ = self.replies.send(reply).await;
    }
}

/// Extents as the protocol wants them: the first ones end before the requested length, and with
/// `one` a single one does not exceed it.
fn describe(extents: &[Extent], length: u64, one: bool) -> Vec<Descriptor> {
    let mut covered = 0;
    let mut descriptors = Vec::with_capacity(extents.len());
    for extent in extents {
        if covered >= length {
            break;
        }
        let flags = match extent.kind {
            ExtentKind::Data => ExtentFlags::empty(),
            ExtentKind::Zero => ExtentFlags::ZERO,
            ExtentKind::Hole => ExtentFlags::HOLE | ExtentFlags::ZERO,
        };
        let length = if one { extent.length.min(length) } else { extent.length };
        descriptors.push(Descriptor { length, flags });
        covered += length;
        if one {
            break;
        }
    }
    descriptors
}
