//! Sends the first requests to a target: small, timed, outside of any measurement. Where they are
//! slow, a full queue of large blocks would not be answered before the run ends.

use crate::io::buffers::{ALIGNMENT_BYTES, Buffers};
use crate::io::clock::{Clock as _, MonotonicClock};
use crate::io::{Extent, errno_name};
use crate::random::Random;
use crate::run::error::RunError;
use crate::run::limits::{extent_of, largest_block};
use crate::run::watched_call::{Patience, call_before_run};
use diskproof_device::{FailedRequest, OpenTarget};
use diskproof_model::errno;
use diskproof_model::measurement::{OpKind, OpMeasurement, PerOp, WAKE_UP_NS};
use diskproof_model::plan::{Access, Distribution, EngineChoice, EngineKind, Layout, Workload};
use diskproof_model::shape::RequestOrder;
use rustix::io::{pread, pwrite};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most that the first request moves: so little that the rate of even a slow disk hardly counts
/// beside its delay.
pub(crate) const FIRST_BYTES: u32 = 64 << 10;
/// The most that the second one moves, where the first was not slow: a disk of some MB/s answers 64
/// KiB as fast as a rotating one, and needs many seconds for a queue of large blocks.
const LARGE_BYTES: u32 = 1 << 20;
/// A target is slow if its second small request takes longer: a seek, half a turn and a short queue
/// of others take less, and a disk that slept is awake for it.
const SLOW_NS: u64 = 50_000_000;
/// Requests in flight should be answered within this share of the measured time. This share and its
/// limits are chosen, not measured: the end of a run may be late by so much.
const DRAIN_SHARE: u64 = 10;
/// It may take this long, however short the measured time is.
const DRAIN_NS_MIN: u64 = 1_000_000_000;
/// It should take no longer, however long the measured time is.
const DRAIN_NS_MAX: u64 = 4_000_000_000;
/// The limit for a large request, which also counts the way to its place: a rotating disk streams
/// 256 MiB in a third of what this many separate requests take.
const LARGE_DRAIN_NS: u64 = 8_000_000_000;

/// The errors of the disk on requests before a workload. They are counted as those of its warm-up
/// are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EarlyErrors(Vec<FailedRequest>);

impl EarlyErrors {
    /// The errors on requests that belong to no workload, which the next one counts.
    pub(crate) fn take_from(target: &mut OpenTarget) -> Self {
        Self(target.take_failed_requests())
    }

    /// Hands the errors to the next workload on the target.
    pub(crate) fn leave_to(self, target: &mut OpenTarget) {
        target.keep_failed_requests(self.0);
    }

    /// Adds an error, by its number, and returns `true` where it is one of the disk. Others are not
    /// added: they show themselves again in the run, which has the same target and program.
    pub(crate) fn add(&mut self, op: OpKind, errno: i32) -> bool {
        let is_of_disk = errno::is_of_disk(&errno_name(errno));
        if is_of_disk {
            self.0.push(FailedRequest { op, errno });
        }
        is_of_disk
    }

    /// Adds the errors of the disk among those of reads, which are counted by name.
    pub(crate) fn add_reads(&mut self, errors: &BTreeMap<String, u64>) {
        for (name, count) in errors {
            if errno::is_of_disk(name)
                && let Some(errno) = errno::number(name)
            {
                let failed = FailedRequest {
                    op: OpKind::Read,
                    errno: errno as i32,
                };
                self.0.extend((0..*count).map(|_| failed));
            }
        }
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Counts the errors by name, whatever the kind of their requests.
    pub(crate) fn count_by_name(&self, errors: &mut BTreeMap<String, u64>) {
        for failed in &self.0 {
            *errors.entry(errno_name(failed.errno)).or_default() += 1;
        }
    }

    /// Counts the errors in the operations of a measurement.
    pub(crate) fn count_in(&self, ops: &mut PerOp<OpMeasurement>) {
        for failed in &self.0 {
            let op = ops.entry(failed.op).or_default();
            *op.errors.entry(errno_name(failed.errno)).or_default() += 1;
        }
    }
}

/// The answers of a target to its first requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstAnswers {
    /// `None` where the target is fast enough for the queue of the workload.
    pub slow: Option<SlowTarget>,
    pub errors: EarlyErrors,
}

