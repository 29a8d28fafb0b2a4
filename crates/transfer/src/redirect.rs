//! Where a redirect leads and what may go along (RFC 9110 §15.4): pure.

use http::header::{HeaderMap, LOCATION};
use http::{Method, StatusCode};
use trunkline_transport::Origin;
use url::Url;

use crate::display::SafeUrl;
use crate::error::ErrorKind;

/// Redirects followed for one request, unless asked otherwise (R follows as many).
pub const REDIRECTS_MAX_DEFAULT: u32 = 20;

/// Whether the status asks for another URL.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whether a request of this method may follow the redirect with its method and body unchanged.
pub(crate) fn may_follow(status: StatusCode, method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD) || matches!(status.as_u16(), 307 | 308)
}

/// The URL that a redirect names, relative ones resolved against `from`.
///
/// # Errors
/// [`ErrorKind::RedirectTarget`] without a usable Location; [`ErrorKind::RedirectDowngrade`]
/// from https to http unless `downgrade` is allowed.
pub(crate) fn target(
    from: &Url,
    status: StatusCode,
    headers: &HeaderMap,
    downgrade: bool,
) -> Result<Url, ErrorKind> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let mut target = location
        .and_then(|location| from.join(location).ok())
        .filter(|target| matches!(target.scheme(), "http" | "https") && target.has_host())
        .ok_or(ErrorKind::RedirectTarget { status })?;
    if target.fragment().is_none() {
        target.set_fragment(from.fragment());
    }
    if from.scheme() == "https" && target.scheme() == "http" && !downgrade {
        return Err(ErrorKind::RedirectDowngrade { target: SafeUrl::new(&target) });
    }
    Ok(target)
}

/// Drops what must not reach another origin: credentials, cookies and every header that the
/// caller set. Returns whether the origin changed.
pub(crate) fn cross(from: &Url, to: &Url, headers: &mut HeaderMap) -> bool {
    let same = match (Origin::from_url(from), Origin::from_url(to)) {
        (Ok(from), Ok(to)) => from == to,
        _ => false,
    };
    if !same {
        headers.clear();
    }
    !same
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::AUTHORIZATION;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn location(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[test]
    fn relative_targets_are_resolved() {
        let to = target(&url("https://h/a/b"), StatusCode::FOUND, &location("../c?d"), false);
        assert_eq!(to.unwrap(), url("https://h/c?d"));
    }

    #[test]
    fn https_does_not_fall_to_http_unasked() {
        let from = url("https://h/a");
        let down = location("http://h/a");
        let refused = target(&from, StatusCode::FOUND, &down, false);
        assert!(matches!(refused, Err(ErrorKind::RedirectDowngrade { .. })));
        assert!(target(&from, StatusCode::FOUND, &down, true).is_ok());
    }

    #[test]
    fn a_target_must_be_http() {
        for bad in ["file:///etc/passwd", "ftp://h/", "http://", "https:///x y"] {
            let to = target(&url("http://h/"), StatusCode::FOUND, &location(bad), false);
            let refused = matches!(to, Err(ErrorKind::RedirectTarget { .. }));
            assert!(refused || to.unwrap().scheme().starts_with("http"), "{bad}");
        }
    }

    #[test]
    fn private_headers_stay_with_their_origin() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("secret"));
        headers.insert("x-private", HeaderValue::from_static("secret"));
        let mut kept = headers.clone();
        assert!(!cross(&url("https://h/a"), &url("https://h:443/b"), &mut kept));
        assert_eq!(kept, headers);
        for other in ["http://h/a", "https://h:444/a", "https://other/a"] {
            let mut crossed = headers.clone();
            assert!(cross(&url("https://h/a"), &url(other), &mut crossed));
            assert!(crossed.is_empty(), "{other}");
        }
    }
}
