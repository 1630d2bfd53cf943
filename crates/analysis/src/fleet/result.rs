//! The document of a fleet: its rows, its groups, and the verdicts on them.

use super::groups::{Groups, Kind, Metric, Row};
use super::names::names;
use super::question::FleetQuestion;
use super::reasons::Usual;
use super::spread::{
    Distance, JudgedGroup, ROWS_MIN, Sample, judge, judge_again, judge_among, judge_by, median,
    scale_without_odd, sorted,
};
use super::summary;
use super::tested;
use super::verdicts::{Measure, Test, Weight, tests, tests_of_measures};
use crate::compare::percentile_points;
use diskproof_model::comparison::{Direction, Reason};
use diskproof_model::fleet::{
    FLEET_SCHEMA, FleetBasis, FleetDistance, FleetGroup, FleetLatencies, FleetMetric, FleetOutcome,
    FleetOverall, FleetRecord, FleetRow, FleetRun, FleetScale, FleetValue, RowState, RowUnit,
    TestedDisk,
};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::op::OpKind;
use diskproof_model::target::TargetKind;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The verdicts on the rows of a fleet.
struct JudgedRows {
    basis: FleetBasis,
    /// One for each kind of disk.
    groups: Vec<JudgedGroup>,
    tests: Vec<Test>,
    /// Rows that a saved fleet calls alike and that are still like each other, with which its
    /// suspects were compared. They have no test of their own.
    controls: BTreeSet<usize>,
    /// Suspects of a saved fleet.
    suspects: BTreeSet<usize>,
}

pub(super) fn fleet_record(
    groups: Groups,
    reference: Option<&FleetRecord>,
    rows_are: RowUnit,
    tested: Vec<TestedDisk>,
    question: FleetQuestion,
) -> FleetRecord {
    let judged = match reference {
        None => by_each_other(&groups, question.margin),
        Some(reference) => match second_look(&groups, reference, question.margin) {
            Some(judged) => judged,
            None => by_reference(&groups, reference, question.margin),
        },
    };
    let mut rows = fleet_rows(&groups, &judged);
    let usual = usual_of_kinds(&groups, &rows, reference);
    for (row, draft) in rows.iter_mut().zip(&groups.rows) {
        if !matches!(row.state, RowState::Alike | RowState::NotJudged) {
            row.reasons = usual[draft.kind].reasons(draft);
            for value in &mut row.values {
                value.latencies = merged_latencies(&[draft], value.metric);
            }
        }
    }
    let mut fleet = FleetRecord {
        schema: FLEET_SCHEMA.to_owned(),
        tool: question.tool,
        margin: question.margin,
        basis: judged.basis,
        outcome: FleetOutcome::Alike,
        summary: String::new(),
        rows_are,
        groups: group_records(&groups, &judged, &rows, &usual),
        rows,
        tested,
        missing: question.missing,
        refused: question.refused,
        sum: None,
        examples: groups.examples,
    };
    if let Some(reference) = reference {
        keep_scales(&mut fleet, reference);
    }
    drop_unused(&mut fleet);
    fleet.rows.sort_by(compare_rows);
    fleet.outcome = fleet_outcome(&fleet);
    fleet.summary = summary::fleet_sentence(&fleet);
    fleet
}

fn by_each_other(groups: &Groups, margin: f64) -> JudgedRows {
    let mut judged = Vec::new();
    for kind in 0..groups.kinds.len() {
        judged.push(judge(
            &groups.samples_by_metric(kind),
            groups.deviation_between_runs(kind),
        ));
    }
    JudgedRows {
        basis: FleetBasis::EachOther,
        tests: tests(&judged, margin),
        groups: judged,
        controls: BTreeSet::new(),
        suspects: BTreeSet::new(),
    }
}

/// Judges each row by the scales of a saved fleet.
fn by_reference(groups: &Groups, reference: &FleetRecord, margin: f64) -> JudgedRows {
    let measures = measures_by_reference(groups, reference, &BTreeSet::new());
    JudgedRows {
        basis: FleetBasis::Reference,
        groups: vec![JudgedGroup::default(); groups.kinds.len()],
        tests: tests_of_measures(measures, margin),
        controls: BTreeSet::new(),
        suspects: BTreeSet::new(),
    }
}

