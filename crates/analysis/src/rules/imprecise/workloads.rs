//! Workloads whose rate is known less well than it should be, or never settled.

use super::super::cpu_limited::is_cpu_limited;
use super::super::cpu_stolen::large_share;
use super::super::rule::*;
use super::super::starved::waits_for_processor;
use crate::estimate;
use crate::estimate::{BATCHES_MIN, Settling};
use crate::surface::is_short_stroke;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::measurement::{SERIES_INTERVAL_NS, StopReason};

/// Relative half-width up to which a figure needs no comment: half of what tells two disks apart in
/// practice.
pub(super) const WIDTH_NOTE: f64 = 0.05;

/// Beyond this half-width the claim speaks of a factor of two: a rate of ±50 % may lie at half of
/// the figure.
const WIDTH_FACTOR_TWO: f64 = 0.5;

/// Shortest measured time that an interval can be computed for.
pub(super) const WALL_NS_MIN: u64 = BATCHES_MIN as u64 * SERIES_INTERVAL_NS;

/// Longest time that is suggested, an hour; what needs more does not get precise by waiting.
/// Chosen, not measured.
const SUGGESTED_NS_MAX: f64 = 3600e9;
/// The shortest time to suggest, in seconds: five slices of two.
const SUGGESTED_SECONDS_MIN: u64 = 10;

/// If the spread from run to run makes up this share of the interval, or more, then a longer run
/// cannot narrow it. Just below 1, so that rounding does not decide.
const SHARE_OF_RUNS_MIN: f64 = 0.99;

/// An interval of a few batches is itself known to about this factor. Chosen, not measured.
const SPLIT_ERROR_FACTOR: f64 = 1.5;

/// A workload whose rate is not known well enough.
struct ImpreciseWorkload<'a> {
    measured: Measured<'a>,
    severity: Severity,
    /// Relative half-width; infinite where there was too little to tell.
    width: f64,
    evidence: Evidence,
}

/// Reports workloads whose rate is known too roughly.
pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    // What counts is the differences between the layers, and each has its own interval.
    if record.plan.layers().is_some() {
        return None;
    }
    let mut imprecise: Vec<ImpreciseWorkload<'_>> = Vec::new();
    for measured in real_rows(record) {
        // A burst that ends is no noise: burst-figure says what it is.
        if is_result(record, measured.row) && !is_in_burst(record, measured.index) {
            imprecise.extend(imprecise_workload(measured));
        }
    }
    let worst = largest_by(&imprecise, |workload| workload.width)?;
    let severity = imprecise.iter().map(|workload| workload.severity).max()?;
    let observations = imprecise.iter().map(|workload| workload.evidence.clone());
    Some(
        Diagnosis::new(severity, claim(record, &imprecise, worst), observations)
            .with_remedy(remedy(record, &imprecise, worst)),
    )
}

