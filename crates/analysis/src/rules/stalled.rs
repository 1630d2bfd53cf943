//! `stalled`: for a while no request completed, and then the disk continued. A short pause among
//! slow requests is only their latency. A pause that the limiter of a control group makes between
//! its slices is not the disk's.

use super::disturbed::is_disturbed;
use super::rate_limited::{GroupStatement, limit_of_workload};
use super::rule::*;
use crate::{estimate, slices};
use diskproof_model::series::TimeSeries;

pub(super) const RULE: Rule = Rule {
    code: "stalled",
    title: "The disk paused for a while",
    summary: "For a while no request completed, then the disk continued. Transactions wait that \
              long, however good the average is.",
    remedy: Remedy::Always(
        "Look for timeouts, resets and retries in the kernel log (dmesg). For a virtual disk ask \
         the provider; for a physical disk check smartctl -a. Measure longer (--time) to see \
         whether it pauses again.",
    ),
    check: Check::Run(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Shorter pauses are within what a disk's own housekeeping and a busy host do. Chosen, not
/// measured.
const LENGTH_NS_MIN: u64 = 500_000_000;

/// From this length on sessions notice, and timeouts come near. Chosen, not measured.
const LENGTH_NS_WARNING: u64 = 1_000_000_000;

/// A pause is at least this many times the median latency: where requests take 400 ms each, half a
/// second without a completion is no exception. Chosen, not measured.
const LATENCIES_MIN: f64 = 10.0;

/// Nothing completes for the time of this many requests of a paced row before a pause is seen in
/// it: random starts leave gaps of a few.
const SILENT_REQUESTS_MIN: f64 = 5.0;

/// Of a paced row that completed requests until the end so many have to wait over it: a single one
/// may be a slow request.
const WAITING_MIN: u64 = 2;

/// A limiter explains a pause of up to this many times what it needs for the requests in flight:
/// the kernel counts in slices, and may let the whole queue of one slice wait for the next.
const QUEUE_TIMES_MAX: f64 = 2.0;

/// The claim names so many pauses, the longest: with more the sentence is not read, and the
/// evidence has them all.
const PAUSES_NAMED_MAX: usize = 3;

/// The beginning of a pause.
enum PauseStart {
    /// While the target was made ready for the workload, or for a slice of it.
    BeforeRequests,
    /// So many nanoseconds after the start of the workload or survey.
    After(u64),
    /// Over the end of a slice: its requests ended after the measured time.
    OverTheEnd,
}

/// A pause without a completion.
struct Pause {
    /// The workload, or the survey, as a list names it.
    place: String,
    start: PauseStart,
    length_ns: u64,
    /// Requests that waited.
    requests: u64,
    evidence: Evidence,
    /// The limit of a control group that the workload reached; it explains a shorter pause.
    limit: Option<GroupStatement>,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut pauses: Vec<Pause> = Vec::new();
    for measured in real_rows(record) {
        pauses.extend(workload_pause(record, measured));
    }
    pauses.extend(survey_pause(record));
    pauses.sort_by_key(|pause| std::cmp::Reverse(pause.length_ns));
    let limit = pauses.iter_mut().find_map(|pause| pause.limit.take());
    let longest_ns = pauses.first()?.length_ns;
    let named: Vec<String> = pauses
        .iter()
        .take(PAUSES_NAMED_MAX)
        .map(describe_pause)
        .collect();
    let unnamed_text = match pauses.len().saturating_sub(PAUSES_NAMED_MAX) {
        0 => String::new(),
        n => format!("; and in {}", counted(n as u64, "more workload")),
    };
    let mut claim = format!(
        "No request completed {}{unnamed_text}. A transaction that commits during such a pause \
         waits as long.",
        named.join("; ")
    );
    let mut observations: Vec<Evidence> = pauses.into_iter().map(|pause| pause.evidence).collect();
    if let Some(limit) = limit {
        claim.push_str(&format!(
            " {} Its limiter may be the cause, and not the disk.",
            limit.sentence
        ));
        observations.push(limit.evidence);
    }
    let severity = warning_if(longest_ns >= LENGTH_NS_WARNING);
    Some(Diagnosis::new(severity, claim, observations))
}

fn describe_pause(pause: &Pause) -> String {
    let length = format_duration(pause.length_ns);
    let start = match pause.start {
        PauseStart::BeforeRequests => {
            return format!(
                "for {length} before the requests of {}, while it was made ready",
                pause.place
            );
        }
        PauseStart::After(start_ns) => format!("{} after its start", format_duration(start_ns)),
        PauseStart::OverTheEnd => "over the end of a slice".to_owned(),
    };
    format!(
        "for {length} in {}, {start}, while {} waited",
        pause.place,
        counted(pause.requests, "request")
    )
}

/// The longest pause of a workload.
fn workload_pause(record: &Record, measured: Measured<'_>) -> Option<Pause> {
    let row = measured.row;
    // The page cache makes writers wait until it has written enough; that is how it works. Where
    // each write is synced it holds no more than that one.
    let may_be_written_back =
        row.data.cache.used != CachePolicy::Direct && !row.data.workload.commits();
    if may_be_written_back || row.data.hang.is_some() {
        return None;
    }
    // A commit also waits for what other programs have left to be written.
    if row.data.cache.used != CachePolicy::Direct && is_disturbed(record, measured) {
        return None;
    }
    // `slow-after-idle` reports a disk that has to wake up.
    if let Some(ping) = &row.figures.ping
        && !ping.after_idle.is_empty()
    {
        return None;
    }
    let ops = row.headline_ops();
    let measured_pause = longer(pause_in_series(row, &ops), pause_over_the_end(row, &ops));
    let seen = longer(measured_pause, pause_before(row))?;
    let length_ns = seen.length_ns;
    if length_ns < LENGTH_NS_MIN || (length_ns as f64) < LATENCIES_MIN * usual_latency_ns(&ops) {
        return None;
    }
    let mut limit = None;
    if let Some(reached) = limit_of_workload(record, measured) {
        if length_ns as f64 <= QUEUE_TIMES_MAX * reached.queue_ns {
            return None;
        }
        limit = Some(reached.statement);
    }
    let longest_ns = seen.longest_ns as f64;
    Some(Pause {
        place: workload_name(record, row),
        requests: waiting_requests(row, &ops, length_ns),
        start: seen.start,
        length_ns,
        evidence: measured.evidence(&seen.path, longest_ns, LENGTH_NS_MIN as f64, "ns"),
        limit,
    })
}

/// A time without a completion in one row of the record.
struct SeenPause {
    start: PauseStart,
    length_ns: u64,
    /// The longest latency that proves it, and its place in the row.
    longest_ns: u64,
    path: String,
}

/// The longest stretch of empty cells; `None` where no request waited for as long as a pause lasts,
/// or where a pause of the load explains it.
fn pause_in_series(row: &Row, ops: &[(OpKind, OpRow<'_>)]) -> Option<SeenPause> {
    let slowest = slowest_cell(ops)?;
    let series = headline_series(row)?;
    let gap = longest_gap(&series)?;
    if let Some(think) = row.data.workload.shape.starts.think
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
        longest_ns: slowest.latency_ns,
        path: format!("data/ops/{}/series", slowest.kind.as_str()),
    })
}

/// The silence of the target before the requests of the workload. The first requests, the trials of
/// engines and the writing back before it are no part of any measured time.
fn pause_before(row: &Row) -> Option<SeenPause> {
    let silence_ns = row.data.silence_before_ns;
    if silence_ns < LENGTH_NS_MIN {
        return None;
    }
    Some(SeenPause {
        start: PauseStart::BeforeRequests,
        length_ns: silence_ns,
        longest_ns: silence_ns,
        path: "data/silence_before_ns".to_owned(),
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
fn pause_over_the_end(row: &Row, ops: &[(OpKind, OpRow<'_>)]) -> Option<SeenPause> {
    let late = late_ops(ops)?;
    let longest = late.first()?;
    let mut waiting = match row.data.workload.rate {
        Some(rate) => waiting_of_paced(row, ops, rate, longest.latency_ns)?,
        None => wanted_depth(row) as u64,
    };
    for ops in &late {
        waiting = waiting.saturating_sub(ops.count);
        if waiting == 0 {
            return Some(SeenPause {
                start: PauseStart::OverTheEnd,
                length_ns: ops.latency_ns,
                longest_ns: longest.latency_ns,
                path: format!("data/ops/{}/latency", longest.kind.as_str()),
            });
        }
    }
    None
}

/// The operations that took longer than any in the cells, the longest first; `None` without cells.
fn late_ops(ops: &[(OpKind, OpRow<'_>)]) -> Option<Vec<LateOps>> {
    let longest_in_cells_ns = slowest_cell(ops)?.latency_ns;
    let mut late: Vec<LateOps> = Vec::new();
    for (kind, op) in ops {
        for bucket in op.data.latency.buckets() {
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
    row: &Row,
    ops: &[(OpKind, OpRow<'_>)],
    rate: f64,
    longest_ns: u64,
) -> Option<u64> {
    let mut slow = 0;
    let mut over_the_end = 0;
    for (_, op) in ops {
        slow += longer_than(*op, longest_ns / 2);
        over_the_end += op.data.latency.count().saturating_sub(op.data.count);
    }
    // The queue is full, or nothing completed before the end though more were sent, or all that
    // were sent before it waited.
    if slow >= wanted_depth(row) as u64 || ends_in_silence(row, rate) {
        Some(1)
    } else if over_the_end >= WAITING_MIN && slow >= over_the_end {
        Some(over_the_end)
    } else {
        None
    }
}

/// Returns `true` if in the last cells of a slice nothing completed for the time of several
/// requests at this rate.
fn ends_in_silence(row: &Row, rate: f64) -> bool {
    // Those of a page are too long to be empty.
    let headline_ops = row.headline_ops();
    let finest = headline_ops.iter().map(|(_, op)| &op.data.series);
    let Some(series) = estimate::summed(finest) else {
        return false;
    };
    let silence_ns = SILENT_REQUESTS_MIN * 1e9 / rate;
    let mut ends_ns = slices::ends_ns(&row.data.slices);
    if ends_ns.is_empty() {
        ends_ns.push(row.data.wall_ns);
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
fn slowest_cell(ops: &[(OpKind, OpRow<'_>)]) -> Option<SlowestCell> {
    let mut slowest: Option<SlowestCell> = None;
    for (kind, op) in ops {
        for cell in &op.data.series.cells {
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
fn waiting_requests(row: &Row, ops: &[(OpKind, OpRow<'_>)], length_ns: u64) -> u64 {
    let depth = wanted_depth(row) as u64;
    let slow: u64 = ops
        .iter()
        .map(|(_, op)| longer_than(*op, length_ns / 2))
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

/// Median latency of the slowest kind of operation, in nanoseconds; its mean where too few
/// operations give a median.
fn usual_latency_ns(ops: &[(OpKind, OpRow<'_>)]) -> f64 {
    let mut usual_ns: f64 = 0.0;
    for (_, op) in ops {
        let latency = &op.figures.latency;
        let median_ns = match latency.p50 {
            Some(ns) => ns as f64,
            None => latency.mean,
        };
        usual_ns = usual_ns.max(median_ns);
    }
    usual_ns
}

/// The number of operations that took at least so long.
fn longer_than(op: OpRow<'_>, least_ns: u64) -> u64 {
    let mut sum = 0;
    for bucket in op.data.latency.buckets() {
        if bucket.low_ns >= least_ns {
            sum += bucket.count;
        }
    }
    sum
}

/// The longest pause of the survey.
fn survey_pause(record: &Record) -> Option<Pause> {
    let surface = record.surface()?;
    let stalls = surface.data.stalls.iter().enumerate();
    let (index, stall) = stalls.max_by_key(|(_, stall)| stall.lasted_ns)?;
    let path = first_result_path(&format!("data/stalls/{index}/lasted_ns"));
    let lasted_ns = stall.lasted_ns as f64;
    Some(Pause {
        place: SURVEY.to_owned(),
        start: PauseStart::After(stall.since_ns.saturating_sub(surface.data.start_ns)),
        length_ns: stall.lasted_ns,
        requests: stall.requests,
        evidence: evidence_at(path, lasted_ns, LENGTH_NS_MIN as f64, "ns"),
        limit: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, codes};
    use crate::fixture::{self, states};
    use crate::rules::hung::tests::{hang, reads};
    use diskproof_model::measurement::{Hang, Measurement};
    use diskproof_model::series::Cell;
    use diskproof_model::target::IoLimit;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || reads(|measurement| pause(measurement, 2600 * MS)),
        fixture::record,
    );

    /// Nothing completes from 1.0 s for `ns`, and 32 requests wait.
    fn pause(measurement: &mut Measurement, ns: u64) {
        for op in measurement.ops.values_mut() {
            let cells = (ns / op.series.interval_ns) as usize;
            op.series.cells[100..100 + cells].fill(Cell::default());
            op.series.cells[100 + cells].latency_max_ns = ns;
            op.latency.record_many(ns, 32);
        }
    }

    #[test]
    fn pause_is_reported_with_its_time_length_and_requests() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["2.6 s in random-read-d32, 1.1 s after", "32 requests"],
        );
        states(&finding.evidence[0].path, &["/data/ops/read/series"]);
        let short = check(&reads(|measurement| pause(measurement, 700 * MS)));
        assert_eq!(short.unwrap().severity, Severity::Note);
    }

    #[test]
    fn short_pauses_slow_disks_hangs_and_the_page_cache_are_silent() {
        let silent: [fn(&mut Measurement); 5] = [
            |measurement| pause(measurement, 300 * MS),
            |measurement| {
                pause(measurement, 2600 * MS);
                let count: u64 = measurement.ops.values().map(|op| op.count).sum();
                measurement
                    .ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(400 * MS, 10 * count));
            },
            |measurement| {
                pause(measurement, 2600 * MS);
                measurement.cache.used = CachePolicy::Buffered;
            },
            |measurement| {
                pause(measurement, 2600 * MS);
                measurement.hang = hang(0, 50, 1);
            },
            // One slow request while the others go on is a latency.
            |measurement| {
                measurement
                    .ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(2600 * MS, 1));
            },
        ];
        for (index, change) in silent.into_iter().enumerate() {
            assert_eq!(check(&reads(change)), None, "{index}");
        }
    }

    /// The disk stood still while it was made ready, when no request of the workload was timed.
    #[test]
    fn silence_before_the_requests_is_a_pause() {
        let silent = |ns| {
            check(&reads(move |measurement| {
                measurement.silence_before_ns = ns
            }))
        };
        let finding = silent(4 * SECOND).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["4.0 s", "random-read-d32"]);
        states(&finding.evidence[0].path, &["/data/silence_before_ns"]);
        assert_eq!(silent(499 * MS), None);
    }

    /// All 32 requests in flight at the end of a slice ended two seconds later, in no cell.
    #[test]
    fn pause_over_the_end_of_a_slice_is_one() {
        let waiting = |requests| {
            reads(move |measurement| {
                for op in measurement.ops.values_mut() {
                    op.latency.record_many(2000 * MS, requests);
                }
            })
        };
        let finding = check(&waiting(32)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["in random-read-d32", "32 requests"]);
        states(&finding.evidence[0].path, &["/data/ops/read/latency"]);
        assert_eq!(check(&waiting(31)), None);
        // As many, of which each ended in a cell of its own while the others went on.
        let spread = reads(|measurement| {
            for op in measurement.ops.values_mut() {
                op.latency.record_many(2000 * MS, 32);
                for cell in op.series.cells.iter_mut().take(32) {
                    cell.latency_max_ns = 2000 * MS;
                }
            }
        });
        assert_eq!(check(&spread), None);
    }

    /// Of a paced row the queue is hardly ever full: 1000/s, of which some wait over the end.
    #[test]
    fn slow_request_of_a_paced_row_whose_others_go_on_is_no_pause() {
        let paced = |slow: u64, quick: u64, silent_cells: usize| {
            check(&reads(move |measurement| {
                measurement.workload.rate = Some(1000.0);
                for op in measurement.ops.values_mut() {
                    op.latency.record_many(2000 * MS, slow);
                    op.latency.record_many(MS, quick);
                    let cells = op.series.cells.len();
                    for cell in &mut op.series.cells[cells - silent_cells..] {
                        op.latency.record_many(MS, cell.ops);
                        *cell = Cell::default();
                    }
                }
            }))
        };
        assert_eq!(paced(1, 4, 0), None);
        assert_eq!(paced(1, 0, 0), None);
        assert!(paced(3, 0, 0).is_some());
        assert!(paced(1, 4, 1).is_some());
        assert!(paced(32, 4, 0).is_some());
    }

    /// Commits go through the page cache, and wait for the disk all the same.
    #[test]
    fn commit_that_waits_for_seconds_is_a_pause() {
        let commits = |pause_ns| {
            fixture::faulty("commit-fdatasync", move |measurement| {
                measurement.cache.used = CachePolicy::Buffered;
                pause(measurement, pause_ns);
            })
        };
        let finding = check(&commits(2000 * MS)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["in commit-fdatasync"]);
        assert_eq!(check(&commits(300 * MS)), None);
    }

    /// The fixture reads 10,000/s with 32 in flight.
    #[test]
    fn pause_that_the_limiter_of_a_group_makes_is_not_the_disks() {
        let limited = |pause_ns: u64, read_iops: u64, depth: u32| {
            let mut record = reads(|measurement| pause(measurement, pause_ns));
            let device = record.targets[0].layers[0].device.clone();
            record.host.io_limits = vec![IoLimit {
                group: "/db".to_owned(),
                device,
                read_iops: Some(read_iops),
                ..IoLimit::default()
            }];
            for row in &mut record.measurements {
                row.data.workload.depth = depth;
                if let Some(reads) = row.figures.ops.get_mut(&OpKind::Read) {
                    reads.iops.value = 50.0;
                }
            }
            check(&record)
        };
        // At 50/s, 32 requests take 0.64 s.
        assert_eq!(limited(1200 * MS, 50, 32), None);
        let longer = limited(2600 * MS, 50, 32).unwrap();
        states(&longer.claim, &["2.6 s", "/db allows only 50"]);
        let unreached = limited(1200 * MS, 5000, 32).unwrap();
        assert!(!unreached.claim.contains("/db"), "{}", unreached.claim);
    }

    #[test]
    fn pause_of_a_survey_is_reported() {
        let record = surveyed::faulty(|survey| {
            survey.stalls = vec![Hang {
                since_ns: survey.start_ns + 3 * SECOND,
                lasted_ns: 2600 * MS,
                requests: 8,
                late: false,
            }];
        });
        assert_eq!(codes(&record), ["stalled"]);
        let claim = &record.findings[0].claim;
        states(claim, &["2.6 s in the survey, 3.0 s after", "8 requests"]);
    }
}
