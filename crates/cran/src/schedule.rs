//! Which package installs next while later files still download. Pure: events in, starts out.

use std::collections::{BTreeMap, BTreeSet};

use crate::closure::InstallOrder;

/// How one package ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Installed.
    Installed,
    /// Its file could not be had.
    NotDownloaded,
    /// Its installation failed.
    Failed,
    /// Not tried, because this package it needs is not there.
    Skipped {
        /// The package that was missing.
        because: String,
    },
}

/// Where every package of an installation stands.
///
/// Feed it [`downloaded`](Self::downloaded) and [`finished`](Self::finished) as they happen, and
/// start what [`start_next`](Self::start_next) says until it says nothing. A package that fails
/// takes with it those that need it, and no others.
#[derive(Clone, Debug)]
pub struct Schedule {
    order: Vec<String>,
    needs: BTreeMap<String, BTreeSet<String>>,
    files: BTreeSet<String>,
    running: BTreeSet<String>,
    ended: BTreeMap<String, Outcome>,
    jobs_max: usize,
}

impl Schedule {
    /// A schedule that runs at most `jobs_max` installations at a time (at least one).
    #[must_use]
    pub fn new(order: InstallOrder, jobs_max: usize) -> Self {
        Self {
            order: order.packages,
            needs: order.needs,
            files: BTreeSet::new(),
            running: BTreeSet::new(),
            ended: BTreeMap::new(),
            jobs_max: jobs_max.max(1),
        }
    }

    /// A package's file is there, or is known not to come.
    pub fn downloaded(&mut self, package: &str, there: bool) {
        if there {
            self.files.insert(package.to_owned());
        } else {
            self.end(package, Outcome::NotDownloaded);
        }
    }

    /// An installation that [`start_next`](Self::start_next) began has ended.
    pub fn finished(&mut self, package: &str, succeeded: bool) {
        self.running.remove(package);
        self.end(package, if succeeded { Outcome::Installed } else { Outcome::Failed });
    }

    /// The package to start now: the first in order whose file and needs are all there.
    ///
    /// `None` means wait for an event, or the end if [`is_done`](Self::is_done).
    pub fn start_next(&mut self) -> Option<String> {
        if self.running.len() >= self.jobs_max {
            return None;
        }
        let next = self.order.iter().find(|package| {
            self.files.contains(*package)
                && !self.running.contains(*package)
                && !self.ended.contains_key(*package)
                && self.needs(package).all(|need| self.is_there(need))
        })?;
        let next = next.clone();
        self.running.insert(next.clone());
        Some(next)
    }

