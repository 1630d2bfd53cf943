//! Decides whether two runs measured a named part of a record under the same conditions. A trend
//! skips runs that did not.

use super::comparable::MeasuredWorkload;
use super::files::StepOfRun;
use super::promised::SearchedRate;
use super::reasons::is_same_measuring;
use super::sides::{Run, WorkloadKey};
use super::survey::{SurveyPart, Surveyed};
use diskproof_model::figure::{Named, Part};
use diskproof_model::record::Record;

/// The name of the compared runs: no sentence names them.
const UNNAMED: &str = "";

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
        if let Some(repetition) = MeasuredWorkload::find(UNNAMED, other, key)
            && !is_same_measuring(measured, repetition)
        {
            return false;
        }
    }
    true
}

/// Returns `true` if the search of this name had the same promise, and the same load but for its
/// rate.
fn is_same_search(one: &Run<'_>, other: &Run<'_>, subject: &str) -> bool {
    let first = SearchedRate::find(UNNAMED, one, subject);
    let repetition = SearchedRate::find(UNNAMED, other, subject);
    match (first, repetition) {
        (Some(first), Some(repetition)) => is_same_measuring(first, repetition),
        (None, _) | (_, None) => true,
    }
}

/// Returns `true` if this part of a survey was the same.
fn is_same_survey(one: &Run<'_>, other: &Run<'_>, part: SurveyPart) -> bool {
    let first = Surveyed::find(UNNAMED, one, part);
    let repetition = Surveyed::find(UNNAMED, other, part);
    match (first, repetition) {
        (Some(first), Some(repetition)) => is_same_measuring(first, repetition),
        (None, _) | (_, None) => true,
    }
}

/// Returns `true` if the step of this name was the same.
fn is_same_file_step(one: &Run<'_>, other: &Run<'_>, name: &str) -> bool {
    for row in one.record.files().iter().flat_map(|files| &files.steps) {
        let step = row.data.step;
        if step.name() == name
            && let Some(first) = StepOfRun::find(UNNAMED, one, step)
            && let Some(repetition) = StepOfRun::find(UNNAMED, other, step)
            && !is_same_measuring(first, repetition)
        {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::files::{file_step, files_plan, files_record};
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
}
