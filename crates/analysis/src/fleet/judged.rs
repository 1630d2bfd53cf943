//! Judges the rows of a fleet: by each other, by the scales of a saved fleet, or by a second look
//! at the suspects of that one.

use super::groups::Groups;
use super::row::Row;
use super::spread::{
    Distance, JudgedGroup, ROWS_MIN, Sample, judge_among, judge_by_scale, judge_group,
    judge_suspects,
};
use super::verdicts::{RowDistance, RowOutcome, RowTest, test_distances, test_groups};
use diskproof_model::fleet::{
    FleetBasis, FleetOverall, FleetRecord, FleetRow, FleetScale, RowState,
};
use std::collections::{BTreeMap, BTreeSet};

/// The verdicts on the rows of a fleet.
pub(super) struct JudgedRows {
    pub basis: FleetBasis,
    /// One for each kind of disk.
    pub groups: Vec<JudgedGroup>,
    pub tests: Vec<RowTest>,
    /// Rows that a saved fleet calls alike and that are still like each other, with which its
    /// suspects were compared. They have no test of their own.
    pub controls: BTreeSet<usize>,
    /// Suspects of a saved fleet, each with the metrics that make it one.
    pub suspects: BTreeMap<usize, BTreeSet<usize>>,
}

/// Judges the rows of a fleet. With a saved fleet, its suspects get a second look where they were
/// measured again with enough others; else its scales judge all rows. Without one, the rows judge
/// each other. `margin` is the share by which alike rows may differ.
pub(super) fn judged_rows(
    groups: &Groups,
    reference: Option<&FleetRecord>,
    margin: f64,
) -> JudgedRows {
    let Some(reference) = reference else {
        return judge_by_each_other(groups, margin);
    };
    match second_look(groups, reference, margin) {
        Some(judged) => judged,
        None => judge_by_reference(groups, reference, margin),
    }
}

/// Judges each row by the others of its group.
fn judge_by_each_other(groups: &Groups, margin: f64) -> JudgedRows {
    let mut judged = Vec::new();
    for kind in 0..groups.kinds.len() {
        judged.push(judge_group(
            &groups.samples_by_metric(kind),
            groups.deviation_between_runs(kind),
        ));
    }
    JudgedRows {
        basis: FleetBasis::EachOther,
        tests: test_groups(&judged, margin),
        groups: judged,
        controls: BTreeSet::new(),
        suspects: BTreeMap::new(),
    }
}

/// Judges each row by the scales of a saved fleet. A suspect of it of which nothing was judged
/// stays one.
fn judge_by_reference(groups: &Groups, reference: &FleetRecord, margin: f64) -> JudgedRows {
    let distances = distances_by_reference(groups, reference, &BTreeSet::new());
    JudgedRows {
        basis: FleetBasis::Reference,
        groups: vec![JudgedGroup::default(); groups.kinds.len()],
        tests: test_distances(distances, margin),
        controls: BTreeSet::new(),
        suspects: SavedRows::of(groups, reference).suspects,
    }
}

/// The distances of each row, but the `excluded` ones, by the scales of a saved fleet.
fn distances_by_reference(
    groups: &Groups,
    reference: &FleetRecord,
    excluded: &BTreeSet<usize>,
) -> Vec<RowDistance> {
    let mut distances = Vec::new();
    for (group, saved) in reference.groups.iter().enumerate() {
        for (index, row) in groups.rows_of(group) {
            if excluded.contains(&index) {
                continue;
            }
            let mut distances_by_metric = BTreeMap::new();
            for (metric, saved_metric) in saved.metrics.iter().enumerate() {
                if let (Some(scale), Some(sample)) =
                    (&saved_metric.scale, row.sample(index, metric))
                {
                    distances_by_metric.insert(metric, judge_by_scale(scale, sample));
                }
            }
            for overall in &saved.overall {
                if let Some(distance) = overall_by(overall, index, &distances_by_metric) {
                    distances.push(RowDistance {
                        group,
                        metric: None,
                        distance,
                    });
                }
            }
            for (metric, distance) in distances_by_metric {
                distances.push(RowDistance {
                    group,
                    metric: Some(metric),
                    distance,
                });
            }
        }
    }
    distances
}

