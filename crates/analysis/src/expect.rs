//! Compares the figures of a record with a threshold that the user set on the command line, such as
//! `random-read-d32.iops>=5000`. `threshold` is the type of it, `parse` reads it, and `observed`
//! has the figures with their uncertainty.

mod observed;
mod open;
mod parse;
mod threshold;

pub use parse::{ExpectError, scaled_number};
pub use threshold::{Expected, Quantity, Relation};

use crate::estimate::largest_by;
use crate::mechanics::{reach, reported_rpm, sold_bytes};
use crate::shape::Shape;
use crate::waiting;
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_model::figure::{Metric, Named, Part};
use diskproof_model::files_record::FilesRecord;
use diskproof_model::finding::Severity;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::op::OpKind;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Estimate, Record, TaskResult};
use diskproof_model::row::Row;
use diskproof_model::target::TargetIdentity;
use observed::{NamedOps, Observed, Uncertainty, figure_of_operations, figure_of_part};
use parse::is_cpu;
use std::collections::BTreeSet;

/// Multiple of the half-width by which a figure must lie off its threshold, so that the next run
/// decides in four of five cases: (1.96 + 0.84) / 1.96, from the 97.5 % and 80 % points of the
/// normal distribution.
const HALF_WIDTHS_TO_DECIDE: f64 = 1.43;
/// The longest measured time that is suggested: a day.
const DECIDED_BY_NS_MAX: f64 = 86_400e9;

impl Expected {
    /// Compares the threshold with the figure of a record. The worst of several targets that ran
    /// the workload counts. The observed figure is in the unit of the metric.
    pub fn evaluate(&self, record: &Record) -> Expectation {
        let mut worst: Option<Judged> = None;
        let mut observations = self.observations(record);
        observations.extend(self.missing_on_targets(record));
        for observation in observations {
            let judged = self.decide(observation, record);
            match &worst {
                Some(worst) if !self.is_worse(&judged, worst) => {}
                _ => worst = Some(judged),
            }
        }
        let judged = worst.unwrap_or_default();
        let mut expectation = Expectation {
            expression: self.expression.clone(),
            observed: None,
            interval: None,
            observed_at_least: None,
            met: judged.outcome == ExpectationOutcome::Met,
            undecided: judged.outcome == ExpectationOutcome::Undecided,
            decided_by_ns: None,
            objection: judged.objection,
            threshold: Some(self.threshold),
            promise: None,
        };
        if let Some(figure) = judged.figure {
            match figure.uncertainty {
                Uncertainty::AtLeast => expectation.observed_at_least = Some(figure.value),
                _ => expectation.observed = Some(figure.value),
            }
            expectation.interval = figure.interval();
            if expectation.undecided && expectation.objection.is_none() {
                expectation.decided_by_ns = self.decided_by_ns(figure, record);
            }
        }
        expectation
    }

    /// Decides by a figure whether the threshold is met. A figure with an objection, which is not
    /// the disk's, leaves it undecided.
    fn judge(&self, observation: Observation, record: &Record) -> Judged {
        let outcome = self.outcome(observation.figure);
        // The longest latency was that long, whoever answered.
        let has_happened = self.is_longest_latency() && outcome == ExpectationOutcome::Missed;
        let mut judged = Judged {
            outcome,
            figure: observation.figure,
            objection: None,
        };
        if let Some(source) = observation.source
            && let Some(objection) = record.objection(source)
            // The figure says what unanswered requests leave open: they only make latencies longer.
            && !objection.is_of_hang()
            && observation.figure.is_some()
            && !has_happened
            && !self.is_stop_rule(record)
        {
            judged.outcome = ExpectationOutcome::Undecided;
            judged.objection = Some(objection.text());
        }
        judged
    }

