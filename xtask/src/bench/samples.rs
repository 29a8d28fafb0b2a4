//! Figures of several runs, and what to say of them.

use crate::lab::Traffic;
use crate::measure::Cost;

/// One run of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) cost: Cost,
    pub(super) traffic: Traffic,
}

/// All runs of one row.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) runs: Vec<Sample>,
    /// Why a run did not count; the row is given up after the first.
    pub(super) failure: Option<String>,
}

/// Median and range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Samples {
    /// The spread of a figure over all runs; `None` when there was none.
    pub(super) fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let mut values: Vec<f64> = self.runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Spread { median, min, max })
    }

    pub(super) fn wall_s(&self) -> Option<Spread> {
        self.spread(|sample| sample.cost.wall.as_secs_f64())
    }

    pub(super) fn cpu_s(&self) -> Option<Spread> {
        self.spread(|sample| sample.cost.cpu.as_secs_f64())
    }

    /// The largest of all runs: a bar on memory is for the worst of them.
    pub(super) fn memory_mib_max(&self) -> Option<f64> {
        self.spread(|sample| float(sample.cost.memory_bytes_max) / f64::from(1 << 20))
            .map(|spread| spread.max)
    }

    /// The most connections of any run.
    pub(super) fn connections_max(&self) -> Option<f64> {
        self.spread(|sample| float(sample.traffic.connections)).map(|spread| spread.max)
    }
}

/// Counters as figures.
#[expect(clippy::cast_precision_loss, reason = "counters here stay far below 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn samples(walls_ms: &[u64]) -> Samples {
        let run = |&ms| Sample {
            cost: Cost {
                wall: Duration::from_millis(ms),
                cpu: Duration::ZERO,
                memory_bytes_max: 0,
            },
            traffic: Traffic::default(),
        };
        Samples { runs: walls_ms.iter().map(run).collect(), failure: None }
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        let spread = samples(&[400, 100, 300, 200]).wall_s().unwrap();
        assert_eq!(spread, Spread { median: 0.25, min: 0.1, max: 0.4 });
        assert_eq!(samples(&[3000, 1000, 2000]).wall_s().unwrap().median, 2.0);
    }

    #[test]
    fn nothing_can_be_said_of_no_run() {
        assert_eq!(samples(&[]).wall_s(), None);
    }
}
