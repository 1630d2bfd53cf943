//! Finds the parts that both sides measured (a workload, a part of a survey, or a step on files),
//! and takes each metric of them from its figures to its verdict.

use super::earlier::EarlierRuns;
use super::ratio::{RatioEstimate, SideFigure};
use super::reasons::{Compared, reasons_against_comparison};
use super::side_estimate::SideEstimate;
use super::sides::{NamedRun, Run, Sides, sole_holder};
use super::verdict::{AdjustedP, Judgement, RUNS_NEEDED, judge};
use diskproof_model::comparison::{
    Basis, Direction, Figure, Holder, MetricComparison, Needed, Reason, Verdict,
};
use diskproof_model::record::Estimate;

/// A metric before its verdict.
pub(super) struct PendingMetric {
    /// The metric for the document. Its verdict is a placeholder, which only [`Self::decided`]
    /// replaces.
    pub metric: MetricComparison,
    /// The number of runs of the side with fewer runs.
    runs: usize,
    /// The longest time for which a run measured it, in nanoseconds.
    wall_ns: u64,
    /// It is a metric of an observed load, of which neither side is better.
    pub is_load: bool,
    /// The ratio; `None` where the metric is not comparable, or too little was measured.
    ratio: Option<RatioEstimate>,
}

/// A figure of both sides.
pub(super) struct PairEstimates {
    pub a: SideEstimate,
    pub b: SideEstimate,
    /// The same figure in groups of earlier runs.
    pub earlier: Vec<SideFigure>,
}

impl PairEstimates {
    /// The ratio of the figure, with the uncertainty that all these runs show; `None` where a side
    /// is zero, or too little was measured.
    pub(super) fn ratio(&self) -> Option<RatioEstimate> {
        RatioEstimate::from_sides(&self.a.figure, &self.b.figure, &self.earlier)
    }
}

impl PendingMetric {
    /// A metric without a verdict, for a figure of all operations together on the first target,
    /// which is no headline: the caller sets these fields of `metric` where they are otherwise.
    /// `reasons` are those against the comparison: with any, `ratio` is dropped.
    pub(super) fn new(
        metric: String,
        subject: &str,
        figure: Figure,
        estimates: PairEstimates,
        ratio: Option<RatioEstimate>,
        wall_ns: u64,
        reasons: &[Reason],
    ) -> Self {
        let PairEstimates { a, b, .. } = estimates;
        let mut pending = Self {
            metric: MetricComparison {
                metric,
                subject: subject.to_owned(),
                target: 0,
                op: None,
                figure,
                headline: false,
                better: Direction::of_unit(&a.shown.unit),
                ratio: None,
                p_value: None,
                p_adjusted: None,
                basis: Basis::WithinRuns,
                variation: None,
                verdict: Verdict::Undecided,
                needed: None,
                reasons: reasons.to_vec(),
                a: a.shown,
                b: b.shown,
            },
            runs: a.figure.logs.len().min(b.figure.logs.len()),
            wall_ns,
            is_load: false,
            ratio: None,
        };
        if let Some(ratio) = ratio
            && reasons.is_empty()
        {
            pending.metric.ratio = Some(ratio.ratio());
            pending.metric.p_value = Some(ratio.p_value());
            pending.metric.basis = ratio.basis();
            pending.metric.variation = ratio.variation();
            pending.ratio = Some(ratio);
        }
        pending
    }

    /// The metric with its verdict.
    pub(super) fn decided(mut self, p_value: Option<AdjustedP>, margin: f64) -> MetricComparison {
        let judgement = self.judgement(p_value, margin);
        self.metric.p_adjusted = p_value.map(|adjusted| adjusted.value);
        self.metric.verdict = judgement.verdict;
        self.metric.needed = match judgement.verdict {
            Verdict::FasterOnce | Verdict::SlowerOnce => Some(RUNS_NEEDED),
            Verdict::Better
            | Verdict::Worse
            | Verdict::Same
            | Verdict::Undecided
            | Verdict::NotComparable
            | Verdict::Observed => judgement.times_needed.map(|times| self.needed_for(times)),
        };
        self.metric
    }

