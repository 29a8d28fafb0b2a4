//! What will be asked for next: pure.
//!
//! R 4.2 and many tools ask for one file after the other. Three things tell the next ones.
//!
//! A package is followed by what it needs, unless that came before. The other way round,
//! `install.packages()` asks for what a package needs first and for the package last: the smallest
//! package that needs everything asked for so far is the likely aim, and all it needs comes next.
//! And a list is often asked for in the order of the index (`download.packages(rownames(a))`, an
//! update, a mirror script): after two neighbours in a row, a stretch of the index is read ahead,
//! like pages of a file, twice as far each time.
//!
//! A wrong guess costs a file that nobody asked for, so each kind of guess has a limit.

use std::collections::{HashMap, HashSet, VecDeque};

use trunkline_proto::cran::dependency;

use crate::{closure::STRONG, index::Index};

/// Entries read ahead when a sequence is first noticed.
const STRETCH_MIN: usize = 16;
/// Entries read ahead at most beyond the one asked for.
pub const STRETCH_MAX: usize = 256;
/// Dependencies fetched ahead for one package at most.
pub const CLOSURE_MAX: usize = 256;
/// Distance in the index up to which two requests count as neighbours: a client may skip what it
/// has.
const NEIGHBOURS: usize = 4;
/// Requests that must have a common aim before it is believed.
const EVIDENCE_MIN: usize = 3;
/// Requests remembered in search of their aim.
const EVIDENCE_MAX: usize = 64;
/// A package that more than so many others need tells nothing about the aim.
const DEPENDENTS_MAX: usize = 4096;
/// Aims compared at most.
const AIMS_MAX: usize = 16;

/// Guesses for one index.
#[derive(Debug)]
pub struct Prefetch {
    /// Names in the order of the index, each once; the rest of this struct speaks of positions.
    names: Vec<String>,
    positions: HashMap<String, usize>,
    needs: Vec<Vec<usize>>,
    needed_by: Vec<Vec<usize>>,
    /// What was asked for lately, as far as it has a common aim.
    evidence: VecDeque<usize>,
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
        let mut names: Vec<String> = Vec::with_capacity(index.len());
        let mut positions = HashMap::with_capacity(index.len());
        for package in index.packages() {
            let name = package.name();
            if !positions.contains_key(name) {
                positions.insert(name.to_owned(), names.len());
                names.push(name.to_owned());
            }
        }
        let mut needs = vec![Vec::new(); names.len()];
        let mut needed_by = vec![Vec::new(); names.len()];
        for (at, name) in names.iter().enumerate() {
            let Some(package) = index.best(name) else { continue };
            let fields = STRONG.iter().filter_map(|field| package.field(field.name()));
            for need in fields.flat_map(dependency::names) {
                let Some(&need) = positions.get(need) else { continue };
                if need != at && !needs[at].contains(&need) {
                    needs[at].push(need);
                    needed_by[need].push(at);
                }
            }
        }
        Self {
            names,
            positions,
            needs,
            needed_by,
            evidence: VecDeque::new(),
            last: None,
            ahead_to: 0,
            stretch: STRETCH_MIN,
        }
    }

    /// A package was asked for; returns the names to fetch now, most urgent first. Some may be at
    /// hand already.
    pub fn asked(&mut self, name: &str) -> Vec<String> {
        let Some(&at) = self.positions.get(name) else { return Vec::new() };
        let mut guesses = self.read_ahead(at);
        guesses.extend(reach(&self.needs, at, CLOSURE_MAX).into_iter().skip(1));
        if let Some(aim) = self.aim(at) {
            let mut all = reach(&self.needs, aim, CLOSURE_MAX);
            // The aim itself is asked for last.
            all.rotate_left(1);
            guesses.extend(all);
        }
        let mut seen = HashSet::from([at]);
        guesses.retain(|&guess| seen.insert(guess));
        guesses.into_iter().map(|guess| self.names[guess].clone()).collect()
    }

    /// The smallest package that needs all that was asked for lately.
    fn aim(&mut self, at: usize) -> Option<usize> {
        self.evidence.push_back(at);
        if self.evidence.len() > EVIDENCE_MAX {
            self.evidence.pop_front();
        }
        let mut common: Option<HashSet<usize>> = None;
        for &asked in &self.evidence {
            let dependents = reach(&self.needed_by, asked, DEPENDENTS_MAX + 1);
            if dependents.len() > DEPENDENTS_MAX {
                continue;
            }
            let dependents: HashSet<usize> = dependents.into_iter().collect();
            common = Some(match common {
                Some(common) => common.intersection(&dependents).copied().collect(),
                None => dependents,
            });
        }
        let common = common?;
        if common.is_empty() {
            // Somebody wants something else now.
            self.evidence.clear();
            self.evidence.push_back(at);
            return None;
        }
        if self.evidence.len() < EVIDENCE_MIN {
            return None;
        }
        // Of two candidates of which one needs the other, the needed one is the smaller.
        let is_smallest =
            |aim: &&usize| !self.needs[**aim].iter().any(|need| common.contains(need));
        let mut aims: Vec<usize> = common.iter().filter(is_smallest).copied().collect();
        aims.sort_unstable();
        aims.truncate(AIMS_MAX);
        aims.into_iter().min_by_key(|&aim| reach(&self.needs, aim, CLOSURE_MAX).len())
    }

    fn read_ahead(&mut self, at: usize) -> Vec<usize> {
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
        (from..to).collect()
    }
}

