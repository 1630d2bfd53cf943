//! Which metrics of a workload are compared, what they are called, and which one of them speaks for
//! it.

use super::blocks::Blocks;
use super::comparable::Measured;
use super::earlier::{EarlierRuns, same_workload};
use super::figures::{Figures, Told};
use super::ratio::{Joined, SideFigure};
use super::reasons::reasons;
use crate::estimate::PairedDifference;
use diskproof_model::comparison::{Basis, Direction, Figure, Needed, PercentilePair, Reason};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::SyncPolicy;
use diskproof_model::record::MeasurementRecord;

const LATENCIES: [Figure; 4] = [Figure::Mean, Figure::P50, Figure::P99, Figure::P99_9];

/// A metric before its verdict.
pub(super) struct Row {
    pub name: Name,
    pub better: Direction,
    pub a: Told,
    pub b: Told,
    /// Where it is not told by the samples.
    pub basis: Option<Basis>,
    /// The longest that a run measured it, in nanoseconds.
    pub wall_ns: u64,
    pub reasons: Vec<Reason>,
    /// Of an observed load: neither side is better.
    pub is_load: bool,
    /// The ratio; `None` where the metric is not comparable, or too little was measured.
    pub joined: Option<Joined>,
}

/// What a metric is called and stands for.
pub(super) struct Name {
    pub metric: String,
    pub subject: String,
    pub target: usize,
    pub op: Option<OpKind>,
    pub figure: Figure,
    pub headline: bool,
}

/// A figure on both sides, and in groups of earlier runs.
pub(super) struct MetricFigures {
    pub a: Told,
    pub b: Told,
    pub earlier: Vec<SideFigure>,
    /// The difference within the blocks of a live comparison.
    pub difference: Option<PairedDifference>,
}

impl Row {
    pub(super) fn new(name: Name, told: MetricFigures, wall_ns: u64, reasons: &[Reason]) -> Self {
        let (a, b) = (told.a, told.b);
        let joined = match told.difference {
            _ if !reasons.is_empty() => None,
            Some(difference) => Joined::of_blocks(&a.sample, &b.sample, difference),
            None => Joined::of(&a.sample, &b.sample, &told.earlier),
        };
        let better = Direction::of_unit(&a.estimate.unit);
        Self {
            name,
            better,
            a,
            b,
            basis: None,
            wall_ns,
            reasons: reasons.to_vec(),
            is_load: false,
            joined,
        }
    }