/// The distance of a row's mean over these metrics; `None` where the row lacks one of them.
fn overall_by(
    overall: &FleetOverall,
    row: usize,
    distances: &BTreeMap<usize, Distance>,
) -> Option<Distance> {
    let (mut t_sum, mut log_ratio_sum) = (0.0, 0.0);
    for metric in &overall.metrics {
        let distance = distances.get(metric)?;
        t_sum += distance.t;
        log_ratio_sum += distance.log_ratio;
    }
    let count = overall.metrics.len() as f64;
    let sample = Sample {
        row,
        log_speed: t_sum / count,
        error: 0.0,
    };
    Some(Distance {
        log_ratio: log_ratio_sum / count,
        ..judge_by_scale(&overall.scale, sample)
    })
}

/// Judges the suspects of a saved fleet by its like rows that were measured again together with
/// them, and any further row by the scales of the fleet; `None` where no suspect was measured
/// again, or where too few others were. If too few others are left only because some of them became
/// odd, these are named, and the suspects stay suspects.
fn second_look(groups: &Groups, reference: &FleetRecord, margin: f64) -> Option<JudgedRows> {
    let SavedRows {
        suspects,
        once_alike,
    } = SavedRows::of(groups, reference);
    let suspect_rows: BTreeSet<usize> = suspects.keys().copied().collect();
    let columns = saved_columns(groups, reference);
    let Controls {
        alike,
        tests_of_odd,
    } = find_controls(&columns, once_alike.clone(), margin);
    let mut distances = Vec::new();
    for column in &columns {
        let controls = column.samples(&alike);
        if controls.len() < ROWS_MIN {
            continue;
        }
        for distance in judge_suspects(&column.scale, &column.samples(&suspect_rows), &controls) {
            distances.push(column.row_distance(distance));
        }
    }
    if suspects.is_empty() || distances.is_empty() && tests_of_odd.is_empty() {
        return None;
    }
    let compared: BTreeSet<usize> = suspect_rows.union(&once_alike).copied().collect();
    distances.extend(distances_by_reference(groups, reference, &compared));
    let mut tests = test_distances(distances, margin);
    tests.extend(tests_of_odd);
    Some(JudgedRows {
        basis: FleetBasis::SecondLook,
        groups: vec![JudgedGroup::default(); groups.kinds.len()],
        tests,
        controls: alike,
        suspects,
    })
}

/// The rows that a saved fleet has, too.
struct SavedRows {
    /// Its suspects, each with the metrics that make it one.
    suspects: BTreeMap<usize, BTreeSet<usize>>,
    /// The rows that it calls alike.
    once_alike: BTreeSet<usize>,
}

impl SavedRows {
    fn of(groups: &Groups, reference: &FleetRecord) -> Self {
        let mut rows = Self {
            suspects: BTreeMap::new(),
            once_alike: BTreeSet::new(),
        };
        for (index, row) in groups.rows.iter().enumerate() {
            let Some(saved) = saved_row(row, reference) else {
                continue;
            };
            match saved.state {
                RowState::Suspect => {
                    rows.suspects.insert(index, suspect_metrics(saved));
                }
                RowState::Alike => {
                    rows.once_alike.insert(index);
                }
                RowState::Slower | RowState::Faster | RowState::Errors | RowState::NotJudged => {}
            }
        }
        rows
    }
}

/// A metric of a saved fleet that has a scale, with the new samples of all its rows.
struct SavedColumn {
    group: usize,
    metric: usize,
    scale: FleetScale,
    samples: Vec<Sample>,
}

