//! Which metrics of a workload are compared, what they are called, and which one of them speaks for
//! it.

use super::blocks::Blocks;
use super::comparable::Measured;
use super::earlier::EarlierRuns;
use super::figures::{Told, distribution, latency, of_estimates, rate};
use super::ratio;
use super::ratio::{Joined, SideFigure};
use super::reasons::{Compared, reasons};
use super::sides::{Run, Sides, only};
use diskproof_model::comparison::{
    Basis, Direction, Figure, MetricComparison, Needed, PercentilePair, Reason, Unmatched, Verdict,
};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::SyncPolicy;
use diskproof_model::record::{Estimate, MeasurementRecord};

const LATENCIES: [Figure; 4] = [Figure::Mean, Figure::P50, Figure::P99, Figure::P99_9];

/// A metric before its verdict.
pub(super) struct Row {
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

impl Row {
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

/// The metrics of a workload that both sides measured.
pub(super) fn of_workload(prefix: &str, pair: &Pair<Measured<'_>>) -> Vec<Row> {
    let Some(first) = pair.a.first().map(|leader| leader.measurement()) else {
        return Vec::new();
    };
    let wall_ns = pair.all().map(|m| m.measurement().wall_ns);
    let wall_ns = wall_ns.max().unwrap_or(0);
    let subject = &first.workload.name;
    let ops = common_ops(pair);
    let is_mix = ops.iter().filter(|op| **op != OpKind::Sync).count() > 1;
    let lead = leading(first, &ops, pair);
    let name = |op: Option<OpKind>, figure: Figure| {
        let kind = op.filter(|op| is_mix || *op == OpKind::Sync);
        let kind = kind.map_or(String::new(), |op| format!("{}.", op.as_str()));
        format!("{prefix}{subject}.{kind}{}", figure.as_str())
    };
    let blocks = Blocks::of(&pair.a, &pair.b);
    let row = |(op, figure): (Option<OpKind>, Figure)| {
        let (mut a, mut b, earlier) = pair.told(|runs| match (op, figure) {
            (_, Figure::Iops | Figure::Throughput) => rate(&measurements(runs), op, figure),
            (Some(op), _) => latency(&measurements(runs), op, figure),
            (None, _) => None,
        })?;
        let difference = blocks
            .as_ref()
            .and_then(|blocks| blocks.replace((op, figure), (&mut a, &mut b)));
        let joined = match difference {
            Some(difference) => Joined::of_blocks(&a.sample, &b.sample, difference),
            None => Joined::of(&a.sample, &b.sample, &earlier),
        };
        let name = (name(op, figure), subject.as_str());
        let mut row = Row::new(name, figure, (a, b), joined, wall_ns, &pair.reasons);
        (row.metric.target, row.metric.op) = (first.target, op);
        row.metric.headline = lead == (op, figure);
        Some(row)
    };
    let of_mix = is_mix.then_some(None).into_iter();
    let all_ops = of_mix.chain(ops.iter().map(|op| Some(*op)));
    let figures = [Figure::Iops, Figure::Throughput]
        .into_iter()
        .chain(LATENCIES);
    let all = all_ops.flat_map(|op| figures.clone().map(move |figure| (op, figure)));
    all.filter_map(row).collect()
}

/// The one metric that speaks for the workload: its rate, of reads and writes together where there
/// are both; under an offered load, which fixes the rate, a latency that users feel.
fn leading(
    m: &MeasurementRecord,
    ops: &[OpKind],
    pair: &Pair<Measured<'_>>,
) -> (Option<OpKind>, Figure) {
    let op = ops.first().copied();
    if m.workload.rate.is_some() {
        let has = |side: &[Measured<'_>], figure| {
            op.is_some_and(|op| latency(&measurements(side), op, figure).is_some())
        };
        let mut percentiles = [Figure::P99, Figure::P50].into_iter();
        let known = percentiles.find(|figure| has(&pair.a, *figure) && has(&pair.b, *figure));
        return (op, known.unwrap_or(Figure::Mean));
    }
    let figure = if m.is_rated_in_bytes() {
        Figure::Throughput
    } else {
        Figure::Iops
    };
    let is_single = ops.iter().filter(|op| **op != OpKind::Sync).count() == 1;
    (op.filter(|_| is_single), figure)
}

/// The kinds of operation that every run has: what a reader looks at, and syncs where they come
/// every few writes.
fn common_ops(pair: &Pair<Measured<'_>>) -> Vec<OpKind> {
    let Some(first) = pair.all().next().map(|m| m.measurement()) else {
        return Vec::new();
    };
    let headline = first.headline_ops().into_iter();
    let mut ops: Vec<OpKind> = headline.map(|(kind, _)| kind).collect();
    if matches!(first.workload.sync, SyncPolicy::Every { writes: 2.., .. }) {
        ops.push(OpKind::Sync);
    }
    ops.retain(|op| {
        pair.all()
            .all(|m| m.measurement().ops.get(op).is_some_and(|op| op.count > 0))
    });
    ops
}

fn measurements<'a>(runs: &[Measured<'a>]) -> Vec<&'a MeasurementRecord> {
    runs.iter().map(|m| m.measurement()).collect()
}

/// The latency distributions of both sides.
pub(super) fn percentile_pairs(pair: &Pair<Measured<'_>>, comparable: bool) -> Vec<PercentilePair> {
    let (a, b) = (measurements(&pair.a), measurements(&pair.b));
    let Some(first) = pair.all().next().map(|m| m.measurement()) else {
        return Vec::new();
    };
    let of_kind = |op| {
        Some(PercentilePair {
            subject: first.workload.name.clone(),
            target: first.target,
            op,
            comparable,
            a: distribution(&a, op)?.points(),
            b: distribution(&b, op)?.points(),
        })
    };
    common_ops(pair).into_iter().filter_map(of_kind).collect()
}
