//! Finds earlier runs of the same target and plan, which show how much a figure varies from run to
//! run: for both sides of a comparison, or for a single run.
//!
//! Of a single run the interval is the one in which the next run lies: the mean of the logarithms ±
//! t·s·√(1 + 1/n) (Hahn & Meeker 1991, 4.7). The slices of one run cannot show what changes from
//! one minute or day to the next. The intervals of its rates are never narrower than this one.

use super::comparable::MeasuredWorkload;
use super::differences::fact_texts;
use super::rates::{RateUnit, rate_estimate};
use super::reasons::{Compared, is_sound_repetition};
use super::sides::{Run, RunGroup, Sides, WorkloadKey};
use crate::estimate::mean;
use crate::estimate::student::multiple_95;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::trend::RunToRun;
use std::collections::BTreeMap;

/// Groups of earlier runs that agree in their label and in every known fact about disk and machine.
pub(super) struct EarlierRuns<'a> {
    groups: Vec<Vec<&'a Run<'a>>>,
}

impl<'a> EarlierRuns<'a> {
    /// The runs of `history` (one group for each label) that began before the newest run of the
    /// comparison and repeat the plan of one of its runs on the same target.
    pub(super) fn from_history(history: &'a [RunGroup<'a>], sides: &Sides<'_>) -> Self {
        let mut groups = Vec::new();
        for group in history {
            let mut runs_by_facts: BTreeMap<Vec<String>, Vec<&Run<'_>>> = BTreeMap::new();
            for run in &group.runs {
                if is_earlier(run.record, sides) {
                    let facts = fact_texts(run.record);
                    runs_by_facts.entry(facts).or_default().push(run);
                }
            }
            groups.extend(runs_by_facts.into_values());
        }
        groups.retain(|runs: &Vec<_>| runs.len() > 1);
        Self { groups }
    }

    /// For each group, the figures that `find` finds in its runs, if they repeat `first`. Groups
    /// with fewer than two are skipped, because one run shows no variation.
    pub(super) fn repeats_of<'s, T: Compared>(
        &'s self,
        first: T,
        find: impl Fn(&'s Run<'s>) -> Option<T>,
    ) -> Vec<Vec<T>> {
        let mut groups = Vec::new();
        for runs in &self.groups {
            let mut group = Vec::new();
            for run in runs {
                if let Some(other) = find(run)
                    && is_sound_repetition(first, other)
                {
                    group.push(other);
                }
            }
            if group.len() > 1 {
                groups.push(group);
            }
        }
        groups
    }
}

/// Returns `true` if a run began before the newest of the compared runs, repeats one of them, and
/// is none of them. Starts are UTC with nine digits behind the point, so that their texts sort by
/// time.
fn is_earlier(record: &Record, sides: &Sides<'_>) -> bool {
    let mut is_before = false;
    let mut is_repeated = false;
    for side in sides.runs() {
        let compared = side.run.record;
        if compared.run_id == record.run_id {
            return false;
        }
        is_before |= record.started <= compared.started;
        is_repeated |= repeats(record, compared);
    }
    is_before && is_repeated
}

/// Returns `true` if machine, paths, verb and tasks of a run are those of another one.
fn repeats(run: &Record, repeated: &Record) -> bool {
    run.plan.origin.verb == repeated.plan.origin.verb
        && run.host.name == repeated.host.name
        && run.plan.targets == repeated.plan.targets
        && run.plan.tasks == repeated.plan.tasks
}

/// With fewer earlier runs nothing is said: the interval from two runs is wider than nine standard
/// deviations, that from three wider than four.
const EARLIER_RUNS_MIN: usize = 3;

/// The variation of each measurement of `record` from run to run, in their order; `None` where too
/// few earlier runs repeat it. The caller passes only runs that began before this one.
pub(crate) fn run_to_run(record: &Record, earlier: &[Record]) -> Vec<Option<RunToRun>> {
    let run = Run::without_name(record);
    let facts = fact_texts(record);
    let repetitions: Vec<Run<'_>> = earlier
        .iter()
        .filter(|other| repeats(other, record) && fact_texts(other) == facts)
        .map(Run::without_name)
        .collect();
    let mut variations = Vec::new();
    for index in 0..record.measurements.len() {
        let measured = MeasuredWorkload {
            name: "this run",
            run: &run,
            index,
        };
        variations.push(variation_of_row(measured, &repetitions));
    }
    variations
}

