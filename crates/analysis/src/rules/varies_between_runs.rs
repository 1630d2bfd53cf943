//! `varies-between-runs`: earlier runs of the same plan on the same target show that a rate changes
//! more from run to run than this run alone shows. Its intervals cover that.

use super::rule::*;
use diskproof_model::digits::{figure_text, joined_range};
use diskproof_model::trend::RunToRun;

pub(super) const VARIES_BETWEEN_RUNS: Rule = Rule {
    code: "varies-between-runs",
    check: Check::Workloads(check_varies_between_runs),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Relative half-width of the interval of the next run up to which it needs no comment.
const WIDTH_MIN: f64 = 0.10;
/// Least multiple of the half-width by what varied within this run: with less, this run shows it.
const TIMES_WITHIN_MIN: f64 = 2.0;
/// Share of the half-width that the last digit of a rate shows.
const FINEST: f64 = 0.1;

/// A workload whose rate varies from run to run.
struct Varying<'a> {
    index: usize,
    m: &'a Row,
    runs: RunToRun,
}

impl Varying<'_> {
    /// Two rates as a range, in bytes for large blocks.
    fn range(&self, low_iops: f64, high_iops: f64) -> String {
        let ops = self.m.headline_ops();
        let bytes: f64 = ops.iter().map(|(_, op)| op.figures.throughput.value).sum();
        let iops = self.m.total_iops();
        let (scale, unit) = if self.m.is_rated_in_bytes() && iops > 0.0 {
            (bytes / iops, "B/s")
        } else {
            (1.0, "1/s")
        };
        let finest = FINEST * self.half_width() * scale;
        let [low, high] =
            [low_iops, high_iops].map(|rate| figure_text(rate * scale, Some(finest), unit));
        joined_range(&low, &high)
    }

    /// Of the interval of the next run.
    fn half_width(&self) -> f64 {
        0.5 * (self.runs.next_high_iops - self.runs.next_low_iops)
    }

    /// The same, relative to this run's rate.
    fn width(&self) -> f64 {
        self.half_width() / self.m.total_iops()
    }
}

fn check_varies_between_runs(record: &Record) -> Option<Diagnosis> {
    let found: Vec<Varying<'_>> = real(record).filter_map(varying).collect();
    let worst = largest_by(&found, |varying| varying.width())?;
    let runs = worst.runs;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "Runs of {} differ by more than a single run shows. {} earlier runs of {} reached {}; \
             expect {} from the next one.",
            scope(record, found.iter().map(|varying| varying.index)),
            runs.earlier_runs,
            workload_name(record, worst.m),
            worst.range(runs.lowest_iops, runs.highest_iops),
            worst.range(runs.next_low_iops, runs.next_high_iops),
        ),
        found.iter().flat_map(|varying| {
            let Varying { index, m, runs } = varying;
            [
                ("run_to_run/next_low_iops", runs.next_low_iops),
                ("run_to_run/next_high_iops", runs.next_high_iops),
            ]
            .map(|(place, rate)| evidence(*index, place, rate, m.total_iops(), "/s"))
        }),
    ))
}

fn varying((index, m): Measured<'_>) -> Option<Varying<'_>> {
    let runs = m.run_to_run?;
    let within = runs.within_iops.unwrap_or(0.0);
    let found = Varying { index, m, runs };
    let is_wide = found.width() >= WIDTH_MIN && found.half_width() >= TIMES_WITHIN_MIN * within;
    is_wide.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use crate::judge::RunVariation;

    pub(super) const EXAMPLES: Examples =
        Examples::of(|| after([0.8, 1.25, 1.0]), || after([0.99, 1.01, 1.0]));

    /// Earlier runs whose random reads at depth 32 reached these shares of the fixture's rate.
    fn after(shares: [f64; 3]) -> Record {
        let earlier = shares.iter().enumerate().map(|(index, share)| {
            let mut record = fixture::record();
            record.run_id = format!("earlier-{index}");
            let reads = record
                .measurements
                .iter_mut()
                .filter(|m| m.data.workload.name == "random-read-d32");
            for op in reads.flat_map(|m| m.figures.ops.values_mut()) {
                op.iops.value *= share;
            }
            record
        });
        let earlier = RunVariation::Earlier(earlier.collect());
        fixture::changed(|run| run.0.variation = earlier)
    }

    #[test]
    fn rates_of_earlier_runs_and_of_the_next_are_stated() {
        let finding = check_varies_between_runs(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 2)
        );
        let parts = [
            "1 of 8 workloads (random-read-d32)",
            "3 ",
            "8000 to 12,500/s",
            "5200 to 19,100/s",
        ];
        states(&finding.claim, &parts);
    }

    #[test]
    fn single_and_imprecise_runs_are_silent() {
        assert_eq!(check_varies_between_runs(&fixture::record()), None);
        let mut imprecise = (EXAMPLES.fires)();
        for runs in imprecise
            .measurements
            .iter_mut()
            .flat_map(|m| &mut m.run_to_run)
        {
            runs.within_iops = Some(runs.next_high_iops);
        }
        assert_eq!(check_varies_between_runs(&imprecise), None);
    }
}
