//! What this program and its machine, not the disk, did to the figures. `cpu-limited`: the program
//! had no CPU time left to ask for more. `starved`: the machine was so busy that this program had
//! to wait for a processor when the disk answered. Its own waiting is in the figures then: in
//! latencies, most of all in the high percentiles, and on a survey as slow and, where the disk read
//! ahead meanwhile, as fast places. `cpu-stolen`: while this virtual machine measured, its
//! hypervisor gave its processors to others. Neither the load average nor the waits of threads show
//! that: the machine itself stood still. `engine-limited`: this program sets the pace; the evidence
//! is what its workers reach with no I/O at all. `missed-schedule`: in an open loop, operations
//! could not start when they should have. `interrupted`: this program did not run for a while; the
//! figures exclude that time.

use super::rule::*;
use diskproof_model::measurement::{Interruption, InterruptionKind};

pub(super) const CPU_LIMITED: Rule = Rule {
    code: "cpu-limited",
    check: Check::Workloads(check_cpu_limited),
    says: Meaning::Limit {
        limit: RateLimit::Cpu,
    },
    #[cfg(test)]
    examples: tests::CPU_LIMITED,
};

/// Share of the CPU time it could have that counts as all of it; the rest is accounting by ticks.
const BUSY_SHARE: f64 = 0.9;
/// CPU time is accounted in ticks of up to 10 ms; in less than this it says little.
const WALL_NS_MIN: u64 = 100_000_000;

fn check_cpu_limited(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured> = real(record)
        .filter(|(_, m)| is_cpu_limited(record, m))
        .collect();
    let (_, worst) = largest_by(&hits, |(_, m)| m.cpu_share())?;
    let all_busy = takes_all(record, worst);
    let beside = if all_busy && !worst.figures.together_with.is_empty() {
        " with the workloads that ran at the same time"
    } else {
        ""
    };
    let (share, all, remedy) = match (all_busy, record.host.cpus) {
        (false, _) => (
            worst.cpu_share(),
            "which is all that its threads can use".to_owned(),
            "Use more threads (diskproof run --jobs). These figures show what one thread can do.",
        ),
        (true, cpus) => (
            joint_share(record, worst),
            match cpus {
                1 => "which is all the CPU time there is".to_owned(),
                n => format!("which is all the time of {n} CPUs"),
            },
            "Use a machine with more or faster CPUs, and stop other work during the measurement. \
             This machine has no CPU time left for the disk.",
        ),
    };
    Some(Diagnosis::with_remedy(
        Severity::Warning,
        format!(
            "The CPU was the limit in {}: {}{beside} used {} of one CPU, {all}. The disk may be \
             faster than the figures show.",
            scope(record, hits.iter().map(|h| h.0)),
            workload_name(record, worst),
            format_percent(share),
        ),
        hits.iter().map(|(index, m)| {
            let threshold = BUSY_SHARE * threads(record, m);
            evidence(*index, "data/cpu", m.cpu_share(), threshold, "CPUs")
        }),
        remedy,
    ))
}

/// Whether the program used all the CPU time that its threads could have: those of this workload,
/// or, where several ran together, all that there is. A worker that keeps a schedule spends what is
/// left of it on looking at the clock.
pub(super) fn is_cpu_limited(record: &Record, m: &Row) -> bool {
    let keeps_schedule = m.data.workload.rate.is_some() && !is_missed(m);
    let is_measured =
        m.data.wall_ns >= WALL_NS_MIN && m.data.ops.keys().any(|kind| *kind != OpKind::Sync);
    !keeps_schedule
        && is_measured
        && !writes_to_memory(m)
        && (m.cpu_share() >= BUSY_SHARE * threads(record, m) || takes_all(record, m))
}

/// Whether only the CPU can limit it: writes that stay in the page cache. They say nothing about
/// the disk, and a warning would cast doubt on the figures of other workloads.
fn writes_to_memory(m: &Row) -> bool {
    m.data.workload.streams.is_only(OpKind::Write)
        && m.data.cache.used == CachePolicy::Cached
        && m.data.workload.sync == SyncPolicy::None
}

/// Whether what ran together used all CPUs of the machine.
fn takes_all(record: &Record, m: &Row) -> bool {
    joint_share(record, m) >= BUSY_SHARE * f64::from(record.host.cpus)
}