/// Times the first requests to a target, before a workload with a queue and before the trials of
/// I/O engines.
pub(crate) fn find_slow(
    workload: &Workload,
    target: &OpenTarget,
    patience: Patience<'_>,
) -> Result<FirstAnswers, RunError> {
    let is_ring = matches!(
        workload.engine,
        EngineChoice::Fixed(EngineKind::Uring | EngineKind::Aio)
    );
    let has_queue = workload.depth > 1 || is_ring;
    let moves_nothing = workload.engine == EngineChoice::Fixed(EngineKind::Null);
    let is_of_files = target.part_of_file().is_some();
    // The request goes to one file.
    if !has_queue || moves_nothing || is_of_files {
        return Ok(FirstAnswers::default());
    }
    let Some(mut first) = FirstRequest::new(workload, target) else {
        return Ok(FirstAnswers::default());
    };
    let answered = Arc::new(AtomicBool::new(false));
    let answer = Arc::clone(&answered);
    let mut answers = call_before_run(workload, target, patience, &answered, move |files| {
        FirstAnswers {
            slow: files.first().and_then(|fd| first.time(fd, &answer)),
            errors: first.errors,
        }
    })?;
    if let Some(slow) = answers.slow
        && !slow.limits(workload)
    {
        answers.slow = None;
    }
    Ok(answers)
}

/// A target where a request of `bytes` takes `ns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowTarget {
    bytes: u64,
    ns: u64,
}

impl SlowTarget {
    /// The time, in nanoseconds, that the target needs to move so many bytes.
    pub(crate) fn transfer_ns(self, bytes: u64) -> u64 {
        self.ns.saturating_mul(bytes.div_ceil(self.bytes))
    }

    /// True if the target is slow, or at least too slow for the queue of a workload.
    fn limits(self, workload: &Workload) -> bool {
        if self.is_large() {
            self.drained_depth(workload).is_some()
        } else {
            self.ns > SLOW_NS
        }
    }

    fn is_large(self) -> bool {
        self.bytes > u64::from(FIRST_BYTES)
    }

    /// The requests that each worker of a workload keeps in flight on this target; `None` where the
    /// workload's own depth is right. A workload without a limit of time keeps its depth: it may
    /// take as long as its queue does. A layout without one gets the shortest limit.
    pub(crate) fn drained_depth(self, workload: &Workload) -> Option<u32> {
        let block_ns = self.transfer_ns(u64::from(largest_block(workload)));
        let round_ns = block_ns.saturating_mul(u64::from(workload.workers)).max(1);
        let (least_ns, most_ns) = if self.is_large() {
            (LARGE_DRAIN_NS, LARGE_DRAIN_NS)
        } else {
            (DRAIN_NS_MIN, DRAIN_NS_MAX)
        };
        let time_ns = if workload.layout == Layout::Provides {
            Some(workload.stop.time_ns.unwrap_or(0))
        } else {
            workload.stop.time_ns
        };
        let drain_ns = (time_ns? / DRAIN_SHARE).clamp(least_ns, most_ns);
        let depth = drain_ns / round_ns;
        if depth >= u64::from(workload.depth) {
            return None;
        }
        Some(depth.max(1) as u32)
    }
}

/// Requests outside of any measurement, to random places of a target.
struct FirstRequest {
    bytes: u32,
    large_bytes: u32,
    reads: bool,
    writes: bool,
    /// True where a write must leave what was there.
    keeps_content: bool,
    /// The span of its requests; empty where a new scratch file has nothing to read.
    extent: Extent,
    random: Random,
    errors: EarlyErrors,
}

