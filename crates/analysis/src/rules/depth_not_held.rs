//! `depth-not-held`: fewer requests were in flight than the queue depth of the workload, so its
//! figure is that of a smaller depth. The depth is judged by latencies, by when requests were done,
//! and by the disks' own queues.

use super::cpu_limited::is_cpu_limited;
use super::rule::*;
use super::starved::waits_for_processor;
use diskproof_model::measurement::DEPTH_HELD_MIN;

pub(super) const RULE: Rule = Rule {
    code: "depth-not-held",
    title: "The queue depth was not reached",
    summary: "Fewer requests were in flight than the queue depth allows, so the figure is that of \
              a smaller depth.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Operations per slot below which filling and draining the queue are a large part of the run: at
/// 20, a tenth. Chosen, not measured.
const ROUNDS_MIN: f64 = 20.0;

/// Smallest share of the depth that must have reached the disks' queues: the way there and back is
/// part of our latency, not of theirs. Chosen, not measured.
const QUEUED_SHARE_MIN: f64 = 0.5;

/// From this share of its waits on, a worker that had time to wait found its requests done: they
/// were carried out while it submitted them. Chosen, not measured.
const DONE_SHARE_MIN: f64 = 0.9;

/// A worker that uses more of a processor than this, or would if it got one, may find requests done
/// because it came late. Chosen, not measured.
const PROCESSOR_SHARE_MAX: f64 = 0.5;

/// The same holds for a worker whose mean wait for a processor is this share of the mean latency.
/// Chosen, not measured.
const LATE_SHARE: f64 = 0.25;

/// A workload with fewer requests in flight than requested.
struct ShallowQueue<'a> {
    measured: Measured<'a>,
    /// Requests in flight.
    depth: f64,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<ShallowQueue<'_>> = Vec::new();
    for measured in real_rows(record) {
        if fills_every_slot(measured.row) && !is_cpu_limited(record, measured.row) {
            hits.extend(shallow_queue(measured));
        }
    }
    let worst = smallest_by(&hits, |hit| hit.depth / wanted_depth(hit.measured.row))?;
    let row = worst.measured.row;
    let claim = format!(
        "Fewer requests were in flight than requested in {}: {:.1} instead of {:.0} in {}. Its \
         figures are those of the smaller depth.",
        workload_names(record, hits.iter().map(|hit| hit.measured.index)),
        worst.depth,
        wanted_depth(row),
        workload_name(record, row),
    );
    let observations = hits.iter().map(|hit| hit.evidence.clone());
    Some(Diagnosis::new(Severity::Note, claim, observations).with_remedy(remedy(row)))
}

fn remedy(worst: &Row) -> String {
    if worst.data.limited_depth().is_some() {
        return "Compare these figures only with those of the same depth (--depth). The disk \
                answered its first requests so slowly that a full queue would outlast the run."
            .to_owned();
    }
    let (other, why) = match worst.data.engine.used {
        EngineKind::Aio => (
            "uring",
            ", and Linux AIO through the page cache always does",
        ),
        EngineKind::Uring | EngineKind::Sync | EngineKind::Mmap | EngineKind::Null => ("aio", ""),
    };
    format!(
        "Try another I/O engine (--engine {other} or --engine sync): some filesystems complete or \
         queue requests during submission{why}."
    )
}

/// True if the workload has to keep every slot busy all the time, as only closed loops without
/// syncs do, and made enough operations to judge that.
fn fills_every_slot(row: &Row) -> bool {
    let workload = &row.data.workload;
    if workload.depth <= 1 || workload.is_paced() || workload.sync != SyncPolicy::None {
        return false;
    }
    let done: u64 = row.headline_ops().iter().map(|(_, op)| op.data.count).sum();
    row.data.limited_depth().is_some() || done as f64 >= ROUNDS_MIN * wanted_depth(row)
}

