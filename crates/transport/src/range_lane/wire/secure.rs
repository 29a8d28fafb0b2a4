//! TLS records decrypted in the buffer that they were received into.
//!
//! rustls's buffered connection reads one record per system call; here one call fetches up to
//! [`INPUT_BYTES`], each record is decrypted where it lies, and its plain text is copied once more,
//! into the caller's buffer (rustls hands it out in a block of its own).

use std::io;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{
    AppDataRecord, ConnectionState, EncodeError, EncryptError, InsufficientSizeError,
    UnbufferedStatus,
};
use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::ServerName;
use tokio::io::AsyncReadExt as _;

use super::{WriteError, read_if_ready, read_now, write_all, write_now};
use crate::error::{Error, TlsSetupError};
use crate::stream::Carrier;
use crate::tls::classify;

/// Room for received records, in bytes.
const INPUT_BYTES: usize = 256 * 1024;

/// Least room offered to a read; below it, what is left is moved to the front first. More than
/// the largest record (RFC 8446 §5.2), so that one always fits.
const READ_BYTES_MIN: usize = 64 * 1024;

/// Records processed in one go without any plain byte coming of it, before the peer is taken for
/// one that keeps us busy (rustls bounds empty records by itself).
const FRUITLESS_STEPS_MAX: usize = 1024;

/// Reads of an idle connection that may bring nothing but tickets and key updates.
const IDLE_READS_MAX: usize = 8;

/// A client's TLS connection over a carrier.
pub(in super::super) struct SecureWire {
    carrier: Carrier,
    session: UnbufferedClientConnection,
    input: Box<[u8]>,
    /// The bytes of `input` received but not processed.
    start: usize,
    end: usize,
    /// Records to be sent before anything is waited for; `..output_at` are sent already.
    output: Vec<u8>,
    output_at: usize,
    /// The rest of a record that was longer than the caller's buffer.
    rest: Vec<u8>,
    rest_at: usize,
    /// The peer said `close_notify` (RFC 8446 §6.1).
    peer_closed: bool,
    /// The carrier ended.
    ended: bool,
}

/// What is wanted of the session besides moving on.
enum Want<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
}

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Bytes were delivered, or put by when the buffer was too small for any.
    Delivered(usize),
    /// The bytes to write were encrypted.
    Encrypted,
    /// Something else happened; there may be more to process.
    Moved,
    /// Nothing can happen before more is received.
    Blocked,
}

impl SecureWire {
    /// Makes the handshake; `host` is for messages.
    ///
    /// # Errors
    /// What [`classify`] makes of the failure.
    pub(in super::super) async fn handshake(
        carrier: Carrier,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        host: &str,
    ) -> Result<(Self, HandshakeKind), Error> {
        let session =
            UnbufferedClientConnection::new(config, name).map_err(TlsSetupError::Rustls)?;
        let mut wire = Self {
            carrier,
            session,
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            output: Vec::with_capacity(4096),
            output_at: 0,
            rest: Vec::with_capacity(16 * 1024),
            rest_at: 0,
            peer_closed: false,
            ended: false,
        };
        wire.run_handshake().await.map_err(|error| {
            wire.say_alert();
            classify(host, error)
        })?;
        let kind = wire.session.handshake_kind().unwrap_or(HandshakeKind::Full);
        Ok((wire, kind))
    }

    async fn run_handshake(&mut self) -> io::Result<()> {
        loop {
            while self.step(Want::Read(&mut []))? != Step::Blocked {}
            self.flush().await.map_err(|error| error.source)?;
            if !self.session.is_handshaking() {
                return Ok(());
            }
            if self.peer_closed || self.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.fill().await?;
        }
    }

