//! A request as the origin received it, whatever protocol carried it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The head of a received request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method, as sent.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query without its `?`, when there is one.
    pub query: Option<String>,
    /// The header fields in the order received, names as sent (HTTP/2: lower case).
    pub headers: Vec<(String, String)>,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub protocol: &'static str,
    /// Which connection carried it, counted from 1 in the order of acceptance.
    pub connection: u64,
}

impl Received {
    /// The value of the first field of that name, compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// The user and password of a Basic `Authorization` or, for a proxy, of the named field.
    pub(crate) fn basic(&self, field: &str) -> Option<(String, String)> {
        let value = self.header(field)?;
        let (scheme, token) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let plain = String::from_utf8(STANDARD.decode(token.trim()).ok()?).ok()?;
        let (user, password) = plain.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    pub(crate) fn reads(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    pub(crate) fn expects_continue(&self) -> bool {
        self.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    }

    pub(crate) fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }

    /// The path of a request target in origin-form or absolute-form, and its query.
    pub(crate) fn split_target(target: &str) -> (String, Option<String>) {
        let local = match target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => target,
        };
        match local.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (local.to_owned(), None),
        }
    }
}
