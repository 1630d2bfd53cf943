//! Earlier runs of the same target and plan. They are not compared with anything, but show how much
//! a figure varies from run to run, on the sides of a comparison or of a single run.
//!
//! Of a single run the interval is the one in which the next run lies: the mean of the logarithms ±
//! t·s·√(1 + 1/n) (Hahn & Meeker 1991, 4.7). The slices of one run cannot show what changes from
//! one minute or day to the next. The intervals of its rates are never narrower than this one.

use super::comparable::MeasuredWorkload;
use super::differences::fact_texts;
use super::rates::rate_estimate;
use super::reasons::{Compared, is_sound_repetition};
use super::sides::{Run, RunGroup, Sides, WorkloadKey};
use crate::estimate::mean;
use crate::estimate::student::multiple_95;
use diskproof_model::comparison::Figure;
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
            let mut alike: BTreeMap<Vec<String>, Vec<&Run<'_>>> = BTreeMap::new();
            for run in &group.runs {
                if is_earlier(run.record, sides) {
                    alike.entry(fact_texts(run.record)).or_default().push(run);
                }
            }
            groups.extend(alike.into_values());
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

/// Returns `true` if a run began before the newest of the compared runs, has the plan of one of
/// them, and is none of them.
fn is_earlier(record: &Record, sides: &Sides<'_>) -> bool {
    let mut is_before = false;
    let mut is_repeated = false;
    for named in sides.runs() {
        let compared = named.run.record;
        if compared.run_id == record.run_id {
            return false;
        }
        is_before |= record.started <= compared.started;
        is_repeated |= have_same_plan(compared, record);
    }
    is_before && is_repeated
}

/// Returns `true` if machine, paths, verb and tasks of two runs agree.
fn have_same_plan(run: &Record, other: &Record) -> bool {
    run.plan.origin.verb == other.plan.origin.verb
        && run.host.name == other.host.name
        && run.plan.targets == other.plan.targets
        && run.plan.tasks == other.plan.tasks
}

/// With fewer earlier runs nothing is said: the interval from two runs is wider than nine standard
/// deviations, that from three wider than four.
const EARLIER_RUNS_MIN: usize = 3;

/// The variation of each measurement of `record` from run to run, in their order; `None` where too
/// few earlier runs repeat it.
pub(crate) fn run_to_run(record: &Record, earlier: &[Record]) -> Vec<Option<RunToRun>> {
    let own_run = unnamed_run(record);
    let own_facts = fact_texts(record);
    let alike: Vec<Run<'_>> = earlier
        .iter()
        .filter(|other| have_same_plan(record, other) && fact_texts(other) == own_facts)
        .map(unnamed_run)
        .collect();
    let mut variations = Vec::new();
    for index in 0..record.measurements.len() {
        let measured = MeasuredWorkload {
            name: "this run",
            run: &own_run,
            index,
        };
        variations.push(variation_of_row(measured, &alike));
    }
    variations
}

fn unnamed_run(record: &Record) -> Run<'_> {
    Run {
        name: String::new(),
        record,
    }
}

