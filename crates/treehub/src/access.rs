//! Who may do what in which namespace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

use crate::routes::Namespace;

/// Where a request names its namespace when its token does not.
const NAMESPACE_HEADER: &str = "x-ats-namespace";

/// What somebody may do; the later includes the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Fetch and check.
    Read,
    /// Store objects and move refs.
    Push,
}

/// A secret that grants a scope. Only its hash is kept.
#[derive(Clone)]
pub struct Token {
    hash: [u8; 32],
    scope: Scope,
    namespace: Option<Namespace>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Token {
    /// A token for one namespace, or for the one that each request names.
    pub fn new(secret: &str, scope: Scope, namespace: Option<Namespace>) -> Self {
        Self { hash: Sha256::digest(secret).into(), scope, namespace }
    }
}

/// The rules of a server.
#[derive(Debug, Clone)]
pub struct Access {
    /// What anybody may do without a token; `None` is nothing.
    pub anonymous: Option<Scope>,
    /// Who may do more.
    pub tokens: Vec<Token>,
}

impl Default for Access {
    /// Everything is open: for loopback, or behind a gateway that checks tokens.
    fn default() -> Self {
        Self { anonymous: Some(Scope::Push), tokens: Vec::new() }
    }
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No token, or an unknown one: 401.
    Unknown,
    /// A token that does not go so far: 403.
    Scope,
    /// The header names no namespace: 400.
    Namespace,
}

impl Access {
    /// The namespace a request with these headers works in, if it may do `needed` there.
    pub(crate) fn admit(&self, headers: &HeaderMap, needed: Scope) -> Result<Namespace, Refusal> {
        let named = match headers.get(NAMESPACE_HEADER) {
            None => Namespace::default(),
            Some(value) => {
                value.to_str().ok().and_then(|text| text.parse().ok()).ok_or(Refusal::Namespace)?
            }
        };
        let Some(token) = self.token(headers) else {
            return match self.anonymous {
                Some(scope) if scope >= needed => Ok(named),
                _ => Err(Refusal::Unknown),
            };
        };
        if token.scope < needed {
            return Err(Refusal::Scope);
        }
        Ok(token.namespace.clone().unwrap_or(named))
    }

    fn token(&self, headers: &HeaderMap) -> Option<&Token> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, rest) = value.split_once(' ')?;
        let secret = if scheme.eq_ignore_ascii_case("bearer") {
            rest.trim().to_owned()
        } else if scheme.eq_ignore_ascii_case("basic") {
            // The token as password, whoever the user is: what a netrc or a URL can carry.
            let pair = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
            pair.split_once(':')?.1.to_owned()
        } else {
            return None;
        };
        // Hashes are compared, so the time taken tells nothing about the secret.
        let hash: [u8; 32] = Sha256::digest(secret).into();
        self.tokens.iter().find(|token| token.hash == hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        headers
    }

    #[test]
    fn tokens_grant_what_they_say() {
        let mine: Namespace = "mine".parse().unwrap();
        let access = Access {
            anonymous: None,
            tokens: vec![
                Token::new("r", Scope::Read, None),
                Token::new("p", Scope::Push, Some(mine.clone())),
            ],
        };
        assert_eq!(access.admit(&HeaderMap::new(), Scope::Read), Err(Refusal::Unknown));
        assert_eq!(access.admit(&headers("Bearer x"), Scope::Read), Err(Refusal::Unknown));
        assert_eq!(access.admit(&headers("Bearer r"), Scope::Read), Ok(Namespace::default()));
        assert_eq!(access.admit(&headers("Bearer r"), Scope::Push), Err(Refusal::Scope));
        assert_eq!(access.admit(&headers("bearer p"), Scope::Push), Ok(mine.clone()));
        assert_eq!(access.admit(&headers("Basic dTpw"), Scope::Push), Ok(mine.clone()));
        let mut named = headers("Bearer p");
        named.insert(NAMESPACE_HEADER, "theirs".parse().unwrap());
        assert_eq!(access.admit(&named, Scope::Push), Ok(mine));
        named.insert(NAMESPACE_HEADER, "../x".parse().unwrap());
        assert_eq!(access.admit(&named, Scope::Push), Err(Refusal::Namespace));
    }

    #[test]
    fn anonymous_gets_what_is_open() {
        let access = Access { anonymous: Some(Scope::Read), tokens: vec![] };
        assert!(access.admit(&HeaderMap::new(), Scope::Read).is_ok());
        assert_eq!(access.admit(&HeaderMap::new(), Scope::Push), Err(Refusal::Unknown));
    }
}
