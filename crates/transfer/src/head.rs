//! What an answer's head promises about a body, checked before a byte of it is used: pure.

use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderMap,
    HeaderName, LAST_MODIFIED,
};
use trunkline_proto::range::{ByteRange, ContentRange, Validator};

use crate::error::ErrorKind;

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The strong validator of an answer, if it has one (RFC 9110 §8.8).
pub(crate) fn validator(headers: &HeaderMap) -> Option<Validator> {
    Validator::from_headers(
        text(headers, &ETAG),
        text(headers, &LAST_MODIFIED),
        text(headers, &DATE),
    )
}

/// Whether the server says that it serves ranges. Many do without saying so.
pub(crate) fn accepts_ranges(headers: &HeaderMap) -> bool {
    text(headers, &ACCEPT_RANGES).is_some_and(|value| value.eq_ignore_ascii_case("bytes"))
}

/// Refuses a body that is not the file's bytes: compressed, or a web page where none may be.
pub(crate) fn check_identity(headers: &HeaderMap, refuse_html: bool) -> Result<(), ErrorKind> {
    if let Some(encoding) = headers.get(CONTENT_ENCODING) {
        let encoding = String::from_utf8_lossy(encoding.as_bytes()).trim().to_ascii_lowercase();
        if !encoding.is_empty() && encoding != "identity" {
            return Err(ErrorKind::Encoded { encoding });
        }
    }
    let is_html = text(headers, &CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.trim().to_ascii_lowercase();
        kind.starts_with("text/html") || kind.starts_with("application/xhtml")
    });
    if refuse_html && is_html { Err(ErrorKind::WebPage) } else { Ok(()) }
}

/// Checks that a 206 carries exactly the range asked for, or a beginning of it, and returns the
/// range that it carries and the whole length.
pub(crate) fn check_range(
    status: StatusCode,
    headers: &HeaderMap,
    asked: ByteRange,
) -> Result<(ByteRange, Option<u64>), ErrorKind> {
    if status == StatusCode::OK {
        return Err(ErrorKind::RangeIgnored);
    }
    let sent = text(headers, &CONTENT_RANGE);
    let mismatch = || ErrorKind::RangeMismatch {
        start: asked.start(),
        end: asked.end(),
        sent: sent.unwrap_or("none").to_owned(),
    };
    let parsed = sent.and_then(|sent| sent.parse::<ContentRange>().ok()).ok_or_else(mismatch)?;
    let ContentRange::Satisfied { range, complete_length } = parsed else {
        return Err(mismatch());
    };
    if range.start() != asked.start() || range.end() > asked.end() {
        return Err(mismatch());
    }
    Ok((range, complete_length))
}

/// Compares the validator of a later answer with the one at the start. An answer without one
/// proves nothing and is taken: the caller's If-Range and the length have to do.
pub(crate) fn check_unchanged(
    was: Option<&Validator>,
    headers: &HeaderMap,
) -> Result<(), ErrorKind> {
    let (Some(was), Some(is)) = (was, validator(headers)) else { return Ok(()) };
    if was.same_as(&is) {
        return Ok(());
    }
    Err(ErrorKind::Changed { was: was.to_string(), is: is.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (n.clone(), HeaderValue::from_str(v).unwrap())).collect()
    }

    #[test]
    fn compressed_bodies_are_refused_whatever_was_asked() {
        for bad in ["gzip", "GZIP", "br, gzip"] {
            let refused = check_identity(&headers(&[(CONTENT_ENCODING, bad)]), false);
            assert!(matches!(refused, Err(ErrorKind::Encoded { .. })), "{bad}");
        }
        assert!(check_identity(&headers(&[(CONTENT_ENCODING, "identity")]), false).is_ok());
    }

    #[test]
    fn a_login_page_is_no_package() {
        let page = headers(&[(CONTENT_TYPE, "Text/HTML; charset=utf-8")]);
        assert!(matches!(check_identity(&page, true), Err(ErrorKind::WebPage)));
        assert!(check_identity(&page, false).is_ok());
    }

    #[test]
    fn a_range_must_be_the_one_asked_for() {
        let asked = ByteRange::new(10, 20).unwrap();
        let check = |sent: &str| {
            check_range(StatusCode::PARTIAL_CONTENT, &headers(&[(CONTENT_RANGE, sent)]), asked)
        };
        assert_eq!(check("bytes 10-19/100").unwrap(), (asked, Some(100)));
        assert_eq!(check("bytes 10-14/*").unwrap(), (ByteRange::new(10, 15).unwrap(), None));
        for bad in ["bytes 0-9/100", "bytes 10-20/100", "bytes */100", "10-19/100", ""] {
            assert!(matches!(check(bad), Err(ErrorKind::RangeMismatch { .. })), "{bad}");
        }
        let whole = check_range(StatusCode::OK, &HeaderMap::new(), asked);
        assert!(matches!(whole, Err(ErrorKind::RangeIgnored)));
    }
}
