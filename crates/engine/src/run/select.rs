//! Selects the I/O engine of a workload: the requested one, or the best that works here, tried with
//! a real request. Where io_uring is slow by its nature, module `rates` compares it with Linux AIO.
#![allow(unsafe_code)]

mod rates;

use crate::io::aio::AioBackend;
use crate::io::buffers::Buffers;
use crate::io::uring::UringBackend;
use crate::io::{Backend, BlockCall, Op, Request, SubmitPolicy, WaitMode, errno_name};
use crate::load::block_calls::BlockCalls;
use crate::run::block_calls::{calls_of, device_call};
use crate::run::calibrate::random_reads;
use crate::run::error::RunError;
use crate::run::first_request::{EarlyErrors, FIRST_BYTES, SlowTarget};
use crate::run::watched_call::{Patience, call_before_run};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::{EngineUse, Fallback, FallbackCause, OpKind};
use diskproof_model::plan::{CachePolicy, EngineChoice, EngineKind, Workload};
use rates::RateComparison;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The I/O engines for a workload, in the order of their preference; at least one. Fails where the
/// requested engine cannot carry out the workload.
fn candidates(
    workload: &Workload,
    cache: CachePolicy,
    target: &OpenTarget,
) -> Result<Vec<EngineKind>, RunError> {
    let calls = calls_of(workload, target);
    let makes_calls = calls.is_some();
    // Neither Linux AIO nor a mapping has such calls. A system call for each would block the
    // thread, and nothing would keep the depth.
    if let EngineChoice::Fixed(engine @ (EngineKind::Aio | EngineKind::Mmap)) = workload.engine
        && let Some((kind, _)) = calls.iter().flat_map(BlockCalls::iter).next()
    {
        let why = format!("{} makes no {}", engine_noun(engine), kind.plural());
        return Err(unusable(engine, target, why));
    }
    let engines: &[EngineKind] = match workload.engine {
        EngineChoice::Fixed(kind) => &[kind],
        EngineChoice::Auto if workload.needs_threads() => &[EngineKind::Sync],
        // pread at depth 1 costs a quarter of a round through a ring.
        EngineChoice::Auto if workload.depth == 1 => &[EngineKind::Sync],
        EngineChoice::Auto if makes_calls => &[EngineKind::Uring, EngineKind::Sync],
        EngineChoice::Auto if cache == CachePolicy::Direct => {
            &[EngineKind::Uring, EngineKind::Aio, EngineKind::Sync]
        }
        // Buffered Linux AIO blocks in the submission: no depth at all.
        EngineChoice::Auto => &[EngineKind::Uring, EngineKind::Sync],
    };
    Ok(engines.to_vec())
}

/// The I/O engine that was selected for a workload.
pub(crate) struct SelectedEngine {
    pub engine: EngineUse,
    /// True if io_uring hands, or would hand, this target's I/O to kernel worker threads; `None`
    /// where that was not tested or is unknown.
    pub is_punted: Option<bool>,
    /// Errors of the disk on the requests by which engines were tried.
    pub errors: EarlyErrors,
}

/// The use that an I/O engine is selected for.
pub(crate) struct EngineUseCase<'a> {
    pub workload: &'a Workload,
    pub target: &'a OpenTarget,
    /// The treatment of the page cache that the target has now.
    pub cache: CachePolicy,
    /// The most requests that all workloads of the run together keep in flight.
    pub in_flight_max: u64,
    /// The answers to the first requests, where the target is slow.
    pub slow: Option<SlowTarget>,
}