fn variation_of_row(own: MeasuredWorkload<'_>, runs: &[Run<'_>]) -> Option<RunToRun> {
    let measurement = own.row();
    let key = WorkloadKey::from_row(measurement);
    let mut rates = Vec::new();
    for run in runs {
        if let Some(other) = MeasuredWorkload::find("an earlier run", run, key)
            && is_sound_repetition(own, other)
        {
            rates.extend(headline_iops(other));
        }
    }
    if rates.len() < EARLIER_RUNS_MIN {
        return None;
    }
    let mut logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    logs.push(headline_iops(own)?.ln());
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
/// together.
fn half_width_within(measurement: &Row) -> Option<f64> {
    let ops = measurement.headline_ops();
    ops.iter()
        .map(|(_, op)| op.figures.iops.half_width_95)
        .sum()
}

/// Widens the intervals of a row's rates to the variation from run to run.
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
    let rate = rate_estimate(&[measured.row()], None, Figure::Iops)?;
    Some(rate.estimate.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::test_rng::TestRng;

    /// Runs of the fixture whose rates are this share of its own.
    fn earlier(shares: &[f64]) -> Vec<Record> {
        let run = |(index, share): (usize, &f64)| {
            let mut record = fixture::record();
            record.run_id = format!("earlier-{index}");
            for measurement in &mut record.measurements {
                measurement
                    .figures
                    .ops
                    .values_mut()
                    .for_each(|op| op.iops.value *= share);
            }
            record
        };
        shares.iter().enumerate().map(run).collect()
    }

    fn random_reads(record: &Record) -> usize {
        let mut all = record.measurements.iter();
        all.position(|measurement| measurement.data.workload.name == "random-read-d32")
            .unwrap()
    }

    fn of_random_reads(earlier: &[Record]) -> Option<(f64, RunToRun)> {
        let record = fixture::record();
        let index = random_reads(&record);
        let found = run_to_run(&record, earlier)[index]?;
        let (_, op) = record.measurements[index].headline_ops()[0];
        Some((op.figures.iops.value, found))
    }

    /// By hand: logarithms 0, 0, ln 0.8 and ln 1.25 = ∓0.22314 have the mean 0 and the deviation
    /// 0.22314 √(2/3) = 0.18220; t at three degrees of freedom is 3.18245; 3.18245 × 0.18220 ×
    /// √(5/4) = 0.64827, and e^0.64827 = 1.91223.
    #[test]
    fn interval_of_the_next_run_is_the_one_computed_by_hand() {
        let (rate, found) = of_random_reads(&earlier(&[0.8, 1.25, 1.0])).unwrap();
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-4;
        assert_eq!(found.earlier_runs, 3);
        assert!(close(found.lowest_iops, 0.8 * rate) && close(found.highest_iops, 1.25 * rate));
        assert!(
            close(found.next_high_iops, 1.91223 * rate),
            "{found:?} {rate}"
        );
        assert!(
            close(found.next_low_iops, rate / 1.91223),
            "{found:?} {rate}"
        );
    }

    /// Twenty disks whose rate varies from run to run, by 5 % and by 12 %, while the run itself
    /// shows almost nothing of it. Each run knows the ones before it.
    #[test]
    fn next_run_lies_in_the_printed_interval_in_four_of_five_cases() {
        let mut rng = TestRng(21);
        for deviation in [0.05, 0.12] {
            let (mut inside, mut of) = (0, 0);
            for _ in 0..20 {
                let rates: Vec<f64> = (0..12).map(|_| (deviation * rng.normal()).exp()).collect();
                let runs = earlier(&rates);
                for at in EARLIER_RUNS_MIN..rates.len() - 1 {
                    let mut record = runs[at].clone();
                    let varying = run_to_run(&record, &runs[..at]);
                    let index = random_reads(&record);
                    let measurement = &mut record.measurements[index];
                    measurement.run_to_run = varying[index];
                    widen(measurement);
                    let own = &measurement.headline_ops()[0].1.figures.iops;
                    let next = own.value / rates[at] * rates[at + 1];
                    inside += usize::from((own.value - next).abs() <= own.half_width_95.unwrap());
                    of += 1;
                }
            }
            assert!(inside * 100 >= of * 80, "{deviation}: {inside} of {of}");
        }
    }

    #[test]
    fn interval_is_the_wider_one_of_the_run_and_of_the_runs() {
        let mut measurement = fixture::record().measurements.swap_remove(0);
        let (value, own) = {
            let rate = &measurement.headline_ops()[0].1.figures.iops;
            (rate.value, rate.half_width_95.unwrap())
        };
        let half_width = |measurement: &Row| {
            measurement.headline_ops()[0]
                .1
                .figures
                .iops
                .half_width_95
                .unwrap()
        };
        let runs = |reach: f64| RunToRun {
            earlier_runs: 3,
            lowest_iops: value,
            highest_iops: value,
            next_low_iops: value * (-reach).exp(),
            next_high_iops: value * reach.exp(),
            within_iops: None,
        };
        measurement.run_to_run = Some(runs(0.5 * own / value));
        widen(&mut measurement);
        assert_eq!(half_width(&measurement), own);
        measurement.run_to_run = Some(runs(0.4));
        widen(&mut measurement);
        assert!((half_width(&measurement) / value - 0.4_f64.sinh()).abs() < 1e-9);
        assert_eq!(measurement.headline_ops()[0].1.figures.iops.n, 4);
    }

    #[test]
    fn other_plans_disks_and_disturbed_runs_do_not_count() {
        assert_eq!(of_random_reads(&earlier(&[0.8])), None);
        let mut runs = earlier(&[0.8, 0.9, 1.1]);
        runs[0].plan.workloads_mut().pop();
        runs[1].host.kernel.push('x');
        assert_eq!(of_random_reads(&runs), None);
        let alike = earlier(&[0.8, 0.9, 1.1]);
        assert_eq!(of_random_reads(&alike).unwrap().1.earlier_runs, 3);
    }
}
