//! Evaluates the conditions under which a comparison counts as failed, such as
//! `random-read-d32.iops<-5%`: a build can fail when a disk gets slower. Metrics have the names of
//! `--expect`, and the value is the change from the baseline.

use super::error::CompareError;
use crate::expect::Relation;
use crate::words::uncapitalised;
use diskproof_model::comparison::{
    Basis, Candidate, Condition, ConditionOutcome, Figure, MetricComparison, Ratio, Side, Verdict,
};
use diskproof_model::measurement::OpKind;
use std::collections::BTreeSet;
use std::str::FromStr;

/// A condition under which a comparison counts as failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The condition as the user wrote it.
    pub expression: String,
    /// The metric, such as `random-read-d32.iops`.
    pub metric: String,
    /// The relation that fails the comparison, between the change and the threshold.
    pub relation: Relation,
    /// The threshold as a share: −0.05 is 5 % less than the baseline.
    pub change: f64,
}

/// A condition that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// It has no relation.
    #[error(
        "'{0}' is not a comparison; write WORKLOAD.METRIC<CHANGE with <, >, <= or >=, such as \
         random-read-d32.iops<-5% or commit-fdatasync.p99>10%"
    )]
    Relation(String),
    /// It does not name a metric.
    #[error("'{0}' has no metric; write WORKLOAD.METRIC, such as random-read-d32.iops")]
    Metric(String),
    /// Its value is not a change in percent.
    #[error("'{0}' is not a change; write it in percent of the baseline, such as -5% or 10%")]
    Change(String),
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expression = text.trim();
        let (metric, relation, change) = Relation::split(expression)
            .ok_or_else(|| LimitError::Relation(expression.to_owned()))?;
        if !metric.contains('.') || metric.starts_with('.') || metric.ends_with('.') {
            return Err(LimitError::Metric(metric.to_owned()));
        }
        let Some(percent) = parse_percent(change) else {
            return Err(LimitError::Change(change.to_owned()));
        };
        // No figure loses more than all of itself, so that the condition would pass for ever.
        if relation == Relation::Below && percent <= -100.0 {
            return Err(LimitError::Change(change.to_owned()));
        }
        Ok(Self {
            expression: expression.to_owned(),
            metric: metric.to_owned(),
            relation,
            change: percent / 100.0,
        })
    }
}

/// The number before a percent sign; `None` of any other text.
fn parse_percent(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    // A loss of more than 100 % is impossible.
    if percent.is_finite() && percent >= -100.0 {
        Some(percent)
    } else {
        None
    }
}

impl Limit {
    /// Returns `true` if the condition names this metric.
    fn names_metric(&self, metric: &MetricComparison) -> bool {
        if metric.metric == self.metric {
            return true;
        }
        // `random-read-d32.read.iops` is the same as `random-read-d32.iops` where there are reads
        // only.
        let Some(op) = metric.op else {
            return false;
        };
        let (subject, figure) = (metric.subject.as_str(), metric.figure.as_str());
        let prefix = match metric.metric.split_once(subject) {
            Some((prefix, _)) => prefix,
            None => "",
        };
        self.metric == format!("{prefix}{subject}.{}.{figure}", op.as_str())
    }

    /// The metric of the condition as it is spelled for one target of several; `None` where the
    /// condition does not name this metric, or names its target.
    fn spelled_with_target(&self, metric: &MetricComparison) -> Option<String> {
        let prefix = target_prefix(metric)?;
        let with_target = Self {
            metric: format!("{prefix}{}", self.metric),
            ..self.clone()
        };
        if with_target.names_metric(metric) {
            Some(with_target.metric)
        } else {
            None
        }
    }

    /// The spellings that name a target, where a candidate has several and the condition names
    /// none of them.
    fn spellings_with_targets(&self, candidate: &Candidate) -> Vec<String> {
        candidate
            .metrics
            .iter()
            .filter_map(|metric| self.spelled_with_target(metric))
            .collect()
    }

    /// Returns `true` if a candidate has the metric, or one side has its subject.
    fn is_known_in(&self, candidate: &Candidate) -> bool {
        for metric in &candidate.metrics {
            let prefix = target_prefix(metric).unwrap_or_default();
            let subject = format!("{prefix}{}", metric.subject);
            if self.names_metric(metric) || self.is_figure_of(&subject) {
                return true;
            }
        }
        candidate
            .unmatched
            .iter()
            .any(|unmatched| self.is_figure_of(&unmatched.subject))
    }

