//! Which metrics of a workload are compared, what they are called, and which one of them speaks for
//! it.

use super::blocks::Blocks;
use super::comparable::Measured;
use super::figures::{distribution, latency, rate};
use super::pair::{ComparedRow, Pair};
use super::ratio::Joined;
use diskproof_model::comparison::{Figure, PercentilePair};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::SyncPolicy;
use diskproof_model::row::Row;

const LATENCIES: [Figure; 4] = [Figure::Mean, Figure::P50, Figure::P99, Figure::P99_9];

/// The metrics of a workload that both sides measured.
pub(super) fn of_workload(prefix: &str, pair: &Pair<Measured<'_>>) -> Vec<ComparedRow> {
    let Some(first) = pair.a.first().map(|leader| leader.measurement()) else {
        return Vec::new();
    };
    let wall_ns = pair.all().map(|m| m.measurement().data.wall_ns);
    let wall_ns = wall_ns.max().unwrap_or(0);
    let subject = &first.data.workload.name;
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
        let mut row = ComparedRow::new(name, figure, (a, b), joined, wall_ns, &pair.reasons);
        (row.metric.target, row.metric.op) = (first.data.target, op);
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
fn leading(m: &Row, ops: &[OpKind], pair: &Pair<Measured<'_>>) -> (Option<OpKind>, Figure) {
    let op = ops.first().copied();
    if m.data.workload.rate.is_some() {
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
    if matches!(
        first.data.workload.sync,
        SyncPolicy::Every { writes: 2.., .. }
    ) {
        ops.push(OpKind::Sync);
    }
    ops.retain(|op| {
        pair.all()
            .all(|m| m.measurement().op(*op).is_some_and(|op| op.data.count > 0))
    });
    ops
}

fn measurements<'a>(runs: &[Measured<'a>]) -> Vec<&'a Row> {
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
            subject: first.data.workload.name.clone(),
            target: first.data.target,
            op,
            comparable,
            a: distribution(&a, op)?.points(),
            b: distribution(&b, op)?.points(),
        })
    };
    common_ops(pair).into_iter().filter_map(of_kind).collect()
}
