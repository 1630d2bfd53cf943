//! Chooses the figures that represent the parts of one run, and finds the reasons why those of
//! another run are not comparable with them. Fleets compare many runs by them.

use super::comparable::MeasuredWorkload;
use super::differing::Differing;
use super::files::StepOfRun;
use super::inserts::InsertsOfRun;
use super::promised::{
    self, SearchedRate, leading_rate, reason_without_upper_end, searched_subjects,
    searched_workload,
};
use super::reasons::{Compared, Reasons};
use super::side_estimate::relative_error;
use super::sides::{Run, WorkloadKey};
use super::survey::{SurveyOfRun, SurveyPart, leading_survey_figures};
use super::workload_metrics::leading_figure;
use diskproof_model::comparison::{Direction, Figure, Reason};
use diskproof_model::files::FileStep;
use diskproof_model::plan::Workload;
use diskproof_model::postgres::subject_of_load;
use diskproof_model::record::{Estimate, Record};

/// The name of the run in question, in sentences.
const RUN_NAME: &str = "this run";
/// The name of the typical run, in sentences: it stands for all others.
const TYPICAL_NAME: &str = "the others";

/// A part of a run, by the name that it has in every run of the same plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartOfRun {
    /// The workload of this name.
    Workload(String),
    /// The rates of a survey by position.
    Curve,
    /// The access times of a survey.
    Access,
    /// A step on many small files.
    Step(FileStep),
    /// The INSERTs of the load of this name.
    Inserts(String),
    /// The search of this subject for the highest rate that keeps a promise.
    Search(String),
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
    /// The figure in its unit; positive and finite.
    pub value: f64,
    /// The standard error as a share of the value; `None` where the record states none.
    pub error: Option<f64>,
}

/// The figures that represent the parts of a run: its workloads, its survey, its steps on files,
/// its INSERTs, its searches. The rates that a search offered represent nothing.
pub(crate) fn representative_figures(record: &Record) -> Vec<RepresentativeFigure> {
    let run = Run::without_name(record);
    let mut figures = workload_figures(&run);
    figures.extend(survey_figures(&run));
    figures.extend(step_figures(record));
    figures.extend(insert_figures(record));
    figures.extend(search_figures(&run));
    figures
}

fn workload_figures(run: &Run<'_>) -> Vec<RepresentativeFigure> {
    let mut figures = Vec::new();
    for (index, row) in run.record.measurements.iter().enumerate() {
        if run.record.is_offered_by_search(row) {
            continue;
        }
        let measured = MeasuredWorkload {
            name: RUN_NAME,
            run,
            index,
        };
        let Some(leading) = leading_figure(measured) else {
            continue;
        };
        let name = row.data.workload.name.clone();
        let identity = FigureIdentity {
            part: PartOfRun::Workload(name.clone()),
            target: row.data.target,
            metric: leading.metric,
            subject: name,
            figure: leading.figure,
        };
        let error = leading.side.figure.error_within();
        figures.extend(representative_figure(identity, &leading.side.shown, error));
    }
    figures
}

fn survey_figures(run: &Run<'_>) -> Vec<RepresentativeFigure> {
    let mut figures = Vec::new();
    for leading in leading_survey_figures(run) {
        // A record with leading figures of a survey has a surface.
        let target = run
            .record
            .surface()
            .map_or(0, |surface| surface.data.target);
        let part = match leading.part {
            SurveyPart::Access => PartOfRun::Access,
            SurveyPart::Curve | SurveyPart::Burst => PartOfRun::Curve,
        };
        let identity = FigureIdentity {
            part,
            target,
            metric: leading.metric,
            subject: leading.part.subject().to_owned(),
            figure: leading.figure,
        };
        let error = relative_error(&leading.estimate);
        figures.extend(representative_figure(identity, &leading.estimate, error));
    }
    figures
}

fn step_figures(record: &Record) -> Vec<RepresentativeFigure> {
    let mut figures = Vec::new();
    for row in record.files().iter().flat_map(|files| &files.steps) {
        let step = row.data.step;
        let part = PartOfRun::Step(step);
        figures.extend(rate_figure(part, step.name(), &row.figures.iops));
    }
    figures
}

fn insert_figures(record: &Record) -> Vec<RepresentativeFigure> {
    let mut figures = Vec::new();
    for row in record
        .postgres()
        .iter()
        .flat_map(|postgres| &postgres.loads)
    {
        let load = &row.data.load.name;
        let part = PartOfRun::Inserts(load.clone());
        figures.extend(rate_figure(part, subject_of_load(load), &row.figures.iops));
    }
    figures
}

