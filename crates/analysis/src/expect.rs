//! Thresholds that a user sets on the command line, such as `random-read-d32.iops>=5000`: parsed,
//! and compared with the figures of a record, each with its interval.

use crate::estimate::sum_of;
use crate::mechanics::{reported_rpm, sold_bytes};
use diskproof_model::figure::{Metric, Named, Part, named, part_figure, threshold_names};
use diskproof_model::finding::Severity;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::OpKind;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{
    Estimate, Expectation, ExpectationOutcome, FilesRecord, Record, TaskResult, positive_interval,
};
use diskproof_model::row::{OpRow, Row};
use diskproof_model::surface::CurvePoint;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units;
use std::str::FromStr;

/// Multiple of the half-width by which a figure must lie off its threshold, so that the next run
/// decides in four of five cases: (1.96 + 0.84) / 1.96, from the 97.5 % and 80 % points of the
/// normal distribution.
const SPARE: f64 = 1.43;
/// The longest measured time that is suggested: a day.
const DECIDED_BY_NS_MAX: f64 = 86_400e9;
/// A run too short for an interval still decides a threshold that lies this many times above or
/// below its figure. Equal runs of a few operations differ by less.
const UNKNOWN_FACTOR: f64 = 2.0;
/// Takes the place of a workload's name.
const FINDINGS: &str = "findings";

/// What a threshold limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A figure of the catalogue. CPU time is in percent of one CPU.
    Figure(&'static Metric),
    /// Warnings and failures among the findings.
    Findings,
    /// Revolutions per minute, as the disk reports them.
    Rpm,
    /// Bytes that the disk reports to hold.
    DiskSize,
}

impl Quantity {
    /// Whether a plan must measure it. The others are known of any run, or of none.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Figure(_))
    }
}

/// How a figure must relate to its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Relation {
    /// Splits at the relation: what is compared with the threshold, how, and the threshold.
    pub(crate) fn split(text: &str) -> Option<(&str, Self, &str)> {
        let at = text.find(['<', '>'])?;
        let (figure, rest) = text.split_at(at);
        for (word, relation) in [
            (">=", Self::AtLeast),
            ("<=", Self::AtMost),
            (">", Self::Above),
            ("<", Self::Below),
        ] {
            if let Some(value) = rest.strip_prefix(word) {
                return Some((figure.trim(), relation, value.trim()));
            }
        }
        None
    }

    /// Whether a value meets the threshold.
    pub(crate) fn holds(self, observed: f64, threshold: f64) -> bool {
        match self {
            Self::AtLeast => observed >= threshold,
            Self::AtMost => observed <= threshold,
            Self::Above => observed > threshold,
            Self::Below => observed < threshold,
        }
    }

    /// Whether the first of two figures is less likely to meet the threshold.
    fn is_worse(self, one: f64, other: f64) -> bool {
        match self {
            Self::AtLeast | Self::Above => one < other,
            Self::AtMost | Self::Below => one > other,
        }
    }
}

/// A threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// As given.
    pub expression: String,
    /// Whether it is on a workload (or a step on files), on a part of a survey, or on neither.
    pub part: Part,
    /// Name of the workload, or the word for the part.
    pub workload: String,
    /// The kind of operation, where it was named.
    pub op: Option<OpKind>,
    /// The figure.
    pub quantity: Quantity,
    /// How it must relate to the threshold.
    pub relation: Relation,
    /// The threshold, in the unit of the metric.
    pub threshold: f64,
}

