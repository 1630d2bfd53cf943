//! The load of one device: what happened between two readings of the kernel's counters, all steps
//! added up, and which of its requests are seeks. A traced request is sequential where it continues
//! one of the latest streams of its device, in either direction. Without tracing, sizes and merges
//! give an estimate.

use crate::estimate::{Settling, rate_after};
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{
    MeasuredCapacity, ObservedDevice, ObservedOps, ObservedProcess, ObservedSize,
};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::watch::{
    DeviceStep, DirectionCounters, DirectionStep, DiskReading, IssuedRequest, SeekMethod,
};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Cells of a series: an hour of seconds; longer ones are thinned.
const CELLS_MAX: usize = 3600;
/// Sizes of requests in the record, the most frequent.
const SIZES_MAX: usize = 64;
/// Threads in the record.
const PROCESSES_MAX: usize = 10;
/// Threads that are remembered: a machine may start thousands.
const THREADS_MAX: usize = 10_000;
/// The kernel counts requests in sectors.
const SECTOR_BYTES: u64 = 512;

/// What was seen of a device.
#[derive(Debug, Clone)]
pub(super) struct DeviceProfile {
    wall_ns: u64,
    read: DirectionProfile,
    write: DirectionProfile,
    flush_ops: Option<u64>,
    depth_ns: f64,
    depth_max: f64,
    load_ns: Option<f64>,
    method: Option<SeekMethod>,
    threads: HashMap<(u32, String), ObservedProcess>,
}

#[derive(Debug, Clone)]
struct DirectionProfile {
    count: u64,
    bytes: u64,
    merges: u64,
    latency_ns: f64,
    seeks: f64,
    /// Requests by size.
    sizes: BTreeMap<u32, TracedCounts>,
    series: TimeSeries,
}

/// Requests by where they lie.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TracedCounts {
    pub random: u64,
    pub sequential: u64,
}

impl TracedCounts {
    pub(super) fn total(self) -> u64 {
        self.random + self.sequential
    }

    pub(super) fn share(self) -> f64 {
        self.random as f64 / self.total().max(1) as f64
    }

    pub(super) fn add(&mut self, placement: Placement) {
        match placement {
            Placement::Random => self.random += 1,
            Placement::Sequential => self.sequential += 1,
        }
    }
}

impl DirectionProfile {
    fn new(interval_ns: u64) -> Self {
        Self {
            count: 0,
            bytes: 0,
            merges: 0,
            latency_ns: 0.0,
            seeks: 0.0,
            sizes: BTreeMap::new(),
            series: TimeSeries::new(interval_ns),
        }
    }
}

impl DeviceProfile {
    pub(super) fn new(interval_ns: u64) -> Self {
        Self {
            wall_ns: 0,
            read: DirectionProfile::new(interval_ns),
            write: DirectionProfile::new(interval_ns),
            flush_ops: None,
            depth_ns: 0.0,
            depth_max: 0.0,
            load_ns: None,
            method: None,
            threads: HashMap::new(),
        }
    }

