//! How requests reached the kernel. `engine-fallback`: the interface that would have been chosen
//! was not to be had or slower here, and another carried the I/O. `io-punted`: io_uring handed the
//! I/O of this target to kernel worker threads. `depth-not-held`: fewer requests were in flight
//! than requested.

use super::program;
use super::program::is_cpu_limited;
use super::rule::*;
use diskproof_model::measurement::{Fallback, FallbackCause};

pub(super) const ENGINE_FALLBACK: Rule = Rule {
    code: "engine-fallback",
    check: Check::Workloads(check_engine_fallback),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::ENGINE_FALLBACK,
};

fn check_engine_fallback(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured> = real(record)
        .filter(|(_, m)| !m.data.engine.fallbacks.is_empty())
        .collect();
    let used = name(hits.first()?.1.data.engine.used);
    let scope = scope(record, hits.iter().map(|h| h.0));
    let mut all: Vec<&Fallback> = hits
        .iter()
        .flat_map(|(_, m)| &m.data.engine.fallbacks)
        .collect();
    all.sort_by_key(|f| (f.from, f.cause));
    all.dedup_by_key(|f| (f.from, f.cause));
    let (claim, remedy) = match all.as_slice() {
        // Where io_uring works, but hands its requests to worker threads, `auto` tries both and
        // takes the faster one: nothing was refused.
        [f] if f.cause == FallbackCause::Slower => {
            let (from, why) = (name(f.from), &f.why);
            let claim = format!(
                "{from} is slower than {used} on this target, so the latter was used for {scope}: \
                 {why}."
            );
            let remedy = format!(
                "No action is needed, because diskproof used the faster one. Other programs that \
                 use {from} on this target are slower."
            );
            (claim, remedy)
        }
        all => {
            let reasons = all
                .iter()
                .map(|f| format!("{} {} ({})", name(f.from), what_it_did(f.cause), f.why));
            let claim = format!(
                "{}, so {used} was used for {scope}. The figures are valid but take more CPU time \
                 per operation. A very fast disk may show fewer IOPS.",
                reasons.collect::<Vec<_>>().join(" and "),
            );
            // What is merely slower here needs no remedy.
            let remedied = all.iter().find(|f| f.cause != FallbackCause::Slower);
            (claim, remedied.map_or("", |f| remedy(f)).to_owned())
        }
    };
    let evidence = hits.iter().map(|(index, m)| {
        let count = m.data.engine.fallbacks.len() as f64;
        evidence(*index, "data/engine/fallbacks", count, 0.0, "1")
    });
    Some(Diagnosis::with_remedy(
        Severity::Note,
        claim,
        evidence,
        remedy,
    ))
}

fn what_it_did(cause: FallbackCause) -> &'static str {
    match cause {
        FallbackCause::Refused => "was refused by the kernel",
        FallbackCause::Missing => "is missing in this kernel",
        FallbackCause::Exhausted => "was exhausted",
        FallbackCause::Unusable => "does not work here",
        FallbackCause::Slower => "is slower here",
    }
}

fn name(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Uring => "io_uring",
        EngineKind::Aio => "Linux AIO",
        EngineKind::Sync => "threads of pread and pwrite",
        EngineKind::Mmap => "a memory mapping",
        EngineKind::Null => "the null engine",
    }
}

fn remedy(fallback: &Fallback) -> &'static str {
    match (fallback.cause, fallback.from) {
        (FallbackCause::Refused, EngineKind::Uring) => {
            "Allow io_uring: in a container by its seccomp profile (docker run --security-opt \
             seccomp=unconfined), on the host by sysctl kernel.io_uring_disabled=0; or accept the \
             note."
        }
        (FallbackCause::Exhausted, EngineKind::Aio) => {
            "Raise sysctl fs.aio-max-nr, or accept the note."
        }
        (FallbackCause::Exhausted, _) => {
            "Raise the limits of this shell (ulimit -l for locked memory, ulimit -n for \
             descriptors), or accept the note."
        }
        (FallbackCause::Missing, _) => {
            "Use a kernel that has it, io_uring since 5.1, or accept the note."
        }
        _ => "None is needed.",
    }
}

pub(super) const IO_PUNTED: Rule = Rule {
    code: "io-punted",
    check: Check::Workloads(check_io_punted),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::IO_PUNTED,
};

