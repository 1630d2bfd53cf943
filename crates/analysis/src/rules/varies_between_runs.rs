//! `varies-between-runs`: earlier runs of the same plan on the same target show that a rate changes
//! more from run to run than this run alone shows. Its intervals cover that.

use super::rule::*;
use diskproof_model::digits::{figure_text, joined_range};
use diskproof_model::trend::RunToRun;

pub(super) const RULE: Rule = Rule {
    code: "varies-between-runs",
    title: "The rate differs from run to run",
    summary: "Earlier runs of the same plan on this target differ by more than a single run shows, \
              which misses changes from one hour to the next. The intervals include them.",
    remedy: Remedy::Always(
        "Decide from several runs per side: 'diskproof compare' uses the runs in the history, and \
         'diskproof compare DIR1 DIR2' measures both in alternation.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Relative half-width of the interval of the next run up to which it needs no comment. Chosen, not
/// measured.
const WIDTH_MIN: f64 = 0.10;

/// The half-width of the next run must be at least this multiple of the one within this run. Where
/// it is less, this run alone shows the variation. Chosen, not measured.
const TIMES_WITHIN_MIN: f64 = 2.0;

/// The last digit of a rate stands for this share of the half-width.
const LAST_DIGIT_SHARE: f64 = 0.1;

/// A workload whose rate varies from run to run.
struct VaryingWorkload<'a> {
    measured: Measured<'a>,
    runs: RunToRun,
}

impl VaryingWorkload<'_> {
    /// Two rates as a range, in bytes for large blocks.
    fn range(&self, low_iops: f64, high_iops: f64) -> String {
        let row = self.measured.row;
        let bytes_per_second: f64 = row
            .headline_ops()
            .iter()
            .map(|(_, op)| op.figures.throughput.value)
            .sum();
        let iops = row.total_iops();
        let (scale, unit) = if row.is_rated_in_bytes() && iops > 0.0 {
            (bytes_per_second / iops, "B/s")
        } else {
            (1.0, "1/s")
        };
        let finest = Some(LAST_DIGIT_SHARE * self.half_width() * scale);
        let low = figure_text(low_iops * scale, finest, unit);
        let high = figure_text(high_iops * scale, finest, unit);
        joined_range(&low, &high)
    }

    /// Half of the interval of the next run.
    fn half_width(&self) -> f64 {
        0.5 * (self.runs.next_high_iops - self.runs.next_low_iops)
    }

    /// The same, relative to this run's rate.
    fn width(&self) -> f64 {
        self.half_width() / self.measured.row.total_iops()
    }

    fn evidence(&self) -> [Evidence; 2] {
        let iops = self.measured.row.total_iops();
        let low = self.runs.next_low_iops;
        let high = self.runs.next_high_iops;
        [
            self.measured
                .evidence("run_to_run/next_low_iops", low, iops, "1/s"),
            self.measured
                .evidence("run_to_run/next_high_iops", high, iops, "1/s"),
        ]
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<VaryingWorkload<'_>> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(varying_workload(measured));
    }
    let worst = largest_by(&hits, |varying| varying.width())?;
    let runs = worst.runs;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "Runs of {} differ by more than a single run shows. {} earlier runs of {} reached {}; \
             expect {} from the next one.",
            workload_names(record, hits.iter().map(|varying| varying.measured.index)),
            runs.earlier_runs,
            workload_name(record, worst.measured.row),
            worst.range(runs.lowest_iops, runs.highest_iops),
            worst.range(runs.next_low_iops, runs.next_high_iops),
        ),
        hits.iter().flat_map(VaryingWorkload::evidence),
    ))
}

fn varying_workload(measured: Measured<'_>) -> Option<VaryingWorkload<'_>> {
    let runs = measured.row.run_to_run?;
    let varying = VaryingWorkload { measured, runs };
    let within = runs.within_iops.unwrap_or(0.0);
    let is_wide = varying.width() >= WIDTH_MIN && varying.half_width() >= TIMES_WITHIN_MIN * within;
    if !is_wide {
        return None;
    }
    Some(varying)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use crate::judge::RunVariation;

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| after([0.8, 1.25, 1.0]), || after([0.99, 1.01, 1.0]));

    /// Earlier runs whose random reads at depth 32 reached these shares of the fixture's rate.
    fn after(shares: [f64; 3]) -> Record {
        let earlier = shares.iter().enumerate().map(|(index, share)| {
            let mut record = fixture::record();
            record.run_id = format!("earlier-{index}");
            let reads = record
                .measurements
                .iter_mut()
                .filter(|measurement| measurement.data.workload.name == "random-read-d32");
            for op in reads.flat_map(|measurement| measurement.figures.ops.values_mut()) {
                op.iops.value *= share;
            }
            record
        });
        let earlier = RunVariation::Earlier(earlier.collect());
        fixture::changed(|run| run.facts.variation = earlier)
    }

    #[test]
    fn rates_of_earlier_runs_and_of_the_next_are_stated() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
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
        assert_eq!(check(&fixture::record()), None);
        let mut imprecise = (EXAMPLES.fires)();
        for runs in imprecise
            .measurements
            .iter_mut()
            .flat_map(|measurement| &mut measurement.run_to_run)
        {
            runs.within_iops = Some(runs.next_high_iops);
        }
        assert_eq!(check(&imprecise), None);
    }
}
