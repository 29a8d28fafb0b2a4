//! Bodies between the network, which must not block, and the store, which does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinError;

use crate::reply::BoxError;

/// Pieces of a body that may wait for whoever takes them.
const PIECES_AHEAD_MAX: usize = 8;
/// Small pieces are collected up to this many bytes before they are handed on.
const PIECE_BYTES: usize = 64 * 1024;

/// The body of an answer.
#[derive(Debug)]
pub struct ReplyBody(Kind);

#[derive(Debug)]
enum Kind {
    Full(Bytes),
    Stream { pieces: mpsc::Receiver<io::Result<Bytes>>, left: Option<u64> },
}

impl ReplyBody {
    pub(crate) fn empty() -> Self {
        Self(Kind::Full(Bytes::new()))
    }

    pub(crate) fn full(data: impl Into<Bytes>) -> Self {
        Self(Kind::Full(data.into()))
    }

    /// A body that `work` writes on a blocking thread; `length` in bytes when it is known.
    pub(crate) fn stream(
        length: Option<u64>,
        work: impl FnOnce(&mut Outlet) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD_MAX);
        tokio::task::spawn_blocking(move || {
            let mut outlet = Outlet { sender, held: BytesMut::with_capacity(PIECE_BYTES) };
            let result = work(&mut outlet).and_then(|()| outlet.flush());
            if let Err(error) = result {
                // An error in a body's middle: the connection is cut, so it cannot look whole.
                tracing::warn!(%error, "an answer was cut short");
                let _ = outlet.sender.blocking_send(Err(error));
            }
        });
        Self(Kind::Stream { pieces, left: length })
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Kind::Full(data) if data.is_empty() => Poll::Ready(None),
            Kind::Full(data) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            Kind::Stream { pieces, left } => pieces.poll_recv(cx).map(|piece| {
                if let (Some(Ok(data)), Some(left)) = (&piece, left) {
                    *left = left.saturating_sub(data.len() as u64);
                }
                piece.map(|piece| piece.map(Frame::data))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(data) => data.is_empty(),
            Kind::Stream { left, .. } => *left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(data) => SizeHint::with_exact(data.len() as u64),
            Kind::Stream { left: Some(left), .. } => SizeHint::with_exact(*left),
            Kind::Stream { left: None, .. } => SizeHint::default(),
        }
    }
}

/// Where a blocking thread writes a body.
#[derive(Debug)]
pub(crate) struct Outlet {
    sender: mpsc::Sender<io::Result<Bytes>>,
    held: BytesMut,
}

impl Outlet {
    /// Writes; waits while the reader is behind.
    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        if self.held.len() + data.len() > PIECE_BYTES {
            self.flush()?;
        }
        if data.len() >= PIECE_BYTES {
            return self.send(Bytes::copy_from_slice(data));
        }
        self.held.extend_from_slice(data);
        Ok(())
    }

    /// Copies exactly `bytes` bytes of a reader.
    pub(crate) fn copy(&mut self, reader: &mut dyn io::Read, mut bytes: u64) -> io::Result<()> {
        let mut block = vec![0; PIECE_BYTES.min(usize::try_from(bytes).unwrap_or(PIECE_BYTES))];
        while bytes > 0 {
            let wanted = block.len().min(usize::try_from(bytes).unwrap_or(block.len()));
            let count = reader.read(&mut block[..wanted])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.write(&block[..count])?;
            bytes -= count as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let data = self.held.split().freeze();
        self.held.reserve(PIECE_BYTES);
        self.send(data)
    }

    fn send(&mut self, data: Bytes) -> io::Result<()> {
        self.sender.blocking_send(Ok(data)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// A request's body as a blocking thread reads it.
#[derive(Debug)]
pub(crate) struct Pieces(mpsc::Receiver<Result<Bytes, BoxError>>);

impl Pieces {
    /// The next piece; `None` at the end, which may be a cut.
    pub(crate) fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        self.0.blocking_recv()
    }
}

/// Runs `work` on a blocking thread and feeds it the body. When `work` ends early, the rest of the
/// body is not read.
pub(crate) async fn feed<B, T>(
    mut body: B,
    work: impl FnOnce(&mut Pieces) -> T + Send + 'static,
) -> Result<T, JoinError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
    T: Send + 'static,
{
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD_MAX);
    let worker = tokio::task::spawn_blocking(move || work(&mut Pieces(receiver)));
    while let Some(frame) = body.frame().await {
        let piece = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => Ok(data),
            Ok(Err(_trailers)) => continue,
            Err(error) => Err(error.into()),
        };
        let failed = piece.is_err();
        if sender.send(piece).await.is_err() || failed {
            break;
        }
    }
    drop(sender);
    worker.await
}

/// Collects a body of at most `bytes_max` bytes; `Ok(None)` when it is longer.
pub(crate) async fn collect<B>(mut body: B, bytes_max: usize) -> Result<Option<Bytes>, BoxError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Into::into)?.into_data() {
            if all.len() + data.len() > bytes_max {
                return Ok(None);
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(Some(all.freeze()))
}