    /// Adds a traced request.
    pub(super) fn add_request(&mut self, request: &IssuedRequest, placement: Placement) {
        use diskproof_model::watch::RequestDirection::{Read, Write};
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        let direction = match request.direction {
            Read => &mut self.read,
            Write => &mut self.write,
        };
        let block_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        direction
            .sizes
            .entry(block_bytes)
            .or_default()
            .add(placement);
        let key = (request.pid, request.name.clone());
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&key) {
            return;
        }
        let thread = self
            .threads
            .entry(key)
            .or_insert_with_key(|(pid, name)| ObservedProcess {
                pid: *pid,
                name: name.clone(),
                requests: 0,
                read_bytes: 0,
                write_bytes: 0,
            });
        thread.requests += 1;
        match request.direction {
            Read => thread.read_bytes += bytes,
            Write => thread.write_bytes += bytes,
        }
    }

    /// Adds a step. `shares` are the seeks among reads and writes, and `traced` whether the sizes
    /// came from requests.
    pub(super) fn add_step(
        &mut self,
        step: &DeviceStep,
        length_ns: u64,
        shares: [f64; 2],
        method: SeekMethod,
    ) {
        let at_ns = self.wall_ns;
        self.wall_ns += length_ns;
        self.depth_ns += step.depth * length_ns as f64;
        self.depth_max = self.depth_max.max(step.depth).max(step.in_flight as f64);
        if let Some(flushes) = step.flush_ops {
            *self.flush_ops.get_or_insert(0) += flushes;
        }
        if let Some(load) = step.load_share {
            *self.load_ns.get_or_insert(0.0) += load * length_ns as f64;
        }
        if step.read.ops + step.write.ops > 0 {
            // One estimated step makes the whole an estimate.
            self.method = match (self.method, method) {
                (Some(SeekMethod::Estimated), _) => Some(SeekMethod::Estimated),
                (_, method) => Some(method),
            };
        }
        self.read.add_step(&step.read, at_ns, shares[0], method);
        self.write.add_step(&step.write, at_ns, shares[1], method);
    }

    /// The record of all steps.
    pub(super) fn observed(
        &self,
        target: usize,
        name: &str,
        capacity: Option<&MeasuredCapacity>,
    ) -> ObservedDevice {
        let wall = self.wall_ns.max(1) as f64;
        let both = [(OpKind::Read, &self.read), (OpKind::Write, &self.write)].into_iter();
        let ops = both
            .filter(|(_, direction)| direction.count > 0)
            .map(|(kind, direction)| (kind, direction.observed(self.wall_ns)));
        ObservedDevice {
            target,
            name: name.to_owned(),
            wall_ns: self.wall_ns,
            ops: ops.collect(),
            flush_ops: self.flush_ops,
            queue_depth: self.depth_ns / wall,
            queue_depth_max: self.depth_max,
            seeks: self.method,
            processes: self.busiest(),
            capacity: capacity.cloned(),
            load_share: self.load_ns.map(|load_ns| load_ns / wall),
        }
    }

    fn busiest(&self) -> Vec<ObservedProcess> {
        let mut threads: Vec<&ObservedProcess> = self.threads.values().collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.requests), thread.pid));
        threads.truncate(PROCESSES_MAX);
        threads.into_iter().cloned().collect()
    }
}

impl DirectionProfile {
    fn add_step(&mut self, step: &DirectionStep, at_ns: u64, share: f64, method: SeekMethod) {
        self.count += step.ops;
        self.bytes += step.bytes;
        self.merges += step.merges;
        self.latency_ns += step.latency_ns.unwrap_or(0.0) * step.ops as f64;
        self.seeks += share * step.ops as f64;
        let cell = Cell {
            ops: step.ops,
            bytes: step.bytes,
            ..Cell::default()
        };
        self.series.add(at_ns, &cell, CELLS_MAX);
        if method == SeekMethod::Estimated && step.ops > 0 {
            let mean = step.bytes / step.ops / SECTOR_BYTES * SECTOR_BYTES;
            let bytes = u32::try_from(mean.max(SECTOR_BYTES)).unwrap_or(u32::MAX);
            let random = (share * step.ops as f64).round() as u64;
            let size = self.sizes.entry(bytes).or_default();
            size.random += random.min(step.ops);
            size.sequential += step.ops - random.min(step.ops);
        }
    }

    fn observed(&self, wall_ns: u64) -> ObservedOps {
        let rate = rate_after(&self.series, wall_ns, Settling::WHOLE);
        let sizes = self.sizes.iter();
        let mut sizes: Vec<ObservedSize> = sizes
            .map(|(bytes, counts)| ObservedSize {
                block_bytes: *bytes,
                random: counts.random,
                sequential: counts.sequential,
            })
            .collect();
        sizes.sort_by_key(|size| std::cmp::Reverse(size.random + size.sequential));
        sizes.truncate(SIZES_MAX);
        sizes.sort_by_key(|size| size.block_bytes);
        ObservedOps {
            count: self.count,
            bytes: self.bytes,
            merges: self.merges,
            iops: rate.ops,
            throughput: rate.bytes,
            latency_mean_ns: match self.count {
                0 => None,
                count => Some(self.latency_ns / count as f64),
            },
            seek_share: (self.seeks / self.count.max(1) as f64).min(1.0),
            sizes,
            series: self.series.clone(),
        }
    }
}

