//! A tap on an HTTP/2 connection that watches frames go by, and ends the connection or announces
//! GOAWAY at an exact frame: what a correct server implementation will not do on request.

use crate::wire::ResetSwitch;
use bytes::{Buf as _, BufMut as _, BytesMut};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

const PREFACE_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 9;
/// Outgoing bytes kept before the sender feels back pressure.
const OUT_BYTES_MAX: usize = 256 << 10;

/// Frame types (RFC 9113, section 6).
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const GOAWAY: u8 = 0x7;
const END_STREAM: u8 = 0x1;

/// How a connection, or one stream of it, is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndBy {
    Close,
    Reset,
    /// Only the stream, with this error code.
    ResetStream(u32),
}

/// When an answer's progress ends the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// After the stream's head and that many bytes of its data.
    Sent(u64),
    /// After the stream's last frame.
    StreamEnds,
}

#[derive(Debug)]
struct Cut {
    when: When,
    by: EndBy,
    done: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Plan {
    cuts: HashMap<u32, Cut>,
    streams_max: Option<u32>,
    responses_max: Option<u32>,
}

/// What is to happen on a connection; the streams' tasks add to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TapOrders(Arc<Mutex<Plan>>);

impl TapOrders {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection, or the stream, at that point of that stream's answer. What is
    /// returned resolves once that was done.
    pub(crate) fn cut(&self, stream: u32, when: When, by: EndBy) -> oneshot::Receiver<()> {
        let (done, is_done) = oneshot::channel();
        self.plan().cuts.insert(stream, Cut { when, by, done });
        is_done
    }

    /// GOAWAY once that many streams were opened.
    pub(crate) fn go_away_after(&self, streams: u32) {
        self.plan().streams_max = Some(streams);
    }

    /// Closes without a word once that many streams have ended.
    pub(crate) fn close_after(&self, responses: u32) {
        self.plan().responses_max = Some(responses);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    head_sent: bool,
    data_bytes: u64,
    ended: bool,
    /// Reset by the tap; what the implementation still sends is dropped.
    reset: bool,
}

/// The tap itself, between the HTTP/2 implementation and its socket.
#[derive(Debug)]
pub(crate) struct FrameTap<T> {
    inner: T,
    orders: TapOrders,
    reset: ResetSwitch,
    preface_left: usize,
    /// Received, not yet looked at.
    raw_in: BytesMut,
    /// Received and let through.
    clean_in: BytesMut,
    /// Sent by the implementation, not yet a whole frame.
    partial_out: BytesMut,
    /// On its way to the socket.
    out: BytesMut,
    streams_opened: u32,
    streams_ended: u32,
    stream_last: u32,
    /// Set once GOAWAY was sent: the last stream that is still served.
    going_away: Option<u32>,
    go_away_due: bool,
    progress: HashMap<u32, Progress>,
    end: Option<EndBy>,
}

impl<T> FrameTap<T> {
    pub(crate) fn new(inner: T, orders: TapOrders, reset: ResetSwitch) -> Self {
        Self {
            inner,
            orders,
            reset,
            preface_left: PREFACE_BYTES,
            raw_in: BytesMut::new(),
            clean_in: BytesMut::new(),
            partial_out: BytesMut::new(),
            out: BytesMut::new(),
            streams_opened: 0,
            streams_ended: 0,
            stream_last: 0,
            going_away: None,
            go_away_due: false,
            progress: HashMap::new(),
            end: None,
        }
    }

    /// Lets whole frames through, except those of streams after GOAWAY.
    fn sift_incoming(&mut self) {
        if self.preface_left > 0 {
            let taken = self.preface_left.min(self.raw_in.len());
            self.clean_in.put(self.raw_in.split_to(taken));
            self.preface_left -= taken;
        }
        while let Some(frame) = next_frame(&mut self.raw_in) {
            let (kind, stream) = (frame[3], stream_id(&frame));
            let known = self.going_away.is_none_or(|last| stream <= last);
            if !known {
                continue;
            }
            if kind == HEADERS && stream > self.stream_last {
                self.stream_last = stream;
                self.streams_opened += 1;
                let max = self.orders.plan().streams_max;
                if max.is_some_and(|max| self.streams_opened >= max) {
                    self.going_away = Some(stream);
                    self.go_away_due = true;
                }
            }
            self.clean_in.put(frame);
        }
    }