/// CPU time of all that ran together, over the measured time.
fn joint_share(record: &Record, m: &Row) -> f64 {
    together(record, m).map(Row::cpu_share).sum()
}

/// Threads that can be busy at once: one per worker, or one per request where the interface blocks
/// or the kernel hands it to its own.
fn threads(record: &Record, m: &Row) -> f64 {
    let per_request = match m.data.engine.used {
        EngineKind::Sync | EngineKind::Mmap => true,
        EngineKind::Uring => m.data.punted == Some(true),
        EngineKind::Aio | EngineKind::Null => false,
    };
    let threads = if per_request {
        wanted_depth(m)
    } else {
        f64::from(m.data.workload.workers)
    };
    threads.min(f64::from(record.host.cpus)).max(1.0)
}

pub(super) const STARVED: Rule = Rule {
    code: "starved",
    check: Check::Run(check_starved),
    says: Meaning::OtherLoad {
        used: SharedResource::Processors,
    },
    #[cfg(test)]
    examples: tests::STARVED,
};

/// Share of the survey's time from which on it shows: the queue of eight requests hides less,
/// single accesses become longer by it.
const SURVEY_SHARE_MIN: f64 = 0.05;
/// Shorter surveys are over within a few turns of the scheduler.
const STARVED_WALL_NS_MIN: u64 = 1_000_000_000;

/// Whether the survey waited for processors so long that it shows.
pub(super) fn is_starved(surface: &SurfaceRecord) -> bool {
    surface.figures.starved_share >= SURVEY_SHARE_MIN && surface.data.wall_ns >= STARVED_WALL_NS_MIN
}

/// Share of a workload's time from which on it may show. By threads of pread the mean latency is
/// longer by just this share, by a queue in one thread by less; the high percentiles by much more
/// (3.5 % made a p99.9 of 14.0 ms into 14.5 ms, more work on the machine 8.9 ms into 24.4 ms).
const WORKLOAD_SHARE_MIN: f64 = 0.02;
/// Mean wait that is more than waking up: an idle processor, or one that this program has
/// precedence on, was had within 1 to 20 µs, one shared with compilers after 30 to 75 µs. A fast
/// disk's many short waits add up to a large share too.
const WAIT_NS_MIN: f64 = 25_000.0;

/// Least mean wait, as a share of the mean latency, that can change a figure: behind a queue of
/// 5 ms the disk has the next requests already, so that waits of 20 µs change neither the rate nor,
/// by more than their own length, a latency.
const LATENCY_SHARE_MIN: f64 = 0.01;

/// Whether the workers were kept waiting for processors, by others or by each other.
pub(super) fn is_kept_waiting(m: &Row) -> bool {
    let latencies = m
        .headline_ops()
        .into_iter()
        .map(|(_, op)| op.figures.latency.mean);
    let latency_ns = latencies.filter(|ns| *ns > 0.0).fold(f64::MAX, f64::min);
    m.data.starved.share >= WORKLOAD_SHARE_MIN
        && m.data.starved.mean_wait_ns >= WAIT_NS_MIN
        && (latency_ns == f64::MAX || m.data.starved.mean_wait_ns >= LATENCY_SHARE_MIN * latency_ns)
}

/// Whether the workers waited for processors so long that it shows. Where the program itself used
/// all of them up, its threads wait for each other: `cpu-limited` says that.
pub(super) fn is_late(record: &Record, m: &Row) -> bool {
    is_kept_waiting(m) && m.data.wall_ns >= STARVED_WALL_NS_MIN && !is_cpu_limited(record, m)
}

