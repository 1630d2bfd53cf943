//! Turns an observed load into workloads that repeat it: up to four at the same time, random and
//! sequential reads and writes, each with its sizes and its share of the rate. A load with flushes
//! can also become one transaction.

use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{LikePlan, ObservedDevice, ObservedOps};
use diskproof_model::plan::{
    Access, BlockShare, Distribution, Start, Stop, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::stream::Streams;
use diskproof_model::transaction::TRANSACTION_PARTS_MAX;

/// Fewer than this share of the requests of a direction do not get their own workload. Chosen, not
/// measured.
const SHARE_MIN: f64 = 0.005;
/// A workload has at most this depth, however many requests the recording had in flight. Chosen,
/// not measured.
const DEPTH_MAX: f64 = 256.0;
/// The sum of the weights of sizes. A smaller one would round rare sizes to nothing.
const WEIGHT_SUM: u64 = 1_000_000;

/// The target on which a load is repeated, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LikeTarget {
    /// Sectors of the target in bytes: sizes are rounded up to them.
    pub unit_bytes: u32,
    /// Time for which the load runs, in nanoseconds.
    pub time_ns: u64,
}

/// Why a load cannot be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LikeError {
    /// Nothing to repeat.
    #[error("{device} had no requests during the recording")]
    Idle {
        /// The device.
        device: String,
    },
    /// Less than one request in the time.
    #[error("{device} had fewer than one request in {seconds} s on average; use a longer --time")]
    TooSlow {
        /// The device.
        device: String,
        /// The time of the run.
        seconds: u64,
    },
}

/// The figures of the observed load, for the comparison after the run.
pub fn like_plan(run_id: &str, observed: &ObservedDevice) -> LikePlan {
    let bytes: u64 = observed.ops.values().map(|op| op.bytes).sum();
    LikePlan {
        run_id: run_id.to_owned(),
        device: observed.name.clone(),
        rate: observed.rate(),
        read_share: observed.read_share().unwrap_or(0.0),
        seek_share: observed.seek_share().unwrap_or(0.0),
        block_mean_bytes: bytes as f64 / observed.requests().max(1) as f64,
        queue_depth: observed.queue_depth,
    }
}

/// The pages of the page cache, in which servers read and write.
const PAGE_BYTES: u64 = 4096;
/// The block size where the recording has no reads and no random writes: PostgreSQL's page.
const USUAL_BLOCK_BYTES: u32 = 8192;
/// The longest log record of one commit. More bytes per flush are other sequential writes.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// What one transaction of an observed load did on average: a flush stands for its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LikeTransaction {
    /// Reads.
    pub reads: u32,
    /// Bytes of a read, and of a random write.
    pub block_bytes: u32,
    /// Bytes that were written one after the other, as a log is.
    pub log_bytes: u32,
    /// Random writes.
    pub writes: u32,
}

/// With more reads and random writes for each flush, the flushes are no commits: they are those of
/// a filesystem's journal, or of a checkpoint. The delivery of TPC-C has some 130 accesses. Chosen,
/// not measured.
const COMMIT_PARTS_MAX: u32 = 200;

impl LikeTransaction {
    /// True if it has so few requests that a flush may be its commit.
    pub fn may_be_commit(&self) -> bool {
        self.reads.saturating_add(self.writes) <= COMMIT_PARTS_MAX
    }
}

/// The transaction that stands for an observed load; `None` without a flush.
pub fn like_transaction(observed: &ObservedDevice) -> Option<LikeTransaction> {
    let flushes = observed.flush_ops.filter(|flushes| *flushes > 0)?;
    let reads = match observed.ops.get(&OpKind::Read) {
        Some(op) => SizedRequests {
            count: op.count,
            bytes: op.bytes,
        },
        None => SizedRequests::default(),
    };
    let writes = match observed.ops.get(&OpKind::Write) {
        Some(op) => PlacedWrites::from_ops(op),
        None => PlacedWrites::default(),
    };
    let block_bytes = reads.mean_bytes().or(writes.random.mean_bytes());
    let log_bytes = writes.sequential.bytes / flushes;
    Some(LikeTransaction {
        reads: reads.per_flush(flushes),
        block_bytes: block_bytes.unwrap_or(USUAL_BLOCK_BYTES),
        log_bytes: whole_pages(log_bytes.min(RECORD_BYTES_MAX)),
        writes: writes.random.per_flush(flushes),
    })
}