fn check_io_punted(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured> = real(record)
        .filter(|(_, m)| m.data.engine.used == EngineKind::Uring && m.data.punted == Some(true))
        .collect();
    hits.first()?;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "io_uring passes this target's I/O to kernel threads in {}. This costs CPU time and \
             some latency and, on a fast disk, IOPS.",
            scope(record, hits.iter().map(|h| h.0))
        ),
        hits.iter()
            .map(|(index, _)| evidence(*index, "data/punted", 1.0, 0.0, "punted")),
    ))
}

pub(super) const DEPTH_NOT_HELD: Rule = Rule {
    code: "depth-not-held",
    check: Check::Workloads(check_depth_not_held),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::DEPTH_NOT_HELD,
};

/// Smallest share of the requested depth: starting, ending and reaping in batches cost a little of
/// it.
const HELD_MIN: f64 = 0.8;
/// Operations per slot below which filling and draining the queue are most of the run.
const ROUNDS_MIN: f64 = 20.0;

/// Smallest share of the depth that must have reached the disks' queues: the way there and back is
/// part of our latency, not of theirs.
const QUEUED_MIN: f64 = 0.5;

/// From this share of its waits on, a worker that had time to wait found its requests done: they
/// were carried out while it submitted them.
const DONE_MIN: f64 = 0.9;
/// A worker that uses more of a processor than this, or would if it got one, may find requests done
/// because it came late.
const IDLE_SHARE: f64 = 0.5;

/// Or that has waited for one for this share of what a request takes, each time on average.
const LATE_SHARE: f64 = 0.25;

fn check_depth_not_held(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<_> = real(record)
        .filter(|(_, m)| is_meant(m) && !is_cpu_limited(record, m))
        .filter_map(|(index, m)| {
            let (seen, evidence) = shallow(index, m)?;
            Some((index, m, seen, evidence))
        })
        .collect();
    let (_, worst, depth, _) = smallest_by(&hits, |(_, m, seen, _)| seen / wanted_depth(m))?;
    Some(Diagnosis::with_remedy(
        Severity::Note,
        format!(
            "Fewer requests were in flight than requested in {}: {:.1} instead of {:.0} in {}. Its \
             figures are those of the smaller depth.",
            scope(record, hits.iter().map(|h| h.0)),
            depth,
            wanted_depth(worst),
            workload_name(record, worst),
        ),
        hits.iter().map(|(.., evidence)| evidence.clone()),
        remedy_of_depth(worst),
    ))
}

fn remedy_of_depth(worst: &Row) -> String {
    if worst.data.engine.depth.is_some() {
        return "Compare these figures only with those of the same depth (--depth). The disk \
                answered its first requests so slowly that a full queue would outlast the run."
            .to_owned();
    }
    let (other, why) = match worst.data.engine.used {
        EngineKind::Aio => (
            "uring",
            ", and Linux AIO through the page cache always does",
        ),
        _ => ("aio", ""),
    };
    format!(
        "Try another I/O engine (--engine {other} or --engine sync): some filesystems complete or \
         queue requests during submission{why}."
    )
}

/// Only closed loops without syncs mean to keep every slot busy all the time.
fn is_meant(m: &Row) -> bool {
    let done = m
        .headline_ops()
        .iter()
        .map(|(_, op)| op.data.count)
        .sum::<u64>() as f64;
    let meant = m.data.workload.depth > 1
        && m.data.workload.rate.is_none()
        && m.data.workload.sync == SyncPolicy::None;
    meant && (m.data.engine.depth.is_some() || done >= ROUNDS_MIN * wanted_depth(m))
}