fn check_starved(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface().filter(|s| is_starved(s));
    let late: Vec<Measured> = real(record).filter(|(_, m)| is_late(record, m)).collect();
    let cpus = record.host.cpus;
    // A lower load explains nothing.
    let load = record
        .host
        .load_average
        .as_ref()
        .filter(|load| load.parse().is_ok_and(|load: f64| load >= f64::from(cpus)));
    let load = load.map_or(String::new(), |load| {
        format!(" (load {load} on {})", counted(u64::from(cpus), "CPU"))
    });
    let (mut claims, mut proofs) = (Vec::new(), Vec::new());
    if let Some((_, worst)) = largest_by(&late, |(_, m)| m.data.starved.share) {
        claims.push(format!(
            "In {} a thread of diskproof waited for a processor for up to {} of the time. This \
             makes latencies longer, high percentiles in particular.",
            scope(record, late.iter().map(|(index, _)| *index)),
            format_percent(worst.data.starved.share)
        ));
        proofs.extend(late.iter().map(|(index, m)| {
            let share = m.data.starved.share;
            evidence(
                *index,
                "data/starved/share",
                share,
                WORKLOAD_SHARE_MIN,
                "of the time",
            )
        }));
    }
    if let Some(surface) = surface {
        claims.push(format!(
            "For {} of the survey diskproof waited for a processor. Points measured at those times \
             are ignored, and access times are longer.",
            format_percent(surface.figures.starved_share)
        ));
        let share = surface.figures.starved_share;
        proofs.push(evidence_at(
            "/results/0/figures/starved_share",
            share,
            SURVEY_SHARE_MIN,
            "of the time",
        ));
    }
    (!proofs.is_empty()).then(|| {
        Diagnosis::new(
            Severity::Warning,
            format!(
                "The machine was too busy for accurate timing{load}. {}",
                claims.join(" ")
            ),
            proofs,
        )
    })
}

pub(super) const CPU_STOLEN: Rule = Rule {
    code: "cpu-stolen",
    check: Check::Run(check_cpu_stolen),
    says: Meaning::OtherLoad {
        used: SharedResource::Processors,
    },
    #[cfg(test)]
    examples: tests::CPU_STOLEN,
};

/// Share of the CPU time from which on it shows in the high percentiles.
const STOLEN_SHARE_MIN: f64 = 0.02;
/// From this share on rates vary by it, too.
const STOLEN_SHARE_WARNING: f64 = 0.05;

/// The share, where it is so large that rates vary by it.
pub(super) fn large_share(record: &Record) -> Option<f64> {
    let stolen = record.host.stolen_share;
    stolen.filter(|share| *share >= STOLEN_SHARE_WARNING)
}

fn check_cpu_stolen(record: &Record) -> Option<Diagnosis> {
    let stolen = record.host.stolen_share;
    let share = stolen.filter(|share| *share >= STOLEN_SHARE_MIN)?;
    Some(Diagnosis::new(
        warning_if(share >= STOLEN_SHARE_WARNING),
        format!(
            "During the measurement the hypervisor gave {} of this machine's CPU time to other \
             machines. This delays requests and answers; a database on this machine loses the same \
             time.",
            format_percent(share)
        ),
        vec![evidence_at(
            "/host/stolen_share",
            share,
            STOLEN_SHARE_MIN,
            "of the CPU time",
        )],
    ))
}

pub(super) const ENGINE_LIMITED: Rule = Rule {
    code: "engine-limited",
    check: Check::Workloads(check_engine_limited),
    says: Meaning::Limit {
        limit: RateLimit::Program,
    },
    #[cfg(test)]
    examples: tests::ENGINE_LIMITED,
};

/// Above this share of the ceiling the program takes as long for an operation as the kernel and the
/// disk together.
const SHARE_MAX: f64 = 0.5;

fn check_engine_limited(record: &Record) -> Option<Diagnosis> {
    let measured = record.measurements.iter().enumerate();
    let hits: Vec<(usize, f64, f64)> = measured
        .filter_map(|(index, m)| Some((index, m.total_iops(), m.data.ceiling_iops?)))
        .filter(|(_, seen, ceiling)| *seen > SHARE_MAX * ceiling)
        .collect();
    let &(_, seen, ceiling) = largest_by(&hits, |(_, seen, ceiling)| seen / ceiling)?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "The program itself limits {}: {} operations/s are {} of the {} that its workers reach \
             without I/O.",
            scope(record, hits.iter().map(|h| h.0)),
            format_rate(seen),
            format_percent(seen / ceiling),
            format_rate(ceiling)
        ),
        hits.iter().map(|(index, seen, ceiling)| {
            evidence(
                *index,
                "data/ceiling_iops",
                *ceiling,
                seen / SHARE_MAX,
                "1/s",
            )
        }),
    ))
}

pub(super) const MISSED_SCHEDULE: Rule = Rule {
    code: "missed-schedule",
    check: Check::Workloads(check_missed_schedule),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::MISSED_SCHEDULE,
};

