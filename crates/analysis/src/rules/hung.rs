//! Requests without an answer. `hung`: a target did not answer any more and was timed out. `late`:
//! a run ended on time while requests were still in flight; whether the target hangs is unknown
//! then. `stalled`: for a while no request completed, and then the disk went on; a short pause
//! among slow requests is their latency.

use super::rate_limited::allowed_by_group;
use super::rule::*;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::Hang;
use diskproof_model::series::TimeSeries;

pub(super) const HUNG: Rule = Rule {
    code: "hung",
    check: Check::Run(check_hung),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
};

fn check_hung(record: &Record) -> Option<Diagnosis> {
    let (mut claims, mut seen) = (Vec::new(), Vec::new());
    let hang_of = |hang: Option<Hang>| hang.filter(|hang| !hang.late);
    if let Some(surface) = &record.surface
        && let Some(hang) = hang_of(surface.hang)
    {
        claims.push(tell_survey(record, surface, hang));
        let lasted_ns = hang.lasted_ns as f64;
        seen.push(evidence_at("/surface/hang/lasted_ns", lasted_ns, 0.0, "ns"));
    }
    for (index, m) in record.measurements.iter().enumerate() {
        if let Some(hang) = hang_of(m.hang) {
            claims.push(tell(record, m, hang));
            let (lasted_ns, requests) = (hang.lasted_ns as f64, hang.requests as f64);
            seen.push(evidence(index, "hang/lasted_ns", lasted_ns, 0.0, "ns"));
            seen.push(evidence(index, "hang/requests", requests, 0.0, "1"));
        }
    }
    if let Some(stalled) = &record.stalled {
        claims.push(format!(
            "{} did not answer for {} around {}, between its requests, and timed out",
            record.plan.targets.join(", "),
            format_duration(stalled.lasted_ns),
            stalled.around
        ));
        let lasted_ns = stalled.lasted_ns as f64;
        seen.push(evidence_at("/stalled/lasted_ns", lasted_ns, 0.0, "ns"));
    }
    claims.first()?;
    Some(Diagnosis::new(
        Severity::Failure,
        format!("{}.", claims.join("; ")),
        seen,
    ))
}

fn tell_survey(record: &Record, surface: &SurfaceRecord, hang: Hang) -> String {
    format!(
        "{} stopped answering {} into {SURVEY}, and timed out after {} without an answer",
        target_path(record, surface.target),
        format_duration(hang.since_ns.saturating_sub(surface.start_ns)),
        format_duration(hang.lasted_ns),
    )
}

fn tell(record: &Record, m: &MeasurementRecord, hang: Hang) -> String {
    let path = target_path(record, m.target);
    let (name, lasted) = (&m.workload.name, format_duration(hang.lasted_ns));
    let since = match hang.since_ns.checked_sub(m.start_ns) {
        Some(into_ns) if into_ns >= m.wall_ns => format!("while the data of {name} was read back"),
        Some(into_ns) => format!("{} into {name}", format_duration(into_ns)),
        None => format!("during the warm-up of {name}"),
    };
    let requests = counted(hang.requests, "request");
    format!(
        "{path} stopped answering {since}: {requests} had no answer after {lasted}, when the run \
         stopped waiting"
    )
}

pub(super) const LATE: Rule = Rule {
    code: "late",
    check: Check::Run(check_late),
    #[cfg(test)]
    examples: Examples {
        fires: late_tests::is_late,
        silent: late_tests::on_time,
    },
};

/// Requests that were still in flight when a run ended on time.
fn check_late(record: &Record) -> Option<Diagnosis> {
    let survey = record.surface.iter();
    let survey = survey.filter_map(|s| Some((None, s.target, SURVEY, s.hang?)));
    let workloads = record.measurements.iter().enumerate();
    let workloads = workloads.filter_map(|(index, m)| {
        let name = m.workload.name.as_str();
        Some((Some(index), m.target, name, m.hang?))
    });
    let late: Vec<_> = survey
        .chain(workloads)
        .filter(|(.., hang)| hang.late)
        .collect();
    let lasted = late.iter().map(|(index, .., hang)| {
        let path = part_path(*index) + "/hang/lasted_ns";
        evidence_at(path, hang.lasted_ns as f64, 0.0, "ns")
    });
    let mut seen: Vec<Evidence> = lasted.collect();
    let claims = late.iter().map(|(_, _, name, hang)| {
        format!(
            "{} of {name} had no answer after {}",
            counted(hang.requests, "request"),
            format_duration(hang.lasted_ns)
        )
    });
    let mut claim = claims.collect::<Vec<_>>().join("; ");
    if !claim.is_empty() {
        claim.push_str(
            ", when the run ended. The figures exclude these requests, which take at least as \
             long. A database waits for each of them.",
        );
    }
    let mut targets = late.iter().map(|(_, target, ..)| *target);
    if let Some((limit, evidence)) = targets.find_map(|target| allowed_by_group(record, target)) {
        claim.push_str(&limit);
        seen.push(evidence);
    }
    if let Some((access, evidence)) = no_time_for_curve(record) {
        let access = format!(
            "A random access takes {access}, so the time was too short for a curve: the transfer \
             rate is undecided."
        );
        claim = [claim, access].join(" ").trim().to_owned();
        seen.push(evidence);
    }
    (!seen.is_empty()).then(|| Diagnosis::new(Severity::Warning, claim, seen))
}

