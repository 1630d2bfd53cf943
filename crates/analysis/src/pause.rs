//! Finds pauses of the disk: times in which no request completed, and then the disk continued. A
//! short pause among slow requests is only their latency.

use crate::{estimate, slices};
use diskproof_model::campaign::SlicePause;
use diskproof_model::measurement::{
    Measurement, OpKind, OpMeasurement, PAUSE_LATENCIES_MIN, SILENCE_NS_MIN, WAKE_UP_NS,
};
use diskproof_model::plan::CachePolicy;
use diskproof_model::row::usual_latency_ns;
use diskproof_model::series::TimeSeries;

/// Shorter pauses are within what a disk's own housekeeping and a busy host do.
pub(crate) const LENGTH_NS_MIN: u64 = SILENCE_NS_MIN;

/// A healthy rotating disk may be silent for so long while it empties a cache of some thousand
/// random blocks. Chosen, not measured.
pub(crate) const ROTATING_NS: u64 = WAKE_UP_NS;

/// Nothing completes for the time of this many requests of a paced row before a pause is seen in
/// it: random starts leave gaps of a few.
const SILENT_REQUESTS_MIN: f64 = 5.0;

/// Of a paced row that completed requests until the end so many have to wait over it: a single one
/// may be a slow request.
const WAITING_MIN: u64 = 2;

/// The longest pause of the disk in a measurement; `None` without one. One that the page cache, the
/// load itself or the usual latency explains is none. A target that hangs has no pause. Its disk
/// may need `made_ready_ns` before the requests, or for the first sync of a slice, to empty its
/// cache.
pub(crate) fn longest_pause(measured: &Measurement, made_ready_ns: u64) -> Option<SeenPause> {
    // The page cache makes writers wait until it has written enough; that is how it works. Where
    // each write is synced it holds no more than that one.
    let may_be_written_back =
        measured.cache.used != CachePolicy::Direct && !measured.workload.commits();
    if may_be_written_back || measured.hang.is_some() {
        return None;
    }
    let ops: HeadlineOps<'_> = OpKind::headline(&measured.ops).collect();
    let measured_pause = longer(
        pause_in_series(measured, &ops),
        pause_over_the_end(measured, &ops),
    );
    let unmeasured_pause = longer(
        pause_before(measured, made_ready_ns),
        pause_around(measured, made_ready_ns),
    );
    let mut seen = longer(measured_pause, unmeasured_pause)?;
    let length_ns = seen.length_ns;
    let usual_ns = usual_latency_ns(ops.iter().map(|(_, op)| *op));
    if length_ns < LENGTH_NS_MIN || (length_ns as f64) < PAUSE_LATENCIES_MIN * usual_ns {
        return None;
    }
    seen.requests = waiting_requests(measured, &ops, length_ns);
    Some(seen)
}

/// The pause of a slice of a campaign, as the record keeps it where no row has the slice. The kind
/// of disk is not known here: what is made ready may take as long as a rotating one needs.
pub(crate) fn pause_of_slice(measured: &Measurement) -> Option<SlicePause> {
    let seen = longest_pause(measured, ROTATING_NS)?;
    Some(SlicePause {
        length_ns: seen.length_ns,
        requests: seen.requests,
    })
}

/// The requests of a measurement that a result is about.
type HeadlineOps<'a> = Vec<(OpKind, &'a OpMeasurement)>;

/// The beginning of a pause.
pub(crate) enum PauseStart {
    /// While the target was made ready for the workload, or for a slice of it.
    BeforeRequests,
    /// So many nanoseconds after the start of the workload or survey.
    After(u64),
    /// In the warm-up of the workload or of a slice, or over the end of its measured time.
    AroundMeasuredTime,
    /// Over the end of a slice: its requests ended after the measured time.
    OverTheEnd,
    /// In a slice that no row has.
    InDroppedSlice,
}

/// A time without a completion in one measurement.
pub(crate) struct SeenPause {
    pub(crate) start: PauseStart,
    pub(crate) length_ns: u64,
    /// Requests that waited.
    pub(crate) requests: u64,
    /// The longest latency that proves it.
    pub(crate) longest_ns: u64,
    /// Its place in the row of the measurement.
    pub(crate) path: String,
}

