//! The figures that represent the parts of one run, and the reasons why those of another run are
//! not comparable with them: the basis for comparing many runs at once.

use super::comparable::MeasuredWorkload;
use super::files::StepOfRun;
use super::reasons::{Compared, Reasons};
use super::rows::leading_row;
use super::side_estimate::relative_error;
use super::sides::{Run, WorkloadKey};
use super::survey::{Part, Surveyed, leading_figures};
use diskproof_model::comparison::{Direction, Figure, Reason};
use diskproof_model::files::FileStep;
use diskproof_model::plan::Workload;
use diskproof_model::record::{Estimate, Record};

/// The name of the run in question, in sentences.
const THIS: &str = "this run";
/// The name of the runs that it is compared with, in sentences.
const OTHERS: &str = "the others";

/// A part of a run, by the name that it has in every run of the same plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartOfRun {
    Workload(String),
    Curve,
    Access,
    Step(FileStep),
}

/// The figure that represents a part of a run.
#[derive(Debug, Clone)]
pub(crate) struct RepresentativeFigure {
    pub part: PartOfRun,
    /// Index of the target.
    pub target: usize,
    pub metric: String,
    pub subject: String,
    pub figure: Figure,
    pub better: Direction,
    pub unit: String,
    pub value: f64,
    /// The standard error as a share of the value; `None` where the record states none.
    pub error: Option<f64>,
}

/// The figures that represent the parts of a run, in their order.
pub(crate) fn representative_figures(record: &Record) -> Vec<RepresentativeFigure> {
    let run = run_without_name(record);
    let mut figures = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        let measured = MeasuredWorkload {
            name: THIS,
            run: &run,
            index,
        };
        let Some(leading) = leading_row(measured) else {
            continue;
        };
        let name = row.data.workload.name.clone();
        let estimate = leading.side.estimate;
        figures.extend(representative_figure(
            FigureIdentity {
                part: PartOfRun::Workload(name.clone()),
                target: row.data.target,
                metric: leading.metric,
                subject: name,
                figure: leading.figure,
            },
            &estimate,
            leading.side.sample.error_within(),
        ));
    }
    for leading in leading_figures(&run) {
        // A record with leading figures of a survey has a surface.
        let target = record.surface().map_or(0, |surface| surface.data.target);
        let part = match leading.part {
            Part::Access => PartOfRun::Access,
            Part::Curve | Part::Burst => PartOfRun::Curve,
        };
        let name = FigureIdentity {
            part,
            target,
            metric: leading.metric,
            subject: leading.part.subject().to_owned(),
            figure: leading.figure,
        };
        let error = relative_error(&leading.estimate);
        figures.extend(representative_figure(name, &leading.estimate, error));
    }
    for row in record.files().iter().flat_map(|files| &files.steps) {
        let subject = row.data.step.name();
        let name = FigureIdentity {
            part: PartOfRun::Step(row.data.step),
            // Steps of files have one directory.
            target: 0,
            metric: format!("{subject}.{}", Figure::Iops.as_str()),
            subject,
            figure: Figure::Iops,
        };
        let estimate = &row.figures.iops;
        figures.extend(representative_figure(
            name,
            estimate,
            relative_error(estimate),
        ));
    }
    figures
}

/// What a figure is of: everything but its value.
struct FigureIdentity {
    part: PartOfRun,
    target: usize,
    metric: String,
    subject: String,
    figure: Figure,
}

/// The figure with this name; `None` where its value is not positive and finite.
fn representative_figure(
    name: FigureIdentity,
    estimate: &Estimate,
    error: Option<f64>,
) -> Option<RepresentativeFigure> {
    if !(estimate.value > 0.0 && estimate.value.is_finite()) {
        return None;
    }
    Some(RepresentativeFigure {
        part: name.part,
        target: name.target,
        metric: name.metric,
        subject: name.subject,
        figure: name.figure,
        better: Direction::of_unit(&estimate.unit),
        unit: estimate.unit.clone(),
        value: estimate.value,
        error,
    })
}

impl PartOfRun {
    /// The differences between the plans or conditions of this part in two runs. `other` is a
    /// typical run, which sentences call "the others".
    pub(crate) fn differences(
        &self,
        record: &Record,
        target: usize,
        other: &Record,
        other_target: usize,
    ) -> Vec<Reason> {
        let run = run_without_name(record);
        let typical = run_without_name(other);
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                let key = WorkloadKey { target, name };
                let typical_key = WorkloadKey {
                    target: other_target,
                    name,
                };
                add_differences_of(
                    MeasuredWorkload::find(OTHERS, &typical, typical_key),
                    MeasuredWorkload::find(THIS, &run, key),
                    &mut reasons,
                );
            }
            Self::Curve => add_survey_differences(&typical, &run, Part::Curve, &mut reasons),
            Self::Access => add_survey_differences(&typical, &run, Part::Access, &mut reasons),
            Self::Step(step) => {
                add_differences_of(
                    StepOfRun::find(OTHERS, &typical, *step),
                    StepOfRun::find(THIS, &run, *step),
                    &mut reasons,
                );
            }
        }
        reasons.0
    }

    /// The reasons why the figures of this part cannot be judged.
    pub(crate) fn faults(&self, record: &Record, target: usize) -> Vec<Reason> {
        let run = run_without_name(record);
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                add_faults(
                    MeasuredWorkload::find(THIS, &run, WorkloadKey { target, name }),
                    &mut reasons,
                );
            }
            Self::Curve => add_faults(Surveyed::find(THIS, &run, Part::Curve), &mut reasons),
            Self::Access => add_faults(Surveyed::find(THIS, &run, Part::Access), &mut reasons),
            Self::Step(step) => add_faults(StepOfRun::find(THIS, &run, *step), &mut reasons),
        }
        reasons.0
    }

    /// Returns `true` if the disk caused this difference, because both plans request the same: it
    /// was too slow for its span, or did not take the depth or the engine.
    pub(crate) fn is_symptom(&self, difference: &Reason, record: &Record, other: &Record) -> bool {
        let Self::Workload(name) = self else {
            return false;
        };
        let (Some(planned), Some(typical)) = (
            planned_workload(record, name),
            planned_workload(other, name),
        ) else {
            return false;
        };
        let is_requested_alike = match difference.code.as_str() {
            "span-differs" => planned.span == typical.span,
            "depth-differs" => planned.depth == typical.depth,
            "engine-differs" => planned.engine == typical.engine,
            _ => false,
        };
        is_requested_alike && record.plan.scratch == other.plan.scratch
    }
}

fn run_without_name(record: &Record) -> Run<'_> {
    Run {
        name: String::new(),
        record,
    }
}

fn planned_workload<'r>(record: &'r Record, name: &str) -> Option<&'r Workload> {
    let mut workloads = record.plan.workloads().iter();
    workloads.find(|workload| workload.name == name)
}

fn add_differences_of<T: Compared>(typical: Option<T>, this: Option<T>, reasons: &mut Reasons) {
    if let (Some(typical), Some(this)) = (typical, this) {
        typical.add_differences(this, reasons);
    }
}

fn add_survey_differences(typical: &Run<'_>, run: &Run<'_>, part: Part, reasons: &mut Reasons) {
    add_differences_of(
        Surveyed::find(OTHERS, typical, part),
        Surveyed::find(THIS, run, part),
        reasons,
    );
}

fn add_faults<T: Compared>(this: Option<T>, reasons: &mut Reasons) {
    if let Some(this) = this {
        this.add_faults(&[], reasons);
    }
}
