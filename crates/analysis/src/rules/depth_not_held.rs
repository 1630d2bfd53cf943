//! `depth-not-held`: fewer requests were in flight than requested.

use super::cpu_limited::is_cpu_limited;
use super::evidence::{evidence, real, scope, wanted_depth, workload_name};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use super::starved;
use crate::estimate::smallest_by;
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::plan::{Access, CachePolicy, EngineKind, SyncPolicy};
use diskproof_model::record::{MeasurementRecord, Record};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "depth-not-held",
    title: "The queue depth was not reached",
    meaning: "Fewer requests were in flight than the queue depth allows, so the figure is that of \
              a smaller depth.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

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

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<_> = real(record)
        .filter(|(_, m)| is_meant(m) && !is_cpu_limited(record, m))
        .filter_map(|(index, m)| {
            let (seen, evidence) = shallow(index, m)?;
            Some((index, m, seen, evidence))
        })
        .collect();
    let (_, worst, depth, _) = smallest_by(&hits, |(_, m, seen, _)| seen / wanted_depth(m))?;
    Some(Diagnosis::new(
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
        remedy(worst),
    ))
}

fn remedy(worst: &MeasurementRecord) -> String {
    if worst.engine.depth.is_some() {
        return "Compare these figures only with those of the same depth (--depth). The disk \
                answered its first requests so slowly that a full queue would outlast the run."
            .to_owned();
    }
    let (other, why) = match worst.workload.engine {
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
fn is_meant(m: &MeasurementRecord) -> bool {
    let done = m.headline_ops().iter().map(|(_, op)| op.count).sum::<u64>() as f64;
    let meant =
        m.workload.depth > 1 && m.workload.rate.is_none() && m.workload.sync == SyncPolicy::None;
    meant && (m.engine.depth.is_some() || done >= ROUNDS_MIN * wanted_depth(m))
}

/// The depth by our own latencies (Little's law), or by the disks' queues. The latter tells what
/// the former cannot: requests that were done one by one while they were submitted. Only for random
/// direct I/O that the disks did in full: neighbours are merged, caches and mirrors change the
/// number.
fn shallow(index: usize, m: &MeasurementRecord) -> Option<(f64, Evidence)> {
    let (held, queued) = (HELD_MIN * wanted_depth(m), QUEUED_MIN * wanted_depth(m));
    if let Some(depth) = m.engine.depth {
        let evidence = evidence(index, "engine/depth", f64::from(depth), held, "1");
        return Some((f64::from(depth * m.workload.workers), evidence));
    }
    // A thread without a processor sends no request, and the disks' queues run empty: `starved`
    // reports that. A gap longer than the wait for processors has another cause.
    let kept_waiting = starved::is_kept_waiting(m);
    let with_processors = |depth: f64| {
        if kept_waiting {
            depth / (1.0 - m.starved.share).max(f64::MIN_POSITIVE)
        } else {
            depth
        }
    };
    let achieved = m.achieved_depth;
    if with_processors(achieved) < held {
        let evidence = evidence(index, "achieved_depth", achieved, held, "1");
        return Some((achieved, evidence));
    }
    let workers = f64::from(m.workload.workers);
    let latencies = m.headline_ops().into_iter().map(|(_, op)| op.latency.mean);
    let latency_ns = latencies.fold(f64::INFINITY, f64::min);
    let came_late = kept_waiting && m.starved.mean_wait_ns >= LATE_SHARE * latency_ns;
    let is_idle = !came_late && m.cpu_share() + m.starved.share * workers < IDLE_SHARE * workers;
    let done = m.engine.done_before_wait;
    if let Some(share) = done.filter(|share| *share >= DONE_MIN && is_idle) {
        // One at a time for each.
        let evidence = evidence(index, "engine/done_before_wait", share, DONE_MIN, "share");
        return Some((workers, evidence));
    }
    let random = matches!(
        m.workload.access,
        Access::Random { .. } | Access::Zoned { .. }
    );
    let accounted = m.device.accounted;
    let in_full = accounted.is_some_and(|share| (0.9..1.1).contains(&share));
    // The disks' queues hold what others that ran together had in flight, too.
    let is_alone = m.workload.together_with.is_empty();
    let seen = m
        .device
        .queue_depth
        .filter(|_| is_alone && random && in_full && m.workload.cache == CachePolicy::Direct)?;
    let evidence = evidence(index, "device/queue_depth", seen, queued, "1");
    (with_processors(seen) < queued).then_some((seen, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::Measurement;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| m.achieved_depth = 11.0)
    }

    pub(super) fn silent() -> Record {
        fixture::faulty("random-read-d32", |m| {
            (m.achieved_depth, m.workload.rate) = (11.0, Some(100.0))
        })
    }

    #[test]
    fn a_shallow_queue_is_reported() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(
            finding
                .claim
                .contains("11.0 instead of 32 in random-read-d32"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn depth_that_slow_disk_could_not_answer_is_reported_with_few_operations() {
        let slow = fixture::faulty("random-read-d32", |m| {
            (m.engine.depth, m.achieved_depth) = (Some(1), 1.0);
            m.ops.values_mut().for_each(|op| op.count = 3);
        });
        let finding = check(&slow).unwrap();
        assert_eq!(finding.evidence[0].path, "/measurements/3/engine/depth");
        assert!(!finding.remedy.contains("--engine"), "{}", finding.remedy);
    }

    #[test]
    fn requests_done_one_by_one_in_the_submission_are_reported_by_the_disks_queue() {
        let serial = fixture::faulty("random-read-d32", |m| m.device.queue_depth = Some(1.1));
        let finding = check(&serial).unwrap();
        assert!(
            finding.claim.contains("1.1 instead of 32"),
            "{}",
            finding.claim
        );
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/device/queue_depth"
        );
        let merged = fixture::faulty("sequential-read", |m| m.device.queue_depth = Some(1.1));
        let held = fixture::faulty("random-read-d32", |m| m.device.queue_depth = Some(24.0));
        assert_eq!((check(&merged), check(&held)), (None, None));
    }

    #[test]
    fn requests_that_were_done_before_anybody_waited_for_them_went_one_by_one() {
        let aio = |share: f64, cpu_share: f64| {
            fixture::faulty("random-read-d32", |m| {
                (m.engine.used, m.engine.done_before_wait) = (EngineKind::Aio, Some(share));
                m.cpu.user_ns = (m.wall_ns as f64 * cpu_share) as u64;
            })
        };
        let finding = check(&aio(0.99, 0.05)).unwrap();
        assert!(
            finding.claim.contains("1.0 instead of 32"),
            "{}",
            finding.claim
        );
        assert!(
            finding.remedy.contains("--engine uring"),
            "{}",
            finding.remedy
        );
        assert_eq!(
            (check(&aio(0.3, 0.05)), check(&aio(0.99, 0.8))),
            (None, None)
        );
        let late = fixture::faulty("random-read-d32", |m| {
            (m.engine.used, m.engine.done_before_wait, m.starved.share) =
                (EngineKind::Aio, Some(0.99), 0.6);
            m.cpu.user_ns = m.wall_ns / 20;
        });
        assert_eq!(
            check(&late),
            None,
            "it waited for a processor, not for the disk"
        );
    }

    #[test]
    fn a_machine_without_a_free_processor_is_no_matter_of_the_interface() {
        use diskproof_model::measurement::Starvation;
        let starved = |share: f64, mean_wait_ns: f64, change: fn(&mut Measurement)| {
            check(&fixture::faulty("random-read-d32", |m| {
                change(m);
                m.starved = Starvation {
                    share,
                    mean_wait_ns,
                };
            }))
        };
        let change: [fn(&mut Measurement); 3] = [
            |m| m.achieved_depth = 20.0,
            |m| m.device.queue_depth = Some(11.0),
            |m| (m.engine.used, m.engine.done_before_wait) = (EngineKind::Aio, Some(0.99)),
        ];
        for change in change {
            // Of 3.2 ms that a request takes.
            assert_eq!(starved(0.4, 900_000.0, change), None);
            // Waking up, often.
            let (often, rarely) = (
                starved(0.4, 8_000.0, change),
                starved(0.001, 60_000.0, change),
            );
            assert!(often.is_some() && rarely.is_some());
        }
        // Waits too short to find requests done for.
        assert!(starved(0.4, 60_000.0, change[2]).is_some());
        // Far more is missing than the time that was waited.
        assert!(
            starved(0.1, 60_000.0, |m| m.achieved_depth = 11.0).is_some()
                && starved(0.4, 60_000.0, |m| m.device.queue_depth = Some(1.1)).is_some()
        );
    }

    #[test]
    fn silent_where_the_depth_is_not_meant_or_explained() {
        let spared: [fn(&mut Measurement); 4] = [
            |m| m.workload.rate = Some(100.0),
            |m| m.workload.sync = SyncPolicy::AtEnd,
            |m| m.cpu.user_ns = m.wall_ns,
            |m| m.ops.values_mut().for_each(|op| op.count = 100),
        ];
        for spare in spared {
            let record = fixture::faulty("random-read-d32", |m| {
                m.achieved_depth = 11.0;
                spare(m);
            });
            assert_eq!(check(&record), None);
        }
    }
}
