//! The tests of pg_test_fsync in order, each with its workload and the text around it.

use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Span, Stop, SyncCall, SyncPolicy, Workload,
    WriteFlag,
};

/// DEFAULT_XLOG_SEG_SIZE.
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;
/// XLOG_BLCKSZ.
const PAGE_BYTES: u32 = 8192;
const SECOND: u64 = 1_000_000_000;

const ONE_WRITE: &str = "
Compare file sync methods using one 8kB write:
(in wal_sync_method preference order, except fdatasync is Linux's default)
";
const TWO_WRITES: &str = "
Compare file sync methods using two 8kB writes:
(in wal_sync_method preference order, except fdatasync is Linux's default)
";
const SIZES: &str = "
Compare open_sync with different write sizes:
(This is designed to compare the cost of writing 16kB in different write
open_sync sizes.)
";
const DESCRIPTORS: &str = "
Test if fsync on non-write file descriptor is honored:
(If the times are similar, fsync() can sync data written on a different
descriptor.)
";
const UNSYNCED: &str = "
Non-sync'ed 8kB writes:
";

/// What a test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowContent {
    /// Writes of this size, as many as the second number to an operation, with this sync, past the
    /// page cache or through it.
    Writes(u32, u32, SyncPolicy, CachePolicy),
    /// This platform does not have it.
    Missing,
    /// The disk's sectors are larger than the writes.
    SectorTooLarge,
}

/// A line of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestRow {
    /// The heading before it; empty in the middle of a table.
    pub heading: &'static str,
    /// What the line begins with.
    pub label: &'static str,
    /// Name of its workload.
    pub name: &'static str,
    measured: RowContent,
}

const fn every(writes: u32, call: SyncCall) -> SyncPolicy {
    SyncPolicy::Every { writes, call }
}

const OPEN_DSYNC: SyncPolicy = SyncPolicy::WithWrite {
    flag: WriteFlag::OpenDsync,
};
const OPEN_SYNC: SyncPolicy = SyncPolicy::WithWrite {
    flag: WriteFlag::OpenSync,
};

/// All tests, on a disk with sectors of this size.
pub(super) fn rows(sector_bytes: u32) -> Vec<TestRow> {
    use CachePolicy::{Cached, Direct};
    let row = |heading, label, name, measured| TestRow {
        heading,
        label,
        name,
        measured,
    };
    let page = |writes, sync, cache| RowContent::Writes(PAGE_BYTES, writes, sync, cache);
    let mut rows = Vec::new();
    for (heading, writes, names) in [
        (
            ONE_WRITE,
            1,
            ["open_datasync", "fdatasync", "fsync", "open_sync"],
        ),
        (
            TWO_WRITES,
            2,
            ["open_datasync-2", "fdatasync-2", "fsync-2", "open_sync-2"],
        ),
    ] {
        let [open_datasync, fdatasync, fsync, open_sync] = names;
        let by_fdatasync = page(writes, every(writes, SyncCall::Fdatasync), Cached);
        let by_fsync = page(writes, every(writes, SyncCall::Fsync), Cached);
        rows.extend([
            row(
                heading,
                "open_datasync",
                open_datasync,
                page(writes, OPEN_DSYNC, Direct),
            ),
            row("", "fdatasync", fdatasync, by_fdatasync),
            row("", "fsync", fsync, by_fsync),
            row("", "fsync_writethrough", "", RowContent::Missing),
            row("", "open_sync", open_sync, page(writes, OPEN_SYNC, Direct)),
        ]);
    }
    rows.extend(size_rows(sector_bytes));
    let elsewhere = SyncPolicy::OtherDescriptor {
        call: SyncCall::Fsync,
    };
    let same = page(1, every(1, SyncCall::Fsync), Cached);
    rows.extend([
        row(DESCRIPTORS, "write, fsync, close", "write-fsync", same),
        row(
            "",
            "write, close, fsync",
            "fsync-elsewhere",
            page(1, elsewhere, Cached),
        ),
        row(
            UNSYNCED,
            "write",
            "unsynced",
            page(1, SyncPolicy::None, Cached),
        ),
    ]);
    rows
}

/// 16 kB by open_sync, in writes of several sizes.
fn size_rows(sector_bytes: u32) -> Vec<TestRow> {
    let mut rows = Vec::new();
    for (index, (label, name, kib)) in [
        (" 1 * 16kB open_sync write", "open_sync-1x16k", 16),
        (" 2 *  8kB open_sync writes", "open_sync-2x8k", 8),
        (" 4 *  4kB open_sync writes", "open_sync-4x4k", 4),
        (" 8 *  2kB open_sync writes", "open_sync-8x2k", 2),
        ("16 *  1kB open_sync writes", "open_sync-16x1k", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let heading = if index == 0 { SIZES } else { "" };
        let measured = if sector_bytes > kib << 10 {
            RowContent::SectorTooLarge
        } else {
            RowContent::Writes(kib << 10, 16 / kib, OPEN_SYNC, CachePolicy::Direct)
        };
        rows.push(TestRow {
            heading,
            label,
            name,
            measured,
        });
    }
    rows
}

impl TestRow {
    /// Its workload, for this many seconds; `None` where nothing is measured.
    pub(super) fn workload(&self, seconds: u32) -> Option<Workload> {
        let RowContent::Writes(block_bytes, writes, sync, cache) = self.measured else {
            return None;
        };
        Some(Workload {
            read_permille: 0,
            access: Access::Sequential,
            block_bytes,
            // The same blocks, repeatedly.
            span: Span {
                start_bytes: 0,
                length_bytes: Some(u64::from(block_bytes) * u64::from(writes)),
            },
            stop: Stop {
                time_ns: Some(u64::from(seconds) * SECOND),
                ..Stop::default()
            },
            sync,
            cache,
            engine: EngineChoice::Fixed(EngineKind::Sync),
            ..Workload::named(self.name)
        })
    }

    /// The figures, or why there are none.
    pub(super) fn figures(&self, measurement: Option<&Measurement>) -> RowFigures {
        let RowContent::Writes(_, writes, sync, cache) = self.measured else {
            return match self.measured {
                RowContent::Missing => RowFigures::Missing,
                _ => RowFigures::NotDirect,
            };
        };
        let Some(measurement) = measurement else {
            return RowFigures::Unknown;
        };
        if cache == CachePolicy::Direct && measurement.cache.used != CachePolicy::Direct {
            return RowFigures::NotDirect;
        }
        let kind = match sync {
            SyncPolicy::None => OpKind::Write,
            SyncPolicy::Every { writes: 2.., .. } => OpKind::Sync,
            _ => OpKind::Commit,
        };
        let count = measurement.ops.get(&kind).map_or(0, |op| op.count) as f64;
        let operations = match kind {
            OpKind::Sync => count,
            _ => count / f64::from(writes),
        };
        match operations > 0.0 && measurement.wall_ns > 0 {
            true => RowFigures::Rate(operations / (measurement.wall_ns as f64 / 1e9)),
            false => RowFigures::Unknown,
        }
    }
}

/// The end of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowFigures {
    /// Operations per second.
    Rate(f64),
    /// Not on this platform.
    Missing,
    /// The filesystem has no direct I/O for it.
    NotDirect,
    /// It was not measured.
    Unknown,
}
