//! Says why a workload could not run, and what to do. I/O errors of the target are counted in the
//! measurement instead.

use diskproof_device::{OpenError, OpenTarget, TargetFailure};
use diskproof_model::errno::is_of_disk;
use diskproof_model::group::Clash;
use diskproof_model::plan::{EngineKind, Workload};
use std::io;
use std::time::Duration;

/// The reason why a workload could not run. I/O errors of the target are counted in the measurement
/// instead.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target could not be prepared.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Workloads that cannot run at the same time.
    #[error(transparent)]
    Together(#[from] Clash),
    /// No I/O engine works.
    #[error(
        "{path}: cannot be measured with --engine {}: {why}. Use --engine auto, which selects one \
         that works here, or in a fio job ioengine=libaio or psync",
        kind.as_str()
    )]
    Engine {
        /// The last I/O engine that was tried.
        kind: EngineKind,
        /// Path of the target.
        path: String,
        /// The reason, a clause without a full stop.
        why: String,
    },
    /// The target does not suit the workload.
    #[error("{path}: workload '{workload}' {why}")]
    Unsuitable {
        /// Path of the target.
        path: String,
        /// Name of the workload.
        workload: String,
        /// The reason and the remedy, as the rest of a sentence whose subject is the workload.
        why: String,
    },
    /// Direct I/O needs whole units.
    #[error(
        "{path}: workload '{workload}': {what} of {bytes} bytes is not a multiple of {unit}, \
         as direct I/O and discards require here. Use a multiple; reads and writes also take \
         --buffered"
    )]
    Alignment {
        /// Path of the target.
        path: String,
        /// Name of the workload.
        workload: String,
        /// `block size`, `alignment of offsets`, `start of the span` or `stride`.
        what: &'static str,
        /// The size or position that does not fit.
        bytes: u64,
        /// The number of bytes of which it must be a multiple.
        unit: u32,
    },
    /// The command line of a tool wants direct I/O, without which that tool fails.
    #[error("{path}: cannot use direct I/O: {why}. Measure it without the option for direct I/O")]
    DirectRefused {
        /// Path of the target.
        path: String,
        /// True if O_DIRECT could be set, and the first request failed.
        is_request: bool,
        /// The reason, a clause without a full stop.
        why: String,
    },
    /// The scratch file could not be given its content.
    #[error("{path}: cannot write the scratch file ({errno}); {remedy}")]
    Layout {
        /// Path of the target.
        path: String,
        /// The errors seen.
        errno: String,
        /// The remedy, as a clause.
        remedy: String,
    },
    /// The target answers nothing any more, or does not keep what was written to it.
    #[error("{path}: cannot {doing} ({errno}): {why}")]
    TargetFailed {
        /// Path of the target.
        path: String,
        /// This step failed.
        doing: &'static str,
        /// Name of the error.
        errno: String,
        /// The meaning and the remedy, as clauses.
        why: String,
    },
    /// The watcher ended the run before the workload began.
    #[error("interrupted before '{workload}' started")]
    Interrupted {
        /// Name of the workload.
        workload: String,
    },
    /// The watcher ended the run while the target had not answered the first requests of the
    /// workload for some seconds. It may be slow, or hang.
    #[error("interrupted before '{workload}' started; {path} had not answered for {seconds} s")]
    Unanswered {
        /// Path of the target.
        path: String,
        /// Name of the workload.
        workload: String,
        /// The length of the silence.
        seconds: u64,
    },
    /// A worker stopped with an error.
    #[error("{path}: {source} while '{workload}' ran. {}", worker_remedy(source))]
    Worker {
        /// Path of the target.
        path: String,
        /// Name of the workload.
        workload: String,
        /// The error of the system call, or the panic of the thread.
        source: io::Error,
    },
    /// The workload was to start at an instant, and was not ready.
    #[error("not ready at its instant: late by {late_ns} ns")]
    NotReady {
        /// The delay behind the instant, in nanoseconds.
        late_ns: u64,
    },
    /// The target hangs.
    #[error(
        "{path}: no answer for {seconds} s during '{workload}': the device or the path to it \
         hangs. See the kernel log (dmesg)"
    )]
    Stalled {
        /// Path of the target.
        path: String,
        /// Name of the workload.
        workload: String,
        /// The length of the silence.
        seconds: u64,
    },
    /// A worker ended without a report.
    #[error(
        "a worker thread of '{workload}' ended unexpectedly. This is a bug in diskproof; please \
         report it"
    )]
    Lost {
        /// Name of the workload.
        workload: String,
    },
    /// No thread could be started.
    #[error(
        "cannot start a thread: {0}. Use fewer workers or a smaller depth, or raise the limit of \
         processes (ulimit -u)"
    )]
    Thread(io::Error),
}

impl RunError {
    /// The watcher ended the run before this workload began.
    pub(crate) fn interrupted(workload: &str) -> Self {
        Self::Interrupted {
            workload: workload.to_owned(),
        }
    }

    /// The watcher ended the run before this workload began, and the target at `path` had been
    /// silent for so long.
    pub(crate) fn unanswered(path: &str, workload: &str, silence: Duration) -> Self {
        Self::Unanswered {
            path: path.to_owned(),
            workload: workload.to_owned(),
            seconds: silence.as_secs(),
        }
    }

    /// The target at `path` was silent for so long during this workload.
    pub(crate) fn stalled(path: &str, workload: &str, silence: Duration) -> Self {
        Self::Stalled {
            path: path.to_owned(),
            workload: workload.to_owned(),
            seconds: silence.as_secs(),
        }
    }