/// Streams of one device that are followed at a time. A random request starts a stream, too, so
/// that this many random requests in a row end a sequential one.
const STREAMS_MAX: usize = 128;
/// Requests up to this size are taken for seeks: pages of databases and filesystems.
const RANDOM_BYTES: f64 = 16384.0;
/// Requests from this size on are taken for sequential: read-ahead (128 KiB) merges into them.
const SEQUENTIAL_BYTES: f64 = 262_144.0;

/// Where a request lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// It continues another one.
    Sequential,
    /// It lies elsewhere.
    Random,
}

/// The streams of one device.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestStreams {
    /// Start and end of the latest request of each stream, in sectors; the latest stream first.
    streams: VecDeque<(u64, u64)>,
}

impl RequestStreams {
    /// Where this request lies; `None` for the first one, which has no predecessor.
    pub(super) fn place(&mut self, request: &IssuedRequest) -> Option<Placement> {
        let start = request.sector;
        let end = start.saturating_add(u64::from(request.sectors));
        let is_first = self.streams.is_empty();
        // Two requests of a stream may be sent in reverse order.
        let mut streams = self.streams.iter();
        let found = streams.position(|(first, last)| *last == start || *first == end);
        match found {
            Some(index) => {
                self.streams.remove(index);
            }
            None => self.streams.truncate(STREAMS_MAX - 1),
        }
        self.streams.push_front((start, end));
        match found {
            Some(_) => Some(Placement::Sequential),
            None if is_first => None,
            None => Some(Placement::Random),
        }
    }

    /// Forgets all streams: requests are missing.
    pub(super) fn forget(&mut self) {
        self.streams.clear();
    }
}

/// The estimated share of seeks among the requests of one direction; zero without requests.
pub(super) fn estimated_share(step: &DirectionStep) -> f64 {
    if step.ops == 0 {
        return 0.0;
    }
    let bytes = (step.bytes as f64 / step.ops as f64).max(1.0);
    let by_size = (SEQUENTIAL_BYTES / bytes).log2() / (SEQUENTIAL_BYTES / RANDOM_BYTES).log2();
    // A merge joins neighbours, so what was merged was sequential.
    let alone = step.ops as f64 / (step.ops.saturating_add(step.merges)) as f64;
    by_size.clamp(0.0, 1.0) * alone
}

/// Times are 32 bits wide in the kernel, and so is every counter of a 32-bit kernel.
const WIDTH: u64 = 1 << 32;
/// A step of a counter that is larger than this is no step: the device was replaced.
const STEP_MAX: u64 = 1 << 31;

/// The step of a device; `None` where its counters went backwards, because another device took the
/// name.
pub(super) fn step(
    before: &DiskReading,
    after: &DiskReading,
    length_ns: u64,
) -> Option<DeviceStep> {
    let read = direction(before.read, after.read, length_ns)?;
    let write = direction(before.write, after.write, length_ns)?;
    let flush_ops = match (before.flush_ops, after.flush_ops) {
        (Some(before), Some(after)) => Some(difference(before, after)?),
        _ => None,
    };
    let queued_ms = difference(before.queued_ms, after.queued_ms)?;
    Some(DeviceStep {
        name: after.name.clone(),
        read,
        write,
        flush_ops,
        in_flight: after.in_flight,
        depth: queued_ms as f64 * 1e6 / length_ns.max(1) as f64,
        ..DeviceStep::default()
    })
}

fn direction(
    before: DirectionCounters,
    after: DirectionCounters,
    length_ns: u64,
) -> Option<DirectionStep> {
    let ops = difference(before.ops, after.ops)?;
    let bytes = difference(before.sectors, after.sectors)?.saturating_mul(SECTOR_BYTES);
    let ms = difference(before.ms, after.ms)?;
    let latency_ns = if ops > 0 {
        Some(ms as f64 * 1e6 / ops as f64)
    } else {
        None
    };
    Some(DirectionStep {
        ops,
        merges: difference(before.merges, after.merges)?,
        bytes,
        iops: per_second(ops, length_ns),
        bytes_per_second: per_second(bytes, length_ns),
        latency_ns,
    })
}

fn per_second(amount: u64, length_ns: u64) -> f64 {
    amount as f64 * 1e9 / length_ns.max(1) as f64
}

