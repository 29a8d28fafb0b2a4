//! Versions in R's order.
//!
//! A version is a sequence of numbers separated by `.` or `-`, both meaning the same. R compares
//! the sequences number by number and treats missing ones as zero: `1.0`, `1.0.0` and `1.0-0` are
//! equal under `==`, `<` and `max()`. (R: `numeric_version`, `package_version`, and
//! `Ops.numeric_version` in `src/library/base/R/version.R`.)

use std::{cmp::Ordering, fmt, hash, str::FromStr};

/// A version as R's `numeric_version()` accepts it, with the spelling it had (file names need it).
#[derive(Clone, Debug)]
pub struct Version {
    text: Box<str>,
    numbers: Vec<u32>,
}

/// The text is not a version that R would accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid version specification \u{2018}{text}\u{2019}")]
pub struct InvalidVersion {
    /// What was given.
    pub text: String,
}

impl Version {
    /// Parses a package's version, which needs at least two numbers (`package_version()`).
    ///
    /// # Errors
    /// [`InvalidVersion`], worded as R's own error.
    pub fn package(text: &str) -> Result<Self, InvalidVersion> {
        text.parse()
            .ok()
            .filter(|version: &Self| version.numbers.len() >= 2)
            .ok_or_else(|| InvalidVersion { text: text.to_owned() })
    }

    /// The version as it was spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The version as R prints it: numbers without leading zeros, joined by dots.
    #[must_use]
    pub fn canonical(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(u32::to_string).collect();
        numbers.join(".")
    }

    /// The numbers, as spelled: `1.0` has two.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The numbers up to the last that is not zero: equal versions have equal ones.
    fn significant(&self) -> &[u32] {
        let zeros = self.numbers.iter().rev().take_while(|&&number| number == 0).count();
        &self.numbers[..self.numbers.len() - zeros]
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    /// Parses what `numeric_version()` accepts; numbers above 2^31 - 1, which R turns into `NA`,
    /// are refused.
    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = plain.then(|| digits.parse::<i32>().ok()).flatten();
            number.and_then(|number| u32::try_from(number).ok())
        };
        let numbers: Option<Vec<u32>> = text.split(['.', '-']).map(number).collect();
        match numbers {
            Some(numbers) => Ok(Self { text: text.into(), numbers }),
            None => Err(InvalidVersion { text: text.to_owned() }),
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.significant().cmp(other.significant())
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl hash::Hash for Version {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    /// The pairs as R 4.2.2 compares them.
    #[test]
    fn orders_as_r_does() {
        use Ordering::{Equal, Greater, Less};
        for (a, b, expected) in [
            ("1.0", "1.0.0", Equal),
            ("1.0-1", "1.0.1", Equal),
            ("1.0", "1.0.1", Less),
            ("0.9", "1.0", Less),
            ("1.0.0.9000", "1.0.1", Less),
            ("1.0.0.9000", "1.0.0", Greater),
            ("1.10", "1.9", Greater),
            ("2024.12.31", "1.0", Greater),
            ("1.01-02", "1.1.2", Equal),
            ("0", "0.0.0", Equal),
        ] {
            assert_eq!(version(a).cmp(&version(b)), expected, "{a} and {b}");
            assert_eq!(version(b).cmp(&version(a)), expected.reverse(), "{b} and {a}");
        }
    }

    #[test]
    fn refuses_what_r_refuses() {
        for text in ["", ".", "1.", ".1", "1..2", "1.a", "1.0 ", " 1.0", "+1.0", "1_0", "v1.0"] {
            let error = text.parse::<Version>().unwrap_err();
            assert_eq!(error.text, text);
        }
        assert!("1.2147483647".parse::<Version>().is_ok());
        assert!("1.2147483648".parse::<Version>().is_err());
        assert!("3".parse::<Version>().is_ok());
        assert_eq!(
            Version::package("3").unwrap_err().to_string(),
            "invalid version specification ‘3’"
        );
    }

    #[test]
    fn the_spelling_is_kept() {
        assert_eq!(version("0.6-27").to_string(), "0.6-27");
        assert_eq!(version("01.0").as_str(), "01.0");
        assert_eq!(version("01.0-27").canonical(), "1.0.27");
    }

    proptest! {
        #[test]
        fn order_is_total_and_hash_agrees(
            texts in proptest::collection::vec("[0-9]{1,3}([.-][0-3]{1,2}){0,3}", 3)
        ) {
            let [a, b, c] = [0, 1, 2].map(|i| version(&texts[i]));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
            let both: std::collections::HashSet<_> = [a.clone(), b.clone()].into();
            prop_assert_eq!(both.len(), if a == b { 1 } else { 2 });
        }
    }
}