/// The random and the sequential writes of a load.
#[derive(Debug, Clone, Copy, Default)]
struct PlacedWrites {
    random: SizedRequests,
    sequential: SizedRequests,
}

impl PlacedWrites {
    /// The writes of a device, divided in the ratio of those that were traced.
    fn from_ops(op: &ObservedOps) -> Self {
        let mut random = SizedRequests::default();
        let mut sequential = SizedRequests::default();
        for size in &op.sizes {
            random.add(size.random, size.block_bytes);
            sequential.add(size.sequential, size.block_bytes);
        }
        // Fewer requests may have been traced than were counted.
        let traced = random.count + sequential.count;
        let scale = op.count as f64 / traced.max(1) as f64;
        Self {
            random: random.scaled(scale),
            sequential: sequential.scaled(scale),
        }
    }
}

/// Requests and their bytes.
#[derive(Debug, Clone, Copy, Default)]
struct SizedRequests {
    count: u64,
    bytes: u64,
}

impl SizedRequests {
    fn add(&mut self, count: u64, block_bytes: u32) {
        self.count = self.count.saturating_add(count);
        let bytes = count.saturating_mul(u64::from(block_bytes));
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// So many times the requests and bytes.
    fn scaled(self, factor: f64) -> Self {
        Self {
            count: (self.count as f64 * factor).round() as u64,
            bytes: (self.bytes as f64 * factor).round() as u64,
        }
    }

    /// Their number for each flush, as far as a transaction can have as many.
    fn per_flush(self, flushes: u64) -> u32 {
        let rounded = (self.count as f64 / flushes as f64).round();
        (rounded as u32).min(TRANSACTION_PARTS_MAX)
    }

    /// Their mean size in whole pages; `None` without a request.
    fn mean_bytes(self) -> Option<u32> {
        let mean = self.bytes.checked_div(self.count)?;
        Some(whole_pages(mean.min(RECORD_BYTES_MAX)))
    }
}

fn whole_pages(bytes: u64) -> u32 {
    (bytes.max(1).next_multiple_of(PAGE_BYTES)) as u32
}

/// The workloads that repeat the load together. Those of less than one request in the time are left
/// out.
pub fn like_workloads(
    observed: &ObservedDevice,
    target: LikeTarget,
) -> Result<Vec<Workload>, LikeError> {
    if observed.requests() == 0 {
        return Err(LikeError::Idle {
            device: observed.name.clone(),
        });
    }
    let mut workloads: Vec<Workload> = Vec::new();
    for (kind, op) in &observed.ops {
        for part in like_parts(op) {
            workloads.extend(like_workload(observed, target, *kind, op, part));
        }
    }
    if workloads.is_empty() {
        return Err(LikeError::TooSlow {
            device: observed.name.clone(),
            seconds: target.time_ns / 1_000_000_000,
        });
    }
    for later in &mut workloads[1..] {
        later.start = Start::WithPrevious;
    }
    Ok(workloads)
}

/// The workload of one part; `None` where it has less than one request in the time.
fn like_workload(
    observed: &ObservedDevice,
    target: LikeTarget,
    kind: OpKind,
    op: &ObservedOps,
    part: LikePart,
) -> Option<Workload> {
    let rate = op.count as f64 * 1e9 / observed.wall_ns.max(1) as f64 * part.share;
    if rate * target.time_ns as f64 / 1e9 < 1.0 {
        return None;
    }
    let name = format!("{}-{}", kind.as_str(), access_name(&part.access));
    let read_permille = if kind == OpKind::Read { 1000 } else { 0 };
    Some(Workload {
        start: Start::AfterPrevious,
        streams: Streams::with_reads(read_permille),
        access: part.access,
        depth: observed.queue_depth_max.ceil().clamp(1.0, DEPTH_MAX) as u32,
        stop: Stop {
            time_ns: Some(target.time_ns),
            ..Stop::default()
        },
        rate: Some(rate),
        sync: sync_policy(kind, op, observed.flush_ops),
        ..with_sizes(Workload::named(&name), &part.sizes, target.unit_bytes)
    })
}

/// The random or the sequential requests of one direction.
struct LikePart {
    access: Access,
    /// Their share of all of that direction.
    share: f64,
    sizes: Vec<SizeCount>,
}

/// A size of requests, and how many have it.
struct SizeCount {
    block_bytes: u32,
    count: u64,
}

/// The random and the sequential part; one alone where the other is too small to matter.
fn like_parts(op: &ObservedOps) -> Vec<LikePart> {
    let mut random = LikePart {
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        share: op.seek_share,
        sizes: Vec::new(),
    };
    let mut sequential = LikePart {
        access: Access::Sequential,
        share: 1.0 - op.seek_share,
        sizes: Vec::new(),
    };
    for size in &op.sizes {
        if size.random > 0 {
            random.sizes.push(SizeCount {
                block_bytes: size.block_bytes,
                count: size.random,
            });
        }
        if size.sequential > 0 {
            sequential.sizes.push(SizeCount {
                block_bytes: size.block_bytes,
                count: size.sequential,
            });
        }
    }
    let mut parts = vec![random, sequential];
    parts.retain(|part| part.share >= SHARE_MIN);
    let sum: f64 = parts.iter().map(|part| part.share).sum();
    let mean = u32::try_from(op.bytes / op.count.max(1)).unwrap_or(u32::MAX);
    for part in &mut parts {
        part.share /= sum;
        // Too few requests were traced for their own sizes.
        if part.sizes.is_empty() {
            part.sizes.push(SizeCount {
                block_bytes: mean.max(1),
                count: 1,
            });
        }
    }
    parts
}

fn access_name(access: &Access) -> &'static str {
    match access {
        Access::Random { .. } => "random",
        _ => "sequential",
    }
}

