//! pg_test_fsync of PostgreSQL, from the arguments to its tests, each with its workload, and to the
//! lines: each label before its test, each figure after it.

#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments};
use crate::drop_in::{DropIn, Started};
use crate::figures::{count, per_second};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, SECOND, blocking, every, part, until_ns};
use crate::printer::{DropInError, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::CachePolicy::{self, Cached, Direct};
use diskproof_model::plan::{Access, Plan, SyncCall, SyncPolicy, Workload};
use diskproof_model::stream::Streams;
use diskproof_model::target::TargetIdentity;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("pg_test_fsync.txt"), start));

const DEFAULT_FILE: &str = "./pg_test_fsync.out";
const DEFAULT_SECONDS: u32 = 5;
const HINT: &str = "pg_test_fsync: hint: Try \"pg_test_fsync --help\" for more information.\n";
const NOT_DIRECT: &str = "* This file system and its mount options do not support direct
  I/O, e.g. ext4 in journaled mode.
";
const OPEN_FILE: &str =
    "'write, fsync, close' and 'write, close, fsync' keep the file open, without open and close";

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FsyncLoad {
    head: LoadHead,
    seconds: u32,
    /// The first lines, which the tool prints before it opens its file.
    opening: String,
}

/// Reads the arguments.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine {
        after_option_error: HINT,
        ..CommandLine::new(DROP_IN.usage)
    };
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<FsyncLoad, String> {
    let with_hint = |text: &str| format!("error: {text}\n{}", HINT.trim_end());
    if let Some(first) = given.operands.first() {
        let text = format!("too many command-line arguments (first is \"{first}\")");
        return Err(with_hint(&text));
    }
    let seconds = given.read("s", |text| match text.trim_start().parse::<u32>() {
        Ok(0) => Err("error: --secs-per-test must be in range 1..4294967295".to_owned()),
        Ok(seconds) => Ok(seconds),
        Err(_) => Err(with_hint("invalid argument for option --secs-per-test")),
    })?;
    let file = given.value("f").unwrap_or(DEFAULT_FILE);
    let mut notes = vec![OPEN_FILE.to_owned()];
    if Path::new(file) != Path::new(DEFAULT_FILE) {
        let text = format!("the test file has no name; {file} is neither written nor removed");
        notes.insert(0, text);
    }
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    let plural = if seconds == 1 { "" } else { "s" };
    let opening = format!(
        "{seconds} second{plural} per test\n\
         O_DIRECT supported on this platform for open_datasync and open_sync.\n"
    );
    Ok(FsyncLoad {
        opening,
        head: LoadHead {
            fills_scratch_file: true,
            ..LoadHead::new(LoadTarget::directory_of(Path::new(file)), notes)
        },
        seconds,
    })
}

impl FsyncLoad {
    fn rows(&self, target: &TargetIdentity) -> Vec<TestRow> {
        let sectors = target.layers.iter().map(|layer| layer.logical_block_bytes);
        rows(sectors.flatten().max().unwrap_or(0))
    }
}

impl DropInLoad for FsyncLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let rows = self.rows(context.target);
        let workloads = rows.iter().filter_map(|row| row.workload(self.seconds));
        let scratch_bytes = Some(SEGMENT_BYTES);
        Ok(DROP_IN.plan(context, scratch_bytes, workloads.collect()))
    }

    fn text_before_opening(&self) -> &str {
        &self.opening
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FsyncPrinter {
            rows: self.rows(target),
            opening: self.opening.clone(),
            current: 0,
            has_gap: false,
        })
    }
}

/// Prints line by line.
#[derive(Debug)]
struct FsyncPrinter {
    rows: Vec<TestRow>,
    /// The first lines.
    opening: String,
    /// The row whose label was printed last.
    current: usize,
    /// Whether the current table has a row without direct I/O.
    has_gap: bool,
}

impl FsyncPrinter {
    /// The label of the current row, and all rows that need no measurement.
    fn advance(&mut self, text: &mut String) {
        while let Some(row) = self.rows.get(self.current) {
            let _ = write!(text, "{}        {:<30}", row.heading, row.label);
            let RowContent::Missing(why) = row.measured else {
                return;
            };
            self.finish_row(Err(why), text);
        }
    }