/// A threshold that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpectError {
    /// No comparison.
    #[error(
        "'{0}' is not a comparison; write WORKLOAD.METRIC>=VALUE with >=, <=, > or <, such as \
         random-read-d32.iops>=5000"
    )]
    Relation(String),
    /// No known metric.
    #[error(
        "'{0}' has no metric; write WORKLOAD.METRIC or WORKLOAD.read.METRIC with one of {names}; \
         or findings=0",
        names = threshold_names().join(", ")
    )]
    Metric(String),
    /// A metric without a workload.
    #[error(
        "'{metric}' names no workload; write WORKLOAD.{metric}, such as \
         random-read-d32.{metric}{rest}"
    )]
    Workload {
        /// The metric.
        metric: String,
        /// The relation and the threshold, as given.
        rest: String,
    },
    /// A number of findings that is not an upper limit.
    #[error(
        "'{0}': findings counts warnings and failures; write findings=0, or a limit such as \
         findings<=2"
    )]
    Findings(String),
    /// CPU time of one kind of operation.
    #[error(
        "'{0}': cpu applies to the whole workload. Omit the kind of operation ({kinds})",
        kinds = OpKind::ALL.map(OpKind::as_str).join(", ")
    )]
    CpuOfOp(String),
    /// A value that does not fit the metric.
    #[error("'{value}' is not {what}")]
    Value {
        /// As given.
        value: String,
        /// What it should have been, with an example.
        what: &'static str,
    },
}

impl FromStr for Expected {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Some(limit) = text.strip_prefix(FINDINGS) {
            return findings_limit(text, limit);
        }
        let (figure, relation, value) =
            Relation::split(text).ok_or_else(|| ExpectError::Relation(text.to_owned()))?;
        if threshold_names().contains(&figure) {
            return Err(ExpectError::Workload {
                metric: figure.to_owned(),
                rest: text[figure.len()..].trim_start().to_owned(),
            });
        }
        let named = named(figure).ok_or_else(|| ExpectError::Metric(figure.to_owned()))?;
        if is_cpu(named.metric) && named.op.is_some() {
            return Err(ExpectError::CpuOfOp(figure.to_owned()));
        }
        Ok(Self {
            expression: text.to_owned(),
            part: named.part,
            workload: named.subject.to_owned(),
            op: named.op,
            quantity: Quantity::Figure(named.metric),
            relation,
            threshold: threshold(named.metric, value)?,
        })
    }
}

/// CPU time is the only share that a threshold can have.
fn is_cpu(metric: &Metric) -> bool {
    metric.unit == "1"
}

/// `findings=0`, `findings<=2`, `findings<3`.
fn findings_limit(text: &str, limit: &str) -> Result<Expected, ExpectError> {
    let Some((relation, count)) = parse_findings_limit(limit.trim_start()) else {
        return Err(ExpectError::Findings(text.to_owned()));
    };
    Ok(Expected {
        expression: text.to_owned(),
        part: Part::Other,
        workload: FINDINGS.to_owned(),
        op: None,
        quantity: Quantity::Findings,
        relation,
        threshold: f64::from(count),
    })
}

fn parse_findings_limit(limit: &str) -> Option<(Relation, u32)> {
    for (word, relation) in [("<=", Relation::AtMost), ("<", Relation::Below)] {
        if let Some(count) = limit.strip_prefix(word) {
            return Some((relation, count.trim().parse().ok()?));
        }
    }
    let count = match limit.strip_prefix("==") {
        Some(count) => count,
        None => limit.strip_prefix('=')?,
    };
    // Equal to a larger number is no sensible expectation.
    match count.trim().parse::<u32>() {
        Ok(0) => Some((Relation::AtMost, 0)),
        _ => None,
    }
}

fn threshold(metric: &Metric, value: &str) -> Result<f64, ExpectError> {
    let (threshold, what) = match metric.unit {
        "1/s" => (
            scaled_number(value),
            "a number of operations per second, such as 5000 or 5k",
        ),
        "B/s" => (
            parse_throughput(value),
            "a throughput; write it per second, such as 200MB/s or 1.5GiB/s",
        ),
        _ if is_cpu(metric) => (
            parse_percent(value),
            "a share of one CPU; write it in percent, such as 50%",
        ),
        _ => (
            parse_latency(value),
            "a latency; write it with ns, us, ms or s, such as 200us or 5ms",
        ),
    };
    threshold.ok_or(ExpectError::Value {
        value: value.to_owned(),
        what,
    })
}

