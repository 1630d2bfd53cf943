//! Divides a workload on a target among its threads: gives each its part of the span, its budget
//! and its pattern.

use crate::io::Extent;
use crate::load::budget::Budget;
use crate::load::pattern::{Pattern, SharedCursors, order_key};
use crate::run::limits::{budget_of, largest_block, threads_per_worker, within_part};
use crate::run::prepare::PreparedTarget;
use diskproof_model::plan::{Access, Workload};
use std::ops::Range;

/// The division of an assignment's work among its threads. Each worker keeps a part of the depth in
/// flight: by one thread with a queue, or by several threads with one request each.
pub(crate) struct WorkDivision<'a> {
    workload: &'a Workload,
    prepared: &'a PreparedTarget,
    seed: u64,
    pub workers: u64,
    threads_per_worker: u64,
    /// Requests in flight of each thread.
    pub depth: u32,
    /// The budget of all threads together.
    budget: Budget,
    /// The number of a thread's random numbers is this plus its index in the assignment. The upper
    /// half is the assignment, so that no two threads of a run share random numbers.
    random_stream_base: u64,
    /// The blocks that all threads together visit once.
    visit_cursors: SharedCursors,
}

/// A part of the span, and the budget within it. Clones share the budget.
#[derive(Clone)]
pub(crate) struct WorkPart {
    pub extent: Extent,
    pub budget: Budget,
}

impl<'a> WorkDivision<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        prepared: &'a PreparedTarget,
        seed: u64,
        assignment: usize,
    ) -> Self {
        let engine = &prepared.known.engine;
        let in_flight = engine.depth.unwrap_or(workload.depth);
        let per_worker = threads_per_worker(in_flight, engine.used);
        let threads = u64::from(workload.workers) * u64::from(per_worker);
        let visited_blocks = if workload.shape.order.workers_share_map {
            prepared.earlier.moved_bytes / u64::from(largest_block(workload))
        } else {
            0
        };
        Self {
            workload,
            prepared,
            seed,
            workers: u64::from(workload.workers),
            threads_per_worker: u64::from(per_worker),
            depth: in_flight / per_worker,
            budget: budget_of(workload, threads),
            random_stream_base: (assignment as u64) << 32,
            visit_cursors: SharedCursors::after(visited_blocks),
        }
    }

    /// The threads of all workers.
    pub(crate) fn threads(&self) -> u64 {
        self.workers * self.threads_per_worker
    }

    /// The stream of random numbers of the thread with this index.
    pub(crate) fn random_stream(&self, index: u64) -> u64 {
        self.random_stream_base | index
    }

    /// The indices of a worker's threads among those of the assignment.
    pub(crate) fn threads_of(&self, worker: u64) -> Range<u64> {
        let first = worker * self.threads_per_worker;
        first..first + self.threads_per_worker
    }

    /// The part of a worker.
    pub(crate) fn part_of_worker(&self, worker: u64) -> WorkPart {
        self.part_of(worker, self.workers)
    }

    /// The part of the thread with this index, whose worker has `worker_part`. The threads of a
    /// worker go through its part of a sequential pattern together, with one budget.
    pub(crate) fn part_of_thread(&self, worker_part: &WorkPart, index: u64) -> WorkPart {
        if matches!(self.workload.access, Access::Sequential) {
            worker_part.clone()
        } else {
            self.part_of(index, self.threads())
        }
    }

    /// One of so many equal parts.
    fn part_of(&self, index: u64, parts: u64) -> WorkPart {
        let whole = self.prepared.extent;
        let block_bytes = u64::from(largest_block(self.workload));
        let extent = whole.share(&self.workload.access, index, parts, block_bytes);
        WorkPart {
            extent,
            budget: within_part(&self.budget, self.workload, extent, whole),
        }
    }

    /// The steps of the thread with this index in its part of the span. The threads of a worker
    /// share `worker_cursors`.
    pub(crate) fn pattern(
        &self,
        worker: u64,
        index: u64,
        extent: Extent,
        worker_cursors: &SharedCursors,
    ) -> Pattern {
        let data = match &self.prepared.transaction_span {
            Some(split) => split.data,
            None => extent,
        };
        let mut pattern = Pattern::new(self.workload, data, self.seed, self.random_stream(index));
        pattern.skip(self.prepared.earlier.moved_bytes / self.workers);
        if self.threads_per_worker > 1 {
            let key = order_key(self.seed, self.random_stream_base | worker);
            pattern = pattern.with_cursors(worker_cursors, extent, key);
        }
        if self.prepared.journal.is_some() {
            pattern.with_each_write_once(&self.visit_cursors, self.seed)
        } else if self.workload.checks_reads() {
            pattern.with_each_block_once(&self.visit_cursors, self.seed)
        } else if self.workload.shape.order.workers_share_map {
            pattern.with_each_block_once(&self.visit_cursors, self.prepared.order_seed)
        } else {
            pattern
        }
    }
}
