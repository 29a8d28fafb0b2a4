//! HTTP/1.1 written byte by byte, so that every framing can be got wrong on purpose.

use crate::connection::Attended;
use crate::fault::{ConnectionFault, Fault};
use crate::log::RequestEntry;
use crate::reply::{Ending, Framing, Opening, Reply};
use crate::request::Received;
use crate::upload::{self, Intake, UploadBody};
use crate::wire::Duplex;
use bytes::{Buf as _, BytesMut};
use std::io;
use std::time::SystemTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The largest request head that is read.
const HEAD_BYTES_MAX: usize = 256 << 10;
/// The most header fields in a request.
const HEAD_FIELDS_MAX: usize = 256;
/// The most body bytes written at once.
const WRITE_BYTES: usize = 64 << 10;

/// What becomes of the connection after a response.
#[derive(Debug, PartialEq, Eq)]
enum After {
    KeepAlive,
    /// An orderly end, with TLS's close_notify.
    Close,
    /// The socket just goes.
    Drop,
    Reset,
    /// Nothing more is sent; the client has to end it.
    Silence,
}

/// Serves requests until either side ends the connection.
pub(crate) async fn serve(io: impl Duplex, front: BytesMut, attended: Attended) {
    let reset = attended.reset.clone();
    let mut session = Session { io, buf: front, attended, responses: 0 };
    let after = loop {
        match session.exchange().await {
            Ok(Some(After::KeepAlive)) => {}
            Ok(Some(after)) => break after,
            Ok(None) | Err(_) => break After::Drop,
        }
    };
    match after {
        After::Close => session.close().await,
        After::Reset => reset.turn_on(),
        After::Silence => session.drain().await,
        After::Drop | After::KeepAlive => {}
    }
}

struct Session<T> {
    io: T,
    buf: BytesMut,
    attended: Attended,
    responses: u32,
}

impl<T: Duplex> Session<T> {
    /// One request and its response; `None` when the client has closed the connection.
    async fn exchange(&mut self) -> io::Result<Option<After>> {
        let Some(request) = self.read_head().await? else { return Ok(None) };
        let entry = self.attended.entry.request(request.clone());
        let faults = self.attended.site.scripts.faults_for(&request);
        let has_body = request.is_chunked() || request.content_length().is_some_and(|n| n > 0);

        let early = faults.iter().any(Fault::answers_early)
            || (has_body
                && request.expects_continue()
                && self.attended.site.refusal(&request, &faults).is_some());
        let body = match (has_body, early) {
            (true, false) => match self.read_body(&request, &faults).await {
                Ok(body) => {
                    entry.body_received(body.len, body.sha256.clone());
                    Some(body)
                }
                Err(_) => return Ok(Some(After::Drop)),
            },
            _ => None,
        };
        let reply = self.attended.site.answer(&request, &faults, body);
        self.responses += 1;
        let last = early && has_body
            || request.protocol == "HTTP/1.0"
            || request.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
            || matches!(
                self.attended.fault,
                ConnectionFault::LastResponse(n) | ConnectionFault::GoAwayAfter(n)
                    if self.responses >= n
            );
        let after = self.send(&request, &reply, last, &entry).await?;
        let used_up = matches!(
            self.attended.fault,
            ConnectionFault::CloseAfterResponses(n) if self.responses >= n
        );
        Ok(Some(match after {
            After::KeepAlive if used_up || reply.close_quietly => After::Drop,
            after => after,
        }))
    }

