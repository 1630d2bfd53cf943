//! Adds up the steps and traced requests of one device to its part of a record.

use super::capacity::{known_load, load_share};
use super::seeks::{Placement, TracedCounts};
use crate::estimate::{Settling, rate_after};
use diskproof_model::measurement::{OpKind, PerOp};
use diskproof_model::observed::{
    MeasuredCapacity, ObservedDevice, ObservedOps, ObservedProcess, ObservedSize,
};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::watch::{
    DeviceStep, DirectionStep, IssuedRequest, RequestDirection, SeekMethod,
};
use std::collections::{BTreeMap, HashMap};

/// Cells of a series: an hour of seconds; longer ones are thinned. More of them make the record of
/// a day larger, fewer make its chart coarser.
pub(super) const CELLS_MAX: usize = 3600;
/// Sizes of requests in the record, the most frequent. Applications use a handful, merges make
/// more.
const SIZES_MAX: usize = 64;
/// Threads in the record, the busiest: more are no cause of the load.
const PROCESSES_MAX: usize = 10;
/// Threads that are counted; the requests of further ones are not assigned to a thread. A machine
/// may start thousands, and each one takes memory.
const THREADS_MAX: usize = 10_000;
/// The kernel counts requests in sectors of this size, whatever the device's own (SECTOR_SHIFT in
/// Linux's include/linux/blk_types.h).
pub(super) const SECTOR_BYTES: u64 = 512;

/// The shares of seeks among the reads and among the writes of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeekShares {
    pub(super) reads: f64,
    pub(super) writes: f64,
}

/// The time of a step, in nanoseconds after the start of the observer.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepTime {
    pub(super) start_ns: u64,
    pub(super) length_ns: u64,
}

/// What was seen of a device.
#[derive(Debug, Clone)]
pub(super) struct DeviceProfile {
    interval_ns: u64,
    /// The time of all steps.
    wall_ns: u64,
    /// The end of the latest step, in nanoseconds after the start of the observer.
    end_ns: u64,
    /// The whole intervals up to then in which the device was not watched. The series have no cells
    /// for them.
    skipped_ns: u64,
    read: DirectionProfile,
    write: DirectionProfile,
    /// `None` where the kernel does not count flushes.
    flush_ops: Option<u64>,
    /// The sum over all steps of mean queue depth times length.
    depth_ns: f64,
    depth_max: f64,
    /// The sum over all steps of the known load times length: that of the measured directions.
    load_ns: f64,
    /// How the seeks were found; `None` before the first request.
    method: Option<SeekMethod>,
    /// By process and name.
    threads: HashMap<(u32, String), ObservedProcess>,
}

impl DeviceProfile {
    pub(super) fn new(interval_ns: u64) -> Self {
        Self {
            interval_ns: interval_ns.max(1),
            wall_ns: 0,
            end_ns: 0,
            skipped_ns: 0,
            read: DirectionProfile::new(interval_ns),
            write: DirectionProfile::new(interval_ns),
            flush_ops: None,
            depth_ns: 0.0,
            depth_max: 0.0,
            load_ns: 0.0,
            method: None,
            threads: HashMap::new(),
        }
    }

    /// Adds a traced request.
    pub(super) fn add_request(&mut self, request: &IssuedRequest, placement: Placement) {
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        let direction = match request.direction {
            RequestDirection::Read => &mut self.read,
            RequestDirection::Write => &mut self.write,
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
            RequestDirection::Read => thread.read_bytes += bytes,
            RequestDirection::Write => thread.write_bytes += bytes,
        }
    }

    /// Adds a step, with the seeks in it and how they were found, and what the device can do.
    pub(super) fn add_step(
        &mut self,
        step: &DeviceStep,
        time: StepTime,
        seeks: SeekShares,
        method: SeekMethod,
        capacity: Option<&MeasuredCapacity>,
    ) {
        let length_ns = time.length_ns;
        let at_ns = self.place_in_series(time);
        self.wall_ns += length_ns;
        self.depth_ns += step.depth * length_ns as f64;
        self.depth_max = self.depth_max.max(step.depth).max(step.in_flight as f64);
        if let Some(flushes) = step.flush_ops {
            *self.flush_ops.get_or_insert(0) += flushes;
        }
        if let Some(capacity) = capacity {
            self.load_ns += known_load(step, capacity) * length_ns as f64;
        }
        if step.read.ops + step.write.ops > 0 {
            // One estimated step makes the whole an estimate.
            self.method = match (self.method, method) {
                (Some(SeekMethod::Estimated), _) => Some(SeekMethod::Estimated),
                (_, method) => Some(method),
            };
        }
        self.read.add_step(&step.read, at_ns, seeks.reads, method);
        self.write
            .add_step(&step.write, at_ns, seeks.writes, method);
    }