/// The variation of a measurement over itself and its repetitions among `runs`; `None` where too
/// few repeat it.
fn variation_of_row(measured: MeasuredWorkload<'_>, runs: &[Run<'_>]) -> Option<RunToRun> {
    let measurement = measured.row();
    let key = WorkloadKey::from_row(measurement);
    let mut rates = Vec::new();
    for run in runs {
        if let Some(other) = MeasuredWorkload::find("an earlier run", run, key)
            && is_sound_repetition(measured, other)
        {
            rates.extend(headline_iops(other));
        }
    }
    if rates.len() < EARLIER_RUNS_MIN {
        return None;
    }
    let mut logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    logs.push(headline_iops(measured)?.ln());
    let centre = mean(&logs);
    let count = logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - centre).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let half_width = multiple_95(count - 1.0) * deviation * (1.0 + 1.0 / count).sqrt();
    let next_high_iops = (centre + half_width).exp();
    if !next_high_iops.is_finite() {
        return None;
    }
    Some(RunToRun {
        earlier_runs: rates.len() as u64,
        lowest_iops: rates.iter().copied().fold(f64::MAX, f64::min),
        highest_iops: rates.iter().copied().fold(0.0, f64::max),
        next_low_iops: (centre - half_width).exp(),
        next_high_iops,
        within_iops: half_width_within(measurement),
    })
}

/// The half-width of the headline rate: half-widths of several kinds add up, as these vary
/// together. `None` as soon as one kind has no interval.
fn half_width_within(measurement: &Row) -> Option<f64> {
    let ops = measurement.headline_ops();
    ops.iter()
        .map(|(_, op)| op.figures.iops.half_width_95)
        .sum()
}

/// Widens the intervals of a row's rates to the variation from run to run. Of a row without it they
/// stay as they are.
pub(crate) fn widen(measurement: &mut Row) {
    let Some(variation) = measurement.run_to_run else {
        return;
    };
    let runs = variation.earlier_runs + 1;
    for op in measurement.figures.ops.values_mut() {
        for rate in [&mut op.iops, &mut op.throughput] {
            rate.widen(variation.relative_half_width() * rate.value, runs);
        }
    }
}

