//! The load of one device over all steps, added up.

use super::seeks::Placement;
use crate::estimate::{Settling, rate_after};
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{
    MeasuredCapacity, ObservedDevice, ObservedOps, ObservedProcess, ObservedSize,
};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::watch::{DeviceStep, DirectionStep, IssuedRequest, SeekMethod};
use std::collections::{BTreeMap, HashMap};

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
    threads: HashMap<(u32, String), ThreadLoad>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadLoad {
    requests: u64,
    read_bytes: u64,
    write_bytes: u64,
}

#[derive(Debug, Clone)]
struct DirectionProfile {
    count: u64,
    bytes: u64,
    merges: u64,
    latency_ns: f64,
    seeks: f64,
    /// Random and sequential requests by size.
    sizes: BTreeMap<u32, (u64, u64)>,
    series: TimeSeries,
}

/// What tracing shows of a step.
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

impl DeviceProfile {
    pub(super) fn new(interval_ns: u64) -> Self {
        let direction = || DirectionProfile {
            count: 0,
            bytes: 0,
            merges: 0,
            latency_ns: 0.0,
            seeks: 0.0,
            sizes: BTreeMap::new(),
            series: TimeSeries::new(interval_ns),
        };
        Self {
            wall_ns: 0,
            read: direction(),
            write: direction(),
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
        let size = direction.sizes.entry(block_bytes).or_default();
        match placement {
            Placement::Random => size.0 += 1,
            Placement::Sequential => size.1 += 1,
        }
        let key = (request.pid, request.name.clone());
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&key) {
            return;
        }
        let thread = self.threads.entry(key).or_default();
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
        (target, name): (usize, &str),
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
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_by_key(|((pid, _), load)| (std::cmp::Reverse(load.requests), *pid));
        threads.truncate(PROCESSES_MAX);
        let busiest = threads
            .into_iter()
            .map(|((pid, name), load)| ObservedProcess {
                pid: *pid,
                name: name.clone(),
                requests: load.requests,
                read_bytes: load.read_bytes,
                write_bytes: load.write_bytes,
            });
        busiest.collect()
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
            size.0 += random.min(step.ops);
            size.1 += step.ops - random.min(step.ops);
        }
    }

    fn observed(&self, wall_ns: u64) -> ObservedOps {
        let whole = Settling {
            settling_ns: 0,
            settled: None,
        };
        let rate = rate_after(&self.series, wall_ns, whole);
        let sizes = self.sizes.iter();
        let mut sizes: Vec<ObservedSize> = sizes
            .map(|(bytes, (random, sequential))| ObservedSize {
                block_bytes: *bytes,
                random: *random,
                sequential: *sequential,
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
            latency_mean_ns: (self.count > 0).then(|| self.latency_ns / self.count as f64),
            seek_share: (self.seeks / self.count.max(1) as f64).min(1.0),
            sizes,
            series: self.series.clone(),
        }
    }
}
