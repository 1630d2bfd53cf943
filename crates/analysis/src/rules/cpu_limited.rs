//! `cpu-limited`: the program had no CPU time left to ask for more.

use super::evidence::{Measured, evidence, real, scope, together, wanted_depth, workload_name};
use super::missed_schedule;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use crate::estimate::largest_by;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, EngineKind, SyncPolicy};
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::format_percent;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "cpu-limited",
    title: "The CPU limited the rate",
    meaning: "The CPU, not the disk, was the limit. The disk can do more than the figures show.",
    taints: Some(Taint {
        from: Severity::Warning,
        why: "the CPU, not the disk, limited the rate in",
    }),
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Share of the CPU time it could have that counts as all of it; the rest is accounting by ticks.
const BUSY_SHARE: f64 = 0.9;
/// CPU time is accounted in ticks of up to 10 ms; in less than this it says little.
const WALL_NS_MIN: u64 = 100_000_000;

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured> = real(record)
        .filter(|(_, m)| is_cpu_limited(record, m))
        .collect();
    let (_, worst) = largest_by(&hits, |(_, m)| m.cpu_share())?;
    let all_busy = takes_all(record, worst);
    let beside = if all_busy && !worst.workload.together_with.is_empty() {
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
    Some(Diagnosis::new(
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
            evidence(*index, "cpu", m.cpu_share(), threshold, "CPUs")
        }),
        remedy,
    ))
}

/// Whether the program used all the CPU time that its threads could have: those of this workload,
/// or, where several ran together, all that there is. A worker that keeps a schedule spends what is
/// left of it on looking at the clock.
pub(super) fn is_cpu_limited(record: &Record, m: &MeasurementRecord) -> bool {
    let keeps_schedule = m.workload.rate.is_some() && !missed_schedule::is_missed(m);
    let is_measured = m.wall_ns >= WALL_NS_MIN && m.ops.keys().any(|kind| *kind != OpKind::Sync);
    !keeps_schedule
        && is_measured
        && !writes_to_memory(m)
        && (m.cpu_share() >= BUSY_SHARE * threads(record, m) || takes_all(record, m))
}

/// Whether only the CPU can limit it: writes that stay in the page cache. They say nothing about
/// the disk, and a warning would cast doubt on the figures of other workloads.
fn writes_to_memory(m: &MeasurementRecord) -> bool {
    let w = &m.workload;
    w.streams.is_only(OpKind::Write) && (w.cache, w.sync) == (CachePolicy::Cached, SyncPolicy::None)
}

/// Whether what ran together used all CPUs of the machine.
fn takes_all(record: &Record, m: &MeasurementRecord) -> bool {
    joint_share(record, m) >= BUSY_SHARE * f64::from(record.host.cpus)
}

/// CPU time of all that ran together, over the measured time.
fn joint_share(record: &Record, m: &MeasurementRecord) -> f64 {
    together(record, m).map(MeasurementRecord::cpu_share).sum()
}

/// Threads that can be busy at once: one per worker, or one per request where the interface blocks
/// or the kernel hands it to its own.
fn threads(record: &Record, m: &MeasurementRecord) -> f64 {
    let per_request = match m.workload.engine {
        EngineKind::Sync | EngineKind::Mmap => true,
        EngineKind::Uring => m.punted == Some(true),
        EngineKind::Aio | EngineKind::Null => false,
    };
    let threads = if per_request {
        wanted_depth(m)
    } else {
        f64::from(m.workload.workers)
    };
    threads.min(f64::from(record.host.cpus)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.cpu.system_ns = fixture::WALL_NS * 95 / 100
        })
    }

    pub(super) fn silent() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.engine.used = EngineKind::Null;
            m.cpu.user_ns = fixture::WALL_NS;
        })
    }

    #[test]
    fn a_full_cpu_is_reported() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding
                .claim
                .contains("random-read-d32 used 96 % of one CPU"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn threads_per_request_need_more_to_be_full() {
        let blocking = |cpus: u64| {
            fixture::faulty("random-read-d32", |m| {
                m.engine.used = EngineKind::Sync;
                m.cpu.system_ns = fixture::WALL_NS * cpus;
            })
        };
        assert_eq!(check(&blocking(4)), None);
        assert!(
            check(&blocking(8))
                .unwrap()
                .claim
                .contains("all the time of 8 CPUs")
        );
    }

    #[test]
    fn waiting_for_the_next_start_is_no_limit() {
        let paced = |missed: u64| {
            fixture::faulty("random-read-d32", |m| {
                m.cpu.user_ns = fixture::WALL_NS;
                (m.workload.rate, m.missed_starts) = (Some(10_000.0), Some(missed));
            })
        };
        assert_eq!(check(&paced(10)), None);
        assert!(check(&paced(10_000)).is_some());
    }

    #[test]
    fn writes_that_stay_in_memory_are_no_figure_of_the_disk() {
        let cached = |sync| {
            fixture::faulty("random-write-d32", |m| {
                m.cpu.system_ns = fixture::WALL_NS * 95 / 100;
                (m.cache.used, m.workload.sync) = (CachePolicy::Cached, sync);
            })
        };
        assert_eq!(check(&cached(SyncPolicy::None)), None);
        assert!(check(&cached(SyncPolicy::AtEnd)).is_some());
    }

    #[test]
    fn together_they_may_take_all_that_there_is() {
        let mut run = fixture::together(&["sequential-read", "random-read-d1"]);
        run.0.host.cpus = 1;
        run.1[1..3]
            .iter_mut()
            .for_each(|m| m.cpu.user_ns = fixture::WALL_NS / 2);
        let claim = check(&fixture::judge(run.clone())).unwrap().claim;
        assert!(
            claim.contains("with the workloads that ran at the same time used")
                && claim.contains("all the CPU time there is"),
            "{claim}"
        );
        run.1[1].cpu.user_ns = 0;
        assert_eq!(check(&fixture::judge(run)), None);
    }

    #[test]
    fn the_null_engine_is_meant_to_be_cpu_limited() {
        let record = fixture::faulty("random-read-d32", |m| {
            m.engine.used = EngineKind::Null;
            m.cpu.user_ns = fixture::WALL_NS;
        });
        assert_eq!(check(&record), None);
    }
}
