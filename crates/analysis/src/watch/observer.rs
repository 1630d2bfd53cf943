//! Observes all watched devices step by step: it takes the readings and traced requests of a step,
//! and returns the step to show and the record of all steps.

use super::capacity::load_share;
use super::counters::step_between;
use super::profile::{DeviceProfile, SECTOR_BYTES, SeekShares, StepTime};
use super::seeks::{RequestStreams, TracedCounts, estimated_share};
use diskproof_model::observed::{MeasuredCapacity, ObservedDevice};
use diskproof_model::watch::{
    BusyProcess, DeviceStep, DiskReading, IssuedRequest, RequestDirection, SeekMethod, SeekShare,
    WatchStep,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Threads shown per device, the busiest: more do not fit beside the figures.
const PROCESSES_SHOWN: usize = 5;
/// If the traced requests have less than this share of the counted bytes, then too many are missing
/// to see which follow each other. Bytes decide, not requests: the kernel counts each empty flush
/// as a write, and a commit is a write and a flush. Chosen, not measured.
const TRACED_SHARE_MIN: f64 = 0.8;
/// With fewer requests, those that were in flight at the ends of the step decide the share.
const REQUESTS_MIN: u64 = 100;

/// A device to watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedLoad {
    /// Kernel name.
    pub name: String,
    /// Major and minor number of the whole disk.
    pub disk: (u32, u32),
    /// Its sectors on that disk.
    pub sectors: Range<u64>,
    /// Index into the targets of the record.
    pub target: usize,
    /// What the disk can do.
    pub capacity: Option<MeasuredCapacity>,
}

impl WatchedLoad {
    /// True if a request went to this device: to its sectors of the whole disk.
    fn contains(&self, request: &IssuedRequest) -> bool {
        request.device == self.disk && self.sectors.contains(&request.sector)
    }
}

/// The readings at the end of a step.
#[derive(Debug, Clone, Default)]
pub struct StepInput {
    /// Length of the step in nanoseconds.
    pub length_ns: u64,
    /// The counters of all devices.
    pub readings: Vec<DiskReading>,
    /// The requests in the step; `None` where they are not traced.
    pub requests: Option<Vec<IssuedRequest>>,
    /// True if some of the requests are missing.
    pub is_incomplete: bool,
    /// The busiest processes.
    pub processes: Vec<BusyProcess>,
}

/// The watched devices, from one reading to the next.
#[derive(Debug, Clone)]
pub struct Observer {
    interval_ns: u64,
    elapsed_ns: u64,
    devices: Vec<ObservedLoad>,
}

/// A watched device, and what was seen of it so far.
#[derive(Debug, Clone)]
struct ObservedLoad {
    watched: WatchedLoad,
    /// The latest reading; `None` once the device is gone.
    latest: Option<DiskReading>,
    streams: RequestStreams,
    /// Bytes of traced requests that the counters did not yet have: those in flight at the end of a
    /// step, and those sent between the two readings.
    ahead_bytes: u64,
    profile: DeviceProfile,
}

impl Observer {
    /// Watches nothing yet, in steps of this length.
    pub fn new(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            elapsed_ns: 0,
            devices: Vec::new(),
        }
    }

    /// Watches a device from this reading on.
    pub fn add(&mut self, watched: WatchedLoad, reading: DiskReading) {
        self.devices.push(ObservedLoad {
            watched,
            latest: Some(reading),
            streams: RequestStreams::default(),
            ahead_bytes: 0,
            profile: DeviceProfile::new(self.interval_ns),
        });
    }

    /// True if a device of this name is watched and there.
    pub fn watches(&self, name: &str) -> bool {
        self.devices
            .iter()
            .any(|known| known.watched.name == name && known.latest.is_some())
    }

    /// True if any watched device is there.
    pub fn has_devices(&self) -> bool {
        self.devices.iter().any(|known| known.latest.is_some())
    }

    /// The load of all devices since the previous reading. The caller passes the steps in the order
    /// of time, without a gap. A device whose counters began anew counts from the next step on. One
    /// that is gone is never continued: a later device of its name may be another disk, which the
    /// caller adds.
    pub fn step(&mut self, input: &StepInput) -> WatchStep {
        let time = StepTime {
            start_ns: self.elapsed_ns,
            length_ns: input.length_ns,
        };
        self.elapsed_ns = self.elapsed_ns.saturating_add(input.length_ns);
        let mut shown = WatchStep {
            elapsed_ns: self.elapsed_ns,
            length_ns: input.length_ns,
            processes: input.processes.clone(),
            ..WatchStep::default()
        };
        for known in &mut self.devices {
            let Some(before) = known.latest.take() else {
                continue;
            };
            let name = &known.watched.name;
            let Some(now) = input.readings.iter().find(|now| &now.name == name) else {
                shown.vanished.push(name.clone());
                continue;
            };
            known.latest = Some(now.clone());
            if let Some(step) = step_between(&before, now, input.length_ns) {
                shown.devices.push(known.complete(step, time, input));
            } else {
                known.streams.forget();
            }
        }
        shown
    }

    /// The load of all devices so far.
    pub fn observed(&self) -> Vec<ObservedDevice> {
        let mut observed = Vec::new();
        for device in &self.devices {
            let watched = &device.watched;
            let capacity = watched.capacity.as_ref();
            observed.push(
                device
                    .profile
                    .observed(watched.target, &watched.name, capacity),
            );
        }
        observed
    }
}