    /// Decides as `judge` does, and leaves a threshold open where the figure is the disk's and does
    /// not decide for another reason.
    fn decide(&self, observation: Observation, record: &Record) -> Judged {
        let mut judged = self.judge(observation, record);
        // The longest latency was that long, whoever waited.
        let has_happened =
            self.is_longest_latency() && judged.outcome == ExpectationOutcome::Missed;
        if let Some(source) = observation.source
            && let Some(figure) = observation.figure
            && !has_happened
            && let Some(reason) = self.reason_to_stay_open(record, source, figure, judged.outcome)
        {
            judged.outcome = ExpectationOutcome::Undecided;
            judged.objection = Some(reason);
        }
        judged
    }

    /// Returns `true` if the threshold is the one that may end the run (`--abort-above`). It is
    /// about what happened, not about the disk.
    fn is_stop_rule(&self, record: &Record) -> bool {
        let Some(ping) = record.plan.ping() else {
            return false;
        };
        match ping.requests.abort_above_ns {
            Some(ns) => self.is_longest_latency() && ns as f64 == self.threshold,
            None => false,
        }
    }

    /// Returns `true` if the threshold is on the longest latency.
    fn is_longest_latency(&self) -> bool {
        // A curve has a `max`, too: its fastest rate.
        matches!(
            self.quantity,
            Quantity::Figure(metric) if metric.threshold == "max" && metric.unit == "ns"
        )
    }

    /// The figure on each target that was measured; one without a value where a survey or a step
    /// lacks it.
    fn observations(&self, record: &Record) -> Vec<Observation> {
        let metric = match self.quantity {
            Quantity::Figure(metric) => metric,
            Quantity::FastestLevel { otherwise } => {
                return vec![Observation::fastest_level(record, otherwise)];
            }
            Quantity::Findings => return vec![Observation::findings(record)],
            Quantity::Rpm => return vec![Observation::reported_rpm(record)],
            Quantity::DiskSize => {
                let targets = record.targets.iter();
                return targets.map(Observation::disk_size).collect();
            }
        };
        if self.part != Part::Workload {
            let source = match self.part {
                // An answer of a search that is not the disk's promises nothing.
                Part::Load => None,
                _ => first_survey(record),
            };
            return vec![Observation {
                figure: figure_of_part(record, self.part, metric),
                source,
            }];
        }
        if let Some(files) = record.files() {
            return vec![Observation {
                figure: self.figure_of_step(files, metric),
                source: first_result(record, |result| matches!(result, TaskResult::Files(_))),
            }];
        }
        let mut observations = Vec::new();
        for (index, row) in record.measurements.iter().enumerate() {
            if row.data.workload.name == self.workload {
                observations.push(Observation {
                    figure: figure_of_operations(metric, &NamedOps::in_workload(row, self.op)),
                    source: Some(FigureSource::Measurement(index)),
                });
            }
        }
        observations.extend(self.observed_inserts(record, metric));
        observations
    }

    /// An observation without a figure for each target that the workload was to run on and did not,
    /// where another target has it.
    fn missing_on_targets(&self, record: &Record) -> Vec<Observation> {
        let mut missing = Vec::new();
        let mut measured: BTreeSet<usize> = BTreeSet::new();
        for row in &record.measurements {
            if row.data.workload.name == self.workload {
                measured.insert(row.data.target);
            }
        }
        if self.part != Part::Workload || measured.is_empty() {
            return missing;
        }
        for target in 0..record.targets.len() {
            let is_planned = record
                .plan
                .workloads()
                .iter()
                .any(|workload| workload.name == self.workload && workload.runs_on(target));
            if is_planned && !measured.contains(&target) {
                missing.push(Observation {
                    figure: None,
                    source: None,
                });
            }
        }
        missing
    }

    /// The rate of the INSERTs that the threshold names; `None` where it names others.
    fn observed_inserts(&self, record: &Record, metric: &Metric) -> Option<Observation> {
        let row = record.postgres()?.load_named(&self.workload)?;
        let has_figure = names_rate_of_inserts(metric, self.op) && row.figures.iops.n > 0;
        Some(Observation {
            figure: has_figure.then(|| Observed::from_estimate(&row.figures.iops)),
            source: first_result(record, |result| matches!(result, TaskResult::Inserts(_))),
        })
    }