    /// See [`Wire::read`](super::Wire::read).
    pub(super) async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut filled = self.decrypt(buf)?;
            // An error that comes after bytes were delivered comes again at the next call.
            while filled > 0 && filled < buf.len() && self.fill_if_ready().await.unwrap_or(false) {
                match self.decrypt(&mut buf[filled..]) {
                    Ok(more) => filled += more,
                    Err(_) => break,
                }
            }
            if filled > 0 {
                return Ok(filled);
            }
            if self.peer_closed {
                return Ok(0);
            }
            if self.ended {
                // Anybody on the path can end a TCP stream; only close_notify proves that the
                // peer meant it (RFC 8446 §6.1).
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.flush().await.map_err(|error| error.source)?;
            self.fill().await?;
        }
    }

    /// See [`Wire::write`](super::Wire::write).
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let unsent = |source| WriteError { source, nothing_sent: true };
        loop {
            match self.step(Want::Write(bytes)).map_err(unsent)? {
                Step::Encrypted => return self.flush().await,
                Step::Blocked => return Err(unsent(io::ErrorKind::NotConnected.into())),
                Step::Delivered(_) | Step::Moved => {}
            }
        }
    }

    /// See [`Wire::is_quiet`](super::Wire::is_quiet). Records that are no data, such as tickets,
    /// may come at any time.
    pub(super) fn is_quiet(&mut self) -> bool {
        for _ in 0..IDLE_READS_MAX {
            let mut byte = [0];
            match self.decrypt(&mut byte) {
                Ok(0) if !self.peer_closed => {}
                _ => return false,
            }
            self.make_room();
            match read_now(&mut self.carrier, &mut self.input[self.end..]) {
                Ok(None) => return true,
                Ok(Some(received)) if received > 0 => self.end += received,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
        false
    }

    pub(super) fn has_surplus(&self) -> bool {
        self.rest_at < self.rest.len()
    }

    /// Decrypts what has been received until the buffer is full or the records run out.
    fn decrypt(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = self.rest.len().saturating_sub(self.rest_at).min(buf.len());
        buf[..filled].copy_from_slice(&self.rest[self.rest_at..self.rest_at + filled]);
        self.rest_at += filled;
        let mut fruitless = 0;
        while filled < buf.len() {
            match self.step(Want::Read(&mut buf[filled..]))? {
                Step::Delivered(more) if more > 0 => {
                    filled += more;
                    fruitless = 0;
                }
                Step::Blocked => break,
                Step::Delivered(_) | Step::Encrypted | Step::Moved => fruitless += 1,
            }
            if fruitless > FRUITLESS_STEPS_MAX {
                return Err(broken(rustls::Error::General("too many records without data".into())));
            }
        }
        Ok(filled)
    }

    /// One call into the session and what it asks for.
    fn step(&mut self, want: Want<'_>) -> io::Result<Step> {
        let received = &mut self.input[self.start..self.end];
        let UnbufferedStatus { mut discard, state } = self.session.process_tls_records(received);
        let step = match state.map_err(broken)? {
            ConnectionState::ReadTraffic(mut traffic) => {
                let mut buf = match want {
                    Want::Read(buf) => buf,
                    Want::Write(_) => &mut [],
                };
                let mut delivered = 0;
                if self.rest_at == self.rest.len() {
                    self.rest.clear();
                    self.rest_at = 0;
                }
                while let Some(record) = traffic.next_record() {
                    let AppDataRecord { discard: more, payload, .. } = record.map_err(broken)?;
                    discard += more;
                    let fits = payload.len().min(buf.len());
                    let (now, later) = payload.split_at(fits);
                    buf[..fits].copy_from_slice(now);
                    buf = &mut buf[fits..];
                    self.rest.extend_from_slice(later);
                    delivered += fits;
                }
                Step::Delivered(delivered)
            }
            ConnectionState::EncodeTlsData(mut data) => {
                let encoded = append(&mut self.output, 1024, |room| {
                    data.encode(room).map_err(|error| match error {
                        EncodeError::InsufficientSize(size) => Some(size),
                        EncodeError::AlreadyEncoded => None,
                    })
                });
                encoded.map(|()| Step::Moved)?
            }
            ConnectionState::TransmitTlsData(data) => {
                // `output` keeps the order, and is flushed before anything is waited for.
                data.done();
                Step::Moved
            }
            ConnectionState::WriteTraffic(mut traffic) => match want {
                Want::Write(bytes) => {
                    append(&mut self.output, bytes.len() + 256, |room| {
                        traffic.encrypt(bytes, room).map_err(|error| match error {
                            EncryptError::InsufficientSize(size) => Some(size),
                            EncryptError::EncryptExhausted => None,
                        })
                    })?;
                    Step::Encrypted
                }
                Want::Read(_) => Step::Blocked,
            },
            ConnectionState::PeerClosed => {
                self.peer_closed = true;
                Step::Blocked
            }
            // BlockedHandshake and Closed; early data is the server's; the enum may grow.
            _ => Step::Blocked,
        };
        self.start += discard;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        Ok(step)
    }

    /// Sends the records that wait to be sent. A cancelled call is taken up by the next.
    async fn flush(&mut self) -> Result<(), WriteError> {
        if self.output.is_empty() {
            return Ok(());
        }
        write_all(&mut self.carrier, &self.output, &mut self.output_at).await?;
        self.output.clear();
        self.output_at = 0;
        Ok(())
    }

    /// Waits for bytes from the carrier.
    async fn fill(&mut self) -> io::Result<()> {
        self.make_room();
        let received = self.carrier.read(&mut self.input[self.end..]).await?;
        self.end += received;
        self.ended = received == 0;
        Ok(())
    }

    /// Takes bytes from the carrier when there are some; says whether.
    async fn fill_if_ready(&mut self) -> io::Result<bool> {
        if self.peer_closed || self.ended {
            return Ok(false);
        }
        self.make_room();
        match read_if_ready(&mut self.carrier, &mut self.input[self.end..]).await? {
            None => Ok(false),
            Some(received) => {
                self.end += received;
                self.ended = received == 0;
                Ok(received > 0)
            }
        }
    }

    fn make_room(&mut self) {
        if self.input.len() - self.end < READ_BYTES_MIN {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Tells the peer why the handshake failed, if that can be done at once.
    fn say_alert(&mut self) {
        // The session gives its alert first and the error again afterwards.
        while let Ok(Step::Moved) = self.step(Want::Read(&mut [])) {}
        write_now(&mut self.carrier, &self.output[self.output_at..]);
    }
}

impl Drop for SecureWire {
    /// Says goodbye if that can be done at once (RFC 8446 §6.1).
    fn drop(&mut self) {
        let amid = self.session.is_handshaking() || !self.output.is_empty();
        if self.peer_closed || self.ended || amid {
            return;
        }
        let received = &mut self.input[self.start..self.end];
        let status = self.session.process_tls_records(received);
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state {
            let mut farewell = [0; 64];
            if let Ok(length) = traffic.queue_close_notify(&mut farewell) {
                write_now(&mut self.carrier, &farewell[..length]);
            }
        }
    }
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Appends what `encode` writes, given `room` bytes or as many more as it asks for.
fn append(
    output: &mut Vec<u8>,
    room: usize,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
) -> io::Result<()> {
    let before = output.len();
    output.resize(before + room, 0);
    loop {
        match encode(&mut output[before..]) {
            Ok(length) => {
                output.truncate(before + length);
                return Ok(());
            }
            Err(Some(size)) if size.required_size > output.len() - before => {
                output.resize(before + size.required_size, 0);
            }
            Err(_) => {
                output.truncate(before);
                return Err(broken(rustls::Error::EncryptError));
            }
        }
    }
}