/// The depth by our own latencies (Little's law), or by the disks' queues. The latter tells what
/// the former cannot: requests that were done one by one while they were submitted. Only for random
/// direct I/O that the disks did in full: neighbours are merged, caches and mirrors change the
/// number.
fn shallow(index: usize, m: &Row) -> Option<(f64, Evidence)> {
    let (held, queued) = (HELD_MIN * wanted_depth(m), QUEUED_MIN * wanted_depth(m));
    if let Some(depth) = m.data.engine.depth {
        let evidence = evidence(index, "data/engine/depth", f64::from(depth), held, "1");
        return Some((f64::from(depth * m.data.workload.workers), evidence));
    }
    // A thread without a processor sends no request, and the disks' queues run empty: `starved`
    // reports that. A gap longer than the wait for processors has another cause.
    let kept_waiting = program::is_kept_waiting(m);
    let with_processors = |depth: f64| {
        if kept_waiting {
            depth / (1.0 - m.data.starved.share).max(f64::MIN_POSITIVE)
        } else {
            depth
        }
    };
    let achieved = m.data.achieved_depth;
    if with_processors(achieved) < held {
        let evidence = evidence(index, "data/achieved_depth", achieved, held, "1");
        return Some((achieved, evidence));
    }
    let workers = f64::from(m.data.workload.workers);
    let latencies = m
        .headline_ops()
        .into_iter()
        .map(|(_, op)| op.figures.latency.mean);
    let latency_ns = latencies.fold(f64::INFINITY, f64::min);
    let came_late = kept_waiting && m.data.starved.mean_wait_ns >= LATE_SHARE * latency_ns;
    let is_idle =
        !came_late && m.cpu_share() + m.data.starved.share * workers < IDLE_SHARE * workers;
    let done = m.data.engine.done_before_wait;
    if let Some(share) = done.filter(|share| *share >= DONE_MIN && is_idle) {
        // One at a time for each.
        let evidence = evidence(
            index,
            "data/engine/done_before_wait",
            share,
            DONE_MIN,
            "share",
        );
        return Some((workers, evidence));
    }
    let random = matches!(
        m.data.workload.access,
        Access::Random { .. } | Access::Zoned { .. }
    );
    let accounted = m.data.device.accounted;
    let in_full = accounted.is_some_and(|share| (0.9..1.1).contains(&share));
    // The disks' queues hold what others that ran together had in flight, too.
    let is_alone = m.figures.together_with.is_empty();
    let seen =
        m.data.device.queue_depth.filter(|_| {
            is_alone && random && in_full && m.data.cache.used == CachePolicy::Direct
        })?;
    let evidence = evidence(index, "data/device/queue_depth", seen, queued, "1");
    (with_processors(seen) < queued).then_some((seen, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use FallbackCause::{Exhausted, Missing, Refused, Slower};
    use diskproof_model::measurement::{Measurement, Starvation};

    pub(super) const ENGINE_FALLBACK: Examples = Examples::of(
        || fallen(EngineKind::Aio, &[(EngineKind::Uring, Refused)]),
        || fixture::all_faulty(|m| m.engine.used = EngineKind::Aio),
    )
    .with(&[
        || fallen(EngineKind::Aio, &[(EngineKind::Uring, Slower)]),
        || {
            fallen(
                EngineKind::Sync,
                &[(EngineKind::Uring, Missing), (EngineKind::Aio, Exhausted)],
            )
        },
    ]);
    pub(super) const IO_PUNTED: Examples = Examples::of(
        || fixture::all_faulty(|m| m.punted = Some(true)),
        || fixture::all_faulty(|m| m.punted = None),
    );
    pub(super) const DEPTH_NOT_HELD: Examples = Examples::of(
        || reads(|m| m.achieved_depth = 11.0),
        || reads(|m| (m.achieved_depth, m.workload.rate) = (11.0, Some(100.0))),
    );

    fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    /// Reads by this engine after others failed.
    fn fallen(used: EngineKind, fallbacks: &[(EngineKind, FallbackCause)]) -> Record {
        let fallback = |&(from, cause): &(EngineKind, FallbackCause)| Fallback {
            from,
            cause,
            why: "EPERM".to_owned(),
        };
        reads(|m| {
            m.engine.used = used;
            m.engine.fallbacks = fallbacks.iter().map(fallback).collect();
        })
    }

    /// Each cause has its words, which the snapshot of all findings holds, and its remedy.
    #[test]
    fn engines_are_named_with_the_reason_and_what_helps() {
        use EngineKind::{Aio, Sync, Uring};
        for (used, fallbacks, claimed, helps) in [
            (
                Aio,
                &[(Uring, Refused)][..],
                "(EPERM), so Linux AIO",
                "seccomp",
            ),
            (Aio, &[(Uring, Slower)], "Linux AIO", ""),
            (
                Sync,
                &[(Uring, Missing), (Aio, Exhausted)],
                "threads of pread",
                "5.1",
            ),
            (Sync, &[(Aio, Exhausted)], "Linux AIO", "fs.aio-max-nr"),
            (Sync, &[(Uring, Refused)], "io_uring", "seccomp"),
            (
                Sync,
                &[(Uring, Slower), (Aio, Exhausted)],
                "Linux AIO",
                "fs.aio-max-nr",
            ),
        ] {
            let finding = check_engine_fallback(&fallen(used, fallbacks)).unwrap();
            assert_eq!(finding.severity, Severity::Note);
            states(&finding.claim, &["random-read-d32", "EPERM", claimed]);
            states(&finding.remedy, &[helps]);
            let refused = fallbacks.iter().any(|(_, cause)| *cause == Refused);
            assert_eq!(finding.remedy.contains("seccomp"), refused, "{fallbacks:?}");
        }
    }

    #[test]
    fn only_what_io_uring_carried_is_reported() {
        let finding = super::IO_PUNTED.find(&(IO_PUNTED.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 6)
        );
        assert!(
            !finding.claim.contains("random-read-d1,"),
            "{}",
            finding.claim
        );
        states(&finding.remedy, &["--engine aio"]);
        assert_eq!(check_io_punted(&fixture::record()), None);
    }

    #[test]
    fn a_shallow_queue_is_reported() {
        let finding = check_depth_not_held(&(DEPTH_NOT_HELD.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["11.0", "32", "random-read-d32"]);
    }

    #[test]
    fn depth_that_slow_disk_could_not_answer_is_reported_with_few_operations() {
        let slow = reads(|m| {
            (m.engine.depth, m.achieved_depth) = (Some(1), 1.0);
            m.ops.values_mut().for_each(|op| op.count = 3);
        });
        let finding = check_depth_not_held(&slow).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/data/engine/depth"
        );
        assert!(!finding.remedy.contains("--engine"), "{}", finding.remedy);
    }

    #[test]
    fn requests_done_one_by_one_in_the_submission_are_reported_by_the_disks_queue() {
        let with = |name, depth| {
            let record = fixture::faulty(name, |m| m.device.queue_depth = Some(depth));
            check_depth_not_held(&record)
        };
        let finding = with("random-read-d32", 1.1).unwrap();
        states(&finding.claim, &["1.1", "32"]);
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/data/device/queue_depth"
        );
        assert_eq!(with("sequential-read", 1.1), None, "merged");
        assert_eq!(with("random-read-d32", 24.0), None, "held");
    }

    #[test]
    fn requests_that_were_done_before_anybody_waited_for_them_went_one_by_one() {
        let aio = |done: f64, cpu_share: f64, starved: f64| {
            check_depth_not_held(&reads(|m| {
                (m.engine.used, m.engine.done_before_wait) = (EngineKind::Aio, Some(done));
                m.starved.share = starved;
                m.cpu.user_ns = (m.wall_ns as f64 * cpu_share) as u64;
            }))
        };
        let finding = aio(0.99, 0.05, 0.0).unwrap();
        states(&finding.claim, &["1.0", "32"]);
        states(&finding.remedy, &["--engine uring"]);
        assert_eq!((aio(0.3, 0.05, 0.0), aio(0.99, 0.8, 0.0)), (None, None));
        assert_eq!(
            aio(0.99, 0.05, 0.6),
            None,
            "it waited for a processor, not for the disk"
        );
    }

    #[test]
    fn a_machine_without_a_free_processor_is_no_matter_of_the_interface() {
        let starved = |share: f64, mean_wait_ns: f64, change: fn(&mut Measurement)| {
            let found = check_depth_not_held(&reads(|m| {
                change(m);
                m.starved = Starvation {
                    share,
                    mean_wait_ns,
                };
            }));
            found.is_some()
        };
        let change: [fn(&mut Measurement); 3] = [
            |m| m.achieved_depth = 20.0,
            |m| m.device.queue_depth = Some(11.0),
            |m| (m.engine.used, m.engine.done_before_wait) = (EngineKind::Aio, Some(0.99)),
        ];
        for change in change {
            // Of 3.2 ms that a request takes.
            assert!(!starved(0.4, 900_000.0, change));
            // Waking up, often.
            assert!(starved(0.4, 8_000.0, change) && starved(0.001, 60_000.0, change));
        }
        // Waits too short to find requests done for.
        assert!(starved(0.4, 60_000.0, change[2]));
        // Far more is missing than the time that was waited.
        assert!(starved(0.1, 60_000.0, |m| m.achieved_depth = 11.0));
        assert!(starved(0.4, 60_000.0, |m| m.device.queue_depth = Some(1.1)));
    }

    #[test]
    fn silent_where_the_depth_is_not_meant_or_explained() {
        let spared: [fn(&mut Measurement); 3] = [
            |m| m.workload.sync = SyncPolicy::AtEnd,
            |m| m.cpu.user_ns = m.wall_ns,
            |m| m.ops.values_mut().for_each(|op| op.count = 100),
        ];
        for (row, spare) in spared.into_iter().enumerate() {
            let record = reads(|m| {
                m.achieved_depth = 11.0;
                spare(m);
            });
            assert_eq!(check_depth_not_held(&record), None, "{row}");
        }
    }
}
