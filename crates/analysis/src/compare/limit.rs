//! Conditions on a comparison, which fail a build when a disk gets slower:
//! `random-read-d32.iops<-5%`. Metrics have the names of `--expect`; the value is the change from
//! the baseline. And why a comparison cannot be made.

use crate::expect::Relation;
use diskproof_model::comparison::{
    Basis, Candidate, Condition, ConditionOutcome, Figure, MetricComparison, Ratio, Verdict,
};
use diskproof_model::measurement::OpKind;
use std::str::FromStr;

/// A condition under which a comparison counts as failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As given.
    pub expression: String,
    /// The metric to compare.
    pub metric: String,
    /// How the change must relate to the threshold.
    pub relation: Relation,
    /// The threshold as a share: −0.05 is 5 % less than the baseline.
    pub change: f64,
}

/// A condition that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No relation.
    #[error(
        "'{0}' is not a comparison; write WORKLOAD.METRIC<CHANGE with <, >, <= or >=, such as \
         random-read-d32.iops<-5% or commit-fdatasync.p99>10%"
    )]
    Relation(String),
    /// No metric.
    #[error("'{0}' has no metric; write WORKLOAD.METRIC, such as random-read-d32.iops")]
    Metric(String),
    /// No change in percent.
    #[error("'{0}' is not a change; write it in percent of the baseline, such as -5% or 10%")]
    Change(String),
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (metric, relation, change) =
            Relation::split(text).ok_or_else(|| LimitError::Relation(text.to_owned()))?;
        if !metric.contains('.') || metric.starts_with('.') || metric.ends_with('.') {
            return Err(LimitError::Metric(metric.to_owned()));
        }
        let percent = change
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok());
        // Nothing loses more than all of itself.
        let percent = percent.filter(|percent| percent.is_finite() && *percent >= -100.0);
        let change = percent.ok_or_else(|| LimitError::Change(change.to_owned()))? / 100.0;
        Ok(Self {
            expression: text.to_owned(),
            metric: metric.to_owned(),
            relation,
            change,
        })
    }
}

impl Limit {
    fn is_on(&self, metric: &MetricComparison) -> bool {
        // `random-read-d32.read.iops` is the same as `random-read-d32.iops` where there are reads
        // only.
        let (subject, figure) = (&metric.subject, metric.figure.as_str());
        let before = metric.metric.split_once(subject);
        let prefix = before.map_or("", |(prefix, _)| prefix);
        let in_full = |op: OpKind| format!("{prefix}{subject}.{}.{figure}", op.as_str());
        metric.metric == self.metric || metric.op.is_some_and(|op| in_full(op) == self.metric)
    }

    /// Holds it against a comparison.
    ///
    /// It holds when the change lies beyond the threshold and, where no change at all would not be
    /// beyond it, the 95 % interval excludes that there is none: noise alone must not fail a
    /// build. A threshold of −5 % is therefore passed over by a change that lies beyond it but
    /// might be chance.
    pub(super) fn evaluate(&self, candidate: &Candidate) -> Condition {
        let metric = candidate.metrics.iter().find(|metric| self.is_on(metric));
        let (outcome, why) = match metric {
            None => (
                ConditionOutcome::Unanswered,
                "one side does not have it, or has too few requests for a percentile".to_owned(),
            ),
            Some(metric) => self.judge(metric),
        };
        let comparable = metric.filter(|m| m.verdict != Verdict::NotComparable);
        let ratio = comparable.and_then(|m| m.ratio);
        Condition {
            expression: self.expression.clone(),
            candidate: candidate.side.label.clone(),
            change: ratio.map(|ratio| ratio.value - 1.0),
            outcome,
            why,
        }
    }

    fn judge(&self, metric: &MetricComparison) -> (ConditionOutcome, String) {
        if metric.verdict == Verdict::NotComparable {
            let why: Vec<&str> = metric.reasons.iter().map(|r| r.why.as_str()).collect();
            let why = format!("not comparable: {}", why.join("; "));
            return (ConditionOutcome::Unanswered, why);
        }
        let Some(ratio) = metric.ratio else {
            let why = "measured too briefly for an interval".to_owned();
            return (ConditionOutcome::Unanswered, why);
        };
        let change = ratio.value - 1.0;
        let (percent, interval) = (change * 100.0, interval_text(ratio));
        let says = format!("changed by {percent:+.1} % ({interval})");
        if !self.relation.holds(change, self.change) {
            return (ConditionOutcome::DoesNotHold, says);
        }
        let is_known = metric.variation.is_some() || metric.basis == Basis::Blocks;
        let surely = ratio.low_95 > 1.0 || ratio.high_95.is_some_and(|high| high < 1.0);
        if (is_known && surely) || self.relation.holds(0.0, self.change) {
            return (ConditionOutcome::Holds, says);
        }
        let why = if is_known {
            ": chance alone would explain it"
        } else {
            " in one run per side, but the variation between runs is unknown. Compare three \
             runs per side"
        };
        (ConditionOutcome::Undecided, says + why)
    }
}

fn interval_text(ratio: Ratio) -> String {
    let low = (ratio.low_95 - 1.0) * 100.0;
    match ratio.high_95 {
        Some(high) => format!("{low:+.1} % to {:+.1} %", (high - 1.0) * 100.0),
        None => format!("{low:+.1} % or more"),
    }
}

/// `iops`, `read.p99`, `average`
fn is_figure(name: &str) -> bool {
    let mut kinds = OpKind::ALL.into_iter();
    let of_kind = kinds.find_map(|op| name.strip_prefix(op.as_str())?.strip_prefix('.'));
    let name = of_kind.unwrap_or(name);
    let mut figures = Figure::ALL.into_iter();
    figures.any(|figure| figure.as_str() == name)
}

/// A misspelt metric would pass every build: every limit must name a metric of at least one
/// candidate, or a subject that one side has.
pub(super) fn vet(limits: &[Limit], candidates: &[Candidate]) -> Result<(), CompareError> {
    let is_known = |limit: &Limit| {
        let has = |candidate: &Candidate| {
            let unmatched = candidate.unmatched.iter().map(|u| &u.subject);
            let mut subjects = unmatched.chain(candidate.metrics.iter().map(|m| &m.subject));
            let names = |subject: &String| {
                let rest = limit.metric.strip_prefix(subject.as_str());
                let rest = rest.and_then(|rest| rest.strip_prefix('.'));
                rest.is_some_and(is_figure)
            };
            candidate.metrics.iter().any(|metric| limit.is_on(metric)) || subjects.any(names)
        };
        candidates.iter().any(has)
    };
    let Some(unknown) = limits.iter().find(|limit| !is_known(limit)) else {
        return Ok(());
    };
    let metrics = candidates.iter().flat_map(|c| &c.metrics);
    let mut known: Vec<&str> = metrics.map(|m| m.metric.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let known = if known.is_empty() {
        "none, because the runs have nothing in common".to_owned()
    } else {
        known.join(", ")
    };
    Err(CompareError::Metric {
        expression: unknown.expression.clone(),
        metric: unknown.metric.clone(),
        known,
    })
}

/// A comparison that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A margin outside of 0 % to 100 %.
    #[error("the margin {0} is not between 0 % and 100 %; use for example --margin 2%")]
    Margin(String),
    /// A side without runs.
    #[error("{0}: no run to compare; name at least one")]
    Empty(String),
    /// A condition on a metric that no run has.
    #[error("--fail-on '{expression}': no metric is named '{metric}'; use one of {known}")]
    Metric {
        /// As given.
        expression: String,
        /// What it names.
        metric: String,
        /// What there is.
        known: String,
    },
}