/// Everything that can be reached from `start`, itself first, near before far, up to a limit.
fn reach(edges: &[Vec<usize>], start: usize, limit: usize) -> Vec<usize> {
    let mut reached = vec![start];
    let mut seen = HashSet::from([start]);
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        next += 1;
        for &to in &edges[at] {
            if reached.len() >= limit {
                return reached;
            }
            if seen.insert(to) {
                reached.push(to);
            }
        }
    }
    reached
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
        assert_eq!(prefetch.asked("app"), ["lib", "core"]);
        assert_eq!(prefetch.asked("unknown"), Vec::<String>::new());
    }

    /// `install.packages()` asks for what a package needs first.
    #[test]
    fn the_aim_of_an_installation_is_guessed_from_its_first_steps() {
        let index = index(
            "Package: a1\nVersion: 1.0\n\nPackage: other\nVersion: 1.0\nImports: a1, b1, zz\n\n\
             Package: b1\nVersion: 1.0\n\nPackage: fill1\nVersion: 1.0\n\n\
             Package: fill2\nVersion: 1.0\n\nPackage: fill3\nVersion: 1.0\n\n\
             Package: c1\nVersion: 1.0\n\nPackage: fill4\nVersion: 1.0\n\n\
             Package: fill5\nVersion: 1.0\n\nPackage: fill6\nVersion: 1.0\n\n\
             Package: d1\nVersion: 1.0\n\nPackage: app\nVersion: 1.0\nImports: mid, a1, d1\n\n\
             Package: mid\nVersion: 1.0\nImports: b1, c1\n\n\
             Package: huge\nVersion: 1.0\nImports: app, other\n\nPackage: zz\nVersion: 1.0\n",
        );
        let mut prefetch = Prefetch::new(&index);
        assert!(prefetch.asked("c1").is_empty());
        assert!(prefetch.asked("b1").is_empty());
        assert_eq!(prefetch.asked("a1"), ["mid", "d1", "b1", "c1", "app"]);
        assert_eq!(prefetch.asked("zz").last().unwrap(), "huge", "app does not explain zz");
        prefetch.asked("fill1");
        assert!(prefetch.asked("d1").is_empty(), "nothing explains fill1: a new start");
    }

    #[test]
    fn a_sequence_is_read_ahead_further_and_further_and_nothing_twice() {
        let index = many(1000);
        let mut prefetch = Prefetch::new(&index);
        let mut fetched = vec![0; 1000];
        let mut misses = 0;
        for at in 0..1000 {
            misses += usize::from(fetched[at] == 0);
            for guess in prefetch.asked(&format!("pk{at}")) {
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
            assert!(prefetch.asked(&format!("pk{at}")).is_empty(), "{at}");
        }
        assert_eq!(prefetch.asked("pk22").len(), STRETCH_MIN);
    }
}