    /// A worker of this workload ended without a report.
    pub(crate) fn lost(workload: &str) -> Self {
        Self::Lost {
            workload: workload.to_owned(),
        }
    }

    /// The name of the error that the system returned, such as `EDQUOT`, where it returned one; the
    /// first of several.
    pub fn errno(&self) -> Option<String> {
        match self {
            Self::Layout { errno, .. } => errno.split(',').next().map(str::to_owned),
            Self::TargetFailed { errno, .. } => Some(errno.clone()),
            Self::Worker { source, .. } | Self::Thread(source) => {
                source.raw_os_error().map(diskproof_model::errno::name)
            }
            Self::Stalled { .. } => Some("ETIMEDOUT".to_owned()),
            Self::DirectRefused { .. } => Some("EINVAL".to_owned()),
            Self::Open(_)
            | Self::Together(_)
            | Self::Engine { .. }
            | Self::Unsuitable { .. }
            | Self::Alignment { .. }
            | Self::Interrupted { .. }
            | Self::Unanswered { .. }
            | Self::NotReady { .. }
            | Self::Lost { .. } => None,
        }
    }

    /// The failure of the target that ended the run; `None` of any other reason.
    pub fn of_target(&self) -> Option<TargetFailure> {
        let failure = |path: &str, doing: &str, errno: &str| TargetFailure {
            path: path.to_owned(),
            doing: doing.to_owned(),
            errno: errno.to_owned(),
        };
        match self {
            Self::Open(error) => error.of_target(),
            Self::Layout { path, errno, .. } => errno
                .split(", ")
                .find(|errno| has_failed_on_the_way(errno))
                .map(|errno| failure(path, "write the scratch file", errno)),
            Self::TargetFailed {
                path, doing, errno, ..
            } => Some(failure(path, doing, errno)),
            Self::Worker {
                path,
                workload,
                source,
            } => {
                let errno = diskproof_model::errno::name(source.raw_os_error()?);
                is_of_disk(&errno).then(|| failure(path, &format!("run '{workload}'"), &errno))
            }
            Self::Together(_)
            | Self::Engine { .. }
            | Self::Unsuitable { .. }
            | Self::Alignment { .. }
            | Self::DirectRefused { .. }
            | Self::Interrupted { .. }
            | Self::Unanswered { .. }
            | Self::NotReady { .. }
            | Self::Stalled { .. }
            | Self::Lost { .. }
            | Self::Thread(_) => None,
        }
    }
}

/// True for an error of the disk in a file that could be made: a filesystem that is read-only by
/// now has been stopped since.
fn has_failed_on_the_way(errno: &str) -> bool {
    is_of_disk(errno) || errno == "EROFS"
}

/// The error of a workload that cannot run on `target`; `why` ends the sentence.
pub(crate) fn unsuitable(workload: &Workload, target: &OpenTarget, why: String) -> RunError {
    RunError::Unsuitable {
        path: target.identity().path.clone(),
        workload: workload.name.clone(),
        why,
    }
}

/// A worker of `workload` on `target` stopped with `source`.
pub(crate) fn worker_error(
    workload: &Workload,
    target: &OpenTarget,
    source: io::Error,
) -> RunError {
    RunError::Worker {
        path: target.identity().path.clone(),
        workload: workload.name.clone(),
        source,
    }
}

/// A thread panicked, with this message.
#[derive(Debug, thiserror::Error)]
#[error("a thread panicked ({0})")]
pub(crate) struct WorkerPanic(pub String);

/// Buffers and queues need memory; other errors come from the I/O engine.
fn worker_remedy(source: &io::Error) -> &'static str {
    if source
        .get_ref()
        .is_some_and(|inner| inner.is::<WorkerPanic>())
    {
        return "This is a bug in diskproof, not a fault of the disk; please report it";
    }
    if source.kind() == io::ErrorKind::OutOfMemory {
        return "Use fewer --jobs, a smaller --depth or a smaller --bs, or raise the memory \
                limits (ulimit -v, the container's)";
    }
    if source.kind() == io::ErrorKind::WouldBlock {
        return "Raise the limit on processes and threads (ulimit -u), or use fewer --jobs, a \
                smaller --depth or another --engine";
    }
    "Try another --engine"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_the_disk_is_told_from_a_full_one() {
        let of_target = |errno: &str| {
            let layout = RunError::Layout {
                path: "/data".to_owned(),
                errno: errno.to_owned(),
                remedy: String::new(),
            };
            layout.of_target().map(|failure| failure.errno)
        };
        assert_eq!(of_target("ENOSPC, EIO").as_deref(), Some("EIO"));
        assert_eq!(of_target("EROFS").as_deref(), Some("EROFS"));
        assert_eq!(of_target("ENOSPC"), None);
        assert_eq!(RunError::interrupted("w").of_target(), None);
    }

    #[test]
    fn worker_error_remedy_depends_on_errno() {
        let remedy = |errno| worker_remedy(&io::Error::from_raw_os_error(errno));
        assert!(remedy(libc::ENOMEM).contains("--depth"));
        assert!(remedy(libc::EINVAL).contains("--engine"));
        // No option helps against a panic.
        let panic = worker_remedy(&io::Error::other(WorkerPanic(String::new())));
        assert!(!panic.contains("--"), "{panic}");
    }
}