/// Share of late starts that a queue may have now and then.
const MISSED_MAX: f64 = 0.01;

fn missed(m: &Row) -> f64 {
    m.data.missed_starts.unwrap_or(0) as f64
}

/// Starts in the measured time that the schedule wants.
fn wanted(m: &Row) -> f64 {
    m.data.workload.rate.unwrap_or(0.0) * m.data.wall_ns as f64 / 1e9
}

/// Whether more than a few of the starts of an open loop were late or not made.
pub(super) fn is_missed(m: &Row) -> bool {
    m.data.workload.rate.is_some() && missed(m) > MISSED_MAX * wanted(m)
}

fn check_missed_schedule(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<_> = real(record).filter(|(_, m)| is_missed(m)).collect();
    // Those of the warm-up that were made late, within the measured time, are not among the wanted
    // ones.
    let share = |m: &Row| (missed(m) / wanted(m).max(1.0)).min(1.0);
    let (_, worst) = largest_by(&hits, |(_, m)| share(m))?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "The schedule was missed in {}: at {} operations per second, {} of the starts of {} \
             were over 1 ms late or missing, because all slots were busy or diskproof did not get \
             a processor in time.",
            scope(record, hits.iter().map(|h| h.0)),
            format_rate(worst.data.workload.rate.unwrap_or(0.0)),
            format_percent(share(worst)),
            workload_name(record, worst),
        ),
        hits.iter().map(|(index, m)| {
            let threshold = MISSED_MAX * wanted(m);
            evidence(*index, "data/missed_starts", missed(m), threshold, "1")
        }),
    ))
}

pub(super) const INTERRUPTED: Rule = Rule {
    code: "interrupted",
    check: Check::Run(check_interrupted),
    says: Meaning::EndedEarly,
    #[cfg(test)]
    examples: tests::INTERRUPTED,
};

/// Interruptions that are named one by one.
const INTERRUPTIONS_NAMED: usize = 3;

fn check_interrupted(record: &Record) -> Option<Diagnosis> {
    let mut seen: Vec<(String, Interruption, Evidence)> = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        for (number, one) in m.data.interruptions.iter().enumerate() {
            let path = format!("data/interruptions/{number}/length_ns");
            let evidence = evidence(index, &path, one.length_ns as f64, 0.0, "ns");
            seen.push((interruption_place(record, m, one), *one, evidence));
        }
    }
    if let Some(surface) = record.surface() {
        for (number, one) in surface.data.interruptions.iter().enumerate() {
            let since_ns = one.start_ns.saturating_sub(surface.data.start_ns);
            let path = format!("/results/0/data/interruptions/{number}/length_ns");
            let evidence = evidence_at(path, one.length_ns as f64, 0.0, "ns");
            let place = format!("{} into {SURVEY}", format_duration(since_ns));
            seen.push((place, *one, evidence));
        }
    }
    seen.first()?;
    let mut named: Vec<String> = seen
        .iter()
        .take(INTERRUPTIONS_NAMED)
        .map(|(place, one, _)| format!("{}, {place}", event(one)))
        .collect();
    if let more @ 1.. = seen.len().saturating_sub(INTERRUPTIONS_NAMED) {
        named.push(format!("{more} more"));
    }
    let requests: u64 = seen.iter().map(|(_, one, _)| one.requests).sum();
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "{}. The figures exclude that time and {} in flight.",
            named.join("; "),
            counted(requests, "request")
        ),
        seen.into_iter().map(|(_, _, evidence)| evidence),
    ))
}

fn interruption_place(record: &Record, m: &Row, one: &Interruption) -> String {
    let name = workload_name(record, m);
    match one.start_ns.checked_sub(m.data.start_ns) {
        Some(since_ns) => format!("{} into {name}", format_duration(since_ns)),
        None => format!("during the warm-up of {name}"),
    }
}

