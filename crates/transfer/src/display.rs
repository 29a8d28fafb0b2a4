//! URLs that are safe to show: no passwords, no signatures.

use std::fmt;

use url::Url;

/// Query keys whose values are secrets in signed URLs (S3, GCS, Azure and kin), lower case.
const SECRET_KEYS: [&str; 10] = [
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "signature",
    "sig",
    "token",
    "access_token",
    "key",
];

/// A URL for events, errors and logs: user information is left out and the values of signing
/// parameters are replaced by `***`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SafeUrl(String);

impl SafeUrl {
    /// The safe form of a URL.
    pub fn new(url: &Url) -> Self {
        let has_user = !url.username().is_empty() || url.password().is_some();
        let has_secret = url.query_pairs().any(|(key, _)| is_secret(&key));
        if !has_user && !has_secret {
            return Self(url.as_str().to_owned());
        }
        let mut safe = url.clone();
        // Both calls fail only for URLs that cannot have user information at all.
        let _ = safe.set_username("");
        let _ = safe.set_password(None);
        if has_secret {
            let pairs: Vec<(String, String)> = url
                .query_pairs()
                .map(|(key, value)| {
                    let value = if is_secret(&key) { "***".into() } else { value.into_owned() };
                    (key.into_owned(), value)
                })
                .collect();
            safe.query_pairs_mut().clear().extend_pairs(pairs);
        }
        Self(safe.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_secret(key: &str) -> bool {
    SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str())
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_do_not_show() {
        let safe = |url: &str| SafeUrl::new(&Url::parse(url).unwrap()).to_string();
        assert_eq!(safe("https://u:p@h/a?b=c"), "https://h/a?b=c");
        assert_eq!(
            safe("https://h/a?X-Amz-Signature=abc&n=1"),
            "https://h/a?X-Amz-Signature=***&n=1"
        );
        assert_eq!(safe("https://h/a%20b"), "https://h/a%20b");
    }
}