    /// Returns `true` if the condition names a figure of this subject, which has the number of its
    /// target before it where there are several.
    fn is_figure_of(&self, subject: &str) -> bool {
        let Some(rest) = self.metric.strip_prefix(subject) else {
            return false;
        };
        match rest.strip_prefix('.') {
            Some(name) => is_figure(subject, name),
            None => false,
        }
    }

    /// Evaluates the condition on a candidate of this baseline. While a disk of either side
    /// failed, no condition passes: its figures are not to be relied on.
    pub(super) fn evaluate(&self, baseline: &Side, candidate: &Candidate) -> Condition {
        let condition = self.evaluate_figures(candidate);
        let failure = baseline.failure().or_else(|| candidate.side.failure());
        match (condition.outcome, failure) {
            (ConditionOutcome::DoesNotHold | ConditionOutcome::Undecided, Some(failure)) => {
                Condition {
                    outcome: ConditionOutcome::Unanswered,
                    why: format!("{}: {}", failure.run, uncapitalised(&failure.title)),
                    ..condition
                }
            }
            (ConditionOutcome::Holds | ConditionOutcome::Unanswered, _) | (_, None) => condition,
        }
    }

    /// Evaluates the condition on the figures of a candidate.
    ///
    /// It holds if the whole 95 % interval of the change lies beyond the threshold, does not hold
    /// if none of it does, and is undecided in between, as a threshold of `--expect` is. An
    /// interval from one run per side does not show how runs vary, so that it proves no change; it
    /// suffices where no change at all lies beyond the threshold.
    fn evaluate_figures(&self, candidate: &Candidate) -> Condition {
        let metric = candidate
            .metrics
            .iter()
            .find(|metric| self.names_metric(metric));
        let JudgedLimit { outcome, why } = match metric {
            Some(metric) => self.judge(metric),
            None => JudgedLimit {
                outcome: ConditionOutcome::Unanswered,
                why: self.why_missing(candidate),
            },
        };
        let change = match metric {
            Some(metric) if metric.verdict != Verdict::NotComparable => {
                metric.ratio.map(|ratio| ratio.value - 1.0)
            }
            _ => None,
        };
        Condition {
            expression: self.expression.clone(),
            candidate: candidate.side.label.clone(),
            change,
            outcome,
            why,
        }
    }

    /// The reason why a candidate does not have the metric.
    fn why_missing(&self, candidate: &Candidate) -> String {
        for unmatched in &candidate.unmatched {
            if self.is_figure_of(&unmatched.subject)
                && let Some(why) = &unmatched.why
            {
                return why.clone();
            }
        }
        let spellings = self.spellings_with_targets(candidate);
        if spellings.is_empty() {
            "one side does not have it, or has too few requests for a percentile".to_owned()
        } else {
            let spelled = spellings.join(" or ");
            format!("several targets have it; name one of them: {spelled}")
        }
    }

    /// The outcome of the condition on its metric.
    fn judge(&self, metric: &MetricComparison) -> JudgedLimit {
        if metric.verdict == Verdict::NotComparable {
            let reasons: Vec<&str> = metric
                .reasons
                .iter()
                .map(|reason| reason.why.as_str())
                .collect();
            return JudgedLimit {
                outcome: ConditionOutcome::Unanswered,
                why: format!("not comparable: {}", reasons.join("; ")),
            };
        }
        match metric.ratio {
            Some(ratio) => self.judge_ratio(metric, ratio),
            None => JudgedLimit {
                outcome: ConditionOutcome::Unanswered,
                why: match metric.figure {
                    Figure::PromisedRate => "both searches answer \"at least\"",
                    _ => "measured too briefly for an interval",
                }
                .to_owned(),
            },
        }
    }

    /// The outcome by the interval of the ratio.
    fn judge_ratio(&self, metric: &MetricComparison, ratio: Ratio) -> JudgedLimit {
        let percent = (ratio.value - 1.0) * 100.0;
        let changed = format!("changed by {percent:+.1} % ({})", interval_text(ratio));
        let high = ratio.high_95.unwrap_or(f64::INFINITY);
        let ends = [ratio.low_95 - 1.0, high - 1.0];
        let is_variation_known = metric.variation.is_some() || metric.basis == Basis::Blocks;
        let holds_without_change = self.relation.holds(0.0, self.change);
        match self.relation.decides(ends, self.change) {
            Some(false) => JudgedLimit {
                outcome: ConditionOutcome::DoesNotHold,
                why: changed,
            },
            Some(true) if is_variation_known || holds_without_change => JudgedLimit {
                outcome: ConditionOutcome::Holds,
                why: changed,
            },
            Some(true) => JudgedLimit {
                outcome: ConditionOutcome::Undecided,
                why: changed
                    + " in one run per side, but the variation between runs is unknown. Compare \
                       three runs per side",
            },
            None => JudgedLimit {
                outcome: ConditionOutcome::Undecided,
                why: changed
                    + ": the threshold lies within the interval. Measure longer, or more runs per \
                       side",
            },
        }
    }
}