    /// What `times` as much comes to.
    pub(super) fn needed(&self, times: f64, basis: Basis) -> Needed {
        let runs = self.a.sample.runs.min(self.b.sample.runs) as f64;
        let (measure_ns, runs) = match basis {
            Basis::BetweenRuns => (None, Some((times * runs).ceil().max(2.0) as u64)),
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

/// The metrics of a workload that both sides measured.
pub(super) fn of_workload(
    prefix: &str,
    a: &[Measured<'_>],
    b: &[Measured<'_>],
    earlier: &EarlierRuns<'_>,
) -> Vec<Row> {
    let all: Vec<Measured<'_>> = a.iter().chain(b).copied().collect();
    let reasons = reasons(&all);
    let Some(leader) = a.first() else {
        return Vec::new();
    };
    let first = leader.measurement();
    let (figures_a, figures_b) = (figures(a), figures(b));
    let groups = earlier.repeats_of(*leader, |run| same_workload(*leader, run));
    let groups: Vec<Figures<'_>> = groups.iter().map(|runs| figures(runs)).collect();
    let wall_ns = figures_a.wall_ns().max(figures_b.wall_ns());
    let subject = &first.workload.name;
    let ops = common_ops(&all);
    let is_mix = ops.iter().filter(|op| **op != OpKind::Sync).count() > 1;
    let lead = leading(first, &ops, &figures_a, &figures_b);
    let name = |op: Option<OpKind>, figure: Figure| {
        let kind = op.filter(|op| is_mix || *op == OpKind::Sync);
        let kind = kind.map_or(String::new(), |op| format!("{}.", op.as_str()));
        let metric = format!("{prefix}{subject}.{kind}{}", figure.as_str());
        Name {
            metric,
            subject: subject.clone(),
            target: first.target,
            op,
            figure,
            headline: lead == (op, figure),
        }
    };
    let mut rows = Vec::new();
    let of_mix = is_mix.then_some(None).into_iter();
    let all_ops = of_mix.chain(ops.iter().map(|op| Some(*op)));
    let blocks = Blocks::of(a, b);
    let mut add = |op: Option<OpKind>, figure: Figure| {
        let told = |side: &Figures<'_>| match (op, figure) {
            (_, Figure::Iops | Figure::Throughput) => side.rate(op, figure),
            (Some(op), _) => side.latency(op, figure),
            (None, _) => None,
        };
        if let (Some(mut a), Some(mut b)) = (told(&figures_a), told(&figures_b)) {
            let earlier = groups.iter().filter_map(told).map(|told| told.sample);
            let earlier = earlier.collect();
            let difference = blocks
                .as_ref()
                .and_then(|blocks| blocks.replace((op, figure), (&mut a, &mut b)));
            let told = MetricFigures {
                a,
                b,
                earlier,
                difference,
            };
            rows.push(Row::new(name(op, figure), told, wall_ns, &reasons));
        }
    };
    for op in all_ops {
        add(op, Figure::Iops);
        add(op, Figure::Throughput);
        if op.is_some() {
            LATENCIES.into_iter().for_each(|figure| add(op, figure));
        }
    }
    rows
}

/// The one metric that speaks for the workload: its rate, of reads and writes together where there
/// are both; under an offered load, which fixes the rate, a latency that users feel.
fn leading(
    m: &MeasurementRecord,
    ops: &[OpKind],
    a: &Figures<'_>,
    b: &Figures<'_>,
) -> (Option<OpKind>, Figure) {
    let op = ops.first().copied();
    if m.workload.rate.is_some() {
        let has =
            |side: &Figures<'_>, figure| op.is_some_and(|op| side.latency(op, figure).is_some());
        let mut percentiles = [Figure::P99, Figure::P50].into_iter();
        let known = percentiles.find(|figure| has(a, *figure) && has(b, *figure));
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
fn common_ops(runs: &[Measured<'_>]) -> Vec<OpKind> {
    let Some(first) = runs.first().map(|m| m.measurement()) else {
        return Vec::new();
    };
    let headline = first.headline_ops().into_iter();
    let mut ops: Vec<OpKind> = headline.map(|(kind, _)| kind).collect();
    if matches!(first.workload.sync, SyncPolicy::Every { writes: 2.., .. }) {
        ops.push(OpKind::Sync);
    }
    ops.retain(|op| {
        runs.iter()
            .all(|m| m.measurement().ops.get(op).is_some_and(|op| op.count > 0))
    });
    ops
}

fn figures<'a>(runs: &[Measured<'a>]) -> Figures<'a> {
    Figures::of(&runs.iter().map(|m| m.measurement()).collect::<Vec<_>>())
}

/// The latency distributions of both sides.
pub(super) fn percentile_pairs(
    a: &[Measured<'_>],
    b: &[Measured<'_>],
    comparable: bool,
) -> Vec<PercentilePair> {
    let all: Vec<Measured<'_>> = a.iter().chain(b).copied().collect();
    let (figures_a, figures_b) = (figures(a), figures(b));
    let Some(first) = all.first().map(|m| m.measurement()) else {
        return Vec::new();
    };
    let pair = |op| {
        Some(PercentilePair {
            subject: first.workload.name.clone(),
            target: first.target,
            op,
            comparable,
            a: figures_a.distribution(op)?.points(),
            b: figures_b.distribution(op)?.points(),
        })
    };
    common_ops(&all).into_iter().filter_map(pair).collect()
}
