//! A response in the making: what is sent, how its end is told, how fast, and how it breaks off.

use crate::fault::StreamReset;
use crate::gate::Gate;
use bytes::Bytes;
use std::time::Duration;

/// How HTTP/1.1 tells where the body ends (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Content-Length; `Some` is a lie.
    Length(Option<u64>),
    Chunked,
    UntilClose,
}

/// What happens instead of a head.
#[derive(Clone, Debug)]
pub(crate) enum Opening {
    Head,
    BadStatusLine,
    Close,
    Reset,
    Never,
    ResetStream(StreamReset),
}

/// How the body ends.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Whole,
    Close { after: u64 },
    Reset { after: u64 },
    ResetStream { after: u64, reason: StreamReset },
    Stall { after: u64 },
    Hold { after: u64, gate: Gate },
    BadChunkSize { after: u64 },
    NoFinalChunk,
    DataAfterFinalChunk,
}

/// Bytes per step, and the pause before each step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drip {
    pub(crate) bytes: usize,
    pub(crate) every: Duration,
}

/// A response. Tests make one for [`Fault::Answer`](crate::Fault::Answer) or as the result of a
/// handler; faults then distort it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) framing: Framing,
    pub(crate) opening: Opening,
    pub(crate) ending: Ending,
    pub(crate) head_delay: Duration,
    pub(crate) head_gate: Option<Gate>,
    pub(crate) interim: usize,
    pub(crate) drip: Option<Drip>,
    pub(crate) close_quietly: bool,
}

impl Reply {
    /// A response with an empty body.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            framing: Framing::Length(None),
            opening: Opening::Head,
            ending: Ending::Whole,
            head_delay: Duration::ZERO,
            head_gate: None,
            interim: 0,
            drip: None,
            close_quietly: false,
        }
    }

    /// A response with a short text that says what happened.
    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::new(status).header("content-type", "text/plain").body(text.to_owned())
    }

    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn set_header(&mut self, name: &str, value: impl Into<String>) {
        self.remove_header(name);
        self.headers.push((name.to_owned(), value.into()));
    }

    pub(crate) fn remove_header(&mut self, name: &str) {
        self.headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
    }

    /// Whether this status can carry a body at all (RFC 9110, section 6.4.1).
    pub(crate) fn may_have_body(&self) -> bool {
        !matches!(self.status, 100..=199 | 204 | 304)
    }

    /// What Content-Length says, when there is one.
    pub(crate) fn announced_length(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(lie) => Some(lie.unwrap_or(self.body.len() as u64)),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// How many body bytes go out before the ending happens.
    pub(crate) fn bytes_before_ending(&self) -> usize {
        let whole = self.body.len();
        match self.ending {
            Ending::Close { after }
            | Ending::Reset { after }
            | Ending::ResetStream { after, .. }
            | Ending::Stall { after }
            | Ending::Hold { after, .. }
            | Ending::BadChunkSize { after } => {
                usize::try_from(after).map_or(whole, |after| after.min(whole))
            }
            Ending::Whole | Ending::NoFinalChunk | Ending::DataAfterFinalChunk => whole,
        }
    }
}
