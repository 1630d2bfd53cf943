//! Lists the metrics of a workload that both sides measured, with their names, and chooses the one
//! that represents it. The names are a contract: conditions and documents use them.

use super::blocks::Blocks;
use super::comparable::MeasuredWorkload;
use super::latencies::{LatencyFigure, latency_estimate, merged_latencies};
use super::pair::Pair;
use super::pending_metric::{ComparedFigure, PendingMetric};
use super::rates::{RateUnit, rate_estimate};
use super::ratio::RatioEstimate;
use super::side_estimate::SideEstimate;
use diskproof_model::comparison::{Figure, PercentilePair};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::SyncPolicy;
use diskproof_model::row::Row;

/// The figures of a kind of operation that are compared, in the order of the table.
const FIGURES: [Figure; 6] = [
    Figure::Iops,
    Figure::Throughput,
    Figure::Mean,
    Figure::P50,
    Figure::P99,
    Figure::P99_9,
];

/// The metrics of a workload that both sides measured. `prefix` names the target where there are
/// several.
pub(super) fn workload_metrics(
    prefix: &str,
    pair: &Pair<MeasuredWorkload<'_>>,
) -> Vec<PendingMetric> {
    let Some(leader) = pair.a.first() else {
        return Vec::new();
    };
    let first = leader.row();
    let ops = common_ops(pair);
    let has_mix = is_mix(&ops);
    let lead = lead_metric(first, &ops, pair);
    let blocks = Blocks::from_runs(&pair.a, &pair.b);
    let mut metrics = Vec::new();
    for op in compared_kinds(&ops) {
        let name = format!(
            "{prefix}{}.{}",
            first.data.workload.name,
            kind_prefix(op, has_mix)
        );
        for figure in FIGURES {
            let Some(mut pending) = figure_metric(&name, pair, blocks.as_ref(), op, figure) else {
                continue;
            };
            pending.metric.target = first.data.target;
            pending.metric.op = op;
            pending.metric.headline = lead == LeadMetric { op, figure };
            metrics.push(pending);
        }
    }
    metrics
}

/// The kinds of operation that have metrics; `None` stands for all operations of a mix together.
fn compared_kinds(ops: &[OpKind]) -> Vec<Option<OpKind>> {
    let mut kinds = Vec::new();
    if is_mix(ops) {
        kinds.push(None);
    }
    for op in ops {
        kinds.push(Some(*op));
    }
    kinds
}

/// The metric of one figure, which follows `name_prefix` in its name; `None` where a side lacks the
/// figure. Blocks of a live comparison decide the ratio where they have it.
fn figure_metric(
    name_prefix: &str,
    pair: &Pair<MeasuredWorkload<'_>>,
    blocks: Option<&Blocks<'_>>,
    op: Option<OpKind>,
    figure: Figure,
) -> Option<PendingMetric> {
    let subject = &pair.a.first()?.row().data.workload.name;
    let mut estimates =
        pair.side_estimates(|runs| estimate_of_side(&measured_rows(runs), op, figure))?;
    let difference = match blocks {
        Some(blocks) => blocks.apply(op, figure, &mut estimates),
        None => None,
    };
    let ratio = match difference {
        Some(difference) => {
            RatioEstimate::from_blocks(&estimates.a.figure, &estimates.b.figure, difference)
        }
        None => estimates.ratio(),
    };
    let walls = pair.parts().map(|measured| measured.row().data.wall_ns);
    Some(PendingMetric::new(
        format!("{name_prefix}{}", figure.as_str()),
        ComparedFigure {
            subject,
            figure,
            estimates,
            ratio,
            measured_ns: walls.max(),
            reasons: &pair.reasons,
        },
    ))
}

/// The kind of operation before the figure in the name of a metric: `read.`, or nothing where the
/// workload has only one kind.
fn kind_prefix(op: Option<OpKind>, has_mix: bool) -> String {
    match op {
        Some(op) if has_mix || op == OpKind::Sync => format!("{}.", op.as_str()),
        Some(_) | None => String::new(),
    }
}

/// The figure that represents a workload in one run.
pub(super) struct LeadingFigure {
    pub metric: String,
    pub figure: Figure,
    pub side: SideEstimate,
}

/// The figure that represents a workload in one run; `None` where it has none.
pub(super) fn leading_figure(measured: MeasuredWorkload<'_>) -> Option<LeadingFigure> {
    let pair = Pair::with_itself(measured);
    let ops = common_ops(&pair);
    let row = measured.row();
    let LeadMetric { op, figure } = lead_metric(row, &ops, &pair);
    let kind = kind_prefix(op, is_mix(&ops));
    Some(LeadingFigure {
        metric: format!("{}.{kind}{}", row.data.workload.name, figure.as_str()),
        figure,
        side: estimate_of_side(&[row], op, figure)?,
    })
}

