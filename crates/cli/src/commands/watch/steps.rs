//! Reads the kernel at the end of each step and hands it to the arithmetic.

use super::server::ServerWatch;
use crate::failure::Failure;
use crate::saved::capacities;
use crate::stdio::Verbosity;
use crate::targets::{identify, keep_from_outputs, resolve_target};
use anyhow::Context as _;
use diskproof_analysis::watch::{Observer, StepInput, WatchedLoad};
use diskproof_device::{
    ProcessActivity, RequestTrace, WatchedDevice, read_disks, watched_device, whole_devices,
};
use diskproof_engine::StartInstant;
use diskproof_model::observed::{ObservedDevice, ObservedRecord};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::watch::{DiskReading, WatchStep};
use diskproof_report::terminal::{WatchFacts, hidden_processes_text, seek_method_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The load of others while it is watched: what the kernel and a server said so far.
pub(super) struct WatchedKernel {
    observer: Observer,
    /// The devices that were named; empty where all are watched.
    pub named: Vec<String>,
    /// The devices that are watched, in the order in which the observer got them.
    targets: Vec<TargetIdentity>,
    /// The requests in the kernel; `None` where they cannot be traced.
    trace: Option<RequestTrace>,
    processes: ProcessActivity,
    /// The facts that the view states before the first step.
    pub facts: WatchFacts,
    server: Option<ServerWatch>,
    /// The history that says what each disk can do, as the user named it.
    history: Option<PathBuf>,
    interval_ns: u64,
    /// Whole devices that had a size. A detached loop device keeps its name and loses its size.
    sized: BTreeSet<String>,
    started: WatchStart,
    /// When the counters were read last, which is the end of the newest step.
    read_at: Instant,
}

/// The instant from which on the steps count, by both clocks.
#[derive(Debug, Clone, Copy)]
struct WatchStart {
    monotonic: Instant,
    wall: SystemTime,
}

/// The load that was watched, and the devices that had it.
pub(super) struct ObservedLoad {
    pub record: ObservedRecord,
    /// The devices that were named or had requests.
    pub targets: Vec<TargetIdentity>,
}

impl WatchedKernel {
    /// Begins with the counters of the devices, and of the server where one is named. Without named
    /// devices all whole ones are watched, also those that appear later.
    pub(super) fn start(
        named_devices: Vec<WatchedDevice>,
        interval_ns: u64,
        postgres: Option<&str>,
        history: Option<PathBuf>,
        verbosity: Verbosity,
    ) -> anyhow::Result<Self> {
        let mut named = Vec::new();
        let mut disks = Vec::new();
        for device in &named_devices {
            named.push(device.name.clone());
            disks.push(device.disk);
        }
        let devices = if named.is_empty() {
            watched_devices(&whole_devices())
        } else {
            named_devices
        };
        let (mut trace, untraced) = match RequestTrace::start(&disks) {
            Ok(trace) => (Some(trace), None),
            Err(why) => (None, Some(why)),
        };
        let mut server = match postgres {
            Some(text) => {
                let interval = Duration::from_nanos(interval_ns);
                Some(ServerWatch::connect(text, interval, &named, verbosity)?)
            }
            None => None,
        };
        let mut processes = ProcessActivity::start();
        let mut facts = WatchFacts {
            untraced,
            hidden_processes: processes.step().hidden,
            ..WatchFacts::default()
        };
        let readings = read_counters()?;
        let started = WatchStart {
            monotonic: Instant::now(),
            wall: StartInstant::now().wall,
        };
        // Connecting to a server may have taken a while; these requests belong to no step.
        if let Some(trace) = &mut trace {
            trace.read();
        }
        if let Some(server) = &mut server {
            server.begin(started.monotonic);
            facts.server = server.facts();
        }
        let mut watched = Self {
            observer: Observer::new(interval_ns),
            named,
            targets: Vec::new(),
            trace,
            processes,
            facts,
            server,
            history,
            interval_ns,
            sized: whole_devices().into_iter().collect(),
            started,
            read_at: started.monotonic,
        };
        watched.add(devices, &readings);
        Ok(watched)
    }

    /// The instant on the wall clock from which on the steps count.
    pub(super) fn started_wall(&self) -> SystemTime {
        self.started.wall
    }

    /// Watches these devices from now on.
    fn add(&mut self, devices: Vec<WatchedDevice>, readings: &[DiskReading]) {
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
            self.targets.push(device.identity);
            self.observer.add(watched, reading.clone());
        }
    }

    /// The number of the interval, from 1, at whose end the next step ends. Late steps do not move
    /// the later ones.
    pub(super) fn next_end(&self) -> u64 {
        let read_ns = self
            .read_at
            .duration_since(self.started.monotonic)
            .as_nanos() as u64;
        next_interval_end(read_ns, self.interval_ns)
    }

    /// The instant at which the interval of this number ends.
    pub(super) fn due(&self, interval: u64) -> Instant {
        self.started.monotonic + Duration::from_nanos(self.interval_ns.saturating_mul(interval))
    }

    /// Takes the traced requests out of the kernel's buffers before these are full.
    pub(super) fn collect(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.collect();
        }
    }

    /// Ends a step now: reads the kernel, and returns what happened since the step before. The
    /// counters are read before the trace: a request between both counts in the next step and is
    /// traced in this one.
    pub(super) fn step(&mut self) -> anyhow::Result<WatchStep> {
        let mut readings = read_counters()?;
        let now = Instant::now();
        let length = now.duration_since(self.read_at);
        self.read_at = now;
        let mut requests = None;
        let mut is_incomplete = false;
        if let Some(trace) = &mut self.trace {
            let batch = trace.read();
            requests = Some(batch.requests);
            is_incomplete = batch.is_incomplete;
        }
        let whole: BTreeSet<String> = whole_devices().into_iter().collect();
        readings.retain(|reading| !self.is_detached(&reading.name, &whole));
        let active = self.processes.step();
        self.facts.hidden_processes = active.hidden;
        let input = StepInput {
            length_ns: length.as_nanos() as u64,
            is_incomplete,
            requests,
            processes: active.busiest,
            readings,
        };
        let mut step = self.observer.step(&input);
        if let Some(server) = &mut self.server {
            step.server = Some(server.view());
            self.facts.server = server.facts();
        }
        if self.named.is_empty() {
            self.add_new(&whole, &input.readings);
        }
        self.sized.extend(whole);
        Ok(step)
    }

    /// True for a device that had a size and is none of the `whole` devices that have one now.
    fn is_detached(&self, name: &str, whole: &BTreeSet<String>) -> bool {
        self.sized.contains(name) && !whole.contains(name)
    }

    /// Watches the devices that have appeared since the last step.
    fn add_new(&mut self, whole: &BTreeSet<String>, readings: &[DiskReading]) {
        let names: Vec<&String> = whole
            .iter()
            .filter(|name| !self.observer.knows(name))
            .collect();
        let devices = watched_devices(&names);
        if !devices.is_empty() {
            self.add(devices, readings);
        }
    }

    /// True if all named devices have vanished.
    pub(super) fn is_over(&self) -> bool {
        !self.named.is_empty() && !self.observer.has_devices()
    }

    /// The load so far, of the devices that were named or had requests.
    pub(super) fn finish(self) -> ObservedLoad {
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
            server: match self.server {
                Some(server) => server.observed(),
                None => None,
            },
        };
        ObservedLoad { record, targets }
    }
}