/// The distances of each row, but the `excluded` ones, by the scales of a saved fleet.
fn measures_by_reference(
    groups: &Groups,
    reference: &FleetRecord,
    excluded: &BTreeSet<usize>,
) -> Vec<Measure> {
    let mut measures = Vec::new();
    for (group, saved) in reference.groups.iter().enumerate() {
        for (row, own_row) in groups.rows_of(group) {
            if excluded.contains(&row) {
                continue;
            }
            let mut distances = BTreeMap::new();
            for (metric, saved_metric) in saved.metrics.iter().enumerate() {
                if let (Some(scale), Some(sample)) =
                    (&saved_metric.scale, own_row.sample(row, metric))
                {
                    distances.insert(metric, judge_by(scale, sample));
                }
            }
            for overall in &saved.overall {
                if let Some(distance) = overall_by(overall, row, &distances) {
                    measures.push(Measure {
                        group,
                        metric: None,
                        distance,
                    });
                }
            }
            for (metric, distance) in distances {
                measures.push(Measure {
                    group,
                    metric: Some(metric),
                    distance,
                });
            }
        }
    }
    measures
}

/// The distance of a row's mean over these metrics; `None` where the row lacks one of them.
fn overall_by(
    overall: &FleetOverall,
    row: usize,
    distances: &BTreeMap<usize, Distance>,
) -> Option<Distance> {
    let (mut t, mut log) = (0.0, 0.0);
    for metric in &overall.metrics {
        let distance = distances.get(metric)?;
        t += distance.t;
        log += distance.distance;
    }
    let count = overall.metrics.len() as f64;
    let sample = Sample {
        row,
        value: t / count,
        error: 0.0,
    };
    Some(Distance {
        distance: log / count,
        ..judge_by(&overall.scale, sample)
    })
}

/// Judges the suspects of a saved fleet by its like rows that were measured again together with
/// them, and any further row by the scales of the fleet; `None` where no suspect was measured
/// again, or too few others.
fn second_look(groups: &Groups, reference: &FleetRecord, margin: f64) -> Option<JudgedRows> {
    let mut suspects = BTreeSet::new();
    let mut once_alike = BTreeSet::new();
    for (index, row) in groups.rows.iter().enumerate() {
        match saved_state(row, reference) {
            Some(RowState::Suspect) => suspects.insert(index),
            Some(RowState::Alike) => once_alike.insert(index),
            _ => false,
        };
    }
    let columns = saved_columns(groups, reference);
    let Controls {
        alike,
        tests_of_odd,
    } = find_controls(&columns, once_alike.clone(), margin);
    let mut measures = Vec::new();
    for column in &columns {
        let controls = column.samples(&alike);
        if controls.len() < ROWS_MIN {
            continue;
        }
        for distance in judge_again(&column.scale, &column.samples(&suspects), &controls) {
            measures.push(column.measure(distance));
        }
    }
    if measures.is_empty() {
        return None;
    }
    let compared: BTreeSet<usize> = suspects.union(&once_alike).copied().collect();
    measures.extend(measures_by_reference(groups, reference, &compared));
    let mut tests = tests_of_measures(measures, margin);
    tests.extend(tests_of_odd);
    Some(JudgedRows {
        basis: FleetBasis::SecondLook,
        groups: vec![JudgedGroup::default(); groups.kinds.len()],
        tests,
        controls: alike,
        suspects,
    })
}

/// A metric of a saved fleet that has a scale, with the new samples of all its rows.
struct SavedColumn {
    group: usize,
    metric: usize,
    scale: FleetScale,
    samples: Vec<Sample>,
}

impl SavedColumn {
    fn samples(&self, rows: &BTreeSet<usize>) -> Vec<Sample> {
        self.samples
            .iter()
            .filter(|sample| rows.contains(&sample.row))
            .copied()
            .collect()
    }

    fn measure(&self, distance: Distance) -> Measure {
        Measure {
            group: self.group,
            metric: Some(self.metric),
            distance,
        }
    }
}

