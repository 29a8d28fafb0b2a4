//! What will be asked for next: pure.
//!
//! R 4.2 and many tools ask for one file after the other. Two things tell the next ones. A
//! package is followed by what it depends on, unless that came before. And a list of packages is
//! often asked for in the order of the index (`download.packages(rownames(available))`, a mirror
//! script, an update): after two neighbours in a row, a stretch of the index is read ahead, like
//! pages of a file, twice as far each time.

use std::collections::HashMap;

use crate::{
    closure::{STRONG, package_dependencies},
    index::Index,
};

/// Entries read ahead when a sequence is first noticed.
const STRETCH_MIN: usize = 16;
/// Entries read ahead at most beyond the one asked for.
pub const STRETCH_MAX: usize = 256;
/// Dependencies fetched ahead for one package at most.
pub const CLOSURE_MAX: usize = 256;
/// Distance in the index up to which two requests count as neighbours: a client may skip what it
/// has.
const NEIGHBOURS: usize = 4;

/// Guesses for one index.
#[derive(Debug)]
pub struct Prefetch {
    /// Names in the order of the index, each once.
    names: Vec<String>,
    positions: HashMap<String, usize>,
    /// Where in the index the last request was.
    last: Option<usize>,
    /// The first entry that was not read ahead.
    ahead_to: usize,
    stretch: usize,
}

impl Prefetch {
    /// No requests so far.
    #[must_use]
    pub fn new(index: &Index) -> Self {
        let mut names = Vec::with_capacity(index.len());
        let mut positions = HashMap::with_capacity(index.len());
        for package in index.packages() {
            let name = package.name();
            if !positions.contains_key(name) {
                positions.insert(name.to_owned(), names.len());
                names.push(name.to_owned());
            }
        }
        Self { names, positions, last: None, ahead_to: 0, stretch: STRETCH_MIN }
    }

    /// A package of the index was asked for; returns the names to fetch now, most urgent first.
    /// Some may be at hand already.
    pub fn asked(&mut self, index: &Index, name: &str) -> Vec<String> {
        let mut guesses = self.read_ahead(name);
        let wanted = [name.to_owned()];
        let found = package_dependencies(index, &wanted, &STRONG, true).remove(name).flatten();
        let closure = found.into_iter().flatten().filter(|name| index.contains(name));
        guesses.extend(closure.take(CLOSURE_MAX));
        guesses
    }

    fn read_ahead(&mut self, name: &str) -> Vec<String> {
        let Some(&at) = self.positions.get(name) else { return Vec::new() };
        let last = self.last.replace(at);
        let in_sequence = last.is_some_and(|last| last < at && at - last <= NEIGHBOURS);
        if !in_sequence {
            self.stretch = STRETCH_MIN;
            self.ahead_to = at + 1;
            return Vec::new();
        }
        // Half of the last stretch is still ahead: time enough.
        let from = self.ahead_to.max(at + 1);
        if from - (at + 1) > self.stretch / 2 {
            return Vec::new();
        }
        if self.ahead_to > at + 1 {
            self.stretch = (self.stretch * 2).min(STRETCH_MAX);
        }
        let to = (at + 1 + self.stretch).min(self.names.len());
        self.ahead_to = to.max(self.ahead_to);
        self.names.get(from..to).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use trunkline_proto::cran::{Limits, read_index};

    use super::*;
    use crate::{index::RepositoryIndex, repository::Platform};

    fn index(packages: &str) -> Index {
        let table = read_index(packages.as_bytes(), &Limits::default()).unwrap();
        let platform = Platform {
            r_version: "4.2.2".parse().unwrap(),
            os_type: "unix".to_owned(),
            subarch: String::new(),
        };
        Index::merge([RepositoryIndex { contrib_url: "u".to_owned(), table }], &[], &platform)
    }

    fn many(count: usize) -> Index {
        let records: String =
            (0..count).map(|i| format!("Package: pk{i}\nVersion: 1.0\n\n")).collect();
        index(&records)
    }

    #[test]
    fn what_a_package_needs_is_fetched_along() {
        let index = index(
            "Package: app\nVersion: 1.0\nImports: lib, utils\n\nPackage: lib\nVersion: 1.0\n\
             Depends: core\n\nPackage: core\nVersion: 1.0\n\nPackage: else\nVersion: 1.0\n",
        );
        let mut prefetch = Prefetch::new(&index);
        assert_eq!(prefetch.asked(&index, "app"), ["core", "lib"]);
        assert_eq!(prefetch.asked(&index, "unknown"), Vec::<String>::new());
    }

    #[test]
    fn a_sequence_is_read_ahead_further_and_further_and_nothing_twice() {
        let index = many(1000);
        let mut prefetch = Prefetch::new(&index);
        let mut fetched = vec![0; 1000];
        let mut misses = 0;
        for at in 0..1000 {
            misses += usize::from(fetched[at] == 0);
            for guess in prefetch.asked(&index, &format!("pk{at}")) {
                fetched[guess[2..].parse::<usize>().unwrap()] += 1;
            }
        }
        assert_eq!(misses, 2, "only the first two had to be waited for");
        assert!(fetched.iter().all(|&times| times <= 1));
    }

    #[test]
    fn jumps_are_not_followed() {
        let index = many(1000);
        let mut prefetch = Prefetch::new(&index);
        for at in [5, 500, 30, 31 + NEIGHBOURS, 20] {
            assert!(prefetch.asked(&index, &format!("pk{at}")).is_empty(), "{at}");
        }
        assert_eq!(prefetch.asked(&index, "pk22").len(), STRETCH_MIN);
    }
}