/// The longest stretch of empty cells; `None` where no request waited for as long as a pause lasts,
/// or where a pause of the load explains it.
fn pause_in_series(measured: &Measurement, ops: &[(OpKind, &OpMeasurement)]) -> Option<SeenPause> {
    let slowest = slowest_cell(ops)?;
    let series = estimate::summed(ops.iter().map(|(_, op)| op.shown_series()))?;
    let gap = longest_gap(&series)?;
    if let Some(think) = measured.workload.shape.starts.think
        && gap.length_ns <= think.pause_ns + 2 * series.interval_ns
    {
        return None;
    }
    // The cells around the gap may hold completions: no request waited for longer than the slowest.
    let length_ns = slowest
        .latency_ns
        .min(gap.length_ns + 2 * series.interval_ns);
    if length_ns < LENGTH_NS_MIN {
        return None;
    }
    Some(SeenPause {
        start: PauseStart::After(gap.end_ns.saturating_sub(length_ns)),
        length_ns,
        requests: 0,
        longest_ns: slowest.latency_ns,
        path: format!("data/ops/{}/series", slowest.kind.as_str()),
    })
}

/// The silence of the target before the requests of the workload. The first requests, the trials of
/// engines and the writing back before it are no part of any measured time.
fn pause_before(measured: &Measurement, made_ready_ns: u64) -> Option<SeenPause> {
    let silence_ns = measured.silence_before_ns;
    if silence_ns < LENGTH_NS_MIN.max(made_ready_ns) {
        return None;
    }
    Some(SeenPause {
        start: PauseStart::BeforeRequests,
        length_ns: silence_ns,
        requests: 0,
        longest_ns: silence_ns,
        path: "data/silence_before_ns".to_owned(),
    })
}

/// The silence of the target while requests of the workload were in flight, in the warm-up or over
/// the end of its measured time. No cell has it.
fn pause_around(measured: &Measurement, made_ready_ns: u64) -> Option<SeenPause> {
    let silence_ns = measured.silence_around_ns;
    let least_ns = if measured.workload.commits() {
        LENGTH_NS_MIN.max(made_ready_ns)
    } else {
        LENGTH_NS_MIN
    };
    if silence_ns < least_ns {
        return None;
    }
    Some(SeenPause {
        start: PauseStart::AroundMeasuredTime,
        length_ns: silence_ns,
        requests: 0,
        longest_ns: silence_ns,
        path: "data/silence_around_ns".to_owned(),
    })
}

/// Operations of one kind that took longer than any in the cells of a row.
struct LateOps {
    kind: OpKind,
    latency_ns: u64,
    count: u64,
}

/// A pause over the end of a slice, or of the workload. The requests in flight end after the
/// measured time, so no cell has them, but the distribution does. As many of them as the queue has
/// places prove the pause: one slow request, while the others complete, is only a latency. In a
/// paced row, whose queue is hardly ever full, fewer do where none of the others completed.
fn pause_over_the_end(
    measured: &Measurement,
    ops: &[(OpKind, &OpMeasurement)],
) -> Option<SeenPause> {
    let late = late_ops(ops)?;
    let longest = late.first()?;
    let mut waiting = match measured.workload.rate {
        Some(rate) => waiting_of_paced(measured, ops, rate, longest.latency_ns)?,
        None => measured.workload.total_depth(),
    };
    for ops in &late {
        waiting = waiting.saturating_sub(ops.count);
        if waiting == 0 {
            return Some(SeenPause {
                start: PauseStart::OverTheEnd,
                length_ns: ops.latency_ns,
                requests: 0,
                longest_ns: longest.latency_ns,
                path: format!("data/ops/{}/latency", longest.kind.as_str()),
            });
        }
    }
    None
}

/// The operations that took longer than any in the cells, the longest first; `None` without cells.
fn late_ops(ops: &[(OpKind, &OpMeasurement)]) -> Option<Vec<LateOps>> {
    let longest_in_cells_ns = slowest_cell(ops)?.latency_ns;
    let mut late: Vec<LateOps> = Vec::new();
    for (kind, op) in ops {
        for bucket in op.latency.buckets() {
            if bucket.low_ns > longest_in_cells_ns {
                late.push(LateOps {
                    kind: *kind,
                    latency_ns: bucket.low_ns,
                    count: bucket.count,
                });
            }
        }
    }
    late.sort_by_key(|ops| std::cmp::Reverse(ops.latency_ns));
    Some(late)
}

