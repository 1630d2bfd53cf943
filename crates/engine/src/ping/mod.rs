//! Sends single requests to open targets, one at a time per target, at a given pace. Reports each
//! request when it completes, and makes one measurement of the requests of each target. Built on
//! the sampler.

mod follow;
mod log;
mod pinger;

use crate::io::Extent;
use crate::io::any_backend::{QueueConfig, write_shift};
use crate::io::clock::{ActiveClock, Clock as _, MonotonicClock};
use crate::measure::sampler::FileSampler;
use crate::measure::usage;
use crate::run::error::{RunError, worker_error};
use crate::run::limits::{in_flight_max, largest_block};
use crate::run::select::refuse_mapping;
use crate::run::session::Session;
use crate::run::totals::{ProcessTotal, count_devices, divide_cpu_time};
use crate::run::watchdog::spawn;
use crate::run::workers::durability_of;
use diskproof_device::{OpenTarget, Snapshot, WriteDurability};
use diskproof_model::group::Group;
use diskproof_model::measurement::{CpuTime, Measurement};
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{CachePolicy, Workload};
use diskproof_model::progress::PingWatch;
use follow::{FollowedTarget, Follower, PingEvent, PingReport};
use log::PingLog;
use pinger::{PingOrders, PingSignals, Pinger};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Length of the reads that fill the page cache.
const FILL_BYTES: usize = 1 << 20;
/// Answers that wait for the supervisor. A pinger with more waits: its pace falls, its latencies
/// stay right. Chosen, not measured: seconds of a ping without pauses on a fast disk would need
/// more, a ping at a pace never does.
const ANSWERS_MAX: usize = 4096;

impl Session {
    /// Sends single requests to all targets at the same time, one in flight to each. One
    /// measurement per target, in order.
    pub fn ping(
        &self,
        workload: &Workload,
        plan: &PingPlan,
        targets: &mut [OpenTarget],
        watch: &mut impl PingWatch,
    ) -> Result<Vec<Measurement>, RunError> {
        let group = Group::alone(workload);
        let mut prepared = Vec::new();
        for (index, target) in targets.iter_mut().enumerate() {
            refuse_mapping(workload.engine, target)?;
            let requests = in_flight_max(group, 1);
            let mut prepared_target = self.prepare(workload, target, requests, watch)?;
            prepared_target.known.target = index;
            self.hold_in_memory(&mut prepared_target, target, watch)?;
            prepared.push(prepared_target);
        }
        let snapshots: Vec<Snapshot> = targets
            .iter()
            .map(|target| Snapshot::take(target.identity()))
            .collect();
        let cpu_before = usage::process();
        let clock = ActiveClock::new();
        let start_ns = clock.now();
        let (sender, reports) = sync_channel(ANSWERS_MAX);
        let mut followed = Vec::new();
        for (target, prepared) in targets.iter().zip(prepared) {
            let orders = PingOrders {
                known: prepared.known.clone(),
                plan: plan.clone(),
                extent: prepared.extent,
                seed: self.seed,
            };
            let signals = start_pinger(orders, target, sender.clone())?;
            let log = PingLog::new(prepared.known, self.origin_ns, plan.interval_ns);
            followed.push(FollowedTarget::new(target, signals, log));
        }
        drop(sender);
        let follower = Follower {
            workload,
            targets: followed,
            stall_timeout: self.stall_timeout,
        };
        let mut measurements = follower.follow(&reports, &clock, watch)?;
        let total = ProcessTotal::since(cpu_before, start_ns, clock.now());
        let own = vec![CpuTime::default(); measurements.len()];
        divide_cpu_time(&mut measurements, &own, total);
        let opens: Vec<&OpenTarget> = targets.iter().collect();
        count_devices(&mut measurements, &opens, snapshots, 0);
        Ok(measurements)
    }
}

/// Starts the thread that sends requests to a target.
fn start_pinger(
    orders: PingOrders,
    target: &OpenTarget,
    sender: SyncSender<PingReport>,
) -> Result<Arc<PingSignals>, RunError> {
    let (workload, index) = (&orders.known.workload, orders.known.target);
    let durability = durability_of(workload);
    let fd = match durability {
        WriteDurability::BySync => target
            .fd()
            .try_clone_to_owned()
            .map_err(|source| worker_error(workload, target, source))?,
        durability => target.for_worker(durability)?,
    };
    let signals = Arc::new(PingSignals::default());
    let own_signals = Arc::clone(&signals);
    // A new scratch file was written past the page cache, which is to answer from the start.
    let fills_cache =
        orders.known.cache.used == CachePolicy::Cached && workload.reads() && target.is_scratch();
    let work = move || {
        if fills_cache {
            fill_cache(fd.as_fd(), orders.extent, &own_signals);
        }
        let event = match ping_file(orders, fd, &own_signals, &sender) {
            Ok(event) => event,
            Err(source) => PingEvent::Failed(source),
        };
        // The receiver is gone when the target has timed out.
        let _ = sender.send(PingReport {
            target: index,
            event,
        });
    };
    spawn(&format!("diskproof-ping-{index}"), work).map_err(RunError::Thread)?;
    Ok(signals)
}

/// Reads a part of a file through the page cache, in which it stays. A part that fails is left to
/// the requests, which report the error.
fn fill_cache(fd: BorrowedFd<'_>, extent: Extent, signals: &PingSignals) {
    let clock = MonotonicClock;
    let mut buffer = vec![0; FILL_BYTES];
    let end = extent.end();
    for offset in (extent.start..end).step_by(FILL_BYTES) {
        if signals.is_stopped() {
            return;
        }
        signals.begin(clock.now());
        let length = (end - offset).min(FILL_BYTES as u64) as usize;
        let _ = rustix::io::pread(fd, &mut buffer[..length], offset);
        signals.end();
    }
}

/// Sends all requests to a target, and a report of each. Returns the last event, which the caller
/// reports.
fn ping_file(
    orders: PingOrders,
    fd: OwnedFd,
    signals: &PingSignals,
    sender: &SyncSender<PingReport>,
) -> io::Result<PingEvent> {
    let (index, workload) = (orders.known.target, &orders.known.workload);
    let config = QueueConfig {
        depth: 1,
        request_bytes: largest_block(workload),
        cache: orders.known.cache.used,
        seed: orders.seed ^ ((index as u64) << 48),
        write_shift: write_shift(workload, 1),
    };
    let sampler = FileSampler::open(fd, orders.known.engine.used, config)?;
    let mut pinger = Pinger::new(sampler, orders);
    let ending = pinger.run(signals, |answer| {
        sender
            .send(PingReport {
                target: index,
                event: PingEvent::Answer(answer),
            })
            .map_err(|_| io::Error::other("the run ended before its requests"))
    })?;
    Ok(PingEvent::Done {
        ending,
        interruptions: pinger.take_interruptions(),
    })
}

#[cfg(test)]
mod tests;