/// The part of the span of a workload that a write before it may fill with something else, because
/// nobody can count on what is there: the workload itself writes it, or may. `None` where writes
/// must put back what was there.
fn forfeited_part(
    workload: &Workload,
    target: &OpenTarget,
    extent: Extent,
    request_bytes: u64,
) -> Option<Extent> {
    if !workload.writes_unchecked() {
        return None;
    }
    if target.is_nameless() {
        return Some(extent);
    }
    // Only drop-ins and special loads have another order.
    if workload.shape.order != RequestOrder::default() {
        return None;
    }
    match workload.access {
        Access::Random {
            distribution: Distribution::Uniform,
        } => Some(extent),
        Access::Sequential | Access::Stride { .. } => {
            Some(Extent::new(extent.start, request_bytes))
        }
        Access::Backward | Access::Random { .. } | Access::Zoned { .. } => None,
    }
}

impl FirstRequest {
    fn new(workload: &Workload, target: &OpenTarget) -> Option<Self> {
        let largest = largest_block(workload);
        let bytes = largest.min(FIRST_BYTES.max(target.alignment_bytes()));
        let mut extent = extent_of(workload.span, target.usable_bytes());
        if extent.length < u64::from(bytes) {
            // An empty extent behind the content, where a write goes: the layout writes this place
            // again.
            extent = Extent::new(
                target.usable_bytes() / ALIGNMENT_BYTES as u64 * ALIGNMENT_BYTES as u64,
                0,
            );
        }
        if extent.length == 0 && !target.is_scratch() {
            return None;
        }
        let writes = workload.makes(OpKind::Write) && target.is_writable();
        let mut large_bytes = largest.min(LARGE_BYTES);
        if large_bytes < bytes || extent.length < u64::from(large_bytes) {
            large_bytes = bytes;
        }
        let forfeited = match extent.length {
            0 => None,
            _ => forfeited_part(workload, target, extent, u64::from(large_bytes)),
        };
        Some(Self {
            bytes,
            large_bytes,
            reads: workload.reads() || !writes,
            writes,
            keeps_content: forfeited.is_none(),
            extent: forfeited.unwrap_or(extent),
            random: Random::new(MonotonicClock.now(), 0),
            errors: EarlyErrors::default(),
        })
    }

    /// Times a request; `None` where it fails, for an error that `errors` then has. The second one
    /// decides: the first may wake the disk up, or be the one that a limit of rate has saved. If it
    /// is not slow, a large one follows.
    fn time(&mut self, fd: &OwnedFd, answered: &AtomicBool) -> Option<SlowTarget> {
        let (small, large) = (self.bytes, self.large_bytes);
        let mut buffers = Buffers::new(1, large as usize).ok()?;
        buffers.fill_random(&mut self.random);
        let mut ns = self.send(fd, buffers.bytes_mut(0, small as usize))?;
        answered.store(true, Ordering::Relaxed);
        if ns < WAKE_UP_NS {
            ns = self.send(fd, buffers.bytes_mut(0, small as usize))?;
            answered.store(true, Ordering::Relaxed);
        }
        let mut bytes = small;
        if ns <= SLOW_NS && large > small {
            bytes = large;
            ns = self.send(fd, buffers.bytes_mut(0, large as usize))?;
            answered.store(true, Ordering::Relaxed);
        }
        Some(SlowTarget {
            bytes: u64::from(bytes),
            ns,
        })
    }

    /// Sends a request in each direction of the workload and returns the time of the slower one, in
    /// nanoseconds. Takes another place each time, if it can, which no cache knows. A write puts
    /// back what was there, but where `keeps_content` says that this is not needed: a workload that
    /// only writes makes no read request then.
    fn send(&mut self, fd: &OwnedFd, memory: &mut [u8]) -> Option<u64> {
        let bytes = memory.len() as u64;
        let Extent { start, length } = self.extent;
        if length == 0 {
            return self.time_call(OpKind::Write, bytes, || pwrite(fd, memory, start));
        }
        let offset = start + self.random.below(length / bytes) * bytes;
        let mut read_ns = 0;
        if self.reads || self.keeps_content {
            read_ns = self.time_call(OpKind::Read, bytes, || pread(fd, &mut *memory, offset))?;
        }
        let mut write_ns = 0;
        if self.writes {
            write_ns = self.time_call(OpKind::Write, bytes, || pwrite(fd, memory, offset))?;
        }
        if self.reads {
            Some(read_ns.max(write_ns))
        } else {
            Some(write_ns)
        }
    }

