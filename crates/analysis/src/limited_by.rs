//! Decides what limited the rate of a workload. Without evidence in the record the limit is
//! unknown, and is not guessed. docs/verdict.md explains the evidence of each limit.

use crate::estimate::largest_by;
use crate::rules::possible_link_of;
use crate::rules::rule::{evidence, wanted_depth};
use diskproof_model::finding::{Evidence, LimitedBy, Meaning, RateLimit, SharedResource};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, CachePolicy, SyncPolicy};
use diskproof_model::proof::FigureSource;
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::target::TargetKind;
use diskproof_model::units::{format_percent, format_throughput};

/// From this share of the time on, the syncs set the pace and not the writes.
const SYNC_SHARE_MIN: f64 = 0.5;
/// A rate of at least this share of a link's bandwidth fills the link: protocols leave about as
/// much for data (PCIe 3: 128 of 154 bytes; SATA and SAS a little more).
const LINK_SHARE_MIN: f64 = 0.85;
/// The rate still grows with the requests in flight if the added ones raise it by at least this
/// share of what they would without any queueing. Chosen, not measured.
const SCALING_MIN: f64 = 0.8;
/// The rate no longer grows if they raise it by less than this share: most requests then wait for
/// others.
const SATURATED_MAX: f64 = 0.5;
/// A rate that is surely this many times as high at a larger depth was limited by the smaller one.
/// Chosen: clearly more than [`SAME_GAIN`].
const SURE_GAIN: f64 = 1.25;
/// Below this gain a larger depth does not raise the rate: figures of one disk differ by as much
/// from run to run.
const SAME_GAIN: f64 = 1.1;
/// From this mean depth on, a queue is long enough to show whether the disk sees it.
const HELD_MIN: f64 = 4.0;
/// Up to this mean depth the disk had one request at a time: the kernel's counters round to
/// milliseconds.
const SERIAL_MAX: f64 = 1.2;

/// The limit of a row, with its evidence. `index` is that of the row in the record, which must
/// already have its findings.
///
/// A finding decides before anything else, also against the disk. Of the other evidence the most
/// direct counts first: the requested rate, the time in flushes, the link, the disk's queue. The
/// comparison with another depth comes last, because it only shows where the limit is not.
pub(crate) fn limited_by(record: &Record, index: usize) -> LimitedBy {
    let row = &record.measurements[index];
    if row.headline_ops().iter().all(|(_, op)| op.data.count == 0) {
        return unknown_limit("nothing was measured");
    }
    if let Some(named) = limit_of_finding(record, index) {
        return named;
    }
    if !row.figures.together_with.is_empty() {
        return unknown_limit("other workloads ran at the same time");
    }
    let limit = schedule_limit(row, index)
        .or_else(|| sync_limit(row, index))
        .or_else(|| durable_write_limit(row, index))
        .or_else(|| link_limit(record, row, index))
        .or_else(|| filesystem_lock_limit(record, row, index))
        .or_else(|| depth_limit(record, row, index));
    limit.unwrap_or_else(|| unknown_limit("no measurement shows it"))
}

/// An unknown limit, with the reason in a clause.
fn unknown_limit(why: &str) -> LimitedBy {
    LimitedBy {
        limit: RateLimit::Unknown,
        why: why.to_owned(),
        evidence: Vec::new(),
    }
}

/// A limit with its reason in a clause, and the figure that shows it.
fn known_limit(limit: RateLimit, why: String, evidence: Evidence) -> LimitedBy {
    LimitedBy {
        limit,
        why,
        evidence: vec![evidence],
    }
}

