//! What each fault does to an answer, in three steps: refuse it, serve it on other terms, distort
//! what would have been right.

use crate::fault::Fault;
use crate::reply::{Drip, Ending, Framing, Opening, Reply};
use crate::request::Received;
use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use std::io::Write as _;
use std::time::{Duration, SystemTime};

/// The terms on which a resource is served; faults change them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) ignore_range: bool,
    pub(crate) range_bytes_max: Option<u64>,
    pub(crate) etag: Option<String>,
}

const HTML_PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Access denied</title></head>\
<body><h1>Your organisation has blocked this page</h1></body></html>\n";

impl Fault {
    /// An answer that takes the place of the resource.
    pub(crate) fn refuse(&self, request: &Received) -> Option<Reply> {
        match self {
            Self::All(list) => list.iter().find_map(|fault| fault.refuse(request)),
            Self::Status(status) => Some(Reply::text(*status, "scripted status\n")),
            Self::EarlyAnswer(status) => Some(Reply::text(*status, "no need to send it\n")),
            Self::Answer(reply) => Some((**reply).clone()),
            Self::RetryAfter(status, seconds) => Some(
                Reply::text(*status, "come back later\n")
                    .header("retry-after", seconds.to_string()),
            ),
            Self::RetryAfterDate(status, seconds) => {
                let when = SystemTime::now() + Duration::from_secs(*seconds);
                let date = httpdate::fmt_http_date(when);
                Some(Reply::text(*status, "come back later\n").header("retry-after", date))
            }
            Self::RequireAuthorization(value) => (request.header("authorization") != Some(value))
                .then(|| {
                    Reply::text(401, "credentials missing or wrong\n")
                        .header("www-authenticate", "Basic realm=\"testkit\"")
                }),
            Self::RequireBearer(issuer) => issuer.refuse(request),
            Self::RequireUserAgent(value) => (request.header("user-agent") != Some(value))
                .then(|| Reply::text(403, "unknown user agent\n")),
            Self::HeadRefused(status) => {
                request.is_head().then(|| Reply::text(*status, "no HEAD here\n"))
            }
            Self::Redirect(status, location) => {
                Some(Reply::text(*status, "elsewhere\n").header("location", location.clone()))
            }
            Self::HtmlPage => {
                Some(Reply::new(200).header("content-type", "text/html").body(HTML_PAGE))
            }
            _ => None,
        }
    }

    /// Changes the terms before the resource is served.
    pub(crate) fn set_terms(&self, terms: &mut Terms) {
        match self {
            Self::All(list) => list.iter().for_each(|fault| fault.set_terms(terms)),
            Self::IgnoreRange => terms.ignore_range = true,
            Self::RangeCap(bytes_max) => terms.range_bytes_max = Some(*bytes_max),
            Self::OtherEtag(etag) => terms.etag = Some(etag.clone()),
            _ => {}
        }
    }

    /// Distorts the answer that would have been right.
    pub(crate) fn distort(&self, request: &Received, reply: &mut Reply) {
        match self {
            Self::All(list) => list.iter().for_each(|fault| fault.distort(request, reply)),
            Self::ContentRangeStart(_)
            | Self::ContentRangeTotal(_)
            | Self::NoContentRange
            | Self::NoAcceptRanges
            | Self::HeadWithoutLength
            | Self::HeaderCount(_)
            | Self::HeaderSize(_)
            | Self::Gzip
            | Self::ClaimGzip
            | Self::CorruptByte(_) => self.distort_content(request, reply),
            Self::LengthTooLong(more) => {
                reply.framing = Framing::Length(Some(reply.body.len() as u64 + more));
            }
            Self::LengthTooShort(less) => {
                let length = (reply.body.len() as u64).saturating_sub(*less);
                reply.framing = Framing::Length(Some(length));
            }
            Self::NoLength => reply.framing = Framing::UntilClose,
            Self::Chunked => reply.framing = Framing::Chunked,
            _ => self.distort_delivery(reply),
        }
    }

