//! Names of refs: branches, kept as files below `refs/heads/`.

use std::fmt;
use std::str::FromStr;

/// Longest name in bytes: what a file system and a URL carry without trouble.
pub const REF_NAME_BYTES_MAX: usize = 1024;

/// A valid ref name, for instance `main` or `os/x86_64/stable`.
///
/// libostree's rule (`ostree_validate_rev`): one or more components joined by `/`, each of letters,
/// digits, `_`, `-`, `.`, the first of them not `-` or `.`. So a name can never leave its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(String);

/// Why a text is not a ref name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefNameError {
    /// An empty name, or an empty component (leading, trailing or doubled slash).
    #[error("a ref name has no empty components")]
    Empty,
    /// A character that is not allowed, or not at this place.
    #[error("a ref name is made of letters, digits, `_`, `-`, `.` and `/`")]
    Character,
    /// Longer than [`REF_NAME_BYTES_MAX`].
    #[error("a ref name has at most {REF_NAME_BYTES_MAX} bytes")]
    TooLong,
}

impl RefName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path in a repository: `refs/heads/<name>`.
    pub fn path(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl FromStr for RefName {
    type Err = RefNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > REF_NAME_BYTES_MAX {
            return Err(RefNameError::TooLong);
        }
        for component in text.split('/') {
            let mut characters = component.chars();
            let first = characters.next().ok_or(RefNameError::Empty)?;
            // `word` in libostree's regular expression is Unicode's: letters of any script.
            let word = |c: char| c.is_alphanumeric() || c == '_';
            if !word(first) || !characters.all(|c| word(c) || c == '-' || c == '.') {
                return Err(RefNameError::Character);
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_libostrees_rule() {
        for good in ["main", "os/x86_64/stable", "a", "_x", "1.2-3", "größe/ß"] {
            assert_eq!(good.parse::<RefName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "/a", "a/", "a//b"] {
            assert_eq!(bad.parse::<RefName>(), Err(RefNameError::Empty), "{bad}");
        }
        for bad in [".", "..", "a/..", "a/.b", "-a", "a b", "a\\b", "a\0", "a:b", "a%2f"] {
            assert_eq!(bad.parse::<RefName>(), Err(RefNameError::Character), "{bad}");
        }
        assert_eq!("x".repeat(1025).parse::<RefName>(), Err(RefNameError::TooLong));
    }
}