/// The limit that a finding names, else an unknown one where the figure is not the disk's.
fn limit_of_finding(record: &Record, index: usize) -> Option<LimitedBy> {
    for finding in &record.findings {
        if !finding.concerns(index) {
            continue;
        }
        let limit = match finding.says {
            // A cap may be in order, and then is a note.
            Meaning::Limit {
                limit: RateLimit::Cap,
            } => RateLimit::Cap,
            // It does not show what limited the rate, so other evidence may.
            Meaning::Limit {
                limit: RateLimit::Unknown,
            } => continue,
            // A note says that the effect was too small to matter.
            Meaning::Limit { limit } if finding.is_serious() => limit,
            Meaning::OtherLoad {
                used: SharedResource::Processors,
            } if finding.is_serious() => RateLimit::Cpu,
            _ => continue,
        };
        let root = format!("/measurements/{index}/");
        let mut evidence = finding.evidence.clone();
        evidence.retain(|evidence| evidence.path.starts_with(&root));
        let why = format!("finding {}", finding.code);
        // The rate does not tell a full link from a limiter.
        if finding.code == "rate-limited"
            && let Some(link) = possible_link_of(record, index)
            && !link.is_chosen
        {
            return Some(LimitedBy {
                limit: RateLimit::Unknown,
                why: format!("a link or a limiter: {why}"),
                evidence,
            });
        }
        return Some(LimitedBy {
            limit,
            why,
            evidence,
        });
    }
    let objection = record.objection(FigureSource::Measurement(index))?;
    let code = &objection.finding.code;
    if objection.is_of_hang() {
        return Some(unknown_limit(&format!("requests had no answer: {code}")));
    }
    Some(unknown_limit(&format!(
        "the figure is not the disk's: {code}"
    )))
}

/// An open loop that keeps its schedule is limited by the requested rate.
fn schedule_limit(row: &Row, index: usize) -> Option<LimitedBy> {
    let rate = row.data.workload.rate?;
    let why = if row.figures.ping.is_some() {
        "requests were sent at a fixed pace"
    } else if row.data.missed_starts == Some(0) {
        "every operation started on schedule"
    } else {
        return None;
    };
    let schedule = evidence(index, "data/workload/rate", rate, rate, "1/s");
    Some(known_limit(
        RateLimit::RequestedRate,
        why.to_owned(),
        schedule,
    ))
}

/// The limit where syncs or durable writes took most of the time. `what` names them in the reason.
/// A single one shows no share.
fn flush_limit(row: &Row, index: usize, kind: OpKind, what: &str) -> Option<LimitedBy> {
    let op = row.op(kind)?;
    if op.data.count <= 1 {
        return None;
    }
    let waiting_ns = row.steady_ns() as f64 * waiting_at_once(row);
    let share = op.figures.latency.mean * op.data.count as f64 / waiting_ns;
    if share.is_nan() || share < SYNC_SHARE_MIN {
        return None;
    }
    let percent = format_percent(share.min(1.0));
    let why = format!("{percent} of the time was spent in {what}");
    let place = format!("figures/ops/{}/latency/mean", kind.as_str());
    let threshold = SYNC_SHARE_MIN * waiting_ns / op.data.count as f64;
    let mean = evidence(index, &place, op.figures.latency.mean, threshold, "ns");
    Some(known_limit(RateLimit::Flush, why, mean))
}

/// The limit of a row whose syncs took most of the time. Calls that make nothing durable are no
/// flushes.
fn sync_limit(row: &Row, index: usize) -> Option<LimitedBy> {
    let order = row.data.workload.shape.order.fio.as_ref();
    if order.is_some_and(|order| order.syncs_ranges_only()) {
        return None;
    }
    flush_limit(row, index, OpKind::Sync, "syncs")
}

/// The number of syncs that can run at the same time: one of each request in flight where each
/// write has its own, else one of each worker.
fn waiting_at_once(row: &Row) -> f64 {
    let workload = &row.data.workload;
    let workers = f64::from(workload.workers);
    if workload.sync.is_per_write() {
        workers * f64::from(row.data.limited_depth().unwrap_or(workload.depth))
    } else {
        workers
    }
}

/// The limit of one session whose writes are durable when they return: the flush is a part of
/// each.
fn durable_write_limit(row: &Row, index: usize) -> Option<LimitedBy> {
    let workload = &row.data.workload;
    let is_alone = workload.total_depth() == 1 && !workload.is_paced();
    let is_durable = matches!(workload.sync, SyncPolicy::WithWrite { .. });
    if !is_alone || !is_durable {
        return None;
    }
    let what = "writes that return when they are durable";
    flush_limit(row, index, OpKind::Commit, what)
}