fn event(one: &Interruption) -> String {
    let stopped = match one.kind {
        InterruptionKind::Stopped => "A signal stopped diskproof",
        InterruptionKind::Frozen => "A paused container or virtual machine stopped diskproof",
        InterruptionKind::Suspended => "The machine was suspended",
    };
    format!("{stopped} for {}", format_duration(one.length_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, codes, rotating};
    use crate::fixture::{self, WALL_NS, states};
    use diskproof_model::measurement::{Measurement, Starvation};
    use diskproof_model::surface::DataSheet;

    const SECOND: u64 = 1_000_000_000;

    pub(super) const CPU_LIMITED: Examples = Examples::of(
        || reads(|m| m.cpu.system_ns = WALL_NS * 95 / 100),
        || reads(|m| (m.engine.used, m.cpu.user_ns) = (EngineKind::Null, WALL_NS)),
    );
    pub(super) const STARVED: Examples = Examples::of(
        || surveyed::faulty(|survey| survey.starved_ns = survey.wall_ns / 8),
        surveyed::record,
    );
    pub(super) const CPU_STOLEN: Examples = Examples::of(|| stolen(0.28), || stolen(0.01));
    pub(super) const ENGINE_LIMITED: Examples = Examples::of(
        || reads(|m| m.ceiling_iops = Some(12_000.0)),
        || reads(|m| m.ceiling_iops = Some(90_000_000.0)),
    );
    pub(super) const MISSED_SCHEDULE: Examples = Examples::of(
        || reads(|m| (m.workload.rate, m.missed_starts) = (Some(12_000.0), Some(10_000))),
        || reads(|m| (m.workload.rate, m.missed_starts) = (Some(1e4), Some(500))),
    );
    pub(super) const INTERRUPTED: Examples = Examples::of(
        || reads(|m| m.interruptions = vec![interruption(3 * SECOND, InterruptionKind::Stopped)]),
        fixture::record,
    );

    fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    fn stolen(share: f64) -> Record {
        fixture::changed(|run| run.0.host.stolen_share = Some(share))
    }

    fn interruption(start_ns: u64, kind: InterruptionKind) -> Interruption {
        Interruption {
            start_ns,
            length_ns: 2 * SECOND,
            kind,
            requests: 32,
        }
    }

    #[test]
    fn a_full_cpu_is_reported() {
        let finding = check_cpu_limited(&(CPU_LIMITED.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["random-read-d32", "96 %"]);
    }

    #[test]
    fn threads_per_request_need_more_to_be_full() {
        let blocking = |cpus| {
            let record =
                reads(|m| (m.engine.used, m.cpu.system_ns) = (EngineKind::Sync, WALL_NS * cpus));
            check_cpu_limited(&record)
        };
        assert_eq!(blocking(4), None);
        states(&blocking(8).unwrap().claim, &["8 CPUs"]);
    }

    #[test]
    fn waiting_for_the_next_start_is_no_limit() {
        let paced = |missed: u64| {
            check_cpu_limited(&reads(|m| {
                m.cpu.user_ns = WALL_NS;
                (m.workload.rate, m.missed_starts) = (Some(10_000.0), Some(missed));
            }))
        };
        assert_eq!(paced(10), None);
        assert!(paced(10_000).is_some());
    }

    #[test]
    fn writes_that_stay_in_memory_are_no_figure_of_the_disk() {
        let cached = |sync| {
            check_cpu_limited(&fixture::faulty("random-write-d32", |m| {
                m.cpu.system_ns = WALL_NS * 95 / 100;
                (m.cache.used, m.workload.sync) = (CachePolicy::Cached, sync);
            }))
        };
        assert_eq!(cached(SyncPolicy::None), None);
        assert!(cached(SyncPolicy::AtEnd).is_some());
    }

    #[test]
    fn together_they_may_take_all_that_there_is() {
        let mut run = fixture::together(&["sequential-read", "random-read-d1"]);
        run.0.host.cpus = 1;
        run.1[1..3]
            .iter_mut()
            .for_each(|m| m.cpu.user_ns = WALL_NS / 2);
        let claim = check_cpu_limited(&fixture::judge(run.clone()))
            .unwrap()
            .claim;
        states(&claim, &["110 %"]);
        run.1[1].cpu.user_ns = 0;
        assert_eq!(check_cpu_limited(&fixture::judge(run)), None);
    }

    #[test]
    fn waiting_for_a_processor_is_reported_with_its_share() {
        let record = (STARVED.fires)();
        let share = check_starved(&record).unwrap().evidence[0].observed;
        assert!((share - 0.125).abs() < 0.001, "{share}");
        assert_eq!(codes(&record), ["starved"]);
    }

    #[test]
    fn a_workload_that_waited_for_processors_has_its_latencies_doubted() {
        let late = |share: f64, mean_wait_ns: f64, system_share: u64| {
            check_starved(&reads(|m| {
                m.starved = Starvation {
                    share,
                    mean_wait_ns,
                };
                m.cpu.system_ns = WALL_NS * system_share / 100;
            }))
        };
        let finding = late(0.07, 60_000.0, 10).unwrap();
        states(&finding.claim, &["7 %"]);
        states(&finding.evidence[0].path, &["/starved/share"]);
        assert_eq!(late(0.01, 60_000.0, 10), None);
        // The requests take 3.2 ms: the queue hides such waits, however many they are.
        assert_eq!(late(0.2, 28_000.0, 10), None);
        // Waking up, often.
        assert_eq!(late(0.2, 8_000.0, 10), None);
        // Its own doing.
        assert_eq!(late(0.07, 60_000.0, 95), None);
    }

    #[test]
    fn effects_of_waiting_on_points_and_accesses_are_not_reported_as_the_disks() {
        let mut run = rotating(|disk| disk.accesses = 300).run(1);
        run.0.plan.questions.data_sheet = Some(DataSheet {
            rpm: Some(7200),
            seek_ns: Some(10_600_000),
            ..DataSheet::default()
        });
        for point in run.1.curve.iter_mut().step_by(7) {
            point.late_ns = point.busy_ns / 2;
            point.busy_ns += point.late_ns;
            point.bytes_per_second /= 1.5;
        }
        run.1
            .access
            .iter_mut()
            .for_each(|access| access.latency_ns += 6_000_000);
        run.1.starved_ns = run.1.wall_ns / 5;
        assert_eq!(codes(&surveyed::judge(run.clone())), ["starved"]);
        run.1.starved_ns = 0;
        run.1.curve.iter_mut().for_each(|point| point.late_ns = 0);
        assert!(codes(&surveyed::judge(run)).contains(&"access-time-off"));
    }

    #[test]
    fn share_decides_how_severe_it_is() {
        for (share, severity) in [
            (0.28, Some(Severity::Warning)),
            (0.03, Some(Severity::Note)),
            (0.019, None),
        ] {
            let found = check_cpu_stolen(&stolen(share));
            assert_eq!(found.map(|finding| finding.severity), severity, "{share}");
        }
        assert_eq!(check_cpu_stolen(&fixture::record()), None);
    }

    #[test]
    fn a_figure_near_the_ceiling_is_a_lower_bound() {
        let finding = check_engine_limited(&(ENGINE_LIMITED.fires)()).unwrap();
        states(&finding.claim, &["random-read-d32", "83 %"]);
        assert_eq!(check_engine_limited(&fixture::record()), None, "unknown");
    }

    #[test]
    fn late_starts_are_reported_and_a_closed_loop_has_none() {
        let claim = check_missed_schedule(&(MISSED_SCHEDULE.fires)())
            .unwrap()
            .claim;
        states(&claim, &["12000", "17 %", "random-read-d32"]);
        let closed = reads(|m| m.missed_starts = Some(10_000));
        assert_eq!(check_missed_schedule(&closed), None);
    }

    #[test]
    fn interrupted_names_time_and_length() {
        let finding = check_interrupted(&(INTERRUPTED.fires)()).unwrap();
        states(
            &finding.claim,
            &["2.0 s, 3.0 s into random-read-d32", "32 requests"],
        );
        assert_eq!(finding.evidence[0].observed, 2e9);
    }

    #[test]
    fn interrupted_survey_and_warm_up_are_named() {
        let record = surveyed::faulty(|survey| {
            let start_ns = survey.start_ns + SECOND;
            survey.interruptions = vec![interruption(start_ns, InterruptionKind::Suspended)];
        });
        let claim = check_interrupted(&record).unwrap().claim;
        states(&claim, &["2.0 s, 1.0 s into the survey"]);
        let record = reads(|m| {
            m.start_ns = SECOND;
            m.interruptions = vec![interruption(1, InterruptionKind::Frozen); 5];
        });
        let claim = check_interrupted(&record).unwrap().claim;
        states(&claim, &["warm-up of random-read-d32", "2 more"]);
    }
}
