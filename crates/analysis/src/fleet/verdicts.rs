//! Decides which rows differ: those beyond the margin by Holm's correction over all rows and
//! metrics. Rows that this correction may spare wrongly are suspects, for a second look.

use super::spread::{Distance, JudgedGroup};
use crate::estimate::adjusted_for_family;

/// The probability with which any row of a healthy fleet is named: the usual 5 %.
const ALPHA: f64 = 0.05;

/// The test of one distance: of a row from the others, in one metric or in the mean of several.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowTest {
    /// The index of the metric; `None` for the mean over the row's metrics.
    pub metric: Option<usize>,
    pub distance: Distance,
    /// The p-value after Holm's correction over all tests.
    pub p_adjusted: f64,
    pub outcome: RowOutcome,
}

/// The outcome of the test of one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOutcome {
    /// Within the margin, or by chance.
    Alike,
    /// Neither alike nor different: the row's own error hides half the rate.
    Imprecise,
    /// Slower, but not beyond what one of so many rows is by chance.
    Suspect,
    /// Beyond the margin, and not by chance among so many rows.
    Differs,
}

/// A distance before its test.
pub(super) struct RowDistance {
    /// The index of the group.
    pub group: usize,
    /// The index of the metric; `None` for the mean over the row's metrics.
    pub metric: Option<usize>,
    pub distance: Distance,
}

/// The rule for suspects.
enum Suspects {
    /// A row is a suspect if its distance is unlikely among so many metrics of that row. There is
    /// one number for each group.
    AmongMetrics(Vec<usize>),
    /// No row becomes a suspect.
    Never,
}

/// Tests every row of these groups in every metric, with Holm's correction over all of them.
/// `margin` is the share by which alike rows may differ.
pub(super) fn test_groups(groups: &[JudgedGroup], margin: f64) -> Vec<RowTest> {
    let mut distances = Vec::new();
    for (group, judged) in groups.iter().enumerate() {
        for (metric, column) in judged.columns.iter().enumerate() {
            for distance in column.iter().flat_map(|column| &column.rows) {
                distances.push(RowDistance {
                    group,
                    metric: Some(metric),
                    distance: *distance,
                });
            }
        }
        for distance in judged.overall.iter().flat_map(|mean| &mean.judged.rows) {
            distances.push(RowDistance {
                group,
                metric: None,
                distance: *distance,
            });
        }
    }
    let metrics_of_groups = groups.iter().map(metrics_of_row).collect();
    test_by(
        &Suspects::AmongMetrics(metrics_of_groups),
        distances,
        margin,
    )
}

/// Tests these distances of rows that are not judged by their own fleet, with Holm's correction
/// over all of them. No row becomes a suspect, because these rows were not searched for among many.
pub(super) fn test_distances(distances: Vec<RowDistance>, margin: f64) -> Vec<RowTest> {
    test_by(&Suspects::Never, distances, margin)
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

/// The test of each distance, in the same order.
fn test_by(suspects: &Suspects, distances: Vec<RowDistance>, margin: f64) -> Vec<RowTest> {
    let mut p_values = Vec::new();
    for row in &distances {
        p_values.push(row.distance.p_value);
    }
    let mut tests = Vec::new();
    for (row, p_adjusted) in distances.into_iter().zip(adjusted_for_family(&p_values)) {
        let may_be_suspect = match suspects {
            Suspects::AmongMetrics(metrics) => {
                row.distance.p_value * metrics[row.group] as f64 <= ALPHA
            }
            Suspects::Never => false,
        };
        tests.push(RowTest {
            metric: row.metric,
            distance: row.distance,
            p_adjusted,
            outcome: outcome(&row.distance, margin, p_adjusted, may_be_suspect),
        });
    }
    tests
}

/// The outcome of a distance. A negative one is slower: only a slower row becomes a suspect.
fn outcome(distance: &Distance, margin: f64, p_adjusted: f64, may_be_suspect: bool) -> RowOutcome {
    let log_margin = margin.ln_1p();
    if distance.log_ratio.abs() >= log_margin && p_adjusted <= ALPHA {
        RowOutcome::Differs
    } else if distance.log_ratio <= -log_margin && may_be_suspect {
        RowOutcome::Suspect
    } else if distance.is_imprecise {
        RowOutcome::Imprecise
    } else {
        RowOutcome::Alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(log_ratio: f64, p_value: f64) -> RowDistance {
        RowDistance {
            group: 0,
            metric: Some(0),
            distance: Distance {
                row: 0,
                log_ratio,
                t: 0.0,
                p_value,
                is_imprecise: false,
            },
        }
    }

    /// Of two tests the smaller p-value counts twice (Holm); suspects pay for their own two
    /// metrics.
    #[test]
    fn margin_correction_and_direction_decide_the_outcome() {
        let fast = 0.1_f64.ln_1p();
        let slow = -fast;
        let own_fleet = Suspects::AmongMetrics(vec![2]);
        for (suspects, log_ratio, p_value, expected) in [
            (&own_fleet, slow, 0.025, RowOutcome::Differs),
            (&own_fleet, fast, 0.025, RowOutcome::Differs),
            (&own_fleet, slow + 1e-9, 0.025, RowOutcome::Alike),
            (&Suspects::Never, slow, 0.0251, RowOutcome::Alike),
        ] {
            let distances = vec![distance(log_ratio, p_value), distance(0.0, 1.0)];
            let tests = test_by(suspects, distances, 0.1);
            assert_eq!(tests[0].outcome, expected, "{log_ratio} {p_value}");
            assert_eq!(tests[0].p_adjusted, 2.0 * p_value);
        }
        for (log_ratio, expected) in [(slow, RowOutcome::Suspect), (fast, RowOutcome::Alike)] {
            let mut distances = vec![distance(log_ratio, 0.025)];
            for _ in 0..2 {
                distances.push(distance(0.0, 1.0));
            }
            assert_eq!(test_by(&own_fleet, distances, 0.1)[0].outcome, expected);
        }
    }

    #[test]
    fn imprecise_row_is_neither_alike_nor_hidden_when_it_differs() {
        let mut imprecise = distance(0.0, 1.0);
        imprecise.distance.is_imprecise = true;
        let outcome = test_distances(vec![imprecise], 0.1)[0].outcome;
        assert_eq!(outcome, RowOutcome::Imprecise);
        let mut differing = distance(-0.5, 0.01);
        differing.distance.is_imprecise = true;
        let outcome = test_distances(vec![differing], 0.1)[0].outcome;
        assert_eq!(outcome, RowOutcome::Differs);
    }
}
