//! The figures that speak for the parts of one run, and whether another run measured the same:
//! what many runs are compared by at once.

use super::comparable::Measured;
use super::figures::of_estimates;
use super::files::StepOfRun;
use super::reasons::{Compared, Reasons};
use super::rows::leading_of_one;
use super::sides::Run;
use super::sides::WorkloadKey;
use super::survey::{Part, Surveyed, leading_figures};
use diskproof_model::comparison::{Direction, Figure, Reason};
use diskproof_model::files::FileStep;
use diskproof_model::plan::Workload;
use diskproof_model::record::{Estimate, Record};

/// What sentences call the run in question.
const THIS: &str = "this run";
/// What sentences call the runs that it is compared with.
const OTHERS: &str = "the others";

/// A part of a run, by what it is called in every run of the same plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartOfRun {
    Workload(String),
    Curve,
    Access,
    Step(FileStep),
}

/// The figure that speaks for a part of a run.
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
    /// The standard error as a share of the value; 0 where the record states none.
    pub error: f64,
}

/// The figures that speak for the parts of a run, in their order.
pub(crate) fn own_figures(record: &Record) -> Vec<OwnFigure> {
    let run = Run {
        name: String::new(),
        record,
    };
    let mut figures = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        let measured = Measured {
            name: THIS,
            run: &run,
            index,
        };
        let Some(leading) = leading_of_one(measured) else {
            continue;
        };
        let name = row.data.workload.name.clone();
        let place = (PartOfRun::Workload(name.clone()), row.data.target);
        let error = leading.side.sample.variance_within().sqrt();
        let names = (leading.metric, name);
        let estimate = leading.side.estimate;
        figures.extend(own_figure(place, names, leading.figure, &estimate, error));
    }
    for (part, metric, figure, estimate) in leading_figures(&run) {
        let target = record.surface().map_or(0, |surface| surface.data.target);
        let place = match part {
            Part::Access => PartOfRun::Access,
            Part::Curve | Part::Burst => PartOfRun::Curve,
        };
        let names = (metric, part.subject().to_owned());
        let error = relative_error(&estimate);
        figures.extend(own_figure((place, target), names, figure, &estimate, error));
    }
    for row in record.files().iter().flat_map(|files| &files.steps) {
        let subject = row.data.step.name();
        let names = (format!("{subject}.{}", Figure::Iops.as_str()), subject);
        let place = (PartOfRun::Step(row.data.step), 0);
        let estimate = &row.figures.iops;
        let error = relative_error(estimate);
        figures.extend(own_figure(place, names, Figure::Iops, estimate, error));
    }
    figures
}

fn own_figure(
    (part, target): (PartOfRun, usize),
    (metric, subject): (String, String),
    figure: Figure,
    estimate: &Estimate,
    error: f64,
) -> Option<OwnFigure> {
    if !(estimate.value > 0.0 && estimate.value.is_finite()) {
        return None;
    }
    Some(OwnFigure {
        part,
        target,
        metric,
        subject,
        figure,
        better: Direction::of_unit(&estimate.unit),
        unit: estimate.unit.clone(),
        value: estimate.value,
        error,
    })
}

fn relative_error(estimate: &Estimate) -> f64 {
    let sample = of_estimates(std::slice::from_ref(estimate));
    sample.map_or(0.0, |side| side.sample.variance_within().sqrt())
}

impl PartOfRun {
    /// What the plans or the conditions of two runs differ in, `other` being usual.
    pub(crate) fn differences(
        &self,
        record: &Record,
        target: usize,
        other: &Record,
        other_target: usize,
    ) -> Vec<Reason> {
        let (run, usual) = (run_of(record), run_of(other));
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                let own = Measured::find(THIS, &run, WorkloadKey { target, name });
                let key_of_others = WorkloadKey {
                    target: other_target,
                    name,
                };
                let others = Measured::find(OTHERS, &usual, key_of_others);
                add_conditions(others, own, &mut reasons);
            }
            Self::Curve => add_survey_conditions(&usual, &run, Part::Curve, &mut reasons),
            Self::Access => add_survey_conditions(&usual, &run, Part::Access, &mut reasons),
            Self::Step(step) => {
                let own = StepOfRun::find(THIS, &run, *step);
                let others = StepOfRun::find(OTHERS, &usual, *step);
                add_conditions(others, own, &mut reasons);
            }
        }
        reasons.0
    }

    /// What speaks against the figures of this part.
    pub(crate) fn faults(&self, record: &Record, target: usize) -> Vec<Reason> {
        let run = run_of(record);
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                add_faults(
                    Measured::find(THIS, &run, WorkloadKey { target, name }),
                    &mut reasons,
                );
            }
            Self::Curve => add_faults(Surveyed::find(THIS, &run, Part::Curve), &mut reasons),
            Self::Access => add_faults(Surveyed::find(THIS, &run, Part::Access), &mut reasons),
            Self::Step(step) => add_faults(StepOfRun::find(THIS, &run, *step), &mut reasons),
        }
        reasons.0
    }

    /// Whether both plans ask for the same of this part, so that what differs came of the disk: a
    /// span that was cut when its time was over, a depth or an engine that fell back.
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

fn run_of(record: &Record) -> Run<'_> {
    Run {
        name: String::new(),
        record,
    }
}

fn planned<'r>(record: &'r Record, name: &str) -> Option<&'r Workload> {
    let mut workloads = record.plan.workloads().iter();
    workloads.find(|workload| workload.name == name)
}

fn add_conditions<T: Compared>(others: Option<T>, own: Option<T>, reasons: &mut Reasons) {
    if let (Some(others), Some(own)) = (others, own) {
        others.add_differences(own, reasons);
    }
}

fn add_survey_conditions(usual: &Run<'_>, run: &Run<'_>, part: Part, reasons: &mut Reasons) {
    let own = Surveyed::find(THIS, run, part);
    let others = Surveyed::find(OTHERS, usual, part);
    add_conditions(others, own, reasons);
}

fn add_faults<T: Compared>(own: Option<T>, reasons: &mut Reasons) {
    if let Some(own) = own {
        own.add_faults(&[], reasons);
    }
}