/// One sentence for each way in which rates are not known, then the consequence.
fn claim(
    record: &Record,
    imprecise: &[ImpreciseWorkload<'_>],
    worst: &ImpreciseWorkload<'_>,
) -> String {
    let mut sentences = Vec::new();
    sentences.extend(unanswered_sentence(record, imprecise));
    sentences.extend(used_up_sentence(record, imprecise));
    sentences.extend(rough_sentence(record, imprecise));
    sentences.extend(unsettled_sentence(record, imprecise));
    sentences.push(consequence(worst));
    sentences.join(" ")
}

/// The places of the workloads of which this is true.
fn indices_of(imprecise: &[ImpreciseWorkload<'_>], is_true: fn(&Row) -> bool) -> Vec<usize> {
    let mut indices = Vec::new();
    for hit in imprecise {
        if is_true(hit.measured.row) {
            indices.push(hit.measured.index);
        }
    }
    indices
}

/// Only the depth that a search found is a result of it.
fn is_result(record: &Record, row: &Row) -> bool {
    let Some(answer) = record.latency_search().and_then(LatencySearch::found) else {
        return true;
    };
    answer.workload == row.data.workload.name
}

/// The workloads none of whose operations completed in time.
fn unanswered_sentence(record: &Record, imprecise: &[ImpreciseWorkload<'_>]) -> Option<String> {
    let unanswered = indices_of(imprecise, is_unanswered);
    let first = unanswered.first()?;
    Some(format!(
        "No operation completed within the measured time of {} in {}.",
        format_duration(record.measurements[*first].data.wall_ns),
        workload_names(record, unanswered.iter().copied())
    ))
}

/// The workloads that ended with their warm-up.
fn used_up_sentence(record: &Record, imprecise: &[ImpreciseWorkload<'_>]) -> Option<String> {
    let used_up = indices_of(imprecise, is_used_up);
    if used_up.is_empty() {
        return None;
    }
    Some(format!(
        "Nothing was left to measure after the warm-up in {}.",
        workload_names(record, used_up)
    ))
}

/// The workloads that were measured too short to settle.
fn unsettled_sentence(record: &Record, imprecise: &[ImpreciseWorkload<'_>]) -> Option<String> {
    let unsettled = indices_of(imprecise, is_unsettled);
    if unsettled.is_empty() {
        return None;
    }
    Some(format!(
        "The rate was still changing at the end of {}.",
        workload_names(record, unsettled)
    ))
}

/// Workloads whose rate is known only roughly, with the least known one.
fn rough_sentence(record: &Record, imprecise: &[ImpreciseWorkload<'_>]) -> Option<String> {
    let rough: Vec<&ImpreciseWorkload<'_>> = imprecise
        .iter()
        .filter(|hit| hit.width > WIDTH_NOTE && !is_empty(hit.measured.row))
        .collect();
    let roughest = largest_by(&rough, |hit| hit.width)?;
    let mut precision = if roughest.width.is_finite() {
        format!("to ±{}", format_percent(roughest.width))
    } else {
        "too short for an interval".to_owned()
    };
    if rough.len() > 1 {
        precision.push_str(" in ");
        precision.push_str(&workload_name(record, roughest.measured.row));
    }
    let scope = workload_names(record, rough.iter().map(|hit| hit.measured.index));
    Some(format!(
        "The rate is only approximate in {scope}: {precision}."
    ))
}

/// What a reader might decide wrongly.
fn consequence(worst: &ImpreciseWorkload<'_>) -> String {
    if worst.width.is_infinite() {
        "A decision based on such a figure may be wrong.".to_owned()
    } else if worst.width > WIDTH_FACTOR_TWO {
        "Disks or settings that differ by a factor of two could show the same figure.".to_owned()
    } else if worst.width > WIDTH_NOTE {
        format!(
            "A disk up to {} faster or slower could show the same figure, so a choice between \
             disks or settings may be wrong.",
            format_percent(worst.width)
        )
    } else {
        "The sustained rate may be lower, so capacity planned with this figure may be too small."
            .to_owned()
    }
}

fn is_unsettled(row: &Row) -> bool {
    row.figures.settled == Some(false)
}

fn is_empty(row: &Row) -> bool {
    is_unanswered(row) || is_used_up(row)
}

/// True if every request completed only after the measured time.
fn is_unanswered(row: &Row) -> bool {
    has_no_count(row)
        && row.data.hang.is_none()
        && row
            .headline_ops()
            .iter()
            .any(|(_, op)| op.figures.latency.max > 0)
}

fn has_no_count(row: &Row) -> bool {
    row.headline_ops()
        .iter()
        .all(|(_, op)| op.data.count == 0 && op.data.errors.is_empty())
}

/// True if the warm-up used up all operations or bytes, and left nothing to measure.
fn is_used_up(row: &Row) -> bool {
    let ops = row.headline_ops();
    matches!(row.data.stopped, StopReason::Ops | StopReason::Bytes)
        && !ops.is_empty()
        && has_no_count(row)
        && ops.iter().all(|(_, op)| op.figures.latency.max == 0)
}

/// The operation of a workload that is known least; `None` where all are known well.
fn imprecise_workload(measured: Measured<'_>) -> Option<ImpreciseWorkload<'_>> {
    // The pace of single requests is the user's, not the disk's.
    if measured.row.figures.ping.is_some() {
        return None;
    }
    if is_empty(measured.row) {
        return empty_workload(measured);
    }
    let mut ops = measured.row.headline_ops();
    ops.retain(|(_, op)| op.data.count > 0);
    let (kind, op) = largest_by(ops, |(_, op)| judged_width(measured.row, *op))?;
    let width = judged_width(measured.row, op);
    let judgement = judge_width(measured, kind, op, width)?;
    Some(ImpreciseWorkload {
        measured,
        severity: judgement.severity,
        width,
        evidence: judgement.evidence,
    })
}

/// A workload of which nothing was measured.
fn empty_workload(measured: Measured<'_>) -> Option<ImpreciseWorkload<'_>> {
    let (kind, _) = measured.row.headline_ops().into_iter().next()?;
    let place = format!("data/ops/{}/count", kind.as_str());
    Some(ImpreciseWorkload {
        measured,
        severity: Severity::Warning,
        width: f64::INFINITY,
        evidence: measured.evidence(&place, 0.0, 1.0, "1"),
    })
}

/// The weight of an imprecise rate, and the figure that shows it.
struct WidthJudgement {
    severity: Severity,
    evidence: Evidence,
}

/// The judgement on a rate that is known to this relative half-width; `None` where that is good
/// enough and the rate settled.
fn judge_width(
    measured: Measured<'_>,
    kind: OpKind,
    op: OpRow<'_>,
    width: f64,
) -> Option<WidthJudgement> {
    let rate = &op.figures.iops;
    let Some(half_width) = rate.half_width_95 else {
        let wall_ns = measured.row.data.wall_ns as f64;
        return Some(WidthJudgement {
            severity: Severity::Warning,
            evidence: measured.evidence("data/wall_ns", wall_ns, WALL_NS_MIN as f64, "ns"),
        });
    };
    if width > WIDTH_NOTE {
        let place = format!("figures/ops/{}/iops/half_width_95", kind.as_str());
        let threshold = WIDTH_NOTE * rate.value;
        return Some(WidthJudgement {
            severity: warning_if(width > HALF_WIDTH_MAX),
            evidence: measured.evidence(&place, half_width, threshold, "1/s"),
        });
    }
    if is_unsettled(measured.row) {
        return Some(WidthJudgement {
            severity: Severity::Note,
            evidence: measured.evidence("figures/settled", 0.0, 1.0, "settled"),
        });
    }
    None
}

/// The error of the rate of a kind of operation, as a share. In a mix each operation draws
/// whether it reads or writes: where that explains the spread of the kind, the rate of the whole
/// mix counts, because the disk is not the cause of the rest.
fn judged_width(row: &Row, op: OpRow<'_>) -> f64 {
    let Some(kind_width) = op.figures.iops.relative_half_width() else {
        return f64::INFINITY;
    };
    let ops = row.headline_ops();
    let is_mix = ops.len() > 1 && row.data.workload.streams.is_mix();
    if !is_mix || op.data.count == 0 || kind_width.is_infinite() {
        return kind_width;
    }
    let Some(mix_width) = width_of_mix(row) else {
        return kind_width;
    };
    let total_ops: u64 = ops.iter().map(|(_, op)| op.data.count).sum();
    let share = op.data.count as f64 / total_ops as f64;
    // Relative half-width of a binomial count.
    let split_width = 1.96 * ((1.0 - share) / op.data.count as f64).sqrt();
    let explained_width = (mix_width.powi(2) + (SPLIT_ERROR_FACTOR * split_width).powi(2)).sqrt();
    if kind_width <= explained_width {
        mix_width
    } else {
        kind_width
    }
}

/// The error of the rate of all kinds of operation together, as a share.
fn width_of_mix(row: &Row) -> Option<f64> {
    let series = headline_series(row)?;
    let rate = estimate::rate_after(&series, row.data.wall_ns, Settling::of_row(row));
    rate.ops.relative_half_width()
}

/// What makes the worst figure more precise. The first cause that applies is the one to remove:
/// what the machine does to the rate, then a rate that did not settle, then too little to measure.
fn remedy(
    record: &Record,
    imprecise: &[ImpreciseWorkload<'_>],
    worst: &ImpreciseWorkload<'_>,
) -> String {
    let row = worst.measured.row;
    if let Some(share) = large_share(record) {
        return format!(
            "Measure when the hypervisor does not take processors away: it gave {} of the CPU time \
             to other machines, which makes any rate uneven.",
            format_percent(share)
        );
    }
    // Where the program itself used all processors, `cpu-limited` reports it.
    if waits_for_processor(row) && !is_cpu_limited(record, row) && worst.width.is_finite() {
        return format!(
            "Measure when the machine is quieter, or raise the program's priority (chrt -f 10 \
             diskproof … as root): in {} it had no processor for {} of the time, which makes any \
             rate uneven.",
            workload_name(record, row),
            format_percent(row.data.starved.share)
        );
    }
    let option = time_option(record, row);
    if imprecise.iter().any(|hit| is_unsettled(hit.measured.row)) {
        return format!(
            "Measure longer ({option}) until the rate has settled. A cache or burst credit may \
             have been exhausted, or other programs used the disk."
        );
    }
    if is_used_up(row) {
        return "Use a shorter warm-up (--warmup 0s) or a larger limit (--ops, --bytes), because \
                the operations of the warm-up count."
            .to_owned();
    }
    if is_unanswered(row) {
        return format!(
            "Measure longer ({}). If an operation takes that long, read dmesg: the disk may be \
             failing or hung.",
            longer_time(record, row)
        );
    }
    if !worst.width.is_finite() {
        return format!("Measure longer ({}).", longer_time(record, row));
    }
    remedy_of_width(record, row, worst.width, option)
}

/// The option that sets the time of a workload. The short strokes of a survey have a time that no
/// flag changes.
fn time_option(record: &Record, row: &Row) -> &'static str {
    if is_short_stroke(&row.data.workload.name) {
        "diskproof run --rw randread --span 0-N% --time"
    } else if record.latency_search().is_some() {
        "--latency-window"
    } else {
        "--time"
    }
}

/// The same with a time, unless that is the time of all workloads together: in turns, and with a
/// limit.
fn longer_time(record: &Record, row: &Row) -> String {
    let option = time_option(record, row);
    let has_own_time = record.plan.order().is_as_given() && record.plan.time_limit_ns.is_none();
    if is_short_stroke(&row.data.workload.name) || has_own_time {
        let planned_ns = row.data.workload.stop.time_ns.unwrap_or(0);
        let seconds = SUGGESTED_SECONDS_MIN.max(planned_ns.div_ceil(1_000_000_000));
        format!("{option} {seconds}s")
    } else {
        option.to_owned()
    }
}

/// Where the interval is known: what makes it narrower. The time needed grows with the square of
/// the precision wanted.
fn remedy_of_width(record: &Record, row: &Row, width: f64, option: &str) -> String {
    if let Some(runs) = row.run_to_run
        && runs.relative_half_width() > SHARE_OF_RUNS_MIN * width
    {
        return "Compare several runs per side, because runs of this plan differ that much. A \
                longer measurement hardly helps."
            .to_owned();
    }
    let needed_ns = row.data.wall_ns as f64 * (width / WIDTH_NOTE).powi(2);
    if needed_ns > SUGGESTED_NS_MAX {
        return "Find out why the rate varies (other programs, the disk's own housekeeping). A \
                longer measurement hardly helps."
            .to_owned();
    }
    format!(
        "Measure longer ({option}): a precision of ±5 % for {} takes about {} instead of {}.",
        workload_name(record, row),
        format_duration(needed_ns as u64),
        format_duration(row.data.wall_ns)
    )
}
