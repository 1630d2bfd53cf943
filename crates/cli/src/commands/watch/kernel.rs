//! Reads the kernel and the server at the end of each step of a watched load, and hands the
//! readings to the arithmetic.

use super::devices::devices_with_names;
use super::server::ServerWatch;
use crate::saved::capacities;
use crate::stdio::Verbosity;
use anyhow::Context as _;
use diskproof_analysis::watch::{Observer, StepInput, WatchedLoad};
use diskproof_device::{
    ProcessActivity, RequestTrace, WatchedDevice, disk_sequence, lists_block_devices, read_disks,
    whole_devices,
};
use diskproof_engine::StartInstant;
use diskproof_model::observed::{ObservedDevice, ObservedRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::counted;
use diskproof_model::watch::{DiskReading, WatchStep};
use diskproof_report::terminal::{WatchFacts, hidden_processes_text, seek_method_text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// The devices and the server to watch.
pub(super) struct WatchRequest<'a> {
    /// Without any, all whole devices are watched, also those that appear later.
    pub named_devices: Vec<WatchedDevice>,
    /// Length of a step.
    pub interval_ns: u64,
    /// The connection string of a PostgreSQL server.
    pub postgres: Option<&'a str>,
    /// The history that says what each disk can do, as the user named it.
    pub history: Option<PathBuf>,
}

/// The load of others while it is watched.
pub(super) struct WatchedKernel {
    sources: Sources,
    observer: Observer,
    /// The kernel names of the devices that the user named; empty where all are watched.
    named: Vec<String>,
    /// The identities of the watched devices, in the order in which the observer got them.
    targets: Vec<TargetIdentity>,
    facts: WatchFacts,
    history: Option<PathBuf>,
    interval_ns: u64,
    /// Whole devices that had a size once. A detached loop device keeps its name, but has no size.
    had_size: BTreeSet<String>,
    /// The number of the disk behind each watched name, where the kernel has one.
    disk_sequences: BTreeMap<String, u64>,
    start: WatchStart,
    /// When the counters were read last, which is the end of the newest step.
    read_at: Instant,
}

/// The load that was watched, and the devices that had it.
pub(super) struct ObservedLoad {
    pub record: ObservedRecord,
    /// The devices that were named or had requests.
    pub targets: Vec<TargetIdentity>,
}

impl WatchedKernel {
    /// Begins to watch. The order matters. Finding the devices and opening the sources comes first,
    /// because a server may take long to accept a session. Only then are the counters and the
    /// clocks read: the first step begins there. What the trace and the server have from before
    /// that belongs to no step, and is dropped last.
    pub(super) fn start(request: WatchRequest<'_>, verbosity: Verbosity) -> anyhow::Result<Self> {
        let mut named = Vec::new();
        for device in &request.named_devices {
            named.push(device.name.clone());
        }
        let had_size: BTreeSet<String> = whole_devices().into_iter().collect();
        let devices = if named.is_empty() {
            let names: Vec<&String> = had_size.iter().collect();
            devices_with_names(&names)
        } else {
            request.named_devices.clone()
        };
        let mut facts = WatchFacts::default();
        let mut sources = Sources::open(&request, &named, &mut facts, verbosity)?;
        let readings = read_counters()?;
        if !lists_block_devices() && !readings.is_empty() {
            // Nothing else tells disks from their partitions.
            anyhow::bail!(
                "/sys shows no block device, although the kernel counts the requests of {}; mount \
                 sysfs, or watch from outside of the container",
                counted(readings.len() as u64, "device")
            );
        }
        let start = WatchStart::now();
        sources.begin_steps(start.monotonic, &mut facts);
        let mut kernel = Self {
            sources,
            observer: Observer::new(request.interval_ns),
            named,
            targets: Vec::new(),
            facts,
            history: request.history,
            interval_ns: request.interval_ns,
            had_size,
            disk_sequences: BTreeMap::new(),
            start,
            read_at: start.monotonic,
        };
        kernel.watch_devices(devices, &readings);
        Ok(kernel)
    }

    /// The instant on the wall clock at which the first step began.
    pub(super) fn start_wall(&self) -> SystemTime {
        self.start.wall
    }

    /// The kernel names of the devices that the user named; empty where all are watched.
    pub(super) fn named_devices(&self) -> &[String] {
        &self.named
    }

    /// The facts that the view states before the first step.
    pub(super) fn facts(&self) -> &WatchFacts {
        &self.facts
    }

    /// The number of the interval, from 1, at whose end the next step ends. Late steps do not move
    /// the later ones.
    pub(super) fn next_interval(&self) -> u64 {
        let read_after = self.read_at.duration_since(self.start.monotonic);
        interval_after_reading(read_after.as_nanos() as u64, self.interval_ns)
    }

    /// The instant at which the interval of this number ends.
    pub(super) fn end_of_interval(&self, number: u64) -> Instant {
        self.start.monotonic + Duration::from_nanos(self.interval_ns.saturating_mul(number))
    }

    /// Takes the traced requests out of the kernel's buffers, which would lose some when full.
    pub(super) fn empty_trace_buffers(&mut self) {
        if let Some(trace) = &mut self.sources.trace {
            trace.collect();
        }
    }

    /// Ends a step now, and returns what happened in it. A device that appeared during the step is
    /// watched from the next one on.
    pub(super) fn end_step(&mut self) -> anyhow::Result<WatchStep> {
        let reading = self.read_kernel()?;
        let mut step = self.observer.step(&reading.input);
        if let Some(server) = &mut self.sources.server {
            step.server = Some(server.view());
            self.facts.server = server.facts();
        }
        let readings = [reading.input.readings, reading.replaced].concat();
        self.watch_new_devices(&reading.whole_devices, &readings);
        self.had_size.extend(reading.whole_devices);
        Ok(step)
    }

    /// Reads the kernel at the end of a step. The counters come before the trace: a request between
    /// both counts in the next step and is traced in this one.
    fn read_kernel(&mut self) -> anyhow::Result<KernelReading> {
        let mut readings = read_counters()?;
        let now = Instant::now();
        let length = now.duration_since(self.read_at);
        self.read_at = now;
        let mut requests = None;
        let mut is_incomplete = false;
        if let Some(trace) = &mut self.sources.trace {
            let batch = trace.read();
            requests = Some(batch.requests);
            is_incomplete = batch.is_incomplete;
        }
        let whole: BTreeSet<String> = whole_devices().into_iter().collect();
        readings.retain(|reading| !self.is_detached(&reading.name, &whole));
        let (replaced, readings): (Vec<DiskReading>, Vec<DiskReading>) = readings
            .into_iter()
            .partition(|reading| self.is_replaced(&reading.name));
        let active = self.sources.processes.step();
        self.facts.hidden_processes = active.hidden;
        let input = StepInput {
            length_ns: length.as_nanos() as u64,
            is_incomplete,
            requests,
            processes: active.busiest,
            readings,
        };
        Ok(KernelReading {
            input,
            whole_devices: whole,
            replaced,
        })
    }

    /// True for a watched device whose name another disk has taken. Its counters may go on.
    fn is_replaced(&self, name: &str) -> bool {
        match self.disk_sequences.get(name) {
            Some(watched) => disk_sequence(name).is_some_and(|now| now != *watched),
            None => false,
        }
    }

    /// True for a device that had a size and is none of the `whole` devices that have one now.
    fn is_detached(&self, name: &str, whole: &BTreeSet<String>) -> bool {
        self.had_size.contains(name) && !whole.contains(name)
    }

    /// Watches these devices from now on. One without a reading is skipped.
    fn watch_devices(&mut self, devices: Vec<WatchedDevice>, readings: &[DiskReading]) {
        let identities: Vec<&TargetIdentity> =
            devices.iter().map(|device| &device.identity).collect();
        let measured = capacities(&identities, self.history.as_deref());
        for (device, capacity) in devices.into_iter().zip(measured) {
            let Some(reading) = readings.iter().find(|reading| reading.name == device.name) else {
                continue;
            };
            if !self.named.is_empty() || device.is_disk || capacity.is_some() {
                self.facts
                    .capacities
                    .push((device.name.clone(), capacity.clone()));
            }
            let watched = WatchedLoad {
                name: device.name,
                disk: device.disk,
                sectors: device.sectors,
                target: self.targets.len(),
                capacity,
            };
            match disk_sequence(&watched.name) {
                Some(sequence) => self.disk_sequences.insert(watched.name.clone(), sequence),
                None => self.disk_sequences.remove(&watched.name),
            };
            self.targets.push(device.identity);
            self.observer.add(watched, reading.clone());
        }
    }

    /// Watches the devices that have appeared since the last step: whole ones, or those that the
    /// user named. One that is back has a new identity: another disk may have taken the name.
    fn watch_new_devices(&mut self, whole: &BTreeSet<String>, readings: &[DiskReading]) {
        let mut names = Vec::new();
        for reading in readings {
            let name = &reading.name;
            let is_wanted = if self.named.is_empty() {
                whole.contains(name)
            } else {
                self.named.contains(name)
            };
            if is_wanted && !self.observer.watches(name) {
                names.push(name);
            }
        }
        let devices = devices_with_names(&names);
        if !devices.is_empty() {
            self.watch_devices(devices, readings);
        }
    }

    /// True if the first step has ended.
    pub(super) fn has_steps(&self) -> bool {
        self.read_at > self.start.monotonic
    }

    /// True if all devices that the user named have vanished.
    pub(super) fn has_lost_all_devices(&self) -> bool {
        !self.named.is_empty() && !self.observer.has_devices()
    }

    /// The load so far, of the devices that were named or had requests.
    pub(super) fn observed_load(&self) -> ObservedLoad {
        let mut targets = Vec::new();
        let mut devices: Vec<ObservedDevice> = Vec::new();
        for device in self.observer.observed() {
            if device.requests() == 0 && !self.named.contains(&device.name) {
                continue;
            }
            let target = targets.len();
            targets.push(self.targets[device.target].clone());
            devices.push(ObservedDevice { target, ..device });
        }
        let mut hidden = Vec::new();
        if let Some(why) = &self.facts.untraced {
            hidden.push(format!("seeks: {}", seek_method_text(Some(why))));
        }
        hidden.extend(hidden_processes_text(self.facts.hidden_processes));
        let record = ObservedRecord {
            interval_ns: self.interval_ns,
            devices,
            hidden,
            server: match &self.sources.server {
                Some(server) => server.observed(),
                None => None,
            },
        };
        ObservedLoad { record, targets }
    }
}

/// The kernel at the end of a step.
struct KernelReading {
    input: StepInput,
    /// The names of the whole devices that have a size.
    whole_devices: BTreeSet<String>,
    /// The counters of devices whose names other disks have taken: they are new ones.
    replaced: Vec<DiskReading>,
}

/// Everything that is read at the end of a step, except the counters of the disks.
struct Sources {
    /// The requests in the kernel; `None` where they cannot be traced.
    trace: Option<RequestTrace>,
    processes: ProcessActivity,
    server: Option<ServerWatch>,
}

impl Sources {
    /// Opens the trace, the session with the server, and the list of processes. `facts` gets what
    /// they hide. Only the server can fail; without a trace the seeks are estimated.
    fn open(
        request: &WatchRequest<'_>,
        named: &[String],
        facts: &mut WatchFacts,
        verbosity: Verbosity,
    ) -> anyhow::Result<Self> {
        let mut traced_disks = Vec::new();
        for device in &request.named_devices {
            traced_disks.push(device.disk);
        }
        let trace = match RequestTrace::start(&traced_disks) {
            Ok(trace) => Some(trace),
            Err(why) => {
                facts.untraced = Some(why);
                None
            }
        };
        let server = match request.postgres {
            Some(connection) => {
                let interval = Duration::from_nanos(request.interval_ns);
                Some(ServerWatch::connect(
                    connection, interval, named, verbosity,
                )?)
            }
            None => None,
        };
        let mut processes = ProcessActivity::start();
        facts.hidden_processes = processes.step().hidden;
        Ok(Self {
            trace,
            processes,
            server,
        })
    }

    /// The first step begins at `start`: drops the requests that were traced before, and lets the
    /// server's thread count from there.
    fn begin_steps(&mut self, start: Instant, facts: &mut WatchFacts) {
        if let Some(trace) = &mut self.trace {
            trace.read();
        }
        if let Some(server) = &mut self.server {
            server.begin_steps(start);
            facts.server = server.facts();
        }
    }
}

/// The instant at which the first step begins, by both clocks.
#[derive(Debug, Clone, Copy)]
struct WatchStart {
    monotonic: Instant,
    wall: SystemTime,
}

impl WatchStart {
    fn now() -> Self {
        Self {
            monotonic: Instant::now(),
            wall: StartInstant::now().wall,
        }
    }
}

/// The number of the interval, from 1, at whose end the next reading is due. The last reading was
/// `read_ns` after the start. Where it was late, as after Ctrl-Z, ends are skipped: few requests in
/// a step of less than half an interval would give a wrong rate.
fn interval_after_reading(read_ns: u64, interval_ns: u64) -> u64 {
    read_ns.saturating_add(interval_ns / 2) / interval_ns.max(1) + 1
}

fn read_counters() -> anyhow::Result<Vec<DiskReading>> {
    read_disks().context("cannot read /proc/diskstats, which has the counters of all disks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_after_a_late_one_is_at_least_half_an_interval_long() {
        for (read_ns, expected) in [
            (0, 1),
            (999, 2),
            (1001, 2),
            (2000, 3),
            // Stopped for 3.3 s.
            (5300, 6),
            (5499, 6),
            (5500, 7),
        ] {
            assert_eq!(interval_after_reading(read_ns, 1000), expected, "{read_ns}");
        }
    }
}