impl ObservedLoad {
    /// Adds seeks, threads and load to a step, and the step to the profile. The order matters: the
    /// traced requests are placed before the step is added, and the streams forget what they know
    /// wherever requests are missing.
    fn complete(&mut self, mut step: DeviceStep, time: StepTime, input: &StepInput) -> DeviceStep {
        if input.is_incomplete {
            self.streams.forget();
        }
        let own: Vec<&IssuedRequest> = input
            .requests
            .iter()
            .flatten()
            .filter(|request| self.watched.contains(request))
            .collect();
        let estimated = SeekShares {
            reads: estimated_share(&step.read),
            writes: estimated_share(&step.write),
        };
        let (shares, method) = if self.is_traced(&own, &step) {
            (self.traced_shares(&own, estimated), SeekMethod::Traced)
        } else {
            self.streams.forget();
            (estimated, SeekMethod::Estimated)
        };
        let counted = step.read.ops + step.write.ops;
        if counted > 0 {
            let seeks = shares.reads * step.read.ops as f64 + shares.writes * step.write.ops as f64;
            step.seeks = Some(SeekShare {
                share: seeks / counted as f64,
                method,
            });
        }
        step.processes = busiest_threads(&own);
        let capacity = self.watched.capacity.as_ref();
        if let Some(capacity) = capacity {
            step.load_share = load_share(&step, capacity);
        }
        self.profile.add_step(&step, time, shares, method, capacity);
        step
    }

    /// True if the traced requests are those that the counters show.
    fn is_traced(&mut self, own: &[&IssuedRequest], step: &DeviceStep) -> bool {
        let own_bytes = own
            .iter()
            .map(|request| u64::from(request.sectors) * SECTOR_BYTES);
        let traced_bytes = self.ahead_bytes.saturating_add(own_bytes.clone().sum());
        let counted_bytes = step.read.bytes.saturating_add(step.write.bytes);
        // What was traced earlier cannot be ahead for longer than a step.
        let ahead_bytes = traced_bytes.saturating_sub(counted_bytes);
        self.ahead_bytes = ahead_bytes.min(own_bytes.sum());
        let is_small = step.read.ops + step.write.ops < REQUESTS_MIN;
        let is_complete = traced_bytes as f64 >= TRACED_SHARE_MIN * counted_bytes as f64;
        !own.is_empty() && (is_small || is_complete)
    }

    /// The seeks among traced reads and writes, which it adds to the profile. Of a direction
    /// without a traced request the estimate counts.
    fn traced_shares(&mut self, own: &[&IssuedRequest], estimated: SeekShares) -> SeekShares {
        let mut reads = TracedCounts::default();
        let mut writes = TracedCounts::default();
        for request in own {
            let Some(placement) = self.streams.place(request) else {
                continue;
            };
            match request.direction {
                RequestDirection::Read => reads.add(placement),
                RequestDirection::Write => writes.add(placement),
            }
            self.profile.add_request(request, placement);
        }
        let mut shares = estimated;
        if reads.total() > 0 {
            shares.reads = reads.random_share();
        }
        if writes.total() > 0 {
            shares.writes = writes.random_share();
        }
        shares
    }
}

