//! The range lane: HTTP/1.1 by hand, for large bodies that go straight into the caller's buffer.
//!
//! hyper hands bodies out in buffers of its own; a caller that has a place for the bytes copies
//! them once more, and under TLS each record costs a system call. Here clear text is received
//! into the caller's slice, and TLS records are fetched many at a time and decrypted in place
//! (`wire`). Heads and framing are read strictly (`head`, `chunked`): a connection that leaves any
//! doubt about where an answer ends is not used again.

mod chunked;
#[cfg(test)]
mod differential;
mod head;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::io;
use std::sync::Arc;

use http::{Request, Response};
use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::ServerName;

use self::chunked::ChunkedDecoder;
pub use self::head::BodyFraming;
use self::head::{Head, INFORMATIONAL_MAX};
use self::wire::{SecureWire, Wire};
use crate::error::{Error, HeadError, is_cut};
use crate::http::Forwarding;
use crate::stream::Carrier;

/// Bytes read at once while a head is awaited. What comes beyond the head is copied from here, so
/// that this is also the most of a body that is copied in clear text.
const HEAD_READ_BYTES: usize = 16 * 1024;

/// An HTTP/1.1 connection for GET and HEAD, one exchange at a time.
///
/// After [`send`](Self::send) the body is read by [`read`](Self::read) to its end; then the next
/// request may follow. A future dropped in mid-`send` spends the connection; one dropped in
/// mid-`read` loses nothing.
pub struct RangeConnection {
    wire: Wire,
    forwarding: Forwarding,
    /// Received bytes of heads, and of a body where `ahead_at..` is not empty.
    ahead: Vec<u8>,
    ahead_at: usize,
    body: Body,
    keep_alive: bool,
    answers: u64,
}

/// Where the connection stands.
#[derive(Debug)]
enum Body {
    /// No exchange is open.
    Done,
    Length {
        left: u64,
    },
    Chunked(ChunkedDecoder),
    UntilClose,
    /// A request is on its way, or something broke: there is no way on.
    Spent,
}

impl RangeConnection {
    /// A connection in clear text.
    pub(crate) fn clear(carrier: Carrier, forwarding: Forwarding) -> Self {
        Self::new(Wire::Clear(carrier), forwarding)
    }

    /// A connection under TLS, after its handshake. `host` is for messages.
    ///
    /// # Errors
    /// [`Error::UntrustedIssuer`], [`Error::Certificate`], [`Error::Handshake`].
    pub(crate) async fn tls(
        carrier: Carrier,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        host: &str,
    ) -> Result<(Self, HandshakeKind), Error> {
        let (wire, kind) = SecureWire::handshake(carrier, config, name, host).await?;
        Ok((Self::new(Wire::Secure(Box::new(wire)), Forwarding::default()), kind))
    }

    fn new(wire: Wire, forwarding: Forwarding) -> Self {
        Self {
            wire,
            forwarding,
            ahead: Vec::with_capacity(HEAD_READ_BYTES),
            ahead_at: 0,
            body: Body::Done,
            keep_alive: true,
            answers: 0,
        }
    }

    /// Sends a GET or HEAD request with an absolute URI and reads the answer's head. `Host` is
    /// taken from the URI unless the headers have one.
    ///
    /// # Errors
    /// [`Error::Unsent`] when nothing was written, so that the request is safe elsewhere;
    /// [`Error::ClosedBeforeAnswer`]; [`Error::BrokenHead`]; [`Error::Truncated`]; [`Error::Io`].
    pub async fn send(&mut self, request: &Request<()>) -> Result<Response<BodyFraming>, Error> {
        if !self.is_reusable() {
            return Err(Error::Unsent);
        }
        self.body = Body::Spent;
        self.ahead.clear();
        self.ahead_at = 0;
        // The buffer for heads holds the request until the answer comes.
        head::write_request(&mut self.ahead, request, &self.forwarding);
        let written = self.wire.write(&self.ahead).await;
        self.ahead.clear();
        if let Err(failed) = written {
            return Err(match failed.source {
                _ if failed.nothing_sent => Error::Unsent,
                source if is_cut(&source) => Error::ClosedBeforeAnswer { reused: self.reused() },
                source => Error::Io(source),
            });
        }
        let Head { response, keep_alive } = self.answer(request).await?;
        self.keep_alive = keep_alive;
        self.answers += 1;
        self.body = match *response.body() {
            BodyFraming::Length(0) => Body::Done,
            BodyFraming::Length(left) => Body::Length { left },
            BodyFraming::Chunked => Body::Chunked(ChunkedDecoder::new()),
            BodyFraming::UntilClose => Body::UntilClose,
            BodyFraming::Unsupported => Body::Spent,
        };
        Ok(response)
    }

