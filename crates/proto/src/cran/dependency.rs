//! The dependency fields: `Depends`, `Imports`, `LinkingTo`, `Suggests`, `Enhances`.
//!
//! R reads these fields in two ways, and scripts see the difference. [`names`] is the quick scan
//! behind `tools::package_dependencies()` and the order of installation; [`parse`] is the reading
//! with version constraints behind `install.packages()`.

use std::{fmt, ops::Range};

use super::Version;

/// One entry of a dependency field: a package and which versions of it will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency<'a> {
    /// The package's name, or `R`.
    pub name: &'a str,
    /// Which versions are acceptable.
    pub constraint: Constraint<'a>,
}

/// Which versions of a package are acceptable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint<'a> {
    /// Any version.
    Any,
    /// Versions that compare so with the one given.
    Version(Relation, Version),
    /// What is between the parentheses is not a comparison with a version: a Subversion revision
    /// of R (`R (>= r12345)`), or a mistake. R either ignores these or stops; none excludes a
    /// package here.
    Unreadable(&'a str),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    Greater,
    /// `!=`
    NotEqual,
}

impl Relation {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "<" => Self::Less,
            "<=" => Self::AtMost,
            "==" => Self::Equal,
            ">=" => Self::AtLeast,
            ">" => Self::Greater,
            "!=" => Self::NotEqual,
            _ => return None,
        })
    }

    /// Whether `found` stands in this relation to `wanted`.
    #[must_use]
    pub fn holds(self, found: &Version, wanted: &Version) -> bool {
        match self {
            Self::Less => found < wanted,
            Self::AtMost => found <= wanted,
            Self::Equal => found == wanted,
            Self::AtLeast => found >= wanted,
            Self::Greater => found > wanted,
            Self::NotEqual => found != wanted,
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::AtLeast => ">=",
            Self::Greater => ">",
            Self::NotEqual => "!=",
        })
    }
}

impl Constraint<'_> {
    /// Whether a version will do.
    #[must_use]
    pub fn allows(&self, found: &Version) -> bool {
        match self {
            Self::Any | Self::Unreadable(_) => true,
            Self::Version(relation, wanted) => relation.holds(found, wanted),
        }
    }
}

/// The package names in a field, in order and with repetitions, without `R`.
///
/// As R does it: every run of letters, digits and dots that begins with a letter is a name,
/// wherever it stands, parentheses included. (R: `package_dependencies_scan` in
/// `src/library/tools/src/pdscan.c`.)
pub fn names(field: &str) -> impl Iterator<Item = &str> {
    let bytes = field.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let name = next_name(bytes, at)?;
        at = name.end;
        Some(&field[name])
    })
    .filter(|&name| name != "R")
}

fn next_name(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + bytes[from..].iter().position(u8::is_ascii_alphabetic)?;
    let length = bytes[start..].iter().take_while(|&&byte| is_name_byte(byte)).count();
    Some(start..start + length)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.'
}

/// The entries of a field in order, `R` included, repetitions too; entries without a name are
/// dropped.
///
/// A missing space after the comparison (`(>=1.0)`), at which R stops, is accepted.
pub fn parse(field: &str) -> impl Iterator<Item = Dependency<'_>> {
    field.split(',').filter_map(parse_entry)
}

fn parse_entry(entry: &str) -> Option<Dependency<'_>> {
    let entry = entry.trim();
    let name_len = entry.bytes().take_while(|&byte| is_name_byte(byte)).count();
    let (name, rest) = entry.split_at(name_len);
    if name.is_empty() {
        return None;
    }
    let constraint = match rest.trim_start().strip_prefix('(') {
        None => Constraint::Any,
        Some(inner) => {
            let inner = inner.split_once(')').map_or(inner, |(inner, _)| inner).trim();
            parse_comparison(inner).unwrap_or(Constraint::Unreadable(inner))
        }
    };
    Some(Dependency { name, constraint })
}

fn parse_comparison(text: &str) -> Option<Constraint<'_>> {
    let relation_len = text.find(|c: char| !matches!(c, '<' | '>' | '=' | '!'))?;
    let (relation, version) = text.split_at(relation_len);
    Some(Constraint::Version(Relation::parse(relation)?, version.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Input and output of `tools:::.extract_dependency_package_names()` in R 4.2.2.
    #[test]
    fn names_are_found_as_r_finds_them() {
        for (field, expected) in [
            ("R (>= 3.5.0), methods, Rcpp(>= 1.0)", vec!["methods", "Rcpp"]),
            (
                " a ,b,,c (>= 1), R, Rbar, R.x, 3d, _x, a-b, a.b. , é, a b",
                vec!["a", "b", "c", "Rbar", "R.x", "d", "x", "a", "b", "a.b.", "a", "b"],
            ),
            ("methods(>=1)", vec!["methods"]),
            ("R(>= 3)", vec![]),
            ("a (>= 1) b", vec!["a", "b"]),
            ("foo (>= 1.0, < 2), bar", vec!["foo", "bar"]),
            (",", vec![]),
            ("A\nB,C", vec!["A", "B", "C"]),
            ("R (>= r12345)", vec!["r12345"]),
            ("a (b, c", vec!["a", "b", "c"]),
            ("béc d", vec!["b", "c", "d"]),
            ("R", vec![]),
        ] {
            assert_eq!(names(field).collect::<Vec<_>>(), expected, "{field}");
        }
    }

    #[test]
    fn constraints_are_parsed() {
        let at_least = |text: &str| Constraint::Version(Relation::AtLeast, text.parse().unwrap());
        let field = "R (>= 3.5.0),\nmethods, Rcpp(>= 1.0-2), x (>=2), y ( < 1.0 ), z (>= r123), , 
            w (= 1), v (>= 1";
        let found: Vec<_> = parse(field).map(|d| (d.name, d.constraint)).collect();
        assert_eq!(
            found,
            [
                ("R", at_least("3.5.0")),
                ("methods", Constraint::Any),
                ("Rcpp", at_least("1.0-2")),
                ("x", at_least("2")),
                ("y", Constraint::Version(Relation::Less, "1.0".parse().unwrap())),
                ("z", Constraint::Unreadable(">= r123")),
                ("w", Constraint::Unreadable("= 1")),
                ("v", at_least("1")),
            ]
        );
    }

    #[test]
    fn relations_hold_as_written() {
        let [low, high] = ["1.0", "1.1"].map(|text| text.parse::<Version>().unwrap());
        for (relation, below, same, above) in [
            ("<", true, false, false),
            ("<=", true, true, false),
            ("==", false, true, false),
            (">=", false, true, true),
            (">", false, false, true),
            ("!=", true, false, true),
        ] {
            let parsed = Relation::parse(relation).unwrap();
            assert_eq!(parsed.to_string(), relation);
            assert_eq!(parsed.holds(&low, &high), below, "{relation}");
            assert_eq!(parsed.holds(&low, &low), same, "{relation}");
            assert_eq!(parsed.holds(&high, &low), above, "{relation}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(field in "\\PC{0,60}") {
            let _ = names(&field).count();
            let _ = parse(&field).count();
        }

        #[test]
        fn well_formed_fields_read_alike_both_ways(
            list in proptest::collection::vec("[a-z][a-z0-9.]{1,6}( \\(>= [0-9]\\.[0-9]\\))?", 0..6)
        ) {
            let field = list.join(", ");
            let parsed: Vec<_> = parse(&field).map(|dependency| dependency.name).collect();
            prop_assert_eq!(names(&field).collect::<Vec<_>>(), parsed);
        }
    }
}