    /// The rate of the current row, or why it has none, and the footnote at the end of a table.
    fn finish_row(&mut self, rate: Result<f64, &str>, text: &mut String) {
        let _ = match rate {
            Ok(rate) => writeln!(text, "{rate:13.3} ops/sec  {:6.0} usecs/op", 1e6 / rate),
            Err(why) => writeln!(text, "{why:>21}"),
        };
        // pg_test_fsync has no footnote below the table of sizes.
        let row = self.rows.get(self.current);
        let has_footnote = row.is_some_and(|row| !row.label.contains("kB"));
        self.has_gap |= rate == Err(NO_DIRECT) && has_footnote;
        self.current += 1;
        let next = self.rows.get(self.current);
        let is_last = next.is_none_or(|row| !row.heading.is_empty());
        if is_last && std::mem::take(&mut self.has_gap) {
            text.push_str(NOT_DIRECT);
        }
    }
}

impl ToolPrinter for FsyncPrinter {
    fn begin(&mut self) -> String {
        let mut text = self.opening.clone();
        self.advance(&mut text);
        text
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        let mut text = String::new();
        if let Some(row) = self.rows.get(self.current) {
            let rate = row.rate(measurement);
            self.finish_row(rate, &mut text);
            self.advance(&mut text);
        }
        text
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let is_cut = result.interrupted || self.current < self.rows.len();
        ToolText::out(if is_cut { "\n" } else { "" })
    }
}

/// DEFAULT_XLOG_SEG_SIZE.
const SEGMENT_BYTES: u64 = 16 << 20;
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

/// The filesystem has no direct I/O for it, or the disk's sectors are larger than the writes.
const NO_DIRECT: &str = "n/a*";
/// It was not measured, or this platform does not have it.
const NOT_MEASURED: &str = "n/a";

/// What a test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowContent {
    /// Writes of this size, as many as the second number to an operation, with this sync, past the
    /// page cache or through it.
    Writes(u32, u32, SyncPolicy, CachePolicy),
    /// Nothing; the sign for the reason.
    Missing(&'static str),
}

/// A line of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestRow {
    /// The heading before it; empty in the middle of a table.
    heading: &'static str,
    /// What the line begins with.
    label: &'static str,
    /// Name of its workload.
    name: String,
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
fn rows(sector_bytes: u32) -> Vec<TestRow> {
    let page = |writes, sync, cache| RowContent::Writes(PAGE_BYTES, writes, sync, cache);
    let methods = |heading, writes| {
        let synced = |call| page(writes, every(writes, call), Cached);
        let tests = [
            ("open_datasync", page(writes, OPEN_DSYNC, Direct)),
            ("fdatasync", synced(SyncCall::Fdatasync)),
            ("fsync", synced(SyncCall::Fsync)),
            ("fsync_writethrough", RowContent::Missing(NOT_MEASURED)),
            ("open_sync", page(writes, OPEN_SYNC, Direct)),
        ];
        let tests = tests.map(|(label, content)| (label, label, content));
        table(heading, tests)
    };
    let mut two_writes = methods(TWO_WRITES, 2);
    two_writes.iter_mut().for_each(|row| row.name += "-2");
    let size = |kib: u32| {
        if sector_bytes > kib << 10 {
            RowContent::Missing(NO_DIRECT)
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
    fn workload(&self, seconds: u32) -> Option<Workload> {
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

    /// Operations per second, or the sign for why there are none.
    fn rate(&self, measurement: &Measurement) -> Result<f64, &'static str> {
        let (writes, sync, cache) = match self.measured {
            RowContent::Writes(_, writes, sync, cache) => (writes, sync, cache),
            RowContent::Missing(why) => return Err(why),
        };
        if cache == Direct && measurement.cache.used != Direct {
            return Err(NO_DIRECT);
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
            rate if rate > 0.0 => Ok(rate),
            _ => Err(NOT_MEASURED),
        }
    }
}
