//! Workloads on open targets, from preparation to `Measurement`: page cache, layout, span, kernel
//! interface, counters, verification. One at a time, or several together: then every figure is one
//! of the time in which all of them ran.

use crate::io::Extent;
use crate::io::clock::{Clock, MonotonicClock};
use crate::load::write_journal::{BLOCKS_MAX, WriteJournal};
use crate::run::assemble::{RunContext, assemble, flow_ns};
use crate::run::calibrate::max_iops;
use crate::run::error::RunError;
use crate::run::finish::FinalSync;
use crate::run::hang::{STALL_NS, join};
use crate::run::limits::{in_flight_max, largest_block, parts_of};
use crate::run::select::{Selection, select};
use crate::run::spawn::StartSignal;
use crate::run::workers::{Assignment, WorkerGroup};
use diskproof_device::{OpenTarget, Snapshot};
use diskproof_model::errno::remedy;
use diskproof_model::group::{Group, page_cache_clash};
use diskproof_model::measurement::{
    ByteCount, CacheUse, CpuTime, DeviceUse, EngineUse, Measurement, StopReason,
};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Layout, Span, Stop, SyncPolicy, Verify, Workload,
};
use diskproof_model::progress::{Control, Phase, Watch};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Block size and depth with which the scratch file gets its content.
const LAYOUT_BLOCK_BYTES: u32 = 1 << 20;
/// A page, which direct I/O takes on every filesystem.
const LAYOUT_UNIT_BYTES: u64 = 4096;
const LAYOUT_DEPTH: u32 = 8;

/// A run: its time zero and its seed.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    pub(crate) origin_ns: u64,
    pub(crate) seed: u64,
    pub(crate) stall_ns: u64,
}

/// Whether a scratch file was written to, so that a workload finds its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScratchContent {
    There,
    New,
}

/// A target made ready for one workload.
pub struct PreparedTarget {
    /// The span.
    pub extent: Extent,
    /// Where verified writes are booked.
    pub journal: Option<Arc<WriteJournal>>,
    /// How the page cache is treated.
    pub cache: CacheUse,
    /// What carries the operations.
    pub selection: Selection,
    /// Unwritten bytes in the span.
    pub unwritten_bytes: Option<u64>,
}

impl Session {
    /// Time zero is now.
    pub fn new(seed: u64) -> Self {
        Self {
            origin_ns: MonotonicClock.now(),
            seed,
            stall_ns: STALL_NS,
        }
    }

    /// Gives a target up that does not answer for so long after it was time to end; without this,
    /// for 45 s.
    pub fn with_stall_timeout(self, stall_ns: u64) -> Self {
        Self { stall_ns, ..self }
    }

    /// Runs one workload on all targets at the same time. One measurement per target, in order.
    pub fn run(
        &self,
        workload: &Workload,
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let group = Group::alone(workload);
        let in_flight_max = in_flight_max(group, targets.len());
        let prepared = targets
            .iter_mut()
            .map(|target| self.prepare(workload, target, in_flight_max, watch))
            .collect::<Result<Vec<_>, _>>()?;
        let opens: Vec<&OpenTarget> = targets.iter().collect();
        let measurements = self.measure(group, &opens, &prepared, Phase::Measure, watch)?;
        if workload.layout == Layout::Provides {
            for (target, measurement) in targets.iter_mut().zip(&measurements) {
                mark_laid_out(target, measurement);
            }
        }
        Ok(measurements)
    }

    /// Runs the workloads of a group on all targets at the same time: they start together, warm up
    /// equally long, and on each target they end together, as soon as the first of them has
    /// done what it was to do. Measurements workload by workload, of each one per target in order.
    pub fn run_together(
        &self,
        group: Group<'_>,
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        if let [alone] = group.workloads {
            return self.run(alone, targets, watch);
        }
        group.clash().map_or(Ok(()), Err)?;
        for workload in group.workloads {
            for target in targets.iter_mut() {
                self.give_content(workload, target, watch)?;
            }
        }
        // How the page cache is treated and what is to be read ahead belong to the description of
        // an open file.
        let others = group.workloads[1..].iter().map(|_| {
            targets
                .iter()
                .map(OpenTarget::again)
                .collect::<Result<Vec<_>, _>>()
        });
        let mut others = others.collect::<Result<Vec<_>, _>>()?;
        let (mut prepared, in_flight_max) = (Vec::new(), in_flight_max(group, targets.len()));
        for (workload, targets) in group
            .workloads
            .iter()
            .zip(std::iter::once(&mut *targets).chain(others.iter_mut().map(Vec::as_mut_slice)))
        {
            for target in targets {
                prepared.push(self.prepare(workload, target, in_flight_max, watch)?);
            }
        }
        for target in 0..targets.len() {
            let used = group
                .workloads
                .iter()
                .zip(prepared.iter().skip(target).step_by(targets.len()));
            page_cache_clash(
                used.map(|(workload, prepared)| (workload.name.as_str(), prepared.cache.used)),
            )
            .map_or(Ok(()), Err)?;
        }
        let opens: Vec<&OpenTarget> = targets.iter().chain(others.iter().flatten()).collect();
        self.measure(group, &opens, &prepared, Phase::Measure, watch)
    }