/// The depth by our own latencies (Little's law), or by the disks' queues. The latter tells what
/// the former cannot: requests that were done one by one while they were submitted.
fn shallow_queue(measured: Measured<'_>) -> Option<ShallowQueue<'_>> {
    let row = measured.row;
    let workers = f64::from(row.data.workload.workers);
    if let Some(depth) = row.data.limited_depth()
        && row.data.engine.depth == Some(depth)
    {
        return Some(ShallowQueue {
            measured,
            depth: f64::from(depth * row.data.workload.workers),
            // Of one worker, like the depth of the workload.
            evidence: measured.evidence(
                "data/engine/depth",
                f64::from(depth),
                f64::from(row.data.workload.depth),
                "1",
            ),
        });
    }
    let held = DEPTH_HELD_MIN * wanted_depth(row);
    let achieved = row.data.achieved_depth;
    if depth_with_processors(row, achieved) < held {
        return Some(ShallowQueue {
            measured,
            depth: achieved,
            evidence: measured.evidence("data/achieved_depth", achieved, held, "1"),
        });
    }
    if let Some(share) = row.data.engine.done_before_wait
        && share >= DONE_SHARE_MIN
        && has_time_to_wait(row)
    {
        let place = "data/engine/done_before_wait";
        return Some(ShallowQueue {
            measured,
            // Each worker had one request at a time.
            depth: workers,
            evidence: measured.evidence(place, share, DONE_SHARE_MIN, "share"),
        });
    }
    let queued = QUEUED_SHARE_MIN * wanted_depth(row);
    let depth = row.data.device.queue_depth?;
    if !shows_own_requests(row) || depth_with_processors(row, depth) >= queued {
        return None;
    }
    Some(ShallowQueue {
        measured,
        depth,
        evidence: measured.evidence("data/device/queue_depth", depth, queued, "1"),
    })
}

/// The depth as it would be if no worker had waited for a processor. A thread without one sends no
/// request, and the disks' queues run empty: `starved` reports that. A gap longer than the wait for
/// processors has another cause.
fn depth_with_processors(row: &Row, depth: f64) -> f64 {
    if waits_for_processor(row) {
        depth / (1.0 - row.data.starved.share).max(f64::MIN_POSITIVE)
    } else {
        depth
    }
}

/// True if the workers were idle enough to wait for their requests, and did not come late.
fn has_time_to_wait(row: &Row) -> bool {
    let mut latency_ns = f64::INFINITY;
    for (_, op) in row.headline_ops() {
        latency_ns = latency_ns.min(op.figures.latency.mean);
    }
    let starved = &row.data.starved;
    let came_late = waits_for_processor(row) && starved.mean_wait_ns >= LATE_SHARE * latency_ns;
    let workers = f64::from(row.data.workload.workers);
    !came_late && row.cpu_share() + starved.share * workers < PROCESSOR_SHARE_MAX * workers
}

/// True if the disks' queues hold what this workload alone had in flight: random direct I/O that
/// the disks carried out in full, within a tenth. The kernel merges neighbouring requests, and
/// caches and mirrors change their number.
fn shows_own_requests(row: &Row) -> bool {
    let is_in_full = match row.data.device.accounted {
        Some(share) => (0.9..1.1).contains(&share),
        None => false,
    };
    row.figures.together_with.is_empty()
        && is_random(row)
        && is_in_full
        && row.data.cache.used == CachePolicy::Direct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::measurement::{Measurement, Starvation};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || reads(|measurement| measurement.achieved_depth = 11.0),
        || {
            reads(|measurement| {
                (measurement.achieved_depth, measurement.workload.rate) = (11.0, Some(100.0))
            })
        },
    );

    fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    #[test]
    fn a_shallow_queue_is_reported() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["11.0", "32", "random-read-d32"]);
    }

    #[test]
    fn depth_that_slow_disk_could_not_answer_is_reported_with_few_operations() {
        let slow = reads(|measurement| {
            (measurement.engine.depth, measurement.achieved_depth) = (Some(1), 1.0);
            measurement.ops.values_mut().for_each(|op| op.count = 3);
        });
        let finding = check(&slow).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/data/engine/depth"
        );
        assert_eq!(finding.evidence[0].threshold, 32.0);
        assert!(!finding.remedy.contains("--engine"), "{}", finding.remedy);
    }

    #[test]
    fn depth_of_one_slice_is_not_that_of_the_row() {
        let sliced = |achieved_depth| {
            check(&reads(|measurement| {
                (measurement.engine.depth, measurement.achieved_depth) = (Some(18), achieved_depth);
                measurement.ops.values_mut().for_each(|op| op.count = 3);
            }))
        };
        assert_eq!(sliced(28.0), None);
        let finding = sliced(22.0).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/data/achieved_depth"
        );
        states(&finding.claim, &["22.0", "32"]);
        assert!(!finding.remedy.contains("--engine"), "{}", finding.remedy);
        states(&sliced(17.5).unwrap().claim, &["18.0", "32"]);
    }

    fn device_queue(name: &str, depth: f64) -> Option<Diagnosis> {
        let record = fixture::faulty(name, |measurement| {
            measurement.device.queue_depth = Some(depth)
        });
        check(&record)
    }

    #[test]
    fn requests_done_one_by_one_in_the_submission_are_reported_by_the_disks_queue() {
        let finding = device_queue("random-read-d32", 1.1).unwrap();
        states(&finding.claim, &["1.1", "32"]);
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/data/device/queue_depth"
        );
        assert_eq!(device_queue("sequential-read", 1.1), None, "merged");
        assert_eq!(device_queue("random-read-d32", 24.0), None, "held");
    }

    fn early_completions(done: f64, cpu_share: f64, starved: f64) -> Option<Diagnosis> {
        check(&reads(|measurement| {
            (measurement.engine.used, measurement.engine.done_before_wait) =
                (EngineKind::Aio, Some(done));
            measurement.starved.share = starved;
            measurement.cpu.user_ns = (measurement.wall_ns as f64 * cpu_share) as u64;
        }))
    }

    #[test]
    fn requests_that_were_done_before_anybody_waited_for_them_went_one_by_one() {
        let finding = early_completions(0.99, 0.05, 0.0).unwrap();
        states(&finding.claim, &["1.0", "32"]);
        states(&finding.remedy, &["--engine uring"]);
        assert_eq!(
            (
                early_completions(0.3, 0.05, 0.0),
                early_completions(0.99, 0.8, 0.0)
            ),
            (None, None)
        );
        assert_eq!(
            early_completions(0.99, 0.05, 0.6),
            None,
            "it waited for a processor, not for the disk"
        );
    }

    /// True if reads that waited for processors have a shallow queue.
    fn is_shallow(share: f64, mean_wait_ns: f64, change: fn(&mut Measurement)) -> bool {
        let diagnosis = check(&reads(|measurement| {
            change(measurement);
            measurement.starved = Starvation {
                share,
                mean_wait_ns,
            };
        }));
        diagnosis.is_some()
    }

    #[test]
    fn a_machine_without_a_free_processor_is_no_matter_of_the_interface() {
        let changes: [fn(&mut Measurement); 3] = [
            |measurement| measurement.achieved_depth = 20.0,
            |measurement| measurement.device.queue_depth = Some(11.0),
            |measurement| {
                (measurement.engine.used, measurement.engine.done_before_wait) =
                    (EngineKind::Aio, Some(0.99))
            },
        ];
        for change in changes {
            // Of 3.2 ms that a request takes.
            assert!(!is_shallow(0.4, 900_000.0, change));
            // Waking up, often.
            assert!(is_shallow(0.4, 8_000.0, change) && is_shallow(0.001, 60_000.0, change));
        }
        // Waits too short to find requests done for.
        assert!(is_shallow(0.4, 60_000.0, changes[2]));
        // Far more is missing than the time that was waited.
        assert!(is_shallow(0.1, 60_000.0, |measurement| measurement
            .achieved_depth =
            11.0));
        assert!(is_shallow(0.4, 60_000.0, |measurement| measurement
            .device
            .queue_depth =
            Some(1.1)));
    }

    #[test]
    fn silent_where_the_depth_is_not_meant_or_explained() {
        let spared: [fn(&mut Measurement); 3] = [
            |measurement| measurement.workload.sync = SyncPolicy::AtEnd,
            |measurement| measurement.cpu.user_ns = measurement.wall_ns,
            |measurement| measurement.ops.values_mut().for_each(|op| op.count = 100),
        ];
        for (row, spare) in spared.into_iter().enumerate() {
            let record = reads(|measurement| {
                measurement.achieved_depth = 11.0;
                spare(measurement);
            });
            assert_eq!(check(&record), None, "{row}");
        }
    }
}
