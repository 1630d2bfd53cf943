//! Makes the document of a fleet: its rows with their verdicts, its groups, its outcome, and the
//! order of the page.

use super::groups::{Groups, Kind};
use super::judged::{JudgedRows, judged_rows};
use super::names::row_names;
use super::not_judged::{
    few_alike_reason, imprecise_reason, incomplete_reason, is_incomplete, is_still_suspect,
    only_scanned_reason, partly_imprecise_reason, reason_not_judged, still_suspect_reason,
};
use super::question::FleetQuestion;
use super::reasons::Usual;
use super::row::Row;
use super::spread::{JudgedGroup, median, scale_of_like_rows, sorted};
use super::summary;
use super::tested;
use super::verdicts::{RowOutcome, RowTest};
use crate::compare::percentile_points;
use diskproof_model::comparison::{Direction, Reason};
use diskproof_model::fleet::{
    FLEET_SCHEMA, FleetDistance, FleetGroup, FleetLatencies, FleetMetric, FleetOutcome,
    FleetOverall, FleetRecord, FleetRow, FleetRun, FleetScale, FleetValue, RowState, RowUnit,
    TestedDisk, UnmetThreshold,
};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::op::OpKind;
use diskproof_model::target::TargetKind;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The answers on a fleet's hosts that are not about rows.
#[derive(Debug, Default)]
pub(super) struct OtherAnswers {
    pub tested: Vec<TestedDisk>,
    pub unmet: Vec<UnmetThreshold>,
}

/// The document of these groups. With a saved fleet as `reference`, its rows and scales are what
/// the new ones are judged by.
pub(super) fn fleet_record(
    groups: Groups,
    reference: Option<&FleetRecord>,
    rows_are: RowUnit,
    others: OtherAnswers,
    question: FleetQuestion,
) -> FleetRecord {
    let judged = judged_rows(&groups, reference, question.margin);
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
        tested: others.tested,
        missing: question.missing,
        surplus: question.surplus.count,
        unexpected: question.surplus.names,
        unmet: others.unmet,
        refused: question.refused,
        sum: None,
        examples: groups.examples,
    };
    if let Some(reference) = reference {
        keep_scales(&mut fleet, reference);
    }
    drop_unused_examples(&mut fleet);
    fleet.rows.sort_by(compare_rows);
    fleet.outcome = fleet_outcome(&fleet);
    fleet.summary = summary::fleet_sentence(&fleet);
    fleet
}

/// The rows of the document, in the order of the groups' rows.
fn fleet_rows(groups: &Groups, judged: &JudgedRows) -> Vec<FleetRow> {
    let kinds: Vec<TargetKind> = groups
        .rows
        .iter()
        .map(|row| groups.kinds[row.kind].kind)
        .collect();
    let names = row_names(&groups.rows, &kinds);
    let mut tests_of_rows = vec![Vec::new(); groups.rows.len()];
    for test in &judged.tests {
        tests_of_rows[test.distance.row].push(test);
    }
    let mut rows_by_kind = vec![0; groups.kinds.len()];
    for row in &groups.rows {
        rows_by_kind[row.kind] += 1;
    }
    let mut rows = Vec::new();
    for (index, draft) in groups.rows.iter().enumerate() {
        let tests = &tests_of_rows[index];
        let is_control = judged.controls.contains(&index);
        let overall = tests.iter().find(|test| test.metric.is_none());
        let mut row = FleetRow {
            name: names[index].clone(),
            host: draft.host.clone(),
            rank: draft.rank,
            target: draft.target.clone(),
            disks: draft.disks.clone(),
            serials: draft.serials.clone(),
            machine: draft.machine(),
            identity: draft.identity.clone(),
            runs: runs_of(draft),
            group: Some(draft.kind),
            state: if is_control {
                RowState::Alike
            } else {
                state_of_tests(tests)
            },
            values: row_values(groups, index, is_control, tests),
            overall: overall.map(|test| distance_of(test)),
            reasons: Vec::new(),
            findings: draft.troubles(),
            not_judged: None,
        };
        if let Some(metrics) = judged.suspects.get(&index)
            && (tests.is_empty() || has_unanswered(metrics, tests))
            && matches!(row.state, RowState::Alike | RowState::NotJudged)
        {
            row.state = RowState::NotJudged;
            row.not_judged = Some(still_suspect_reason(&row, metrics));
        } else if row.state == RowState::NotJudged {
            let rows_of_kind = rows_by_kind[draft.kind];
            row.not_judged = Some(if draft.has_figures() {
                reason_not_judged(&row, rows_of_kind, judged.basis)
            } else {
                only_scanned_reason(draft)
            });
        }
        mark_incomplete(&mut row, groups, draft, tests);
        if let Some(failure) = draft.failure() {
            row.state = RowState::Errors;
            row.not_judged = Some(failure);
        }
        rows.push(row);
    }
    rows
}