/// The access time of a disk that was too slow for the curve of the plan.
fn no_time_for_curve(record: &Record) -> Option<(String, Evidence)> {
    let surface = record.surface.as_ref()?;
    let access = &surface.seeks.get(&SeekPattern::Random)?.mean;
    let planned = record.plan.survey.as_ref()?.curve;
    let is_missing = planned.is_some() && record.curve.is_empty();
    let path = "/surface/seeks/random/mean/value";
    let evidence = evidence_at(path, access.value, 0.0, "ns");
    is_missing.then(|| (format_duration(access.value as u64), evidence))
}

pub(super) const STALLED: Rule = Rule {
    code: "stalled",
    check: Check::Run(check_stalled),
    #[cfg(test)]
    examples: Examples {
        fires: stalled_tests::fires,
        silent: stalled_tests::silent,
    },
};

/// Shorter pauses are within what a disk's own housekeeping and a busy host do.
const LENGTH_NS_MIN: u64 = 500_000_000;
/// From this length on sessions notice, and timeouts come near.
const LENGTH_NS_WARNING: u64 = 1_000_000_000;
/// A pause is at least this many times the median latency: where requests take 400 ms each, half a
/// second without a completion is no exception.
const LATENCIES_MIN: f64 = 10.0;
/// Workloads that the claim names.
const PAUSES_NAMED: usize = 3;

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

fn check_stalled(record: &Record) -> Option<Diagnosis> {
    let mut pauses: Vec<Pause> = real(record)
        .filter_map(|measured| of_workload(record, measured))
        .collect();
    pauses.extend(of_survey(record));
    pauses.sort_by_key(|pause| std::cmp::Reverse(pause.length_ns));
    let longest_ns = pauses.first()?.length_ns;
    let named: Vec<String> = pauses
        .iter()
        .take(PAUSES_NAMED)
        .map(describe_pause)
        .collect();
    let more = match pauses.len().saturating_sub(PAUSES_NAMED) {
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
    ))
}

fn describe_pause(pause: &Pause) -> String {
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
    let (gap_ns, end_ns) = longest_gap(&all)?;
    // The cells around the gap may hold completions: no request waited for longer than the slowest.
    let length_ns = cell.latency_max_ns.min(gap_ns + 2 * all.interval_ns);
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
        at_ns: end_ns.saturating_sub(length_ns),
        length_ns,
        // Several pauses of one length would add up.
        requests: match waited {
            0 => depth,
            waited => waited.min(depth),
        },
        evidence: evidence(index, &place, slowest_ns, threshold, "ns"),
    })
}

