//! OAuth2 client credentials (RFC 6749, section 4.4) and bearer tokens (RFC 6750).

use crate::reply::Reply;
use crate::request::Received;
use percent_encoding::percent_decode_str;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Gives out tokens at a token endpoint and knows which are valid. Clones share their state: give
/// one to [`Origin::token_endpoint`](crate::Origin::token_endpoint) and one to
/// [`Fault::RequireBearer`](crate::Fault::RequireBearer).
#[derive(Clone, Debug)]
pub struct TokenIssuer {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    client_id: String,
    client_secret: String,
    expires_in_s: u64,
    /// Expiry by token number; the token's text is made from the number.
    issued: Vec<Instant>,
    revoked_below: usize,
}

impl TokenIssuer {
    /// An issuer that knows one client. Its tokens live an hour.
    pub fn new(client_id: &str, client_secret: &str) -> Self {
        let state = State {
            client_id: client_id.to_owned(),
            client_secret: client_secret.to_owned(),
            expires_in_s: 3600,
            issued: Vec::new(),
            revoked_below: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Tokens issued from now on live that many seconds.
    #[must_use]
    pub fn expires_in_s(self, seconds: u64) -> Self {
        self.state().expires_in_s = seconds;
        self
    }

    /// How many tokens were given out.
    pub fn issued(&self) -> usize {
        self.state().issued.len()
    }

    /// Makes every token given out so far invalid, whatever its expiry says.
    pub fn revoke_all(&self) {
        let mut state = self.state();
        state.revoked_below = state.issued.len();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds_valid(&self, token: &str) -> bool {
        let state = self.state();
        let number = token.strip_prefix("testkit-token-").and_then(|n| n.parse::<usize>().ok());
        number.is_some_and(|number| {
            number >= state.revoked_below
                && state.issued.get(number).is_some_and(|expiry| *expiry > Instant::now())
        })
    }

    /// 401 unless the request bears a valid token.
    pub(crate) fn refuse(&self, request: &Received) -> Option<Reply> {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let challenge = match token {
            Some(token) if self.holds_valid(token) => return None,
            Some(_) => "Bearer realm=\"testkit\", error=\"invalid_token\"",
            None => "Bearer realm=\"testkit\"",
        };
        Some(Reply::text(401, "no valid token\n").header("www-authenticate", challenge))
    }

    /// The token endpoint.
    pub(crate) fn answer(&self, request: &Received, body: &[u8]) -> Reply {
        if request.method != "POST" {
            return Reply::text(405, "POST only\n");
        }
        let form = parse_form(body);
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, v)| v.clone());
        if field("grant_type").as_deref() != Some("client_credentials") {
            return json(400, r#"{"error":"unsupported_grant_type"}"#);
        }
        let in_form = || Some((field("client_id")?, field("client_secret")?));
        let mut state = self.state();
        let right = (state.client_id.clone(), state.client_secret.clone());
        if request.basic("authorization").or_else(in_form) != Some(right) {
            return json(401, r#"{"error":"invalid_client"}"#)
                .header("www-authenticate", "Basic realm=\"testkit\"");
        }
        let (number, expires_in_s) = (state.issued.len(), state.expires_in_s);
        state.issued.push(Instant::now() + Duration::from_secs(expires_in_s));
        json(
            200,
            &format!(
                r#"{{"access_token":"testkit-token-{number}","token_type":"Bearer","expires_in":{expires_in_s}}}"#
            ),
        )
        .header("cache-control", "no-store")
    }
}

fn json(status: u16, body: &str) -> Reply {
    Reply::new(status).header("content-type", "application/json").body(body.to_owned())
}

fn parse_form(body: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(body).replace('+', " ");
    let plain = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (plain(key), plain(value)))
        .collect()
}