/// Selects the I/O engine for one workload on one target: the first candidate that works here. A
/// slow target gets no further request, but where it is to be trimmed, those that show whether
/// io_uring can. On other targets this sends a few reads or discards of nothing. A target that
/// answers none of them in time ends the run with an error, as one that does not answer its first
/// request does: it may hang at any of them.
pub(crate) fn select(
    use_case: &EngineUseCase<'_>,
    patience: Patience<'_>,
) -> Result<SelectedEngine, RunError> {
    let EngineUseCase {
        workload,
        target,
        cache,
        in_flight_max,
        slow,
    } = *use_case;
    let trials = EngineTrials {
        engines: candidates(workload, cache, target)?,
        workload: workload.clone(),
        cache,
        usable_bytes: target.usable_bytes(),
        alignment_bytes: target.alignment_bytes(),
        call: device_call(workload, target),
        takes_nowait: target.takes_nowait(),
        aio_fits: in_flight_max <= aio_left(Path::new(AIO_LIMITS)),
        slow,
        answered: Arc::new(AtomicBool::new(false)),
    };
    let chosen = if trials.send_nothing() {
        trials.choose(target.fd())
    } else {
        let answered = Arc::clone(&trials.answered);
        call_before_run(workload, target, patience, &answered, move |files| {
            trials.choose_on_first(&files)
        })?
    };
    chosen.map_err(|UnusableEngine { kind, why }| unusable(kind, target, why))
}

/// An engine that cannot be used, and the reason.
struct UnusableEngine {
    kind: EngineKind,
    why: String,
}

/// The trials of the engines for a workload on a target. Their requests may never return, so they
/// own all that they need.
struct EngineTrials {
    /// In the order of their preference.
    engines: Vec<EngineKind>,
    workload: Workload,
    cache: CachePolicy,
    usable_bytes: u64,
    alignment_bytes: u32,
    /// The call of the device that the workload needs, where it trims.
    call: Option<BlockCall>,
    /// Whether the target takes RWF_NOWAIT, where an earlier trial found out.
    takes_nowait: Option<bool>,
    /// True if the kernel has enough requests left for Linux AIO.
    aio_fits: bool,
    slow: Option<SlowTarget>,
    /// Set after each answer.
    answered: Arc<AtomicBool>,
}

impl EngineTrials {
    /// True where the first engine is chosen without a request.
    fn send_nothing(&self) -> bool {
        !matches!(
            self.engines.first(),
            Some(EngineKind::Uring | EngineKind::Aio)
        )
    }

    fn choose_on_first(&self, files: &[OwnedFd]) -> Result<SelectedEngine, UnusableEngine> {
        match files.first() {
            Some(fd) => self.choose(fd.as_fd()),
            None => Err(UnusableEngine {
                kind: EngineKind::Sync,
                why: "it has no open file".to_owned(),
            }),
        }
    }

    fn choose(&self, fd: BorrowedFd<'_>) -> Result<SelectedEngine, UnusableEngine> {
        let mut fallbacks = Vec::new();
        let mut errors = EarlyErrors::default();
        for kind in self.engines.iter().copied() {
            let tried = if kind == EngineKind::Aio && !self.aio_fits {
                Err(TrialError::setup_errno(libc::EAGAIN))
            } else {
                self.try_out(kind, fd, &mut errors)
            };
            let Err(error) = tried else {
                let mut selected = SelectedEngine {
                    engine: EngineUse {
                        asked: self.workload.engine,
                        used: kind,
                        fallbacks,
                        features: Vec::new(),
                        depth: reduced_depth(&self.workload, self.slow),
                        done_before_wait: None,
                    },
                    is_punted: None,
                    errors,
                };
                // On a slow target, the I/O engine makes no difference.
                if kind == EngineKind::Uring && self.slow.is_none() {
                    selected.test_punting(self, fd);
                }
                return Ok(selected);
            };
            let fallback = fallback_after(kind, &error);
            if self.engines.len() == 1 {
                let why = fallback.why;
                return Err(UnusableEngine { kind, why });
            }
            fallbacks.push(fallback);
        }
        // Not reached: every choice of several engines ends with blocking calls, which need no
        // trial.
        let tried: Vec<String> = fallbacks.into_iter().map(|tried| tried.why).collect();
        Err(UnusableEngine {
            kind: EngineKind::Sync,
            why: tried.join("; "),
        })
    }

