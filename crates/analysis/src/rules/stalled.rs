//! `stalled`: for a while no request completed, and then the disk continued. A pause that the
//! limiter of a control group makes between its slices is not the disk's.

use super::disturbed::is_disturbed;
use super::rate_limited::{GroupStatement, first_group_limit, limit_of_workload};
use super::rule::*;
use crate::pause::{LENGTH_NS_MIN, PauseStart, longest_pause};
use diskproof_model::campaign::DroppedSlice;

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

/// From this length on sessions notice, and timeouts come near. Chosen, not measured.
const LENGTH_NS_WARNING: u64 = 1_000_000_000;

/// A limiter explains a pause of up to this many times what it needs for the requests in flight:
/// the kernel counts in slices, and may let the whole queue of one slice wait for the next.
const QUEUE_TIMES_MAX: f64 = 2.0;

/// The claim names so many pauses, the longest: with more the sentence is not read, and the
/// evidence has them all.
const PAUSES_NAMED_MAX: usize = 3;

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
    pauses.extend(dropped_pauses(record));
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
        PauseStart::InDroppedSlice => "in a slice that no row has".to_owned(),
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
    let seen = longest_pause(&row.data)?;
    let length_ns = seen.length_ns;
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
        start: seen.start,
        length_ns,
        requests: seen.requests,
        evidence: measured.evidence(&seen.path, longest_ns, LENGTH_NS_MIN as f64, "ns"),
        limit,
    })
}

/// The pauses of a campaign's slices that are in no row, the longest of each workload.
fn dropped_pauses(record: &Record) -> Vec<Pause> {
    let mut pauses: Vec<Pause> = Vec::new();
    for (index, slice) in record.dropped.iter().enumerate() {
        let Some(pause) = slice.pause else {
            continue;
        };
        let length_ns = pause.length_ns as f64;
        let path = format!("/dropped/{index}/pause/length_ns");
        let dropped = Pause {
            place: place_of_slice(record, slice),
            start: PauseStart::InDroppedSlice,
            length_ns: pause.length_ns,
            requests: pause.requests,
            evidence: evidence_at(path, length_ns, LENGTH_NS_MIN as f64, "ns"),
            limit: first_group_limit(record, slice.target),
        };
        match pauses.iter_mut().find(|other| other.place == dropped.place) {
            Some(known) if known.length_ns >= dropped.length_ns => {}
            Some(known) => *known = dropped,
            None => pauses.push(dropped),
        }
    }
    pauses
}

/// The workload of a slice, with its target where the run has several.
fn place_of_slice(record: &Record, slice: &DroppedSlice) -> String {
    match record.targets.get(slice.target) {
        Some(target) if record.targets.len() > 1 => {
            format!("{} on {}", slice.workload, target.path)
        }
        Some(_) | None => slice.workload.clone(),
    }
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
    use diskproof_model::campaign::SlicePause;
    use diskproof_model::measurement::{Hang, Measurement};
    use diskproof_model::series::{Cell, TimeSeries};
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

    /// The longest of the slices of a workload that no row covers.
    #[test]
    fn pause_of_a_slice_without_a_row_is_reported() {
        let run = fixture::run();
        let slice = |length_ns| DroppedSlice {
            target: 0,
            workload: "random-read-d32".to_owned(),
            start_ns: 0,
            warmup_ns: 0,
            moved: TimeSeries::new(1),
            pause: Some(SlicePause {
                length_ns,
                requests: 32,
            }),
        };
        let mut record = fixture::judge(run);
        record.dropped = vec![slice(700 * MS), slice(12 * SECOND), slice(800 * MS)];
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence.len(), 1);
        assert_eq!(finding.evidence[0].path, "/dropped/1/pause/length_ns");
        states(&finding.claim, &["12 s in random-read-d32", "32 requests"]);
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