/// The rate of a step on files or of INSERTs. The files and the server are in the first target.
fn rate_figure(part: PartOfRun, subject: String, rate: &Estimate) -> Option<RepresentativeFigure> {
    let identity = FigureIdentity {
        part,
        target: 0,
        metric: format!("{subject}.{}", Figure::Iops.as_str()),
        subject,
        figure: Figure::Iops,
    };
    representative_figure(identity, rate, relative_error(rate))
}

fn search_figures(run: &Run<'_>) -> Vec<RepresentativeFigure> {
    let mut figures = Vec::new();
    for subject in searched_subjects(run.record) {
        let Some(leading) = leading_rate(run, &subject) else {
            continue;
        };
        let identity = FigureIdentity {
            part: PartOfRun::Search(subject.clone()),
            target: promised::TARGET,
            metric: leading.metric,
            subject,
            figure: Figure::PromisedRate,
        };
        let error = leading.side.figure.error_within();
        figures.extend(representative_figure(identity, &leading.side.shown, error));
    }
    figures
}

/// Everything about a figure but its value.
struct FigureIdentity {
    part: PartOfRun,
    target: usize,
    metric: String,
    subject: String,
    figure: Figure,
}

/// The figure with this value; `None` where the value is not positive and finite.
fn representative_figure(
    identity: FigureIdentity,
    estimate: &Estimate,
    error: Option<f64>,
) -> Option<RepresentativeFigure> {
    if !(estimate.value > 0.0 && estimate.value.is_finite()) {
        return None;
    }
    Some(RepresentativeFigure {
        part: identity.part,
        target: identity.target,
        metric: identity.metric,
        subject: identity.subject,
        figure: identity.figure,
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
        let run = Run::without_name(record);
        let typical = Run::without_name(other);
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                let key = WorkloadKey { target, name };
                let typical_key = WorkloadKey {
                    target: other_target,
                    name,
                };
                add_differences_between(
                    MeasuredWorkload::find(TYPICAL_NAME, &typical, typical_key),
                    MeasuredWorkload::find(RUN_NAME, &run, key),
                    &mut reasons,
                );
            }
            Self::Curve => add_survey_differences(&typical, &run, SurveyPart::Curve, &mut reasons),
            Self::Access => {
                add_survey_differences(&typical, &run, SurveyPart::Access, &mut reasons)
            }
            Self::Step(step) => {
                add_differences_between(
                    StepOfRun::find(TYPICAL_NAME, &typical, *step),
                    StepOfRun::find(RUN_NAME, &run, *step),
                    &mut reasons,
                );
            }
            Self::Inserts(load) => {
                add_differences_between(
                    InsertsOfRun::find(TYPICAL_NAME, &typical, load),
                    InsertsOfRun::find(RUN_NAME, &run, load),
                    &mut reasons,
                );
            }
            Self::Search(subject) => {
                add_differences_between(
                    SearchedRate::find(TYPICAL_NAME, &typical, subject),
                    SearchedRate::find(RUN_NAME, &run, subject),
                    &mut reasons,
                );
            }
        }
        reasons.0
    }

    /// The reasons why the figures of this part cannot be judged.
    pub(crate) fn faults(&self, record: &Record, target: usize) -> Vec<Reason> {
        let run = Run::without_name(record);
        let mut reasons = Reasons::default();
        match self {
            Self::Workload(name) => {
                add_faults(
                    MeasuredWorkload::find(RUN_NAME, &run, WorkloadKey { target, name }),
                    &mut reasons,
                );
            }
            Self::Curve => add_faults(
                SurveyOfRun::find(RUN_NAME, &run, SurveyPart::Curve),
                &mut reasons,
            ),
            Self::Access => add_faults(
                SurveyOfRun::find(RUN_NAME, &run, SurveyPart::Access),
                &mut reasons,
            ),
            Self::Step(step) => add_faults(StepOfRun::find(RUN_NAME, &run, *step), &mut reasons),
            Self::Inserts(load) => {
                add_faults(InsertsOfRun::find(RUN_NAME, &run, load), &mut reasons);
            }
            Self::Search(subject) => {
                let searched = SearchedRate::find(RUN_NAME, &run, subject);
                add_faults(searched, &mut reasons);
                reasons
                    .0
                    .extend(searched.and_then(reason_without_upper_end));
            }
        }
        reasons.0
    }

    /// Returns `true` if the disk caused this difference, because both plans request the same: it
    /// was too slow for its span, or did not take the depth or the engine.
    pub(crate) fn is_symptom(&self, difference: &Reason, record: &Record, other: &Record) -> bool {
        let (Some(planned), Some(planned_typical)) =
            (self.planned_workload(record), self.planned_workload(other))
        else {
            return false;
        };
        let is_requested_alike = match Differing::of_reason(difference) {
            Some(Differing::Span) => planned.span == planned_typical.span,
            Some(Differing::Depth) => planned.depth == planned_typical.depth,
            Some(Differing::Engine) => planned.engine == planned_typical.engine,
            // A run carries these out as its plan has them.
            Some(
                Differing::Access
                | Differing::BlockSize
                | Differing::Cache
                | Differing::Company
                | Differing::Content
                | Differing::Count
                | Differing::Coverage
                | Differing::Directories
                | Differing::FileSize
                | Differing::Fill
                | Differing::Fsync
                | Differing::Hold
                | Differing::Load
                | Differing::Method
                | Differing::Mix
                | Differing::Operation
                | Differing::Order
                | Differing::Promise
                | Differing::Sync
                | Differing::TargetKind
                | Differing::Threads
                | Differing::Workers,
            )
            | None => false,
        };
        is_requested_alike && record.plan.scratch == other.plan.scratch
    }

    /// The workload of this part as a run planned it; `None` where the part has none.
    fn planned_workload<'r>(&self, record: &'r Record) -> Option<&'r Workload> {
        match self {
            Self::Workload(name) => {
                let mut workloads = record.plan.workloads().iter();
                workloads.find(|workload| workload.name == *name)
            }
            Self::Search(subject) => searched_workload(record, subject),
            Self::Curve | Self::Access | Self::Step(_) | Self::Inserts(_) => None,
        }
    }
}