    /// Sets the I/O engine up and sends what shows that it works here.
    fn try_out(
        &self,
        kind: EngineKind,
        fd: BorrowedFd<'_>,
        errors: &mut EarlyErrors,
    ) -> Result<(), TrialError> {
        let batched = SubmitPolicy::Batched;
        let block = self.tried_bytes();
        let own = || fd.try_clone_to_owned().map_err(TrialError::Setup);
        let buffers = || Buffers::new(1, block as usize).map_err(TrialError::Setup);
        match kind {
            EngineKind::Uring => {
                let mut backend = UringBackend::new(own()?, buffers()?, 1, self.cache, batched)
                    .map_err(TrialError::Setup)?;
                if let Some(call) = self.call {
                    try_call(&mut backend, call, self.is_punted(fd, errors))
                        .map_err(TrialError::Request)?;
                    self.answered.store(true, Ordering::Relaxed);
                }
                self.read_one(backend, errors)
            }
            EngineKind::Aio => {
                let backend =
                    AioBackend::new(own()?, buffers()?, 1, batched).map_err(TrialError::Setup)?;
                self.read_one(backend, errors)
            }
            EngineKind::Sync | EngineKind::Mmap | EngineKind::Null => Ok(()),
        }
    }

    /// Bytes of a request that only tries: as small as the target allows, as it may be slow.
    fn tried_bytes(&self) -> u32 {
        self.workload
            .block_bytes
            .min(FIRST_BYTES.max(self.alignment_bytes))
    }

    /// Reads a block at the start of the target, where there is data and the target is not slow.
    /// Fails where the engine does not work. An error of the disk says nothing about the engine,
    /// and is added to `errors`.
    fn read_one(
        &self,
        mut backend: impl Backend,
        errors: &mut EarlyErrors,
    ) -> Result<(), TrialError> {
        let block = self.tried_bytes();
        let has_data = self.usable_bytes >= u64::from(block);
        if self.slow.is_some() || !self.workload.reads() || !has_data {
            return Ok(());
        }
        let result = send_one(&mut backend, Op::Read, block).map_err(TrialError::Request)?;
        self.answered.store(true, Ordering::Relaxed);
        if result >= 0 {
            return Ok(());
        }
        if errors.add(OpKind::Read, -result) {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(-result);
        Err(TrialError::Request(error))
    }

    fn rate_comparison<'a>(&'a self, fd: BorrowedFd<'a>) -> RateComparison<'a> {
        RateComparison {
            reads: random_reads(&self.workload),
            depth: self.workload.depth,
            block_bytes: self.workload.block_bytes,
            cache: self.cache,
            usable_bytes: self.usable_bytes,
            fd,
            answered: &self.answered,
        }
    }

    /// True where io_uring hands every request to a worker thread: it first tries each without
    /// blocking, and this file does not take RWF_NOWAIT. `None` where that is unknown. An error of
    /// the disk is added to `errors`.
    fn is_punted(&self, fd: BorrowedFd<'_>, errors: &mut EarlyErrors) -> Option<bool> {
        if let Some(takes_nowait) = self.takes_nowait {
            return Some(!takes_nowait);
        }
        let block = self.tried_bytes();
        if self.usable_bytes < u64::from(block) {
            return None;
        }
        let buffers = Buffers::new(1, block as usize).ok()?;
        let vector = libc::iovec {
            iov_base: buffers.slot(0).cast(),
            iov_len: block as usize,
        };
        // SAFETY: one vector that covers the buffer, which lives until after the call.
        let got =
            unsafe { libc::preadv2(fd.as_raw_fd(), &raw const vector, 1, 0, libc::RWF_NOWAIT) };
        let error = io::Error::last_os_error();
        self.answered.store(true, Ordering::Relaxed);
        if got >= 0 {
            return Some(false);
        }
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => Some(true),
            Some(libc::EAGAIN) => Some(false),
            Some(errno) => {
                errors.add(OpKind::Read, errno);
                None
            }
            None => None,
        }
    }
}