fn parse_throughput(value: &str) -> Option<f64> {
    let bytes = units::parse_size(value.strip_suffix("/s")?).ok()?;
    Some(bytes as f64)
}

fn parse_percent(value: &str) -> Option<f64> {
    number(value.strip_suffix('%')?)
}

fn parse_latency(value: &str) -> Option<f64> {
    // A bare number would be seconds, which no user means for a latency.
    if !value.ends_with(char::is_alphabetic) {
        return None;
    }
    let ns = units::parse_duration(value).ok()?;
    Some(ns as f64)
}

/// A number with an optional k or M, which are 10³ and 10⁶ as in the results.
pub fn scaled_number(text: &str) -> Option<f64> {
    let text = text.trim();
    for (suffix, factor) in [("k", 1e3), ("K", 1e3), ("M", 1e6)] {
        if let Some(digits) = text.strip_suffix(suffix) {
            return Some(number(digits)? * factor);
        }
    }
    number(text)
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    if number.is_finite() && number >= 0.0 {
        Some(number)
    } else {
        None
    }
}

impl Expected {
    /// Holds the threshold against a record. Of several targets that ran the workload, the worst
    /// counts. The observed figure is in the unit of the metric.
    pub fn evaluate(&self, record: &Record) -> Expectation {
        let mut worst: Option<Judged> = None;
        for observation in self.observations(record) {
            let judged = self.judged(observation, record);
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
        if let Some(seen) = judged.seen {
            match seen.spread {
                Uncertainty::AtLeast => expectation.observed_at_least = Some(seen.value),
                _ => expectation.observed = Some(seen.value),
            }
            expectation.interval = seen.interval();
            if expectation.undecided && expectation.objection.is_none() {
                expectation.decided_by_ns = self.decided_by_ns(seen, record);
            }
        }
        expectation
    }

    /// What a figure says about the threshold. One that is not the disk's says nothing.
    fn judged(&self, observation: Observation, record: &Record) -> Judged {
        let outcome = self.outcome(observation.seen);
        // The longest latency was that long, whoever answered.
        let has_happened = self.is_longest_latency() && outcome == ExpectationOutcome::Missed;
        let mut judged = Judged {
            outcome,
            seen: observation.seen,
            objection: None,
        };
        if let Some(source) = observation.source
            && let Some(objection) = record.objection(source)
            && observation.seen.is_some()
            && !has_happened
            && !self.is_stop_rule(record)
        {
            judged.outcome = ExpectationOutcome::Undecided;
            judged.objection = Some(objection.text());
        }
        judged
    }

    /// Whether it ended the run (`--abort-above`), and so is about what happened.
    fn is_stop_rule(&self, record: &Record) -> bool {
        let Some(ping) = record.plan.ping() else {
            return false;
        };
        match ping.requests.abort_above_ns {
            Some(ns) => self.is_longest_latency() && ns as f64 == self.threshold,
            None => false,
        }
    }

    fn is_longest_latency(&self) -> bool {
        // A curve has a `max`, too: its fastest rate.
        matches!(
            self.quantity,
            Quantity::Figure(metric) if metric.threshold == "max" && metric.unit == "ns"
        )
    }

    /// The figure on each target.
    fn observations(&self, record: &Record) -> Vec<Observation> {
        let metric = match self.quantity {
            Quantity::Figure(metric) => metric,
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
                _ => first_result(record, |result| matches!(result, TaskResult::Survey(_))),
            };
            return vec![Observation {
                seen: observe_part(record, self.part, metric),
                source,
            }];
        }
        if let Some(files) = record.files() {
            return vec![Observation {
                seen: self.observe_step(files, metric),
                source: first_result(record, |result| matches!(result, TaskResult::Files(_))),
            }];
        }
        let mut observations = Vec::new();
        for (index, m) in record.measurements.iter().enumerate() {
            if m.data.workload.name == self.workload {
                observations.push(Observation {
                    seen: observe(metric, m.cpu_share(), &self.ops(m)),
                    source: Some(FigureSource::Measurement(index)),
                });
            }
        }
        observations
    }

