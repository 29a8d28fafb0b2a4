//! What we promised, held against what was measured.

use std::fmt;

/// One promise: a figure of ours and the most it may be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    what: String,
    /// `None` when a row it needs failed or was left out.
    figures: Option<Figures>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    ours: f64,
    limit: f64,
    is_ceiling: bool,
}

impl Bar {
    /// `ours` may be at most `limit`.
    pub(super) fn at_most(what: impl Into<String>, ours: Option<f64>, limit: Option<f64>) -> Self {
        Self::new(what, ours, limit, true)
    }

    /// `ours` must be at least `limit`.
    pub(super) fn at_least(what: impl Into<String>, ours: Option<f64>, limit: Option<f64>) -> Self {
        Self::new(what, ours, limit, false)
    }

    fn new(
        what: impl Into<String>,
        ours: Option<f64>,
        limit: Option<f64>,
        is_ceiling: bool,
    ) -> Self {
        let figures = ours.zip(limit).map(|(ours, limit)| Figures { ours, limit, is_ceiling });
        Self { what: what.into(), figures }
    }

    /// `None` when it was not measured.
    pub(super) fn is_met(&self) -> Option<bool> {
        self.figures.map(
            |Figures { ours, limit, is_ceiling }| {
                if is_ceiling { ours <= limit } else { ours >= limit }
            },
        )
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.is_met() {
            Some(true) => "PASS",
            Some(false) => "FAIL",
            None => return write!(f, "----  {}: not measured", self.what),
        };
        let Some(Figures { ours, limit, is_ceiling }) = self.figures else { return Ok(()) };
        let relation = if is_ceiling { "at most" } else { "at least" };
        write!(f, "{verdict}  {}: {ours:.3}, {relation} {limit:.3}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_both_figures() {
        let met = Bar::at_most("time", Some(1.0), Some(1.15));
        assert_eq!(met.to_string(), "PASS  time: 1.000, at most 1.150");
        let missed = Bar::at_least("rate", Some(80.0), Some(90.0));
        assert_eq!(missed.to_string(), "FAIL  rate: 80.000, at least 90.000");
    }

    #[test]
    fn a_bar_without_figures_is_neither_met_nor_missed() {
        let bar = Bar::at_most("time", None, Some(1.0));
        assert_eq!(bar.is_met(), None);
        assert_eq!(bar.to_string(), "----  time: not measured");
    }
}
