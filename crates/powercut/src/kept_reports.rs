//! Keeps the reports of a run in the memory of a verifier: all of a short run, and of a long one
//! every second, fourth and so on. The last report, by which the target is judged, is always kept.
//! Pure.

use crate::run::RunProgress;

/// The most reports that are kept: less than 300 MB with the most streams. The work that a damaged
/// disk lost is then dated to a 500,000th of the run.
const KEPT_MAX: usize = 1 << 20;

/// Reports in their order.
#[derive(Debug)]
pub(crate) struct KeptReports {
    /// Every `stride`th report, then the last one if it is not one of them.
    kept: Vec<RunProgress>,
    stride: u64,
    /// All reports so far.
    pushed: u64,
    /// The most reports in `kept`.
    kept_max: usize,
}

impl KeptReports {
    pub(crate) fn new() -> Self {
        Self::up_to(KEPT_MAX)
    }

    fn up_to(kept_max: usize) -> Self {
        Self {
            kept: Vec::new(),
            stride: 1,
            pushed: 0,
            kept_max,
        }
    }

    /// Returns the number of all reports so far.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Returns the last report.
    pub(crate) fn last(&self) -> Option<&RunProgress> {
        self.kept.last()
    }

    /// Adds the next report. Reports come in their order, the newest last.
    pub(crate) fn push(&mut self, report: RunProgress) {
        // The last report stays only until a newer one comes, unless it is one of every `stride`.
        if !self.pushed.is_multiple_of(self.stride) {
            self.kept.pop();
        }
        if self.kept.len() >= self.kept_max {
            self.thin();
        }
        self.kept.push(report);
        self.pushed += 1;
    }

    /// Keeps every second of the reports, from the second on: their numbers are multiples of the
    /// doubled `stride`.
    fn thin(&mut self) {
        let mut number = 0;
        self.kept.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        self.stride *= 2;
    }

    /// Returns the reports that were kept.
    pub(crate) fn into_reports(self) -> Vec<RunProgress> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_is_thinned_evenly_and_keeps_its_last_report() {
        for all in 0..200 {
            let mut reports = KeptReports::up_to(8);
            for number in 1..=all {
                reports.push(RunProgress {
                    elapsed_ns: number,
                    counts: vec![number],
                });
                assert_eq!(reports.last().map(|last| last.elapsed_ns), Some(number));
            }
            assert_eq!(reports.pushed(), all);
            let stride = reports.stride;
            let kept: Vec<u64> = reports
                .into_reports()
                .iter()
                .map(|report| report.elapsed_ns)
                .collect();
            assert!(kept.len() <= 8, "{all}: {kept:?}");
            assert!(kept.len() as u64 >= 4.min(all), "{all}: {kept:?}");
            for (at, number) in kept.iter().enumerate() {
                let is_last = at + 1 == kept.len();
                assert!(number.is_multiple_of(stride) || is_last, "{all}: {kept:?}");
            }
        }
    }
}
