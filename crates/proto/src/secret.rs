//! Text that must not be printed: passwords and tokens.

use std::fmt;

use zeroize::Zeroize as _;

/// A secret text. `Debug` hides it, it has no `Display`, and it is overwritten when dropped.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    /// Looks at every byte, whichever differs first: a server compares tokens with what strangers
    /// send, and the time must not tell them how much of a guess was right. The length is not
    /// hidden.
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        let differing = mine.iter().zip(theirs).fold(0, |bits, (a, b)| bits | (a ^ b));
        mine.len() == theirs.len() && std::hint::black_box(differing) == 0
    }
}

impl Eq for Secret {}

impl Drop for Secret {
    /// Overwrites the text, so that it does not linger in freed memory.
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let holder = Some((Secret::new("hush"), 1));
        assert_eq!(format!("{holder:?}"), "Some((Secret(..), 1))");
        assert_eq!(format!("{:#?}", Secret::new("hush")), "Secret(..)");
    }

    #[test]
    fn secrets_are_equal_when_all_bytes_are() {
        assert_eq!(Secret::new("hush"), Secret::new(String::from("hush")));
        for other in ["", "hus", "husH", "Hush", "hushh"] {
            assert_ne!(Secret::new("hush"), Secret::new(other), "{other}");
        }
    }
}
