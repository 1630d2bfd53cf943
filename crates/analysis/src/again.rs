//! Judges a record from outside again: its figures, findings and verdict follow from what was
//! measured, whatever the record states.

use crate::expect::Expected;
use crate::judge::{JUDGING_VERSION, RunFacts, RunVariation, judge};
use crate::steady::with_warmup;
use diskproof_model::data::RunData;
use diskproof_model::measurement::Hang;
use diskproof_model::record::{Kept, Record, TaskResult};
use diskproof_model::row::{LatencySummary, OpRow};
use serde_json::{Map, Value};

/// Two numbers within this share of each other are equal: two programs may round the last digits of
/// a logarithm differently.
const RELATIVE_ERROR: f64 = 1e-9;

/// A rate without data must fit the counts of its row. It may differ from them by this share,
/// because it covers whole cells of a series, and operations begin or end between two cells.
const RATE_ERROR: f64 = 0.1;
/// With fewer operations any rate fits their count: a single one at the edge of a cell is too large
/// a share.
const CERTAIN_COUNT_MIN: u64 = 100;

/// The relation of a stored record to what follows from its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejudged {
    /// It states what follows from its data.
    Same,
    /// It states something else, first at this JSON pointer. The derived record is returned.
    Differs(String),
    /// It was judged by the rules of this version, and now by today's.
    Anew(u32),
    /// It keeps no data, so that its figures cannot be checked.
    NoData,
}

impl Rejudged {
    /// Returns `true` if the record is the stored one.
    pub fn is_as_stored(&self) -> bool {
        matches!(self, Self::Same | Self::NoData)
    }
}

/// The record that follows from the data of `stored`, which itself is returned where it has none.
pub fn judged_again(stored: Record) -> (Record, Rejudged) {
    let Some(mut derived) = derived_record(&stored) else {
        return (stored, Rejudged::NoData);
    };
    // A long page says so, also where it lost nothing by that.
    if stored.keeps_what_is_shown() {
        derived.kept = Kept::FiguresOnly;
    }
    if stored.judging != JUDGING_VERSION {
        return (derived, Rejudged::Anew(stored.judging));
    }
    match difference(&stored, &derived) {
        Some(place) => (derived, Rejudged::Differs(place)),
        None => (derived, Rejudged::Same),
    }
}

/// The record that follows from the data of `stored`, without the comparison with what that one
/// states: to compare both takes longer than all the rest.
pub fn judged_quietly(stored: Record) -> Record {
    match derived_record(&stored) {
        Some(derived) => derived,
        None => stored,
    }
}

/// The record that follows from the data of a stored one; `None` where that has none.
fn derived_record(stored: &Record) -> Option<Record> {
    let data = stored_data(stored)?;
    let mut expected: Vec<Expected> = Vec::new();
    for expectation in &stored.expectations {
        // What cannot be parsed is missed in the comparison.
        if expectation.promise.is_none()
            && let Ok(condition) = expectation.expression.parse()
        {
            expected.push(condition);
        }
    }
    let mut derived = judge(RunFacts::from_record(stored), &data, &expected);
    if let Some(part) = stored.campaign() {
        derived.results.push(TaskResult::Compared(part.clone()));
    }
    Some(derived)
}

/// The data that the record was derived from; `None` where it keeps figures only, which its counts
/// and latencies do not contradict.
fn stored_data(record: &Record) -> Option<RunData> {
    if record.lacks_data() && fits_counts(record) {
        return None;
    }
    let mut data = RunData {
        measurements: record
            .measurements
            .iter()
            .map(|row| with_warmup(&row.data))
            .collect(),
        dropped: record.dropped.clone(),
        ..RunData::default()
    };
    for result in &record.results {
        result.inner().restore(&mut data);
    }
    Some(data)
}

/// Returns `true` if the rates and latencies of all rows are those of what was counted. Their
/// intervals follow from more than that.
fn fits_counts(record: &Record) -> bool {
    record.measurements.iter().all(|row| {
        let counted_ns = row.data.wall_ns.saturating_sub(row.figures.settling_ns);
        row.ops()
            .all(|(_, op)| op_fits(op, counted_ns, row.data.hang))
    })
}

