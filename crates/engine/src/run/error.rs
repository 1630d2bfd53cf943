//! Why a workload could not be run. An I/O error of the target is none of these: it is counted.

use diskproof_device::{OpenError, OpenTarget};
use diskproof_model::group::Clash;
use diskproof_model::plan::{EngineKind, Workload};
use std::io;

/// Why a workload could not be run. An I/O error of the target is none of these: it is counted.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target could not be prepared.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Workloads that cannot run at the same time.
    #[error(transparent)]
    Together(#[from] Clash),
    /// No kernel interface serves.
    #[error("{path}: cannot be measured with --engine {}: {why}. Use --engine auto, which takes what works here", kind.as_str())]
    Engine {
        /// The last one tried.
        kind: EngineKind,
        /// The target.
        path: String,
        /// Why.
        why: String,
    },
    /// The span holds no block.
    #[error(
        "{path}: workload '{workload}' needs at least {block_bytes} bytes, but the span has \
         {span_bytes}. Use a smaller block or a larger span"
    )]
    Span {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// Its block.
        block_bytes: u32,
        /// What there is.
        span_bytes: u64,
    },
    /// The span cannot be shared out.
    #[error(
        "{path}: workload '{workload}' goes through {parts} parts of the span at once, each of at \
         least {block_bytes} bytes, and the span has {span_bytes}. Use a larger span, or less of \
         --jobs and --depth"
    )]
    Parts {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// How many.
        parts: u64,
        /// Its block.
        block_bytes: u32,
        /// What there is.
        span_bytes: u64,
    },
    /// Direct I/O goes in whole units.
    #[error(
        "{path}: workload '{workload}': {what} of {bytes} bytes is not a multiple of {unit}, \
         which direct I/O needs here. Use a multiple, or --buffered"
    )]
    Alignment {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// `block size`, `start of the span` or `stride`.
        what: &'static str,
        /// Its value.
        bytes: u64,
        /// The unit.
        unit: u32,
    },
    /// The scratch file could not be given its content.
    #[error("{path}: the scratch file could not be written ({errno}); {remedy}")]
    Layout {
        /// The target.
        path: String,
        /// The errors seen.
        errno: String,
        /// What to do, a clause.
        remedy: String,
    },
    /// The watcher ended everything before the workload began.
    #[error("interrupted before '{workload}' began")]
    Interrupted {
        /// The workload.
        workload: String,
    },
    /// A verified workload that cannot be.
    #[error("{path}: workload '{workload}' cannot be verified: {why}")]
    Unverifiable {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// Why.
        why: String,
    },
    /// A writing workload on a target opened for reading.
    #[error(
        "{path}: workload '{workload}' writes, but the target is open for reading only. Give it \
         up with --destroy or --overwrite, or name a directory"
    )]
    ReadOnly {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
    },
    /// The kernel refused to go on.
    #[error("{path}: {source} while '{workload}' ran. {}", worker_remedy(source))]
    Worker {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// Why.
        source: io::Error,
    },
    /// The target hangs.
    #[error(
        "{path}: no answer for {seconds} s while '{workload}' ran: the device or the path to it \
         hangs. See the kernel log (dmesg)"
    )]
    Stalled {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// For how long.
        seconds: u64,
    },
    /// A worker ended without a report.
    #[error(
        "a thread of '{workload}' ended without a word, so that nothing can be said of it: a \
         fault of this program, please report it"
    )]
    Lost {
        /// The workload.
        workload: String,
    },
    /// No thread could be started.
    #[error(
        "a thread could not be started: {0}. Use fewer workers or a smaller depth, or raise the \
         limit of processes (ulimit -u)"
    )]
    Thread(io::Error),
}

/// A worker of `workload` on `target` stopped with `source`.
pub fn worker_error(workload: &Workload, target: &OpenTarget, source: io::Error) -> RunError {
    RunError::Worker {
        path: target.identity().path.clone(),
        workload: workload.name.clone(),
        source,
    }
}

/// A thread that panicked, and what it said.
#[derive(Debug, thiserror::Error)]
#[error("a thread panicked ({0})")]
pub struct WorkerPanic(pub String);

/// Buffers and queues take memory; anything else is the kernel interface's.
fn worker_remedy(source: &io::Error) -> &'static str {
    if source
        .get_ref()
        .is_some_and(|inner| inner.is::<WorkerPanic>())
    {
        return "That is a fault of this program, not of the disk: please report it";
    }
    if source.kind() == io::ErrorKind::OutOfMemory {
        return "Use fewer --jobs, a smaller --depth or a smaller --bs, or raise the limits on \
                memory (ulimit -v, the container's)";
    }
    "Try another --engine"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_no_matter_of_the_interface() {
        let control = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            RunError::Worker {
                path: "disk".to_owned(),
                workload: "load".to_owned(),
                source,
            }
            .to_string()
        };
        assert!(
            control(libc::ENOMEM).contains("a smaller --depth")
                && control(libc::EINVAL).ends_with("Try another --engine")
        );
    }
}