    /// The figure of the step on files that it names.
    fn observe_step(&self, files: &FilesRecord, metric: &Metric) -> Option<Observed> {
        let step = files
            .steps
            .iter()
            .find(|row| row.data.step.name() == self.workload && row.data.op.count > 0)?;
        observe(metric, step.cpu_share(), &[step.op()])
    }

    /// What a figure says about the threshold: its whole interval decides.
    fn outcome(&self, seen: Option<Observed>) -> ExpectationOutcome {
        let Some(seen) = seen else {
            return ExpectationOutcome::Undecided;
        };
        let ends = match seen.spread {
            Uncertainty::Exact => [seen.value; 2],
            Uncertainty::Unknown => [seen.value / UNKNOWN_FACTOR, seen.value * UNKNOWN_FACTOR],
            Uncertainty::Interval(ends) => ends,
            Uncertainty::AtLeast => [seen.value, f64::INFINITY],
        };
        match ends.map(|end| self.relation.holds(end, self.threshold)) {
            [true, true] => ExpectationOutcome::Met,
            [false, false] => ExpectationOutcome::Missed,
            _ => ExpectationOutcome::Undecided,
        }
    }

    /// The measured time that decides it in four of five cases: the interval narrows with the root
    /// of the time. A percentile needs operations beyond it first.
    fn decided_by_ns(&self, seen: Observed, record: &Record) -> Option<u64> {
        let workloads = record.measurements.iter();
        let slowest = workloads
            .filter(|m| m.data.workload.name == self.workload)
            .max_by_key(|m| m.data.wall_ns)?;
        let times = match seen.spread {
            Uncertainty::AtLeast => {
                let ops = self.ops(slowest);
                let Quantity::Figure(metric) = self.quantity else {
                    return None;
                };
                let (op, quantile) = (ops.first()?, metric.quantile()?);
                LatencyHistogram::count_for(quantile) as f64 / op.data.count as f64
            }
            Uncertainty::Exact | Uncertainty::Unknown => return None,
            Uncertainty::Interval([low, high]) => {
                let arm = if self.threshold > seen.value {
                    high - seen.value
                } else {
                    seen.value - low
                };
                (SPARE * arm / (self.threshold - seen.value)).powi(2)
            }
        };
        let needed_ns = times * slowest.data.wall_ns as f64;
        if needed_ns <= DECIDED_BY_NS_MAX {
            Some(needed_ns as u64)
        } else {
            None
        }
    }

    fn is_worse(&self, one: &Judged, other: &Judged) -> bool {
        match (one.seen, other.seen) {
            _ if one.outcome != other.outcome => one.outcome > other.outcome,
            (None, Some(_)) => true,
            (Some(one), Some(other)) => self.relation.is_worse(one.value, other.value),
            (_, None) => false,
        }
    }

    /// The operations of a workload that it names.
    fn ops<'a>(&self, m: &'a Row) -> Vec<OpRow<'a>> {
        match self.op {
            Some(op) => m.op(op).into_iter().collect(),
            None => m.headline_ops().into_iter().map(|(_, op)| op).collect(),
        }
    }
}

/// A figure that a threshold names, and where it comes from.
#[derive(Debug, Clone, Copy)]
struct Observation {
    /// The figure; `None` where it was not measured.
    seen: Option<Observed>,
    /// Its source; `None` of what is no measured figure.
    source: Option<FigureSource>,
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
            seen: Some(Observed::exact(count as f64)),
            source: None,
        }
    }

    fn reported_rpm(record: &Record) -> Self {
        Self {
            seen: reported_rpm(record).map(|rpm| Observed::exact(f64::from(rpm))),
            source: None,
        }
    }

    fn disk_size(target: &TargetIdentity) -> Self {
        Self {
            seen: sold_bytes(target).map(|bytes| Observed::exact(bytes as f64)),
            source: None,
        }
    }
}