    /// The figure of the step on files that the threshold names.
    fn figure_of_step(&self, files: &FilesRecord, metric: &Metric) -> Option<Observed> {
        let step = files
            .steps
            .iter()
            .find(|row| row.data.step.name() == self.workload && row.data.op.count > 0)?;
        figure_of_operations(metric, &NamedOps::FilesStep(step))
    }

    /// Met or missed if both ends of the interval are, else undecided.
    fn outcome(&self, figure: Option<Observed>) -> ExpectationOutcome {
        let Some(figure) = figure else {
            return ExpectationOutcome::Undecided;
        };
        let ends = match figure.uncertainty {
            Uncertainty::Exact => [figure.value; 2],
            Uncertainty::Factor(factor) => [figure.value / factor, figure.value * factor],
            Uncertainty::Interval(ends) => ends,
            Uncertainty::AtLeast => [figure.value, f64::INFINITY],
        };
        match self.relation.decides(ends, self.threshold) {
            Some(true) => ExpectationOutcome::Met,
            Some(false) => ExpectationOutcome::Missed,
            None => ExpectationOutcome::Undecided,
        }
    }

    /// The measured time that decides the threshold in four of five cases. The interval narrows
    /// with the root of the time. A percentile without an upper end first needs operations beyond
    /// it.
    fn decided_by_ns(&self, figure: Observed, record: &Record) -> Option<u64> {
        let workloads = record.measurements.iter();
        let slowest = workloads
            .filter(|row| row.data.workload.name == self.workload)
            .max_by_key(|row| row.data.wall_ns)?;
        if slowest.data.hang.is_some() {
            return None;
        }
        let times = match figure.uncertainty {
            Uncertainty::AtLeast => self.times_for_an_upper_end(slowest)?,
            Uncertainty::Exact | Uncertainty::Factor(_) => return None,
            Uncertainty::Interval([low, high]) => {
                let half_width = if self.threshold > figure.value {
                    high - figure.value
                } else {
                    figure.value - low
                };
                let distance = self.threshold - figure.value;
                (HALF_WIDTHS_TO_DECIDE * half_width / distance).powi(2)
            }
        };
        let needed_ns = times * slowest.data.wall_ns as f64;
        if needed_ns <= DECIDED_BY_NS_MAX {
            Some(needed_ns as u64)
        } else {
            None
        }
    }

    /// How many times as much must be measured until a percentile has an upper end; `None` where it
    /// should have one already, and of other figures.
    fn times_for_an_upper_end(&self, row: &Row) -> Option<f64> {
        let Quantity::Figure(metric) = self.quantity else {
            return None;
        };
        let quantile = metric.quantile()?;
        let latencies = NamedOps::in_workload(row, self.op).latencies()?;
        let independent = latencies.independent_latencies(quantile)?;
        let times = LatencyHistogram::count_for(quantile) as f64 / independent;
        if times > 1.0 { Some(times) } else { None }
    }

    /// Returns `true` if the first of two judged figures is the one to report: the graver outcome,
    /// then a missing figure, then the worse value.
    fn is_worse(&self, one: &Judged, other: &Judged) -> bool {
        match (one.figure, other.figure) {
            _ if one.outcome != other.outcome => one.outcome > other.outcome,
            (None, Some(_)) => true,
            (Some(one), Some(other)) => self.relation.is_worse(one.value, other.value),
            (_, None) => false,
        }
    }
}

/// A figure that a threshold names, and its source.
#[derive(Debug, Clone, Copy)]
struct Observation {
    /// The figure; `None` where it was not measured.
    figure: Option<Observed>,
    /// `None` where no measurement of the disk gave the figure.
    source: Option<FigureSource>,
}

/// The index of the target that a source measured. What follows from the measurements is of the
/// first target: no search has several.
fn measured_target(record: &Record, source: Option<FigureSource>) -> usize {
    match source {
        Some(FigureSource::Measurement(index)) => record.measurements[index].data.target,
        Some(FigureSource::Result(index)) => match record.results[index].inner().own_requests() {
            Some(own) => own.target,
            None => 0,
        },
        None => 0,
    }
}