    /// Writes the scratch file up to `upto_bytes`, where it is not written yet, for at most
    /// `time_ns`. Returns whether the watcher interrupted.
    pub fn lay_out(
        &self,
        target: &mut OpenTarget,
        upto_bytes: u64,
        time_ns: Option<u64>,
        watch: &mut dyn Watch,
    ) -> Result<Control, RunError> {
        if upto_bytes <= target.usable_bytes() {
            return Ok(Control::Continue);
        }
        // A span may end, and an earlier workload through the page cache may have ended, where
        // direct I/O cannot; the file itself has whole MiB.
        let from = target.usable_bytes() / LAYOUT_UNIT_BYTES * LAYOUT_UNIT_BYTES;
        let upto_bytes = upto_bytes
            .next_multiple_of(LAYOUT_UNIT_BYTES)
            .min(target.capacity_bytes().max(upto_bytes));
        let workload = layout_workload(from, upto_bytes - from, time_ns);
        let targets = std::slice::from_mut(target);
        let group = Group::alone(&workload);
        let prepared = self.prepare(&workload, &mut targets[0], in_flight_max(group, 1), watch)?;
        let measurements =
            self.measure(group, &[&targets[0]], &[prepared], Phase::Layout, watch)?;
        if let Some(hang) = measurements[0].hang {
            let path = targets[0].identity().path.clone();
            return Err(RunError::Stalled {
                path,
                workload: workload.name,
                seconds: hang.lasted_ns / 1_000_000_000,
            });
        }
        mark_laid_out(&mut targets[0], &measurements[0]);
        let errors: Vec<&str> = measurements[0]
            .ops
            .values()
            .flat_map(|op| op.errors.keys())
            .map(String::as_str)
            .collect();
        if !errors.is_empty() {
            let path = targets[0].identity().path.clone();
            return Err(RunError::Layout {
                path,
                errno: errors.join(", "),
                remedy: remedy(errors),
            });
        }
        Ok(if measurements[0].stopped == StopReason::Interrupted {
            Control::Interrupt
        } else {
            Control::Continue
        })
    }

    fn prepare(
        &self,
        workload: &Workload,
        target: &mut OpenTarget,
        in_flight_max: u64,
        watch: &mut dyn Watch,
    ) -> Result<PreparedTarget, RunError> {
        let path = || target.identity().path.clone();
        if workload.writes() && !target.is_writable() {
            return Err(RunError::ReadOnly {
                path: path(),
                workload: workload.name.clone(),
            });
        }
        let cache = set_cache(workload, target)?;
        check_alignment(
            workload,
            cache.used,
            extent_of(workload, target.capacity_bytes().max(target.usable_bytes())),
            target,
        )?;
        if self.give_content(workload, target, watch)? == ScratchContent::New {
            // Laying out has its own way with the page cache.
            set_cache(workload, target)?;
        }
        let limit = if workload.layout == Layout::Provides {
            target.capacity_bytes()
        } else {
            target.usable_bytes()
        };
        let extent = extent_of(workload, limit);
        let block_bytes = largest_block(workload);
        if extent.length < u64::from(block_bytes) {
            let path = target.identity().path.clone();
            return Err(RunError::Span {
                path,
                workload: workload.name.clone(),
                block_bytes,
                span_bytes: extent.length,
            });
        }
        if workload.writes() && cache.used == CachePolicy::Direct {
            target.lengthen(extent.start + extent.length);
        }
        if matches!(workload.access, Access::Sequential) {
            target.advise_sequential()
        } else {
            target.advise_random()
        }
        let unwritten_bytes = if workload.reads() {
            target.unwritten_bytes(extent.start, extent.length)
        } else {
            None
        };
        let selection = select(workload, cache.used, target, in_flight_max)?;
        let parts = parts_of(workload, selection.kind);
        if extent.length / u64::from(block_bytes) < parts {
            let path = target.identity().path.clone();
            return Err(RunError::Parts {
                path,
                workload: workload.name.clone(),
                parts,
                block_bytes,
                span_bytes: extent.length,
            });
        }
        let journal = self.journal_for(workload, extent, target)?;
        Ok(PreparedTarget {
            extent,
            journal,
            cache,
            selection,
            unwritten_bytes,
        })
    }

