//! OAuth2 client credentials (RFC 6749 §4.4): one token for all, renewed before it expires.

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use trunkline_proto::secret::Secret;
use url::Url;
use url::form_urlencoded::Serializer;

use crate::credentials::{basic, bearer};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::request::{Payload, Request};

/// A token is renewed when a tenth of its life is left, at most this long before its end.
const RENEW_BEFORE_MAX: Duration = Duration::from_secs(60);

/// The life of a token whose server does not tell it.
const LIFE_DEFAULT: Duration = Duration::from_secs(300);

/// Largest answer accepted from a token server, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// Where tokens come from. One source may serve several origins; it holds the current token.
pub struct TokenSource {
    endpoint: Url,
    client_id: String,
    client_secret: Secret,
    scope: Option<String>,
    current: Mutex<Option<Token>>,
}

struct Token {
    header: HeaderValue,
    renew_at: Instant,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    #[serde(default)]
    expires_in: Option<f64>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl TokenSource {
    /// A source at a token endpoint.
    pub fn new(
        endpoint: Url,
        client_id: String,
        client_secret: Secret,
        scope: Option<String>,
    ) -> Self {
        Self { endpoint, client_id, client_secret, scope, current: Mutex::new(None) }
    }

    /// The current token as an Authorization value, fetched when there is none or its time is
    /// over. Callers that come meanwhile wait for the same answer. `refused` is a value that a
    /// server has just answered with 401: it is not handed out again.
    pub(crate) async fn header(
        &self,
        engine: &Engine,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, Error> {
        // The lock is held over the fetch: that is the single flight.
        let mut current = self.current.lock().await;
        if let Some(token) = &*current {
            let good = Instant::now() < token.renew_at && refused != Some(&token.header);
            if good {
                return Ok(token.header.clone());
            }
        }
        let token = self.fetch(engine).await?;
        Ok(current.insert(token).header.clone())
    }

    fn form(&self) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if let Some(scope) = &self.scope {
            form.append_pair("scope", scope);
        }
        form.finish()
    }

    async fn fetch(&self, engine: &Engine) -> Result<Token, Error> {
        let asked_at = Instant::now();
        let mut request = Request::new(Method::POST, self.endpoint.clone());
        let fail = |kind| Error::new(&self.endpoint, kind, 1);
        let authorization = basic(&self.client_id, &self.client_secret)
            .ok_or_else(|| fail(ErrorKind::TokenMalformed))?;
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        request.headers = headers;
        request.payload = Payload::Bytes(self.form().into());
        // Asking twice for a token does no harm.
        request.idempotent = true;
        request.reply_bytes_max = ANSWER_BYTES_MAX;
        let reply = Box::pin(engine.send(request)).await?;
        if reply.status != StatusCode::OK {
            let refusal: Option<Refusal> = serde_json::from_slice(&reply.body).ok();
            let detail = refusal.map(|refusal| refusal.error).unwrap_or_default();
            return Err(fail(ErrorKind::Token { status: reply.status, detail }));
        }
        let answer: Answer =
            serde_json::from_slice(&reply.body).map_err(|_| fail(ErrorKind::TokenMalformed))?;
        let header = bearer(&Secret::new(answer.access_token))
            .ok_or_else(|| fail(ErrorKind::TokenMalformed))?;
        let life = answer
            .expires_in
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(LIFE_DEFAULT);
        let renew_before = (life / 10).min(RENEW_BEFORE_MAX);
        Ok(Token { header, renew_at: asked_at + (life - renew_before) })
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource")
            .field("endpoint", &self.endpoint.host_str())
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}