/// Marks a row as incomplete that lacks what most rows of its kind measured. A slower row stays
/// slower whatever it lacks, and a suspect stays one: its figures are to be measured again.
fn mark_incomplete(row: &mut FleetRow, groups: &Groups, draft: &Row, tests: &[&RowTest]) {
    match row.state {
        RowState::Alike | RowState::Faster | RowState::Suspect => {}
        RowState::Slower | RowState::Errors | RowState::NotJudged => return,
    }
    let reason = incomplete_reason(groups, draft).or_else(|| imprecise_where_others_are_not(tests));
    if reason.is_none() {
        return;
    }
    if row.state != RowState::Suspect {
        row.state = RowState::NotJudged;
    }
    row.not_judged = reason;
}

/// The reason against a row with imprecise figures that are precise on the usual rows of its kind;
/// `None` without such figures.
fn imprecise_where_others_are_not(tests: &[&RowTest]) -> Option<Reason> {
    let figures = tests
        .iter()
        .filter(|test| test.metric.is_some() && test.outcome == RowOutcome::Imprecise)
        .count();
    if figures > 0 {
        Some(partly_imprecise_reason(figures))
    } else {
        None
    }
}

/// Returns `true` if one of these metrics has no test that could decide.
fn has_unanswered(metrics: &BTreeSet<usize>, tests: &[&RowTest]) -> bool {
    metrics.iter().any(|metric| {
        !tests
            .iter()
            .any(|test| test.metric == Some(*metric) && test.outcome != RowOutcome::Imprecise)
    })
}

/// The state of a row by its tests: the gravest outcome counts. If all are imprecise, the row is
/// not judged.
fn state_of_tests(tests: &[&RowTest]) -> RowState {
    if tests
        .iter()
        .all(|test| test.outcome == RowOutcome::Imprecise)
    {
        return RowState::NotJudged;
    }
    let mut state = RowState::Alike;
    for test in tests {
        match test.outcome {
            RowOutcome::Differs if test.distance.log_ratio < 0.0 => return RowState::Slower,
            RowOutcome::Differs => state = RowState::Faster,
            RowOutcome::Suspect if state == RowState::Alike => state = RowState::Suspect,
            RowOutcome::Suspect | RowOutcome::Alike | RowOutcome::Imprecise => {}
        }
    }
    state
}

/// The distance as the document has it: the speed is a ratio, not a logarithm.
fn distance_of(test: &RowTest) -> FleetDistance {
    FleetDistance {
        speed: test.distance.log_ratio.exp(),
        t: test.distance.t,
        p_value: test.distance.p_value,
        p_adjusted: test.p_adjusted,
    }
}