/// Returns `true` if the figures of a kind of operation are those of what was counted of it in this
/// time. Earlier versions stated no wait of requests without an answer.
fn op_fits(op: OpRow<'_>, counted_ns: u64, hang: Option<Hang>) -> bool {
    let OpRow { data, figures } = op;
    let rate = data.count as f64 / (counted_ns as f64 / 1e9);
    let is_certain = data.count >= CERTAIN_COUNT_MIN;
    if is_certain && (figures.iops.value / rate - 1.0).abs() > RATE_ERROR {
        return false;
    }
    [
        LatencySummary::from_histogram(&data.latency),
        LatencySummary::with_unanswered(&data.latency, hang),
    ]
    .iter()
    .any(|counted| is_same_summary(&figures.latency, counted))
}

fn is_same_summary(stated: &LatencySummary, counted: &LatencySummary) -> bool {
    let stated = serde_json::to_value(stated).unwrap_or_default();
    let counted = serde_json::to_value(counted).unwrap_or_default();
    first_difference(&stated, &counted, "").is_none()
}

impl RunFacts {
    /// The facts of a record.
    fn from_record(record: &Record) -> Self {
        let known = record
            .measurements
            .iter()
            .map(|row| row.run_to_run)
            .collect();
        let record = record.clone();
        Self {
            tool: record.tool,
            run_id: record.run_id,
            started: record.started,
            partial: record.partial,
            ended_early: record.ended_early,
            stalled: record.stalled,
            failed: record.failed,
            note: record.note,
            host: record.host,
            silences: record.silences,
            first_answers: record.first_answers,
            clock: record.clock,
            plan: record.plan,
            targets: record.targets,
            health: record.health,
            variation: RunVariation::Known(known),
        }
    }
}

/// The first place where both differ, as a JSON pointer.
fn difference(stored: &Record, derived: &Record) -> Option<String> {
    let stored_tree = stored.to_tree().unwrap_or_default();
    let derived_tree = derived.to_tree().unwrap_or_default();
    first_difference(&stored_tree, &derived_tree, "")
}

/// The JSON pointer of the first value in which two trees differ, below `path`; `None` of equal
/// ones.
fn first_difference(a: &Value, b: &Value, path: &str) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => difference_of_objects(a, b, path),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, own) in a.iter().enumerate() {
                let found = first_difference(own, &b[index], &format!("{path}/{index}"));
                if found.is_some() {
                    return found;
                }
            }
            None
        }
        _ if are_equal(a, b) => None,
        _ => Some(path.to_owned()),
    }
}