    /// Whether nothing runs and nothing more will.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.running.is_empty() && self.ended.len() == self.order.len()
    }

    /// How every package that has ended so far ended, in the order of installation.
    pub fn outcomes(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.order.iter().filter_map(|package| Some((package.as_str(), self.ended.get(package)?)))
    }

    fn needs(&self, package: &str) -> impl Iterator<Item = &str> {
        self.needs.get(package).into_iter().flatten().map(String::as_str)
    }

    fn is_there(&self, package: &str) -> bool {
        matches!(self.ended.get(package), Some(Outcome::Installed))
    }

    /// Ends a package and, when it is not there, everything that needs it.
    fn end(&mut self, package: &str, outcome: Outcome) {
        let mut lost = match &outcome {
            Outcome::Installed => Vec::new(),
            _ => vec![package.to_owned()],
        };
        self.ended.entry(package.to_owned()).or_insert(outcome);
        while let Some(because) = lost.pop() {
            for other in &self.order {
                if !self.ended.contains_key(other) && self.needs(other).any(|n| n == because) {
                    lost.push(other.clone());
                }
            }
            for other in &lost {
                let skipped = Outcome::Skipped { because: because.clone() };
                self.ended.entry(other.clone()).or_insert(skipped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(packages: &[(&str, &[&str])]) -> InstallOrder {
        InstallOrder {
            packages: packages.iter().map(|(name, _)| name.to_string()).collect(),
            needs: packages
                .iter()
                .map(|(name, needs)| {
                    (name.to_string(), needs.iter().map(ToString::to_string).collect())
                })
                .collect(),
            circle: Vec::new(),
        }
    }

    fn outcome(schedule: &Schedule, package: &str) -> Outcome {
        schedule.outcomes().find(|(name, _)| *name == package).unwrap().1.clone()
    }

    #[test]
    fn installs_begin_before_all_files_are_there() {
        let mut schedule = Schedule::new(order(&[("a", &[]), ("b", &["a"]), ("c", &[])]), 2);
        assert_eq!(schedule.start_next(), None);
        schedule.downloaded("b", true);
        assert_eq!(schedule.start_next(), None, "b waits for a");
        schedule.downloaded("a", true);
        assert_eq!(schedule.start_next().as_deref(), Some("a"));
        schedule.downloaded("c", true);
        assert_eq!(schedule.start_next().as_deref(), Some("c"));
        assert_eq!(schedule.start_next(), None);
        schedule.finished("a", true);
        assert_eq!(schedule.start_next().as_deref(), Some("b"));
        schedule.finished("c", true);
        assert!(!schedule.is_done());
        schedule.finished("b", true);
        assert!(schedule.is_done());
    }

    #[test]
    fn a_failure_stops_only_what_needs_it() {
        let mut schedule =
            Schedule::new(order(&[("a", &[]), ("x", &[]), ("b", &["a"]), ("c", &["b", "x"])]), 1);
        for package in ["a", "x", "b", "c"] {
            schedule.downloaded(package, true);
        }
        assert_eq!(schedule.start_next().as_deref(), Some("a"));
        schedule.finished("a", false);
        assert_eq!(schedule.start_next().as_deref(), Some("x"));
        schedule.finished("x", true);
        assert_eq!(schedule.start_next(), None);
        assert!(schedule.is_done());
        assert_eq!(outcome(&schedule, "a"), Outcome::Failed);
        assert_eq!(outcome(&schedule, "b"), Outcome::Skipped { because: "a".into() });
        assert_eq!(outcome(&schedule, "c"), Outcome::Skipped { because: "b".into() });
        assert_eq!(outcome(&schedule, "x"), Outcome::Installed);
    }

    #[test]
    fn a_file_that_does_not_come_is_no_deadlock() {
        let mut schedule = Schedule::new(order(&[("a", &[]), ("b", &["a"])]), 4);
        schedule.downloaded("b", true);
        schedule.downloaded("a", false);
        assert!(schedule.is_done());
        assert_eq!(outcome(&schedule, "a"), Outcome::NotDownloaded);
    }

    proptest! {
        #[test]
        fn every_run_ends_and_respects_order_and_slots(
            links in proptest::collection::vec(proptest::collection::vec(any::<prop::sample::Index>(), 0..4), 1..14),
            fates in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<u16>()), 14),
            jobs in 1usize..4,
        ) {
            let names: Vec<String> = (0..links.len()).map(|i| format!("p{i:02}")).collect();
            let needs: Vec<BTreeSet<String>> = links.iter().enumerate().map(|(i, links)| {
                if i == 0 { return BTreeSet::new() }
                links.iter().map(|link| names[link.index(i)].clone()).collect()
            }).collect();
            let order = InstallOrder {
                packages: names.clone(),
                needs: names.iter().cloned().zip(needs.iter().cloned()).collect(),
                circle: Vec::new(),
            };
            let mut schedule = Schedule::new(order, jobs);
            let mut arrivals: Vec<usize> = (0..names.len()).collect();
            arrivals.sort_by_key(|&i| fates[i].2);
            let mut running: Vec<String> = Vec::new();
            let mut installed = BTreeSet::new();
            let mut arrivals = arrivals.into_iter();
            loop {
                while let Some(next) = schedule.start_next() {
                    let i: usize = next[1..].parse().unwrap();
                    prop_assert!(needs[i].is_subset(&installed));
                    running.push(next);
                    prop_assert!(running.len() <= jobs);
                }
                if let Some(i) = arrivals.next() {
                    schedule.downloaded(&names[i], fates[i].0);
                } else if let Some(name) = running.pop() {
                    let i: usize = name[1..].parse().unwrap();
                    schedule.finished(&name, fates[i].1);
                    if fates[i].1 { installed.insert(name); }
                } else {
                    break;
                }
            }
            prop_assert!(schedule.is_done());
            prop_assert_eq!(schedule.outcomes().count(), names.len());
        }
    }
}