    /// Writes what a workload needs to find in a scratch file, as far as that is not written yet.
    fn give_content(
        &self,
        workload: &Workload,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<ScratchContent, RunError> {
        let end = workload
            .span
            .length_bytes
            .map_or(target.capacity_bytes(), |length| {
                workload.span.start_bytes + length
            });
        let end = end.min(target.capacity_bytes());
        if workload.layout == Layout::Provides
            || !target.is_scratch()
            || end <= target.usable_bytes()
        {
            return Ok(ScratchContent::There);
        }
        match self.lay_out(target, end, None, watch)? {
            Control::Interrupt => Err(RunError::Interrupted {
                workload: workload.name.clone(),
            }),
            Control::Continue | Control::Enough => Ok(ScratchContent::New),
        }
    }

    fn journal_for(
        &self,
        workload: &Workload,
        extent: Extent,
        target: &OpenTarget,
    ) -> Result<Option<Arc<WriteJournal>>, RunError> {
        if workload.verify == Verify::Off {
            return Ok(None);
        }
        let unverifiable = |why: String| RunError::Unverifiable {
            path: target.identity().path.clone(),
            workload: workload.name.clone(),
            why,
        };
        let block = workload.block_bytes;
        if !workload.writes() {
            return Err(unverifiable("it writes nothing".to_owned()));
        }
        if !workload.block_mix.is_empty() || !block.is_multiple_of(8) || block < 64 {
            return Err(unverifiable(
                "blocks must have one size, at least 64 bytes and a multiple of 8".to_owned(),
            ));
        }
        if matches!(workload.access, Access::Stride { stride_bytes } if stride_bytes % u64::from(block) != 0)
        {
            return Err(unverifiable(
                "a stride that is no multiple of the block makes blocks overlap".to_owned(),
            ));
        }
        if extent.length / u64::from(block) > BLOCKS_MAX {
            return Err(unverifiable(format!(
                "the span has more than {BLOCKS_MAX} blocks; use a smaller --span or a larger \
                 block"
            )));
        }
        Ok(Some(Arc::new(WriteJournal::new(
            self.seed,
            extent.start,
            extent.length,
            block,
        ))))
    }

    /// `opens` and `prepared` hold, workload by workload, one per target.
    fn measure(
        &self,
        group: Group<'_>,
        opens: &[&OpenTarget],
        prepared: &[PreparedTarget],
        phase: Phase,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let targets = &opens[..opens.len() / group.workloads.len()];
        let places = (0..group.workloads.len())
            .flat_map(|member| (0..targets.len()).map(move |target| (member, target)));
        let assignments: Vec<Assignment<'_>> = places
            .zip(opens.iter().zip(prepared))
            .map(|((member, target), (open, prepared))| Assignment {
                workload: &group.workloads[member],
                member,
                target,
                open,
                prepared,
            })
            .collect();
        let snapshots: Vec<Snapshot> = targets
            .iter()
            .map(|target| Snapshot::take(target.identity()))
            .collect();
        let mut workers = WorkerGroup::start(*self, group, &assignments)?;
        let cpu_before = crate::measure::usage::process();
        let start = workers.release();
        let control = workers.follow(phase, start, watch)?;
        let total = ProcessTotal {
            cpu: cpu_since(cpu_before),
            ns: MonotonicClock.now().saturating_sub(start.at_ns).max(1),
        };
        let own_descriptor = std::mem::take(&mut workers.cpu);
        let mut measurements = self.assemble_all(&assignments, workers, (start, control), watch)?;
        share_out(&mut measurements, &own_descriptor, total);
        count_devices(&mut measurements, targets, snapshots);
        for (measurement, assignment) in measurements.iter_mut().zip(&assignments) {
            self.check(measurement, &assignments, assignment, watch)?;
            measurement.ceiling_iops = max_iops(measurement);
        }
        Ok(measurements)
    }

    /// What the workers brought home, as a measurement for each post.
    fn assemble_all(
        &self,
        assignments: &[Assignment<'_>],
        mut workers: WorkerGroup<'_>,
        (start, control): (StartSignal, Control),
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let measure_ns = start.schedule.measure_ns;
        let ends: Vec<u64> = workers
            .results
            .iter()
            .map(|results| flow_ns(results, measure_ns))
            .collect();
        let mut syncs: Vec<Option<FinalSync>> = vec![None; assignments.len()];
        let mut measurements = Vec::new();
        for (index, assignment) in assignments.iter().enumerate() {
            let others = || {
                assignments
                    .iter()
                    .enumerate()
                    .filter(|(number, other)| *number != index && other.target == assignment.target)
            };
            let wanted = wants_final_sync(assignment.workload, assignment.prepared.cache.used)
                && !assignment.open.is_left_open();
            // One call makes durable what all of them wrote, and nothing of it is before. So its
            // time counts for each of them in full, as the time before it does, and
            // their rates add up to what the disk wrote in it.
            syncs[index] = match others().find_map(|(other, _)| syncs[other]) {
                Some(shared) => {
                    wants_final_sync(assignment.workload, assignment.prepared.cache.used)
                        .then_some(shared)
                }
                None if wanted => Some(self.final_sync(assignments, assignment, watch)?),
                None => None,
            };
            let hangs = [
                workers.hangs[index],
                syncs[index].and_then(|sync| sync.hang),
            ];
            let context = RunContext {
                target: assignment.target,
                workload: assignment.workload.clone(),
                extent: assignment.prepared.extent,
                engine: EngineUse {
                    asked: assignment.workload.engine,
                    used: assignment.prepared.selection.kind,
                    fallbacks: assignment.prepared.selection.fallbacks.clone(),
                    features: std::mem::take(&mut workers.features[index]),
                    done_before_wait: None,
                },
                cache: assignment.prepared.cache.clone(),
                measure_ns,
                pacer: workers.pacers[index]
                    .take()
                    .map(|pacer| pacer.starting_at(start.at_ns)),
                origin_ns: self.origin_ns,
                device: DeviceUse::default(),
                final_sync: syncs[index].map(|sync| (sync.ns, sync.errno)),
                punted: assignment.prepared.selection.punted,
                unwritten_bytes: assignment.prepared.unwritten_bytes,
                control,
                hang: hangs
                    .into_iter()
                    .flatten()
                    .reduce(|one, other| join(Some(one), other)),
                all_until_ns: others().map(|(other, _)| ends[other]).min(),
            };
            measurements.push(assemble(
                context,
                std::mem::take(&mut workers.results[index]),
            ));
        }
        Ok(measurements)
    }
}

/// What the whole process used, from the start of the workers to the end of the last.
#[derive(Debug, Clone, Copy)]
struct ProcessTotal {
    cpu: CpuTime,
    ns: u64,
}

fn layout_workload(start_bytes: u64, length_bytes: u64, time_ns: Option<u64>) -> Workload {
    Workload {
        read_permille: 0,
        access: Access::Sequential,
        block_bytes: LAYOUT_BLOCK_BYTES.min(length_bytes.min(u64::from(u32::MAX)) as u32),
        depth: LAYOUT_DEPTH,
        span: Span {
            start_bytes,
            length_bytes: Some(length_bytes),
        },
        stop: Stop {
            bytes: Some(length_bytes),
            time_ns,
            ..Stop::default()
        },
        sync: SyncPolicy::AtEnd,
        layout: Layout::Provides,
        ..Workload::named("layout")
    }
}

/// One ordered pass without an error has written everything from the start of its span on.
fn mark_laid_out(target: &mut OpenTarget, measurement: &Measurement) {
    let failed = measurement.ops.values().any(|op| !op.errors.is_empty());
    let one_pass = matches!(measurement.workload.access, Access::Sequential)
        && measurement.workload.workers == 1;
    if one_pass && !failed && measurement.span_start_bytes <= target.usable_bytes() {
        let written = measurement.asked.write_bytes.min(measurement.span_bytes);
        target.mark_written(measurement.span_start_bytes + written);
    }
}

pub fn set_cache(workload: &Workload, target: &mut OpenTarget) -> Result<CacheUse, RunError> {
    let mmap = workload.engine == EngineChoice::Fixed(EngineKind::Mmap);
    if mmap && workload.cache == CachePolicy::Direct {
        let used = target.set_cache(CachePolicy::Buffered)?.used;
        let why = Some("a memory mapping always goes through the page cache".to_owned());
        return Ok(CacheUse {
            asked: CachePolicy::Direct,
            used,
            why,
        });
    }
    Ok(target.set_cache(workload.cache)?)
}

pub fn extent_of(workload: &Workload, limit: u64) -> Extent {
    let start = workload.span.start_bytes.min(limit);
    let length = workload
        .span
        .length_bytes
        .map_or(limit - start, |length| length.min(limit - start));
    Extent { start, length }
}

fn check_alignment(
    workload: &Workload,
    cache: CachePolicy,
    extent: Extent,
    target: &OpenTarget,
) -> Result<(), RunError> {
    if cache != CachePolicy::Direct {
        return Ok(());
    }
    let unit = target.alignment_bytes();
    let stride = if let Access::Stride { stride_bytes } = workload.access {
        stride_bytes
    } else {
        0
    };
    let blocks = workload
        .block_mix
        .iter()
        .map(|share| ("block size", u64::from(share.block_bytes)));
    let all = blocks.chain([
        ("block size", u64::from(workload.block_bytes)),
        ("start of the span", extent.start),
        ("stride", stride),
    ]);
    for (what, bytes) in all {
        if bytes % u64::from(unit) != 0 {
            let path = target.identity().path.clone();
            return Err(RunError::Alignment {
                path,
                workload: workload.name.clone(),
                what,
                bytes,
                unit,
            });
        }
    }
    Ok(())
}

fn wants_final_sync(workload: &Workload, cache: CachePolicy) -> bool {
    workload.sync == SyncPolicy::AtEnd || (cache == CachePolicy::Buffered && workload.writes())
}

fn cpu_since(before: CpuTime) -> CpuTime {
    let now = crate::measure::usage::process();
    CpuTime {
        user_ns: now.user_ns.saturating_sub(before.user_ns),
        system_ns: now.system_ns.saturating_sub(before.system_ns),
    }
}

/// CPU time from start to end: to each measurement that of its own threads (`own_descriptor`), and of what
/// else the process used the part of its operations. The rest are the kernel's threads that work
/// for io_uring, which count for the process alone (io_uring/io-wq.c), and this program's display.
/// For the measured time of it.
fn share_out(measurements: &mut [Measurement], own_descriptor: &[CpuTime], total: ProcessTotal) {
    let ops = |m: &Measurement| m.ops.values().map(|op| op.count).sum::<u64>();
    let all: u64 = measurements.iter().map(ops).sum();
    let alone = measurements.len() == 1;
    let rest = |of: fn(&CpuTime) -> u64| {
        of(&total.cpu).saturating_sub(own_descriptor.iter().map(of).sum())
    };
    let (user_ns, system_ns) = (rest(|cpu| cpu.user_ns), rest(|cpu| cpu.system_ns));
    for (measurement, own_descriptor) in measurements.iter_mut().zip(own_descriptor) {
        let part = if alone {
            1.0
        } else {
            ops(measurement) as f64 / all.max(1) as f64
        };
        let within = (measurement.wall_ns as f64 / total.ns as f64).min(1.0);
        let scaled = |own_descriptor: u64, rest: u64| {
            ((own_descriptor as f64 + rest as f64 * part) * within) as u64
        };
        measurement.cpu = CpuTime {
            user_ns: scaled(own_descriptor.user_ns, user_ns),
            system_ns: scaled(own_descriptor.system_ns, system_ns),
        };
    }
}

/// Holds the devices' counters against what was asked of them: by all workloads on all targets that
/// lie on the same disks.
fn count_devices(
    measurements: &mut [Measurement],
    targets: &[&OpenTarget],
    snapshots: Vec<Snapshot>,
) {
    let disks: Vec<BTreeSet<&str>> = targets
        .iter()
        .map(|t| {
            t.identity()
                .disks()
                .map(|disk| disk.name.as_str())
                .collect()
        })
        .collect();
    let asked: Vec<(usize, ByteCount)> = measurements.iter().map(|m| (m.target, m.asked)).collect();
    for (target, snapshot) in snapshots.into_iter().enumerate() {
        let sharing = asked
            .iter()
            .filter(|(other, _)| *other == target || !disks[target].is_disjoint(&disks[*other]));
        let all = sharing.fold(ByteCount::default(), |sum, (_, more)| ByteCount {
            read_bytes: sum.read_bytes + more.read_bytes,
            write_bytes: sum.write_bytes + more.write_bytes,
        });
        let device = snapshot.finish(all);
        for measurement in measurements
            .iter_mut()
            .filter(|measurement| measurement.target == target)
        {
            (measurement.asked, measurement.device) = (all, device.clone());
        }
    }
}
