//! The metrics of a workload: their names, and the one that represents it.

use super::blocks::Blocks;
use super::comparable::MeasuredWorkload;
use super::latencies::{latency_estimate, merged_latencies};
use super::pair::{ComparedRow, Pair};
use super::rates::rate_estimate;
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
pub(super) fn workload_rows(prefix: &str, pair: &Pair<MeasuredWorkload<'_>>) -> Vec<ComparedRow> {
    let Some(leader) = pair.a.first() else {
        return Vec::new();
    };
    let first = leader.row();
    let ops = common_ops(pair);
    let is_mix = is_mix(&ops);
    let lead = lead_metric(first, &ops, pair);
    let blocks = Blocks::from_runs(&pair.a, &pair.b);
    let mut rows = Vec::new();
    for op in compared_kinds(&ops) {
        let name = format!(
            "{prefix}{}.{}",
            first.data.workload.name,
            kind_prefix(op, is_mix)
        );
        for figure in FIGURES {
            let Some(mut row) = figure_row(&name, pair, blocks.as_ref(), op, figure) else {
                continue;
            };
            row.metric.target = first.data.target;
            row.metric.op = op;
            row.metric.headline = lead == LeadMetric { op, figure };
            rows.push(row);
        }
    }
    rows
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
fn figure_row(
    name_prefix: &str,
    pair: &Pair<MeasuredWorkload<'_>>,
    blocks: Option<&Blocks<'_>>,
    op: Option<OpKind>,
    figure: Figure,
) -> Option<ComparedRow> {
    let subject = &pair.a.first()?.row().data.workload.name;
    let mut estimates =
        pair.side_estimates(|runs| estimate_of_side(&rows_of_runs(runs), op, figure))?;
    let difference = match blocks {
        Some(blocks) => blocks.apply(op, figure, &mut estimates),
        None => None,
    };
    let ratio = match difference {
        Some(difference) => {
            RatioEstimate::from_blocks(&estimates.a.sample, &estimates.b.sample, difference)
        }
        None => estimates.ratio(),
    };
    let walls = pair.parts().map(|measured| measured.row().data.wall_ns);
    Some(ComparedRow::new(
        format!("{name_prefix}{}", figure.as_str()),
        subject,
        figure,
        estimates,
        ratio,
        walls.max().unwrap_or(0),
        &pair.reasons,
    ))
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
pub(super) fn leading_row(measured: MeasuredWorkload<'_>) -> Option<LeadingFigure> {
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

/// Returns `true` if reads and writes are mixed. Syncs follow writes, and do not count.
fn is_mix(ops: &[OpKind]) -> bool {
    ops.iter().filter(|op| **op != OpKind::Sync).count() > 1
}

/// A figure of one side. Reads and writes together have no latency.
fn estimate_of_side(runs: &[&Row], op: Option<OpKind>, figure: Figure) -> Option<SideEstimate> {
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
    let is_single = ops.iter().filter(|op| **op != OpKind::Sync).count() == 1;
    LeadMetric {
        op: if is_single { op } else { None },
        figure,
    }
}

fn has_latency(side: &[MeasuredWorkload<'_>], op: Option<OpKind>, figure: Figure) -> bool {
    match op {
        Some(op) => latency_estimate(&rows_of_runs(side), op, figure).is_some(),
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
fn rows_of_runs<'a>(runs: &[MeasuredWorkload<'a>]) -> Vec<&'a Row> {
    runs.iter().map(|measured| measured.row()).collect()
}

/// The latency distributions of both sides, for each kind of operation.
pub(super) fn percentile_pairs(
    pair: &Pair<MeasuredWorkload<'_>>,
    comparable: bool,
) -> Vec<PercentilePair> {
    let (a, b) = (rows_of_runs(&pair.a), rows_of_runs(&pair.b));
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
                comparable,
                a: latencies_a.points(),
                b: latencies_b.points(),
            });
        }
    }
    pairs
}
