//! From a path of the mirror to the URL behind it, and back.

use std::fmt;

use url::Url;

/// Shortest token accepted, in characters.
const TOKEN_LEN_MIN: usize = 16;

/// The secret first part of a mirror's path.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token of letters and digits, at least 16 of them; `None` for anything else.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (plain && text.len() >= TOKEN_LEN_MIN).then(|| Self(text.to_owned()))
    }

    /// The token, to be put into a URL for a client that may use the mirror.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the first difference is.
    fn matches(&self, text: &str) -> bool {
        let differences = self.0.bytes().zip(text.bytes()).map(|(a, b)| a ^ b);
        self.0.len() == text.len() && differences.fold(0, |all, one| all | one) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What a path of the mirror stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The URL behind it.
    pub url: Url,
    /// What lies there.
    pub kind: Kind,
}

/// What kind of file a URL names, by the conventions of R's repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An index (`PACKAGES`, in any spelling) or an archive listing: it changes under its name.
    Index {
        /// The folder it describes.
        contrib_url: String,
    },
    /// A package: its name has its version, so it does not change.
    Package {
        /// The folder it is in.
        folder_url: String,
        /// Its file name.
        file: String,
    },
    /// Anything else, passed on as it comes.
    Other,
}

impl Route {
    /// Reads `/TOKEN/SCHEME/AUTHORITY/PATH?QUERY`; `None` for a wrong token or any other path.
    #[must_use]
    pub fn parse(path_and_query: &str, token: Option<&Token>) -> Option<Self> {
        let mut rest = path_and_query.strip_prefix('/')?;
        if let Some(token) = token {
            let (given, after) = rest.split_once('/')?;
            if !token.matches(given) {
                return None;
            }
            rest = after;
        }
        let (scheme, rest) = rest.split_once('/')?;
        if !matches!(scheme, "http" | "https") {
            return None;
        }
        let url = Url::parse(&format!("{scheme}://{rest}")).ok()?;
        // An authority with credentials would store them in the cache's keys.
        if !url.has_host() || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let kind = Kind::of(&url);
        Some(Self { url, kind })
    }
}

impl Kind {
    fn of(url: &Url) -> Self {
        if url.query().is_some() {
            return Self::Other;
        }
        let (folder, file) = url.as_str().rsplit_once('/').unwrap_or_default();
        let is_package = [".tar.gz", ".tgz", ".zip"].iter().any(|end| file.ends_with(end));
        if matches!(file, "PACKAGES" | "PACKAGES.gz" | "PACKAGES.rds") {
            Self::Index { contrib_url: folder.to_owned() }
        } else if file == "archive.rds" && folder.ends_with("/Meta") {
            Self::Index { contrib_url: folder.trim_end_matches("/Meta").to_owned() }
        } else if is_package && file.contains('_') {
            Self::Package { folder_url: folder.to_owned(), file: file.to_owned() }
        } else {
            Self::Other
        }
    }
}

/// The mirror's URL for a repository, or for anything else behind `http` or `https`.
///
/// `base` is the mirror's own root, such as `http://127.0.0.1:4321`. `None` for a URL that the
/// mirror cannot stand for.
#[must_use]
pub fn mirrored(base: &str, token: Option<&Token>, url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let token = token.map(|token| format!("{}/", token.expose())).unwrap_or_default();
    matches!(scheme.as_str(), "http" | "https").then(|| format!("{base}/{token}{scheme}/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn parse(path: &str) -> Option<Route> {
        Route::parse(path, Some(&Token::new(TOKEN).unwrap()))
    }

    #[test]
    fn paths_lead_back_to_where_they_came_from() {
        let token = Token::new(TOKEN).unwrap();
        for url in [
            "https://cran.example.org/src/contrib/PACKAGES.rds",
            "http://127.0.0.1:8080/a%20b/src/contrib/Archive/zoo/zoo_1.8-11.tar.gz",
            "https://x.org/file?query=1",
        ] {
            let there = mirrored("http://127.0.0.1:1", Some(&token), url).unwrap();
            let path = there.strip_prefix("http://127.0.0.1:1").unwrap();
            assert_eq!(parse(path).unwrap().url.as_str(), url);
            assert_eq!(Route::parse(path, None), None, "{path}");
        }
        assert_eq!(mirrored("http://m", None, "file:///srv"), None);
    }

    #[test]
    fn a_wrong_token_opens_nothing() {
        for path in [
            "/0123456789abcdee/https/x.org/",
            "/0123456789abcde/https/x.org/",
            "/https/x.org/",
            "/",
            "",
            "/0123456789abcdef/ftp/x.org/",
            "/0123456789abcdef/https/me:secret@x.org/",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn kinds_follow_the_conventions_of_repositories() {
        let kind = |path: &str| parse(&format!("/{TOKEN}/https/x.org/{path}")).unwrap().kind;
        let contrib_url = || "https://x.org/src/contrib".to_owned();
        for file in ["PACKAGES", "PACKAGES.gz", "PACKAGES.rds", "Meta/archive.rds"] {
            let found = kind(&format!("src/contrib/{file}"));
            assert_eq!(found, Kind::Index { contrib_url: contrib_url() }, "{file}");
        }
        let file = "zoo_1.8-12.tar.gz".to_owned();
        let found = kind("src/contrib/zoo_1.8-12.tar.gz");
        assert_eq!(found, Kind::Package { folder_url: contrib_url(), file });
        for path in
            ["", "src/contrib/", "data.tar.gz", "src/contrib/a_1.0.tar.gz?x=1", "PACKAGES.txt"]
        {
            assert_eq!(kind(path), Kind::Other, "{path}");
        }
    }

    #[test]
    fn tokens_are_long_plain_and_silent() {
        assert_eq!(Token::new("short"), None);
        assert_eq!(Token::new("0123456789abcde/"), None);
        assert!(!format!("{:?}", Token::new(TOKEN).unwrap()).contains(TOKEN));
    }
}
