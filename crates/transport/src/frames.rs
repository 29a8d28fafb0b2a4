//! What an HTTP/2 server says of the whole connection, read off its frames as they pass.
//!
//! hyper keeps both facts to itself until a request is sent: that the server sent GOAWAY, so that
//! a new stream would be in vain, and how many streams it allows. The pool needs them before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Streams assumed to be allowed until the server's SETTINGS have come; RFC 9113 §6.5.2
/// recommends that servers allow no fewer.
const STREAMS_MAX_INITIAL: u32 = 100;

/// Frame header (RFC 9113 §4.1).
const HEADER_BYTES: usize = 9;

/// One setting (RFC 9113 §6.5.1).
const SETTING_BYTES: usize = 6;

const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// The facts, shared by the connection's reader and its users.
#[derive(Debug)]
pub(crate) struct Signals {
    going_away: AtomicBool,
    streams_max: AtomicU32,
}

impl Default for Signals {
    fn default() -> Self {
        let streams_max = AtomicU32::new(STREAMS_MAX_INITIAL);
        Self { going_away: AtomicBool::new(false), streams_max }
    }
}

impl Signals {
    pub(crate) fn is_going_away(&self) -> bool {
        self.going_away.load(Ordering::Acquire)
    }

    pub(crate) fn streams_max(&self) -> usize {
        usize::try_from(self.streams_max.load(Ordering::Acquire)).unwrap_or(usize::MAX)
    }
}

/// Follows frames through bytes that come in pieces of any size. What is no HTTP/2 is not noticed
/// here: the protocol's implementation fails the connection.
#[derive(Debug, Default)]
struct FrameReader {
    /// The header, or the setting, that is not yet complete.
    partial: [u8; HEADER_BYTES],
    partial_bytes: usize,
    /// Bytes of the frame's payload still to come.
    payload_left: usize,
    in_settings: bool,
}

impl FrameReader {
    fn read(&mut self, mut bytes: &[u8], signals: &Signals) {
        while !bytes.is_empty() {
            if self.payload_left > 0 && !self.in_settings {
                let passed = self.payload_left.min(bytes.len());
                self.payload_left -= passed;
                bytes = &bytes[passed..];
                continue;
            }
            let in_payload = self.payload_left > 0;
            let wanted =
                if in_payload { SETTING_BYTES.min(self.payload_left) } else { HEADER_BYTES };
            let taken = (wanted - self.partial_bytes).min(bytes.len());
            self.partial[self.partial_bytes..][..taken].copy_from_slice(&bytes[..taken]);
            self.partial_bytes += taken;
            bytes = &bytes[taken..];
            if self.partial_bytes < wanted {
                return;
            }
            self.partial_bytes = 0;
            if in_payload {
                self.payload_left -= wanted;
                self.setting(wanted, signals);
            } else {
                self.header(signals);
            }
        }
    }

    fn header(&mut self, signals: &Signals) {
        let [high, middle, low, kind, ..] = self.partial;
        self.payload_left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.in_settings = kind == SETTINGS;
        if kind == GOAWAY {
            signals.going_away.store(true, Ordering::Release);
        }
    }

    fn setting(&self, bytes: usize, signals: &Signals) {
        let [id_high, id_low, a, b, c, d, ..] = self.partial;
        let whole = bytes == SETTING_BYTES;
        if whole && u16::from_be_bytes([id_high, id_low]) == MAX_CONCURRENT_STREAMS {
            signals.streams_max.store(u32::from_be_bytes([a, b, c, d]), Ordering::Release);
        }
    }
}

/// A byte stream whose incoming frames are followed.
pub(crate) struct Watched<S> {
    inner: S,
    reader: FrameReader,
    signals: Arc<Signals>,
}

impl<S> Watched<S> {
    pub(crate) fn new(inner: S, signals: Arc<Signals>) -> Self {
        Self { inner, reader: FrameReader::default(), signals }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let poll = Pin::new(&mut this.inner).poll_read(cx, buf);
        this.reader.read(&buf.filled()[before..], &this.signals);
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 1];
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn settings_and_goaway_are_seen_however_the_bytes_are_cut() {
        let mut bytes = frame(SETTINGS, &[0, 4, 0, 0, 1, 0, 0, 3, 0, 0, 0, 7]);
        // A body that looks like a GOAWAY header is none.
        bytes.extend(frame(0, &frame(GOAWAY, &[0; 8])));
        bytes.extend(frame(SETTINGS, &[]));
        let end = bytes.len();
        bytes.extend(frame(GOAWAY, &[0; 8]));
        for step in 1..bytes.len() {
            let (signals, mut reader) = (Signals::default(), FrameReader::default());
            bytes[..end].chunks(step).for_each(|piece| reader.read(piece, &signals));
            assert_eq!(signals.streams_max(), 7, "in steps of {step}");
            assert!(!signals.is_going_away());
            bytes[end..].chunks(step).for_each(|piece| reader.read(piece, &signals));
            assert!(signals.is_going_away());
        }
    }

    #[test]
    fn bytes_that_are_no_frames_do_no_harm() {
        let (signals, mut reader) = (Signals::default(), FrameReader::default());
        reader.read(&[0xff; 1000], &signals);
        reader.read(&frame(SETTINGS, &[0, 3, 0]), &signals);
        assert_eq!(signals.streams_max(), STREAMS_MAX_INITIAL as usize);
    }
}
