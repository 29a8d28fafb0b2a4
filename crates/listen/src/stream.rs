//! An accepted connection: bytes both ways, in clear text or under TLS.

use crate::error::Error;
use crate::tls::TlsIdentity;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peer {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A process on this machine.
    Unix {
        /// Its user, where the system tells.
        user_id: Option<u32>,
    },
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { user_id: Some(user_id) } => write!(f, "local user {user_id}"),
            Self::Unix { user_id: None } => f.write_str("local user"),
        }
    }
}

/// What a TLS handshake established.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFacts {
    /// The protocol chosen by ALPN, such as `h2`.
    pub alpn: Option<Vec<u8>>,
    /// The host name the client asked for (SNI).
    pub server_name: Option<String>,
    /// The client's certificate, verified against the authority, if one was asked for.
    pub client_certificate: Option<CertificateDer<'static>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

#[derive(Debug)]
pub(crate) enum Carrier {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An accepted connection.
#[derive(Debug)]
pub struct Stream {
    layer: Layer,
    peer: Peer,
}

#[derive(Debug)]
pub(crate) enum Layer {
    Clear(Carrier),
    Tls(Box<TlsStream<Carrier>>),
}

impl Stream {
    pub(crate) fn new(carrier: Carrier, peer: Peer) -> Self {
        Self { layer: Layer::Clear(carrier), peer }
    }

    pub(crate) fn into_layer(self) -> Layer {
        self.layer
    }

    /// Who is at the other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// What the TLS handshake established; `None` in clear text.
    pub fn tls(&self) -> Option<TlsFacts> {
        let Layer::Tls(tls) = &self.layer else { return None };
        let session = tls.get_ref().1;
        Some(TlsFacts {
            alpn: session.alpn_protocol().map(<[u8]>::to_vec),
            server_name: session.server_name().map(ToOwned::to_owned),
            client_certificate: session
                .peer_certificates()
                .and_then(|chain| chain.first())
                .map(|certificate| certificate.clone().into_owned()),
            resumed: session.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        })
    }

    /// Puts the stream under TLS, as server: at once after accepting, or later where the protocol
    /// has its own way to say so (STARTTLS). Bytes read before must have been consumed by that
    /// protocol: what a client sent ahead in clear text must never count as sent under TLS.
    ///
    /// # Errors
    /// [`Error::Handshake`], [`Error::HandshakeTimeout`], or [`Error::AlreadyTls`].
    pub async fn upgrade(self, identity: &TlsIdentity, timeout: Duration) -> Result<Self, Error> {
        let Layer::Clear(carrier) = self.layer else { return Err(Error::AlreadyTls) };
        let handshake = tokio::time::timeout(timeout, identity.acceptor().accept(carrier));
        let tls = handshake.await.map_err(|_| Error::HandshakeTimeout(timeout))?;
        let tls = tls.map_err(Error::Handshake)?;
        Ok(Self { layer: Layer::Tls(Box::new(tls)), peer: self.peer })
    }

    /// The socket, while no TLS is over it: for sendfile and splice, whose bytes go out as they
    /// are. The caller must not mix such writes with buffered ones that are not flushed.
    pub fn clear_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.layer {
            Layer::Clear(Carrier::Tcp(tcp)) => Some(tcp.as_fd()),
            Layer::Clear(Carrier::Unix(unix)) => Some(unix.as_fd()),
            Layer::Tls(_) => None,
        }
    }

    /// Runs a non-blocking system call that writes to [`clear_descriptor`](Self::clear_descriptor)
    /// (sendfile, splice) as soon as the socket takes more; on `WouldBlock` it waits and tries
    /// again.
    ///
    /// # Errors
    /// What the call returned, or [`Unsupported`](io::ErrorKind::Unsupported) under TLS.
    pub async fn write_by<R>(
        &self,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        use tokio::io::Interest;
        match &self.layer {
            Layer::Clear(Carrier::Tcp(tcp)) => {
                tcp.async_io(Interest::WRITABLE, || call(tcp.as_fd())).await
            }
            Layer::Clear(Carrier::Unix(unix)) => {
                unix.async_io(Interest::WRITABLE, || call(unix.as_fd())).await
            }
            Layer::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

macro_rules! each_layer {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().layer {
            Layer::Clear(Carrier::Tcp($stream)) => $call,
            Layer::Clear(Carrier::Unix($stream)) => $call,
            Layer::Tls($stream) => $call,
        }
    };
}

macro_rules! each_carrier {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Carrier::Tcp($stream) => $call,
            Carrier::Unix($stream) => $call,
        }
    };
}

macro_rules! byte_stream {
    ($type:ty, $each:ident) => {
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                $each!(self, stream => Pin::new(stream).poll_read(cx, buf))
            }
        }

        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                data: &[u8],
            ) -> Poll<io::Result<usize>> {
                $each!(self, stream => Pin::new(stream).poll_write(cx, data))
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                pieces: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                $each!(self, stream => Pin::new(stream).poll_write_vectored(cx, pieces))
            }

            fn is_write_vectored(&self) -> bool {
                // Sockets and rustls both gather.
                true
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                $each!(self, stream => Pin::new(stream).poll_flush(cx))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                $each!(self, stream => Pin::new(stream).poll_shutdown(cx))
            }
        }
    };
}

byte_stream!(Stream, each_layer);
byte_stream!(Carrier, each_carrier);