    /// The time of a call, in nanoseconds; `None` where it does not move all of the bytes.
    fn time_call(
        &mut self,
        kind: OpKind,
        bytes: u64,
        call: impl FnOnce() -> rustix::io::Result<usize>,
    ) -> Option<u64> {
        let start_ns = MonotonicClock.now();
        match call() {
            Ok(moved) if moved as u64 == bytes => Some(MonotonicClock.now() - start_ns),
            Ok(_) => None,
            Err(errno) => {
                self.errors.add(kind, errno.raw_os_error());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::loads::after_ns;
    use diskproof_device::{Consent, Intent, Overwriting, admit, probe};
    use diskproof_model::plan::{Stop, Verify};
    use diskproof_model::stream::Streams;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd as _;
    use std::path::Path;

    #[test]
    fn depth_is_reduced_only_where_queue_would_outlast_run() {
        let depth = |block_bytes, time_s: Option<u64>, bytes, ms: u64| {
            let workload = Workload {
                block_bytes,
                depth: 32,
                stop: time_s.map_or(Stop::default(), |s| after_ns(s * 1_000_000_000)),
                ..Workload::named("reads")
            };
            let ns = ms * 1_000_000;
            SlowTarget { bytes, ns }.drained_depth(&workload)
        };
        let (short, long) = (Some(5), Some(600));
        // 300 kB/s: large blocks, and pages, 32 of which take less than a second.
        assert_eq!(depth(1 << 20, short, 65_536, 218), Some(1));
        assert_eq!(depth(8192, short, 8192, 27), None);
        // One operation a second; a long run; one without end.
        assert_eq!(depth(8192, short, 8192, 1000), Some(1));
        assert_eq!(depth(8192, long, 8192, 1000), Some(4));
        assert_eq!(depth(8192, long, 8192, 100), None);
        assert_eq!(depth(8192, None, 8192, 1000), None);
        assert_eq!(depth(4096, short, 4096, 20_000), Some(1));
        // 2 MB/s: 64 KiB in 33 ms are not slow, a queue of 32 MiB is. A rotating disk of 100 MB/s.
        assert_eq!(depth(1 << 20, short, 1 << 20, 524), Some(15));
        assert_eq!(depth(4 << 20, short, 1 << 20, 25), None);
    }

    #[test]
    fn small_request_limits_only_slow_targets() {
        let workload = Workload {
            block_bytes: 4096,
            depth: 256,
            stop: after_ns(5_000_000_000),
            ..Workload::named("reads")
        };
        let limits = |bytes: u64, ms: u64| {
            let ns = ms * 1_000_000;
            SlowTarget { bytes, ns }.limits(&workload)
        };
        // A rotating disk answers many of them at a time.
        assert!(!limits(4096, 15) && !limits(4096, 50) && limits(4096, 51));
        assert!(!limits(1 << 20, 31) && limits(1 << 20, 32));
    }

    fn first(workload: &Workload, target: &OpenTarget, fd: &OwnedFd) -> Option<SlowTarget> {
        FirstRequest::new(workload, target)?.time(fd, &AtomicBool::default())
    }

    fn scratch_in(place: &Path, size_bytes: u64) -> OpenTarget {
        let identity = probe(place).unwrap();
        let admitted = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        OpenTarget::open(admitted).unwrap()
    }

    #[test]
    fn first_requests_of_pure_writers_read_nothing() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut target = scratch_in(place.path(), 8 << 20);
        target.mark_written(8 << 20);
        let path = format!("/proc/self/fd/{}", target.fd().as_raw_fd());
        let write_only = OpenOptions::new().write(true).open(path).unwrap();
        let fd = OwnedFd::from(write_only);
        let mut workload = Workload {
            streams: Streams::with_reads(0),
            ..Workload::named("w")
        };
        assert!(first(&workload, &target, &fd).is_some());
        // What is checked later is read first, and put back.
        workload.verify = Verify::Checksum;
        assert!(first(&workload, &target, &fd).is_none());
    }

    #[test]
    fn only_what_the_workload_may_overwrite_is_forfeited() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("old");
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        let consent = Consent {
            overwriting: Overwriting::Allowed,
            ..Consent::default()
        };
        let admitted = admit(probe(&file).unwrap(), Intent::Overwrite(&consent)).unwrap();
        let released = OpenTarget::open(admitted).unwrap();
        let span = Extent::new(4096, 65_536);
        let forfeited = |access: Access| {
            let workload = Workload {
                streams: Streams::with_reads(0),
                access,
                ..Workload::named("w")
            };
            forfeited_part(&workload, &released, span, 8192)
        };
        let random = |distribution| Access::Random { distribution };
        assert_eq!(forfeited(random(Distribution::Uniform)), Some(span));
        let hot = Distribution::Pareto { share: 0.2 };
        assert_eq!(forfeited(random(hot)), None);
        let first = Some(Extent::new(4096, 8192));
        assert_eq!(forfeited(Access::Sequential), first);
        let stride_bytes = 16_384;
        assert_eq!(forfeited(Access::Stride { stride_bytes }), first);
        assert_eq!(forfeited(Access::Backward), None);
        let mut mixed = Workload::named("mixed");
        mixed.streams = Streams::with_reads(500);
        assert_eq!(forfeited_part(&mixed, &released, span, 8192), None);
    }

    #[test]
    fn first_requests_of_writers_that_are_checked_change_nothing() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let size_bytes = 8 << 20;
        let mut target = scratch_in(place.path(), size_bytes);
        let fd = target.fd().try_clone_to_owned().unwrap();
        let content: Vec<u8> = (0..size_bytes).map(|at| (at >> 9) as u8).collect();
        assert_eq!(pwrite(&fd, &content, 0), Ok(content.len()));
        target.mark_written(size_bytes);
        let mut workload = Workload {
            block_bytes: 4 << 20,
            verify: Verify::Checksum,
            ..Workload::named("w")
        };
        for read_permille in [0, 500, 1000] {
            workload.streams = Streams::with_reads(read_permille);
            for _ in 0..8 {
                let timed = first(&workload, &target, &fd).unwrap();
                // A large one follows, unless this machine is slow.
                assert!(timed.bytes == u64::from(LARGE_BYTES) || timed.ns > SLOW_NS);
            }
        }
        let mut found = vec![0; content.len()];
        assert_eq!(pread(&fd, &mut found, 0), Ok(content.len()));
        assert!(found == content);
        // Only those that write are timed writing.
        let directions = |workload: &Workload| {
            let FirstRequest { reads, writes, .. } = FirstRequest::new(workload, &target)?;
            Some((reads, writes))
        };
        let of = |read_permille| Workload {
            streams: Streams::with_reads(read_permille),
            ..workload.clone()
        };
        assert_eq!(directions(&of(0)), Some((false, true)));
        assert_eq!(directions(&of(500)), Some((true, true)));
        assert_eq!(directions(&of(1000)), Some((true, false)));
    }

    #[test]
    fn errors_of_short_runs_count_where_they_are_of_the_disk() {
        let mut early = EarlyErrors::default();
        early.add_reads(&BTreeMap::from([
            ("EIO".to_owned(), 3),
            ("EINVAL".to_owned(), 9),
            ("EOF".to_owned(), 2),
        ]));
        assert!(early.add(OpKind::Write, libc::EIO) && !early.add(OpKind::Write, libc::EINVAL));
        let mut ops = PerOp::new();
        early.count_in(&mut ops);
        assert_eq!(ops[&OpKind::Read].errors, [("EIO".to_owned(), 3)].into());
        assert_eq!(ops[&OpKind::Write].errors, [("EIO".to_owned(), 1)].into());
        let mut by_name = BTreeMap::new();
        early.count_by_name(&mut by_name);
        assert_eq!(by_name, [("EIO".to_owned(), 4)].into());
    }
}
