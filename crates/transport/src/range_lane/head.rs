//! Heads of HTTP/1.1: the request's bytes, the answer's parse, and the framing that follows from
//! it (RFC 9112 §2 to §6). Pure: no sockets here.

#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::header::{PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Version};

use crate::error::HeadError;
use crate::http::{Forwarding, HEAD_BYTES_MAX, HEADERS_MAX, host_of};

/// Informational answers (RFC 9110 §15.2) accepted before the one that counts.
pub(super) const INFORMATIONAL_MAX: usize = 16;

/// How the end of a body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// So many bytes follow; also 0 for answers that never have a body.
    Length(u64),
    /// In chunks (RFC 9112 §7.1), decoded here.
    Chunked,
    /// Until the connection ends, which is then spent.
    UntilClose,
    /// A transfer coding that the range lane does not read. The body cannot be had from this
    /// connection: send the request on the object lane.
    Unsupported,
}

/// An answer's head and what it means for the connection.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) response: Response<BodyFraming>,
    /// Whether another request may follow (RFC 9112 §9.3).
    pub(super) keep_alive: bool,
}

/// Appends the request's head to `out`: origin form, or absolute form for a forwarding proxy;
/// `Host` from the URI unless the headers name one.
pub(super) fn write_request(out: &mut Vec<u8>, request: &Request<()>, forwarding: &Forwarding) {
    let uri = request.uri();
    let mut line = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    line(&[request.method().as_str().as_bytes(), b" "]);
    if forwarding.absolute_form {
        let scheme = uri.scheme_str().unwrap_or("http").as_bytes();
        let authority = uri.authority().map_or("", http::uri::Authority::as_str).as_bytes();
        line(&[scheme, b"://", authority]);
    }
    let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    line(&[target.as_bytes(), b" HTTP/1.1\r\n"]);
    // Host goes first (RFC 9110 §7.2).
    let host = request.headers().get(HOST).cloned().or_else(|| host_of(uri));
    if let Some(host) = host {
        line(&[b"Host: ", host.as_bytes(), b"\r\n"]);
    }
    for (name, value) in request.headers() {
        let replaced = name == PROXY_AUTHORIZATION && forwarding.authorization.is_some();
        if name != HOST && !replaced {
            line(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
    }
    if let Some(value) = &forwarding.authorization {
        line(&[b"Proxy-Authorization: ", value.as_bytes(), b"\r\n"]);
    }
    line(&[b"\r\n"]);
}

/// The length of the head that `bytes` begins with, its empty line included. `scanned` remembers
/// how far earlier calls have looked, so that a head which drips in is searched once.
///
/// # Errors
/// [`HeadError::TooLong`] when the limit passes without an end.
pub(super) fn head_length(bytes: &[u8], scanned: &mut usize) -> Result<Option<usize>, HeadError> {
    let within = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    for at in *scanned..within.len() {
        if within[at] == b'\n' && (within[..at].ends_with(b"\n") || within[..at].ends_with(b"\n\r"))
        {
            return Ok(Some(at + 1));
        }
    }
    *scanned = within.len();
    if bytes.len() >= HEAD_BYTES_MAX {
        return Err(HeadError::TooLong { bytes_max: HEAD_BYTES_MAX });
    }
    Ok(None)
}

/// Parses one whole head. `None` is an informational answer, to be skipped.
///
/// # Errors
/// [`HeadError`], the rule broken.
pub(super) fn parse(method: &Method, head: &[u8]) -> Result<Option<Head>, HeadError> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    let complete = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut parsed, head, &mut headers)
        .map_err(|error| match error {
            httparse::Error::TooManyHeaders => {
                HeadError::TooManyHeaders { headers_max: HEADERS_MAX }
            }
            _ => HeadError::Malformed,
        })?;
    let (Some(code), Some(minor), true) = (parsed.code, parsed.version, complete.is_complete())
    else {
        return Err(HeadError::Malformed);
    };
    let status = StatusCode::from_u16(code).map_err(|_| HeadError::Malformed)?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        // Nobody asked for another protocol (RFC 9110 §7.8).
        return Err(HeadError::Malformed);
    }
    if status.is_informational() {
        return Ok(None);
    }
    let version = if minor == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut fields = HeaderMap::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_bytes(header.value);
        let (Ok(name), Ok(value)) = (name, value) else { return Err(HeadError::Malformed) };
        fields.append(name, value);
    }
    let framing = framing(method, status, version, &fields)?;
    let keep_alive = framing != BodyFraming::UntilClose
        && framing != BodyFraming::Unsupported
        && keeps_alive(version, &fields);
    let mut response = Response::new(framing);
    *response.status_mut() = status;
    *response.version_mut() = version;
    *response.headers_mut() = fields;
    Ok(Some(Head { response, keep_alive }))
}

/// RFC 9112 §6.3, read strictly: what could be understood in two ways is refused.
fn framing(
    method: &Method,
    status: StatusCode,
    version: Version,
    headers: &HeaderMap,
) -> Result<BodyFraming, HeadError> {
    let length = content_length(headers)?;
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let coding = codings.next();
    if coding.is_some() && (length.is_some() || version == Version::HTTP_10) {
        return Err(HeadError::ConflictingFraming);
    }
    if method == Method::HEAD
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
    {
        return Ok(BodyFraming::Length(0));
    }
    Ok(match (coding, length) {
        (Some(coding), _) if codings.next().is_none() && is_chunked(coding) => BodyFraming::Chunked,
        (Some(_), _) => BodyFraming::Unsupported,
        (None, Some(length)) => BodyFraming::Length(length),
        (None, None) => BodyFraming::UntilClose,
    })
}

fn is_chunked(coding: &HeaderValue) -> bool {
    coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// The one number that all Content-Length fields and list members agree on.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, HeadError> {
    let mut agreed = None;
    for member in headers.get_all(CONTENT_LENGTH).iter().flat_map(members) {
        if member.is_empty() || !member.iter().all(u8::is_ascii_digit) {
            return Err(HeadError::ContentLength);
        }
        let number = std::str::from_utf8(member).ok().and_then(|digits| digits.parse().ok());
        match (number, agreed) {
            (Some(number), None) => agreed = Some(number),
            (Some(number), Some(before)) if number == before => {}
            _ => return Err(HeadError::ContentLength),
        }
    }
    Ok(agreed)
}

fn keeps_alive(version: Version, headers: &HeaderMap) -> bool {
    let has = |option: &[u8]| {
        headers
            .get_all(CONNECTION)
            .iter()
            .flat_map(members)
            .any(|member| member.eq_ignore_ascii_case(option))
    };
    if version == Version::HTTP_10 { has(b"keep-alive") && !has(b"close") } else { !has(b"close") }
}

fn members(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}
