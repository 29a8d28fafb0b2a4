//! Idle connections of one kind, the warmest first; the time is passed in.

use std::time::{Duration, Instant};

/// Connections that nobody uses, in the order in which they came back.
#[derive(Debug)]
pub(crate) struct IdleList<T> {
    entries: Vec<(T, Instant)>,
}

impl<T> Default for IdleList<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> IdleList<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn push(&mut self, connection: T, now: Instant) {
        self.entries.push((connection, now));
    }

    /// The connection used last: it is the least likely to have been closed by the server, and
    /// leaving the others alone lets them expire.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.entries.pop().map(|(connection, _)| connection)
    }

    /// The connection idle for the longest time.
    pub(crate) fn pop_oldest(&mut self) -> Option<T> {
        if self.entries.is_empty() { None } else { Some(self.entries.remove(0).0) }
    }

    /// Takes out what has been idle for `timeout` or is of no use any more.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        timeout: Duration,
        mut is_useless: impl FnMut(&mut T) -> bool,
    ) -> Vec<T> {
        let mut expired = Vec::new();
        let mut index = 0;
        while index < self.entries.len() {
            let (connection, since) = &mut self.entries[index];
            if now.saturating_duration_since(*since) >= timeout || is_useless(connection) {
                expired.push(self.entries.remove(index).0);
            } else {
                index += 1;
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warmest_is_used_and_the_oldest_expires() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut list = IdleList::default();
        list.push("a", start);
        list.push("b", start + second);
        list.push("c", start + 2 * second);
        assert_eq!(list.pop(), Some("c"));
        assert_eq!(list.expire(start + 5 * second, 5 * second, |_| false), ["a"]);
        assert_eq!(list.expire(start + 5 * second, 60 * second, |name| *name == "b"), ["b"]);
        assert_eq!(list.pop_oldest(), None);
    }
}