/// The limit of a row that transfers about as much as the link of its only disk carries. With
/// several disks it is unknown how the rate divides among their links.
fn link_limit(record: &Record, row: &Row, index: usize) -> Option<LimitedBy> {
    let disks: Vec<_> = record.targets.get(row.data.target)?.disks().collect();
    let [disk] = disks.as_slice() else {
        return None;
    };
    let link = disk.link.as_ref()?.bytes_per_second_max? as f64;
    // Reads and writes have their own lanes.
    let (kind, op) = largest_by(row.headline_ops(), |(_, op)| op.figures.throughput.value)?;
    let rate = op.figures.throughput.value;
    if !(LINK_SHARE_MIN * link..=link).contains(&rate) {
        return None;
    }
    let share = format_percent(rate / link);
    let link_rate = format_throughput(link);
    let why = format!("{share} of the {link_rate} that the link carries");
    let place = format!("figures/ops/{}/throughput/value", kind.as_str());
    let throughput = evidence(index, &place, rate, LINK_SHARE_MIN * link, "B/s");
    Some(known_limit(RateLimit::Link, why, throughput))
}

/// Many random writes in flight of which the disk sees one at a time: the filesystem holds back the
/// others, such as by the lock of the file.
fn filesystem_lock_limit(record: &Record, row: &Row, index: usize) -> Option<LimitedBy> {
    let queued = row.data.device.queue_depth?;
    let is_file = record.targets.get(row.data.target)?.kind != TargetKind::BlockDevice;
    // Sequential requests may be merged, and are then counted once.
    let is_random = matches!(
        row.data.workload.access,
        Access::Random { .. } | Access::Zoned { .. }
    );
    let writes =
        row.data.ops.contains_key(&OpKind::Write) && !row.data.ops.contains_key(&OpKind::Sync);
    let is_held = row.data.achieved_depth >= HELD_MIN && queued <= SERIAL_MAX;
    // What the page cache takes needs no request to the disk.
    let is_direct = row.data.cache.used == CachePolicy::Direct;
    if !is_file || !is_random || !writes || !is_held || !is_direct {
        return None;
    }
    let why = format!(
        "{:.1} requests were in flight, but the disk had only {queued:.1} of them",
        row.data.achieved_depth
    );
    let queue = evidence(
        index,
        "data/device/queue_depth",
        queued,
        SERIAL_MAX,
        "requests",
    );
    Some(known_limit(RateLimit::FilesystemLock, why, queue))
}

/// The gains in rate by a larger depth that the intervals of both rates allow. Both ends must lead
/// to the same limit.
struct GainInterval {
    low: f64,
    high: f64,
}

impl GainInterval {
    /// `deep_half_width` and `shallow_half_width` are the relative half-widths of the rates at the
    /// larger and at the smaller depth.
    fn around(gain: f64, deep_half_width: f64, shallow_half_width: f64) -> Self {
        let high = if shallow_half_width < 1.0 {
            gain * (1.0 + deep_half_width) / (1.0 - shallow_half_width)
        } else {
            f64::INFINITY
        };
        Self {
            low: gain * (1.0 - deep_half_width) / (1.0 + shallow_half_width),
            high,
        }
    }
}

