//! The vocabulary of what an origin can do wrong.

use crate::gate::Gate;
use crate::oauth::TokenIssuer;
use crate::reply::Reply;
use crate::request::Received;
use std::time::Duration;

/// Why an HTTP/2 stream is reset (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamReset {
    /// `REFUSED_STREAM`: nothing was done, safe to send again.
    Refused,
    /// `INTERNAL_ERROR`.
    Internal,
    /// `CANCEL`.
    Cancel,
    /// `ENHANCE_YOUR_CALM`.
    EnhanceYourCalm,
    /// `PROTOCOL_ERROR`.
    Protocol,
}

/// One way to answer a request wrongly, or late, or not at all.
///
/// Counts of bytes are of the body, after any content coding. Where a fault exists in one
/// protocol only, its nearest kin is used in the other and the variant says which.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing wrong: one well-behaved answer in the middle of a script.
    None,
    /// Several at once, applied in order.
    All(Vec<Fault>),

    // Where the body stops.
    /// Closes the connection after that many body bytes (HTTP/2: the whole connection, no GOAWAY).
    CutAfter(u64),
    /// Resets the connection (TCP RST) after that many body bytes.
    ResetAfter(u64),
    /// Resets the HTTP/2 stream after that many body bytes; HTTP/1.1: resets the connection.
    ResetStreamAfter(u64, StreamReset),
    /// Sends that many body bytes and then nothing, for ever.
    StallAfter(u64),
    /// Sends that many body bytes, waits for the gate, sends the rest.
    HoldAfter(u64, Gate),
    /// Sends the body `bytes` at a time with a pause of `every` before each step.
    Drip {
        /// Bytes per step.
        bytes: usize,
        /// Pause before each step.
        every: Duration,
    },
    /// Flips one bit of the body at that offset of the sent bytes; everything else is in order.
    CorruptByte(u64),

    // What is said of its length.
    /// Content-Length is that much larger than the body; then the connection (HTTP/2: the
    /// stream) ends.
    LengthTooLong(u64),
    /// Content-Length is that much smaller than the body that follows.
    LengthTooShort(u64),
    /// No Content-Length: the body ends with the connection (HTTP/2: with the stream).
    NoLength,
    /// Chunked transfer coding, correctly done (HTTP/2: no Content-Length).
    Chunked,

    // Ranges.
    /// 200 with the whole body, whatever Range asked.
    IgnoreRange,
    /// Content-Range says a start that is this much off; the bytes are those that were asked.
    ContentRangeStart(i64),
    /// Content-Range says another total size.
    ContentRangeTotal(u64),
    /// 206 without Content-Range.
    NoContentRange,
    /// 206 with at most that many bytes of what was asked, honestly labelled.
    RangeCap(u64),
    /// No Accept-Ranges field, though ranges work.
    NoAcceptRanges,
    /// Another ETag than the resource's, also when a range's If-Range named the right one.
    OtherEtag(String),

    // Content coding.
    /// The body really compressed with gzip and labelled so, though nobody asked. The range, if
    /// any, is cut first.
    Gzip,
    /// `Content-Encoding: gzip` over a body that is not.
    ClaimGzip,

    // Whole answers.
    /// That status with a short text.
    Status(u16),
    /// Exactly this.
    Answer(Box<Reply>),
    /// That status with `Retry-After` in seconds.
    RetryAfter(u16, u64),
    /// That status with `Retry-After` as a date so many seconds from now.
    RetryAfterDate(u16, u64),
    /// 401 with a Basic challenge unless Authorization is exactly this.
    RequireAuthorization(String),
    /// 401 with a Bearer challenge unless the issuer holds the token valid.
    RequireBearer(TokenIssuer),
    /// 403 unless User-Agent is exactly this.
    RequireUserAgent(String),
    /// That status to HEAD; other methods are served.
    HeadRefused(u16),
    /// HEAD answered without Content-Length.
    HeadWithoutLength,
    /// That status (301, 302, 303, 307, 308) with this Location.
    Redirect(u16, String),
    /// 200 with an HTML page in place of the resource.
    HtmlPage,

    // Heads.
    /// That many extra header fields.
    HeaderCount(usize),
    /// One extra header field with a value of that many bytes.
    HeaderSize(usize),
    /// That many interim 103 responses before the head.
    Interim(usize),
    /// A status line that is none (HTTP/2: stream reset with `PROTOCOL_ERROR`).
    BadStatusLine,
    /// Closes the connection instead of answering.
    CloseBeforeHead,
    /// Resets the connection (TCP RST) instead of answering.
    ResetBeforeHead,
    /// Resets the HTTP/2 stream instead of answering; HTTP/1.1: resets the connection.
    ResetStream(StreamReset),
    /// Never answers; the connection stays open.
    NeverAnswer,
    /// Waits so long before the head.
    DelayHead(Duration),
    /// Waits for the gate before the head.
    HoldHead(Gate),
    /// Keep-alive is promised and the connection closed right after the response, so that the
    /// next request meets a stale socket.
    CloseAfterResponse,

    // Chunked coding gone wrong (HTTP/2, which has no chunks: `PROTOCOL_ERROR` on the stream).
    /// A chunk size line that is no number, after that many body bytes.
    BadChunkSize(u64),
    /// The connection ends where the last chunk should be.
    NoFinalChunk,
    /// Bytes follow the last chunk, where the next response would be.
    DataAfterFinalChunk,

    // Uploads.
    /// Answers with that status before reading the body, so `Expect: 100-continue` gets its no,
    /// and closes.
    EarlyAnswer(u16),
    /// Never sends 100 Continue; takes the body when it comes all the same.
    IgnoreExpect,
    /// Closes the connection after reading that many body bytes.
    CutUploadAfter(u64),
}

