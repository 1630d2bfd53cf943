//! `stalled`: for a while no request completed, and then the disk went on. One that never went on
//! is `hung`; a short pause among slow requests is their latency.

use super::evidence::{
    Measured, SURVEY, evidence, evidence_at, headline_series, real, wanted_depth, warning_if,
    workload_name,
};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Evidence;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::{OpRecord, Record};
use diskproof_model::series::TimeSeries;
use diskproof_model::units::{counted, format_duration};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "stalled",
    title: "The disk paused for a while",
    meaning: "For a while no request completed, then the disk continued. Transactions wait that \
              long, however good the average is.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Shorter pauses are within what a disk's own housekeeping and a busy host do.
const LENGTH_NS_MIN: u64 = 500_000_000;
/// From this length on sessions notice, and timeouts come near.
const LENGTH_NS_WARNING: u64 = 1_000_000_000;
/// A pause is at least this many times the median latency: where requests take 400 ms each, half a
/// second without a completion is no exception.
const LATENCIES_MIN: f64 = 10.0;
/// Workloads that the claim names.
const NAMED: usize = 3;

/// A pause without a completion.
struct Pause {
    /// Its name in a list: of a workload, or the survey.
    place: String,
    /// After the start of that.
    at_ns: u64,
    length_ns: u64,
    /// Requests that waited.
    requests: u64,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut pauses: Vec<Pause> = real(record)
        .filter_map(|measured| of_workload(record, measured))
        .collect();
    pauses.extend(of_survey(record));
    pauses.sort_by_key(|pause| std::cmp::Reverse(pause.length_ns));
    let longest_ns = pauses.first()?.length_ns;
    let named: Vec<String> = pauses.iter().take(NAMED).map(describe).collect();
    let more = match pauses.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!("; and in {}", counted(n as u64, "more workload")),
    };
    Some(Diagnosis::new(
        warning_if(longest_ns >= LENGTH_NS_WARNING),
        format!(
            "No request completed {}{more}. A transaction that commits during such a pause waits \
             as long.",
            named.join("; ")
        ),
        pauses.into_iter().map(|pause| pause.evidence),
        "Look for timeouts, resets and retries in the kernel log (dmesg). For a virtual \
         disk ask the provider; for a physical disk check smartctl -a. Measure longer \
         (--time) to see whether it pauses again.",
    ))
}

fn describe(pause: &Pause) -> String {
    format!(
        "for {} in {}, {} after its start, while {} waited",
        format_duration(pause.length_ns),
        pause.place,
        format_duration(pause.at_ns),
        counted(pause.requests, "request")
    )
}

/// The longest pause of a workload.
fn of_workload(record: &Record, (index, m): Measured) -> Option<Pause> {
    // The page cache makes writers wait until it has written enough; that is how it works.
    if m.workload.cache != CachePolicy::Direct || m.hang.is_some() {
        return None;
    }
    // `slow-after-idle` reports a disk that has to wake up.
    if m.ping.iter().any(|ping| !ping.after_idle.is_empty()) {
        return None;
    }
    let ops = m.headline_ops();
    let (kind, index_of_cell, cell) = ops
        .iter()
        .flat_map(|(kind, op)| {
            let cells = op.series.cells.iter().enumerate();
            cells.map(move |(index, cell)| (*kind, index, *cell))
        })
        .max_by_key(|(_, _, cell)| cell.latency_max_ns)?;
    let all = headline_series(m)?;
    let gap = longest_gap(&all)?;
    // The cells around the gap may hold completions: no request waited for longer than the slowest.
    let length_ns = cell.latency_max_ns.min(gap.length_ns + 2 * all.interval_ns);
    let usual_ns = usual_latency_ns(&ops);
    if length_ns < LENGTH_NS_MIN || (length_ns as f64) < LATENCIES_MIN * usual_ns {
        return None;
    }
    let depth = wanted_depth(m) as u64;
    // The histogram covers the steady part only, which the pause may precede.
    let over = ops.iter().map(|(_, op)| longer_than(op, length_ns / 2));
    let waited: u64 = over.sum();
    let place = format!(
        "ops/{}/series/latency_max_ns/{index_of_cell}",
        kind.as_str()
    );
    let (slowest_ns, threshold) = (cell.latency_max_ns as f64, LENGTH_NS_MIN as f64);
    Some(Pause {
        place: workload_name(record, m),
        at_ns: gap.end_ns.saturating_sub(length_ns),
        length_ns,
        // Several pauses of one length would add up.
        requests: match waited {
            0 => depth,
            waited => waited.min(depth),
        },
        evidence: evidence(index, &place, slowest_ns, threshold, "ns"),
    })
}

/// Cells in which nothing completed, and the one after them.
struct EmptyCells {
    length_ns: u64,
    /// End of the first cell with a completion.
    end_ns: u64,
}

