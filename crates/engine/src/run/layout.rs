//! Describes the workloads that write the content of scratch files: blocks, order, and the way to
//! the disk.

use diskproof_device::{OpenTarget, memory_free_bytes};
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, HELD_BYTES_MAX, Layout, Span, Stop, SyncCall,
    SyncPolicy, Workload,
};
use diskproof_model::shape::WriteContent;
use diskproof_model::stream::Streams;

/// Block size with which a scratch file gets its content: disks reach their full rate with it.
pub(crate) const LAYOUT_BLOCK_BYTES: u32 = 1 << 20;
/// Requests in flight while it does. More would make an interruption wait longer for a slow disk;
/// fewer would leave a fast one idle between two blocks. Chosen, not measured.
const LAYOUT_DEPTH: u32 = 8;
/// Blocks between two syncs, so few that a slow disk never has much to write at once. Chosen, not
/// measured.
const WRITES_PER_SYNC: u32 = 8;

/// The content that a scratch file gets: how much, which way, and within which time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutGoal {
    /// The file has content from its start up to here afterwards.
    pub upto_bytes: u64,
    /// Through or past the page cache.
    pub way: LayoutWay,
    /// The longest that this may take, in nanoseconds.
    pub time_ns: Option<u64>,
    /// The content; `None` for random data.
    pub content: Option<WriteContent>,
}

/// The end of a layout.
#[derive(Debug)]
pub enum LayoutEnd {
    /// The file had all of the content before.
    NothingToWrite,
    /// Wrote the content, or as much of it as the time allowed.
    Written(Box<Measurement>),
    /// The watcher interrupted the writing.
    Interrupted(Box<Measurement>),
}

impl LayoutEnd {
    /// True if the watcher interrupted it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted(_))
    }
}

/// The way of a scratch file's content to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutWay {
    /// Past the page cache.
    Direct,
    /// Through the page cache, which keeps the content for a workload that writes parts of blocks.
    Cached,
}

impl LayoutWay {
    /// For the workload that needs the content, of so many bytes. The page cache gets up to
    /// [`HELD_BYTES_MAX`] always, and more only where it takes at most half of the free memory.
    pub fn for_workload(workload: &Workload, bytes: u64) -> Self {
        if !workload.writes_partial_blocks(workload.cache) {
            return Self::Direct;
        }
        let free_bytes = memory_free_bytes().unwrap_or(0);
        if bytes <= HELD_BYTES_MAX.max(free_bytes / 2) {
            Self::Cached
        } else {
            Self::Direct
        }
    }

    /// Makes a layout take this way.
    pub(crate) fn adapt(self, layout: Workload) -> Workload {
        match self {
            Self::Direct => layout,
            Self::Cached => Workload {
                sync: SyncPolicy::Every {
                    writes: WRITES_PER_SYNC,
                    call: SyncCall::Fdatasync,
                },
                ..with_page_cache(layout)
            },
        }
    }
}

/// Writes each block of a part of a scratch file once, in order.
pub(crate) fn layout_workload(
    start_bytes: u64,
    length_bytes: u64,
    time_ns: Option<u64>,
) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        // The largest block that divides the length.
        block_bytes: LAYOUT_BLOCK_BYTES.min(1 << length_bytes.trailing_zeros().min(31)),
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

/// Makes a layout go through the page cache.
pub(crate) fn with_page_cache(layout: Workload) -> Workload {
    Workload {
        depth: 1,
        cache: CachePolicy::Cached,
        engine: EngineChoice::Fixed(EngineKind::Sync),
        ..layout
    }
}

/// Fits a layout to a target of several files: no block crosses the end of a file, and blocking
/// calls write them.
pub(crate) fn split_at_file_ends(layout: Workload, target: &OpenTarget) -> Workload {
    let Some(part) = target.part_of_file() else {
        return layout;
    };
    // The largest power of two that divides the part's start, its length and the offset.
    let borders = part.start | part.bytes | layout.span.start_bytes;
    Workload {
        block_bytes: layout
            .block_bytes
            .min(1 << borders.trailing_zeros().min(31)),
        engine: EngineChoice::Fixed(EngineKind::Sync),
        ..layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fits_in_memory_is_kept_and_only_for_writes_of_a_part() {
        let whole = Workload {
            streams: Streams::with_reads(0),
            cache: CachePolicy::Buffered,
            block_bytes: 4096,
            ..Workload::named("w")
        };
        let part = Workload {
            block_bytes: 1024,
            ..whole.clone()
        };
        let direct = Workload {
            cache: CachePolicy::Direct,
            ..part.clone()
        };
        for (workload, bytes, way) in [
            (&part, HELD_BYTES_MAX, LayoutWay::Cached),
            (&part, 1 << 50, LayoutWay::Direct),
            (&whole, HELD_BYTES_MAX, LayoutWay::Direct),
            (&direct, HELD_BYTES_MAX, LayoutWay::Direct),
        ] {
            assert_eq!(
                LayoutWay::for_workload(workload, bytes),
                way,
                "{workload:?}"
            );
        }
    }
}