/// Returns `true` if reads and writes are mixed.
fn is_mix(ops: &[OpKind]) -> bool {
    kinds_but_syncs(ops) > 1
}

/// The number of kinds without syncs, which follow writes.
fn kinds_but_syncs(ops: &[OpKind]) -> usize {
    ops.iter().filter(|op| **op != OpKind::Sync).count()
}

/// A figure of one side. Reads and writes together have no latency.
fn estimate_of_side(runs: &[&Row], op: Option<OpKind>, figure: Figure) -> Option<SideEstimate> {
    match figure {
        Figure::Iops => rate_estimate(runs, op, RateUnit::Operations),
        Figure::Throughput => rate_estimate(runs, op, RateUnit::Bytes),
        Figure::Mean => latency_estimate(runs, op?, LatencyFigure::Mean),
        Figure::P50 => latency_estimate(runs, op?, LatencyFigure::Quantile(0.50)),
        Figure::P99 => latency_estimate(runs, op?, LatencyFigure::Quantile(0.99)),
        Figure::P99_9 => latency_estimate(runs, op?, LatencyFigure::Quantile(0.999)),
        Figure::CurveAverage
        | Figure::CurveMin
        | Figure::CurveMax
        | Figure::AccessTime
        | Figure::PromisedRate => None,
    }
}

/// The metric that represents a workload.
#[derive(PartialEq, Eq)]
struct LeadMetric {
    /// `None` for all operations together.
    op: Option<OpKind>,
    figure: Figure,
}

/// Chooses the metric that represents the workload: its rate, of reads and writes together where
/// there are both. Under an offered load, which fixes the rate, it is a latency that users feel.
fn lead_metric(row: &Row, ops: &[OpKind], pair: &Pair<MeasuredWorkload<'_>>) -> LeadMetric {
    let op = ops.first().copied();
    if row.data.workload.is_paced() {
        for figure in [Figure::P99, Figure::P50] {
            if has_latency(&pair.a, op, figure) && has_latency(&pair.b, op, figure) {
                return LeadMetric { op, figure };
            }
        }
        let figure = Figure::Mean;
        return LeadMetric { op, figure };
    }
    let figure = if row.is_rated_in_bytes() {
        Figure::Throughput
    } else {
        Figure::Iops
    };
    let is_single = kinds_but_syncs(ops) == 1;
    LeadMetric {
        op: if is_single { op } else { None },
        figure,
    }
}

/// Returns `true` if a side has this latency figure; all operations together have none.
fn has_latency(side: &[MeasuredWorkload<'_>], op: Option<OpKind>, figure: Figure) -> bool {
    match op {
        Some(op) => estimate_of_side(&measured_rows(side), Some(op), figure).is_some(),
        None => false,
    }
}

/// The kinds of operation that every run has: the headline kinds, and syncs where each follows
/// several writes.
fn common_ops(pair: &Pair<MeasuredWorkload<'_>>) -> Vec<OpKind> {
    let Some(first) = pair.parts().next().map(|measured| measured.row()) else {
        return Vec::new();
    };
    let mut ops = Vec::new();
    for (kind, _) in first.headline_ops() {
        ops.push(kind);
    }
    if matches!(
        first.data.workload.sync,
        SyncPolicy::Every { writes: 2.., .. }
    ) {
        ops.push(OpKind::Sync);
    }
    ops.retain(|op| {
        pair.parts()
            .all(|measured| measured.row().op(*op).is_some_and(|op| op.data.count > 0))
    });
    ops
}

/// The row of the workload in the record of each run.
fn measured_rows<'a>(runs: &[MeasuredWorkload<'a>]) -> Vec<&'a Row> {
    runs.iter().map(|measured| measured.row()).collect()
}

/// The latency distributions of both sides, for each kind of operation. The caller, who knows
/// whether the workload is comparable, marks them as comparable.
pub(super) fn percentile_pairs(pair: &Pair<MeasuredWorkload<'_>>) -> Vec<PercentilePair> {
    let (a, b) = (measured_rows(&pair.a), measured_rows(&pair.b));
    let Some(first) = pair.parts().next().map(|measured| measured.row()) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for op in common_ops(pair) {
        if let Some(latencies_a) = merged_latencies(&a, op)
            && let Some(latencies_b) = merged_latencies(&b, op)
        {
            pairs.push(PercentilePair {
                subject: first.data.workload.name.clone(),
                target: first.data.target,
                op,
                comparable: false,
                a: latencies_a.points(),
                b: latencies_b.points(),
            });
        }
    }
    pairs
}
