//! `cpu-limited`: the program had no CPU time left to ask the disk for more.

use super::missed_schedule::is_missed;
use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "cpu-limited",
    title: "The CPU limited the rate",
    summary: "The CPU, not the disk, was the limit. The disk can do more than the figures show.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Limit {
        limit: RateLimit::Cpu,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Share of the CPU time that its threads could have which counts as all of it; the rest is
/// accounting by ticks.
const BUSY_SHARE: f64 = 0.9;

/// CPU time is accounted in ticks of up to 10 ms; in less than this it says little.
const WALL_NS_MIN: u64 = 100_000_000;

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured<'_>> = real_rows(record)
        .filter(|measured| is_cpu_limited(record, measured.row))
        .collect();
    let worst = largest_by(&hits, |hit| hit.row.cpu_share())?.row;
    let used = if takes_all(record, worst) {
        all_cpus_used(record, worst)
    } else {
        UsedTime {
            share: worst.cpu_share(),
            companions: "",
            extent: "which is all that its threads can use".to_owned(),
            remedy: "Use more threads (diskproof run --jobs). These figures show what one thread \
                     can do.",
        }
    };
    let claim = format!(
        "The CPU was the limit in {}: {}{} used {} of one CPU, {}. The disk may be faster than the \
         figures show.",
        workload_names(record, indices(&hits)),
        workload_name(record, worst),
        used.companions,
        format_percent(used.share),
        used.extent
    );
    let observations = hits.iter().map(|hit| {
        let threshold = BUSY_SHARE * threads(record, hit.row);
        hit.evidence("data/cpu", hit.row.cpu_share(), threshold, "CPUs")
    });
    Some(Diagnosis::new(Severity::Warning, claim, observations).with_remedy(used.remedy))
}

/// CPU time that was used, in the words of the claim and its remedy.
struct UsedTime {
    /// In CPUs: 1.5 is one and a half of them all the time.
    share: f64,
    /// Follows the name of the workload, with the space before it; empty where it ran alone.
    companions: &'static str,
    extent: String,
    remedy: &'static str,
}

/// All CPUs of the machine, by all that ran together.
fn all_cpus_used(record: &Record, worst: &Row) -> UsedTime {
    UsedTime {
        share: joint_share(record, worst),
        companions: if worst.figures.together_with.is_empty() {
            ""
        } else {
            " with the workloads that ran at the same time"
        },
        extent: match record.host.cpus {
            1 => "which is all the CPU time there is".to_owned(),
            n => format!("which is all the time of {n} CPUs"),
        },
        remedy: "Use a machine with more or faster CPUs, and stop other work during the \
                 measurement. This machine has no CPU time left for the disk.",
    }
}

/// True if the program used all the CPU time that its threads could have: those of this workload,
/// or, where several ran together, all that there is.
pub(super) fn is_cpu_limited(record: &Record, row: &Row) -> bool {
    // A worker that keeps a schedule spends what is left of it on looking at the clock.
    let keeps_schedule = row.data.workload.rate.is_some() && !is_missed(row);
    let is_measured =
        row.data.wall_ns >= WALL_NS_MIN && row.data.ops.keys().any(|kind| *kind != OpKind::Sync);
    let uses_all_threads = row.cpu_share() >= BUSY_SHARE * threads(record, row);
    !keeps_schedule
        && is_measured
        && !writes_to_memory(row)
        && (uses_all_threads || takes_all(record, row))
}

/// True if only the CPU can limit a workload, because its writes stay in the page cache. They say
/// nothing about the disk, and a warning would cast doubt on the figures of other workloads.
fn writes_to_memory(row: &Row) -> bool {
    row.data.workload.streams.is_only(OpKind::Write)
        && row.data.cache.used == CachePolicy::Cached
        && row.data.workload.sync == SyncPolicy::None
}

/// True if what ran together used all CPUs of the machine.
fn takes_all(record: &Record, row: &Row) -> bool {
    joint_share(record, row) >= BUSY_SHARE * f64::from(record.host.cpus)
}

/// CPU time of all that ran together, over the measured time.
fn joint_share(record: &Record, row: &Row) -> f64 {
    let rows = concurrent_rows(record, row);
    rows.into_iter().map(Row::cpu_share).sum()
}

/// Threads that can be busy at once: one per worker, or one per request where the interface blocks
/// or the kernel hands it to its own.
fn threads(record: &Record, row: &Row) -> f64 {
    let is_one_per_request = match row.data.engine.used {
        EngineKind::Sync | EngineKind::Mmap => true,
        EngineKind::Uring => row.data.punted == Some(true),
        EngineKind::Aio | EngineKind::Null => false,
    };
    let threads = if is_one_per_request {
        wanted_depth(row)
    } else {
        f64::from(row.data.workload.workers)
    };
    threads.min(f64::from(record.host.cpus)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, WALL_NS, states};
    use diskproof_model::measurement::Measurement;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || reads(|measurement| measurement.cpu.system_ns = WALL_NS * 95 / 100),
        || {
            reads(|measurement| {
                (measurement.engine.used, measurement.cpu.user_ns) = (EngineKind::Null, WALL_NS)
            })
        },
    );

    fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    #[test]
    fn a_full_cpu_is_reported() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["random-read-d32", "96 %"]);
    }

    fn blocking_reads(cpus: u64) -> Option<Diagnosis> {
        let record = reads(|measurement| {
            (measurement.engine.used, measurement.cpu.system_ns) =
                (EngineKind::Sync, WALL_NS * cpus)
        });
        check(&record)
    }

    #[test]
    fn threads_per_request_need_more_to_be_full() {
        assert_eq!(blocking_reads(4), None);
        states(&blocking_reads(8).unwrap().claim, &["8 CPUs"]);
    }

    fn paced_reads(missed: u64) -> Option<Diagnosis> {
        check(&reads(|measurement| {
            measurement.cpu.user_ns = WALL_NS;
            (measurement.workload.rate, measurement.missed_starts) = (Some(10_000.0), Some(missed));
        }))
    }

    #[test]
    fn waiting_for_the_next_start_is_no_limit() {
        assert_eq!(paced_reads(10), None);
        assert!(paced_reads(10_000).is_some());
    }

    fn cached_writes(sync: SyncPolicy) -> Option<Diagnosis> {
        check(&fixture::faulty("random-write-d32", |measurement| {
            measurement.cpu.system_ns = WALL_NS * 95 / 100;
            (measurement.cache.used, measurement.workload.sync) = (CachePolicy::Cached, sync);
        }))
    }

    #[test]
    fn writes_that_stay_in_memory_are_no_figure_of_the_disk() {
        assert_eq!(cached_writes(SyncPolicy::None), None);
        assert!(cached_writes(SyncPolicy::AtEnd).is_some());
    }

    #[test]
    fn together_they_may_take_all_that_there_is() {
        let mut run = fixture::together(&["sequential-read", "random-read-d1"]);
        run.facts.host.cpus = 1;
        run.measurements[1..3]
            .iter_mut()
            .for_each(|measurement| measurement.cpu.user_ns = WALL_NS / 2);
        let claim = check(&fixture::judge(run.clone())).unwrap().claim;
        states(&claim, &["110 %"]);
        run.measurements[1].cpu.user_ns = 0;
        assert_eq!(check(&fixture::judge(run)), None);
    }
}