/// Compares the row with the same workload at another number of requests in flight, which shows
/// whether more of them raise the rate.
fn depth_limit(record: &Record, row: &Row, index: usize) -> Option<LimitedBy> {
    let other = other_depth(record, row)?;
    let other_is_deeper = wanted_depth(other) > wanted_depth(row);
    let (deep, shallow) = if other_is_deeper {
        (other, row)
    } else {
        (row, other)
    };
    let times = wanted_depth(deep) / wanted_depth(shallow);
    let gain = deep.total_iops() / shallow.total_iops();
    let gains = GainInterval::around(gain, deep.precision()?, shallow.precision()?);
    // The gains at which the share of the added requests that raise the rate is reached.
    let scaling = 1.0 + SCALING_MIN * (times - 1.0);
    let saturated = 1.0 + SATURATED_MAX * (times - 1.0);
    let (limit, deciding_gain) = if gains.low >= scaling {
        (RateLimit::QueueDepth, scaling)
    } else if gains.high <= saturated && !other_is_deeper {
        (RateLimit::Device, saturated)
    } else if gains.low >= SURE_GAIN && other_is_deeper {
        (RateLimit::QueueDepth, SURE_GAIN)
    } else if gains.high < SAME_GAIN && other_is_deeper {
        (RateLimit::Device, SAME_GAIN)
    } else {
        return None;
    };
    let (kind, op): (OpKind, OpRow<'_>) = row.headline_ops().into_iter().next()?;
    let why = format!(
        "{:.0} in flight reach {gain:.1} times the rate of {:.0}",
        wanted_depth(deep),
        wanted_depth(shallow)
    );
    let threshold = if other_is_deeper {
        deep.total_iops() / deciding_gain
    } else {
        shallow.total_iops() * deciding_gain
    };
    let place = format!("figures/ops/{}/iops/value", kind.as_str());
    let rate = evidence(index, &place, op.figures.iops.value, threshold, "1/s");
    Some(known_limit(limit, why, rate))
}

/// The same workload with the next larger number of requests in flight, else with the next smaller
/// one.
fn other_depth<'a>(record: &'a Record, row: &Row) -> Option<&'a Row> {
    let mut deeper: Option<&Row> = None;
    let mut shallower: Option<&Row> = None;
    for other in &record.measurements {
        if !is_same_but_depth(row, other) {
            continue;
        }
        let depth = wanted_depth(other);
        if depth > wanted_depth(row) {
            match deeper {
                Some(nearest) if wanted_depth(nearest) <= depth => {}
                _ => deeper = Some(other),
            }
        } else if depth < wanted_depth(row) {
            match shallower {
                Some(nearest) if wanted_depth(nearest) > depth => {}
                _ => shallower = Some(other),
            }
        }
    }
    deeper.or(shallower)
}