/// The figures of a row with their answers. Those of a control, with which others were compared,
/// are alike without a test of their own.
fn row_values(
    groups: &Groups,
    index: usize,
    is_control: bool,
    tests: &[&RowTest],
) -> Vec<FleetValue> {
    let row = &groups.rows[index];
    let mut values = Vec::new();
    for (metric, metric_of_kind) in groups.kinds[row.kind].metrics.iter().enumerate() {
        let test = tests.iter().find(|test| test.metric == Some(metric));
        let Some(sample) = row.sample(index, metric) else {
            let faulty_value = row
                .runs
                .iter()
                .flat_map(|run| &run.values)
                .find(|value| value.metric == Some(metric));
            if let Some(value) = faulty_value {
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
            Direction::Higher => sample.log_speed.exp(),
            Direction::Lower => (-sample.log_speed).exp(),
        };
        values.push(FleetValue {
            metric,
            value,
            error: sample.error,
            state: match test {
                Some(test) => state_of_tests(&[*test]),
                None if is_control => RowState::Alike,
                None => RowState::NotJudged,
            },
            distance: test.map(|test| distance_of(test)),
            not_judged: match test {
                Some(test) if test.outcome == RowOutcome::Imprecise => Some(imprecise_reason()),
                Some(_) => None,
                None if is_control => None,
                None => Some(few_alike_reason(groups, row.kind, metric)),
            },
            latencies: Vec::new(),
        });
    }
    values
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
                let like_rows: Vec<&Row> = groups
                    .rows_of(kind)
                    .filter(|(index, _)| is_like(&rows[*index]))
                    .map(|(_, row)| row)
                    .collect();
                Usual::from_rows(&like_rows)
            }
        });
    }
    usual
}

/// Returns `true` if a row counts among those that define what is usual.
fn is_like(row: &FleetRow) -> bool {
    matches!(row.state, RowState::Alike | RowState::Suspect)
}