    async fn read_head(&mut self) -> io::Result<Option<Received>> {
        loop {
            if let Some((head_bytes, received)) = parse_head(&self.buf, self.attended.entry.id)? {
                self.buf.advance(head_bytes);
                return Ok(Some(received));
            }
            if self.buf.len() > HEAD_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "request head too large"));
            }
            self.buf.reserve(8 << 10);
            if self.io.read_buf(&mut self.buf).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn read_body(&mut self, request: &Received, faults: &[Fault]) -> io::Result<UploadBody> {
        if request.expects_continue() && !faults.iter().any(Fault::ignores_expect) {
            self.io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
            self.io.flush().await?;
        }
        let mut intake = Intake::new(faults.iter().find_map(Fault::upload_cut));
        if request.is_chunked() {
            upload::read_chunked(&mut self.io, &mut self.buf, &mut intake).await?;
        } else {
            let len = request.content_length().unwrap_or(0);
            upload::read_sized(&mut self.io, &mut self.buf, len, &mut intake).await?;
        }
        Ok(intake.finish())
    }

    async fn send(
        &mut self,
        request: &Received,
        reply: &Reply,
        last: bool,
        entry: &RequestEntry,
    ) -> io::Result<After> {
        if let Some(gate) = &reply.head_gate {
            gate.passed().await;
        }
        if !reply.head_delay.is_zero() {
            tokio::time::sleep(reply.head_delay).await;
        }
        match reply.opening {
            Opening::Head => {}
            Opening::BadStatusLine => {
                self.io.write_all(b"HTTQ/1.1 two hundred fine\r\n\r\n").await?;
                self.io.flush().await?;
                return Ok(After::Close);
            }
            Opening::Close => return Ok(After::Drop),
            Opening::Reset | Opening::ResetStream(_) => return Ok(After::Reset),
            Opening::Never => return Ok(After::Silence),
        }
        for _ in 0..reply.interim {
            self.io.write_all(b"HTTP/1.1 103 Early Hints\r\nx-interim: yes\r\n\r\n").await?;
        }
        let bodiless = request.is_head() || !reply.may_have_body();
        // The end of the connection ends the body, unless there is none.
        let until_close = reply.framing == Framing::UntilClose && !bodiless;
        // So does it when less comes than Content-Length says: a client would wait for ever.
        let short = reply.announced_length().is_some_and(|n| n > reply.body.len() as u64);
        let last = last || until_close || (short && !bodiless);
        self.io.write_all(&head_bytes(reply, last)).await?;
        entry.answered(reply.status);
        let after = if bodiless { After::KeepAlive } else { self.send_body(reply, entry).await? };
        self.io.flush().await?;
        Ok(if after == After::KeepAlive && last { After::Close } else { after })
    }

    async fn send_body(&mut self, reply: &Reply, entry: &RequestEntry) -> io::Result<After> {
        let stop = reply.bytes_before_ending();
        self.send_part(reply, 0, stop, entry).await?;
        if !matches!(reply.ending, Ending::Whole) {
            self.io.flush().await?;
        }
        let chunked = reply.framing == Framing::Chunked;
        match &reply.ending {
            Ending::Whole => {}
            Ending::Close { .. } | Ending::NoFinalChunk => return Ok(After::Drop),
            Ending::Reset { .. } | Ending::ResetStream { .. } => return Ok(After::Reset),
            Ending::Stall { .. } => return Ok(After::Silence),
            Ending::Hold { gate, .. } => {
                gate.passed().await;
                self.send_part(reply, stop, reply.body.len(), entry).await?;
            }
            Ending::BadChunkSize { .. } => {
                self.io.write_all(b"xyz\r\nthis is no chunk\r\n").await?;
                return Ok(After::Close);
            }
            Ending::DataAfterFinalChunk => {
                self.io.write_all(b"0\r\n\r\nleft over from nowhere").await?;
                return Ok(After::KeepAlive);
            }
        }
        if chunked {
            self.io.write_all(b"0\r\n\r\n").await?;
        }
        Ok(After::KeepAlive)
    }

    async fn send_part(
        &mut self,
        reply: &Reply,
        start: usize,
        end: usize,
        entry: &RequestEntry,
    ) -> io::Result<()> {
        let step = reply.drip.map_or(WRITE_BYTES, |drip| drip.bytes);
        for piece in reply.body[start..end].chunks(step) {
            if let Some(drip) = reply.drip {
                self.io.flush().await?;
                tokio::time::sleep(drip.every).await;
            }
            if reply.framing == Framing::Chunked {
                self.io.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
                self.io.write_all(piece).await?;
                self.io.write_all(b"\r\n").await?;
            } else {
                self.io.write_all(piece).await?;
            }
            entry.sent(piece.len());
        }
        Ok(())
    }

    /// Ends our side and takes in what the client still sends, so that unread bytes do not turn
    /// the orderly end into a reset.
    async fn close(&mut self) {
        if self.io.shutdown().await.is_ok() {
            self.drain().await;
        }
    }

    async fn drain(&mut self) {
        let _ = tokio::io::copy(&mut self.io, &mut tokio::io::sink()).await;
    }
}

fn parse_head(buf: &[u8], connection: u64) -> io::Result<Option<(usize, Received)>> {
    let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let head_bytes = match head.parse(buf).map_err(bad)? {
        httparse::Status::Complete(head_bytes) => head_bytes,
        httparse::Status::Partial => return Ok(None),
    };
    let (path, query) = Received::split_target(head.path.unwrap_or("/"));
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let received = Received {
        method: head.method.unwrap_or_default().to_owned(),
        path,
        query,
        headers: head.headers.iter().map(|f| (f.name.to_owned(), text(f.value))).collect(),
        protocol: if head.version == Some(0) { "HTTP/1.0" } else { "HTTP/1.1" },
        connection,
    };
    Ok(Some((head_bytes, received)))
}

fn head_bytes(reply: &Reply, last: bool) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(reply.status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Scripted");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", reply.status);
    head.push_str(&format!("date: {}\r\n", httpdate::fmt_http_date(SystemTime::now())));
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match reply.framing {
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::Length(_) if reply.status != 204 && reply.status != 304 => {
            let length = reply.announced_length().unwrap_or(0);
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        Framing::Length(_) | Framing::UntilClose => {}
    }
    if last {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}
