//! A part that both sides have, whether workload, part of a survey or step on files, and a metric
//! from its figures to its verdict.

use super::earlier::EarlierRuns;
use super::figures::{SideEstimate, of_estimates};
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
    /// As it is reported; the verdict stands for none yet.
    pub metric: MetricComparison,
    /// Of the side with fewer runs.
    runs: usize,
    /// The longest that a run measured it, in nanoseconds.
    wall_ns: u64,
    /// Of an observed load: neither side is better.
    pub is_load: bool,
    /// The ratio; `None` where the metric is not comparable, or too little was measured.
    joined: Option<Joined>,
}

/// A figure on both sides.
pub(super) struct PairEstimates {
    pub a: SideEstimate,
    pub b: SideEstimate,
    /// The same figure in groups of earlier runs.
    pub earlier: Vec<SideFigure>,
}

impl PairEstimates {
    /// The ratio of the figure, as well as all these runs tell it.
    pub(super) fn joined(&self) -> Option<Joined> {
        Joined::from_sides(&self.a.sample, &self.b.sample, &self.earlier)
    }
}

impl ComparedRow {
    /// A row without a verdict yet, of a figure of the whole run on both sides.
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

    /// The verdict, with the adjusted p-value of a family of so many comparisons.
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

    /// What `times` as much comes to.
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

/// A part that both sides have, in their runs and in groups of earlier ones.
pub(super) struct Pair<T> {
    pub a: Vec<T>,
    pub b: Vec<T>,
    earlier: Vec<Vec<T>>,
    /// Why its figures do not compare.
    pub reasons: Vec<Reason>,
}

impl<T: Compared> Pair<T> {
    /// What `find` finds in the runs by what these are called. `None` where a side lacks it, which
    /// goes to `unmatched` where the other one does not.
    pub(super) fn find<'s>(
        sides: &'s Sides<'s>,
        earlier: &'s EarlierRuns<'s>,
        subject: &str,
        unmatched: &mut Vec<Unmatched>,
        find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
    ) -> Option<Self> {
        let a = found_in(&sides.a, &find);
        let b = found_in(&sides.b, &find);
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

    /// A part that is compared with nothing yet: it stands on both sides.
    pub(super) fn of_one(part: T) -> Self {
        Self {
            a: vec![part],
            b: vec![part],
            earlier: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// The runs of both sides.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.a.iter().chain(&self.b)
    }

    /// A figure on both sides and in the groups of earlier runs; `None` where a side lacks it.
    pub(super) fn side_estimates(
        &self,
        estimate: impl Fn(&[T]) -> Option<SideEstimate>,
    ) -> Option<PairEstimates> {
        let mut earlier = Vec::new();
        for group in &self.earlier {
            if let Some(found) = estimate(group) {
                earlier.push(found.sample);
            }
        }
        Some(PairEstimates {
            a: estimate(&self.a)?,
            b: estimate(&self.b)?,
            earlier,
        })
    }

    /// The same of a figure that each run has.
    pub(super) fn figures(&self, figure: impl Fn(&T) -> Option<Estimate>) -> Option<PairEstimates> {
        self.side_estimates(|runs| {
            let estimates: Option<Vec<Estimate>> = runs.iter().map(&figure).collect();
            of_estimates(&estimates?)
        })
    }
}

/// What `find` finds in the runs of a side, by what these are called.
fn found_in<'s, T>(
    side: &'s [NamedRun<'s>],
    find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
) -> Vec<T> {
    let mut found = Vec::new();
    for named in side {
        found.extend(find(&named.name, named.run));
    }
    found
}