/// The devices with these kernel names, without those that have gone.
fn watched_devices(names: &[impl AsRef<str>]) -> Vec<WatchedDevice> {
    let mut devices = Vec::new();
    for name in names {
        devices.extend(watched_device(name.as_ref()));
    }
    devices
}

/// The devices that the user names: block devices, kernel names, or directories for the disks below
/// them.
pub(super) fn named_devices(
    given: &[PathBuf],
    verbosity: Verbosity,
) -> Result<Vec<WatchedDevice>, Failure> {
    let mut devices: Vec<WatchedDevice> = Vec::new();
    for path in given {
        for device in devices_below(path, verbosity)? {
            if !devices.iter().any(|known| known.name == device.name) {
                devices.push(device);
            }
        }
    }
    Ok(devices)
}

/// The device of this path or kernel name, or the disks below a directory or file. Fails where none
/// is known.
fn devices_below(path: &Path, verbosity: Verbosity) -> Result<Vec<WatchedDevice>, Failure> {
    // A kernel name needs no node in /dev.
    if !path.exists()
        && let Some(name) = path.to_str()
        && let Some(device) = watched_device(name)
    {
        keep_from_outputs(path);
        return Ok(vec![device]);
    }
    let identity = identify(&resolve_target(path, verbosity), verbosity)?;
    let names: Vec<&str> = match identity.kind {
        TargetKind::BlockDevice => identity
            .layers
            .iter()
            .take(1)
            .map(|layer| layer.name.as_str())
            .collect(),
        TargetKind::Directory | TargetKind::File => {
            identity.disks().map(|disk| disk.name.as_str()).collect()
        }
    };
    let devices = watched_devices(&names);
    if devices.is_empty() {
        let why = match &identity.unresolved {
            Some(why) => why,
            None => "sysfs does not show one",
        };
        return Err(Failure::Usage(format!(
            "{}: no block device is known below it ({why}); name one, such as sda",
            identity.path
        )));
    }
    Ok(devices)
}

/// The number of the interval whose end follows a reading, which was `read_ns` after the start.
/// Where the reading was late, as after Ctrl-Z, ends are skipped: few requests in a short step
/// would give a wrong rate.
fn next_interval_end(read_ns: u64, interval_ns: u64) -> u64 {
    read_ns.saturating_add(interval_ns / 2) / interval_ns.max(1) + 1
}

fn read_counters() -> anyhow::Result<Vec<DiskReading>> {
    read_disks().context("cannot read /proc/diskstats, which has the counters of all disks")
}

#[cfg(test)]
mod tests {
    use super::next_interval_end as next_end;

    #[test]
    fn step_after_a_late_one_is_at_least_half_an_interval_long() {
        assert_eq!(next_end(0, 1000), 1);
        assert_eq!(next_end(999, 1000), 2);
        assert_eq!(next_end(1001, 1000), 2);
        assert_eq!(next_end(2000, 1000), 3);
        // Stopped for 3.3 s.
        assert_eq!(next_end(5300, 1000), 6);
        assert_eq!(next_end(5499, 1000), 6);
        assert_eq!(next_end(5500, 1000), 7);
    }
}