/// The first result of a kind, as the source of its figures.
fn first_result(record: &Record, is_wanted: fn(&TaskResult) -> bool) -> Option<FigureSource> {
    let index = record.results.iter().position(is_wanted)?;
    Some(FigureSource::Result(index))
}

/// What a figure says about a threshold.
#[derive(Debug, Clone)]
struct Judged {
    outcome: ExpectationOutcome,
    seen: Option<Observed>,
    /// Why the figure may not decide.
    objection: Option<String>,
}

impl Default for Judged {
    fn default() -> Self {
        Self {
            outcome: ExpectationOutcome::Undecided,
            seen: None,
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
}

/// The figure that a name means on the first target that has it, as a threshold on it is judged.
/// `None` where the record does not have it, or has too few operations for a percentile.
pub(crate) fn named_figure(record: &Record, named: &Named<'_>) -> Option<NamedFigure> {
    let any = Expected {
        expression: String::new(),
        part: named.part,
        workload: named.subject.to_owned(),
        op: named.op,
        quantity: Quantity::Figure(named.metric),
        relation: Relation::AtLeast,
        threshold: 0.0,
    };
    for observation in any.observations(record) {
        let judged = any.judged(observation, record);
        let Some(seen) = judged.seen else {
            continue;
        };
        if seen.spread == Uncertainty::AtLeast {
            continue;
        }
        // A threshold of CPU time is written in percent, the figure is a share.
        let scale = if is_cpu(named.metric) { 0.01 } else { 1.0 };
        let estimate = Estimate {
            n: 1,
            value: seen.value * scale,
            half_width_95: seen
                .interval()
                .map(|[low, high]| scale * (high - low) / 2.0),
            unit: named.metric.unit.to_owned(),
        };
        return Some(NamedFigure {
            estimate,
            objection: judged.objection,
        });
    }
    None
}

fn observe_part(record: &Record, part: Part, metric: &Metric) -> Option<Observed> {
    let figure = part_figure(record, part, metric.threshold)?;
    Some(match part {
        Part::Curve if figure.n.is_none() => at_point(figure.value, record.curve()),
        // One access after the other: the rate is the inverse of the mean time.
        Part::Access(_) if metric.unit == "1/s" => {
            let mean = part_figure(record, part, "mean")?.estimate();
            let half_width = mean.relative_half_width().map(|width| figure.value * width);
            Observed::within(figure.value, half_width)
        }
        Part::Load => Observed::within(figure.value, figure.half_width_95),
        _ if figure.n.is_none() => Observed::exact(figure.value),
        _ => Observed::of(&figure.estimate()),
    })
}

/// A figure of the operations that a threshold names.
fn observe(metric: &Metric, cpu_share: f64, ops: &[OpRow<'_>]) -> Option<Observed> {
    if is_cpu(metric) {
        return Some(Observed::exact(cpu_share * 100.0));
    }
    if metric.unit == "ns" {
        // Reads and writes of a mix have no common latency.
        return match ops {
            [op] if op.data.count > 0 => latency(metric, *op),
            _ => None,
        };
    }
    let mut estimates = Vec::new();
    for op in ops {
        estimates.push(metric.of_operation(*op)?);
    }
    Some(Observed::of(&sum_of(estimates)?))
}

fn latency(metric: &Metric, op: OpRow<'_>) -> Option<Observed> {
    let Some(quantile) = metric.quantile() else {
        return Some(match metric.threshold {
            "mean" => mean_latency(op),
            _ => Observed::exact(metric.of_operation(op)?.value),
        });
    };
    let histogram = &op.data.latency;
    match histogram.percentile(quantile) {
        Some(ns) => {
            let spread = quantile_spread(histogram, quantile);
            Some(Observed::new(ns as f64, spread))
        }
        None => quantile_at_least(histogram, quantile),
    }
}

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observed {
    /// In the unit of the metric.
    pub(super) value: f64,
    /// How well it is known.
    pub(super) spread: Uncertainty,
}

/// How well a figure is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Uncertainty {
    /// It is what happened, such as the longest latency.
    Exact,
    /// From the lower to the upper end of the 95 % interval.
    Interval([f64; 2]),
    /// Too little was measured for an interval.
    Unknown,
    /// The value is the lower end of the interval; too little was measured for the upper end.
    AtLeast,
}

impl Uncertainty {
    /// Rates and latencies are positive: the lower end approaches zero and never reaches it.
    pub(super) fn around(value: f64, half_width: f64) -> Self {
        Self::Interval(positive_interval(value, half_width))
    }
}

impl Observed {
    fn new(value: f64, spread: Uncertainty) -> Self {
        Self { value, spread }
    }

    pub(super) fn exact(value: f64) -> Self {
        Self::new(value, Uncertainty::Exact)
    }

    pub(super) fn of(estimate: &Estimate) -> Self {
        Self::within(estimate.value, estimate.half_width_95)
    }

    /// A figure with the half-width of its interval, where that is known.
    fn within(value: f64, half_width: Option<f64>) -> Self {
        match half_width {
            Some(half_width) => Self::new(value, Uncertainty::around(value, half_width)),
            None => Self::new(value, Uncertainty::Unknown),
        }
    }

    pub(super) fn interval(self) -> Option<[f64; 2]> {
        match self.spread {
            Uncertainty::Interval(ends) => Some(ends),
            Uncertainty::Exact | Uncertainty::Unknown | Uncertainty::AtLeast => None,
        }
    }
}

/// The fastest or slowest rate of a curve, as well as its point is known.
pub(super) fn at_point(rate: f64, points: &[CurvePoint]) -> Observed {
    let point = points.iter().find(|point| point.bytes_per_second == rate);
    if let Some(point) = point
        && let Some(error) = point.standard_error
    {
        return Observed::within(rate, Some(NORMAL_95 * error * rate));
    }
    Observed::exact(rate)
}

/// In a closed loop, the mean latency varies as the rate does (Little's law). At a fixed rate the
/// latencies themselves tell, and the wider of both counts.
pub(super) fn mean_latency(op: OpRow<'_>) -> Observed {
    let value = op.figures.latency.mean;
    let deviation = op.data.latency.deviation_ns(value);
    let by_latencies = NORMAL_95 * deviation / (op.data.count as f64).sqrt();
    let half_width = op
        .figures
        .iops
        .relative_half_width()
        .map(|by_rate| (value * by_rate).max(by_latencies));
    Observed::within(value, half_width)
}

/// The 97.5 % quantile of the normal distribution.
const NORMAL_95: f64 = 1.96;
/// How certain each end of a 95 % interval is.
const ONE_SIDED: f64 = 0.975;

/// The interval of a quantile from the order statistics around it (Hahn and Meeker, Statistical
/// Intervals, 1991, 5.2).
pub(super) fn quantile_spread(histogram: &LatencyHistogram, quantile: f64) -> Uncertainty {
    let width = NORMAL_95 * (quantile * (1.0 - quantile) / histogram.count() as f64).sqrt();
    let low_ns = histogram.value_at(quantile - width);
    let high_ns = histogram.value_at(quantile + width);
    Uncertainty::Interval([low_ns as f64, high_ns as f64])
}

/// What few operations say about a quantile. The slowest of them is no upper limit of it, but the
/// lower end of its interval needs none beyond it: the highest order statistic that lies at or
/// below the quantile in 97.5 of 100 cases. `None` where even the fastest does not.
pub(super) fn quantile_at_least(histogram: &LatencyHistogram, quantile: f64) -> Option<Observed> {
    let count = histogram.count() as f64;
    // From the top: the chance that exactly so many of the operations lie at or below it.
    let (mut rank, mut exactly) = (count, quantile.powf(count));
    let mut at_least = exactly;
    while at_least < ONE_SIDED && rank >= 1.0 {
        exactly *= rank / (count - rank + 1.0) * (1.0 - quantile) / quantile;
        at_least += exactly;
        rank -= 1.0;
    }
    if rank < 1.0 {
        return None;
    }
    // Half a rank keeps the division from reaching the next one.
    let value_ns = histogram.value_at((rank - 0.5) / count);
    Some(Observed::new(value_ns as f64, Uncertainty::AtLeast))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, measured, states};
    use diskproof_model::surface::SeekPattern;

    fn expected(text: &str) -> Expected {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
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
    fn wide_intervals_of_positive_figures_stay_above_zero() {
        let low = |half_width: f64| match Uncertainty::around(1000.0, half_width) {
            Uncertainty::Interval([low, _]) => low,
            _ => panic!("an interval"),
        };
        assert_eq!([low(100.0), low(500.0)], [900.0, 500.0]);
        // 1000 ÷ (1 + 2 × 1.5)
        assert_eq!([low(1500.0), low(0.0)], [250.0, 1000.0]);
        assert!(low(1e9) > 0.0);
    }

    #[test]
    fn quantiles_have_intervals_from_the_samples_around_them() {
        let mut histogram = LatencyHistogram::new();
        (1..=1000_u64).for_each(|us| histogram.record(us * 1000));
        // 95 % ± 1.96 × √(0.95 × 0.05 ÷ 1000) = 93.65 % to 96.35 %.
        let Uncertainty::Interval([low, high]) = quantile_spread(&histogram, 0.95) else {
            panic!("an interval")
        };
        assert!((936_000.0..=938_500.0).contains(&low), "{low}");
        assert!((963_000.0..=965_500.0).contains(&high), "{high}");
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
            let mut slow = run.1[3].clone();
            slow.target = 1;
            for cell in slow.ops.values_mut().flat_map(|op| &mut op.series.cells) {
                cell.ops /= 2;
            }
            run.1.push(slow);
            run.0.targets.push(fixture::target());
        });
        let outcome = expected("random-read-d32.iops>=9000").evaluate(&record);
        assert_eq!((outcome.observed, outcome.met), (Some(5000.0), false));
    }

