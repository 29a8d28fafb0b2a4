//! A client's connection: where it comes from, and what its send side can do.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

use crate::content::FileSlice;

/// Most bytes that one call hands to the kernel to send from a file, so that a fast client
/// leaves the others their turn.
const SEND_FILE_BYTES_MAX: u64 = 1 << 20;

/// A byte stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An accepted connection before TLS, or without it.
pub enum ClientStream {
    /// TCP; the kernel can send from files.
    Tcp(TcpStream),
    /// A Unix socket, or any other stream socket that behaves alike; the kernel can send from
    /// files.
    Unix(UnixStream),
    /// Anything else: TLS, pipes, memory.
    Other(Box<dyn Duplex>),
}

/// Makes the server's side of a TLS session out of a connection.
pub trait StartTls: Debug + Send + Sync {
    /// Runs the TLS handshake.
    fn accept(&self, stream: ClientStream) -> BoxFuture<'_, io::Result<Box<dyn Duplex>>>;
}

impl Debug for ClientStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "ClientStream::Tcp",
            Self::Unix(_) => "ClientStream::Unix",
            Self::Other(_) => "ClientStream::Other",
        })
    }
}

impl ClientStream {
    pub(crate) fn split(self) -> (Receiver, Sender) {
        match self {
            Self::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (Receiver::Tcp(read), Sender::Tcp(write))
            }
            Self::Unix(stream) => {
                let (read, write) = stream.into_split();
                (Receiver::Unix(read), Sender::Unix(write))
            }
            Self::Other(stream) => {
                let (read, write) = tokio::io::split(stream);
                (Receiver::Other(read), Sender::Other(write))
            }
        }
    }
}

pub(crate) enum Receiver {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
    Other(ReadHalf<Box<dyn Duplex>>),
}

pub(crate) enum Sender {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
    Other(WriteHalf<Box<dyn Duplex>>),
}

/// Forwards a poll to whatever stream is inside.
macro_rules! each {
    ($self:ident, $kind:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            $kind::Tcp($stream) => $call,
            $kind::Unix($stream) => $call,
            $kind::Other($stream) => $call,
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, ClientStream, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, ClientStream, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, ClientStream, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, ClientStream, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

impl AsyncRead for Receiver {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, Receiver, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Sender {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, Sender, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, Sender, stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Other(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Sender, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, Sender, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

impl Sender {
    /// Whether the kernel can send from a file to this connection.
    pub(crate) fn sends_files(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Has the kernel send up to one turn's worth of `slice` from `done` bytes in; returns how
    /// many it took. Zero means that the file ends here.
    pub(crate) async fn send_file(&self, slice: &FileSlice, done: u64) -> io::Result<u64> {
        std::future::poll_fn(|cx| self.poll_send_file(cx, slice, done)).await
    }

    fn poll_send_file(
        &self,
        cx: &mut Context<'_>,
        slice: &FileSlice,
        done: u64,
    ) -> Poll<io::Result<u64>> {
        let mut offset = slice.offset + done;
        let count = (slice.length - done).min(SEND_FILE_BYTES_MAX) as usize;
        let file = &Arc::as_ref(&slice.file).file;
        loop {
            let sent = match self {
                Self::Tcp(half) => {
                    let socket: &TcpStream = half.as_ref();
                    ready!(socket.poll_write_ready(cx))?;
                    socket.try_io(Interest::WRITABLE, || {
                        Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), count)?)
                    })
                }
                Self::Unix(half) => {
                    let socket: &UnixStream = half.as_ref();
                    ready!(socket.poll_write_ready(cx))?;
                    socket.try_io(Interest::WRITABLE, || {
                        Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), count)?)
                    })
                }
                Self::Other(_) => return Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => return Poll::Ready(sent.map(|bytes| bytes as u64)),
            }
        }
    }
}