/// How far a counter went, over the end of its width if need be.
fn difference(before: u64, after: u64) -> Option<u64> {
    match after.checked_sub(before) {
        Some(step) => Some(step),
        None if before < WIDTH => {
            let step = after + (WIDTH - before);
            if step < STEP_MAX { Some(step) } else { None }
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::watch::RequestDirection;

    fn request(sector: u64) -> IssuedRequest {
        IssuedRequest {
            device: (7, 0),
            direction: RequestDirection::Read,
            sector,
            sectors: 8,
            pid: 1,
            name: "x".to_owned(),
        }
    }

    fn random_among(sectors: &[u64]) -> usize {
        let mut streams = RequestStreams::default();
        let placed = sectors
            .iter()
            .filter_map(|sector| streams.place(&request(*sector)));
        placed.filter(|placed| *placed == Placement::Random).count()
    }

    #[test]
    fn several_streams_at_a_time_are_sequential() {
        let streams = |count: u64, length: u64| -> Vec<u64> {
            let step = |at: u64| (0..count).map(move |stream| stream * 1_000_000 + at * 8);
            (0..length).flat_map(step).collect()
        };
        // Each stream but the first begins with a seek.
        assert_eq!(random_among(&streams(1, 100)), 0);
        assert_eq!(random_among(&streams(16, 100)), 15);
        let scattered: Vec<u64> = (0..100).map(|at| at * 7919 * 16).collect();
        assert_eq!(random_among(&scattered), 99);
    }

    #[test]
    fn stream_sent_in_reverse_pairs_or_backward_is_sequential() {
        let backward: Vec<u64> = (0..50).rev().map(|at| at * 8).collect();
        assert_eq!(random_among(&backward), 0);
        let swapped: Vec<u64> = (0..20).flat_map(|at| [at * 16 + 8, at * 16]).collect();
        assert!(random_among(&swapped) <= 20, "{}", random_among(&swapped));
    }

    #[test]
    fn streams_begin_anew_after_a_loss() {
        let mut streams = RequestStreams::default();
        streams.place(&request(0));
        streams.forget();
        assert_eq!(streams.place(&request(8)), None);
    }

    #[test]
    fn estimate_follows_sizes_and_merges() {
        let share = |ops: u64, bytes: u64, merges: u64| {
            estimated_share(&DirectionStep {
                ops,
                bytes: ops * bytes,
                merges,
                ..DirectionStep::default()
            })
        };
        assert_eq!(share(0, 0, 0), 0.0);
        assert_eq!(share(10, 8192, 0), 1.0);
        assert_eq!(share(10, 1 << 20, 0), 0.0);
        assert!((share(10, 65536, 0) - 0.5).abs() < 1e-9);
        assert!((share(10, 8192, 30) - 0.25).abs() < 1e-9);
    }
}

#[cfg(test)]
mod deltas_tests {
    use super::*;

    fn reading(ops: u64, sectors: u64, ms: u64) -> DiskReading {
        DiskReading {
            name: "sda".to_owned(),
            read: DirectionCounters {
                ops,
                merges: 0,
                sectors,
                ms,
            },
            queued_ms: ms,
            ..DiskReading::default()
        }
    }

    #[test]
    fn rates_latency_and_depth_follow_from_two_readings() {
        let step = step(&reading(100, 0, 50), &reading(300, 3200, 1050), 500_000_000).unwrap();
        assert_eq!((step.read.ops, step.read.bytes), (200, 3200 * 512));
        assert!((step.read.iops - 400.0).abs() < 1e-9);
        assert!((step.read.bytes_per_second - 3_276_800.0).abs() < 1e-6);
        assert_eq!(step.read.latency_ns, Some(5e6));
        assert!((step.depth - 2.0).abs() < 1e-9);
        assert_eq!((step.write.ops, step.write.latency_ns), (0, None));
    }

    #[test]
    fn counter_that_wraps_counts_on_and_a_replaced_device_does_not() {
        assert_eq!(difference(WIDTH - 10, 5), Some(15));
        assert_eq!(difference(7, 7), Some(0));
        // A new device of the same name begins at zero.
        assert_eq!(difference(1_000_000, 3), None);
        assert_eq!(difference(WIDTH + 1, 3), None);
        assert!(step(&reading(9, 9, 9), &reading(3, 9, 9), 1).is_none());
    }
}
