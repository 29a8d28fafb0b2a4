//! The bytes below HTTP/1.1: clear text, or TLS on rustls's unbuffered API.

mod secure;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};

pub(super) use self::secure::SecureWire;
use crate::stream::Carrier;

/// A carrier with or without TLS.
pub(super) enum Wire {
    Clear(Carrier),
    Secure(Box<SecureWire>),
}

/// Writing failed; whether any byte went out decides if another try is safe.
#[derive(Debug)]
pub(super) struct WriteError {
    pub(super) source: io::Error,
    pub(super) nothing_sent: bool,
}

impl Wire {
    /// Waits for plain bytes and takes as many as are at hand. 0 is the clean end: FIN in clear
    /// text, `close_notify` under TLS. `buf` is not empty.
    ///
    /// # Errors
    /// The carrier's; `UnexpectedEof` for a TLS stream that ends without `close_notify`;
    /// `InvalidData` around a [`rustls::Error`].
    pub(super) async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            // A read that leaves the buffer unfilled has emptied the socket, so that a second
            // one would only cost a system call.
            Self::Clear(carrier) => carrier.read(buf).await,
            Self::Secure(secure) => secure.read(buf).await,
        }
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        match self {
            Self::Clear(carrier) => write_all(carrier, bytes, &mut 0).await,
            Self::Secure(secure) => secure.write(bytes).await,
        }
    }

    /// Whether the connection is quiet, as an idle one must be: open, and without a byte that no
    /// request asked for. Looks at the socket itself, without waiting.
    pub(super) fn is_quiet(&mut self) -> bool {
        match self {
            Self::Clear(carrier) => {
                let mut byte = [0];
                matches!(read_now(carrier, &mut byte), Ok(None))
            }
            Self::Secure(secure) => secure.is_quiet(),
        }
    }

    /// Whether plain bytes wait that have been received but not read.
    pub(super) fn has_surplus(&self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Secure(secure) => secure.has_surplus(),
        }
    }
}

/// Writes `bytes[*written..]`, counting in `written`, and says whether a failure came before the
/// first byte.
async fn write_all(
    carrier: &mut Carrier,
    bytes: &[u8],
    written: &mut usize,
) -> Result<(), WriteError> {
    while *written < bytes.len() {
        let result = carrier.write(&bytes[*written..]).await;
        let nothing_sent = *written == 0;
        match result {
            Ok(0) => {
                return Err(WriteError { source: io::ErrorKind::WriteZero.into(), nothing_sent });
            }
            Ok(more) => *written += more,
            Err(source) => return Err(WriteError { source, nothing_sent }),
        }
    }
    carrier.flush().await.map_err(|source| WriteError { source, nothing_sent: false })
}

/// Reads what is at hand, `None` when that is nothing.
///
/// Sockets are asked directly: the runtime knows of news only after it has polled the system,
/// which a busy thread may not have done since the peer closed an idle connection.
fn read_now(carrier: &mut Carrier, buf: &mut [u8]) -> io::Result<Option<usize>> {
    let received = match carrier {
        Carrier::Tcp(stream) => io::Read::read(&mut &*SockRef::from(&*stream), buf),
        #[cfg(unix)]
        Carrier::Unix(stream) => io::Read::read(&mut &*SockRef::from(&*stream), buf),
        Carrier::TlsProxy(stream) => {
            let mut target = ReadBuf::new(buf);
            let mut cx = Context::from_waker(Waker::noop());
            match Pin::new(&mut **stream).poll_read(&mut cx, &mut target) {
                Poll::Pending => return Ok(None),
                Poll::Ready(result) => result.map(|()| target.filled().len()),
            }
        }
    };
    match received {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// As a read, but gives `None` instead of waiting. Unlike [`read_now`] it goes by what the
/// runtime knows, which costs no system call after a read that emptied the socket.
async fn read_if_ready(carrier: &mut Carrier, buf: &mut [u8]) -> io::Result<Option<usize>> {
    let mut target = ReadBuf::new(buf);
    poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *carrier).poll_read(cx, &mut target) {
            Poll::Ready(result) => result.map(|()| Some(target.filled().len())),
            Poll::Pending => Ok(None),
        })
    })
    .await
}

/// Tries to send bytes without waiting; for farewells, whose loss does no harm.
fn write_now(carrier: &mut Carrier, bytes: &[u8]) {
    let mut cx = Context::from_waker(Waker::noop());
    let _ = Pin::new(carrier).poll_write(&mut cx, bytes);
}
