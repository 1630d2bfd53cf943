//! Decides whether two runs measured a named part of a record under the same conditions. A trend
//! skips runs that did not.

use super::comparable::MeasuredWorkload;
use super::files::StepOfRun;
use super::promised::SearchedRate;
use super::reasons::is_same_measuring;
use super::sides::{Run, UNNAMED, WorkloadKey};
use super::survey::{SurveyOfRun, SurveyPart};
use diskproof_model::figure::{Named, Part};
use diskproof_model::postgres::PostgresLoad;
use diskproof_model::record::Record;

/// Returns `true` if two runs measured the part that a condition names under the same conditions,
/// so that its figures are comparable. A part that one of them lacks has no other conditions, and
/// an observed load has none at all.
pub(crate) fn has_same_conditions(one: &Record, other: &Record, named: &Named<'_>) -> bool {
    let (one, other) = (&Run::without_name(one), &Run::without_name(other));
    match named.part {
        // A condition names steps on files as it names workloads.
        Part::Workload | Part::FileStep => {
            is_same_workload(one, other, named.subject)
                && is_same_file_step(one, other, named.subject)
                && are_same_inserts(one, other, named.subject)
        }
        Part::Curve => is_same_survey(one, other, SurveyPart::Curve),
        Part::Burst => is_same_survey(one, other, SurveyPart::Burst),
        Part::Access(_) => is_same_survey(one, other, SurveyPart::Access),
        Part::Load => is_same_search(one, other, named.subject),
        Part::Observed | Part::Other => true,
    }
}

/// Returns `true` if the workload of this name was the same on each target.
fn is_same_workload(one: &Run<'_>, other: &Run<'_>, name: &str) -> bool {
    for (index, row) in one.record.measurements.iter().enumerate() {
        let key = WorkloadKey::from_row(row);
        if key.name != name {
            continue;
        }
        let measured = MeasuredWorkload {
            name: UNNAMED,
            run: one,
            index,
        };
        if let Some(other_part) = MeasuredWorkload::find(UNNAMED, other, key)
            && !is_same_measuring(measured, other_part)
        {
            return false;
        }
    }
    true
}

/// Returns `true` if the search of this name had the same promise, and the same load but for its
/// rate.
fn is_same_search(one: &Run<'_>, other: &Run<'_>, subject: &str) -> bool {
    let part = SearchedRate::find(UNNAMED, one, subject);
    let other_part = SearchedRate::find(UNNAMED, other, subject);
    match (part, other_part) {
        (Some(part), Some(other_part)) => is_same_measuring(part, other_part),
        (None, _) | (_, None) => true,
    }
}

/// Returns `true` if this part of a survey was the same.
fn is_same_survey(one: &Run<'_>, other: &Run<'_>, survey_part: SurveyPart) -> bool {
    let part = SurveyOfRun::find(UNNAMED, one, survey_part);
    let other_part = SurveyOfRun::find(UNNAMED, other, survey_part);
    match (part, other_part) {
        (Some(part), Some(other_part)) => is_same_measuring(part, other_part),
        (None, _) | (_, None) => true,
    }
}

/// Returns `true` if the step of this name was the same.
fn is_same_file_step(one: &Run<'_>, other: &Run<'_>, name: &str) -> bool {
    for row in one.record.files().iter().flat_map(|files| &files.steps) {
        let step = row.data.step;
        if step.name() == name
            && let Some(part) = StepOfRun::find(UNNAMED, one, step)
            && let Some(other_part) = StepOfRun::find(UNNAMED, other, step)
            && !is_same_measuring(part, other_part)
        {
            return false;
        }
    }
    true
}

/// Returns `true` if the INSERTs of this name were the same, whatever the version of the server.
fn are_same_inserts(one: &Run<'_>, other: &Run<'_>, subject: &str) -> bool {
    match (insert_load(one, subject), insert_load(other, subject)) {
        (Some(load), Some(other_load)) => load == other_load,
        (Some(_), None) | (None, Some(_)) | (None, None) => true,
    }
}

/// The load of INSERTs of this name in a run.
fn insert_load<'a>(run: &Run<'a>, subject: &str) -> Option<&'a PostgresLoad> {
    Some(&run.record.postgres()?.load_named(subject)?.data.load)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::{self, surveyed};
    use diskproof_model::figure::named;
    use diskproof_model::files::{FileOperation, FilesPlan};

    fn record_of(plan: FilesPlan) -> Record {
        let steps = vec![file_step(FileOperation::Create, &[10, 10, 10])];
        files_record("f", plan, steps)
    }

    #[test]
    fn step_on_larger_files_is_measured_otherwise() {
        let larger = FilesPlan {
            file_bytes_min: 65536,
            file_bytes_max: 65536,
            ..files_plan()
        };
        let one = record_of(files_plan());
        let metric = format!("{}.iops", one.files().unwrap().steps[0].data.step.name());
        let creates = named(&metric).unwrap();
        assert!(has_same_conditions(
            &one,
            &record_of(files_plan()),
            &creates
        ));
        assert!(!has_same_conditions(&one, &record_of(larger), &creates));
    }

    fn is_same(one: &Record, other: &Record, metric: &str) -> bool {
        has_same_conditions(one, other, &named(metric).unwrap())
    }

    /// A burst reads one place of any span.
    #[test]
    fn survey_of_another_span_differs_but_for_its_burst() {
        let whole = surveyed::record();
        let mut half = surveyed::record();
        half.surface_mut().unwrap().data.span_bytes /= 2;
        for (metric, expected) in [
            ("curve.average", false),
            ("access.p50", false),
            ("burst.throughput", true),
        ] {
            assert!(is_same(&whole, &whole, metric), "{metric}");
            assert_eq!(is_same(&whole, &half, metric), expected, "{metric}");
        }
    }

    #[test]
    fn part_that_one_run_lacks_has_no_other_conditions() {
        let surveyed = surveyed::record();
        assert!(is_same(&fixture::record(), &surveyed, "curve.average"));
        assert!(is_same(
            &surveyed,
            &fixture::record(),
            "random-read-d32.iops"
        ));
    }

    #[test]
    fn workload_has_to_be_the_same_on_each_target() {
        let on_two_targets = |block_bytes: u32| {
            fixture::changed(|run| {
                let mut second = run.facts.targets[0].clone();
                second.path.push_str("/other");
                run.facts.targets.push(second);
                let mut measurement = run.measurements[3].clone();
                measurement.target = 1;
                measurement.workload.block_bytes = block_bytes;
                run.measurements.push(measurement);
            })
        };
        let metric = "random-read-d32.iops";
        assert!(is_same(
            &on_two_targets(8192),
            &on_two_targets(8192),
            metric
        ));
        assert!(!is_same(
            &on_two_targets(8192),
            &on_two_targets(4096),
            metric
        ));
    }
}
