//! Adds up what the test binaries report.

use std::time::Duration;

/// Sums over every `test result:` line seen.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Binaries whose last line was not understood would hide tests: counted as failures.
    unread: u64,
    took: Duration,
}

impl Tally {
    /// Takes notice of one line of `cargo test`'s output.
    pub(super) fn note(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        self.binaries += 1;
        let count = |word: &str| {
            result
                .split([';', '.'])
                .filter_map(|part| part.trim().strip_suffix(word))
                .find_map(|number| number.trim().parse::<u64>().ok())
        };
        let (Some(passed), Some(failed), Some(ignored)) =
            (count("passed"), count("failed"), count("ignored"))
        else {
            self.unread += 1;
            return;
        };
        self.passed += passed;
        self.failed += failed;
        self.ignored += ignored;
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn took(&mut self, time: Duration) {
        self.took = time;
    }

    /// The sum in cargo's own form, then in plain words. Where no test ran, nothing is claimed.
    pub(super) fn closing_lines(&self) -> String {
        if self.binaries == 0 {
            return "no test ran".to_owned();
        }
        let Self { passed, ignored, .. } = *self;
        let failed = self.failed + self.unread;
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        let seconds = self.took.as_secs_f64();
        let skipped = if ignored == 0 { String::new() } else { format!(", {ignored} skipped") };
        format!(
            "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; \
             0 measured; 0 filtered out; finished in {seconds:.2}s\n\n\
             {passed} passed, {failed} failed{skipped}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.note(line);
        }
        tally
    }

    #[test]
    fn a_gate_that_failed_before_the_tests_claims_no_result() {
        assert_eq!(Tally::default().closing_lines(), "no test ran");
    }

    #[test]
    fn results_of_all_binaries_add_up() {
        let sum = tally(&[
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s",
        ]);
        assert_eq!((sum.passed, sum.failed, sum.ignored), (4, 2, 1));
        assert!(sum.closing_lines().starts_with("test result: FAILED. 4 passed; 2 failed; 1 ign"));
        assert!(sum.closing_lines().ends_with("\n4 passed, 2 failed, 1 skipped"));
    }

    #[test]
    fn a_clean_sum_ends_with_the_plain_line() {
        let sum = tally(&["test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured"]);
        assert_eq!(sum.closing_lines().lines().last(), Some("7 passed, 0 failed"));
    }

    #[test]
    fn a_result_that_cannot_be_read_is_a_failure() {
        let sum = tally(&["test result: perhaps"]);
        assert_eq!(sum.closing_lines().lines().last(), Some("0 passed, 1 failed"));
    }
}
