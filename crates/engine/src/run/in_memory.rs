//! Brings blocks into memory for workloads that write them in part. The kernel reads such a block
//! from the disk before it writes to it, unless the block is new or in the page cache. A database
//! and a tool that has just written its files find theirs in the cache, so a workload that only
//! writes does.

use crate::run::error::RunError;
use crate::run::first_request::EarlyErrors;
use crate::run::layout::{LayoutWay, layout_workload, with_page_cache};
use crate::run::prepare::PreparedTarget;
use crate::run::session::{Session, refuse_errors};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{HELD_BYTES_MAX, Layout, SyncPolicy, Workload};
use diskproof_model::progress::Watch;
use diskproof_model::stream::Streams;
use std::ops::Range;

/// Content comes in whole pages.
const PAGE_BYTES: u64 = 4096;
/// The longest that blocks are brought into memory, in nanoseconds: no plan counts this time.
const HOLDING_NS_MAX: u64 = 2_000_000_000;
/// The remark at a workload whose blocks are not in memory.
const NOT_HELD: &str = "the page cache does not hold its blocks, so the kernel read each from the \
                        disk before it wrote a part of it: the figure includes these reads";

impl Session {
    /// Brings the blocks of a workload that writes them in part into the page cache, if they are
    /// not there, up to [`HELD_BYTES_MAX`]. A scratch file is written once more. A file or device
    /// of the user keeps its content and is read. Where they stay on the disk, the measurement says
    /// so.
    pub(crate) fn hold_in_memory(
        &self,
        prepared: &mut PreparedTarget,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let (workload, cache) = (&prepared.known.workload, prepared.known.cache.used);
        if workload.layout == Layout::Provides || !workload.writes_partial_blocks(cache) {
            return Ok(());
        }
        let bytes = whole_pages(prepared, target);
        let length = bytes.end.saturating_sub(bytes.start);
        if length == 0 || target.is_in_memory(&bytes) {
            return Ok(());
        }
        let is_read = !target.is_scratch();
        if is_read && workload.drops_cache_first {
            // The workload wants the reads, as fio makes them with files that exist.
            return Ok(());
        }
        let mut are_held = false;
        if length <= HELD_BYTES_MAX {
            let loaded = self.load(workload, &bytes, target, watch)?;
            are_held = loaded.are_all_held;
            loaded.errors.count_in(&mut prepared.known.ops);
        }
        if are_held {
            target.mark_in_memory(bytes);
        } else {
            let why = &mut prepared.known.cache.why;
            why.get_or_insert_with(|| NOT_HELD.to_owned());
        }
        Ok(())
    }

    /// Loads these bytes into the page cache.
    fn load(
        &self,
        workload: &Workload,
        bytes: &Range<u64>,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<LoadedBlocks, RunError> {
        let is_read = !target.is_scratch();
        let loading = loading_workload(bytes, is_read);
        let measured = self.run_preparation(&loading, target, watch)?;
        if measured.stopped == StopReason::Interrupted {
            return Err(RunError::interrupted(&workload.name));
        }
        if !is_read {
            refuse_errors(&measured, target)?;
        }
        Ok(LoadedBlocks::from_measurement(&measured))
    }
}

/// The end of an attempt to load blocks into the page cache.
struct LoadedBlocks {
    /// False where the time did not suffice, or blocks could not be read.
    are_all_held: bool,
    /// The errors of the disk.
    errors: EarlyErrors,
}

impl LoadedBlocks {
    fn from_measurement(measured: &Measurement) -> Self {
        let mut errors = EarlyErrors::default();
        let mut has_failed = false;
        if let Some(reads) = measured.ops.get(&OpKind::Read) {
            has_failed = !reads.errors.is_empty();
            errors.add_reads(&reads.errors);
        }
        Self {
            are_all_held: measured.stopped != StopReason::Time && !has_failed,
            errors,
        }
    }
}

/// The span, extended to whole pages within the content of the target.
fn whole_pages(prepared: &PreparedTarget, target: &OpenTarget) -> Range<u64> {
    let extent = prepared.extent;
    let start = extent.start / PAGE_BYTES * PAGE_BYTES;
    let end = extent.end().next_multiple_of(PAGE_BYTES);
    let content_end = target.usable_bytes() / PAGE_BYTES * PAGE_BYTES;
    start..end.min(content_end)
}

fn loading_workload(bytes: &Range<u64>, is_read: bool) -> Workload {
    let length = bytes.end - bytes.start;
    let layout = layout_workload(bytes.start, length, Some(HOLDING_NS_MAX));
    if is_read {
        Workload {
            streams: Streams::with_reads(1000),
            sync: SyncPolicy::None,
            ..with_page_cache(layout)
        }
    } else {
        LayoutWay::Cached.adapt(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Extent;
    use crate::testing::simulate::simulated;

    #[test]
    fn errors_of_loading_are_kept_and_their_blocks_are_not_in_memory() {
        let mut measured = simulated(&Workload::named("loading"), Extent::default());
        measured.stopped = StopReason::Bytes;
        let loaded = LoadedBlocks::from_measurement(&measured);
        assert!(loaded.are_all_held && loaded.errors == EarlyErrors::default());
        let reads = measured.ops.entry(OpKind::Read).or_default();
        reads.errors.insert("EIO".to_owned(), 2);
        let loaded = LoadedBlocks::from_measurement(&measured);
        assert!(!loaded.are_all_held);
        let mut counted = simulated(&Workload::named("workload"), Extent::default()).ops;
        loaded.errors.count_in(&mut counted);
        assert_eq!(counted[&OpKind::Read].errors["EIO"], 2);
    }
}
