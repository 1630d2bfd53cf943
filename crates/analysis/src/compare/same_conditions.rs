//! Decides whether two runs measured a named part of a record under the same conditions. A trend
//! leaves out runs that did not.

use super::comparable::MeasuredWorkload;
use super::files::StepOfRun;
use super::reasons::is_same_measuring;
use super::sides::{Run, WorkloadKey};
use super::survey::{SurveyPart, Surveyed};
use diskproof_model::figure::{Named, Part};
use diskproof_model::plan::{Decide, Workload};
use diskproof_model::rate::RatePlan;
use diskproof_model::record::Record;

/// True if two runs measured the part that a condition names under the same conditions, so that its
/// figures are comparable. True as well where one of them lacks the part, and of an observed load,
/// which has no conditions.
pub(crate) fn measured_alike(one: &Record, other: &Record, named: &Named<'_>) -> bool {
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
        Part::Load => is_same_promise(one.record, other.record),
        Part::Observed | Part::Other => true,
    }
}

/// True if the workload of this name was the same on each target.
fn is_same_workload(one: &Run<'_>, other: &Run<'_>, name: &str) -> bool {
    for (index, row) in one.record.measurements.iter().enumerate() {
        let key = WorkloadKey::from_row(row);
        if key.name != name {
            continue;
        }
        let measured = MeasuredWorkload {
            name: "",
            run: one,
            index,
        };
        if let Some(repetition) = MeasuredWorkload::find("", other, key)
            && !is_same_measuring(measured, repetition)
        {
            return false;
        }
    }
    true
}

/// True if the search for a rate had the same promise, and the same load but for its rate.
fn is_same_promise(one: &Record, other: &Record) -> bool {
    match (Promise::of_plan(one), Promise::of_plan(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// What a search of the highest rate promises, and of which load.
#[derive(PartialEq)]
struct Promise<'a> {
    percent: f64,
    limit_ns: u64,
    hold_ns: u64,
    loads: Vec<&'a Workload>,
}

impl<'a> Promise<'a> {
    /// The promise of a run; `None` of one that searched no rate.
    fn of_plan(record: &'a Record) -> Option<Self> {
        let workloads = record.plan.workload_task()?;
        let Decide::Rate(RatePlan {
            percent,
            limit_ns,
            // A longer search of one promise has a narrower interval of the same rate.
            time_ns: _,
            hold_ns,
        }) = workloads.decide
        else {
            return None;
        };
        Some(Self {
            percent,
            limit_ns,
            hold_ns,
            loads: workloads.searched().map(|(_, load)| load).collect(),
        })
    }
}

fn is_same_survey(one: &Run<'_>, other: &Run<'_>, part: SurveyPart) -> bool {
    let parts = (
        Surveyed::find("", one, part),
        Surveyed::find("", other, part),
    );
    match parts {
        (Some(one), Some(other)) => is_same_measuring(one, other),
        _ => true,
    }
}

fn is_same_file_step(one: &Run<'_>, other: &Run<'_>, name: &str) -> bool {
    for row in one.record.files().iter().flat_map(|files| &files.steps) {
        let step = row.data.step;
        let steps = (
            StepOfRun::find("", one, step),
            StepOfRun::find("", other, step),
        );
        if let (Some(one), Some(other)) = steps
            && step.name() == name
            && !is_same_measuring(one, other)
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
        assert!(measured_alike(&one, &record_of(files_plan()), &creates));
        assert!(!measured_alike(&one, &record_of(larger), &creates));
    }
}
