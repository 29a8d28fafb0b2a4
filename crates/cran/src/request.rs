//! What a user asks for: `NAME`, or `NAME==VERSION`.

use std::{fmt, str::FromStr};

use trunkline_proto::cran::{InvalidVersion, Version};

/// A package, in the version the repositories offer or in one given version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The package's name.
    pub name: String,
    /// The version wanted; `None` is the highest on offer.
    pub version: Option<Version>,
}

/// A request that names no package or no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The name is not one R accepts ("Writing R Extensions", section 1.1.1).
    #[error(
        "\u{2018}{0}\u{2019} is not the name of an R package: letters, digits and dots, \
         first a letter, and no dot at the end"
    )]
    Name(String),
    /// What follows `==` is not a version.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
}

impl FromStr for Request {
    type Err = InvalidRequest;

    /// Parses `NAME`, `NAME==VERSION` or, as renv and pak write it, `NAME@VERSION`.
    fn from_str(text: &str) -> Result<Self, InvalidRequest> {
        let (name, version) = match text.split_once("==").or_else(|| text.split_once('@')) {
            Some((name, version)) => (name.trim(), Some(Version::package(version.trim())?)),
            None => (text.trim(), None),
        };
        if is_package_name(name) {
            Ok(Self { name: name.to_owned(), version })
        } else {
            Err(InvalidRequest::Name(name.to_owned()))
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "=={version}"))
    }
}

/// Whether R would accept this as a package's name; also what makes it safe in a file name.
#[must_use]
pub fn is_package_name(name: &str) -> bool {
    name.len() >= 2
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.ends_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_are_told_apart() {
        for (text, shown) in [
            ("zoo", "zoo"),
            ("zoo==1.8-12", "zoo==1.8-12"),
            ("data.table @ 1.14.8", "data.table==1.14.8"),
        ] {
            assert_eq!(text.parse::<Request>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_package_is_refused() {
        for text in ["", "a", "1a", "a.", "../a", "a b", "a/b", "==1.0"] {
            let error = text.parse::<Request>().unwrap_err();
            assert!(matches!(error, InvalidRequest::Name(_)), "{text}: {error}");
        }
        let error = "zoo==new".parse::<Request>().unwrap_err();
        assert_eq!(error.to_string(), "invalid version specification ‘new’");
    }
}