impl SelectedEngine {
    /// Tests whether io_uring, the selected engine, hands requests to worker threads here. If so,
    /// selects Linux AIO instead, where that may be used and is faster.
    fn test_punting(&mut self, trials: &EngineTrials, fd: BorrowedFd<'_>) {
        let may_use_aio = trials.aio_fits && trials.engines.contains(&EngineKind::Aio);
        self.is_punted = trials.is_punted(fd, &mut self.errors);
        if self.is_punted == Some(true)
            && may_use_aio
            && let Some(why) = trials.rate_comparison(fd).reason_for_aio(&mut self.errors)
        {
            self.engine.used = EngineKind::Aio;
            self.engine.fallbacks.push(Fallback {
                from: EngineKind::Uring,
                cause: FallbackCause::Slower,
                why,
            });
        }
    }
}

/// The depth on a slow target, where the workload has a larger one.
fn reduced_depth(workload: &Workload, slow: Option<SlowTarget>) -> Option<u32> {
    let depth = slow?.drained_depth(workload)?;
    if depth < workload.depth {
        Some(depth)
    } else {
        None
    }
}

fn unusable(kind: EngineKind, target: &OpenTarget, why: String) -> RunError {
    RunError::Engine {
        kind,
        path: target.identity().path.clone(),
        why,
    }
}

/// Refuses a mapping for single requests: each would be page faults, whose errors end the process.
pub(crate) fn refuse_mapping(engine: EngineChoice, target: &OpenTarget) -> Result<(), RunError> {
    if engine != EngineChoice::Fixed(EngineKind::Mmap) {
        return Ok(());
    }
    let why = "a mapping goes through the page cache, one page at a time".to_owned();
    Err(unusable(EngineKind::Mmap, target, why))
}

/// The reason why an I/O engine does not work here.
#[derive(Debug)]
enum TrialError {
    /// It could not be set up.
    Setup(io::Error),
    /// Its first request failed, and not for an error of the disk.
    Request(io::Error),
}

impl TrialError {
    fn setup_errno(errno: i32) -> Self {
        Self::Setup(io::Error::from_raw_os_error(errno))
    }
}

/// The name of an I/O engine in a sentence.
fn engine_noun(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Uring => "io_uring",
        EngineKind::Aio => "Linux AIO",
        EngineKind::Mmap => "a memory mapping",
        EngineKind::Sync | EngineKind::Null => engine.as_str(),
    }
}

/// Explains why an I/O engine cannot be used. A first request fails for reasons of the target, so
/// those of the machine belong to a failed setup only.
fn fallback_after(from: EngineKind, failed: &TrialError) -> Fallback {
    let name = engine_noun(from);
    let (step, error) = match failed {
        TrialError::Request(error) => ("the first request", error),
        TrialError::Setup(error) if from == EngineKind::Uring => ("io_uring_setup", error),
        TrialError::Setup(error) => ("io_setup", error),
    };
    let errno = match error.raw_os_error() {
        Some(errno) => errno_name(errno),
        None => error.to_string(),
    };
    let is_setup = matches!(failed, TrialError::Setup(_));
    let (cause, why) = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if is_setup => (
            FallbackCause::Refused,
            format!(
                "{name} is blocked here ({errno}): a container's seccomp profile or \
                 kernel.io_uring_disabled"
            ),
        ),
        // Before Linux 5.11 io_uring lacks what this program needs (crate::io::ring).
        Some(libc::ENOSYS) if is_setup && from == EngineKind::Uring => (
            FallbackCause::Missing,
            format!("this kernel has no {name}, or a version from before Linux 5.11 ({errno})"),
        ),
        Some(libc::ENOSYS) if is_setup => (
            FallbackCause::Missing,
            format!("this kernel has no {name} ({errno})"),
        ),
        Some(libc::EAGAIN) if is_setup && from == EngineKind::Aio => (
            FallbackCause::Exhausted,
            format!(
                "this machine has too few AIO requests left ({errno}): see fs.aio-max-nr and \
                 fs.aio-nr"
            ),
        ),
        Some(libc::EOPNOTSUPP) if !is_setup && from == EngineKind::Uring => (
            FallbackCause::Unusable,
            format!(
                "{name} cannot discard here ({errno}): it needs Linux 6.12, and a device that \
                 takes requests without blocking (RWF_NOWAIT)"
            ),
        ),
        // io_uring_setup(2): locked memory on kernels before 5.12, and descriptors.
        Some(libc::ENOMEM | libc::EMFILE | libc::ENFILE) => (
            FallbackCause::Exhausted,
            format!("no memory or descriptors are left for {name} ({step}: {errno})"),
        ),
        _ => (
            FallbackCause::Unusable,
            format!("{name} does not work on this target ({step}: {errno})"),
        ),
    };
    Fallback { from, cause, why }
}