fn longest_gap(series: &TimeSeries) -> Option<EmptyCells> {
    let (mut longest, mut from) = (None::<EmptyCells>, 0);
    for (index, cell) in series.cells.iter().enumerate() {
        if cell.ops == 0 && cell.errors == 0 {
            continue;
        }
        let length_ns = (index - from) as u64 * series.interval_ns;
        if longest.as_ref().is_none_or(|gap| length_ns > gap.length_ns) {
            longest = Some(EmptyCells {
                length_ns,
                end_ns: series.start_ns + (index as u64 + 1) * series.interval_ns,
            });
        }
        from = index + 1;
    }
    longest.filter(|gap| gap.length_ns > 0)
}

/// Median latency of the slowest kind of operation; its mean where too few know a median.
fn usual_latency_ns(ops: &[(OpKind, &OpRecord)]) -> f64 {
    let median = |op: &OpRecord| op.latency.p50.map_or(op.latency.mean, |ns| ns as f64);
    ops.iter().map(|(_, op)| median(op)).fold(0.0, f64::max)
}

/// How many operations took at least so long.
fn longer_than(op: &OpRecord, ns: u64) -> u64 {
    let Ok(histogram) = LatencyHistogram::from_hdr_base64(&op.latency.hdr) else {
        return 0;
    };
    let slow = histogram.buckets().filter(|(from, _, _)| *from >= ns);
    slow.map(|(_, _, count)| count).sum()
}

/// The longest pause of the survey.
fn of_survey(record: &Record) -> Option<Pause> {
    let surface = record.surface.as_ref()?;
    let stalls = surface.stalls.iter().enumerate();
    let (index, stall) = stalls.max_by_key(|(_, stall)| stall.lasted_ns)?;
    let path = format!("/surface/stalls/{index}/lasted_ns");
    let (lasted_ns, threshold) = (stall.lasted_ns as f64, LENGTH_NS_MIN as f64);
    Some(Pause {
        place: SURVEY.to_owned(),
        at_ns: stall.since_ns.saturating_sub(surface.start_ns),
        length_ns: stall.lasted_ns,
        requests: stall.requests,
        evidence: evidence_at(path, lasted_ns, threshold, "ns"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes};
    use diskproof_model::finding::Severity;
    use diskproof_model::measurement::{Hang, Measurement};
    use diskproof_model::series::Cell;

    /// Nothing completes from 1.0 s for `ns`, and 32 requests wait.
    fn pause(m: &mut Measurement, ns: u64) {
        for op in m.ops.values_mut() {
            let cells = (ns / op.series.interval_ns) as usize;
            op.series.cells[100..100 + cells].fill(Cell::default());
            op.series.cells[100 + cells].latency_max_ns = ns;
            op.latency.record_many(ns, 32);
        }
    }

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| pause(m, 2_600_000_000))
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }

    #[test]
    fn pause_is_reported_with_its_time_length_and_requests() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.claim.starts_with(
                "No request completed for 2.6 s in random-read-d32, 1.1 s after its start, while \
                 32 requests waited."
            ),
            "{}",
            finding.claim
        );
        assert!(
            finding.evidence[0]
                .path
                .contains("/ops/read/series/latency_max_ns/")
        );
        assert_eq!(
            check(&fixture::faulty("random-read-d32", |m| {
                pause(m, 700_000_000);
            }))
            .unwrap()
            .severity,
            Severity::Note
        );
    }

    #[test]
    fn short_pauses_slow_disks_hangs_and_the_page_cache_are_silent() {
        let silent: [fn(&mut Measurement); 4] = [
            |m| pause(m, 300_000_000),
            |m| {
                pause(m, 2_600_000_000);
                let count: u64 = m.ops.values().map(|op| op.count).sum();
                m.ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(400_000_000, 10 * count));
            },
            |m| {
                pause(m, 2_600_000_000);
                m.cache.used = CachePolicy::Buffered;
            },
            |m| {
                pause(m, 2_600_000_000);
                m.hang = Some(Hang {
                    since_ns: 0,
                    lasted_ns: 50_000_000_000,
                    requests: 1,
                    late: false,
                });
            },
        ];
        for (index, change) in silent.into_iter().enumerate() {
            let record = fixture::faulty("random-read-d32", change);
            assert_eq!(check(&record), None, "{index}");
        }
        // One slow request while the others go on is a latency.
        let record = fixture::faulty("random-read-d32", |m| {
            m.ops
                .values_mut()
                .for_each(|op| op.latency.record_many(2_600_000_000, 1));
        });
        assert_eq!(check(&record), None);
    }

    #[test]
    fn pause_of_a_survey_is_reported() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.1.stalls = vec![Hang {
            since_ns: run.1.start_ns + 3_000_000_000,
            lasted_ns: 2_600_000_000,
            requests: 8,
            late: false,
        }];
        let record = surveyed::judge(run);
        assert_eq!(codes(&record), ["stalled"]);
        assert!(
            record.findings[0].claim.starts_with(
                "No request completed for 2.6 s in the survey, 3.0 s after its start, while 8 \
                 requests waited."
            ),
            "{}",
            record.findings[0].claim
        );
    }
}
