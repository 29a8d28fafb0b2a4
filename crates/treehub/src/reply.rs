//! Answers: what is said, and what is said when something is wrong.

use std::error::Error;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::access::Refusal;
use crate::body::ReplyBody;
use crate::store::StoreError;

/// Any error of a body that comes in.
pub type BoxError = Box<dyn Error + Send + Sync>;

pub(crate) type Reply = Response<ReplyBody>;

/// An answer that says no, in Treehub's form: `{"code": .., "description": ..}`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) description: String,
}

impl Failure {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        description: impl Into<String>,
    ) -> Self {
        Self { status, code, description: description.into() }
    }

    pub(crate) fn bad_request(description: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", description)
    }

    pub(crate) fn not_found(code: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, "not found")
    }

    pub(crate) fn body_cut() -> Self {
        Self::bad_request("the request body ended early")
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        // Paths of the server are for its own log.
        tracing::error!(%error, "the store failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", "the store failed")
    }
}

impl From<tokio::task::JoinError> for Failure {
    fn from(error: tokio::task::JoinError) -> Self {
        tracing::error!(%error, "a worker failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "a worker failed")
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (status, code, description) = match refusal {
            Refusal::Unknown => {
                (StatusCode::UNAUTHORIZED, "unauthorized", "a valid token is needed")
            }
            Refusal::Scope => (StatusCode::FORBIDDEN, "forbidden", "this token may not do that"),
            Refusal::Namespace => {
                (StatusCode::BAD_REQUEST, "bad_request", "x-ats-namespace names no namespace")
            }
        };
        Self::new(status, code, description)
    }
}

#[derive(Serialize)]
struct FailureText<'a> {
    code: &'a str,
    description: &'a str,
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        let Failure { status, code, description } = failure;
        let mut reply = json(status, &FailureText { code, description: &description });
        if status == StatusCode::UNAUTHORIZED {
            let name = http::header::WWW_AUTHENTICATE;
            reply.headers_mut().insert(name, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::empty());
    *reply.status_mut() = status;
    reply
}

pub(crate) fn text(text: impl Into<String>) -> Reply {
    typed("text/plain; charset=UTF-8", ReplyBody::full(text.into()))
}

pub(crate) fn typed(media_type: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    reply
}

pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let text = serde_json::to_vec(value).expect("invariant: our answers are plain data");
    let mut reply = typed("application/json", ReplyBody::full(text));
    *reply.status_mut() = status;
    reply
}
