//! The parts that the plans of all drop-ins have in common.

use crate::drop_in::DropIn;
use crate::load::PlanContext;
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Order, Plan, Scratch, Span, Stop,
    SyncCall, SyncPolicy, Task, Workload, Workloads, WriteFlag,
};
use diskproof_model::shape::AccessAdvice;

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// The most threads that a command line may request of a drop-in. Each has a stack and a buffer.
/// Chosen: more is more likely a mistake than a test.
pub(crate) const THREADS_MAX: u64 = 1024;

/// Random requests, for which every block is as likely as another one.
pub(crate) const RANDOM: Access = Access::Random {
    distribution: Distribution::Uniform,
};

/// The order of a tool's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOrder {
    Random,
    Sequential,
}

impl RequestOrder {
    /// The accesses of a workload in this order.
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Random => RANDOM,
            Self::Sequential => Access::Sequential,
        }
    }
}

/// Each write is durable with its metadata when it returns: the descriptor has O_SYNC.
pub(crate) const OPEN_SYNC: SyncPolicy = SyncPolicy::WithWrite {
    flag: WriteFlag::OpenSync,
};

/// Each write is durable when it returns: the descriptor has O_DSYNC.
pub(crate) const OPEN_DSYNC: SyncPolicy = SyncPolicy::WithWrite {
    flag: WriteFlag::OpenDsync,
};

/// A sync by this call after so many writes.
pub(crate) const fn sync_every(writes: u32, call: SyncCall) -> SyncPolicy {
    SyncPolicy::Every { writes, call }
}

/// A workload of this name whose requests are blocking calls, one at a time.
pub(crate) fn blocking_workload(name: &str, access: Access, block_bytes: u32) -> Workload {
    Workload {
        access,
        block_bytes,
        engine: EngineChoice::Fixed(EngineKind::Sync),
        ..Workload::named(name)
    }
}

/// A span of so many bytes of the target.
pub(crate) fn span_of(start_bytes: u64, length_bytes: u64) -> Span {
    Span {
        start_bytes,
        length_bytes: Some(length_bytes),
    }
}

/// Ends a workload after so many bytes.
pub(crate) fn until_bytes(bytes: u64) -> Stop {
    Stop {
        bytes: Some(bytes),
        ..Stop::default()
    }
}

/// Ends a workload after this time.
pub(crate) fn until_ns(time_ns: u64) -> Stop {
    Stop {
        time_ns: Some(time_ns),
        ..Stop::default()
    }
}

impl DropIn {
    /// A plan of these workloads. Like those of the tools, their buffers lie in ordinary pages,
    /// which makes large requests slower than huge pages would, and the kernel gets no advice on
    /// the order of reads unless the tool gives one: a sequential order that it knows of doubles
    /// its read-ahead.
    pub(crate) fn plan(
        &self,
        context: &PlanContext<'_>,
        scratch_bytes: Option<u64>,
        mut workloads: Vec<Workload>,
    ) -> Plan {
        for workload in &mut workloads {
            let reads_cache = workload.reads() && workload.cache != CachePolicy::Direct;
            let threads = &mut workload.shape.threads;
            threads.ordinary_pages = true;
            if reads_cache {
                threads.advice.get_or_insert(AccessAdvice::Normal);
            }
        }
        let mut tasks = Vec::new();
        if !workloads.is_empty() {
            tasks.push(Task::Workloads(Workloads {
                order: Order::Whole,
                ..Workloads::as_planned(workloads)
            }));
        }
        Plan {
            seed: context.seed,
            targets: vec![context.target.path.clone()],
            scratch: scratch_bytes.map(Scratch::of_size),
            tasks,
            ..Plan::new(format!("as {}", self.name), context.argv.to_vec())
        }
    }
}