impl Fault {
    /// Both: this one first, then the other.
    #[must_use]
    pub fn and(self, other: Fault) -> Self {
        match self {
            Self::All(mut list) => {
                list.push(other);
                Self::All(list)
            }
            first => Self::All(vec![first, other]),
        }
    }

    /// Whether a step with this fault is used up by such a request. Body faults wait for a
    /// request that has a body in answer, range faults for one that asks for a range, so that a
    /// probe before the transfer does not eat the fault meant for it.
    pub(crate) fn concerns(&self, request: &Received) -> bool {
        match self {
            Self::All(list) => list.iter().any(|fault| fault.concerns(request)),
            Self::CutAfter(_)
            | Self::ResetAfter(_)
            | Self::ResetStreamAfter(..)
            | Self::StallAfter(_)
            | Self::HoldAfter(..)
            | Self::Drip { .. }
            | Self::CorruptByte(_)
            | Self::LengthTooLong(_)
            | Self::LengthTooShort(_)
            | Self::Gzip
            | Self::ClaimGzip
            | Self::BadChunkSize(_)
            | Self::NoFinalChunk
            | Self::DataAfterFinalChunk => !request.is_head(),
            Self::IgnoreRange
            | Self::ContentRangeStart(_)
            | Self::ContentRangeTotal(_)
            | Self::NoContentRange
            | Self::RangeCap(_) => request.reads() && request.header("range").is_some(),
            Self::HeadRefused(_) | Self::HeadWithoutLength => request.is_head(),
            Self::EarlyAnswer(_) | Self::IgnoreExpect | Self::CutUploadAfter(_) => !request.reads(),
            _ => true,
        }
    }
}

/// One way to treat a whole connection badly.
#[derive(Clone, Debug)]
pub enum ConnectionFault {
    /// Nothing wrong.
    None,
    /// Reset (TCP RST) as soon as it is accepted.
    ResetOnAccept,
    /// Accepted and never spoken to: the TLS handshake, or the first response, does not come.
    Silent,
    /// HTTP/2: `GOAWAY(NO_ERROR)` naming the last of that many streams; later streams are
    /// dropped unread, the connection closes once the earlier ones are done. HTTP/1.1: as
    /// [`LastResponse`](Self::LastResponse).
    GoAwayAfter(u32),
    /// Bytes that are no frames where HTTP/2's SETTINGS should be, then close. HTTP/1.1
    /// connections are served, so a client can fall back.
    GarbageH2,
    /// `Connection: close` on that response and close after it (HTTP/2: `GOAWAY`).
    LastResponse(u32),
    /// Closed without a word after that many responses.
    CloseAfterResponses(u32),
    /// Closed after that many bytes sent on the wire (heads, frames and TLS included).
    CloseAfterBytes(u64),
    /// Reset (TCP RST) after that many bytes sent on the wire.
    ResetAfterBytes(u64),
}