/// The first difference of two objects. A key that one of both lacks counts as null.
fn difference_of_objects(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    path: &str,
) -> Option<String> {
    for (key, own) in a {
        let other = b.get(key).unwrap_or(&Value::Null);
        let found = first_difference(own, other, &format!("{path}/{key}"));
        if found.is_some() {
            return found;
        }
    }
    for (key, other) in b {
        if a.contains_key(key) {
            continue;
        }
        let found = first_difference(&Value::Null, other, &format!("{path}/{key}"));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns `true` if two values are equal, numbers but for rounding.
fn are_equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(one), Some(two)) => (one - two).abs() <= RELATIVE_ERROR * one.abs().max(two.abs()),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::ping::ping_run;

    use crate::fixture::test_rng::TestRng;
    use diskproof_model::files::FileOperation;

    fn read_back(record: &Record) -> Record {
        serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()
    }

    #[test]
    fn a_saved_record_derives_to_what_it_stores() {
        let record = fixture::record();
        let (derived, found) = judged_again(read_back(&record));
        assert_eq!(found, Rejudged::Same);
        assert_eq!(derived, record);
    }

    #[test]
    fn what_was_forged_is_named_and_does_not_hold() {
        let record = fixture::faulty("random-read-d1", |m| {
            let op = m.ops.values_mut().next().unwrap();
            op.errors.insert("EIO".to_owned(), 3);
        });
        assert!(!record.findings.is_empty());
        let mut forged = read_back(&record);
        forged.findings.clear();
        let (derived, found) = judged_again(forged);
        assert_eq!(found, Rejudged::Differs("/findings".to_owned()));
        assert_eq!(derived, record);
        let mut faster = read_back(&record);
        let figures = &mut faster.measurements[2].figures;
        figures.ops.values_mut().next().unwrap().iops.value *= 1.01;
        let (derived, found) = judged_again(faster);
        let place = "/measurements/2/figures/ops/read/iops/value".to_owned();
        assert_eq!((derived, found), (record, Rejudged::Differs(place)));
    }

    #[test]
    fn a_record_of_other_rules_is_judged_by_these() {
        let mut old = fixture::record();
        (old.judging, old.verdict) = (JUDGING_VERSION + 1, None);
        let (derived, found) = judged_again(old);
        assert_eq!(found, Rejudged::Anew(JUDGING_VERSION + 1));
        assert_eq!(derived, fixture::record());
    }

    #[test]
    fn a_record_keeps_the_method_by_which_it_was_measured() {
        let old = fixture::changed(|run| run.facts.plan.method -= 1);
        assert_eq!(old.method, fixture::record().method - 1);
        assert_eq!(judged_again(old.clone()), (old, Rejudged::Same));
    }

    #[test]
    fn a_record_without_data_stays_as_it_is() {
        let stored = fixture::record().figures_only();
        assert_eq!(judged_again(stored.clone()), (stored, Rejudged::NoData));
    }

    #[test]
    fn data_that_is_there_is_judged_whatever_the_head_says() {
        let record = fixture::record();
        let mut forged = read_back(&record);
        forged.kept = Kept::FiguresOnly;
        let (derived, found) = judged_again(forged.clone());
        assert_eq!(found, Rejudged::Differs("/kept".to_owned()));
        assert_eq!(derived, record);
        forged.findings.clear();
        for op in forged.measurements[0].figures.ops.values_mut() {
            op.iops.value *= 10.0;
        }
        assert_eq!(judged_quietly(forged), record);
        let surveyed = fixture::surveyed::record();
        let mut forged = read_back(&surveyed);
        (forged.kept, forged.verdict) = (Kept::FiguresOnly, None);
        assert_eq!(judged_again(forged).0.verdict, surveyed.verdict);
    }

    #[test]
    fn figures_without_data_are_those_of_the_counts() {
        for factor in [0.8, 10.0] {
            let mut faster = fixture::record().figures_only();
            let figures = &mut faster.measurements[2].figures;
            figures.ops.values_mut().next().unwrap().iops.value *= factor;
            let (derived, found) = judged_again(faster.clone());
            assert!(matches!(found, Rejudged::Differs(_)), "{found:?}");
            assert_ne!(derived.measurements[2], faster.measurements[2]);
        }
        let mut sooner = fixture::record().figures_only();
        let figures = &mut sooner.measurements[2].figures;
        figures.ops.values_mut().next().unwrap().latency.mean *= 0.99;
        assert!(matches!(judged_again(sooner).1, Rejudged::Differs(_)));
    }

    /// Another value in one place of the data.
    fn damage(value: &mut Value, rng: &mut TestRng) {
        let number =
            |rng: &mut TestRng| [0, 1, 7, 1 << 40, 1 << 60, 1u64 << 62][rng.whole(0, 5) as usize];
        match value {
            Value::Object(map) if !map.is_empty() => {
                let index = rng.whole(0, map.len() as u64 - 1) as usize;
                map.values_mut()
                    .nth(index)
                    .into_iter()
                    .for_each(|value| damage(value, rng));
            }
            Value::Array(list) if !list.is_empty() => {
                let index = rng.whole(0, list.len() as u64 - 1) as usize;
                match rng.whole(0, 3) {
                    0 => drop(list.remove(index)),
                    1 => list.push(list[index].clone()),
                    _ => damage(&mut list[index], rng),
                }
            }
            Value::Number(_) => *value = number(rng).into(),
            _ => {}
        }
    }

    #[test]
    fn damaged_data_is_refused_or_judged() {
        let mut rng = TestRng(7);
        let steps = vec![file_step(FileOperation::Create, &[5, 9])];
        let records = [
            fixture::record(),
            fixture::surveyed::record(),
            files_record("f", files_plan(), steps),
            fixture::judge(ping_run(&[(0, 9), (7, 8), (5, 6)])),
        ];
        let rounds = std::env::var("DAMAGES").map_or(100, |n| n.parse().unwrap());
        let mut judged = 0;
        for _ in 0..rounds {
            for record in &records {
                let mut value = serde_json::to_value(record).unwrap();
                let parts = [
                    "results",
                    "measurements",
                    "plan",
                    "targets",
                    "measurements",
                    "measurements",
                ];
                for _ in 0..rng.whole(1, 4) {
                    let part = parts[rng.whole(0, 5) as usize];
                    damage(&mut value[part], &mut rng);
                }
                let Ok(read) = Record::from_json(&value.to_string()) else {
                    continue;
                };
                judged += usize::from(judged_again(read).1 != Rejudged::NoData);
            }
        }
        assert!(judged > rounds, "{judged}");
    }
}
