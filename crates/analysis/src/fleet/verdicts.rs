//! The rows that differ, by the margin and by Holm's correction over rows and metrics, and the
//! suspects, for which the correction may be too strict.

use super::spread::{Distance, JudgedGroup};
use crate::estimate::adjusted_for_family;

/// The probability with which any row of a healthy fleet is named: the usual 5 %.
const ALPHA: f64 = 0.05;

/// The distance of a row from the others, in one metric or in the mean of several, with its weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    /// The index of the group.
    pub group: usize,
    /// The index of the metric; `None` for the mean over the row's metrics.
    pub metric: Option<usize>,
    pub distance: Distance,
    /// The p-value after Holm's correction over all tests.
    pub p_adjusted: f64,
    pub weight: Weight,
}

/// The proof that a distance gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Within the margin, or by chance.
    Alike,
    /// Neither alike nor different: the row's own error hides half the rate.
    Imprecise,
    /// Slower, but not beyond what one of so many rows is by chance.
    Suspect,
    /// Beyond the margin, and not by chance among so many rows.
    Differs,
}

/// Tests every distance of these groups, with Holm's correction over all of them. `margin` is the
/// share by which alike rows may differ.
pub(super) fn tests(groups: &[JudgedGroup], margin: f64) -> Vec<Test> {
    let mut tests = Vec::new();
    for (group, judged) in groups.iter().enumerate() {
        for (metric, column) in judged.columns.iter().enumerate() {
            let rows = column.iter().flat_map(|column| &column.rows);
            tests.extend(rows.map(|distance| test(group, Some(metric), *distance)));
        }
        for overall in &judged.overall {
            let rows = &overall.judged.rows;
            tests.extend(rows.iter().map(|distance| test(group, None, *distance)));
        }
    }
    let metrics_of_groups = groups.iter().map(metrics_of_row).collect();
    weigh(
        &mut tests,
        margin,
        &Suspects::AmongMetrics(metrics_of_groups),
    );
    tests
}

/// The rule for suspects.
enum Suspects {
    /// A row is a suspect if its distance is unlikely among so many metrics of that row. There is
    /// one number for each group.
    AmongMetrics(Vec<usize>),
    /// No row becomes a suspect.
    Never,
}

/// A distance of a row that is not judged by its own fleet.
pub(super) struct Measure {
    pub group: usize,
    /// `None` for the mean over its metrics.
    pub metric: Option<usize>,
    pub distance: Distance,
}

/// Tests these distances, with Holm's correction over all of them. No row becomes a suspect,
/// because these rows were not searched for among many.
pub(super) fn tests_of_measures(measures: Vec<Measure>, margin: f64) -> Vec<Test> {
    let mut tests = Vec::new();
    for measure in measures {
        tests.push(test(measure.group, measure.metric, measure.distance));
    }
    weigh(&mut tests, margin, &Suspects::Never);
    tests
}

fn test(group: usize, metric: Option<usize>, distance: Distance) -> Test {
    Test {
        group,
        metric,
        distance,
        p_adjusted: 1.0,
        weight: Weight::Alike,
    }
}

/// The number of metrics that each row of a group is judged by, the mean over them included.
fn metrics_of_row(judged: &JudgedGroup) -> usize {
    let own = judged.columns.iter().flatten().count();
    if judged.overall.is_empty() {
        own
    } else {
        own + 1
    }
}

/// Sets the weight of each test.
fn weigh(tests: &mut [Test], margin: f64, suspects: &Suspects) {
    let p_values: Vec<f64> = tests.iter().map(|test| test.distance.p_value).collect();
    let log_margin = margin.ln_1p();
    for (test, p_adjusted) in tests.iter_mut().zip(adjusted_for_family(&p_values)) {
        let is_unlikely_alone = match suspects {
            Suspects::AmongMetrics(metrics) => {
                test.distance.p_value * metrics[test.group] as f64 <= ALPHA
            }
            Suspects::Never => false,
        };
        let Distance {
            distance,
            is_imprecise,
            ..
        } = test.distance;
        test.p_adjusted = p_adjusted;
        test.weight = if distance.abs() >= log_margin && p_adjusted <= ALPHA {
            Weight::Differs
        } else if distance <= -log_margin && is_unlikely_alone {
            // A negative distance is slower.
            Weight::Suspect
        } else if is_imprecise {
            Weight::Imprecise
        } else {
            Weight::Alike
        };
    }
}
