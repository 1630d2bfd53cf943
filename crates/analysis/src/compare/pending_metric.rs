//! Takes a metric from the figures of both sides to its verdict. The comparison first collects all
//! metrics as pending ones: a p-value is adjusted to how many they are, so that no verdict is known
//! before the last of them.

use super::pair::PairEstimates;
use super::ratio::RatioEstimate;
use super::verdict::{AdjustedP, Judgement, RUNS_NEEDED, judge};
use diskproof_model::comparison::{
    Basis, Direction, Figure, MetricComparison, Needed, Reason, Verdict,
};

/// A figure that both sides have, with all that decides its verdict.
pub(super) struct ComparedFigure<'p> {
    /// The workload or the part of a run that it is of, as documents name it.
    pub subject: &'p str,
    pub figure: Figure,
    pub estimates: PairEstimates,
    /// The ratio of the estimates: [`PairEstimates::ratio`], unless the slices or the positions of
    /// both sides make pairs, which know it better.
    pub ratio: Option<RatioEstimate>,
    /// The longest time for which a run measured it, in nanoseconds; `None` where more of it is not
    /// measured by more time, but by more positions or accesses.
    pub measured_ns: Option<u64>,
    /// The reasons against its comparison: with any, the ratio is dropped.
    pub reasons: &'p [Reason],
}

/// A metric before its verdict.
pub(super) struct PendingMetric {
    /// The metric for the document. Its verdict is a placeholder, which only [`Self::decided`]
    /// replaces.
    pub metric: MetricComparison,
    /// The number of runs of the side with fewer runs.
    runs: usize,
    /// That of [`ComparedFigure`].
    measured_ns: Option<u64>,
    /// It is a metric of an observed load, of which neither side is better.
    pub is_of_observed_load: bool,
    /// The ratio; `None` where the metric is not comparable, or too little was measured.
    ratio: Option<RatioEstimate>,
}

impl PendingMetric {
    /// A metric without a verdict, for a figure of all operations together on the first target,
    /// which is no headline: the caller sets these fields of `metric` where they are otherwise.
    pub(super) fn new(name: String, compared: ComparedFigure<'_>) -> Self {
        let PairEstimates { a, b, .. } = compared.estimates;
        let mut pending = Self {
            metric: MetricComparison {
                metric: name,
                subject: compared.subject.to_owned(),
                target: 0,
                op: None,
                figure: compared.figure,
                headline: false,
                better: Direction::of_unit(&a.shown.unit),
                ratio: None,
                p_value: None,
                p_adjusted: None,
                basis: Basis::WithinRuns,
                variation: None,
                verdict: Verdict::Undecided,
                needed: None,
                reasons: compared.reasons.to_vec(),
                a: a.shown,
                b: b.shown,
            },
            runs: a.figure.logs.len().min(b.figure.logs.len()),
            measured_ns: compared.measured_ns,
            is_of_observed_load: false,
            ratio: None,
        };
        if let Some(ratio) = compared.ratio
            && compared.reasons.is_empty()
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
        if self.is_of_observed_load {
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
            Basis::WithinRuns | Basis::Blocks => {
                let needed_ns = self.measured_ns.map(|ns| (times * ns as f64) as u64);
                (needed_ns, None)
            }
            Basis::Positions => (None, None),
        };
        Needed {
            times,
            measure_ns,
            runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::side_estimate::SideEstimate;
    use super::super::test_figures::{figure_of_run, figure_of_three_runs};
    use super::*;

    /// A metric of two runs a side, the longest of which took 10 s.
    fn pending(basis: Basis) -> PendingMetric {
        let estimates = PairEstimates {
            a: SideEstimate::new(figure_of_run(100.0, 0.01, 9.0), 10, "1/s"),
            b: SideEstimate::new(figure_of_run(100.0, 0.01, 9.0), 10, "1/s"),
            earlier: Vec::new(),
        };
        let compared = ComparedFigure {
            subject: "w",
            figure: Figure::Iops,
            estimates,
            ratio: None,
            measured_ns: Some(10_000_000_000),
            reasons: &[],
        };
        let mut pending = PendingMetric::new("w.iops".to_owned(), compared);
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
        let mut accesses = pending(Basis::WithinRuns);
        accesses.measured_ns = None;
        let needed = accesses.needed_for(2.6);
        assert_eq!((needed.measure_ns, needed.runs), (None, None));
    }

    /// A figure of both sides, the ratio of which is known.
    fn compared(reasons: &[Reason]) -> ComparedFigure<'_> {
        let estimates = PairEstimates {
            a: SideEstimate::new(figure_of_three_runs([100.0, 101.0, 99.0], 0.01), 3, "1/s"),
            b: SideEstimate::new(figure_of_run(200.0, 0.01, 9.0), 10, "1/s"),
            earlier: Vec::new(),
        };
        ComparedFigure {
            subject: "w",
            figure: Figure::Iops,
            ratio: estimates.ratio(),
            estimates,
            measured_ns: Some(10_000_000_000),
            reasons,
        }
    }

    fn decided(pending: PendingMetric) -> MetricComparison {
        let adjusted = AdjustedP {
            value: 1e-6,
            family_size: 1,
        };
        pending.decided(Some(adjusted), 0.02)
    }

    /// Advice in runs is about the side with fewer of them.
    #[test]
    fn fewer_runs_of_the_two_sides_count() {
        let pending = PendingMetric::new("w.iops".to_owned(), compared(&[]));
        assert_eq!(pending.runs, 1);
    }

    #[test]
    fn reason_against_a_comparison_drops_the_ratio_and_comes_before_all_else() {
        let reasons = [Reason {
            code: "span-differs".to_owned(),
            why: String::new(),
        }];
        for is_of_observed_load in [false, true] {
            let mut pending = PendingMetric::new("w.iops".to_owned(), compared(&reasons));
            pending.is_of_observed_load = is_of_observed_load;
            let metric = decided(pending);
            assert_eq!(metric.verdict, Verdict::NotComparable);
            assert_eq!((metric.ratio, metric.p_value), (None, None));
            assert_eq!(metric.reasons, reasons);
        }
    }

    #[test]
    fn observed_load_has_a_ratio_and_no_judgement() {
        let mut pending = PendingMetric::new("w.iops".to_owned(), compared(&[]));
        pending.is_of_observed_load = true;
        let metric = decided(pending);
        assert_eq!(metric.verdict, Verdict::Observed);
        assert!(metric.ratio.is_some());
        assert_eq!(metric.needed, None);
    }

    #[test]
    fn figure_without_a_ratio_is_undecided() {
        let compared = ComparedFigure {
            ratio: None,
            ..compared(&[])
        };
        let metric = decided(PendingMetric::new("w.iops".to_owned(), compared));
        assert_eq!(metric.verdict, Verdict::Undecided);
        assert_eq!(metric.p_adjusted, Some(1e-6));
    }
}
