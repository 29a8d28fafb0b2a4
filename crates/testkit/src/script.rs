//! Scripts: which fault the next request to a path, or the next connection, meets.

use crate::fault::{ConnectionFault, Fault};
use crate::request::Received;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Steps in order; a step without a count lasts for ever.
#[derive(Debug)]
struct Steps<F> {
    queue: VecDeque<(Option<u32>, F)>,
}

impl<F> Default for Steps<F> {
    fn default() -> Self {
        Self { queue: VecDeque::new() }
    }
}

impl<F: Clone> Steps<F> {
    fn push(&mut self, times: Option<u32>, fault: F) {
        if times != Some(0) {
            self.queue.push_back((times, fault));
        }
    }

    /// Uses up one turn of the first step when `concerns` says that it is meant.
    fn take(&mut self, concerns: impl Fn(&F) -> bool) -> Option<F> {
        let (times, fault) = self.queue.front_mut()?;
        if !concerns(fault) {
            return None;
        }
        let fault = fault.clone();
        if let Some(left) = times {
            *left -= 1;
            if *left == 0 {
                self.queue.pop_front();
            }
        }
        Some(fault)
    }
}

#[derive(Debug, Default)]
struct Book {
    paths: HashMap<String, Steps<Fault>>,
    standing: Vec<(String, Fault)>,
    connections: Steps<ConnectionFault>,
}

/// All scripts of one origin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripts {
    book: Arc<Mutex<Book>>,
}

impl Scripts {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path(&self, pattern: &str) -> PathScript {
        PathScript { scripts: self.clone(), pattern: pattern.to_owned() }
    }

    pub(crate) fn connections(&self) -> ConnectionScript {
        ConnectionScript { scripts: self.clone() }
    }

    /// The faults this request meets: those of its own path's script, then those of each pattern
    /// that covers it, then the standing ones.
    pub(crate) fn faults_for(&self, request: &Received) -> Vec<Fault> {
        let mut book = self.book();
        let mut patterns: Vec<String> =
            book.paths.keys().filter(|pattern| covers(pattern, &request.path)).cloned().collect();
        // The longest pattern is the most specific one.
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        let mut faults: Vec<Fault> = patterns
            .iter()
            .filter_map(|pattern| {
                book.paths.get_mut(pattern)?.take(|fault| fault.concerns(request))
            })
            .collect();
        let standing = book
            .standing
            .iter()
            .filter(|(pattern, fault)| covers(pattern, &request.path) && fault.concerns(request));
        faults.extend(standing.map(|(_, fault)| fault.clone()));
        faults
    }

    pub(crate) fn fault_for_connection(&self) -> ConnectionFault {
        self.book().connections.take(|_| true).unwrap_or(ConnectionFault::None)
    }
}

/// A pattern that ends in `*` covers every path that starts with what precedes it.
pub(crate) fn covers(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

/// The script of one path, or of all paths under a prefix (`"/dir/*"`, `"*"`).
///
/// Steps are used in the order written, each by the requests it concerns: a
/// [`CutAfter`](Fault::CutAfter) waits for a GET even if a HEAD comes first. When the script has
/// run out the origin behaves.
#[derive(Clone, Debug)]
pub struct PathScript {
    scripts: Scripts,
    pattern: String,
}

impl PathScript {
    fn step(self, times: Option<u32>, fault: Fault) -> Self {
        self.scripts.book().paths.entry(self.pattern.clone()).or_default().push(times, fault);
        self
    }

    /// The next request meets this fault.
    pub fn once(self, fault: Fault) -> Self {
        self.step(Some(1), fault)
    }

    /// Reads better than a second `once`; means the same.
    pub fn then(self, fault: Fault) -> Self {
        self.step(Some(1), fault)
    }

    /// The next `n` requests meet this fault.
    pub fn times(self, n: u32, fault: Fault) -> Self {
        self.step(Some(n), fault)
    }

    /// The next `n` requests are served well.
    pub fn pass(self, n: u32) -> Self {
        self.step(Some(n), Fault::None)
    }

    /// Every later request meets this fault; steps added afterwards are never reached.
    pub fn always(self, fault: Fault) -> Self {
        self.step(None, fault)
    }

    /// Every request meets this fault besides its step: a property of the path, not a turn.
    pub fn also(self, fault: Fault) -> Self {
        self.scripts.book().standing.push((self.pattern.clone(), fault));
        self
    }

    /// Forgets the steps and the standing faults of this path.
    pub fn clear(self) -> Self {
        let mut book = self.scripts.book();
        book.paths.remove(&self.pattern);
        book.standing.retain(|(pattern, _)| *pattern != self.pattern);
        drop(book);
        self
    }
}

/// The script of an origin's connections, in the order they are accepted.
#[derive(Clone, Debug)]
pub struct ConnectionScript {
    scripts: Scripts,
}

impl ConnectionScript {
    /// The next connection meets this fault.
    pub fn once(self, fault: ConnectionFault) -> Self {
        self.times(1, fault)
    }

    /// Reads better than a second `once`; means the same.
    pub fn then(self, fault: ConnectionFault) -> Self {
        self.times(1, fault)
    }

    /// The next `n` connections meet this fault.
    pub fn times(self, n: u32, fault: ConnectionFault) -> Self {
        self.scripts.book().connections.push(Some(n), fault);
        self
    }

    /// The next `n` connections are treated well.
    pub fn pass(self, n: u32) -> Self {
        self.times(n, ConnectionFault::None)
    }

    /// Every later connection meets this fault.
    pub fn always(self, fault: ConnectionFault) -> Self {
        self.scripts.book().connections.push(None, fault);
        self
    }

    /// Forgets the steps.
    pub fn clear(self) -> Self {
        self.scripts.book().connections = Steps::default();
        self
    }
}
