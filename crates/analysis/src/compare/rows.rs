//! The metrics of a workload: their names, and the one that represents it.

use super::blocks::Blocks;
use super::comparable::Measured;
use super::figures::{Runs, SideEstimate, latency_estimate, merged_latencies, rate_estimate};
use super::pair::{ComparedRow, Pair};
use super::ratio::RatioEstimate;
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
pub(super) fn workload_rows(prefix: &str, pair: &Pair<Measured<'_>>) -> Vec<ComparedRow> {
    let Some(first) = pair.a.first().map(|leader| leader.measurement()) else {
        return Vec::new();
    };
    let walls = pair
        .parts()
        .map(|measured| measured.measurement().data.wall_ns);
    let wall_ns = walls.max().unwrap_or(0);
    let subject = &first.data.workload.name;
    let ops = common_ops(pair);
    let is_mix = is_mix(&ops);
    let lead = lead_metric(first, &ops, pair);
    let blocks = Blocks::from_runs(&pair.a, &pair.b);
    // `None` stands for all operations together.
    let mut kinds: Vec<Option<OpKind>> = ops.iter().copied().map(Some).collect();
    if is_mix {
        kinds.insert(0, None);
    }
    let mut rows = Vec::new();
    for op in kinds {
        let kind = kind_prefix(op, is_mix);
        for figure in FIGURES {
            let estimates =
                pair.side_estimates(|runs| estimate_of_side(&measurements(runs), op, figure));
            let Some(mut estimates) = estimates else {
                continue;
            };
            let difference = match &blocks {
                Some(blocks) => blocks.apply(op, figure, &mut estimates),
                None => None,
            };
            let ratio = match difference {
                Some(difference) => {
                    RatioEstimate::from_blocks(&estimates.a.sample, &estimates.b.sample, difference)
                }
                None => estimates.ratio(),
            };
            let mut row = ComparedRow::new(
                format!("{prefix}{subject}.{kind}{}", figure.as_str()),
                subject,
                figure,
                estimates,
                ratio,
                wall_ns,
                &pair.reasons,
            );
            row.metric.target = first.data.target;
            row.metric.op = op;
            row.metric.headline = lead == LeadMetric { op, figure };
            rows.push(row);
        }
    }
    rows
}

/// The kind of operation before the figure in the name of a metric: `read.`, or nothing where the
/// workload has only one kind.
fn kind_prefix(op: Option<OpKind>, is_mix: bool) -> String {
    match op {
        Some(op) if is_mix || op == OpKind::Sync => format!("{}.", op.as_str()),
        _ => String::new(),
    }
}

/// The figure that represents a workload in one run.
pub(super) struct LeadingFigure {
    pub metric: String,
    pub figure: Figure,
    pub side: SideEstimate,
}

/// The figure that represents a workload in one run; `None` where it has none.
pub(super) fn leading_row(measured: Measured<'_>) -> Option<LeadingFigure> {
    let pair = Pair::with_itself(measured);
    let ops = common_ops(&pair);
    let row = measured.measurement();
    let LeadMetric { op, figure } = lead_metric(row, &ops, &pair);
    let kind = kind_prefix(op, is_mix(&ops));
    Some(LeadingFigure {
        metric: format!("{}.{kind}{}", row.data.workload.name, figure.as_str()),
        figure,
        side: estimate_of_side(&[row], op, figure)?,
    })
}

/// Returns `true` if reads and writes are mixed. Syncs follow writes, and do not count.
fn is_mix(ops: &[OpKind]) -> bool {
    ops.iter().filter(|op| **op != OpKind::Sync).count() > 1
}

/// A figure of one side. Reads and writes together have no latency.
fn estimate_of_side(runs: &Runs<'_>, op: Option<OpKind>, figure: Figure) -> Option<SideEstimate> {
    if matches!(figure, Figure::Iops | Figure::Throughput) {
        return rate_estimate(runs, op, figure);
    }
    latency_estimate(runs, op?, figure)
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
fn lead_metric(row: &Row, ops: &[OpKind], pair: &Pair<Measured<'_>>) -> LeadMetric {
    let op = ops.first().copied();
    if row.data.workload.rate.is_some() {
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
    let is_single = ops.iter().filter(|op| **op != OpKind::Sync).count() == 1;
    LeadMetric {
        op: if is_single { op } else { None },
        figure,
    }
}

fn has_latency(side: &[Measured<'_>], op: Option<OpKind>, figure: Figure) -> bool {
    match op {
        Some(op) => latency_estimate(&measurements(side), op, figure).is_some(),
        None => false,
    }
}

/// The kinds of operation that every run has: the headline kinds, and syncs where each follows
/// several writes.
fn common_ops(pair: &Pair<Measured<'_>>) -> Vec<OpKind> {
    let Some(first) = pair.parts().next().map(|measured| measured.measurement()) else {
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
        pair.parts().all(|measured| {
            measured
                .measurement()
                .op(*op)
                .is_some_and(|op| op.data.count > 0)
        })
    });
    ops
}

fn measurements<'a>(runs: &[Measured<'a>]) -> Vec<&'a Row> {
    runs.iter().map(|measured| measured.measurement()).collect()
}

/// The latency distributions of both sides, for each kind of operation.
pub(super) fn percentile_pairs(pair: &Pair<Measured<'_>>, comparable: bool) -> Vec<PercentilePair> {
    let (a, b) = (measurements(&pair.a), measurements(&pair.b));
    let Some(first) = pair.parts().next().map(|measured| measured.measurement()) else {
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
                comparable,
                a: latencies_a.points(),
                b: latencies_b.points(),
            });
        }
    }
    pairs
}
