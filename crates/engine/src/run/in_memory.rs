//! Blocks in memory for workloads that write them in part. The kernel reads such a block from the
//! disk before it writes to it, unless the block is new or in the page cache. A database and a tool
//! that has just written its files find theirs in the cache, so a workload that only writes does.

use crate::run::error::RunError;
use crate::run::prepare::PreparedTarget;
use crate::run::session::{Session, layout_workload, refuse_errors};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::StopReason;
use diskproof_model::plan::{
    CachePolicy, EngineChoice, EngineKind, Layout, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::progress::Watch;
use diskproof_model::stream::Streams;
use std::ops::Range;

/// Content comes in whole pages.
const PAGE_BYTES: u64 = 4096;
/// More of a file or device of the user is not read: it would take seconds, and may not fit.
const READ_BYTES_MAX: u64 = 64 << 20;
/// Blocks of 1 MiB between two syncs, so that a slow disk never has more to write than that.
const WRITES_PER_SYNC: u32 = 8;

impl Session {
    /// Brings the blocks of a workload that writes them in part into the page cache, if they are
    /// not there. A scratch file is written once more. A file or device of the user keeps its
    /// content and is read, up to [`READ_BYTES_MAX`].
    pub(crate) fn hold_in_memory(
        &self,
        prepared: &PreparedTarget,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let (workload, cache) = (&prepared.known.workload, prepared.known.cache.used);
        if workload.layout == Layout::Provides || !workload.writes_partial_blocks(cache) {
            return Ok(());
        }
        let bytes = whole_pages(prepared, target);
        let is_read = !target.is_scratch();
        let length = bytes.end.saturating_sub(bytes.start);
        if length == 0 || target.is_in_memory(&bytes) {
            return Ok(());
        }
        if is_read && (workload.drops_cache_first || length > READ_BYTES_MAX) {
            return Ok(());
        }
        let loading = loading_workload(&bytes, is_read);
        // The loading does not go on where a slice has ended.
        let session = Self {
            skip_bytes: 0,
            ..*self
        };
        let measured = session.move_content(&loading, target, watch)?;
        if measured.stopped == StopReason::Interrupted {
            return Err(RunError::interrupted(&workload.name));
        }
        if !is_read {
            refuse_errors(&measured, target)?;
        }
        target.mark_in_memory(bytes);
        Ok(())
    }
}

/// The span, extended to whole pages within the content of the target.
fn whole_pages(prepared: &PreparedTarget, target: &OpenTarget) -> Range<u64> {
    let extent = prepared.extent;
    let start = extent.start / PAGE_BYTES * PAGE_BYTES;
    let end = extent.end().next_multiple_of(PAGE_BYTES);
    let most = target.usable_bytes() / PAGE_BYTES * PAGE_BYTES;
    start..end.min(most)
}

fn loading_workload(bytes: &Range<u64>, is_read: bool) -> Workload {
    let through_cache = Workload {
        depth: 1,
        cache: CachePolicy::Cached,
        engine: EngineChoice::Fixed(EngineKind::Sync),
        ..layout_workload(bytes.start, bytes.end - bytes.start, None)
    };
    if is_read {
        Workload {
            streams: Streams::with_reads(1000),
            sync: SyncPolicy::None,
            ..through_cache
        }
    } else {
        Workload {
            sync: SyncPolicy::Every {
                writes: WRITES_PER_SYNC,
                call: SyncCall::Fdatasync,
            },
            ..through_cache
        }
    }
}