/// The number of the target before the name of a metric, such as `2:`; `None` where there is only
/// one target.
fn target_prefix(metric: &MetricComparison) -> Option<String> {
    let prefix = format!("{}:", metric.target + 1);
    let rest = metric.metric.strip_prefix(&prefix)?;
    if rest.starts_with(&metric.subject) {
        Some(prefix)
    } else {
        None
    }
}

/// The outcome of a condition, and the reason in words.
struct JudgedLimit {
    outcome: ConditionOutcome,
    why: String,
}

/// The interval of a change: `-7.1 % to -3.0 %`, or `-7.1 % or more` where nothing bounds it.
fn interval_text(ratio: Ratio) -> String {
    let low = (ratio.low_95 - 1.0) * 100.0;
    match ratio.high_95 {
        Some(high) if ratio.low_95 == 0.0 => format!("{:+.1} % or less", (high - 1.0) * 100.0),
        Some(high) => format!("{low:+.1} % to {:+.1} %", (high - 1.0) * 100.0),
        None => format!("{low:+.1} % or more"),
    }
}

/// Returns `true` if a name is that of a figure of a subject, such as `iops` or `read.p99`. Only a
/// curve has `average`, `min` and `max`: the longest latency of a workload is not compared.
fn is_figure(subject: &str, name: &str) -> bool {
    let mut figure = name;
    for op in OpKind::ALL {
        if let Some(suffix) = name.strip_prefix(op.as_str())
            && let Some(figure_name) = suffix.strip_prefix('.')
        {
            figure = figure_name;
        }
    }
    let is_curve = subject.rsplit(':').next() == Some("curve");
    Figure::ALL.iter().any(|known| {
        let is_of_curve = match known {
            Figure::CurveAverage | Figure::CurveMin | Figure::CurveMax => true,
            Figure::Iops
            | Figure::Throughput
            | Figure::Mean
            | Figure::P50
            | Figure::P99
            | Figure::P99_9
            | Figure::AccessTime
            | Figure::PromisedRate => false,
        };
        known.as_str() == figure && (is_curve || !is_of_curve)
    })
}

/// Fails if a limit names neither a metric of a candidate nor a figure of a side's subject: a
/// misspelt metric would pass every build.
pub(super) fn check_metric_names(
    limits: &[Limit],
    candidates: &[Candidate],
) -> Result<(), CompareError> {
    for limit in limits {
        if candidates
            .iter()
            .any(|candidate| limit.is_known_in(candidate))
        {
            continue;
        }
        let expression = limit.expression.clone();
        let spellings: BTreeSet<String> = candidates
            .iter()
            .flat_map(|candidate| limit.spellings_with_targets(candidate))
            .collect();
        if !spellings.is_empty() {
            return Err(CompareError::Target {
                expression,
                metric: limit.metric.clone(),
                spelled: Vec::from_iter(spellings).join(" or "),
            });
        }
        return Err(CompareError::Metric {
            expression,
            metric: limit.metric.clone(),
            known: known_metrics_text(candidates),
        });
    }
    Ok(())
}

/// The metrics that a limit may name, for the error message.
fn known_metrics_text(candidates: &[Candidate]) -> String {
    let known: BTreeSet<&str> = candidates
        .iter()
        .flat_map(|candidate| &candidate.metrics)
        .map(|metric| metric.metric.as_str())
        .collect();
    if known.is_empty() {
        return "none, because the runs have nothing in common".to_owned();
    }
    Vec::from_iter(known).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_curve_has_the_figures_of_a_curve() {
        for (subject, name, is_known) in [
            ("curve", "max", true),
            ("2:curve", "average", true),
            ("random-read-d1", "max", false),
            ("random-read-d1", "read.max", false),
            ("random-read-d1", "read.p99.9", true),
            ("random-read-d1", "p90", false),
        ] {
            assert_eq!(is_figure(subject, name), is_known, "{subject}.{name}");
        }
    }

    #[test]
    fn interval_of_a_change_may_be_open() {
        for (low_95, high_95, expected) in [
            (0.929, Some(0.97), "-7.1 % to -3.0 %"),
            (0.929, None, "-7.1 % or more"),
            (0.0, Some(0.97), "-3.0 % or less"),
        ] {
            let ratio = Ratio {
                value: 0.95,
                low_95,
                high_95,
            };
            assert_eq!(interval_text(ratio), expected);
        }
    }
}
