//! The figures that represent the parts of one run, and the reasons why those of another run are
//! not comparable with them: the basis for comparing many runs at once.

use super::comparable::MeasuredWorkload;
use super::files::StepOfRun;
use super::reasons::{Compared, Reasons};
use super::rows::leading_row;
use super::side_estimate::SideEstimate;
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
pub(crate) struct OwnFigure {
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
pub(crate) fn own_figures(record: &Record) -> Vec<OwnFigure> {
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
        figures.extend(own_figure(
            FigureName {
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
        let target = record.surface().map_or(0, |surface| surface.data.target);
        let part = match leading.part {
            Part::Access => PartOfRun::Access,
            Part::Curve | Part::Burst => PartOfRun::Curve,
        };
        let name = FigureName {
            part,
            target,
            metric: leading.metric,
            subject: leading.part.subject().to_owned(),
            figure: leading.figure,
        };
        let error = relative_error(&leading.estimate);
        figures.extend(own_figure(name, &leading.estimate, error));
    }
    for row in record.files().iter().flat_map(|files| &files.steps) {
        let subject = row.data.step.name();
        let name = FigureName {
            part: PartOfRun::Step(row.data.step),
            target: 0,
            metric: format!("{subject}.{}", Figure::Iops.as_str()),
            subject,
            figure: Figure::Iops,
        };
        let estimate = &row.figures.iops;
        figures.extend(own_figure(name, estimate, relative_error(estimate)));
    }
    figures
}

/// The place and the name of a figure, without its value.
struct FigureName {
    part: PartOfRun,
    target: usize,
    metric: String,
    subject: String,
    figure: Figure,
}

/// The figure with this name; `None` where its value is not positive and finite.
fn own_figure(name: FigureName, estimate: &Estimate, error: Option<f64>) -> Option<OwnFigure> {
    if !(estimate.value > 0.0 && estimate.value.is_finite()) {
        return None;
    }
    Some(OwnFigure {
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

/// The standard error as a share of the value; `None` where the estimate states none.
fn relative_error(estimate: &Estimate) -> Option<f64> {
    SideEstimate::from_estimates(std::slice::from_ref(estimate))?
        .sample
        .error_within()
}

impl PartOfRun {
    /// The differences between the plans or conditions of this part in two runs. `other` is the
    /// usual run, which sentences call "the others".
    pub(crate) fn differences(
        &self,
        record: &Record,
        target: usize,
        other: &Record,
        other_target: usize,
    ) -> Vec<Reason> {
        let run = run_without_name(record);
        let usual = run_without_name(other);
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                let own = MeasuredWorkload::find(THIS, &run, WorkloadKey { target, name });
                let key_of_others = WorkloadKey {
                    target: other_target,
                    name,
                };
                let others = MeasuredWorkload::find(OTHERS, &usual, key_of_others);
                add_differences_of(others, own, &mut reasons);
            }
            Self::Curve => add_survey_differences(&usual, &run, Part::Curve, &mut reasons),
            Self::Access => add_survey_differences(&usual, &run, Part::Access, &mut reasons),
            Self::Step(step) => {
                let own = StepOfRun::find(THIS, &run, *step);
                let others = StepOfRun::find(OTHERS, &usual, *step);
                add_differences_of(others, own, &mut reasons);
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

    /// Returns `true` if both plans request the same in this part. The disk then caused the
    /// differences: a span that was cut when its time was over, a depth or an engine that was not
    /// available.
    pub(crate) fn is_planned_alike(&self, record: &Record, other: &Record) -> bool {
        if record.plan.scratch != other.plan.scratch {
            return false;
        }
        match self {
            Self::Workload(name) => match (planned(record, name), planned(other, name)) {
                (Some(own), Some(others)) => {
                    own.span == others.span
                        && own.depth == others.depth
                        && own.engine == others.engine
                }
                _ => false,
            },
            Self::Curve | Self::Access | Self::Step(_) => false,
        }
    }
}

fn run_without_name(record: &Record) -> Run<'_> {
    Run {
        name: String::new(),
        record,
    }
}

fn planned<'r>(record: &'r Record, name: &str) -> Option<&'r Workload> {
    let mut workloads = record.plan.workloads().iter();
    workloads.find(|workload| workload.name == name)
}

fn add_differences_of<T: Compared>(others: Option<T>, own: Option<T>, reasons: &mut Reasons) {
    if let (Some(others), Some(own)) = (others, own) {
        others.add_differences(own, reasons);
    }
}

fn add_survey_differences(usual: &Run<'_>, run: &Run<'_>, part: Part, reasons: &mut Reasons) {
    let own = Surveyed::find(THIS, run, part);
    let others = Surveyed::find(OTHERS, usual, part);
    add_differences_of(others, own, reasons);
}

fn add_faults<T: Compared>(own: Option<T>, reasons: &mut Reasons) {
    if let Some(own) = own {
        own.add_faults(&[], reasons);
    }
}
