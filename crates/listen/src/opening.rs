//! The first bytes of a connection in clear text: which HTTP is it?

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// The start of HTTP/2's client preface (RFC 9113, section 3.4); no HTTP/1 request begins so.
const H2_PREFACE_START: &[u8; 14] = b"PRI * HTTP/2.0";

/// Which HTTP the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    H1,
    H2,
}

/// Reads as few bytes as tell the version, and puts them back.
pub(crate) async fn read_version<T: AsyncRead + Unpin>(
    mut stream: T,
) -> io::Result<(Version, Rewound<T>)> {
    let mut front = [0; H2_PREFACE_START.len()];
    let mut len = 0;
    while len < front.len() && H2_PREFACE_START.starts_with(&front[..len]) {
        let read = stream.read(&mut front[len..]).await?;
        if read == 0 {
            break;
        }
        len += read;
    }
    let h2 = len == front.len() && front == *H2_PREFACE_START;
    let version = if h2 { Version::H2 } else { Version::H1 };
    Ok((version, Rewound { front, start: 0, end: len, stream }))
}

/// A stream with its first bytes put back.
#[derive(Debug)]
pub(crate) struct Rewound<T> {
    front: [u8; H2_PREFACE_START.len()],
    start: usize,
    end: usize,
    stream: T,
}

impl<T> Rewound<T> {
    /// A stream of which nothing was read.
    pub(crate) fn untouched(stream: T) -> Self {
        Self { front: [0; H2_PREFACE_START.len()], start: 0, end: 0, stream }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewound<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.start == this.end {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let taken = buf.remaining().min(this.end - this.start);
        buf.put_slice(&this.front[this.start..this.start + taken]);
        this.start += taken;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewound<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn opened(bytes: &'static [u8]) -> (Version, Vec<u8>) {
        let (version, mut stream) = read_version(bytes).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        (version, all)
    }

    #[tokio::test]
    async fn the_version_is_told_and_no_byte_lost() {
        let cases: &[(&[u8], Version)] = &[
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version::H2),
            (b"GET / HTTP/1.1\r\n\r\n", Version::H1),
            (b"PRINT / HTTP/1.1\r\n\r\n", Version::H1),
            (b"PRI * HTTP/1.1\r\n\r\n", Version::H1),
            (b"PRI", Version::H1),
            (b"", Version::H1),
        ];
        for (bytes, version) in cases {
            assert_eq!(opened(bytes).await, (*version, bytes.to_vec()));
        }
    }
}