impl SavedColumn {
    /// The samples of these rows.
    fn samples(&self, rows: &BTreeSet<usize>) -> Vec<Sample> {
        self.samples
            .iter()
            .filter(|sample| rows.contains(&sample.row))
            .copied()
            .collect()
    }

    fn row_distance(&self, distance: Distance) -> RowDistance {
        RowDistance {
            group: self.group,
            metric: Some(self.metric),
            distance,
        }
    }
}

/// The metrics of a saved fleet by which rows can be judged.
fn saved_columns(groups: &Groups, reference: &FleetRecord) -> Vec<SavedColumn> {
    let mut columns = Vec::new();
    for (group, saved) in reference.groups.iter().enumerate() {
        for (metric, saved_metric) in saved.metrics.iter().enumerate() {
            let Some(scale) = saved_metric.scale else {
                continue;
            };
            let mut samples = Vec::new();
            for (index, row) in groups.rows_of(group) {
                samples.extend(row.sample(index, metric));
            }
            columns.push(SavedColumn {
                group,
                metric,
                scale,
                samples,
            });
        }
    }
    columns
}

/// The rows that suspects are compared with.
struct Controls {
    /// The rows that are still like each other.
    alike: BTreeSet<usize>,
    /// The tests of rows that a saved fleet called alike, and that differ from the others since.
    tests_of_odd: Vec<RowTest>,
}

/// Drops the rows that differ from the other once-like rows by now. They are dropped one at a time,
/// the one that differs most first, because it makes healthy rows look odd beside it.
fn find_controls(columns: &[SavedColumn], once_alike: BTreeSet<usize>, margin: f64) -> Controls {
    let mut controls = Controls {
        alike: once_alike,
        tests_of_odd: Vec::new(),
    };
    loop {
        let mut distances = Vec::new();
        for column in columns {
            for distance in judge_among(&column.scale, &column.samples(&controls.alike)) {
                distances.push(column.row_distance(distance));
            }
        }
        let tests = test_distances(distances, margin);
        let oddest = tests
            .iter()
            .filter(|test| test.outcome == RowOutcome::Differs)
            .max_by(|one, other| one.distance.t.abs().total_cmp(&other.distance.t.abs()));
        let Some(oddest) = oddest else {
            return controls;
        };
        let row = oddest.distance.row;
        controls.alike.remove(&row);
        let tests_of_row = tests.iter().filter(|test| test.distance.row == row);
        controls.tests_of_odd.extend(tests_of_row);
    }
}

/// The metrics that make a row of a saved fleet a suspect: those in which it is one, or else all,
/// where only their mean is odd.
fn suspect_metrics(saved: &FleetRow) -> BTreeSet<usize> {
    let mut suspect = BTreeSet::new();
    let mut judged = BTreeSet::new();
    for value in &saved.values {
        if value.state == RowState::Suspect {
            suspect.insert(value.metric);
        }
        if value.distance.is_some() {
            judged.insert(value.metric);
        }
    }
    if suspect.is_empty() { judged } else { suspect }
}

/// A row as it is in a saved fleet. The rank counts only where several rows have the same
/// names: the next launch gives other ranks.
fn saved_row<'a>(row: &Row, reference: &'a FleetRecord) -> Option<&'a FleetRow> {
    let machine = row.machine();
    let mut matches = Vec::new();
    for saved in &reference.rows {
        let is_other_machine =
            saved.machine.is_some() && machine.is_some() && saved.machine != machine;
        let is_same = !is_other_machine
            && saved.host == row.host
            && saved.target == row.target
            && saved.serials == row.serials
            && saved.group == Some(row.kind);
        if is_same {
            matches.push(saved);
        }
    }
    if matches.len() > 1 {
        matches.retain(|saved| saved.rank == row.rank);
    }
    match matches.as_slice() {
        [saved] => Some(saved),
        [] | [_, _, ..] => None,
    }
}