    /// The verdict with its advice; undecided where the metric has no ratio or no p-value.
    fn judgement(&self, p_value: Option<AdjustedP>, margin: f64) -> Judgement {
        if !self.metric.reasons.is_empty() {
            return Judgement::without_advice(Verdict::NotComparable);
        }
        if self.is_load {
            return Judgement::without_advice(Verdict::Observed);
        }
        match (&self.ratio, p_value) {
            (Some(ratio), Some(p_value)) => judge(ratio, p_value, margin, self.metric.better),
            _ => Judgement::without_advice(Verdict::Undecided),
        }
    }

    /// The advice to measure `times` as much, in time or in runs.
    fn needed_for(&self, times: f64) -> Needed {
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

/// The sides that have a part.
pub(super) enum PartOnSides<T> {
    /// Both sides have it.
    Both(Pair<T>),
    /// Only this side has it.
    OneSide(Holder),
    /// Neither side has it.
    Neither,
}

/// A part that both sides have, in their runs and in groups of earlier runs.
pub(super) struct Pair<T> {
    pub a: Vec<T>,
    pub b: Vec<T>,
    /// The part in each group of earlier runs that repeat it.
    earlier: Vec<Vec<T>>,
    /// The reasons why its figures are not comparable.
    pub reasons: Vec<Reason>,
}

impl<T: Compared> Pair<T> {
    /// Looks for a part in all runs. `find` takes the name of a run and the run, and returns the
    /// part if that run has it.
    pub(super) fn find<'s>(
        sides: &'s Sides<'s>,
        earlier: &'s EarlierRuns<'s>,
        find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
    ) -> PartOnSides<T> {
        let a = parts_of_side(&sides.a, &find);
        let b = parts_of_side(&sides.b, &find);
        if let Some(holder) = sole_holder(&a, &b) {
            return PartOnSides::OneSide(holder);
        }
        let Some(first) = a.first() else {
            return PartOnSides::Neither;
        };
        PartOnSides::Both(Self {
            earlier: earlier.repeats_of(*first, |run| find("an earlier run", run)),
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
                earlier.push(side_estimate.figure);
            }
        }
        Some(PairEstimates {
            a: estimate(&self.a)?,
            b: estimate(&self.b)?,
            earlier,
        })
    }

    /// The same for a figure that each run has by itself; `None` where a run lacks it.
    pub(super) fn estimates_of_runs(
        &self,
        figure: impl Fn(&T) -> Option<Estimate>,
    ) -> Option<PairEstimates> {
        self.side_estimates(|runs| {
            let estimates: Option<Vec<Estimate>> = runs.iter().map(&figure).collect();
            SideEstimate::from_estimates(&estimates?)
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

#[cfg(test)]
mod tests {
    use super::super::test_figures::figure_of_run;
    use super::*;

    /// A metric of two runs a side, the longest of which took 10 s.
    fn pending(basis: Basis) -> PendingMetric {
        let estimates = PairEstimates {
            a: SideEstimate::new(figure_of_run(100.0, 0.01, 9.0), 10, "1/s"),
            b: SideEstimate::new(figure_of_run(100.0, 0.01, 9.0), 10, "1/s"),
            earlier: Vec::new(),
        };
        let metric = "w.iops".to_owned();
        let wall_ns = 10_000_000_000;
        let mut pending =
            PendingMetric::new(metric, "w", Figure::Iops, estimates, None, wall_ns, &[]);
        pending.metric.basis = basis;
        pending.runs = 2;
        pending
    }

    /// 2.6 times as much is 26 s, or six runs a side.
    #[test]
    fn advice_is_in_time_or_in_runs_by_what_the_interval_rests_on() {
        for (basis, measure_ns, runs) in [
            (Basis::WithinRuns, Some(26_000_000_000), None),
            (Basis::Blocks, Some(26_000_000_000), None),
            (Basis::BetweenRuns, None, Some(6)),
            (Basis::Positions, None, None),
        ] {
            let needed = pending(basis).needed_for(2.6);
            assert_eq!((needed.measure_ns, needed.runs), (measure_ns, runs));
        }
        assert_eq!(pending(Basis::BetweenRuns).needed_for(0.1).runs, Some(2));
    }
}