/// Returns `true` if both rows ran the same workload in a closed loop, apart from the requests in
/// flight.
fn is_same_but_depth(row: &Row, other: &Row) -> bool {
    let (own_data, other_data) = (&row.data, &other.data);
    let (own, theirs) = (&own_data.workload, &other_data.workload);
    own_data.target == other_data.target
        && other.total_iops() > 0.0
        && own.access == theirs.access
        && own.streams == theirs.streams
        && (own.block_bytes, &own.block_mix) == (theirs.block_bytes, &theirs.block_mix)
        && own.sync == theirs.sync
        && own_data.cache.used == other_data.cache.used
        && own_data.span_start_bytes == other_data.span_start_bytes
        && own_data.span_bytes == other_data.span_bytes
        && own.shape.order == theirs.shape.order
        && !theirs.is_paced()
        && !own.is_paced()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, measured, states};
    use diskproof_model::finding::{Finding, Severity};
    use diskproof_model::plan::{RangeSync, WriteFlag};
    use diskproof_model::shape::{FioOrder, FioSync, FioSyncCall};
    use serde_json::json;

    fn of(record: &Record, name: &str) -> LimitedBy {
        let mut measurements = record.measurements.iter();
        let found = measurements.find(|m| m.data.workload.name == name).unwrap();
        found.figures.limited_by.clone().unwrap()
    }

    #[test]
    fn depth_one_is_limited_by_the_depth_and_depth_32_by_the_device() {
        // 2000/s and 10,000/s: 32 times the requests, five times the rate.
        let record = fixture::record();
        let one = of(&record, "random-read-d1");
        assert_eq!(one.limit, RateLimit::QueueDepth, "{one:?}");
        states(&one.why, &["32 in flight", "5.0 times"]);
        let many = of(&record, "random-read-d32");
        assert_eq!(many.limit, RateLimit::Device);
        assert!(!many.evidence.is_empty());
    }

    #[test]
    fn wide_intervals_leave_the_limit_unknown() {
        let mut record = fixture::record();
        for m in &mut record.measurements {
            for op in m.figures.ops.values_mut() {
                op.iops.half_width_95 = Some(0.8 * op.iops.value);
            }
        }
        // Random reads at both depths.
        for index in [2, 3] {
            assert_eq!(limited_by(&record, index).limit, RateLimit::Unknown);
        }
    }

    #[test]
    fn commits_are_limited_by_the_flush() {
        let commits = of(&fixture::record(), "commit-fdatasync");
        assert_eq!(commits.limit, RateLimit::Flush, "{commits:?}");
        let path = &commits.evidence[0].path;
        assert!(path.ends_with("/ops/sync/latency/mean"), "{path}");
    }

    /// sync_file_range(2) flushes no cache of a disk.
    #[test]
    fn syncs_of_ranges_are_no_flushes() {
        let mut record = fixture::record();
        assert_eq!(limited_by(&record, 7).limit, RateLimit::Flush);
        let range = FioSync {
            call: FioSyncCall::FileRange(RangeSync::COMPLETE),
            writes: 1,
        };
        let m = measured(&mut record, "commit-fdatasync");
        let mut order: FioOrder = serde_json::from_value(json!({
            "draws": { "job": 1 },
            "kinds": [],
            "read_percent": 0,
            "unit_bytes": 4096,
            "places": { "is_random": false, "is_mapped": false, "gap_bytes": 0 },
            "files": {
                "count": 1,
                "part_start": 0,
                "part_bytes": 4096,
                "first_start": 0,
                "start": 0,
                "lap_bytes": 4096,
                "file_bytes": 4096,
                "service": "round-robin",
                "turn_ops": 1,
                "open_max": 1,
            },
        }))
        .unwrap();
        order.syncs = vec![range];
        m.data.workload.shape.order.fio = Some(Box::new(order.clone()));
        assert_ne!(limited_by(&record, 7).limit, RateLimit::Flush);
        order.syncs.push(FioSync {
            call: FioSyncCall::Fsync,
            writes: 8,
        });
        let m = measured(&mut record, "commit-fdatasync");
        m.data.workload.shape.order.fio = Some(Box::new(order));
        assert_eq!(limited_by(&record, 7).limit, RateLimit::Flush);
    }

    #[test]
    fn durable_writes_of_one_session_are_limited_by_the_flush() {
        let mut record = fixture::record();
        let m = measured(&mut record, "commit-fdatasync");
        m.data.workload.sync = SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        };
        m.data.ops.remove(&OpKind::Sync);
        let path = limited_by(&record, 7).evidence[0].path.clone();
        assert!(path.ends_with("/ops/commit/latency/mean"), "{path}");
    }

    #[test]
    fn a_single_queue_depth_shows_nothing() {
        let read = of(&fixture::record(), "sequential-read");
        assert_eq!((read.limit, read.evidence.len()), (RateLimit::Unknown, 0));
    }

    #[test]
    fn findings_name_the_program_and_deny_the_disk() {
        let record = fixture::faulty("random-read-d32", |m| m.ceiling_iops = Some(12_000.0));
        let limited = of(&record, "random-read-d32");
        assert_eq!(limited.limit, RateLimit::Program);
        assert!(limited.evidence[0].path.ends_with("data/ceiling_iops"));
        let record = fixture::faulty("sequential-read", |m| m.device.read_bytes = 0);
        let cached = of(&record, "sequential-read");
        assert_eq!(cached.limit, RateLimit::Unknown);
        assert!(cached.why.ends_with("served-from-cache"), "{}", cached.why);
    }

    #[test]
    fn serial_writes_below_a_filesystem_are_its_lock() {
        let record = fixture::faulty("random-write-d32", |m| {
            (m.achieved_depth, m.device.queue_depth) = (31.0, Some(1.0));
        });
        let limited = of(&record, "random-write-d32");
        assert_eq!(limited.limit, RateLimit::FilesystemLock);
    }

    #[test]
    fn a_kept_schedule_limits_the_rate() {
        let mut record = fixture::record();
        let m = &mut record.measurements[3];
        (m.data.workload.rate, m.data.missed_starts) = (Some(500.0), Some(0));
        assert_eq!(limited_by(&record, 3).limit, RateLimit::RequestedRate);
        record.measurements[3].data.missed_starts = Some(9);
        assert_ne!(limited_by(&record, 3).limit, RateLimit::RequestedRate);
    }

    #[test]
    fn nearly_all_of_the_link_is_the_link() {
        let mut record = fixture::record();
        let rate = record.measurements[1].figures.ops[&OpKind::Read]
            .throughput
            .value;
        let disk = record.targets[0].layers.last_mut().unwrap();
        disk.link.as_mut().unwrap().bytes_per_second_max = Some((rate / 0.9) as u64);
        let limited = limited_by(&record, 1);
        assert_eq!(limited.limit, RateLimit::Link, "{limited:?}");
    }

    /// With 32 writes in flight 32 syncs may run at once: half of the time is spent in them only if
    /// each takes half of a commit.
    #[test]
    fn syncs_of_a_queue_overlap() {
        for (depth, is_flush) in [(1, true), (32, false)] {
            let mut record = fixture::record();
            let m = measured(&mut record, "commit-fdatasync");
            m.data.workload.depth = depth;
            let index = record
                .measurements
                .iter()
                .position(|row| row.data.workload.name == "commit-fdatasync")
                .unwrap();
            let limit = limited_by(&record, index).limit;
            assert_eq!(limit == RateLimit::Flush, is_flush, "{depth}: {limit:?}");
        }
    }

    /// Gives the random reads of one request in flight and of 32 these rates, known to a
    /// thousandth.
    fn with_rates(shallow: f64, deep: f64) -> Record {
        let mut record = fixture::record();
        for (name, rate) in [("random-read-d1", shallow), ("random-read-d32", deep)] {
            for op in measured(&mut record, name).figures.ops.values_mut() {
                op.iops.value = rate;
                op.iops.half_width_95 = Some(0.001 * rate);
            }
        }
        record
    }

    /// With 32 times the requests, four fifths of the added ones are a gain of 25.8 and half of
    /// them one of 16.5.
    #[test]
    fn gain_by_a_larger_depth_shows_the_limit_of_both() {
        use RateLimit::{Device, QueueDepth, Unknown};
        for (gain, shallow, deep) in [
            (30.0, QueueDepth, QueueDepth),
            (26.0, QueueDepth, QueueDepth),
            (25.0, QueueDepth, Unknown),
            (17.0, QueueDepth, Unknown),
            (16.0, QueueDepth, Device),
            (1.3, QueueDepth, Device),
            (1.2, Unknown, Device),
            (1.05, Device, Device),
        ] {
            let record = with_rates(1000.0, 1000.0 * gain);
            assert_eq!(limited_by(&record, 2).limit, shallow, "{gain}");
            assert_eq!(limited_by(&record, 3).limit, deep, "{gain}");
        }
    }

    #[test]
    fn only_the_same_workload_at_another_depth_shows_a_limit() {
        let changes: [fn(&mut Row); 6] = [
            |row| row.data.target = 1,
            |row| row.data.workload.access = Access::Sequential,
            |row| row.data.workload.block_bytes *= 2,
            |row| row.data.workload.rate = Some(100.0),
            |row| row.data.cache.used = CachePolicy::Buffered,
            |row| row.data.span_bytes /= 2,
        ];
        assert_eq!(
            limited_by(&fixture::record(), 2).limit,
            RateLimit::QueueDepth
        );
        for (number, change) in changes.into_iter().enumerate() {
            let mut record = fixture::record();
            change(&mut record.measurements[3]);
            assert_eq!(limited_by(&record, 2).limit, RateLimit::Unknown, "{number}");
        }
    }

    /// Random writes through a file, 31 in flight, of which the disk has one.
    fn held_back() -> Record {
        fixture::faulty("random-write-d32", |m| {
            (m.achieved_depth, m.device.queue_depth) = (31.0, Some(1.0));
        })
    }

    #[test]
    fn queue_that_the_disk_need_not_see_is_no_lock() {
        let changes: [fn(&mut Record); 6] = [
            |record| record.targets[0].kind = TargetKind::BlockDevice,
            |record| record.measurements[4].data.workload.access = Access::Sequential,
            |record| record.measurements[4].data.cache.used = CachePolicy::Buffered,
            |record| record.measurements[4].data.achieved_depth = 3.9,
            |record| record.measurements[4].data.device.queue_depth = Some(1.3),
            |record| {
                let sync = record.measurements[7].data.ops[&OpKind::Sync].clone();
                record.measurements[4].data.ops.insert(OpKind::Sync, sync);
            },
        ];
        assert_eq!(limited_by(&held_back(), 4).limit, RateLimit::FilesystemLock);
        for (number, change) in changes.into_iter().enumerate() {
            let mut record = held_back();
            change(&mut record);
            let limit = limited_by(&record, 4).limit;
            assert_ne!(limit, RateLimit::FilesystemLock, "{number}");
        }
    }

    /// A cap may be in order; other limits are too small to matter in a note.
    #[test]
    fn note_names_a_cap_and_no_other_limit() {
        for (says, severity, limit, is_named) in [
            (
                Meaning::Limit {
                    limit: RateLimit::Cap,
                },
                Severity::Note,
                RateLimit::Cap,
                true,
            ),
            (
                Meaning::Limit {
                    limit: RateLimit::Cpu,
                },
                Severity::Note,
                RateLimit::Cpu,
                false,
            ),
            (
                Meaning::Limit {
                    limit: RateLimit::Cpu,
                },
                Severity::Warning,
                RateLimit::Cpu,
                true,
            ),
            (BUSY_PROCESSORS, Severity::Note, RateLimit::Cpu, false),
            (BUSY_PROCESSORS, Severity::Warning, RateLimit::Cpu, true),
        ] {
            let mut record = fixture::record();
            record.findings = vec![Finding {
                says,
                ..fixture::finding("x", severity, "/measurements/3/data/starved/share")
            }];
            let found = limited_by(&record, 3);
            assert_eq!(
                found.limit == limit,
                is_named,
                "{says:?} {severity:?}: {found:?}"
            );
            assert_ne!(
                limited_by(&record, 2).limit,
                limit,
                "it is of another workload"
            );
        }
    }

    const BUSY_PROCESSORS: Meaning = Meaning::OtherLoad {
        used: SharedResource::Processors,
    };

    #[test]
    fn workloads_that_ran_together_have_no_limit_of_their_own() {
        let record = fixture::judge(fixture::together(&["random-read-d1", "sequential-read"]));
        let limited = of(&record, "random-read-d1");
        assert_eq!(limited.limit, RateLimit::Unknown, "{limited:?}");
    }

    /// No disk moves more than its link carries: then the figure of the link is wrong.
    #[test]
    fn link_is_no_limit_of_a_rate_far_below_it_or_above_it() {
        let rate = fixture::record().measurements[1].figures.ops[&OpKind::Read]
            .throughput
            .value;
        for (share, is_link) in [(0.84, false), (0.86, true), (0.99, true), (1.01, false)] {
            let mut record = fixture::record();
            let disk = record.targets[0].layers.last_mut().unwrap();
            let link = disk.link.as_mut().unwrap();
            link.bytes_per_second_max = Some((rate / share) as u64);
            let limit = limited_by(&record, 1).limit;
            assert_eq!(limit == RateLimit::Link, is_link, "{share}: {limit:?}");
            // The share of each of two disks is unknown.
            let mirrored = record.targets[0].layers.last().unwrap().clone();
            record.targets[0].layers.push(mirrored);
            assert_ne!(limited_by(&record, 1).limit, RateLimit::Link, "{share}");
        }
    }
}