/// The threads that sent most of the requests.
fn busiest_threads(requests: &[&IssuedRequest]) -> Vec<BusyProcess> {
    let mut threads: BTreeMap<(u32, &str), BusyProcess> = BTreeMap::new();
    for request in requests {
        let thread = threads
            .entry((request.pid, &request.name))
            .or_insert_with(|| BusyProcess {
                pid: request.pid,
                name: request.name.clone(),
                requests: Some(0),
                read_bytes: 0,
                write_bytes: 0,
            });
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        thread.requests = thread.requests.map(|count| count + 1);
        match request.direction {
            RequestDirection::Read => thread.read_bytes += bytes,
            RequestDirection::Write => thread.write_bytes += bytes,
        }
    }
    let mut threads: Vec<BusyProcess> = threads.into_values().collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.requests), thread.pid));
    threads.truncate(PROCESSES_SHOWN);
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::watch::DirectionCounters;

    const SECOND_NS: u64 = 1_000_000_000;

    fn watched(name: &str, minor: u32) -> WatchedLoad {
        WatchedLoad {
            name: name.to_owned(),
            disk: (7, minor),
            sectors: 0..1 << 30,
            target: minor as usize,
            capacity: None,
        }
    }

    fn reading(name: &str, reads: u64, writes: u64) -> DiskReading {
        let counters = |ops: u64| DirectionCounters {
            ops,
            merges: 0,
            sectors: ops * 16,
            ms: ops,
        };
        DiskReading {
            name: name.to_owned(),
            read: counters(reads),
            write: counters(writes),
            ..DiskReading::default()
        }
    }

    fn request(sector: u64, direction: RequestDirection) -> IssuedRequest {
        IssuedRequest {
            device: (7, 0),
            direction,
            sector,
            sectors: 16,
            pid: 42,
            name: "postgres".to_owned(),
        }
    }

    fn input(readings: Vec<DiskReading>, requests: Option<Vec<IssuedRequest>>) -> StepInput {
        StepInput {
            length_ns: SECOND_NS,
            readings,
            requests,
            ..StepInput::default()
        }
    }

    #[test]
    fn devices_appear_and_vanish_between_steps() {
        let mut observer = Observer::new(SECOND_NS);
        observer.add(watched("loop0", 0), reading("loop0", 0, 0));
        let shown = observer.step(&input(vec![reading("loop0", 10, 0)], None));
        assert_eq!((shown.devices[0].read.ops, shown.vanished.len()), (10, 0));
        let shown = observer.step(&input(vec![reading("loop1", 5, 5)], None));
        assert_eq!(
            (shown.devices.len(), shown.vanished),
            (0, vec!["loop0".to_owned()])
        );
        assert!(!observer.has_devices());
        observer.add(watched("loop1", 1), reading("loop1", 5, 5));
        // Another disk under the name: the first one is not continued.
        assert!(!observer.watches("loop0") && observer.watches("loop1"));
        let back = vec![reading("loop0", 3, 0), reading("loop1", 6, 5)];
        let shown = observer.step(&input(back, None));
        assert_eq!((shown.devices.len(), shown.devices[0].read.ops), (1, 1));
        observer.add(watched("loop0", 2), reading("loop0", 3, 0));
        observer.step(&input(vec![reading("loop0", 7, 0)], None));
        let observed: Vec<(usize, u64)> = observer
            .observed()
            .iter()
            .map(|device| (device.target, device.requests()))
            .collect();
        assert_eq!(observed, [(0, 10), (1, 1), (2, 4)]);
    }

    /// Steps end late by these parts of a second.
    const LATE_NS: [u64; 6] = [400_000_000, 300_000_000, 0, 350_000_000, 100_000_000, 0];

    /// A device that comes at the end of a late step has a cell for each later step, as one that
    /// was there from the start.
    #[test]
    fn series_of_a_device_that_appears_late_has_a_cell_for_each_step() {
        let mut observer = Observer::new(SECOND_NS);
        observer.add(watched("loop0", 0), reading("loop0", 0, 0));
        let mut ended_ns = 0;
        for (step, late_ns) in (0..).zip(LATE_NS) {
            let ends_ns = (step + 1) * SECOND_NS + late_ns;
            let readings = vec![
                reading("loop0", 10 * (step + 1), 0),
                reading("loop1", 10 * step, 0),
            ];
            observer.step(&StepInput {
                length_ns: ends_ns - ended_ns,
                ..input(readings, None)
            });
            ended_ns = ends_ns;
            if step == 0 {
                observer.add(watched("loop1", 1), reading("loop1", 0, 0));
            }
        }
        let mut counts = Vec::new();
        for device in observer.observed() {
            let cells = &device.ops[&OpKind::Read].series.cells;
            counts.push(cells.iter().map(|cell| cell.ops).collect::<Vec<u64>>());
        }
        assert_eq!(counts, [vec![10; 6], vec![10; 5]]);
    }

    /// Only reads were measured. A load of writes is unknown, and its time not idle.
    #[test]
    fn load_of_writes_without_a_limit_is_unknown_in_the_record() {
        let limits = MeasuredCapacity {
            run_id: String::new(),
            started: String::new(),
            verb: "check".to_owned(),
            read_iops: Some(1000.0),
            read_bytes_per_second: Some(1e9),
            write_iops: None,
            write_bytes_per_second: None,
        };
        let mut observer = Observer::new(SECOND_NS);
        let mut device = watched("loop0", 0);
        device.capacity = Some(limits);
        observer.add(device, reading("loop0", 0, 0));
        observer.step(&input(vec![reading("loop0", 500, 0)], None));
        // A write in a second of few reads, as a filesystem makes it. The reads count.
        let shown = observer.step(&input(vec![reading("loop0", 550, 1)], None));
        assert_eq!(shown.devices[0].load_share, None);
        assert_eq!(observer.observed()[0].load_share, Some(0.275));
        observer.step(&input(vec![reading("loop0", 550, 5000)], None));
        observer.step(&input(vec![reading("loop0", 550, 5000)], None));
        assert_eq!(observer.observed()[0].load_share, None);
    }

    #[test]
    fn seek_share_of_traced_requests_is_exact_per_direction() {
        use RequestDirection::{Read, Write};
        let mut observer = Observer::new(SECOND_NS);
        observer.add(watched("loop0", 0), reading("loop0", 0, 0));
        // 1 of 4 reads continues the one before; all writes but the first are sequential.
        let mut requests = vec![request(1 << 20, Read)];
        for at in 0..25_u64 {
            let far = 100_000 + at * 10_000;
            let reads = [far, far + 16, far + 5000, far + 7000];
            requests.extend(reads.map(|sector| request(sector, Read)));
            requests.push(request(at * 16, Write));
        }
        let shown = observer.step(&input(vec![reading("loop0", 101, 25)], Some(requests)));
        let seeks = shown.devices[0].seeks.unwrap();
        assert_eq!(seeks.method, SeekMethod::Traced);
        let expected = (0.75 * 101.0 + 1.0 / 25.0 * 25.0) / 126.0;
        assert!((seeks.share - expected).abs() < 1e-9, "{seeks:?}");
        assert_eq!(shown.devices[0].processes[0].requests, Some(126));
        let observed = &observer.observed()[0];
        let read = &observed.ops[&OpKind::Read];
        assert_eq!((read.sizes.len(), read.sizes[0].block_bytes), (1, 8192));
        assert_eq!((read.sizes[0].random, read.sizes[0].sequential), (75, 25));
        assert!((observed.seek_share().unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn incomplete_trace_falls_back_to_the_estimate() {
        let mut observer = Observer::new(SECOND_NS);
        observer.add(watched("loop0", 0), reading("loop0", 0, 0));
        let few = vec![request(0, RequestDirection::Read); 5];
        let shown = observer.step(&input(vec![reading("loop0", 1000, 0)], Some(few)));
        let seeks = shown.devices[0].seeks.unwrap();
        assert_eq!((seeks.method, seeks.share), (SeekMethod::Estimated, 1.0));
        assert_eq!(observer.observed()[0].seeks, Some(SeekMethod::Estimated));
    }

    #[test]
    fn flushes_that_count_as_writes_do_not_hide_the_trace() {
        use RequestDirection::Write;
        let mut observer = Observer::new(SECOND_NS);
        observer.add(watched("loop0", 0), reading("loop0", 0, 0));
        // A log: 500 writes one after the other, and an empty flush behind each.
        let log: Vec<IssuedRequest> = (0..500).map(|at| request(at * 16, Write)).collect();
        let mut counted = reading("loop0", 0, 500);
        counted.write.ops += 500;
        let shown = observer.step(&input(vec![counted], Some(log)));
        let seeks = shown.devices[0].seeks.unwrap();
        assert_eq!((seeks.method, seeks.share), (SeekMethod::Traced, 0.0));
    }

    #[test]
    fn requests_traced_with_the_step_before_are_not_missing() {
        use RequestDirection::Read;
        let mut observer = Observer::new(SECOND_NS);
        observer.add(watched("loop0", 0), reading("loop0", 0, 0));
        let scan = |range: std::ops::Range<u64>| -> Option<Vec<IssuedRequest>> {
            Some(range.map(|at| request(at * 16, Read)).collect())
        };
        // The trace was read 0.4 s after the counters.
        observer.step(&input(vec![reading("loop0", 1000, 0)], scan(0..1400)));
        let shown = observer.step(&input(vec![reading("loop0", 2000, 0)], scan(1400..2000)));
        let seeks = shown.devices[0].seeks.unwrap();
        assert_eq!((seeks.method, seeks.share), (SeekMethod::Traced, 0.0));
        // Requests that are missing later are missing.
        let shown = observer.step(&input(vec![reading("loop0", 3000, 0)], scan(2000..2600)));
        let seeks = shown.devices[0].seeks.unwrap();
        assert_eq!(seeks.method, SeekMethod::Estimated);
    }

    #[test]
    fn requests_of_another_partition_do_not_count() {
        let mut observer = Observer::new(SECOND_NS);
        let part = WatchedLoad {
            sectors: 1000..2000,
            ..watched("loop0p1", 0)
        };
        observer.add(part, reading("loop0p1", 0, 0));
        let requests = vec![
            request(1000, RequestDirection::Read),
            request(1016, RequestDirection::Read),
            request(5000, RequestDirection::Read),
        ];
        let shown = observer.step(&input(vec![reading("loop0p1", 2, 0)], Some(requests)));
        assert_eq!(shown.devices[0].processes[0].requests, Some(2));
    }
}
