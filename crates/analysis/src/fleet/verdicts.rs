//! Which rows differ: Holm's correction over rows and metrics, the margin, and the suspects, for
//! which the correction may be too strict.

use super::spread::{Distance, JudgedGroup};
use crate::compare::holm;

/// The probability with which any row of a healthy fleet is named: the usual 5 %.
const ALPHA: f64 = 0.05;

/// The distance of a row from the others, in one metric or in the mean of several, with its weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    /// The index of the group.
    pub group: usize,
    /// The index of the metric; `None`: the mean over the row's metrics.
    pub metric: Option<usize>,
    pub distance: Distance,
    /// The p-value after Holm's correction over all tests.
    pub p_adjusted: f64,
    pub weight: Weight,
}

/// How much a distance proves.
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
    let metrics: Vec<usize> = groups.iter().map(metrics_of).collect();
    weigh(&mut tests, margin, |test| metrics[test.group]);
    tests
}

/// A distance of a row that is not judged by its own fleet.
pub(super) struct Measure {
    pub group: usize,
    /// `None`: the mean over its metrics.
    pub metric: Option<usize>,
    pub distance: Distance,
}

/// The same for these distances. None becomes a suspect, because these rows were not searched for
/// among many.
pub(super) fn tests_of_measures(measures: Vec<Measure>, margin: f64) -> Vec<Test> {
    let mut tests = Vec::new();
    for measure in measures {
        tests.push(test(measure.group, measure.metric, measure.distance));
    }
    weigh(&mut tests, margin, |_| usize::MAX);
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
fn metrics_of(judged: &JudgedGroup) -> usize {
    let own = judged.columns.iter().flatten().count();
    if judged.overall.is_empty() {
        own
    } else {
        own + 1
    }
}

/// Sets the weight of each test. A suspect has to be unlikely among the metrics of its own row
/// alone.
fn weigh(tests: &mut [Test], margin: f64, metrics_of_row: impl Fn(&Test) -> usize) {
    let p_values: Vec<f64> = tests.iter().map(|test| test.distance.p_value).collect();
    let reach = margin.ln_1p();
    for (test, p_adjusted) in tests.iter_mut().zip(holm(&p_values)) {
        let metrics = metrics_of_row(test) as f64;
        let Distance {
            distance,
            p_value,
            is_imprecise,
            ..
        } = test.distance;
        test.p_adjusted = p_adjusted;
        test.weight = if distance.abs() >= reach && p_adjusted <= ALPHA {
            Weight::Differs
        } else if distance <= -reach && p_value * metrics <= ALPHA {
            Weight::Suspect
        } else if is_imprecise {
            Weight::Imprecise
        } else {
            Weight::Alike
        };
    }
}