/// The requests of a paced row that have to wait in a pause over an end whose longest took this
/// long; `None` where the others went on, so that there is none.
fn waiting_of_paced(
    measured: &Measurement,
    ops: &[(OpKind, &OpMeasurement)],
    rate: f64,
    longest_ns: u64,
) -> Option<u64> {
    let mut slow = 0;
    let mut over_the_end = 0;
    for (_, op) in ops {
        slow += longer_than(op, longest_ns / 2);
        over_the_end += op.latency.count().saturating_sub(op.count);
    }
    // The queue is full, or nothing completed before the end though more were sent, or all that
    // were sent before it waited.
    if slow >= measured.workload.total_depth() || ends_in_silence(measured, rate) {
        Some(1)
    } else if over_the_end >= WAITING_MIN && slow >= over_the_end {
        Some(over_the_end)
    } else {
        None
    }
}

/// Returns `true` if in the last cells of a slice nothing completed for the time of several
/// requests at this rate.
fn ends_in_silence(measured: &Measurement, rate: f64) -> bool {
    // Those of a page are too long to be empty.
    let finest = OpKind::headline(&measured.ops).map(|(_, op)| &op.series);
    let Some(series) = estimate::summed(finest) else {
        return false;
    };
    let silence_ns = SILENT_REQUESTS_MIN * 1e9 / rate;
    let mut ends_ns = slices::ends_ns(&measured.slices);
    if ends_ns.is_empty() {
        ends_ns.push(measured.wall_ns);
    }
    ends_ns.into_iter().any(|end_ns| {
        // The cell in which a slice ends may hold the start of the next.
        let cells = end_ns.saturating_sub(series.start_ns) / series.interval_ns;
        let silent = series
            .cells
            .iter()
            .take(cells as usize)
            .rev()
            .take_while(|cell| cell.ops == 0 && cell.errors == 0)
            .count() as u64;
        silent > 0 && (silent * series.interval_ns) as f64 >= silence_ns
    })
}

/// The longer pause of two.
fn longer(one: Option<SeenPause>, other: Option<SeenPause>) -> Option<SeenPause> {
    one.into_iter()
        .chain(other)
        .max_by_key(|pause| pause.length_ns)
}

/// The longest latency of a row.
struct SlowestCell {
    kind: OpKind,
    latency_ns: u64,
}

/// The cell with the longest latency over all kinds of operation; `None` without any cell.
fn slowest_cell(ops: &[(OpKind, &OpMeasurement)]) -> Option<SlowestCell> {
    let mut slowest: Option<SlowestCell> = None;
    for (kind, op) in ops {
        for cell in &op.series.cells {
            let latency_ns = cell.latency_max_ns;
            match &slowest {
                Some(slowest) if slowest.latency_ns > latency_ns => {}
                _ => {
                    slowest = Some(SlowestCell {
                        kind: *kind,
                        latency_ns,
                    });
                }
            }
        }
    }
    slowest
}

/// The number of requests that waited during a pause of this length.
fn waiting_requests(
    measured: &Measurement,
    ops: &[(OpKind, &OpMeasurement)],
    length_ns: u64,
) -> u64 {
    let depth = measured.workload.total_depth();
    let slow: u64 = ops
        .iter()
        .map(|(_, op)| longer_than(op, length_ns / 2))
        .sum();
    // The histogram covers the steady part only, which the pause may precede; and several pauses of
    // one length would add up.
    match slow {
        0 => depth,
        slow => slow.min(depth),
    }
}

/// A stretch of cells in which nothing completed.
struct Gap {
    length_ns: u64,
    /// Where the cell after it ends.
    end_ns: u64,
}

fn longest_gap(series: &TimeSeries) -> Option<Gap> {
    let mut longest: Option<Gap> = None;
    let mut longest_ns = 0;
    let mut from = 0;
    for (index, cell) in series.cells.iter().enumerate() {
        if cell.ops == 0 && cell.errors == 0 {
            continue;
        }
        let length_ns = (index - from) as u64 * series.interval_ns;
        if length_ns > longest_ns {
            longest_ns = length_ns;
            let end_ns = series.start_ns + (index as u64 + 1) * series.interval_ns;
            longest = Some(Gap { length_ns, end_ns });
        }
        from = index + 1;
    }
    longest
}

/// The number of operations that took at least so long.
fn longer_than(op: &OpMeasurement, least_ns: u64) -> u64 {
    let mut sum = 0;
    for bucket in op.latency.buckets() {
        if bucket.low_ns >= least_ns {
            sum += bucket.count;
        }
    }
    sum
}