/// The headline rate in operations per second.
fn headline_iops(measured: MeasuredWorkload<'_>) -> Option<f64> {
    let rate = rate_estimate(&[measured.row()], None, RateUnit::Operations)?;
    Some(rate.shown.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::test_rng::TestRng;
    use diskproof_model::record::Estimate;

    /// Runs of the fixture whose rates are this share of its own.
    fn earlier(shares: &[f64]) -> Vec<Record> {
        let mut runs = Vec::new();
        for (index, share) in shares.iter().enumerate() {
            let mut record = fixture::record();
            record.run_id = format!("earlier-{index}");
            for measurement in &mut record.measurements {
                for op in measurement.figures.ops.values_mut() {
                    op.iops.value *= share;
                }
            }
            runs.push(record);
        }
        runs
    }

    fn random_reads(record: &Record) -> usize {
        record
            .measurements
            .iter()
            .position(|measurement| measurement.data.workload.name == "random-read-d32")
            .unwrap()
    }

    fn iops(measurement: &Row) -> &Estimate {
        &measurement.headline_ops()[0].1.figures.iops
    }

    /// The variation of the fixture's random reads over itself and these runs.
    fn random_reads_varied(earlier: &[Record]) -> Option<RunToRun> {
        let record = fixture::record();
        run_to_run(&record, earlier)[random_reads(&record)]
    }

    #[track_caller]
    fn assert_close(value: f64, expected: f64) {
        assert!(
            (value / expected - 1.0).abs() < 1e-4,
            "{value} is not {expected}"
        );
    }

    /// By hand: logarithms 0, 0, ln 0.8 and ln 1.25 = ∓0.22314 have the mean 0 and the deviation
    /// 0.22314 √(2/3) = 0.18220; t at three degrees of freedom is 3.18245; 3.18245 × 0.18220 ×
    /// √(5/4) = 0.64827, and e^0.64827 = 1.91223.
    #[test]
    fn interval_of_the_next_run_is_the_one_computed_by_hand() {
        let record = fixture::record();
        let rate = iops(&record.measurements[random_reads(&record)]).value;
        let found = random_reads_varied(&earlier(&[0.8, 1.25, 1.0])).unwrap();
        assert_eq!(found.earlier_runs, 3);
        assert_close(found.lowest_iops, 0.8 * rate);
        assert_close(found.highest_iops, 1.25 * rate);
        assert_close(found.next_high_iops, 1.91223 * rate);
        assert_close(found.next_low_iops, rate / 1.91223);
    }

    /// Twenty disks whose rate varies from run to run, by 5 % and by 12 %, while the run itself
    /// shows almost nothing of it. Each run knows the ones before it.
    #[test]
    fn next_run_lies_in_the_printed_interval_in_four_of_five_cases() {
        let mut rng = TestRng(21);
        for deviation in [0.05, 0.12] {
            let mut inside = 0;
            let mut cases = 0;
            for _ in 0..20 {
                let rates: Vec<f64> = (0..12).map(|_| (deviation * rng.normal()).exp()).collect();
                let runs = earlier(&rates);
                for number in EARLIER_RUNS_MIN..rates.len() - 1 {
                    let mut record = runs[number].clone();
                    let variations = run_to_run(&record, &runs[..number]);
                    let index = random_reads(&record);
                    let measurement = &mut record.measurements[index];
                    measurement.run_to_run = variations[index];
                    widen(measurement);
                    let own = iops(measurement);
                    let next = own.value / rates[number] * rates[number + 1];
                    inside += usize::from((own.value - next).abs() <= own.half_width_95.unwrap());
                    cases += 1;
                }
            }
            assert!(
                inside * 100 >= cases * 80,
                "{deviation}: {inside} of {cases}"
            );
        }
    }

    /// Three earlier runs, from which the next rate follows within a factor of e to this power.
    fn three_runs(iops: f64, log_half_width: f64) -> RunToRun {
        RunToRun {
            earlier_runs: 3,
            lowest_iops: iops,
            highest_iops: iops,
            next_low_iops: iops * (-log_half_width).exp(),
            next_high_iops: iops * log_half_width.exp(),
            within_iops: None,
        }
    }

    #[test]
    fn interval_is_the_wider_one_of_the_run_and_of_the_runs() {
        let mut measurement = fixture::record().measurements.swap_remove(0);
        let own = iops(&measurement).clone();
        let own_half_width = own.half_width_95.unwrap();
        measurement.run_to_run = Some(three_runs(own.value, 0.5 * own_half_width / own.value));
        widen(&mut measurement);
        assert_eq!(iops(&measurement).half_width_95, Some(own_half_width));
        measurement.run_to_run = Some(three_runs(own.value, 0.4));
        widen(&mut measurement);
        let widened = iops(&measurement);
        assert_close(widened.half_width_95.unwrap(), 0.4_f64.sinh() * own.value);
        assert_eq!(widened.n, 4);
    }

    #[test]
    fn other_plans_disks_and_disturbed_runs_do_not_count() {
        assert_eq!(random_reads_varied(&earlier(&[0.8])), None);
        let mut runs = earlier(&[0.8, 0.9, 1.1]);
        runs[0].plan.workloads_mut().pop();
        runs[1].host.kernel.push('x');
        assert_eq!(random_reads_varied(&runs), None);
        let alike = earlier(&[0.8, 0.9, 1.1]);
        assert_eq!(random_reads_varied(&alike).unwrap().earlier_runs, 3);
    }
}