    #[test]
    fn errors_say_what_is_possible() {
        for (text, part) in [
            ("random-read-d32.iops=5000", ">=, <=, > or <"),
            ("random-read-d32.speed>5", "p99.99"),
            ("iops>5", "WORKLOAD.iops"),
            ("a.iops>=8kB", "5000"),
            ("findings", "findings=0"),
            ("findings=1", "findings=0"),
            ("findings>=0", "findings=0"),
            ("findings<=few", "findings=0"),
            ("a.throughput>=200", "200MB/s"),
            ("curve.average>=80", "200MB/s"),
            ("a.p99<=5", "5ms"),
            ("a.read.cpu<=5%", "workload"),
            ("a.cpu<=5", "50%"),
            ("a.iops>=NaN", "5000"),
        ] {
            states(&text.parse::<Expected>().unwrap_err().to_string(), &[part]);
        }
    }
}

#[cfg(test)]
mod observed_tests {
    use super::*;

    fn at_least(latencies: u64, quantile: f64) -> Option<u64> {
        let mut histogram = LatencyHistogram::new();
        (1..=latencies).for_each(|ns| histogram.record(ns));
        quantile_at_least(&histogram, quantile).map(|seen| seen.value as u64)
    }

    #[test]
    fn lower_end_of_a_quantile_is_the_order_statistic_of_the_binomial_distribution() {
        // One of one lies at or below the 99 % quantile in 99 of 100 cases, and at or below the
        // median in one of two.
        assert_eq!(at_least(1, 0.99), Some(1));
        assert_eq!(at_least(1, 0.5), None);
        // 1 - 0.5^5 = 0.969 and 1 - 0.5^6 = 0.984.
        assert_eq!((at_least(5, 0.5), at_least(6, 0.5)), (None, Some(1)));
        // 0.99^2 = 0.980, 0.99^3 = 0.970, 0.99^100 = 0.366: with one above, 0.736, with two, 0.921,
        // with three, 0.982.
        assert_eq!((at_least(2, 0.99), at_least(3, 0.99)), (Some(2), Some(2)));
        assert_eq!(at_least(100, 0.99), Some(97));
    }
}
