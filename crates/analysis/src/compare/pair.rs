//! A part that both sides have, whether workload, part of a survey or step on files, and a metric
//! from its figures to its verdict.

use super::earlier::EarlierRuns;
use super::figures::{Told, of_estimates};
use super::ratio;
use super::ratio::{Joined, SideFigure};
use super::reasons::{Compared, reasons};
use super::sides::{Run, Sides, only};
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

impl ComparedRow {
    /// Of a figure of the whole run on both sides; `name` is the metric's and its subject's.
    pub(super) fn new(
        (metric, subject): (String, &str),
        figure: Figure,
        (a, b): (Told, Told),
        joined: Option<Joined>,
        wall_ns: u64,
        reasons: &[Reason],
    ) -> Self {
        let joined = joined.filter(|_| reasons.is_empty());
        let of = joined.as_ref();
        Self {
            metric: MetricComparison {
                metric,
                subject: subject.to_owned(),
                target: 0,
                op: None,
                figure,
                headline: false,
                better: Direction::of_unit(&a.estimate.unit),
                ratio: of.map(Joined::ratio),
                p_value: of.map(Joined::p_value),
                p_adjusted: None,
                basis: of.map_or(Basis::WithinRuns, Joined::basis),
                variation: of.and_then(Joined::variation),
                verdict: Verdict::Undecided,
                needed: None,
                reasons: reasons.to_vec(),
                a: a.estimate,
                b: b.estimate,
            },
            runs: a.sample.logs.len().min(b.sample.logs.len()),
            wall_ns,
            is_load: false,
            joined,
        }
    }

    /// The verdict, with the adjusted p-value of a family of so many comparisons.
    pub(super) fn decide(&mut self, p_adjusted: Option<f64>, family: usize, margin: f64) {
        let metric = &mut self.metric;
        let judged = self.joined.as_ref().zip(p_adjusted);
        let judged =
            judged.map(|(joined, p)| ratio::judge(joined, p, margin, metric.better, family));
        let (verdict, times) = match judged {
            _ if !metric.reasons.is_empty() => (Verdict::NotComparable, None),
            _ if self.is_load => (Verdict::Observed, None),
            Some(judged) => judged,
            None => (Verdict::Undecided, None),
        };
        (metric.p_adjusted, metric.verdict) = (p_adjusted, verdict);
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
    pub(super) fn of<'s>(
        sides: &'s Sides<'s>,
        earlier: &'s EarlierRuns<'s>,
        (subject, unmatched): (&str, &mut Vec<Unmatched>),
        find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
    ) -> Option<Self> {
        let of_side = |side: &'s [(String, &'s Run<'s>)]| -> Vec<T> {
            let runs = side.iter();
            runs.filter_map(|(name, run)| find(name, run)).collect()
        };
        let (a, b) = (of_side(&sides.a), of_side(&sides.b));
        unmatched.extend(only(subject, &a, &b));
        let first = a.first().filter(|_| !b.is_empty())?;
        Some(Self {
            earlier: earlier.repeats_of(*first, |run| find("an earlier run", run)),
            reasons: reasons(&[a.as_slice(), &b].concat()),
            a,
            b,
        })
    }

    /// The runs of both sides.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.a.iter().chain(&self.b)
    }

    /// A figure on both sides and in the groups of earlier runs; `None` where a side lacks it.
    pub(super) fn told(
        &self,
        of: impl Fn(&[T]) -> Option<Told>,
    ) -> Option<(Told, Told, Vec<SideFigure>)> {
        let earlier = self.earlier.iter().filter_map(|group| of(group));
        let earlier = earlier.map(|told| told.sample).collect();
        Some((of(&self.a)?, of(&self.b)?, earlier))
    }

    /// The same of a figure that each run has.
    pub(super) fn figures(
        &self,
        of: impl Fn(&T) -> Option<Estimate>,
    ) -> Option<(Told, Told, Vec<SideFigure>)> {
        self.told(|runs| of_estimates(&runs.iter().map(&of).collect::<Option<Vec<_>>>()?))
    }
}
