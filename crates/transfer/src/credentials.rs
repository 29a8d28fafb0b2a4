//! Who may read what: credentials by origin, never carried to another one.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use http::HeaderValue;
use trunkline_proto::secret::Secret;
use url::Url;

use crate::oauth2::TokenSource;
use crate::route::decode;

/// How requests to an origin prove who sends them.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    /// Not at all.
    #[default]
    None,
    /// User and password (RFC 7617).
    Basic {
        /// User name.
        user: String,
        /// Password.
        password: Secret,
    },
    /// A fixed token (RFC 6750).
    Bearer(Secret),
    /// Tokens fetched and renewed by OAuth2 client credentials (RFC 6749 §4.4).
    OAuth2(Arc<TokenSource>),
}

impl Auth {
    /// The user information of a URL.
    pub(crate) fn from_url(url: &Url) -> Self {
        if url.username().is_empty() && url.password().is_none() {
            return Self::None;
        }
        let password = Secret::new(decode(url.password().unwrap_or_default()));
        Self::Basic { user: decode(url.username()), password }
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The value of an Authorization header; `None` when it cannot be a header (control characters).
pub(crate) fn basic(user: &str, password: &Secret) -> Option<HeaderValue> {
    let pair = format!("{user}:{}", password.expose());
    let token = base64::engine::general_purpose::STANDARD.encode(pair);
    sensitive(&format!("Basic {token}"))
}

/// As [`basic`] for a token.
pub(crate) fn bearer(token: &Secret) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {}", token.expose()))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A URL without its user information: what goes on the wire and into comparisons.
pub(crate) fn strip(url: &Url) -> Url {
    let mut bare = url.clone();
    // Both calls fail only for URLs that cannot have user information at all.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare
}

impl fmt::Display for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Basic { .. } => "basic",
            Self::Bearer(_) => "bearer",
            Self::OAuth2(_) => "oauth2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_is_the_rfcs_example() {
        let value = basic("Aladdin", &Secret::new("open sesame".to_owned())).unwrap();
        assert_eq!(value.to_str().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive());
    }

    #[test]
    fn a_password_never_shows() {
        let auth = Auth::from_url(&Url::parse("https://me:hush%21@h/").unwrap());
        assert!(!format!("{auth:?}").contains("hush"));
        assert_eq!(strip(&Url::parse("https://me:hush@h/a").unwrap()).as_str(), "https://h/a");
    }

    #[test]
    fn a_token_that_cannot_be_a_header_is_refused() {
        assert!(bearer(&Secret::new("a\r\nX: y".to_owned())).is_none());
    }
}