    /// The start of a step in the series. A step ends late by a different time each, but the end is
    /// due every interval since the start of the observer: the cells are those intervals, also of a
    /// device that came at the end of a late step.
    fn place_in_series(&mut self, time: StepTime) -> u64 {
        let last = self.end_ns / self.interval_ns;
        let next = time.start_ns / self.interval_ns;
        self.skipped_ns += next.saturating_sub(last) * self.interval_ns;
        self.end_ns = time.start_ns + time.length_ns;
        time.start_ns - self.skipped_ns
    }

    /// The load over the capacity, of all steps together; `None` where a direction with load was
    /// never measured. The time of such a load does not count as idle.
    fn load_share(&self, capacity: &MeasuredCapacity) -> Option<f64> {
        let whole = DeviceStep {
            read: self.read.whole_step(self.wall_ns),
            write: self.write.whole_step(self.wall_ns),
            ..DeviceStep::default()
        };
        load_share(&whole, capacity)?;
        Some(self.load_ns / self.wall_ns.max(1) as f64)
    }

    /// The record of all steps.
    pub(super) fn observed(
        &self,
        target: usize,
        name: &str,
        capacity: Option<&MeasuredCapacity>,
    ) -> ObservedDevice {
        let wall = self.wall_ns.max(1) as f64;
        let mut ops = PerOp::new();
        for (kind, direction) in [(OpKind::Read, &self.read), (OpKind::Write, &self.write)] {
            if direction.count > 0 {
                ops.insert(kind, direction.observed(self.wall_ns));
            }
        }
        ObservedDevice {
            target,
            name: name.to_owned(),
            wall_ns: self.wall_ns,
            ops,
            flush_ops: self.flush_ops,
            queue_depth: self.depth_ns / wall,
            queue_depth_max: self.depth_max,
            seeks: self.method,
            processes: self.busiest_threads(),
            capacity: capacity.cloned(),
            load_share: match capacity {
                Some(capacity) if self.wall_ns > 0 => self.load_share(capacity),
                _ => None,
            },
        }
    }

    /// The threads with the most requests, as many as a record holds.
    fn busiest_threads(&self) -> Vec<ObservedProcess> {
        let mut threads: Vec<&ObservedProcess> = self.threads.values().collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.requests), thread.pid));
        threads.truncate(PROCESSES_MAX);
        threads.into_iter().cloned().collect()
    }
}

/// The reads or the writes of a device.
#[derive(Debug, Clone)]
struct DirectionProfile {
    count: u64,
    bytes: u64,
    merges: u64,
    /// The sum of all latencies.
    latency_ns: f64,
    /// The number of seeks, which is no whole one where it is estimated.
    seeks: f64,
    /// Requests by size.
    sizes: BTreeMap<u32, TracedCounts>,
    series: TimeSeries,
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

    /// Adds a step that began at `at_ns`. Where requests are traced, `add_request` adds their
    /// sizes.
    fn add_step(&mut self, step: &DirectionStep, at_ns: u64, seek_share: f64, method: SeekMethod) {
        self.count += step.ops;
        self.bytes += step.bytes;
        self.merges += step.merges;
        self.latency_ns += step.latency_ns.unwrap_or(0.0) * step.ops as f64;
        self.seeks += seek_share * step.ops as f64;
        let cell = Cell {
            ops: step.ops,
            bytes: step.bytes,
            ..Cell::default()
        };
        self.series.add(at_ns, &cell, CELLS_MAX);
        if method == SeekMethod::Estimated && step.ops > 0 {
            let mean = step.bytes / step.ops / SECTOR_BYTES * SECTOR_BYTES;
            let bytes = u32::try_from(mean.max(SECTOR_BYTES)).unwrap_or(u32::MAX);
            let random = (seek_share * step.ops as f64).round() as u64;
            let size = self.sizes.entry(bytes).or_default();
            size.random += random.min(step.ops);
            size.sequential += step.ops - random.min(step.ops);
        }
    }

    /// All steps as one.
    fn whole_step(&self, wall_ns: u64) -> DirectionStep {
        let seconds = wall_ns.max(1) as f64 / 1e9;
        DirectionStep {
            ops: self.count,
            bytes: self.bytes,
            iops: self.count as f64 / seconds,
            bytes_per_second: self.bytes as f64 / seconds,
            ..DirectionStep::default()
        }
    }

    fn observed(&self, wall_ns: u64) -> ObservedOps {
        let rate = rate_after(&self.series, wall_ns, Settling::WHOLE);
        let mut sizes: Vec<ObservedSize> = Vec::new();
        for (block_bytes, counts) in &self.sizes {
            sizes.push(ObservedSize {
                block_bytes: *block_bytes,
                random: counts.random,
                sequential: counts.sequential,
            });
        }
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