    fn distort_content(&self, request: &Received, reply: &mut Reply) {
        match self {
            Self::ContentRangeStart(shift) => edit_content_range(reply, |start, end, total| {
                (start.saturating_add_signed(*shift), end.saturating_add_signed(*shift), total)
            }),
            Self::ContentRangeTotal(total) => {
                edit_content_range(reply, |start, end, _| (start, end, *total));
            }
            Self::NoContentRange => reply.remove_header("content-range"),
            Self::NoAcceptRanges => reply.remove_header("accept-ranges"),
            Self::HeadWithoutLength if request.is_head() => reply.framing = Framing::UntilClose,
            Self::HeaderCount(count) => reply
                .headers
                .extend((0..*count).map(|n| (format!("x-filler-{n}"), "filler".to_owned()))),
            Self::HeaderSize(bytes) => {
                reply.headers.push(("x-filler".to_owned(), "x".repeat(*bytes)));
            }
            Self::Gzip => {
                reply.body = gzip(&reply.body);
                reply.set_header("content-encoding", "gzip");
            }
            Self::ClaimGzip => reply.set_header("content-encoding", "gzip"),
            Self::CorruptByte(at) => flip_bit(reply, *at),
            _ => {}
        }
    }

    fn distort_delivery(&self, reply: &mut Reply) {
        match self {
            Self::CutAfter(after) => reply.ending = Ending::Close { after: *after },
            Self::ResetAfter(after) => reply.ending = Ending::Reset { after: *after },
            Self::ResetStreamAfter(after, reason) => {
                reply.ending = Ending::ResetStream { after: *after, reason: *reason };
            }
            Self::StallAfter(after) => reply.ending = Ending::Stall { after: *after },
            Self::HoldAfter(after, gate) => {
                reply.ending = Ending::Hold { after: *after, gate: gate.clone() };
            }
            Self::BadChunkSize(after) => {
                reply.framing = Framing::Chunked;
                reply.ending = Ending::BadChunkSize { after: *after };
            }
            Self::NoFinalChunk => {
                reply.framing = Framing::Chunked;
                reply.ending = Ending::NoFinalChunk;
            }
            Self::DataAfterFinalChunk => {
                reply.framing = Framing::Chunked;
                reply.ending = Ending::DataAfterFinalChunk;
            }
            Self::Drip { bytes, every } => {
                reply.drip = Some(Drip { bytes: (*bytes).max(1), every: *every });
            }
            Self::Interim(count) => reply.interim = *count,
            Self::BadStatusLine => reply.opening = Opening::BadStatusLine,
            Self::CloseBeforeHead => reply.opening = Opening::Close,
            Self::ResetBeforeHead => reply.opening = Opening::Reset,
            Self::ResetStream(reason) => reply.opening = Opening::ResetStream(*reason),
            Self::NeverAnswer => reply.opening = Opening::Never,
            Self::DelayHead(delay) => reply.head_delay += *delay,
            Self::HoldHead(gate) => reply.head_gate = Some(gate.clone()),
            Self::CloseAfterResponse => reply.close_quietly = true,
            _ => {}
        }
    }

    /// The number of upload bytes after which the connection is closed, if this fault does so.
    pub(crate) fn upload_cut(&self) -> Option<u64> {
        match self {
            Self::All(list) => list.iter().find_map(Self::upload_cut),
            Self::CutUploadAfter(bytes) => Some(*bytes),
            _ => None,
        }
    }

    /// Whether the answer comes before the request's body is read.
    pub(crate) fn answers_early(&self) -> bool {
        match self {
            Self::All(list) => list.iter().any(Self::answers_early),
            Self::EarlyAnswer(_) => true,
            _ => false,
        }
    }

    /// Whether `Expect: 100-continue` gets no interim answer.
    pub(crate) fn ignores_expect(&self) -> bool {
        match self {
            Self::All(list) => list.iter().any(Self::ignores_expect),
            Self::IgnoreExpect => true,
            _ => false,
        }
    }
}

fn edit_content_range(reply: &mut Reply, edit: impl Fn(u64, u64, u64) -> (u64, u64, u64)) {
    let Some(at) = reply.headers.iter().position(|(name, _)| name == "content-range") else {
        return;
    };
    let numbers: Vec<u64> = reply.headers[at]
        .1
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    if let [start, end, total] = numbers[..] {
        let (start, end, total) = edit(start, end, total);
        reply.headers[at].1 = format!("bytes {start}-{end}/{total}");
    }
}

fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("writing to a vector cannot fail");
    Bytes::from(encoder.finish().expect("writing to a vector cannot fail"))
}

fn flip_bit(reply: &mut Reply, at: u64) {
    let mut body = BytesMut::from(&reply.body[..]);
    if let Some(byte) = usize::try_from(at).ok().and_then(|at| body.get_mut(at)) {
        *byte ^= 1;
    }
    reply.body = body.freeze();
}