fn saved_columns(groups: &Groups, reference: &FleetRecord) -> Vec<SavedColumn> {
    let mut columns = Vec::new();
    for (group, saved) in reference.groups.iter().enumerate() {
        for (metric, saved_metric) in saved.metrics.iter().enumerate() {
            let Some(scale) = saved_metric.scale else {
                continue;
            };
            let mut samples = Vec::new();
            for (row, own_row) in groups.rows_of(group) {
                samples.extend(own_row.sample(row, metric));
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
    tests_of_odd: Vec<Test>,
}

/// Drops the rows that differ from the other once-like rows by now. They are dropped one at a time,
/// the one that differs most first, because it makes healthy rows look odd beside it.
fn find_controls(columns: &[SavedColumn], once_alike: BTreeSet<usize>, margin: f64) -> Controls {
    let mut controls = Controls {
        alike: once_alike,
        tests_of_odd: Vec::new(),
    };
    loop {
        let mut measures = Vec::new();
        for column in columns {
            for distance in judge_among(&column.scale, &column.samples(&controls.alike)) {
                measures.push(column.measure(distance));
            }
        }
        let tests = tests_of_measures(measures, margin);
        let oddest = tests
            .iter()
            .filter(|test| test.weight == Weight::Differs)
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

/// The state of a row in a saved fleet. The rank counts only where several rows have the same
/// names: the next launch gives other ranks.
fn saved_state(row: &Row, reference: &FleetRecord) -> Option<RowState> {
    let mut matches = Vec::new();
    for saved in &reference.rows {
        let is_same = saved.host == row.host
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
        [saved] => Some(saved.state),
        _ => None,
    }
}

fn fleet_rows(groups: &Groups, judged: &JudgedRows) -> Vec<FleetRow> {
    let kinds: Vec<TargetKind> = groups
        .rows
        .iter()
        .map(|row| groups.kinds[row.kind].kind)
        .collect();
    let names = names(&groups.rows, &kinds);
    let mut tests_of_rows = vec![Vec::new(); groups.rows.len()];
    for test in &judged.tests {
        tests_of_rows[test.distance.row].push(test);
    }
    let mut counts = vec![0; groups.kinds.len()];
    for row in &groups.rows {
        counts[row.kind] += 1;
    }
    let mut rows = Vec::new();
    for (index, draft) in groups.rows.iter().enumerate() {
        let tests = &tests_of_rows[index];
        let values = row_values(groups, index, draft, tests);
        let overall = tests.iter().find(|test| test.metric.is_none());
        let mut row = FleetRow {
            name: names[index].clone(),
            host: draft.host.clone(),
            rank: draft.rank,
            target: draft.target.clone(),
            disks: draft.disks.clone(),
            serials: draft.serials.clone(),
            runs: runs_of(draft),
            group: Some(draft.kind),
            state: state_of_tests(tests),
            values,
            overall: overall.map(|test| distance_of(test)),
            reasons: Vec::new(),
            not_judged: None,
        };
        if judged.controls.contains(&index) {
            row.state = RowState::Alike;
        }
        if row.state == RowState::NotJudged {
            row.not_judged = Some(if judged.suspects.contains(&index) {
                few_controls()
            } else {
                reason_not_judged(&row, counts[draft.kind], judged.basis)
            });
        }
        if let Some(failure) = draft.failure() {
            row.state = RowState::Errors;
            row.not_judged = Some(failure);
        }
        rows.push(row);
    }
    rows
}

/// The state of a row by its tests: the weightiest one counts. If all are imprecise, the row is not
/// judged.
fn state_of_tests(tests: &[&Test]) -> RowState {
    let has = |weight: Weight, is_wanted: fn(f64) -> bool| {
        tests
            .iter()
            .any(|test| test.weight == weight && is_wanted(test.distance.distance))
    };
    if tests.iter().all(|test| test.weight == Weight::Imprecise) {
        RowState::NotJudged
    } else if has(Weight::Differs, |distance| distance < 0.0) {
        RowState::Slower
    } else if has(Weight::Differs, |distance| distance > 0.0) {
        RowState::Faster
    } else if has(Weight::Suspect, |_| true) {
        RowState::Suspect
    } else {
        RowState::Alike
    }
}

fn distance_of(test: &Test) -> FleetDistance {
    FleetDistance {
        speed: test.distance.distance.exp(),
        t: test.distance.t,
        p_value: test.distance.p_value,
        p_adjusted: test.p_adjusted,
    }
}

fn row_values(groups: &Groups, index: usize, row: &Row, tests: &[&Test]) -> Vec<FleetValue> {
    let mut values = Vec::new();
    for (metric, metric_of_kind) in groups.kinds[row.kind].metrics.iter().enumerate() {
        let test = tests.iter().find(|test| test.metric == Some(metric));
        let mut of_metric = row
            .runs
            .iter()
            .flat_map(|run| &run.values)
            .filter(|value| value.metric == Some(metric));
        let Some(sample) = row.sample(index, metric) else {
            if let Some(value) = of_metric.next() {
                values.push(FleetValue {
                    metric,
                    value: value.value,
                    error: value.error,
                    state: RowState::NotJudged,
                    distance: None,
                    not_judged: value.fault.clone(),
                    latencies: Vec::new(),
                });
            }
            continue;
        };
        let value = match metric_of_kind.better {
            Direction::Higher => sample.value.exp(),
            Direction::Lower => (-sample.value).exp(),
        };
        values.push(FleetValue {
            metric,
            value,
            error: sample.error,
            state: state_of_tests(&Vec::from_iter(test.copied())),
            distance: test.map(|test| distance_of(test)),
            not_judged: match test {
                Some(test) if test.weight == Weight::Imprecise => Some(imprecise_reason()),
                Some(_) => None,
                None => Some(few_alike_reason(groups, row.kind, metric)),
            },
            latencies: Vec::new(),
        });
    }
    values
}

fn imprecise_reason() -> Reason {
    Reason {
        code: "imprecise".to_owned(),
        why: "its own interval is too wide to tell even half the rate; measure it for longer"
            .to_owned(),
    }
}

/// The reason why a metric of a faultless row is not judged: few rows measured it under the same
/// conditions.
fn few_alike_reason(groups: &Groups, kind: usize, metric: usize) -> Reason {
    let metrics = &groups.kinds[kind].metrics;
    let own = &metrics[metric];
    let others = metrics
        .iter()
        .find(|other| other.metric == own.metric && other.example != own.example);
    if let Some(others) = others
        && let Some(reason) = first_difference(groups, own, others)
    {
        return reason;
    }
    Reason {
        code: "few-alike".to_owned(),
        why: "fewer than three disks of this kind measured it under the same conditions".to_owned(),
    }
}

/// The first difference between the conditions of two metrics; `None` where an example is missing.
fn first_difference(groups: &Groups, own: &Metric, others: &Metric) -> Option<Reason> {
    let record = groups.examples.get(own.example?)?;
    let usual = groups.examples.get(others.example?)?;
    let differences = own
        .part
        .differences(record, own.target, usual, others.target);
    differences.into_iter().next()
}

/// The code of a suspect that still is one.
const FEW_CONTROLS: &str = "few-controls";

/// The reason why a suspect of a saved fleet was not judged again.
fn few_controls() -> Reason {
    Reason {
        code: FEW_CONTROLS.to_owned(),
        why: "still a suspect: fewer than three like disks of its kind were measured with it"
            .to_owned(),
    }
}

/// The reason why nothing of a row was judged.
fn reason_not_judged(row: &FleetRow, like_rows: usize, basis: FleetBasis) -> Reason {
    let first = row.values.iter().find_map(|value| value.not_judged.clone());
    let fault = first.filter(|reason| reason.code != "few-alike");
    match (fault, basis) {
        (Some(reason), _) => reason,
        (None, FleetBasis::Reference | FleetBasis::SecondLook) => Reason {
            code: "not-in-reference".to_owned(),
            why: "the saved fleet has no disk of this kind that measured the same".to_owned(),
        },
        (None, _) if like_rows < ROWS_MIN => Reason {
            code: "alone".to_owned(),
            why: match like_rows {
                1 => "alone of its kind".to_owned(),
                count => format!("only {count} of its kind"),
            },
        },
        (None, _) => Reason {
            code: "few-alike".to_owned(),
            why: "fewer than three disks of its kind measured the same".to_owned(),
        },
    }
}

/// The usual facts and findings of each kind: those of its like rows, or those that a reference
/// states.
fn usual_of_kinds(
    groups: &Groups,
    rows: &[FleetRow],
    reference: Option<&FleetRecord>,
) -> Vec<Usual> {
    let mut usual = Vec::new();
    for kind in 0..groups.kinds.len() {
        let saved = reference.and_then(|reference| reference.groups.get(kind));
        usual.push(match saved {
            Some(saved) => Usual {
                rows: saved.rows,
                facts: saved.facts.clone(),
                findings: saved.findings.clone(),
            },
            None => {
                let like = groups.rows_of(kind).filter(|(row, _)| is_like(&rows[*row]));
                Usual::from_rows(&like.map(|(_, row)| row).collect::<Vec<&Row>>())
            }
        });
    }
    usual
}

/// Returns `true` if a row counts among those that define what is usual.
fn is_like(row: &FleetRow) -> bool {
    matches!(row.state, RowState::Alike | RowState::Suspect)
}

fn group_records(
    groups: &Groups,
    judged: &JudgedRows,
    rows: &[FleetRow],
    usual: &[Usual],
) -> Vec<FleetGroup> {
    let mut records = Vec::new();
    for (index, kind) in groups.kinds.iter().enumerate() {
        let of_kind: Vec<usize> = groups.rows_of(index).map(|(row, _)| row).collect();
        let judged = &judged.groups[index];
        let metrics = metric_records(groups, kind, judged, rows, &of_kind);
        let spreads = metrics.iter().flat_map(|metric| &metric.scale);
        let ordered = sorted(spreads.map(|scale: &FleetScale| scale.spread));
        records.push(FleetGroup {
            kind: kind.kind,
            rotational: kind.rotational,
            model: kind.model.clone(),
            disk_bytes: kind.disk_bytes,
            rows: of_kind.len(),
            spread: if ordered.is_empty() {
                None
            } else {
                Some(median(&ordered))
            },
            metrics,
            overall: judged
                .overall
                .iter()
                .map(|overall| FleetOverall {
                    metrics: overall.metrics.clone(),
                    scale: overall.judged.scale,
                })
                .collect(),
            facts: usual[index].facts.clone(),
            findings: usual[index].findings.clone(),
        });
    }
    records
}

fn metric_records(
    groups: &Groups,
    kind: &Kind,
    judged: &JudgedGroup,
    rows: &[FleetRow],
    of_kind: &[usize],
) -> Vec<FleetMetric> {
    let mut records = Vec::new();
    for (index, metric) in kind.metrics.iter().enumerate() {
        let (mut values, mut speeds) = (Vec::new(), Vec::new());
        let mut like = Vec::new();
        let mut count = 0;
        for row in of_kind {
            let value = rows[*row].values.iter().find(|value| value.metric == index);
            let Some(value) = value else {
                continue;
            };
            count += 1;
            if is_like(&rows[*row]) && value.state != RowState::NotJudged {
                let draft = &groups.rows[*row];
                speeds.extend(draft.sample(*row, index).map(|sample| sample.value));
                values.push(value.value);
                like.push(draft);
            }
        }
        records.push(FleetMetric {
            metric: metric.metric.clone(),
            subject: metric.subject.clone(),
            figure: metric.figure,
            better: metric.better,
            unit: metric.unit.clone(),
            rows: count,
            example: metric.example,
            target: metric.target,
            five_numbers: five_numbers(&sorted(values)),
            scale: match judged.columns.get(index) {
                Some(Some(column)) => Some(scale_without_odd(column.scale, speeds)),
                _ => None,
            },
            latencies: merged_latencies(&like, index),
        });
    }
    records
}

/// Minimum, quartiles and maximum; empty without values.
fn five_numbers(ordered: &[f64]) -> Vec<f64> {
    let Some(last) = ordered.len().checked_sub(1) else {
        return Vec::new();
    };
    [0.0, 0.25, 0.5, 0.75, 1.0]
        .map(|share| interpolated(ordered, last as f64 * share))
        .to_vec()
}

/// The value at a fractional index, between its two neighbours.
fn interpolated(ordered: &[f64], index: f64) -> f64 {
    let low = ordered[index.floor() as usize];
    let high = ordered[index.ceil() as usize];
    low + (high - low) * index.fract()
}

/// The runs of a row, each once. A run that measured several targets of a host appears several
/// times in its row.
fn runs_of(row: &Row) -> Vec<FleetRun> {
    let mut runs: Vec<FleetRun> = Vec::new();
    for run in &row.runs {
        if !runs.contains(&run.run) {
            runs.push(run.run.clone());
        }
    }
    runs
}

/// The latencies of a metric's workload, merged over these rows.
fn merged_latencies(rows: &[&Row], metric: usize) -> Vec<FleetLatencies> {
    let mut merged: BTreeMap<OpKind, LatencyHistogram> = BTreeMap::new();
    for row in rows {
        for (kind, part) in row
            .faultless_values(metric)
            .flat_map(|value| &value.latencies)
        {
            merged.entry(*kind).or_default().add_part(&part.part());
        }
    }
    let mut latencies = Vec::new();
    for (op, histogram) in merged {
        latencies.push(FleetLatencies {
            op,
            count: histogram.count(),
            percentiles: percentile_points(&histogram),
        });
    }
    latencies
}

/// Restores the scales of a saved fleet: a judgement by it is about its rows.
fn keep_scales(fleet: &mut FleetRecord, reference: &FleetRecord) {
    for (group, saved) in fleet.groups.iter_mut().zip(&reference.groups) {
        group.spread = saved.spread;
        group.overall.clone_from(&saved.overall);
        for (metric, saved_metric) in group.metrics.iter_mut().zip(&saved.metrics) {
            metric.scale = saved_metric.scale;
            metric.five_numbers.clone_from(&saved_metric.five_numbers);
            metric.latencies.clone_from(&saved_metric.latencies);
        }
    }
}

/// Drops the examples of metrics without a scale, which judge no other row, and renumbers the rest.
fn drop_unused(fleet: &mut FleetRecord) {
    let mut used = BTreeMap::new();
    for group in &mut fleet.groups {
        for metric in &mut group.metrics {
            if metric.scale.is_none() {
                metric.example = None;
            }
            if let Some(example) = &mut metric.example {
                let next = used.len();
                *example = *used.entry(*example).or_insert(next);
            }
        }
    }
    let mut kept: Vec<_> = std::mem::take(&mut fleet.examples)
        .into_iter()
        .map(Some)
        .collect();
    let mut numbers: Vec<(usize, usize)> = used.into_iter().collect();
    numbers.sort_by_key(|(_, new)| *new);
    for (old, _) in numbers {
        fleet.examples.extend(kept[old].take());
    }
    for group in &mut fleet.groups {
        for metric in &mut group.metrics {
            if metric.example.is_none() {
                metric.target = 0;
            }
        }
    }
}

/// The order of rows: those that differ come first. Among slower rows, and among suspects, the
/// slowest comes first. Else names decide.
fn compare_rows(one: &FleetRow, other: &FleetRow) -> Ordering {
    let by_state = place_of_state(one.state).cmp(&place_of_state(other.state));
    let by_speed = match one.state {
        RowState::Slower | RowState::Suspect => lowest_speed(one).total_cmp(&lowest_speed(other)),
        RowState::Errors | RowState::Faster | RowState::NotJudged | RowState::Alike => {
            Ordering::Equal
        }
    };
    by_state
        .then(by_speed)
        .then_with(|| one.name.cmp(&other.name))
}

fn place_of_state(state: RowState) -> u8 {
    match state {
        RowState::Slower => 0,
        RowState::Errors => 1,
        RowState::Faster => 2,
        RowState::Suspect => 3,
        RowState::NotJudged => 4,
        RowState::Alike => 5,
    }
}

/// The lowest speed of a row in any metric, at most 1.
fn lowest_speed(row: &FleetRow) -> f64 {
    let distances = row.values.iter().flat_map(|value| &value.distance);
    let speeds = distances.chain(&row.overall).map(|distance| distance.speed);
    speeds.fold(1.0, f64::min)
}

/// True for a suspect of a saved fleet that was measured again with too few others.
fn is_still_suspect(row: &FleetRow) -> bool {
    match &row.not_judged {
        Some(reason) => reason.code == FEW_CONTROLS,
        None => false,
    }
}

fn fleet_outcome(fleet: &FleetRecord) -> FleetOutcome {
    let is_wrong = |row: &FleetRow| matches!(row.state, RowState::Slower | RowState::Errors);
    let has_lost = fleet.refused.iter().any(|refused| refused.is_lost);
    if fleet.rows.iter().any(is_wrong) || !fleet.missing.is_empty() || has_lost {
        return FleetOutcome::Differs;
    }
    let is_judged = |row: &FleetRow| row.state != RowState::NotJudged;
    let rows = if !fleet.rows.iter().any(is_judged) || fleet.rows.iter().any(is_still_suspect) {
        FleetOutcome::TooFew
    } else {
        FleetOutcome::Alike
    };
    match tested::outcome_of_tests(&fleet.tested) {
        None => rows,
        Some(FleetOutcome::Alike) if !fleet.rows.is_empty() => rows,
        Some(outcome) => outcome,
    }
}