    /// Moves whole frames to the socket's buffer and notes what they mean, up to the frame at
    /// which the connection is to end.
    fn sift_outgoing(&mut self) {
        while self.end.is_none() {
            if let (true, Some(last)) = (self.go_away_due, self.going_away) {
                self.go_away_due = false;
                self.out.put(go_away_frame(last));
            }
            let Some(frame) = next_frame(&mut self.partial_out) else { break };
            let (kind, flags, stream) = (frame[3], frame[4], stream_id(&frame));
            let payload_bytes = frame.len() - FRAME_HEADER_BYTES;
            if stream == 0 {
                self.out.put(frame);
            } else if !self.progress.get(&stream).is_some_and(|progress| progress.reset) {
                // A stream that ends by a reset of the implementation's, where the script says
                // that the connection ends: the client is to see the latter only.
                if !(kind == RST_STREAM && self.orders.plan().cuts.contains_key(&stream)) {
                    self.out.put(frame);
                }
                self.note_sent(kind, flags, stream, payload_bytes);
            }
        }
    }

    fn note_sent(&mut self, kind: u8, flags: u8, stream: u32, payload_bytes: usize) {
        let progress = self.progress.entry(stream).or_default();
        progress.head_sent |= kind == HEADERS;
        if kind == DATA {
            progress.data_bytes += payload_bytes as u64;
        }
        let ends = kind == RST_STREAM || (kind <= HEADERS && flags & END_STREAM != 0);
        let mut newly_ended = ends && !progress.ended;
        progress.ended |= ends;
        let mut plan = self.orders.plan();
        let reached = plan.cuts.get(&stream).is_some_and(|cut| match cut.when {
            When::Sent(bytes) => progress.head_sent && progress.data_bytes >= bytes,
            When::StreamEnds => progress.ended,
        });
        if let Some(cut) = reached.then(|| plan.cuts.remove(&stream)).flatten() {
            if let EndBy::ResetStream(code) = cut.by {
                newly_ended |= !progress.ended;
                progress.ended = true;
                progress.reset = true;
                self.out.put(reset_frame(stream, code));
            } else {
                self.end = Some(cut.by);
            }
            // The task may have ended with its stream; then nobody waits.
            let _ = cut.done.send(());
        }
        self.streams_ended += u32::from(newly_ended);
        let used_up = plan.responses_max.is_some_and(|max| self.streams_ended >= max);
        let gone = self.going_away.is_some() && self.streams_ended >= self.streams_opened;
        if self.end.is_none() && (used_up || gone) {
            self.end = Some(EndBy::Close);
        }
    }
}

fn next_frame(buf: &mut BytesMut) -> Option<BytesMut> {
    let length = buf.get(..3)?;
    let payload_bytes =
        usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
    let frame_bytes = FRAME_HEADER_BYTES + payload_bytes;
    (buf.len() >= frame_bytes).then(|| buf.split_to(frame_bytes))
}

fn stream_id(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]) & 0x7fff_ffff
}

fn go_away_frame(last_stream: u32) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_uint(8, 3);
    frame.put_u8(GOAWAY);
    frame.put_u8(0);
    frame.put_u32(0);
    frame.put_u32(last_stream);
    frame.put_u32(0); // NO_ERROR
    frame
}

impl<T: AsyncWrite + Unpin> FrameTap<T> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sift_outgoing();
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.out))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.advance(written);
        }
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        match self.end {
            None => Poll::Ready(Ok(())),
            Some(by) => {
                if by == EndBy::Reset {
                    self.reset.turn_on();
                }
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for FrameTap<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.end.is_some() {
                ready!(this.poll_drain(cx))?;
            }
            if !this.clean_in.is_empty() {
                let taken = this.clean_in.len().min(buf.remaining());
                buf.put_slice(&this.clean_in.split_to(taken));
                return Poll::Ready(Ok(()));
            }
            let mut space = [0; 16 << 10];
            let mut piece = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.raw_in.put_slice(piece.filled());
            this.sift_incoming();
            if this.go_away_due {
                // Do not wait for the implementation to have something to say.
                if let Poll::Ready(Err(error)) = this.poll_drain(cx) {
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for FrameTap<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.out.len() + this.partial_out.len() >= OUT_BYTES_MAX || this.end.is_some() {
            ready!(this.poll_drain(cx))?;
        }
        this.partial_out.put_slice(data);
        this.sift_outgoing();
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_drain(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

fn reset_frame(stream: u32, code: u32) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_uint(4, 3);
    frame.put_u8(RST_STREAM);
    frame.put_u8(0);
    frame.put_u32(stream);
    frame.put_u32(code);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_split_at_their_length() {
        let mut buf = BytesMut::from(&[0, 0, 2, DATA, END_STREAM, 0, 0, 0, 5, 7, 8, 0][..]);
        let frame = next_frame(&mut buf).expect("a whole frame");
        assert_eq!((frame.len(), stream_id(&frame)), (11, 5));
        assert!(next_frame(&mut buf).is_none());
        assert_eq!(buf.len(), 1);
    }

    #[test]
    fn go_away_names_the_last_stream_and_no_error() {
        let frame = go_away_frame(39);
        assert_eq!(&frame[..], [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 39, 0, 0, 0, 0]);
    }
}
