//! What the tour's origin answers: files, and parts of them (RFC 9110 §14).

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use trunkline_proto::range::ByteRange;

use super::files::{FileSet, TourFile};

/// The answer to a request; hyper adds Date, and Content-Length where there is a body.
///
/// # Errors
/// Never: all parts of the answer are made here.
pub(super) fn answer(
    files: &FileSet,
    request: &Request<()>,
) -> Result<Response<Full<Bytes>>, http::Error> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let response = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED);
        return response.header(ALLOW, "GET, HEAD").body(Full::default());
    }
    let Some(file) = files.at_path(request.uri().path()) else {
        return Response::builder().status(StatusCode::NOT_FOUND).body(Full::default());
    };
    let length = file.body.len() as u64;
    let response = Response::builder()
        .header(ACCEPT_RANGES, "bytes")
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(ETAG, &file.etag);
    // A range means something to GET alone (RFC 9110 §14.2).
    if request.method() == Method::HEAD {
        return response.header(CONTENT_LENGTH, length).body(Full::default());
    }
    match asked_range(request.headers(), file) {
        Asked::Whole => response.body(Full::new(file.body.clone())),
        Asked::Part(range) => response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(CONTENT_RANGE, format!("bytes {}-{}/{length}", range.start(), range.end() - 1))
            .body(Full::new(file.body.slice(range.start() as usize..range.end() as usize))),
        Asked::Beyond => response
            .status(StatusCode::RANGE_NOT_SATISFIABLE)
            .header(CONTENT_RANGE, format!("bytes */{length}"))
            .body(Full::default()),
    }
}

/// What a request asks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Part(ByteRange),
    Beyond,
}

fn asked_range(headers: &HeaderMap, file: &TourFile) -> Asked {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_current = match text(IF_RANGE) {
        None => !headers.contains_key(IF_RANGE),
        Some(validator) => validator == file.etag,
    };
    match text(RANGE) {
        Some(range) if is_current => parse_range(range, file.body.len() as u64),
        _ => Asked::Whole,
    }
}

/// Reads a Range header of one range. What is malformed, of another unit or of several ranges is
/// ignored, as RFC 9110 §14.2 allows.
fn parse_range(text: &str, length: u64) -> Asked {
    let one = text.strip_prefix("bytes=").and_then(|rest| rest.split_once('-'));
    let Some((first, last)) = one else { return Asked::Whole };
    let (start, end) = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => (first, length),
        (None, Some(suffix)) if first.is_empty() => (length.saturating_sub(suffix), length),
        _ => return Asked::Whole,
    };
    ByteRange::new(start, end).map_or(Asked::Beyond, Asked::Part)
}

/// Digits alone: `parse` would also take a sign.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64) -> Asked {
        Asked::Part(ByteRange::new(start, end).unwrap())
    }

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let cases = [
            ("bytes=0-9", part(0, 10)),
            ("bytes=5-5", part(5, 6)),
            ("bytes=90-", part(90, 100)),
            ("bytes=90-500", part(90, 100)),
            ("bytes=90-18446744073709551615", part(90, 100)),
            ("bytes=-10", part(90, 100)),
            ("bytes=-500", part(0, 100)),
            ("bytes=100-", Asked::Beyond),
            ("bytes=100-200", Asked::Beyond),
            ("bytes=-0", Asked::Beyond),
            ("bytes=9-5", Asked::Whole),
            ("bytes=0-1,5-6", Asked::Whole),
            ("bytes=+1-5", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("lines=0-9", Asked::Whole),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_range(text, 100), expected, "{text}");
        }
    }

    fn ask(files: &FileSet, headers: &[(&str, &str)]) -> Response<Full<Bytes>> {
        let mut request = Request::builder().uri("/0000.bin");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(files, &request.body(()).unwrap()).unwrap()
    }

    #[test]
    fn a_range_of_another_version_gets_the_whole_file() {
        let files = FileSet::generate(1, 1000, u64::MAX).unwrap();
        let etag = files.as_slice()[0].etag.clone();
        let status = |if_range: &str| {
            ask(&files, &[("range", "bytes=1-2"), ("if-range", if_range)]).status()
        };
        assert_eq!(status(&etag), StatusCode::PARTIAL_CONTENT);
        assert_eq!(status("\"other\""), StatusCode::OK);
    }

    #[test]
    fn a_range_beyond_the_end_tells_the_length() {
        let files = FileSet::generate(1, 1000, u64::MAX).unwrap();
        let length = files.as_slice()[0].body.len();
        let response = ask(&files, &[("range", "bytes=99999999-")]);
        assert_eq!(response.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(response.headers()[CONTENT_RANGE], format!("bytes */{length}").as_str());
    }

    #[test]
    fn only_files_can_be_had_and_only_read() {
        let files = FileSet::generate(1, 1000, u64::MAX).unwrap();
        let status = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            answer(&files, &request).unwrap().status()
        };
        assert_eq!(status(Method::HEAD, "/0000.bin"), StatusCode::OK);
        assert_eq!(status(Method::GET, "/0001.bin"), StatusCode::NOT_FOUND);
        assert_eq!(status(Method::PUT, "/0000.bin"), StatusCode::METHOD_NOT_ALLOWED);
    }
}