/// The workload with these sizes, in whole sectors.
fn with_sizes(workload: Workload, sizes: &[SizeCount], unit_bytes: u32) -> Workload {
    let unit = unit_bytes.max(1);
    let sum: u64 = sizes.iter().map(|size| size.count).sum();
    let mut mix: Vec<BlockShare> = Vec::new();
    for size in sizes {
        let block_bytes = size.block_bytes.div_ceil(unit).saturating_mul(unit);
        let scaled = u128::from(size.count) * u128::from(WEIGHT_SUM) / u128::from(sum.max(1));
        let weight = (scaled as u32).max(1);
        let mut known = mix.iter_mut();
        match known.find(|share| share.block_bytes == block_bytes) {
            Some(share) => share.weight += weight,
            None => mix.push(BlockShare {
                block_bytes,
                weight,
            }),
        }
    }
    let largest = mix.iter().map(|share| share.block_bytes).max();
    Workload {
        block_bytes: largest.unwrap_or(workload.block_bytes),
        block_mix: if mix.len() > 1 { mix } else { Vec::new() },
        ..workload
    }
}

/// A sync after as many writes as the recording had for each flush.
fn sync_policy(kind: OpKind, op: &ObservedOps, flushes: Option<u64>) -> SyncPolicy {
    // Without flushes, or for reads, nothing is synced.
    let writes_per_flush = match flushes {
        Some(flushes) if flushes > 0 && kind == OpKind::Write => op.count as f64 / flushes as f64,
        _ => return SyncPolicy::None,
    };
    SyncPolicy::Every {
        writes: writes_per_flush.round().clamp(1.0, f64::from(u32::MAX)) as u32,
        call: SyncCall::Fdatasync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::observed::ObservedSize;
    use diskproof_model::record::Estimate;
    use diskproof_model::series::TimeSeries;
    use std::collections::BTreeMap;

    fn ops(count: u64, seek_share: f64, sizes: &[(u32, u64, u64)]) -> ObservedOps {
        let bytes = sizes
            .iter()
            .map(|(bytes, random, sequential)| u64::from(*bytes) * (random + sequential));
        let estimate = |unit: &str| Estimate {
            n: 1,
            value: 0.0,
            half_width_95: None,
            unit: unit.to_owned(),
        };
        ObservedOps {
            count,
            bytes: bytes.sum(),
            merges: 0,
            iops: estimate("1/s"),
            throughput: estimate("B/s"),
            latency_mean_ns: None,
            seek_share,
            sizes: Vec::from(sizes)
                .into_iter()
                .map(|(block_bytes, random, sequential)| ObservedSize {
                    block_bytes,
                    random,
                    sequential,
                })
                .collect(),
            series: TimeSeries::new(1_000_000_000),
        }
    }

    fn device(ops: &[(OpKind, ObservedOps)]) -> ObservedDevice {
        ObservedDevice {
            target: 0,
            name: "sda".to_owned(),
            wall_ns: 10_000_000_000,
            ops: ops.iter().cloned().collect::<BTreeMap<_, _>>(),
            flush_ops: Some(10),
            queue_depth: 2.0,
            queue_depth_max: 7.4,
            seeks: None,
            processes: Vec::new(),
            capacity: None,
            load_share: None,
        }
    }

    const TARGET: LikeTarget = LikeTarget {
        unit_bytes: 4096,
        time_ns: 30_000_000_000,
    };

    #[test]
    fn flush_stands_for_the_commit_of_a_transaction() {
        let reads = ops(42, 1.0, &[(8192, 42, 0)]);
        // For each of ten flushes two random writes of a page, and two of half a page for the log.
        let writes = ops(40, 0.5, &[(8192, 20, 0), (4096, 0, 20)]);
        let observed = device(&[(OpKind::Read, reads), (OpKind::Write, writes)]);
        let found = like_transaction(&observed).unwrap();
        assert_eq!((found.reads, found.writes), (4, 2));
        assert_eq!((found.block_bytes, found.log_bytes), (8192, 8192));
        assert!(found.may_be_commit());
        // A load without commits, of which only the filesystem flushes.
        let rare = LikeTransaction {
            reads: 665,
            writes: 334,
            ..found
        };
        assert!(!rare.may_be_commit());
        let unflushed = ObservedDevice {
            flush_ops: Some(0),
            ..observed
        };
        assert_eq!(like_transaction(&unflushed), None);
    }

    #[test]
    fn load_becomes_workloads_that_run_together() {
        let reads = ops(
            1000,
            0.75,
            &[(8192, 700, 0), (512, 50, 0), (131_072, 0, 250)],
        );
        let writes = ops(100, 0.0, &[(8192, 0, 100)]);
        let load = device(&[(OpKind::Read, reads), (OpKind::Write, writes)]);
        let workloads = like_workloads(&load, TARGET).unwrap();
        let shown = workloads.iter();
        let shown = shown.map(|w| (w.name.as_str(), w.rate.unwrap(), w.block_bytes, w.depth));
        let expected = [
            ("read-random", 75.0, 8192, 8),
            ("read-sequential", 25.0, 131_072, 8),
            ("write-sequential", 10.0, 8192, 8),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        // 512 bytes become a sector of the target.
        assert_eq!(workloads[0].block_mix.len(), 2);
        assert_eq!(workloads[0].block_mix[1].block_bytes, 4096);
        assert_eq!(workloads[0].start, Start::AfterPrevious);
        assert_eq!(workloads[1].start, Start::WithPrevious);
        let ten = SyncPolicy::Every {
            writes: 10,
            call: SyncCall::Fdatasync,
        };
        assert_eq!(
            (workloads[0].sync, workloads[2].sync),
            (SyncPolicy::None, ten)
        );
        let plan = like_plan("id", &load);
        assert!((plan.rate - 110.0).abs() < 1e-9 && (plan.read_share - 10.0 / 11.0).abs() < 1e-9);
    }

    #[test]
    fn idle_and_nearly_idle_devices_cannot_be_repeated() {
        let idle = like_workloads(&device(&[]), TARGET);
        assert!(matches!(idle, Err(LikeError::Idle { .. })));
        let slow = device(&[(OpKind::Read, ops(1, 1.0, &[(4096, 1, 0)]))]);
        let short = LikeTarget {
            time_ns: 1_000_000_000,
            ..TARGET
        };
        let refused = like_workloads(&slow, short);
        assert!(matches!(refused, Err(LikeError::TooSlow { .. })));
        assert_eq!(like_workloads(&slow, TARGET).unwrap().len(), 1);
    }
}
