//! `late`: a run ended on time while requests were still in flight, so it is unknown whether the
//! target is slow or hangs.

use super::rate_limited::first_group_limit;
use super::rule::*;
use crate::mechanics::may_have_slept;
use diskproof_model::measurement::{Hang, WAKE_UP_NS};
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{Plan, Workload};

pub(super) const RULE: Rule = Rule {
    code: "late",
    title: "Requests took longer than the run",
    summary: "The disk is too slow for the time of the run, or it hangs. The run ended on time, \
              with requests in flight. The figures cover the requests that completed, so the \
              longest latencies are missing.",
    remedy: Remedy::Always(
        "Measure longer (--time), with smaller blocks (--bs) or at a lower depth (--depth). If no \
         request ever completes, look for timeouts in the kernel log (dmesg).",
    ),
    check: Check::Run(check),
    says: Meaning::EndedEarly,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A disk that has nothing to do for less stays awake: the shortest time of ATA's standby timer
/// (hdparm -S 1).
const SPIN_DOWN_NS_MIN: u64 = 5_000_000_000;

/// Requests that had no answer when the run ended.
struct LateRequests {
    /// The index of the workload; `None` for the survey and for an acceptance test.
    index: Option<usize>,
    target: usize,
    name: String,
    hang: Hang,
}

impl LateRequests {
    fn claim(&self) -> String {
        format!(
            "{} of {} had no answer after {}",
            counted(self.hang.requests, "request"),
            self.name,
            format_duration(self.hang.lasted_ns)
        )
    }

    fn evidence(&self) -> Evidence {
        let path = data_path(self.index) + "/hang/lasted_ns";
        evidence_at(path, self.hang.lasted_ns as f64, 0.0, "ns")
    }
}

/// A sentence of the claim, with the figures that prove it.
struct Statement {
    sentence: String,
    evidence: Vec<Evidence>,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let late = late_requests(record);
    let first = first_requests_without_answer(record);
    // A disk that only is too slow for a curve in this time has answered all requests.
    let is_silent = match &first {
        Some(first) => !first.may_be_asleep,
        None => false,
    };
    let severity = warning_if(is_silent || !late.is_empty());
    let mut sentences = Vec::new();
    let mut evidence = Vec::new();
    let statements = [
        requests_without_answer(&late),
        first.map(|first| first.statement),
        limit_of_a_group(record, &late),
        curve_without_time(record),
    ];
    for statement in statements.into_iter().flatten() {
        sentences.push(statement.sentence);
        evidence.extend(statement.evidence);
    }
    if evidence.is_empty() {
        return None;
    }
    let claim = sentences.join(" ");
    Some(Diagnosis::new(severity, claim, evidence))
}

/// First requests without an answer.
struct FirstRequests {
    statement: Statement,
    /// A rotating disk may not have been awake by then.
    may_be_asleep: bool,
}

/// True of a plan that leaves its disks without a request for so long that they may fall asleep.
fn leaves_disks_idle(plan: &Plan) -> bool {
    let is_pinged_rarely = match plan.ping() {
        Some(ping) => longest_idle_ns(&ping.requests) >= SPIN_DOWN_NS_MIN,
        None => false,
    };
    let has_long_pause = match plan.sustain() {
        Some(sustain) => sustain.pauses_ns.iter().any(|ns| *ns >= SPIN_DOWN_NS_MIN),
        None => false,
    };
    is_pinged_rarely || has_long_pause || plan.workloads().iter().any(may_pause)
}

/// The longest time that a ping leaves between two requests.
fn longest_idle_ns(ping: &PingPlan) -> u64 {
    let idle_ns = ping.idle_ns.iter().copied().max();
    ping.interval_ns.max(idle_ns.unwrap_or(0))
}

/// True of a workload with long times between its requests.
fn may_pause(workload: &Workload) -> bool {
    let is_rare = workload
        .rate
        .is_some_and(|rate| rate * SPIN_DOWN_NS_MIN as f64 <= 1e9);
    let thinks = match workload.shape.starts.think {
        Some(think) => think.pause_ns >= SPIN_DOWN_NS_MIN,
        None => false,
    };
    is_rare || thinks || workload.shape.starts.delay_ns >= SPIN_DOWN_NS_MIN
}

/// A run that ended before the first requests to a target were answered.
fn first_requests_without_answer(record: &Record) -> Option<FirstRequests> {
    let stalled = record.stalled.as_ref().filter(|stalled| stalled.late)?;
    let (path, can_sleep) = match stalled.target.and_then(|index| record.targets.get(index)) {
        Some(target) => (target.path.clone(), may_have_slept(record, target)),
        None => (
            record.plan.targets.join(", "),
            record
                .targets
                .iter()
                .any(|target| may_have_slept(record, target)),
        ),
    };
    // A disk does not sleep while it works.
    let is_awake = stalled.has_answered && !leaves_disks_idle(&record.plan);
    let may_be_asleep = can_sleep && !is_awake && stalled.lasted_ns < WAKE_UP_NS;
    let reason = if may_be_asleep {
        "A sleeping disk needs up to 15 s for its first answer."
    } else {
        "A database waits as long."
    };
    Some(FirstRequests {
        statement: Statement {
            sentence: format!(
                "When the run ended, {path} had answered nothing for {} in {}. {reason}",
                format_duration(stalled.lasted_ns),
                stalled.around
            ),
            evidence: vec![evidence_at(
                "/stalled/lasted_ns",
                stalled.lasted_ns as f64,
                0.0,
                "ns",
            )],
        },
        may_be_asleep,
    })
}

fn requests_without_answer(late: &[LateRequests]) -> Option<Statement> {
    if late.is_empty() {
        return None;
    }
    let claims: Vec<String> = late.iter().map(LateRequests::claim).collect();
    Some(Statement {
        sentence: format!(
            "{}, when the run ended. The figures exclude these requests, which take at least as \
             long. A database waits for each of them.",
            claims.join("; ")
        ),
        evidence: late.iter().map(LateRequests::evidence).collect(),
    })
}

/// The first limit of a control group that explains why requests are late.
fn limit_of_a_group(record: &Record, late: &[LateRequests]) -> Option<Statement> {
    for requests in late {
        if let Some(limit) = first_group_limit(record, requests.target) {
            return Some(Statement {
                sentence: limit.sentence,
                evidence: vec![limit.evidence],
            });
        }
    }
    None
}

/// A disk that was too slow for the curve of the plan, by its access time.
fn curve_without_time(record: &Record) -> Option<Statement> {
    let surface = record.surface()?;
    let access = &surface.figures.seeks.get(&SeekPattern::Random)?.mean;
    if record.plan.survey()?.curve.is_none() || !record.curve().is_empty() {
        return None;
    }
    let access_time = format_duration(access.value as u64);
    let path = first_result_path("figures/seeks/random/mean/value");
    Some(Statement {
        sentence: format!(
            "A random access takes {access_time}, so the time was too short for a curve: the \
             transfer rate is undecided."
        ),
        evidence: vec![evidence_at(path, access.value, 0.0, "ns")],
    })
}

fn late_requests(record: &Record) -> Vec<LateRequests> {
    let mut late = Vec::new();
    if let Some(surface) = record.surface()
        && let Some(hang) = surface.data.hang
    {
        late.push(LateRequests {
            index: None,
            target: surface.data.target,
            name: SURVEY.to_owned(),
            hang,
        });
    }
    if let Some(accept) = record.accept()
        && let Some(hang) = accept.data.hang
    {
        late.push(LateRequests {
            index: None,
            target: accept.data.target,
            name: ACCEPTANCE_TEST.to_owned(),
            hang,
        });
    }
    for measured in measured_rows(record) {
        if let Some(hang) = measured.row.data.hang {
            late.push(LateRequests {
                index: Some(measured.index),
                target: measured.row.data.target,
                name: workload_name(record, measured.row),
                hang,
            });
        }
    }
    late.retain(|requests| requests.hang.late);
    late
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use crate::fixture::{self, states};
    use crate::rules::hung;
    use diskproof_model::plan::Decide;
    use diskproof_model::plan::Task;
    use diskproof_model::record::Stalled;
    use diskproof_model::sustain::SustainPlan;
    use diskproof_model::target::IoLimit;

    const SECOND_NS: u64 = 1_000_000_000;

    pub(super) const EXAMPLES: Examples = Examples::new(is_late, fixture::record);

    fn is_late() -> Record {
        fixture::faulty("random-read-d32", |measurement| {
            measurement.hang = Some(Hang {
                since_ns: measurement.start_ns + 2 * SECOND_NS,
                lasted_ns: 7 * SECOND_NS,
                requests: 8,
                late: true,
            });
        })
    }

    #[test]
    fn requests_in_flight_at_the_end_of_a_run_are_late_and_no_hang() {
        let finding = check(&is_late()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["8 requests of random-read-d32", "7.0 s"]);
        assert_eq!(hung::check(&is_late()), None);
    }

    /// The run ended before the first request was answered, so that there is no row.
    #[test]
    fn disk_that_answered_nothing_from_the_start_is_late() {
        let silent = |seconds: u64, rotational: Option<bool>, hypervisor: Option<&str>| {
            let record = fixture::changed(|run| {
                run.facts.host.hypervisor = hypervisor.map(str::to_owned);
                for layer in &mut run.facts.targets[0].layers {
                    layer.rotational = rotational;
                    layer.vendor = hypervisor.map(|_| "QEMU".to_owned());
                }
                run.facts.stalled = Some(Stalled {
                    around: "random-read-d32".to_owned(),
                    lasted_ns: seconds * SECOND_NS,
                    late: true,
                    has_answered: false,
                    target: Some(0),
                });
            });
            assert_eq!(hung::check(&record), None);
            check(&record).unwrap()
        };
        let finding = silent(8, Some(false), None);
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["/data", "for 8.0 s in random-read-d32"]);
        assert_eq!(finding.evidence[0].path, "/stalled/lasted_ns");
        // A disk that sleeps is not accused; one of a hypervisor only states that it rotates.
        for (seconds, hypervisor, severity) in [
            (8, None, Severity::Note),
            (16, None, Severity::Warning),
            (8, Some("kvm"), Severity::Warning),
        ] {
            let finding = silent(seconds, Some(true), hypervisor);
            assert_eq!(finding.severity, severity, "{seconds} {hypervisor:?}");
        }
    }

    /// A rotating disk that had answered in the run did not sleep, unless the run left it idle.
    #[test]
    fn disk_that_had_answered_before_does_not_sleep() {
        let silent = |has_answered, rate: Option<f64>| {
            let record = fixture::changed(|run| {
                run.facts.host.hypervisor = None;
                for layer in &mut run.facts.targets[0].layers {
                    layer.rotational = Some(true);
                }
                for workload in run.facts.plan.workloads_mut() {
                    workload.rate = rate;
                }
                run.facts.stalled = Some(Stalled {
                    around: "write-back".to_owned(),
                    lasted_ns: 8 * SECOND_NS,
                    late: true,
                    has_answered,
                    target: Some(0),
                });
            });
            check(&record).unwrap().severity
        };
        assert_eq!(silent(false, None), Severity::Note);
        assert_eq!(silent(true, None), Severity::Warning);
        assert_eq!(silent(true, Some(100.0)), Severity::Warning);
        assert_eq!(silent(true, Some(0.1)), Severity::Note);
    }

    /// `sustain` leaves the disk idle to see whether its rate comes back.
    #[test]
    fn disk_may_fall_asleep_in_a_pause_of_a_sustained_load() {
        for (pause_ns, leaves_idle) in [(SECOND_NS, false), (30 * SECOND_NS, true)] {
            let record = fixture::changed(|run| {
                let workloads = run.facts.plan.workload_task_mut().unwrap();
                workloads.decide = Decide::Until(SustainPlan {
                    round_ns: SECOND_NS,
                    pauses_ns: vec![pause_ns],
                    precondition_bytes: None,
                    stop_at_drop: None,
                    budget_bytes: None,
                });
            });
            assert_eq!(leaves_disks_idle(&record.plan), leaves_idle, "{pause_ns}");
        }
    }

    #[test]
    fn workload_that_ran_on_two_targets_is_named_with_its_target() {
        let mut record = is_late();
        let mut other = record.targets[0].clone();
        other.path = "/dev/sdz".to_owned();
        record.targets.push(other);
        let mut late = fixture::measured(&mut record, "random-read-d32").clone();
        late.data.target = 1;
        record.measurements.push(late);
        let claim = check(&record).unwrap().claim;
        states(&claim, &["random-read-d32 on /dev/sdz had no answer"]);
    }

    #[test]
    fn disk_too_slow_for_a_curve_is_named() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.facts.plan.tasks = vec![Task::Survey(run.surface.survey.clone())];
        run.surface.curve.clear();
        let finding = check(&surveyed::judge(run)).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/figures/seeks/random/mean/value"
        );
        assert_eq!(finding.severity, Severity::Note);
        assert_eq!(check(&surveyed::record()), None);
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
        let finding = check(&record).unwrap();
        states(&finding.claim, &["/db"]);
        let path = &finding.evidence.last().unwrap().path;
        assert_eq!(path, "/host/io_limits/0/read_bytes_per_second");
    }
}