/// The groups of the document, one for each kind of disk, in their order: rows point to it.
fn group_records(
    groups: &Groups,
    judged: &JudgedRows,
    rows: &[FleetRow],
    usual: &[Usual],
) -> Vec<FleetGroup> {
    let mut records = Vec::new();
    for (index, kind) in groups.kinds.iter().enumerate() {
        let row_indices: Vec<usize> = groups.rows_of(index).map(|(row, _)| row).collect();
        let judged = &judged.groups[index];
        let metrics = metric_records(groups, kind, judged, rows, &row_indices);
        let spreads = metrics.iter().flat_map(|metric| &metric.scale);
        let ordered = sorted(spreads.map(|scale: &FleetScale| scale.spread));
        records.push(FleetGroup {
            kind: kind.kind,
            rotational: kind.rotational,
            model: kind.model.clone(),
            disk_bytes: kind.disk_bytes,
            rows: row_indices.len(),
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

/// The metrics of a group, in the order of the kind: values point to it. Figures and latencies are
/// those of the like rows.
fn metric_records(
    groups: &Groups,
    kind: &Kind,
    judged: &JudgedGroup,
    rows: &[FleetRow],
    row_indices: &[usize],
) -> Vec<FleetMetric> {
    let mut records = Vec::new();
    for (index, metric) in kind.metrics.iter().enumerate() {
        let (mut values, mut speeds) = (Vec::new(), Vec::new());
        let mut like_rows = Vec::new();
        let mut rows_with_metric = 0;
        for row in row_indices {
            let value = rows[*row].values.iter().find(|value| value.metric == index);
            let Some(value) = value else {
                continue;
            };
            rows_with_metric += 1;
            if is_like(&rows[*row]) && value.state != RowState::NotJudged {
                let draft = &groups.rows[*row];
                speeds.extend(draft.sample(*row, index).map(|sample| sample.log_speed));
                values.push(value.value);
                like_rows.push(draft);
            }
        }
        records.push(FleetMetric {
            metric: metric.metric.clone(),
            subject: metric.subject.clone(),
            figure: metric.figure,
            better: metric.better,
            unit: metric.unit.clone(),
            rows: rows_with_metric,
            example: metric.example,
            target: metric.target,
            five_numbers: five_numbers(&sorted(values)),
            scale: match judged.columns.get(index) {
                Some(Some(column)) => Some(scale_of_like_rows(column.scale, speeds)),
                Some(None) | None => None,
            },
            latencies: merged_latencies(&like_rows, index),
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
fn drop_unused_examples(fleet: &mut FleetRecord) {
    // The new index of each example that stays, by its old one.
    let mut new_indices = BTreeMap::new();
    for group in &mut fleet.groups {
        for metric in &mut group.metrics {
            if metric.scale.is_none() {
                metric.example = None;
            }
            if let Some(example) = &mut metric.example {
                let next = new_indices.len();
                *example = *new_indices.entry(*example).or_insert(next);
            }
        }
    }
    let mut renumbered = BTreeMap::new();
    for (old, example) in std::mem::take(&mut fleet.examples).into_iter().enumerate() {
        if let Some(new) = new_indices.get(&old) {
            renumbered.insert(*new, example);
        }
    }
    fleet.examples.extend(renumbered.into_values());
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

/// The place of a state on the page: what a reader has to act on comes first.
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

/// Returns `true` if another run has to decide a row.
fn is_open(row: &FleetRow) -> bool {
    is_still_suspect(row) || is_incomplete(row)
}

/// The outcome of a fleet, from which the exit code follows. What is surely wrong decides, then
/// what is open, then whether anything was judged.
fn fleet_outcome(fleet: &FleetRecord) -> FleetOutcome {
    let has_lost_input = fleet.refused.iter().any(|refused| refused.is_lost);
    let has_missed_threshold = fleet.unmet.iter().any(|threshold| !threshold.undecided);
    if fleet.rows.iter().any(is_bad)
        || fleet.missing_count() > 0
        || has_lost_input
        || has_missed_threshold
    {
        return FleetOutcome::Differs;
    }
    let has_open = fleet.rows.iter().any(is_open) || !fleet.missing.is_empty();
    let outcome_of_rows = if has_open || !fleet.unmet.is_empty() {
        FleetOutcome::Undecided
    } else if !fleet.rows.iter().any(is_judged) {
        FleetOutcome::TooFew
    } else {
        FleetOutcome::Alike
    };
    match tested::outcome_of_tests(&fleet.tested) {
        None => outcome_of_rows,
        Some(FleetOutcome::Alike)
            if fleet.rows.is_empty() && outcome_of_rows == FleetOutcome::TooFew =>
        {
            FleetOutcome::Alike
        }
        Some(FleetOutcome::Alike) => outcome_of_rows,
        Some(outcome) => outcome,
    }
}

/// Returns `true` if a row needs the attention of a reader.
fn is_bad(row: &FleetRow) -> bool {
    matches!(row.state, RowState::Slower | RowState::Errors)
}

fn is_judged(row: &FleetRow) -> bool {
    row.state != RowState::NotJudged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::spread::Distance;

    fn test(outcome: RowOutcome, log_ratio: f64) -> RowTest {
        RowTest {
            metric: Some(0),
            distance: Distance {
                row: 0,
                log_ratio,
                t: 0.0,
                p_value: 1.0,
                is_imprecise: false,
            },
            p_adjusted: 1.0,
            outcome,
        }
    }

    #[test]
    fn gravest_outcome_is_the_state_of_a_row() {
        let slower = test(RowOutcome::Differs, -0.5);
        let faster = test(RowOutcome::Differs, 0.5);
        let suspect = test(RowOutcome::Suspect, -0.2);
        let alike = test(RowOutcome::Alike, 0.0);
        let imprecise = test(RowOutcome::Imprecise, 0.0);
        assert_eq!(state_of_tests(&[]), RowState::NotJudged);
        assert_eq!(state_of_tests(&[&imprecise]), RowState::NotJudged);
        assert_eq!(state_of_tests(&[&imprecise, &alike]), RowState::Alike);
        assert_eq!(state_of_tests(&[&suspect, &alike]), RowState::Suspect);
        assert_eq!(state_of_tests(&[&suspect, &faster]), RowState::Faster);
        assert_eq!(state_of_tests(&[&faster, &suspect]), RowState::Faster);
        assert_eq!(state_of_tests(&[&faster, &slower]), RowState::Slower);
    }

    /// The quartiles of four values lie at the indices 0.75 and 2.25.
    #[test]
    fn five_numbers_are_interpolated() {
        assert!(five_numbers(&[]).is_empty());
        assert_eq!(five_numbers(&[7.0]), [7.0; 5]);
        assert_eq!(
            five_numbers(&[1.0, 2.0, 3.0, 5.0]),
            [1.0, 1.75, 2.5, 3.5, 5.0]
        );
    }
}
