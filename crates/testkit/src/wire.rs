//! The socket under a connection, with a simulated line: latency, bandwidth, and a sudden end.

use bytes::{Buf as _, Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep, sleep_until};

/// Received bytes kept on the simulated line before the sender feels back pressure.
const LINE_BYTES_MAX: usize = 8 << 20;
/// The most that is written at once when the bandwidth is limited, so that it flows evenly.
const PACED_WRITE_BYTES: usize = 8 << 10;

/// Any byte stream a protocol can be spoken over.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// Turned on, the socket is closed with a reset instead of an orderly end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResetSwitch(Arc<AtomicBool>);

impl ResetSwitch {
    pub(crate) fn turn_on(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What the simulated line does to the bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    /// Round-trip time; zero for none.
    pub(crate) rtt: Duration,
    /// Sending rate.
    pub(crate) bytes_per_second: Option<u64>,
    /// Bytes after which sending fails, and whether by reset.
    pub(crate) sent_bytes_max: Option<(u64, bool)>,
}

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket behind a [`Line`].
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    line: Line,
    reset: ResetSwitch,
    /// Bytes under way, each with its arrival time; an empty piece is the end of the stream.
    under_way: VecDeque<(Instant, Bytes)>,
    under_way_bytes: usize,
    ended: bool,
    connected_at: Instant,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl Wire {
    pub(crate) fn new(socket: Socket, line: Line, reset: ResetSwitch) -> Self {
        // The kernel completed the TCP handshake without delay: charge its round trip here.
        let connected_at = Instant::now() + line.rtt;
        Self {
            socket,
            line,
            reset,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            ended: false,
            connected_at,
            read_timer: Box::pin(sleep_until(connected_at)),
            write_timer: Box::pin(sleep_until(Instant::now())),
        }
    }

    /// Takes in what has arrived at the socket and stamps it with the time of its arrival at the
    /// far end of the line.
    fn poll_take_in(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.ended && self.under_way_bytes < LINE_BYTES_MAX {
            let mut space = [0; 16 << 10];
            let mut buf = ReadBuf::new(&mut space);
            match self.socket.poll_read(cx, &mut buf) {
                Poll::Pending => break,
                Poll::Ready(result) => result?,
            }
            let piece = Bytes::copy_from_slice(buf.filled());
            self.ended = piece.is_empty();
            self.under_way_bytes += piece.len();
            let arrival = Instant::now().max(self.connected_at) + self.line.rtt;
            self.under_way.push_back((arrival, piece));
        }
        Ok(())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.line.rtt.is_zero() {
            return this.socket.poll_read(cx, buf);
        }
        loop {
            this.poll_take_in(cx)?;
            let Some((arrival, piece)) = this.under_way.front_mut() else { return Poll::Pending };
            if *arrival > Instant::now() {
                this.read_timer.as_mut().reset(*arrival);
                ready!(this.read_timer.as_mut().poll(cx));
                continue;
            }
            let taken = piece.len().min(buf.remaining());
            buf.put_slice(&piece[..taken]);
            piece.advance(taken);
            this.under_way_bytes -= taken;
            // The end of the stream stays at the front, to be read again.
            if piece.is_empty() && taken > 0 {
                this.under_way.pop_front();
            }
            return Poll::Ready(Ok(()));
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut len = data.len();
        if let Some((left, by_reset)) = this.line.sent_bytes_max {
            if left == 0 && len > 0 {
                if by_reset {
                    this.reset.turn_on();
                }
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        if this.line.bytes_per_second.is_some() {
            ready!(this.write_timer.as_mut().poll(cx));
            len = len.min(PACED_WRITE_BYTES);
        }
        let written = ready!(this.socket.poll_write(cx, &data[..len]))?;
        if let Some((left, _)) = &mut this.line.sent_bytes_max {
            *left -= written as u64;
        }
        if let Some(rate) = this.line.bytes_per_second {
            let cost = Duration::from_secs_f64(written as f64 / rate.max(1) as f64);
            let free_at = this.write_timer.deadline().max(Instant::now()) + cost;
            this.write_timer.as_mut().reset(free_at);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(tcp) => Pin::new(tcp).poll_flush(cx),
            Socket::Unix(unix) => Pin::new(unix).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Socket::Unix(unix) => Pin::new(unix).poll_shutdown(cx),
        }
    }
}

impl Socket {
    /// Closes a TCP socket with a reset; a Unix socket, which has none, is just closed.
    pub(crate) fn reset(self) {
        if let Self::Tcp(tcp) = &self {
            linger_not(tcp);
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Unix(unix) => Pin::new(unix).poll_read(cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write(cx, data),
            Self::Unix(unix) => Pin::new(unix).poll_write(cx, data),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let (true, Socket::Tcp(tcp)) = (self.reset.0.load(Ordering::SeqCst), &self.socket) {
            linger_not(tcp);
        }
    }
}

/// Closing with no time to linger sends a reset. If this fails the client sees an orderly end,
/// and the test that expected a reset says so.
fn linger_not(tcp: &TcpStream) {
    let _ = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO));
}

/// A stream with bytes put back in front of it.
#[derive(Debug)]
pub(crate) struct Rewound<T> {
    front: BytesMut,
    inner: T,
}

impl<T> Rewound<T> {
    pub(crate) fn new(front: BytesMut, inner: T) -> Self {
        Self { front, inner }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewound<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.front.is_empty() {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        let taken = this.front.len().min(buf.remaining());
        buf.put_slice(&this.front.split_to(taken));
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewound<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
