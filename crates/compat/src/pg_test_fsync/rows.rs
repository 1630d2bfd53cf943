//! The tests of pg_test_fsync in order, each with its workload and the text around it.

use crate::figures::{count, per_second};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, SECOND, blocking, every, part, until_ns};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::CachePolicy::{self, Cached, Direct};
use diskproof_model::plan::{Access, SyncCall, SyncPolicy, Workload};
use diskproof_model::stream::Streams;

/// DEFAULT_XLOG_SEG_SIZE.
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;
/// XLOG_BLCKSZ.
const PAGE_BYTES: u32 = 8192;

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
    pub name: String,
    measured: RowContent,
}

/// A table: its heading, and the tests as label, name and content.
fn table<const N: usize>(
    heading: &'static str,
    tests: [(&'static str, &str, RowContent); N],
) -> [TestRow; N] {
    let mut heading = heading;
    tests.map(|(label, name, measured)| TestRow {
        heading: std::mem::take(&mut heading),
        label,
        name: name.to_owned(),
        measured,
    })
}

/// All tests, on a disk with sectors of this size.
pub(super) fn rows(sector_bytes: u32) -> Vec<TestRow> {
    let page = |writes, sync, cache| RowContent::Writes(PAGE_BYTES, writes, sync, cache);
    let methods = |heading, writes| {
        let synced = |call| page(writes, every(writes, call), Cached);
        let tests = [
            ("open_datasync", page(writes, OPEN_DSYNC, Direct)),
            ("fdatasync", synced(SyncCall::Fdatasync)),
            ("fsync", synced(SyncCall::Fsync)),
            ("fsync_writethrough", RowContent::Missing),
            ("open_sync", page(writes, OPEN_SYNC, Direct)),
        ];
        table(
            heading,
            tests.map(|(label, content)| (label, label, content)),
        )
    };
    let mut two_writes = methods(TWO_WRITES, 2);
    two_writes.iter_mut().for_each(|row| row.name += "-2");
    let size = |kib: u32| {
        if sector_bytes > kib << 10 {
            RowContent::SectorTooLarge
        } else {
            RowContent::Writes(kib << 10, 16 / kib, OPEN_SYNC, Direct)
        }
    };
    let sizes = [
        (" 1 * 16kB open_sync write", "open_sync-1x16k", size(16)),
        (" 2 *  8kB open_sync writes", "open_sync-2x8k", size(8)),
        (" 4 *  4kB open_sync writes", "open_sync-4x4k", size(4)),
        (" 8 *  2kB open_sync writes", "open_sync-8x2k", size(2)),
        ("16 *  1kB open_sync writes", "open_sync-16x1k", size(1)),
    ];
    let call = SyncCall::Fsync;
    let elsewhere = page(1, SyncPolicy::OtherDescriptor { call }, Cached);
    let here = page(1, every(1, call), Cached);
    let descriptors = [
        ("write, fsync, close", "write-fsync", here),
        ("write, close, fsync", "fsync-elsewhere", elsewhere),
    ];
    let unsynced = [("write", "unsynced", page(1, SyncPolicy::None, Cached))];
    let one_write = methods(ONE_WRITE, 1).into_iter();
    one_write
        .chain(two_writes)
        .chain(table(SIZES, sizes))
        .chain(table(DESCRIPTORS, descriptors))
        .chain(table(UNSYNCED, unsynced))
        .collect()
}

impl TestRow {
    /// Its workload, for this many seconds; `None` where nothing is measured.
    pub(super) fn workload(&self, seconds: u32) -> Option<Workload> {
        let RowContent::Writes(block_bytes, writes, sync, cache) = self.measured else {
            return None;
        };
        Some(Workload {
            streams: Streams::with_reads(0),
            // The same blocks, repeatedly.
            span: part(0, u64::from(block_bytes) * u64::from(writes)),
            stop: until_ns(u64::from(seconds) * SECOND),
            sync,
            cache,
            ..blocking(&self.name, Access::Sequential, block_bytes)
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
        if cache == Direct && measurement.cache.used != Direct {
            return RowFigures::NotDirect;
        }
        let kind = match sync {
            SyncPolicy::None => OpKind::Write,
            SyncPolicy::Every { writes: 2.., .. } => OpKind::Sync,
            _ => OpKind::Commit,
        };
        let count = count(measurement, kind) as f64;
        let operations = match kind {
            OpKind::Sync => count,
            _ => count / f64::from(writes),
        };
        match per_second(operations, measurement.wall_ns) {
            rate if rate > 0.0 => RowFigures::Rate(rate),
            _ => RowFigures::Unknown,
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
