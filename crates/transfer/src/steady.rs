//! A body that is worked on as it arrives and goes on where a cut ended it.

use bytes::Bytes;
use http::StatusCode;
use trunkline_proto::range::{ByteRange, Validator};
use trunkline_transport::Error as Broken;

use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::exchange::{Answer, Ask};
use crate::head::{check_identity, check_range, check_unchanged, validator};
use crate::request::Request;
use crate::retrier::Retrier;

/// What comes next of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes.
    Data(Bytes),
    /// The body begins anew: what came until now does not count.
    Restart,
    /// That was all.
    End,
}

/// An answer whose body survives cuts, as far as the engine's patience goes: the rest is asked for
/// by a range where the server has a strong validator and the length is known, and the whole again
/// where not.
#[derive(Debug)]
pub struct SteadyAnswer {
    engine: Engine,
    ask: Ask,
    retrier: Retrier,
    answer: Option<Answer>,
    status: StatusCode,
    /// Bytes of the body that were handed out.
    at: u64,
    /// The furthest that any attempt came.
    reached: u64,
    /// Of the whole body, when the first answer told it.
    length: Option<u64>,
    validator: Option<Validator>,
}

impl Engine {
    /// As [`open`](Self::open), but a body that is cut goes on. For GET.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn open_steady(&self, request: Request) -> Result<SteadyAnswer, Error> {
        let mut ask = Ask::from_request(&request);
        let mut retrier = self.retrier(request.idempotent);
        loop {
            match self.exchange(&mut ask).await {
                Ok(answer) => {
                    let engine = self.clone();
                    let mut steady = SteadyAnswer {
                        engine,
                        ask,
                        retrier,
                        answer: None,
                        status: answer.status,
                        at: 0,
                        reached: 0,
                        length: None,
                        validator: None,
                    };
                    steady.begin(answer);
                    return Ok(steady);
                }
                Err(kind) => {
                    let planned = retrier.next(&request.url, kind, false)?;
                    tokio::time::sleep(planned.wait).await;
                }
            }
        }
    }
}

impl SteadyAnswer {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What comes next.
    ///
    /// # Errors
    /// What ended the last attempt, when patience ends or another attempt cannot help.
    pub async fn next(&mut self) -> Result<Piece, Error> {
        loop {
            let kind = match self.attempt().await {
                Ok(Piece::Data(data)) => {
                    self.at += data.len() as u64;
                    return Ok(Piece::Data(data));
                }
                Ok(piece) => return Ok(piece),
                Err(kind) => kind,
            };
            self.answer = None;
            // Only what is kept is progress: a server that cuts at the same place each time and
            // sends no ranges would be asked for ever.
            let progressed = self.can_resume() && self.at > self.reached;
            self.reached = self.reached.max(self.at);
            let planned = self.retrier.next(&self.ask.first, kind, progressed)?;
            tracing::debug!(error = %planned.kind, at = self.at, "a body was cut short");
            tokio::time::sleep(planned.wait).await;
        }
    }

    fn can_resume(&self) -> bool {
        self.at > 0 && self.validator.is_some() && self.length.is_some_and(|all| self.at < all)
    }

    fn begin(&mut self, answer: Answer) {
        self.at = 0;
        self.length = answer.length();
        self.validator = validator(&answer.headers);
        self.answer = Some(answer);
    }

    async fn attempt(&mut self) -> Result<Piece, ErrorKind> {
        let Some(answer) = &mut self.answer else { return self.again().await };
        match answer.chunk().await? {
            Some(data) => Ok(Piece::Data(data)),
            // A server may have answered with the beginning of the range only.
            None if self.length.is_some_and(|length| self.at < length) => {
                Err(Broken::Truncated.into())
            }
            None => Ok(Piece::End),
        }
    }

    /// Asks for the rest, or for the whole.
    async fn again(&mut self) -> Result<Piece, ErrorKind> {
        let rest = match self.length {
            Some(length) if self.can_resume() => ByteRange::new(self.at, length),
            _ => None,
        };
        self.ask.range = rest;
        self.ask.if_range = rest.and(self.validator.clone());
        let mut answer = self.engine.exchange(&mut self.ask).await?;
        match (answer.status, rest) {
            (StatusCode::PARTIAL_CONTENT, Some(rest)) => {
                let sound = check_identity(&answer.headers, false)
                    .and_then(|()| check_unchanged(self.validator.as_ref(), &answer.headers))
                    .and_then(|()| check_range(answer.status, &answer.headers, rest));
                if sound.is_err() {
                    // Its bytes do not belong to ours: the next attempt takes the whole.
                    self.validator = None;
                    return Err(Broken::Truncated.into());
                }
                let chunk = answer.chunk().await;
                self.answer = Some(answer);
                match chunk? {
                    Some(data) => Ok(Piece::Data(data)),
                    None => Err(Broken::Truncated.into()),
                }
            }
            (status, _) if status == self.status => {
                let had_some = self.at > 0;
                self.begin(answer);
                if had_some { Ok(Piece::Restart) } else { Box::pin(self.attempt()).await }
            }
            _ => Err(answer.into_status_error().await),
        }
    }
}