/// The length of the longest stretch of cells in which nothing completed, and the end of the cell
/// after it.
fn longest_gap(series: &TimeSeries) -> Option<(u64, u64)> {
    let (mut longest, mut from) = ((0, 0), 0);
    for (index, cell) in series.cells.iter().enumerate() {
        if cell.ops == 0 && cell.errors == 0 {
            continue;
        }
        let length_ns = (index - from) as u64 * series.interval_ns;
        if length_ns > longest.0 {
            let end_ns = series.start_ns + (index as u64 + 1) * series.interval_ns;
            longest = (length_ns, end_ns);
        }
        from = index + 1;
    }
    Some(longest).filter(|(length_ns, _)| *length_ns > 0)
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
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::record::Stalled;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + 2_000_000_000,
                lasted_ns: 47_000_000_000,
                requests: 32,
                late: false,
            });
        })
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }

    #[test]
    fn a_target_that_hung_is_reported_with_its_time() {
        let finding = HUNG.find(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        assert!(
            finding
                .claim
                .contains("2.0 s into random-read-d32: 32 requests had no answer after 47 s"),
            "{}",
            finding.claim
        );
        assert!(finding.remedy.contains("dmesg"));
    }

    #[test]
    fn a_hang_of_the_warm_up_is_none_of_the_measured_time() {
        let record = fixture::faulty("random-read-d32", |m| {
            m.start_ns = 1_000_000_000;
            m.hang = Some(Hang {
                since_ns: m.start_ns - 1,
                lasted_ns: 47_000_000_000,
                requests: 1,
                late: false,
            });
        });
        let claim = check_hung(&record).unwrap().claim;
        assert!(
            claim
                .contains("stopped answering during the warm-up of random-read-d32: 1 request had"),
            "{claim}"
        );
    }

    #[test]
    fn a_survey_that_hung_is_reported_and_so_is_what_hung_after_the_measured_time() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.1.hang = Some(Hang {
            since_ns: run.1.start_ns + 3_000_000_000,
            lasted_ns: 225_000_000_000,
            requests: 1,
            late: false,
        });
        let finding = check_hung(&surveyed::judge(run)).unwrap();
        assert!(
            finding
                .claim
                .contains("stopped answering 3.0 s into the survey")
                && finding.claim.contains("3 min 45 s"),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence[0].path, "/surface/hang/lasted_ns");
        let later = fixture::faulty("random-write-d32", |m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + m.wall_ns + 5,
                lasted_ns: 45_000_000_000,
                requests: 1,
                late: false,
            });
        });
        let claim = check_hung(&later).unwrap().claim;
        assert!(
            claim.contains(
                "stopped answering while the data of random-write-d32 was read back: 1 request"
            ),
            "{claim}"
        );
    }

    #[test]
    fn a_hang_between_the_requests_is_one_too() {
        let mut run = fixture::run();
        run.0.stalled = Some(Stalled {
            around: "random-read-d32".to_owned(),
            lasted_ns: 45_000_000_000,
        });
        let finding = check_hung(&fixture::judge(run)).unwrap();
        assert!(
            finding.claim.contains(
                "/data did not answer for 45 s around random-read-d32, between its requests"
            ),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence[0].path, "/stalled/lasted_ns");
    }

    #[test]
    fn what_answered_late_did_not_hang() {
        assert_eq!(check_hung(&fixture::record()), None);
    }
}

#[cfg(test)]
mod late_tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::measurement::Hang;
    use diskproof_model::target::IoLimit;

    pub(super) fn on_time() -> Record {
        fixture::record()
    }

    pub(super) fn is_late() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + 2_000_000_000,
                lasted_ns: 7_000_000_000,
                requests: 8,
                late: true,
            });
        })
    }

    #[test]
    fn requests_in_flight_at_the_end_of_a_run_are_late_and_no_hang() {
        let record = is_late();
        let finding = check_late(&record).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding
                .claim
                .starts_with("8 requests of random-read-d32 had no answer after 7.0 s"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn disk_too_slow_for_a_curve_is_named() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.plan.survey = Some(run.1.survey.clone());
        run.1.curve.clear();
        let finding = check_late(&surveyed::judge(run)).unwrap();
        assert_eq!(finding.evidence[0].path, "/surface/seeks/random/mean/value");
        let whole = SurveyedDisk::rotating().run(1);
        assert_eq!(check_late(&surveyed::judge(whole)), None);
    }

    #[test]
    fn limit_of_a_group_is_named_as_the_cause() {
        let mut record = is_late();
        record.host.io_limits = vec![IoLimit {
            group: "/db".to_owned(),
            device: "8:0".to_owned(),
            read_bytes_per_second: Some(300_000),
            ..IoLimit::default()
        }];
        let finding = check_late(&record).unwrap();
        assert!(finding.claim.contains("/db allows"), "{}", finding.claim);
        let path = &finding.evidence.last().unwrap().path;
        assert_eq!(path, "/host/io_limits/0/read_bytes_per_second");
    }
}

#[cfg(test)]
mod stalled_tests {
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
        let finding = check_stalled(&fires()).unwrap();
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
            check_stalled(&fixture::faulty("random-read-d32", |m| {
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
            assert_eq!(check_stalled(&record), None, "{index}");
        }
        // One slow request while the others go on is a latency.
        let record = fixture::faulty("random-read-d32", |m| {
            m.ops
                .values_mut()
                .for_each(|op| op.latency.record_many(2_600_000_000, 1));
        });
        assert_eq!(check_stalled(&record), None);
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