/// Adds the differences of a part that both runs have.
fn add_differences_between<T: Compared>(
    typical: Option<T>,
    part: Option<T>,
    reasons: &mut Reasons,
) {
    if let (Some(typical), Some(part)) = (typical, part) {
        typical.add_differences(part, reasons);
    }
}

fn add_survey_differences(
    typical: &Run<'_>,
    run: &Run<'_>,
    part: SurveyPart,
    reasons: &mut Reasons,
) {
    add_differences_between(
        SurveyOfRun::find(TYPICAL_NAME, typical, part),
        SurveyOfRun::find(RUN_NAME, run, part),
        reasons,
    );
}

fn add_faults<T: Compared>(part: Option<T>, reasons: &mut Reasons) {
    if let Some(part) = part {
        part.add_faults(&[], reasons);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::inserted::inserted;
    use crate::fixture::{self, surveyed};
    use diskproof_model::files::FileOperation;
    use diskproof_model::measurement::StopReason;
    use diskproof_model::plan::{CachePolicy, EngineChoice, EngineKind};
    use diskproof_model::record::TaskResult;

    const RANDOM_READS: &str = "random-read-d32";

    fn random_reads() -> PartOfRun {
        PartOfRun::Workload(RANDOM_READS.to_owned())
    }

    #[test]
    fn workload_of_another_depth_differs() {
        let record = fixture::record();
        assert_eq!(random_reads().differences(&record, 0, &record, 0), []);
        let mut typical = fixture::record();
        fixture::measured(&mut typical, RANDOM_READS)
            .data
            .workload
            .depth = 16;
        let differences = random_reads().differences(&record, 0, &typical, 0);
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].code, "depth-differs");
    }

    /// Two records whose plans may differ in the random reads, and a difference of these runs.
    fn is_symptom(code: &str, change_plan: impl Fn(&mut Workload)) -> bool {
        let record = fixture::record();
        let mut typical = fixture::record();
        for workload in typical.plan.workloads_mut() {
            if workload.name == RANDOM_READS {
                change_plan(workload);
            }
        }
        let difference = Reason {
            code: code.to_owned(),
            why: String::new(),
        };
        random_reads().is_symptom(&difference, &record, &typical)
    }

    /// The disk caused a difference only where both plans asked for the same.
    #[test]
    fn difference_is_a_symptom_if_the_plans_agree() {
        for code in ["span-differs", "depth-differs", "engine-differs"] {
            assert!(is_symptom(code, |_| {}), "{code}");
        }
        assert!(!is_symptom("span-differs", |workload| {
            workload.span.length_bytes = Some(1 << 20);
        }));
        assert!(!is_symptom("depth-differs", |workload| workload.depth = 16));
        assert!(!is_symptom("engine-differs", |workload| {
            workload.engine = EngineChoice::Fixed(EngineKind::Sync);
        }));
        // Each condition is that of its own code.
        assert!(is_symptom("span-differs", |workload| workload.depth = 16));
        // What a plan requests and a run always has is no symptom, and neither is a fault.
        for code in ["mix-differs", "cache-differs", "unwritten-blocks"] {
            assert!(!is_symptom(code, |_| {}), "{code}");
        }
    }

    /// Another size of the scratch file is another request, whatever the workloads say.
    #[test]
    fn difference_on_another_scratch_file_is_no_symptom() {
        let record = fixture::record();
        let mut typical = fixture::record();
        typical.plan.scratch = None;
        let difference = Reason {
            code: "span-differs".to_owned(),
            why: String::new(),
        };
        assert!(!random_reads().is_symptom(&difference, &record, &typical));
    }

    /// Its logarithm must exist.
    #[test]
    fn figure_of_nothing_represents_no_run() {
        let identity = || FigureIdentity {
            part: random_reads(),
            target: 0,
            metric: "random-read-d32.iops".to_owned(),
            subject: RANDOM_READS.to_owned(),
            figure: Figure::Iops,
        };
        for (value, is_figure) in [
            (1e-9, true),
            (0.0, false),
            (-1.0, false),
            (f64::INFINITY, false),
            (f64::NAN, false),
        ] {
            let estimate = Estimate::new(1, value, None, "1/s");
            let figure = representative_figure(identity(), &estimate, None);
            assert_eq!(figure.is_some(), is_figure, "{value}");
        }
    }

    #[test]
    fn interrupted_workload_has_a_fault() {
        let mut record = fixture::record();
        assert_eq!(random_reads().faults(&record, 0), []);
        fixture::measured(&mut record, RANDOM_READS).data.stopped = StopReason::Interrupted;
        let faults = random_reads().faults(&record, 0);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].code, "interrupted");
    }

    #[test]
    fn part_that_a_run_lacks_has_neither_faults_nor_differences() {
        let record = fixture::record();
        let part = PartOfRun::Workload("no-such-workload".to_owned());
        assert_eq!(part.faults(&record, 0), []);
        assert_eq!(part.differences(&record, 0, &record, 0), []);
    }

    /// Each figure of a survey stands on its target, and each part finds its own fault.
    #[test]
    fn parts_of_a_survey_have_figures_and_faults_of_their_own() {
        let record = surveyed::record();
        let found: Vec<(PartOfRun, Figure)> = representative_figures(&record)
            .into_iter()
            .map(|figure| (figure.part, figure.figure))
            .collect();
        let curve = (PartOfRun::Curve, Figure::CurveAverage);
        let access = (PartOfRun::Access, Figure::AccessTime);
        assert_eq!(found, [curve, access]);
        let codes = |part: PartOfRun, record: &Record| -> Vec<String> {
            let faults = part.faults(record, 0);
            faults.into_iter().map(|fault| fault.code).collect()
        };
        let failed_curve = surveyed::faulty(|survey| survey.curve[3].errors = 1);
        assert!(codes(PartOfRun::Curve, &failed_curve).contains(&"io-errors".to_owned()));
        let mut failed_access = surveyed::record();
        let surface = failed_access.surface_mut().unwrap();
        surface.data.access_errors.insert("EIO".to_owned(), 1);
        assert_eq!(codes(PartOfRun::Access, &failed_access), ["io-errors"]);
        assert!(codes(PartOfRun::Curve, &failed_access).is_empty());
    }

    #[test]
    fn parts_of_a_survey_find_their_differences() {
        let record = surveyed::record();
        let mut typical = surveyed::record();
        let surface = typical.surface_mut().unwrap();
        surface.data.cache.used = CachePolicy::Buffered;
        for part in [PartOfRun::Curve, PartOfRun::Access] {
            assert_eq!(part.differences(&record, 0, &record, 0), []);
            let differences = part.differences(&record, 0, &typical, 0);
            assert_eq!(differences.len(), 1, "{differences:?}");
            assert_eq!(differences[0].code, "cache-differs");
        }
    }

    #[test]
    fn steps_on_files_and_inserts_represent_a_run() {
        let step = file_step(FileOperation::Create, &[1000, 1010, 990]);
        let files = files_record("files", files_plan(), vec![step]);
        let figure = representative_figures(&files).remove(0);
        let step = files.files().unwrap().steps[0].data.step;
        assert_eq!(figure.part, PartOfRun::Step(step));
        assert_eq!(figure.metric, format!("{}.iops", step.name()));
        let inserts = inserted("inserts", &[400.0, 404.0, 396.0]);
        let figure = representative_figures(&inserts).remove(0);
        assert_eq!(figure.part, PartOfRun::Inserts("fdatasync-c1".to_owned()));
        assert_eq!(figure.part.faults(&inserts, 0), []);
        let mut others = inserted("others", &[400.0, 404.0, 396.0]);
        let TaskResult::Inserts(server) = &mut others.results[0] else {
            panic!("{:?}", others.results);
        };
        server.loads[0].data.load.clients = 4;
        let differences = figure.part.differences(&inserts, 0, &others, 0);
        assert_eq!(differences[0].code, "load-differs");
    }
}