impl Observation {
    /// Warnings and failures among the findings.
    fn findings(record: &Record) -> Self {
        let count = record
            .findings
            .iter()
            .filter(|finding| finding.severity >= Severity::Warning)
            .count();
        Self {
            figure: Some(Observed::exact(count as f64)),
            source: None,
        }
    }

    /// A single sample of a curve may be too fast by chance: the level decides, where there is one.
    fn fastest_level(record: &Record, otherwise: &Metric) -> Self {
        let figure = match fastest_level_rate(record) {
            Some(rate) => Some(Observed::exact(rate)),
            None => figure_of_part(record, Part::Curve, otherwise),
        };
        Self {
            figure,
            source: first_survey(record),
        }
    }

    /// The speed of rotation, as the disk reports it.
    fn reported_rpm(record: &Record) -> Self {
        Self {
            figure: reported_rpm(record).map(|rpm| Observed::exact(f64::from(rpm))),
            source: None,
        }
    }

    /// The size of a disk, as it is sold.
    fn disk_size(target: &TargetIdentity) -> Self {
        Self {
            figure: sold_bytes(target).map(|bytes| Observed::exact(bytes as f64)),
            source: None,
        }
    }
}

/// Returns `true` if a figure of INSERTs can be limited: their rate, which has no kind of operation
/// of a disk.
pub fn names_rate_of_inserts(metric: &Metric, op: Option<OpKind>) -> bool {
    metric.threshold == "iops" && op.is_none()
}

/// The survey of a record as the source of its figures.
fn first_survey(record: &Record) -> Option<FigureSource> {
    first_result(record, |result| matches!(result, TaskResult::Survey(_)))
}

/// The rate of the fastest level of the curve, in bytes per second; `None` of a curve without
/// levels.
fn fastest_level_rate(record: &Record) -> Option<f64> {
    let shape = Shape::from_curve(record.curve(), reach(record, record.surface()?))?;
    let fastest = largest_by(&shape.levels, |level| level.ln_rate)?;
    Some(fastest.rate())
}

/// The first result of a kind, as the source of its figures.
fn first_result(record: &Record, is_wanted: fn(&TaskResult) -> bool) -> Option<FigureSource> {
    let index = record.results.iter().position(is_wanted)?;
    Some(FigureSource::Result(index))
}

/// The outcome of a threshold, and the figure that it was compared with.
#[derive(Debug, Clone)]
struct Judged {
    outcome: ExpectationOutcome,
    figure: Option<Observed>,
    /// Why the figure may not decide.
    objection: Option<String>,
}

impl Default for Judged {
    fn default() -> Self {
        Self {
            outcome: ExpectationOutcome::Undecided,
            figure: None,
            objection: None,
        }
    }
}

/// A figure of a saved run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedFigure {
    /// The figure.
    pub(crate) estimate: Estimate,
    /// Why it may not decide: it is not the disk's.
    pub(crate) objection: Option<String>,
    /// The best that it may be without the waits of the program for processors; `None` where it did
    /// not wait.
    pub(crate) without_waits: Option<f64>,
}

/// A figure that a name means, on one target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetFigure {
    /// The index of the target.
    pub(crate) target: usize,
    /// `None` where too little was measured for it, such as too few operations for a percentile.
    pub(crate) figure: Option<NamedFigure>,
}

/// The figure that a name means on each target that was measured for it, as a threshold on it is
/// judged. The first of several measurements on a target that has the figure counts.
pub(crate) fn named_figures(record: &Record, named: &Named<'_>) -> Vec<TargetFigure> {
    // Any threshold on the figure: only what it is compared with is used.
    let threshold = Expected {
        expression: String::new(),
        part: named.part,
        workload: named.subject.to_owned(),
        op: named.op,
        quantity: Quantity::Figure(named.metric),
        relation: Relation::AtLeast,
        threshold: 0.0,
    };
    let mut figures: Vec<TargetFigure> = Vec::new();
    for observation in threshold.observations(record) {
        let target = measured_target(record, observation.source);
        let mut figure = decided_figure(threshold.judge(observation, record), named.metric);
        if let Some(figure) = &mut figure
            && let Some(FigureSource::Measurement(index)) = observation.source
            && let Some(observed) = observation.figure
        {
            // A trend compares figures, whose own error its spread from run to run contains.
            let ends = [observed.value; 2];
            figure.without_waits = waiting::figure_without_waits(record, index, named.metric, ends);
        }
        match figures.iter_mut().find(|earlier| earlier.target == target) {
            Some(earlier) if earlier.figure.is_some() => {}
            Some(earlier) => earlier.figure = figure,
            None => figures.push(TargetFigure { target, figure }),
        }
    }
    figures
}

