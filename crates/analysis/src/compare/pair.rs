//! A part that both sides have (a workload, a part of a survey, or a step on files), and a metric
//! of it, from its figures to its verdict.

use super::earlier::EarlierRuns;
use super::figures::{SideEstimate, from_estimates};
use super::ratio;
use super::ratio::{Joined, SideFigure};
use super::reasons::{Compared, reasons_against_comparison};
use super::sides::{NamedRun, Run, Sides, only};
use diskproof_model::comparison::{
    Basis, Direction, Figure, MetricComparison, Needed, Reason, Unmatched, Verdict,
};
use diskproof_model::record::Estimate;

/// A metric before its verdict.
pub(super) struct ComparedRow {
    /// The metric for the document. Its verdict is a placeholder until [`Self::decide`].
    pub metric: MetricComparison,
    /// The number of runs of the side with fewer runs.
    runs: usize,
    /// The longest that a run measured it, in nanoseconds.
    wall_ns: u64,
    /// It is a metric of an observed load, of which neither side is better.
    pub is_load: bool,
    /// The ratio; `None` where the metric is not comparable, or too little was measured.
    joined: Option<Joined>,
}

/// A figure of both sides.
pub(super) struct PairEstimates {
    pub a: SideEstimate,
    pub b: SideEstimate,
    /// The same figure in groups of earlier runs.
    pub earlier: Vec<SideFigure>,
}

impl PairEstimates {
    /// The ratio of the figure, with the uncertainty that all these runs show.
    pub(super) fn joined(&self) -> Option<Joined> {
        Joined::from_sides(&self.a.sample, &self.b.sample, &self.earlier)
    }
}

impl ComparedRow {
    /// A row without a verdict yet, for a figure of the whole run on both sides.
    pub(super) fn new(
        metric: String,
        subject: &str,
        figure: Figure,
        estimates: PairEstimates,
        joined: Option<Joined>,
        wall_ns: u64,
        reasons: &[Reason],
    ) -> Self {
        let PairEstimates { a, b, .. } = estimates;
        let mut row = Self {
            metric: MetricComparison {
                metric,
                subject: subject.to_owned(),
                target: 0,
                op: None,
                figure,
                headline: false,
                better: Direction::of_unit(&a.estimate.unit),
                ratio: None,
                p_value: None,
                p_adjusted: None,
                basis: Basis::WithinRuns,
                variation: None,
                verdict: Verdict::Undecided,
                needed: None,
                reasons: reasons.to_vec(),
                a: a.estimate,
                b: b.estimate,
            },
            runs: a.sample.logs.len().min(b.sample.logs.len()),
            wall_ns,
            is_load: false,
            joined: None,
        };
        if let Some(joined) = joined
            && reasons.is_empty()
        {
            row.metric.ratio = Some(joined.ratio());
            row.metric.p_value = Some(joined.p_value());
            row.metric.basis = joined.basis();
            row.metric.variation = joined.variation();
            row.joined = Some(joined);
        }
        row
    }

    /// Gives the metric its verdict. `family` is the number of comparisons for which the p-value
    /// was adjusted.
    pub(super) fn decide(&mut self, p_adjusted: Option<f64>, family: usize, margin: f64) {
        let metric = &mut self.metric;
        metric.p_adjusted = p_adjusted;
        let (verdict, times) = if !metric.reasons.is_empty() {
            (Verdict::NotComparable, None)
        } else if self.is_load {
            (Verdict::Observed, None)
        } else if let Some(joined) = &self.joined
            && let Some(p_adjusted) = p_adjusted
        {
            ratio::judge(joined, p_adjusted, margin, metric.better, family)
        } else {
            (Verdict::Undecided, None)
        };
        metric.verdict = verdict;
        self.metric.needed = match verdict {
            Verdict::FasterOnce | Verdict::SlowerOnce => Some(ratio::RUNS_NEEDED),
            _ => times.map(|times| self.needed(times)),
        };
    }

    /// The advice to measure `times` as much, in time or in runs.
    fn needed(&self, times: f64) -> Needed {
        let (measure_ns, runs) = match self.metric.basis {
            Basis::BetweenRuns => {
                let runs = (times * self.runs as f64).ceil();
                (None, Some(runs.max(2.0) as u64))
            }
            Basis::WithinRuns | Basis::Blocks => (Some((times * self.wall_ns as f64) as u64), None),
            Basis::Positions => (None, None),
        };
        Needed {
            times,
            measure_ns,
            runs,
        }
    }
}

/// A part that both sides have, in their runs and in groups of earlier runs.
pub(super) struct Pair<T> {
    pub a: Vec<T>,
    pub b: Vec<T>,
    earlier: Vec<Vec<T>>,
    /// The reasons why its figures are not comparable.
    pub reasons: Vec<Reason>,
}

impl<T: Compared> Pair<T> {
    /// Finds a part in all runs, with the function `find` of a run's name and the run. `None` where
    /// a side lacks it; if the other side has it, it is added to `unmatched`.
    pub(super) fn find<'s>(
        sides: &'s Sides<'s>,
        earlier: &'s EarlierRuns<'s>,
        subject: &str,
        unmatched: &mut Vec<Unmatched>,
        find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
    ) -> Option<Self> {
        let a = parts_of_side(&sides.a, &find);
        let b = parts_of_side(&sides.b, &find);
        unmatched.extend(only(subject, &a, &b));
        if b.is_empty() {
            return None;
        }
        let first = *a.first()?;
        Some(Self {
            earlier: earlier.repeats_of(first, |run| find("an earlier run", run)),
            reasons: reasons_against_comparison(&[a.as_slice(), &b].concat()),
            a,
            b,
        })
    }

    /// A pair with the same part on both sides, to get the figures of one run.
    pub(super) fn with_itself(part: T) -> Self {
        Self {
            a: vec![part],
            b: vec![part],
            earlier: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// The part in each run of both sides.
    pub(super) fn parts(&self) -> impl Iterator<Item = &T> {
        self.a.iter().chain(&self.b)
    }

    /// A figure on both sides and in the groups of earlier runs; `None` where a side lacks it.
    pub(super) fn side_estimates(
        &self,
        estimate: impl Fn(&[T]) -> Option<SideEstimate>,
    ) -> Option<PairEstimates> {
        let mut earlier = Vec::new();
        for group in &self.earlier {
            if let Some(side_estimate) = estimate(group) {
                earlier.push(side_estimate.sample);
            }
        }
        Some(PairEstimates {
            a: estimate(&self.a)?,
            b: estimate(&self.b)?,
            earlier,
        })
    }

    /// The same for a figure that each run has by itself.
    pub(super) fn figures(&self, figure: impl Fn(&T) -> Option<Estimate>) -> Option<PairEstimates> {
        self.side_estimates(|runs| {
            let estimates: Option<Vec<Estimate>> = runs.iter().map(&figure).collect();
            from_estimates(&estimates?)
        })
    }
}

/// The part in each run of a side that has it.
fn parts_of_side<'s, T>(
    side: &'s [NamedRun<'s>],
    find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
) -> Vec<T> {
    let mut parts = Vec::new();
    for named in side {
        parts.extend(find(&named.name, named.run));
    }
    parts
}
