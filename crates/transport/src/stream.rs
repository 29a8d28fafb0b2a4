//! The byte streams below HTTP: what was dialled, and TLS over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::client::TlsStream;

/// What reaches the origin before the origin's own TLS.
pub(crate) enum Carrier {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    /// A tunnel through a proxy that is itself spoken to over TLS.
    TlsProxy(Box<TlsStream<TcpStream>>),
}

/// A carrier, in clear text or under the origin's TLS.
pub(crate) enum Stream {
    Clear(Carrier),
    Tls(Box<TlsStream<BufReader<Carrier>>>),
}

/// Bytes received at once below TLS. rustls asks for one record at a time; a busy connection has
/// many small ones waiting, and each system call saved is worth a copy.
pub(crate) const TLS_READ_BYTES: usize = 64 * 1024;

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr, $type:ident { $($(#[$meta:meta])* $variant:ident),+ }) => {
        match $self.get_mut() {
            $($(#[$meta])* $type::$variant($stream) => $call,)+
        }
    };
}

macro_rules! byte_stream {
    ($type:ident { $($(#[$meta:meta])* $variant:ident),+ }) => {
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                delegate!(self, s => Pin::new(s).poll_read(cx, buf), $type { $($(#[$meta])* $variant),+ })
            }
        }

        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                delegate!(self, s => Pin::new(s).poll_write(cx, buf), $type { $($(#[$meta])* $variant),+ })
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                delegate!(self, s => Pin::new(s).poll_write_vectored(cx, bufs), $type { $($(#[$meta])* $variant),+ })
            }

            fn is_write_vectored(&self) -> bool {
                match self {
                    $($(#[$meta])* $type::$variant(stream) => stream.is_write_vectored(),)+
                }
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                delegate!(self, s => Pin::new(s).poll_flush(cx), $type { $($(#[$meta])* $variant),+ })
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                delegate!(self, s => Pin::new(s).poll_shutdown(cx), $type { $($(#[$meta])* $variant),+ })
            }
        }
    };
}

byte_stream!(Carrier {
    Tcp,
    #[cfg(unix)]
    Unix,
    TlsProxy
});
byte_stream!(Stream { Clear, Tls });