/// A judged figure as a trend compares it; `None` where it has no upper end, too.
fn decided_figure(judged: Judged, metric: &Metric) -> Option<NamedFigure> {
    let figure = judged.figure?;
    if figure.uncertainty == Uncertainty::AtLeast {
        return None;
    }
    // A threshold of CPU time is written in percent, the figure is a share.
    let scale = if is_cpu(metric) { 0.01 } else { 1.0 };
    let estimate = Estimate {
        n: 1,
        value: figure.value * scale,
        half_width_95: figure
            .interval()
            .map(|[low, high]| scale * (high - low) / 2.0),
        unit: metric.unit.to_owned(),
    };
    Some(NamedFigure {
        estimate,
        objection: judged.objection,
        without_waits: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::inserted::inserted;
    use crate::fixture::{self, measured};
    use diskproof_model::measurement::{Hang, OpKind};
    use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord};
    use diskproof_model::record::TaskResult;
    use diskproof_model::row::LatencySummary;
    use diskproof_model::surface::SeekPattern;

    fn expected(text: &str) -> Expected {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// A run of INSERTs alone has no workload.
    #[test]
    fn rates_of_inserts_are_held_against_the_record() {
        let record = inserted("quiet", &[400.0, 404.0, 396.0]);
        let evaluate = |text: &str| expected(text).evaluate(&record);
        let met = evaluate("postgres-fdatasync-c1.iops>=300");
        assert!(met.met && met.interval.is_some());
        assert!((met.observed.unwrap() - 400.0).abs() < 1.0);
        let missed = evaluate("postgres-fdatasync-c1.iops>=500");
        assert!(!missed.met && !missed.undecided);
        for text in [
            "postgres-fdatasync-c1.iops>=400",
            "postgres-fdatasync-c1.write.iops>=1",
            "postgres-fsync-c1.iops>=1",
        ] {
            assert!(evaluate(text).undecided, "{text}");
        }
        let slice = inserted("single", &[400.0]);
        let threshold = expected("postgres-fdatasync-c1.iops>=300");
        assert!(threshold.evaluate(&slice).undecided);
    }

    #[test]
    fn expressions_are_held_against_the_record() {
        let record = fixture::record();
        let cases = [
            ("random-read-d32.iops>=5000", Some(10_000.0), true),
            ("random-read-d32.iops>=5k", Some(10_000.0), true),
            ("random-read-d32.iops>20000", Some(10_000.0), false),
            ("random-read-d32.read.iops >= 9900", Some(10_000.0), true),
            (
                "sequential-read.throughput>=200MB/s",
                Some(400.0 * 1048576.0),
                true,
            ),
            (
                "sequential-read.throughput>=1.5GiB/s",
                Some(400.0 * 1048576.0),
                false,
            ),
            ("mixed-random.iops>=9900", Some(10_000.0), true),
            ("mixed-random.read.iops>1000", Some(5_000.0), true),
            ("mixed-random.p99<=1s", None, false),
            ("random-read-d1.mean<=600us", Some(500_000.0), true),
            ("random-read-d1.max<500us", Some(500_000.0), false),
            (
                "commit-fdatasync.sync.mean<=1.95ms",
                Some(1_900_000.0),
                true,
            ),
            ("commit-fdatasync.mean<=1.9ms", Some(2_000_000.0), false),
            ("commit-fdatasync.p99.99<=5ms", None, false),
            ("random-read-d1.cpu<=50%", Some(6.0), true),
            ("no-such.iops>=0", None, false),
        ];
        for (text, observed, met) in cases {
            let outcome = expected(text).evaluate(&record);
            assert_eq!((outcome.observed, outcome.met), (observed, met), "{text}");
        }
    }

    /// One of two targets has no row of the workload, although the plan has it for both.
    #[test]
    fn target_without_a_row_leaves_a_threshold_open() {
        let mut record = fixture::record();
        let threshold = expected("random-read-d32.iops>=5000");
        let missed = expected("random-read-d32.iops>=50000");
        assert!(threshold.evaluate(&record).met);
        let mut other = record.targets[0].clone();
        other.path = "/other".to_owned();
        record.targets.push(other);
        record.plan.targets.push("/other".to_owned());
        assert!(threshold.evaluate(&record).undecided);
        assert_eq!(
            missed.evaluate(&record).outcome(),
            ExpectationOutcome::Missed
        );
        for workload in record.plan.workloads_mut() {
            workload.target = Some(0);
        }
        assert!(threshold.evaluate(&record).met);
    }

    #[test]
    fn percentile_of_few_operations_is_missed_or_names_the_time_that_decides() {
        let mut record = fixture::record();
        let commits = measured(&mut record, "commit-fdatasync");
        commits.data.wall_ns = 1_000_000_000;
        let sync = commits.figures.ops.get_mut(&OpKind::Sync).unwrap();
        let mut few = LatencyHistogram::new();
        (0..100).for_each(|_| few.record(20_000_000));
        sync.latency.p99 = None;
        let sync = commits.data.ops.get_mut(&OpKind::Sync).unwrap();
        (sync.count, sync.latency) = (100, few);
        let seen =
            |limit: &str| expected(&format!("commit-fdatasync.sync.p99{limit}")).evaluate(&record);
        // The p99 is 20 ms or more, and nothing says how much more.
        let missed = seen("<=10ms");
        assert_eq!(missed.outcome(), ExpectationOutcome::Missed);
        assert_eq!((missed.observed, missed.interval), (None, None));
        let low = missed.observed_at_least.unwrap();
        assert!((low / 20e6 - 1.0).abs() < 0.002, "{low}");
        assert_eq!(missed.decided_by_ns, None);
        // Ten of a hundred times as many operations lie beyond.
        let open = seen("<=30ms");
        assert_eq!(open.outcome(), ExpectationOutcome::Undecided);
        assert_eq!(open.decided_by_ns, Some(10_000_000_000));
        assert_eq!(seen(">=10ms").outcome(), ExpectationOutcome::Met);
    }

    /// Random reads of 0.5 ms, of which every fiftieth takes 20 to 40 ms.
    fn record_with_long_latencies(mut longest_ns_of_cell: impl FnMut(usize) -> u64) -> Record {
        let mut record = fixture::record();
        let reads = measured(&mut record, "random-read-d1");
        let op = reads.data.ops.get_mut(&OpKind::Read).unwrap();
        let mut latencies = LatencyHistogram::new();
        for read in 0..op.count {
            latencies.record(match read % 50 {
                0 => 20_000_000 + 20_000_000 * read / op.count,
                _ => 500_000,
            });
        }
        op.latency = latencies;
        for (index, cell) in op.series.cells.iter_mut().enumerate() {
            cell.latency_max_ns = longest_ns_of_cell(index);
        }
        record
    }

    #[test]
    fn percentile_of_latencies_from_a_single_moment_decides_nothing() {
        let spread = record_with_long_latencies(|_| 40_000_000);
        let seen = expected("random-read-d1.p99<=10ms").evaluate(&spread);
        assert_eq!(seen.outcome(), ExpectationOutcome::Missed, "{seen:?}");
        let one_moment = record_with_long_latencies(|index| match index {
            100 => 40_000_000,
            _ => 500_000,
        });
        let seen = expected("random-read-d1.p99<=10ms").evaluate(&one_moment);
        assert_eq!(seen.outcome(), ExpectationOutcome::Undecided, "{seen:?}");
    }

    #[test]
    fn latencies_of_an_open_loop_count_from_the_intended_start() {
        let mut record = fixture::record();
        let reads = measured(&mut record, "random-read-d1");
        reads.data.workload.rate = Some(2000.0);
        let mut late = LatencyHistogram::new();
        let op = reads.data.ops.get_mut(&OpKind::Read).unwrap();
        (0..op.count).for_each(|_| late.record(800_000_000));
        reads
            .figures
            .ops
            .get_mut(&OpKind::Read)
            .unwrap()
            .latency_intended = Some(LatencySummary::from_histogram(&late));
        op.latency_intended = Some(late);
        for figure in ["p99", "p50", "mean", "max"] {
            let text = format!("random-read-d1.{figure}<=10ms");
            assert_eq!(
                outcome(&text, &record),
                ExpectationOutcome::Missed,
                "{text}"
            );
        }
    }

    #[test]
    fn figures_of_a_survey_are_named_like_those_of_workloads() {
        let words = [
            "curve.average>=80MB/s",
            "curve.min > 1MB/s",
            "access.mean<=15ms",
            "access.iops>=60",
            "burst.throughput>=200MB/s",
        ];
        let parts = words.map(|text| expected(text).part);
        let access = Part::Access(SeekPattern::Random);
        let (curve, burst) = (Part::Curve, Part::Burst);
        assert_eq!(parts, [curve, curve, access, access, burst]);
        assert_eq!(expected("curve.min>1MB/s").threshold, 1e6);
        assert_eq!(expected("access.mean<=15ms").threshold, 15e6);
        assert_eq!(expected("random-read-d1.max<1s").part, Part::Workload);
        // A record without a survey.
        let outcome = expected("curve.average>=80MB/s").evaluate(&fixture::record());
        assert_eq!((outcome.observed, outcome.met), (None, false));
    }

    fn outcome(text: &str, record: &Record) -> ExpectationOutcome {
        expected(text).evaluate(record).outcome()
    }

    #[test]
    fn the_interval_decides_between_met_missed_and_undecided() {
        use ExpectationOutcome::{Met, Missed, Undecided};
        let with = |half_width: Option<f64>| {
            let mut record = fixture::record();
            let reads = measured(&mut record, "random-read-d32");
            let iops = &mut reads.figures.ops.get_mut(&OpKind::Read).unwrap().iops;
            (iops.value, iops.half_width_95) = (10_000.0, half_width);
            record
        };
        let mut known = with(Some(500.0));
        for (text, expected) in [
            ("random-read-d32.iops>=9500", Met),
            ("random-read-d32.iops>9500", Undecided),
            ("random-read-d32.iops>=9501", Undecided),
            ("random-read-d32.iops>=10500", Undecided),
            ("random-read-d32.iops>=10501", Missed),
            ("random-read-d32.iops<=10500", Met),
            ("random-read-d32.iops<9500", Missed),
            ("random-read-d32.iops<9501", Undecided),
        ] {
            assert_eq!(outcome(text, &known), expected, "{text}");
        }
        let seen = expected("random-read-d32.iops>=9800").evaluate(&known);
        assert_eq!(seen.interval, Some([9500.0, 10_500.0]));
        assert!(seen.undecided && !seen.met);
        // By hand: 1.43 × 500 / 200 = 3.575, and 3.575² = 12.78 times the measured time.
        let wall_ns = measured(&mut known, "random-read-d32").data.wall_ns;
        let times = seen.decided_by_ns.unwrap() as f64 / wall_ns as f64;
        assert!((times - 12.78).abs() < 0.01, "{times}");
        for (text, why) in [
            ("random-read-d32.iops>=9500", "met"),
            ("random-read-d32.iops>=10501", "missed"),
            ("random-read-d32.iops>=9999.9", "a day does not decide"),
        ] {
            let decided = expected(text).evaluate(&known).decided_by_ns;
            assert_eq!(decided, None, "{why}");
        }
        let unknown = with(None);
        for (text, expected) in [
            ("random-read-d32.iops>=5000", Met),
            ("random-read-d32.iops>=5001", Undecided),
            ("random-read-d32.iops>=20000", Undecided),
            ("random-read-d32.iops>=20001", Missed),
        ] {
            assert_eq!(outcome(text, &unknown), expected, "{text}");
        }
        // A percentile with too few samples beyond it, and a workload that did not run.
        assert_eq!(outcome("commit-fdatasync.p99.99<=5ms", &known), Undecided);
        assert_eq!(outcome("no-such.iops>=0", &known), Undecided);
    }

    #[test]
    fn findings_counts_warnings_and_failures() {
        let mut record = fixture::record();
        let finding = |severity| fixture::finding("example", severity, "");
        record.findings = vec![finding(Severity::Note)];
        assert_eq!(outcome("findings=0", &record), ExpectationOutcome::Met);
        record.findings.push(finding(Severity::Warning));
        assert_eq!(outcome("findings = 0", &record), ExpectationOutcome::Missed);
        assert_eq!(outcome("findings<=1", &record), ExpectationOutcome::Met);
        assert_eq!(outcome("findings<1", &record), ExpectationOutcome::Missed);
    }

    #[test]
    fn the_worst_of_several_targets_counts() {
        let record = fixture::changed(|run| {
            let mut slow = run.measurements[3].clone();
            slow.target = 1;
            for cell in slow.ops.values_mut().flat_map(|op| &mut op.series.cells) {
                cell.ops /= 2;
            }
            run.measurements.push(slow);
            run.facts.targets.push(fixture::target());
        });
        let outcome = expected("random-read-d32.iops>=9000").evaluate(&record);
        assert_eq!((outcome.observed, outcome.met), (Some(5000.0), false));
    }

    /// Two reads had no answer for 45 s: they are in no histogram.
    #[test]
    fn unanswered_requests_miss_the_longest_latency_and_decide_nothing_else() {
        let mut record = fixture::record();
        measured(&mut record, "random-read-d32").data.hang = Some(Hang {
            since_ns: 0,
            lasted_ns: 45_000_000_000,
            requests: 2,
            late: false,
        });
        let outcome = |text: &str| expected(text).evaluate(&record).outcome();
        assert_eq!(
            outcome("random-read-d32.max<=40s"),
            ExpectationOutcome::Missed
        );
        for text in [
            "random-read-d32.p99<=50ms",
            "random-read-d32.mean<=50ms",
            "random-read-d32.iops>=10",
            "random-read-d32.iops<=1000000",
        ] {
            assert_eq!(outcome(text), ExpectationOutcome::Undecided, "{text}");
        }
        assert_eq!(
            outcome("random-read-d32.p99<=1us"),
            ExpectationOutcome::Missed
        );
        assert_eq!(outcome("random-read-d1.p99<=50ms"), ExpectationOutcome::Met);
    }

    /// A search that no offered rate ended knows a lower end alone.
    #[test]
    fn rate_that_nothing_broke_has_no_upper_end() {
        let mut record = fixture::record();
        let mut outcome_of = |outcome, text: &str| {
            record.results = vec![TaskResult::Load(Box::new(LoadRecord {
                data: LoadData::default(),
                figures: fixture::searched::answer(outcome, 1000.0, 0.05),
            }))];
            expected(text).evaluate(&record).outcome()
        };
        for (outcome, text, judged) in [
            (
                LoadOutcome::Sustained,
                "load.rate>=1100",
                ExpectationOutcome::Missed,
            ),
            (
                LoadOutcome::AtLeast,
                "load.rate>=1100",
                ExpectationOutcome::Undecided,
            ),
            (
                LoadOutcome::AtLeast,
                "load.rate>=940",
                ExpectationOutcome::Met,
            ),
            (
                LoadOutcome::AtLeast,
                "load.rate<=940",
                ExpectationOutcome::Missed,
            ),
        ] {
            assert_eq!(outcome_of(outcome, text), judged, "{outcome:?} {text}");
        }
    }
}
