//! The two directions of a connection, for a session that reads and writes at the same time.

use crate::stream::{Carrier, Layer, Stream};
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_rustls::server::TlsStream;

/// The receiving direction of a [`Stream`].
#[derive(Debug)]
pub struct Receiver(Incoming);

/// The sending direction of a [`Stream`].
#[derive(Debug)]
pub struct Sender(Outgoing);

enum Incoming {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
    Tls(ReadHalf<TlsStream<Carrier>>),
}

enum Outgoing {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
    Tls(WriteHalf<TlsStream<Carrier>>),
}

impl Stream {
    /// Parts the stream by direction. In clear text the halves share nothing but the socket.
    pub fn into_split(self) -> (Receiver, Sender) {
        match self.into_layer() {
            Layer::Clear(Carrier::Tcp(tcp)) => {
                let (read, write) = tcp.into_split();
                (Receiver(Incoming::Tcp(read)), Sender(Outgoing::Tcp(write)))
            }
            Layer::Clear(Carrier::Unix(unix)) => {
                let (read, write) = unix.into_split();
                (Receiver(Incoming::Unix(read)), Sender(Outgoing::Unix(write)))
            }
            Layer::Tls(tls) => {
                let (read, write) = tokio::io::split(*tls);
                (Receiver(Incoming::Tls(read)), Sender(Outgoing::Tls(write)))
            }
        }
    }
}

impl Sender {
    /// Whether [`write_by`](Self::write_by) works: no TLS is over the socket.
    pub fn is_clear(&self) -> bool {
        !matches!(self.0, Outgoing::Tls(_))
    }

    /// As [`Stream::write_by`].
    ///
    /// # Errors
    /// As [`Stream::write_by`].
    pub async fn write_by<R>(
        &self,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        match &self.0 {
            Outgoing::Tcp(half) => {
                let tcp: &TcpStream = half.as_ref();
                tcp.async_io(Interest::WRITABLE, || call(tcp.as_fd())).await
            }
            Outgoing::Unix(half) => {
                let unix: &UnixStream = half.as_ref();
                unix.async_io(Interest::WRITABLE, || call(unix.as_fd())).await
            }
            Outgoing::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

macro_rules! each {
    ($self:ident, $kind:ident, $half:ident => $call:expr) => {
        match &mut $self.get_mut().0 {
            $kind::Tcp($half) => $call,
            $kind::Unix($half) => $call,
            $kind::Tls($half) => $call,
        }
    };
}

impl AsyncRead for Receiver {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, Incoming, half => Pin::new(half).poll_read(cx, buf))
    }
}

impl AsyncWrite for Sender {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, Outgoing, half => Pin::new(half).poll_write(cx, data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, Outgoing, half => Pin::new(half).poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        // Sockets and rustls both gather.
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Outgoing, half => Pin::new(half).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Outgoing, half => Pin::new(half).poll_shutdown(cx))
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "tcp",
            Self::Unix(_) => "unix",
            Self::Tls(_) => "tls",
        })
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "tcp",
            Self::Unix(_) => "unix",
            Self::Tls(_) => "tls",
        })
    }
}
