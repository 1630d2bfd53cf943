//! Requests without an answer. `hung`: a target did not answer any more and was timed out. `late`:
//! a run ended on time while requests were still in flight; whether the target hangs is unknown
//! then. `stalled`: for a while no request completed, and then the disk went on; a short pause
//! among slow requests is their latency.

use super::rate_limited::allowed_by_group;
use super::rule::*;
use diskproof_model::measurement::Hang;
use diskproof_model::series::TimeSeries;

pub(super) const HUNG: Rule = Rule {
    code: "hung",
    check: Check::Run(check_hung),
    says: Meaning::EndedEarly,
    #[cfg(test)]
    examples: tests::HUNG,
};

fn check_hung(record: &Record) -> Option<Diagnosis> {
    let (mut claims, mut seen) = (Vec::new(), Vec::new());
    let hang_of = |hang: Option<Hang>| hang.filter(|hang| !hang.late);
    if let Some(surface) = record.surface()
        && let Some(hang) = hang_of(surface.data.hang)
    {
        claims.push(tell_survey(record, surface, hang));
        let lasted_ns = hang.lasted_ns as f64;
        seen.push(evidence_at(
            "/results/0/data/hang/lasted_ns",
            lasted_ns,
            0.0,
            "ns",
        ));
    }
    for (index, m) in record.measurements.iter().enumerate() {
        if let Some(hang) = hang_of(m.data.hang) {
            claims.push(tell(record, m, hang));
            let (lasted_ns, requests) = (hang.lasted_ns as f64, hang.requests as f64);
            seen.push(evidence(index, "data/hang/lasted_ns", lasted_ns, 0.0, "ns"));
            seen.push(evidence(index, "data/hang/requests", requests, 0.0, "1"));
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
        target_path(record, surface.data.target),
        format_duration(hang.since_ns.saturating_sub(surface.data.start_ns)),
        format_duration(hang.lasted_ns),
    )
}

fn tell(record: &Record, m: &Row, hang: Hang) -> String {
    let path = target_path(record, m.data.target);
    let (name, lasted) = (&m.data.workload.name, format_duration(hang.lasted_ns));
    let since = match hang.since_ns.checked_sub(m.data.start_ns) {
        Some(into_ns) if into_ns >= m.data.wall_ns => {
            format!("while the data of {name} was read back")
        }
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
    says: Meaning::EndedEarly,
    #[cfg(test)]
    examples: tests::LATE,
};

/// Requests that were still in flight when a run ended on time.
fn check_late(record: &Record) -> Option<Diagnosis> {
    let survey = record.surface().into_iter();
    let survey = survey.filter_map(|s| Some((None, s.data.target, SURVEY, s.data.hang?)));
    let workloads = record.measurements.iter().enumerate();
    let workloads = workloads.filter_map(|(index, m)| {
        let name = m.data.workload.name.as_str();
        Some((Some(index), m.data.target, name, m.data.hang?))
    });
    let late: Vec<_> = survey
        .chain(workloads)
        .filter(|(.., hang)| hang.late)
        .collect();
    let lasted = late.iter().map(|(index, .., hang)| {
        let path = data_path(*index) + "/hang/lasted_ns";
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
    let surface = record.surface()?;
    let access = &surface.figures.seeks.get(&SeekPattern::Random)?.mean;
    let planned = record.plan.survey()?.curve;
    let is_missing = planned.is_some() && record.curve().is_empty();
    let path = "/results/0/figures/seeks/random/mean/value";
    let evidence = evidence_at(path, access.value, 0.0, "ns");
    is_missing.then(|| (format_duration(access.value as u64), evidence))
}

pub(super) const STALLED: Rule = Rule {
    code: "stalled",
    check: Check::Run(check_stalled),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::STALLED,
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
    if m.data.cache.used != CachePolicy::Direct || m.data.hang.is_some() {
        return None;
    }
    // `slow-after-idle` reports a disk that has to wake up.
    if m.figures
        .ping
        .iter()
        .any(|ping| !ping.after_idle.is_empty())
    {
        return None;
    }
    let ops = m.headline_ops();
    let (kind, cell) = ops
        .iter()
        .flat_map(|(kind, op)| op.data.series.cells.iter().map(|cell| (*kind, *cell)))
        .max_by_key(|(_, cell)| cell.latency_max_ns)?;
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
    let over = ops.iter().map(|(_, op)| longer_than(*op, length_ns / 2));
    let waited: u64 = over.sum();
    let place = format!("data/ops/{}/series", kind.as_str());
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
fn usual_latency_ns(ops: &[(OpKind, OpRow<'_>)]) -> f64 {
    let median = |op: OpRow<'_>| {
        op.figures
            .latency
            .p50
            .map_or(op.figures.latency.mean, |ns| ns as f64)
    };
    ops.iter().map(|(_, op)| median(*op)).fold(0.0, f64::max)
}

/// How many operations took at least so long.
fn longer_than(op: OpRow<'_>, ns: u64) -> u64 {
    op.data
        .latency
        .buckets()
        .filter(|(from, _, _)| *from >= ns)
        .map(|(_, _, count)| count)
        .sum()
}

/// The longest pause of the survey.
fn of_survey(record: &Record) -> Option<Pause> {
    let surface = record.surface()?;
    let stalls = surface.data.stalls.iter().enumerate();
    let (index, stall) = stalls.max_by_key(|(_, stall)| stall.lasted_ns)?;
    let path = format!("/results/0/data/stalls/{index}/lasted_ns");
    let (lasted_ns, threshold) = (stall.lasted_ns as f64, LENGTH_NS_MIN as f64);
    Some(Pause {
        place: SURVEY.to_owned(),
        at_ns: stall.since_ns.saturating_sub(surface.data.start_ns),
        length_ns: stall.lasted_ns,
        requests: stall.requests,
        evidence: evidence_at(path, lasted_ns, threshold, "ns"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes};
    use crate::fixture::{self, states};
    use diskproof_model::measurement::{Hang, Measurement};
    use diskproof_model::plan::Task;
    use diskproof_model::record::Stalled;
    use diskproof_model::series::Cell;
    use diskproof_model::target::IoLimit;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    pub(super) const HUNG: Examples = Examples::of(
        || reads(|m| m.hang = hang(m.start_ns + 2 * SECOND, 47, 32)),
        fixture::record,
    );
    pub(super) const LATE: Examples = Examples::of(is_late, fixture::record);
    pub(super) const STALLED: Examples =
        Examples::of(|| reads(|m| pause(m, 2600 * MS)), fixture::record);

    fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    fn hang(since_ns: u64, seconds: u64, requests: u64) -> Option<Hang> {
        Some(Hang {
            since_ns,
            lasted_ns: seconds * SECOND,
            requests,
            late: false,
        })
    }

    #[test]
    fn a_target_that_hung_is_reported_with_its_time() {
        let finding = super::HUNG.find(&(HUNG.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(
            &finding.claim,
            &["2.0 s into random-read-d32: 32 requests", "47 s"],
        );
        states(&finding.remedy, &["dmesg"]);
    }

    #[test]
    fn a_hang_before_or_after_the_measured_time_is_none_of_it() {
        let warm_up = reads(|m| {
            m.start_ns = SECOND;
            m.hang = hang(m.start_ns - 1, 47, 1);
        });
        states(
            &check_hung(&warm_up).unwrap().claim,
            &["warm-up of random-read-d32: 1 request "],
        );
        let later = fixture::faulty("random-write-d32", |m| {
            m.hang = hang(m.start_ns + m.wall_ns + 5, 45, 1);
        });
        states(
            &check_hung(&later).unwrap().claim,
            &["random-write-d32 was read back: 1 request "],
        );
    }

    #[test]
    fn a_survey_that_hung_is_reported() {
        let record = surveyed::faulty(|s| s.hang = hang(s.start_ns + 3 * SECOND, 225, 1));
        let finding = check_hung(&record).unwrap();
        states(&finding.claim, &["3.0 s into the survey", "3 min 45 s"]);
        assert_eq!(finding.evidence[0].path, "/results/0/data/hang/lasted_ns");
    }

    #[test]
    fn a_hang_between_the_requests_is_one_too() {
        let record = fixture::changed(|run| {
            run.0.stalled = Some(Stalled {
                around: "random-read-d32".to_owned(),
                lasted_ns: 45 * SECOND,
            });
        });
        let finding = check_hung(&record).unwrap();
        states(&finding.claim, &["/data", "45 s around random-read-d32"]);
        assert_eq!(finding.evidence[0].path, "/stalled/lasted_ns");
    }

    fn is_late() -> Record {
        reads(|m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + 2 * SECOND,
                lasted_ns: 7 * SECOND,
                requests: 8,
                late: true,
            });
        })
    }

    #[test]
    fn requests_in_flight_at_the_end_of_a_run_are_late_and_no_hang() {
        let finding = check_late(&is_late()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["8 requests of random-read-d32", "7.0 s"]);
        assert_eq!(check_hung(&is_late()), None);
    }

    #[test]
    fn disk_too_slow_for_a_curve_is_named() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.plan.tasks = vec![Task::Survey(run.1.survey.clone())];
        run.1.curve.clear();
        let finding = check_late(&surveyed::judge(run)).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/figures/seeks/random/mean/value"
        );
        assert_eq!(check_late(&surveyed::record()), None);
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
        states(&finding.claim, &["/db"]);
        let path = &finding.evidence.last().unwrap().path;
        assert_eq!(path, "/host/io_limits/0/read_bytes_per_second");
    }

    /// Nothing completes from 1.0 s for `ns`, and 32 requests wait.
    fn pause(m: &mut Measurement, ns: u64) {
        for op in m.ops.values_mut() {
            let cells = (ns / op.series.interval_ns) as usize;
            op.series.cells[100..100 + cells].fill(Cell::default());
            op.series.cells[100 + cells].latency_max_ns = ns;
            op.latency.record_many(ns, 32);
        }
    }

    #[test]
    fn pause_is_reported_with_its_time_length_and_requests() {
        let finding = check_stalled(&(STALLED.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["2.6 s in random-read-d32, 1.1 s after", "32 requests"],
        );
        states(&finding.evidence[0].path, &["/data/ops/read/series"]);
        let short = check_stalled(&reads(|m| pause(m, 700 * MS)));
        assert_eq!(short.unwrap().severity, Severity::Note);
    }

    #[test]
    fn short_pauses_slow_disks_hangs_and_the_page_cache_are_silent() {
        let silent: [fn(&mut Measurement); 5] = [
            |m| pause(m, 300 * MS),
            |m| {
                pause(m, 2600 * MS);
                let count: u64 = m.ops.values().map(|op| op.count).sum();
                m.ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(400 * MS, 10 * count));
            },
            |m| {
                pause(m, 2600 * MS);
                m.cache.used = CachePolicy::Buffered;
            },
            |m| {
                pause(m, 2600 * MS);
                m.hang = hang(0, 50, 1);
            },
            // One slow request while the others go on is a latency.
            |m| {
                m.ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(2600 * MS, 1));
            },
        ];
        for (index, change) in silent.into_iter().enumerate() {
            assert_eq!(check_stalled(&reads(change)), None, "{index}");
        }
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