/// The kernel's limit of requests in all AIO contexts, and the present number
/// (Documentation/admin-guide/sysctl/fs.rst).
const AIO_LIMITS: &str = "/proc/sys/fs";

/// Requests left for new AIO contexts on this machine; databases use the same limit. Unlimited
/// where it is unknown.
fn aio_left(limits: &Path) -> u64 {
    let limit = read_number(&limits.join("aio-max-nr"));
    let taken = read_number(&limits.join("aio-nr"));
    match (limit, taken) {
        (Some(limit), Some(taken)) => limit.saturating_sub(taken),
        _ => u64::MAX,
    }
}

fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Fails where io_uring lacks this call of a device; it has discards only. The answer to a discard
/// of nothing is EINVAL from a kernel that has the command, EOPNOTSUPP from Linux 5.19 to 6.11.
/// Older kernels do not know commands at all. The kernel tries each discard without blocking, and
/// fails it on devices that cannot (zram; Linux 6.18).
fn try_call(backend: &mut UringBackend, call: BlockCall, punted: Option<bool>) -> io::Result<()> {
    let is_command = match call {
        // A discard of nothing drops nothing.
        BlockCall::Discard => backend.has_commands(),
        BlockCall::PunchHole => false,
    };
    let errno = if is_command && punted != Some(true) {
        -send_one(backend, Op::Call(call), 0)?
    } else {
        libc::EOPNOTSUPP
    };
    match errno {
        0 | libc::EINVAL => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Sends one request at the start of the target. Returns its bytes, or a negative errno.
fn send_one(backend: &mut impl Backend, op: Op, len: u32) -> io::Result<i32> {
    let mut request = Some(Request::new(0, op, 0, len));
    backend.enqueue(&mut |_| request.take())?;
    loop {
        backend.wait(WaitMode::Completion)?;
        let mut outcome = None;
        backend.reap(&mut |_, result| outcome = Some(result));
        if let Some(result) = outcome {
            return Ok(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_maps_each_errno_to_its_cause() {
        use EngineKind::{Aio, Uring};
        for (engine, errno, cause) in [
            (Uring, libc::EPERM, FallbackCause::Refused),
            (Uring, libc::ENOSYS, FallbackCause::Missing),
            (Uring, libc::ENOMEM, FallbackCause::Exhausted),
            (Aio, libc::EAGAIN, FallbackCause::Exhausted),
            (Uring, libc::EAGAIN, FallbackCause::Unusable),
            (Aio, libc::EINVAL, FallbackCause::Unusable),
        ] {
            let error = TrialError::setup_errno(errno);
            assert_eq!(
                fallback_after(engine, &error).cause,
                cause,
                "{engine:?} {errno}"
            );
        }
    }

    #[test]
    fn select_blames_no_seccomp_profile_for_refused_request() {
        let refused = TrialError::Request(io::Error::from_raw_os_error(libc::EACCES));
        let fallback = fallback_after(EngineKind::Uring, &refused);
        assert_eq!(fallback.cause, FallbackCause::Unusable);
        assert!(fallback.why.contains("the first request: EACCES"));
    }

    #[test]
    fn aio_requests_left_exclude_other_contexts() {
        let limits = tempfile::tempdir().unwrap();
        assert_eq!(aio_left(limits.path()), u64::MAX);
        std::fs::write(limits.path().join("aio-max-nr"), "65536\n").unwrap();
        std::fs::write(limits.path().join("aio-nr"), "10000\n").unwrap();
        assert_eq!(aio_left(limits.path()), 55_536);
        assert!(aio_left(Path::new(AIO_LIMITS)) < u64::MAX, "Linux tells");
    }
}
