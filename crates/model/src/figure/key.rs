//! Identifies figures by keys, and names what they measure.

use crate::comparison::Direction;
use crate::estimate::Estimate;
use crate::row::PhaseKind;
use crate::surface::SeekPattern;
use std::borrow::Cow;

/// A quantity that figures measure, with its name in each format. The names are contracts.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name in tables such as CSV; empty where tables omit it.
    pub name: &'static str,
    /// `1/s`, `B/s`, `ns`, `B`, `1`; empty where each figure has its own.
    pub unit: &'static str,
    /// The name in thresholds such as `random-read-d1.p99<=5ms`; empty where it cannot have one.
    pub threshold: &'static str,
    /// The family of metrics for Prometheus, without the prefix `diskproof_`; empty where it is
    /// not exported. A `*` stands for the unit of the figure.
    pub family: &'static str,
}

impl Metric {
    /// The part of the name that names a point of the distribution: `min`, `p99`, `mean`, `max`.
    fn statistic(&self) -> &'static str {
        self.name.rsplit('_').next().unwrap_or_default()
    }

    /// The share of latencies that do not exceed it; `None` of other figures.
    pub fn quantile(&self) -> Option<f64> {
        let digits = self.statistic().strip_prefix('p')?.replace('.', "");
        format!("0.{digits}").parse().ok()
    }

    /// The place among the figures of one distribution: percentiles precede the mean.
    pub fn rank(&self) -> u8 {
        match self.statistic() {
            "min" => 0,
            "max" => 3,
            _ if self.quantile().is_some() => 1,
            _ => 2,
        }
    }
}

impl Direction {
    /// The better direction for figures of this unit.
    pub fn of_unit(unit: &str) -> Self {
        if unit == "ns" {
            Self::Lower
        } else {
            Self::Higher
        }
    }
}

/// The part of a record that a figure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// A workload.
    #[default]
    Workload,
    /// Transfer rate by position.
    Curve,
    /// The same bytes repeatedly.
    Burst,
    /// Access times of a pattern.
    Access(SeekPattern),
    /// The highest rate that keeps a promise.
    Load,
    /// A step on many small files.
    FileStep,
    /// The observed load of a device.
    Observed,
    /// Anything else.
    Other,
}

/// The labels of an exported figure: pairs of a name and a value.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The part of a record that a figure belongs to. Together with the metric it identifies the
/// figure.
#[derive(Debug, Clone, Default)]
pub struct Key<'r> {
    /// The part of the record.
    pub part: Part,
    /// The workload, or the part of a survey such as `curve` or `access-random`.
    pub subject: Cow<'r, str>,
    /// Index of its target.
    pub target: usize,
    /// Index into `measurements`, of a workload.
    pub measurement: Option<usize>,
    /// Index into `results`, of what came of a task beyond its workloads.
    pub result: Option<usize>,
    /// The kind of operation; empty for a figure of the whole subject.
    pub op: &'static str,
    /// The phase; `None` for a figure of the steady time.
    pub phase: Option<PhaseKind>,
    /// The position on the target.
    pub offset_bytes: Option<u64>,
    /// Distance from the previous access.
    pub distance_bytes: Option<u64>,
    /// The time, in seconds after the start of the measured time.
    pub time_s: Option<f64>,
    /// The workloads that ran at the same time on the same target.
    pub together_with: &'r [String],
    /// Labels that identify the subject where figures are exported; empty where they are not.
    pub labels: Labels,
    /// A label that tells figures of one subject apart.
    pub label: Option<(&'static str, String)>,
    /// The number of events, where the figure has no number of its own.
    pub(crate) n: Option<u64>,
    /// The unit, where the metric has none.
    pub(crate) unit: &'r str,
}

impl<'r> Key<'r> {
    pub(crate) fn new(part: Part, subject: impl Into<Cow<'r, str>>) -> Self {
        Self {
            part,
            subject: subject.into(),
            ..Self::default()
        }
    }

    // Each of these sets one field of the key.

    pub(crate) fn part(mut self, part: Part, subject: impl Into<Cow<'r, str>>) -> Self {
        self.part = part;
        self.subject = subject.into();
        self
    }

    pub(crate) fn target(mut self, target: usize) -> Self {
        self.target = target;
        self
    }

    pub(crate) fn op(mut self, op: &'static str) -> Self {
        self.op = op;
        self
    }

    pub(crate) fn label(mut self, name: &'static str, value: &str) -> Self {
        self.label = Some((name, value.to_owned()));
        self
    }

    pub(crate) fn sample_count(mut self, n: u64) -> Self {
        self.n = Some(n);
        self
    }

    pub(crate) fn time(mut self, seconds: f64) -> Self {
        self.time_s = Some(seconds);
        self
    }

    pub(crate) fn offset(mut self, offset_bytes: u64) -> Self {
        self.offset_bytes = Some(offset_bytes);
        self
    }
}

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure<'r> {
    /// The key that identifies the figure together with the metric.
    pub key: Key<'r>,
    /// The quantity that is measured.
    pub metric: &'static Metric,
    /// The figure, in `unit`.
    pub value: f64,
    /// Half of its 95 % interval.
    pub half_width_95: Option<f64>,
    /// The number of independent batches or events that it rests on.
    pub n: Option<u64>,
    /// The unit of the value.
    pub unit: &'r str,
    /// Figures of one distribution have the same number; it ascends.
    pub group: usize,
}

impl Figure<'_> {
    /// The name of the figure in tables: `latency_p99`, `phase_burst_iops`.
    pub fn name(&self) -> Cow<'static, str> {
        match self.key.phase {
            Some(phase) => {
                let phase_name = phase.as_str().replace('-', "_");
                format!("phase_{phase_name}_{}", self.metric.name).into()
            }
            None => self.metric.name.into(),
        }
    }

    /// True of a rate of nothing without an interval: zero is only its lower limit, so exports
    /// leave it out.
    pub fn is_undecided_rate(&self) -> bool {
        matches!(self.unit, "1/s" | "B/s") && self.estimate().is_unknown()
    }

    /// The figure with its error, as records store it.
    pub fn estimate(&self) -> Estimate {
        Estimate {
            n: self.n.unwrap_or(1),
            value: self.value,
            half_width_95: self.half_width_95,
            unit: self.unit.to_owned(),
        }
    }
}
