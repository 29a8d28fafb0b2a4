//! A remote file for random reads: size and validator found once, every range checked.

use std::sync::{Mutex, PoisonError};

use http::header::{CONTENT_RANGE, HeaderMap};
use http::{Method, StatusCode};
use trunkline_proto::range::{ByteRange, ContentRange, Validator};
use url::Url;

use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::exchange::{Answer, Ask};
use crate::head::{check_identity, check_range, check_unchanged, validator};
use crate::plan::LaneChoice;

/// A file on an HTTP(S) server, opened for reading at any offset.
///
/// Its size and validator are fixed when it is opened; a server that later shows another
/// validator, another size or another range than asked for gives an error, never wrong bytes.
#[derive(Debug)]
pub struct RemoteFile {
    engine: Engine,
    ask: Ask,
    size: u64,
    validator: Option<Validator>,
    /// Where redirects led; asked anew when that place stops answering.
    resolved: Mutex<Option<Url>>,
}

impl RemoteFile {
    /// Asks for the first byte: the answer tells the size, the validator, and that ranges work.
    /// HEAD is not needed, so that servers and signed URLs that refuse it are served.
    ///
    /// # Errors
    /// [`ErrorKind::RangeIgnored`] from a server without ranges, [`ErrorKind::LengthUnknown`],
    /// and everything that can happen to a request.
    pub async fn open(engine: &Engine, url: &Url, headers: HeaderMap) -> Result<Self, Error> {
        let mut ask = Ask::get(url.clone(), headers);
        ask.method = Method::GET;
        ask.lane = LaneChoice::Range;
        ask.range = ByteRange::new(0, 1);
        let mut retrier = engine.retrier(true);
        loop {
            match probe(engine, &mut ask).await {
                Ok((size, validator)) => {
                    let resolved = Mutex::new(ask.resolved.take());
                    return Ok(Self { engine: engine.clone(), ask, size, validator, resolved });
                }
                Err(kind) => {
                    let planned = retrier.next(url, kind, false)?;
                    tokio::time::sleep(planned.wait).await;
                }
            }
        }
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The strong validator, when the server has one.
    pub fn validator(&self) -> Option<&Validator> {
        self.validator.as_ref()
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`], [`ErrorKind::RangeMismatch`] and the like when the server's answer
    /// cannot be trusted; the buffer's content is then undefined. A range beyond the end is
    /// [`ErrorKind::Length`].
    pub async fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.size);
        let Some(end) = end else {
            let received = self.size.saturating_sub(offset);
            let kind = ErrorKind::Length { expected: buffer.len() as u64, received };
            return Err(Error::new(&self.ask.first, kind, 0));
        };
        let mut retrier = self.engine.retrier(true);
        let mut at = offset;
        while let Some(range) = ByteRange::new(at, end) {
            let before = at;
            let rest = &mut buffer[(at - offset) as usize..];
            if let Err(kind) = self.read_some(range, rest, &mut at).await {
                let planned = retrier.next(&self.ask.first, kind, at > before)?;
                tokio::time::sleep(planned.wait).await;
            }
        }
        Ok(())
    }

    /// One request's worth: a server may answer with less than was asked for.
    async fn read_some(
        &self,
        range: ByteRange,
        buffer: &mut [u8],
        at: &mut u64,
    ) -> Result<(), ErrorKind> {
        let (mut answer, carried) = self.ask_for(range).await?;
        let wanted = (carried.end() - carried.start()) as usize;
        let mut filled = 0;
        while filled < wanted {
            let received = answer.read_into(&mut buffer[filled..wanted]).await?;
            if received == 0 {
                return Err(trunkline_transport::Error::Truncated.into());
            }
            filled += received;
            *at += received as u64;
        }
        Ok(())
    }

    async fn ask_for(&self, range: ByteRange) -> Result<(Answer, ByteRange), ErrorKind> {
        let mut ask = self.ask.clone();
        ask.range = Some(range);
        ask.if_range = self.validator.clone();
        ask.resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = self.engine.exchange(&mut ask).await?;
        if !matches!(answer.status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Err(answer.into_status_error().await);
        }
        check_identity(&answer.headers, false)?;
        check_unchanged(self.validator.as_ref(), &answer.headers)?;
        if answer.status == StatusCode::OK && self.validator.is_some() {
            // If-Range did not hold: the file is another one (RFC 9110 §13.1.5).
            let was = self.validator.as_ref().map(ToString::to_string).unwrap_or_default();
            let is = validator(&answer.headers).map(|v| v.to_string());
            if is.as_ref().is_some_and(|is| *is != was) {
                return Err(ErrorKind::Changed { was, is: is.unwrap_or_default() });
            }
        }
        let (carried, total) = check_range(answer.status, &answer.headers, range)?;
        if total.is_some_and(|total| total != self.size) {
            let was = format!("{} bytes", self.size);
            return Err(ErrorKind::Changed { was, is: format!("{} bytes", total.unwrap_or(0)) });
        }
        let announced = carried.end() - carried.start();
        if answer.length().is_some_and(|length| length != announced) {
            let received = answer.length().unwrap_or(0);
            return Err(ErrorKind::Length { expected: announced, received });
        }
        *self.resolved.lock().unwrap_or_else(PoisonError::into_inner) = ask.resolved;
        Ok((answer, carried))
    }
}

async fn probe(engine: &Engine, ask: &mut Ask) -> Result<(u64, Option<Validator>), ErrorKind> {
    let mut answer = engine.exchange(ask).await?;
    check_identity(&answer.headers, false)?;
    let found = validator(&answer.headers);
    match answer.status {
        StatusCode::PARTIAL_CONTENT => {
            let asked = ask.range.expect("the probe asks for a range");
            let (_, total) = check_range(answer.status, &answer.headers, asked)?;
            let size = total.ok_or(ErrorKind::LengthUnknown)?;
            // The byte itself is read, so that the connection is warm for the first range.
            while answer.chunk().await?.is_some() {}
            Ok((size, found))
        }
        // An empty file has no first byte.
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let sent = answer.header(&CONTENT_RANGE).and_then(|sent| sent.parse().ok());
            match sent {
                Some(ContentRange::Unsatisfied { complete_length: 0 }) => Ok((0, found)),
                _ => Err(answer.into_status_error().await),
            }
        }
        StatusCode::OK if answer.length() == Some(0) => Ok((0, found)),
        StatusCode::OK if answer.length().is_none() => Err(ErrorKind::LengthUnknown),
        StatusCode::OK => Err(ErrorKind::RangeIgnored),
        _ => Err(answer.into_status_error().await),
    }
}