    /// Reads the head of the final answer.
    async fn answer(&mut self, request: &Request<()>) -> Result<Head, Error> {
        for _ in 0..=INFORMATIONAL_MAX {
            let length = self.receive_head().await?;
            let head = &self.ahead[self.ahead_at..self.ahead_at + length];
            let parsed = head::parse(request.method(), head).map_err(Error::BrokenHead)?;
            self.ahead_at += length;
            if let Some(head) = parsed {
                return Ok(head);
            }
        }
        Err(Error::BrokenHead(HeadError::TooManyInformational))
    }

    /// Receives until a whole head lies at `ahead_at`; its length.
    async fn receive_head(&mut self) -> Result<usize, Error> {
        let mut scanned = 0;
        loop {
            let received = &self.ahead[self.ahead_at..];
            if let Some(length) =
                head::head_length(received, &mut scanned).map_err(Error::BrokenHead)?
            {
                return Ok(length);
            }
            let before = self.ahead.len();
            self.ahead.resize(before + HEAD_READ_BYTES, 0);
            let result = self.wire.read(&mut self.ahead[before..]).await;
            self.ahead.truncate(before + *result.as_ref().unwrap_or(&0));
            match result {
                Ok(0) if before == 0 => {
                    return Err(Error::ClosedBeforeAnswer { reused: self.reused() });
                }
                Ok(0) => return Err(Error::Truncated),
                Ok(_) => {}
                Err(error) if before == 0 && is_cut(&error) => {
                    return Err(Error::ClosedBeforeAnswer { reused: self.reused() });
                }
                Err(error) => return Err(read_error(error)),
            }
        }
    }

    /// Reads bytes of the body into `buf`, as many as are at hand; 0 is its end, also when `buf`
    /// is empty.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the connection ends too early, which a body without length ends
    /// under TLS when no `close_notify` came; [`Error::BrokenChunks`]; [`Error::Io`].
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        if buf.is_empty() {
            return Ok(0);
        }
        let result = match self.body {
            Body::Done => Ok(0),
            Body::Spent => Err(Error::Truncated),
            Body::Length { left } => self.read_length(buf, left).await,
            Body::Chunked(_) => self.read_chunked(buf).await,
            Body::UntilClose => self.read_until_close(buf).await,
        };
        if result.is_err() {
            self.body = Body::Spent;
        }
        result
    }

    async fn read_length(&mut self, buf: &mut [u8], left: u64) -> Result<usize, Error> {
        // Never more than the body: nothing of a later answer can be read by mistake.
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let received = self.receive(&mut buf[..most]).await?;
        if received == 0 {
            return Err(Error::Truncated);
        }
        let left = left - received as u64;
        self.body = if left == 0 { Body::Done } else { Body::Length { left } };
        Ok(received)
    }

    async fn read_chunked(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        loop {
            let received = self.receive(buf).await?;
            if received == 0 {
                return Err(Error::Truncated);
            }
            let Body::Chunked(decoder) = &mut self.body else { return Ok(0) };
            let decoded = decoder.decode(&mut buf[..received]).map_err(Error::BrokenChunks)?;
            if decoder.is_done() {
                self.body = Body::Done;
                // Bytes beyond the end belong to no request of ours.
                self.keep_alive &= decoded.consumed == received;
                return Ok(decoded.body);
            }
            if decoded.body > 0 {
                return Ok(decoded.body);
            }
        }
    }

    async fn read_until_close(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        let received = self.receive(buf).await?;
        if received == 0 {
            self.body = Body::Done;
        }
        Ok(received)
    }

    /// Bytes that came with the head, then bytes from the wire.
    async fn receive(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        let ahead = &self.ahead[self.ahead_at..];
        if !ahead.is_empty() {
            let length = ahead.len().min(buf.len());
            buf[..length].copy_from_slice(&ahead[..length]);
            self.ahead_at += length;
            return Ok(length);
        }
        self.wire.read(buf).await.map_err(read_error)
    }

    /// Whether another request can be sent: the last body was read to its end, the server keeps
    /// the connection, and nothing came that was not asked for.
    pub fn is_reusable(&self) -> bool {
        matches!(self.body, Body::Done)
            && self.keep_alive
            && self.ahead_at == self.ahead.len()
            && !self.wire.has_surplus()
    }

    /// Whether an idle connection is of no more use: not reusable, closed by the peer, or with
    /// bytes that nobody asked for. Asks the system without waiting.
    pub fn is_stale(&mut self) -> bool {
        !(self.is_reusable() && self.wire.is_quiet())
    }

    fn reused(&self) -> bool {
        self.answers > 0
    }
}

impl fmt::Debug for RangeConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeConnection")
            .field("tls", &matches!(self.wire, Wire::Secure(_)))
            .field("body", &self.body)
            .field("keep_alive", &self.keep_alive)
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}

fn read_error(error: io::Error) -> Error {
    match Error::client_certificate(&error) {
        Some(refusal) => refusal,
        None if error.kind() == io::ErrorKind::UnexpectedEof => Error::Truncated,
        None => Error::Io(error),
    }
}
