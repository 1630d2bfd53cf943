//! `cpu-limited`: the program had no CPU time left to ask for more.

use super::missed_schedule;
use super::{Measured, Rule, evidence, percent, real, scope, wanted_depth};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::record::{MeasurementRecord, Record};

pub(super) const RULE: Rule =
    Rule { code: "cpu-limited", meaning: "The CPU was the limit, not the disk: it could do more than the figures say.", check };

/// Share of the CPU time it could have that counts as all of it; the rest is accounting by ticks.
const BUSY_SHARE: f64 = 0.9;
/// CPU time is accounted in ticks of up to 10 ms; in less than this it says little.
const WALL_NS_MIN: u64 = 100_000_000;

fn check(record: &Record) -> Option<Finding> {
    let hits: Vec<Measured> = real(record).filter(|(_, m)| is_cpu_limited(record, m)).collect();
    let (_, worst) = hits.iter().max_by(|a, b| a.1.cpu_share().total_cmp(&b.1.cpu_share()))?;
    let all_busy = worst.cpu_share() >= BUSY_SHARE * f64::from(record.host.cpus);
    let remedy = if all_busy {
        "This machine has no CPU time left for the disk; measure from one with more or faster CPUs, and stop other work meanwhile."
    } else {
        "Ask from more threads (diskproof run --jobs), and read these figures as what one thread can do."
    };
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Warning,
        claim: format!(
            "The CPU was the limit in {}: {} used {} of one CPU, {}. The disk may be faster than the figures say.",
            scope(record, hits.iter().map(|h| h.0)),
            worst.workload.name,
            percent(worst.cpu_share()),
            if all_busy {
                match record.host.cpus {
                    1 => "which is all that there is".to_owned(),
                    n => format!("which is all that {n} CPUs have"),
                }
            } else {
                "which is all that its threads can".to_owned()
            },
        ),
        evidence: hits.iter().map(|(index, m)| evidence(*index, "cpu", m.cpu_share(), BUSY_SHARE * threads(record, m), "CPUs")).collect(),
        remedy: remedy.to_owned(),
        reproduce: None,
    })
}

/// Whether the program used all the CPU time that its threads could have. A worker that keeps a schedule spends what is left of it on looking at the clock.
pub(super) fn is_cpu_limited(record: &Record, m: &MeasurementRecord) -> bool {
    let keeps_schedule = m.workload.rate.is_some() && !missed_schedule::is_missed(m);
    !keeps_schedule
        && m.wall_ns >= WALL_NS_MIN
        && m.ops.keys().any(|kind| *kind != OpKind::Sync)
        && m.cpu_share() >= BUSY_SHARE * threads(record, m)
}

/// Threads that can be busy at once: one per worker, or one per request where the interface blocks or the kernel hands it to its own.
fn threads(record: &Record, m: &MeasurementRecord) -> f64 {
    let per_request = matches!(m.workload.engine, EngineKind::Sync | EngineKind::Mmap) || m.punted == Some(true);
    let threads = if per_request { wanted_depth(m) } else { f64::from(m.workload.workers) };
    threads.min(f64::from(record.host.cpus)).max(1.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;

    pub(in crate::rules) fn spoilt() -> Record {
        healthy::spoilt("random-read-d32", |m| m.cpu.system_ns = healthy::WALL_NS * 95 / 100)
    }

    #[test]
    fn a_full_cpu_is_told() {
        let finding = check(&spoilt()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.claim.contains("random-read-d32 used 96 % of one CPU"), "{}", finding.claim);
    }

    #[test]
    fn threads_per_request_need_more_to_be_full() {
        let blocking = |cpus: u64| {
            healthy::spoilt("random-read-d32", |m| {
                m.engine.used = EngineKind::Sync;
                m.cpu.system_ns = healthy::WALL_NS * cpus;
            })
        };
        assert_eq!(check(&blocking(4)), None);
        assert!(check(&blocking(8)).unwrap().claim.contains("all that 8 CPUs have"));
    }

    #[test]
    fn waiting_for_the_next_start_is_no_limit() {
        let paced = |missed: u64| {
            healthy::spoilt("random-read-d32", |m| {
                m.cpu.user_ns = healthy::WALL_NS;
                (m.workload.rate, m.missed_starts) = (Some(10_000.0), Some(missed));
            })
        };
        assert_eq!(check(&paced(10)), None);
        assert!(check(&paced(10_000)).is_some());
    }

    #[test]
    fn the_null_engine_is_meant_to_be_cpu_limited() {
        let record = healthy::spoilt("random-read-d32", |m| {
            m.engine.used = EngineKind::Null;
            m.cpu.user_ns = healthy::WALL_NS;
        });
        assert_eq!(check(&record), None);
    }
}
