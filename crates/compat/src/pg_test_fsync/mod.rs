//! pg_test_fsync of PostgreSQL, from the arguments to its tests, each with its workload, and to the
//! lines: each label before its test, each figure after it.

#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments};
use crate::drop_in::{DropIn, Started};
use crate::figures::{ops_of_kind, per_second};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{
    OPEN_DSYNC, OPEN_SYNC, SECOND, blocking_workload, span_of, sync_every, until_ns,
};
use crate::printer::{DropInError, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::CachePolicy::{self, Cached, Direct};
use diskproof_model::plan::{Access, Plan, SyncCall, SyncPolicy, Workload};
use diskproof_model::stream::Streams;
use diskproof_model::target::TargetIdentity;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

/// The entry of pg_test_fsync in [`crate::drop_ins`].
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

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FsyncLoad {
    head: LoadHead,
    seconds: u32,
    /// The first lines, which the tool prints before it opens its file.
    opening: String,
}

/// Turns the arguments into a load, or into the text or error that pg_test_fsync prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine {
        after_option_error: HINT,
        ..CommandLine::new(DROP_IN.usage)
    };
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<FsyncLoad, String> {
    if let Some(first) = given.operands.first() {
        let text = format!("too many command-line arguments (first is \"{first}\")");
        return Err(error_with_hint(&text));
    }
    let seconds = given.read("s", read_seconds)?.unwrap_or(DEFAULT_SECONDS);
    let file = given.value("f").unwrap_or(DEFAULT_FILE);
    let mut notes = vec![OPEN_FILE.to_owned()];
    if Path::new(file) != Path::new(DEFAULT_FILE) {
        let text = format!("the test file has no name; {file} is neither written nor removed");
        notes.insert(0, text);
    }
    let plural = if seconds == 1 { "" } else { "s" };
    let opening = format!(
        "{seconds} second{plural} per test\n\
         O_DIRECT supported on this platform for open_datasync and open_sync.\n"
    );
    Ok(FsyncLoad {
        opening,
        head: LoadHead {
            fills_scratch_file: true,
            ..LoadHead::new(LoadTarget::Nameless(file.into()), notes)
        },
        seconds,
    })
}

fn read_seconds(text: &str) -> Result<u32, String> {
    match text.trim_start().parse() {
        Ok(0) => Err("error: --secs-per-test must be in range 1..4294967295".to_owned()),
        Ok(seconds) => Ok(seconds),
        Err(_) => {
            let text = "invalid argument for option --secs-per-test";
            Err(error_with_hint(text))
        }
    }
}

fn error_with_hint(text: &str) -> String {
    format!("error: {text}\n{}", HINT.trim_end())
}

impl FsyncLoad {
    fn rows(&self, target: &TargetIdentity) -> Vec<TestRow> {
        let sector_bytes = target
            .layers
            .iter()
            .flat_map(|layer| layer.logical_block_bytes)
            .max()
            .unwrap_or(0);
        rows(sector_bytes)
    }
}

impl DropInLoad for FsyncLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let mut workloads = Vec::new();
        for row in self.rows(context.target) {
            workloads.extend(row.workload(self.seconds));
        }
        Ok(DROP_IN.plan(context, Some(SEGMENT_BYTES), workloads))
    }

    fn text_before_opening(&self) -> &str {
        &self.opening
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FsyncPrinter {
            rows: self.rows(target),
            opening: self.opening.clone(),
            current: 0,
            lacks_direct: false,
        })
    }
}

/// Prints line by line.
#[derive(Debug)]
struct FsyncPrinter {
    rows: Vec<TestRow>,
    /// The lines before the first test.
    opening: String,
    /// The row whose label was printed last.
    current: usize,
    /// True if a row of the current table has no figure because it lacks direct I/O. The table then
    /// has a footnote.
    lacks_direct: bool,
}

impl FsyncPrinter {
    /// Prints the label of the current row, after all rows before it that need no measurement.
    fn print_next_label(&mut self, text: &mut String) {
        while let Some(row) = self.rows.get(self.current) {
            let _ = write!(text, "{}        {:<30}", row.heading, row.label);
            let RowContent::Missing(why) = row.content else {
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
        if let Some(row) = self.rows.get(self.current)
            && rate == Err(NO_DIRECT)
            && !row.label.contains("kB")
        {
            self.lacks_direct = true;
        }
        self.current += 1;
        if self.is_between_tables() && std::mem::take(&mut self.lacks_direct) {
            text.push_str(NOT_DIRECT);
        }
    }

    /// True if the current row begins a table, or there is none left.
    fn is_between_tables(&self) -> bool {
        match self.rows.get(self.current) {
            Some(row) => !row.heading.is_empty(),
            None => true,
        }
    }
}

impl ToolPrinter for FsyncPrinter {
    /// It prints n/a* and goes on.
    fn fails_without_direct(&self) -> bool {
        false
    }

    fn begin(&mut self) -> String {
        let mut text = self.opening.clone();
        self.print_next_label(&mut text);
        text
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        let mut text = String::new();
        if let Some(row) = self.rows.get(self.current) {
            let rate = row.rate(measurement);
            self.finish_row(rate, &mut text);
            self.print_next_label(&mut text);
        }
        text
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let is_cut = result.interrupted || self.current < self.rows.len();
        ToolText::out(if is_cut { "\n" } else { "" })
    }
}

/// Bytes of a file of write-ahead log: `DEFAULT_XLOG_SEG_SIZE`.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Bytes of a page of write-ahead log: `XLOG_BLCKSZ`.
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
/// Stands in place of a figure that was not measured, or that this platform does not have.
const NOT_MEASURED: &str = "n/a";

/// The load of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowContent {
    Writes {
        block_bytes: u32,
        /// The number of writes that make an operation.
        writes: u32,
        sync: SyncPolicy,
        cache: CachePolicy,
    },
    /// Nothing; the sign for the reason.
    Missing(&'static str),
}

/// A line of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestRow {
    /// The heading before it; empty in the middle of a table.
    heading: &'static str,
    /// The words at the beginning of the line.
    label: &'static str,
    /// Name of its workload.
    name: String,
    content: RowContent,
}

impl RowContent {
    /// Writes of a page, so many to an operation.
    fn pages(writes: u32, sync: SyncPolicy, cache: CachePolicy) -> Self {
        Self::Writes {
            block_bytes: PAGE_BYTES,
            writes,
            sync,
            cache,
        }
    }

    /// 16 KiB by O_SYNC writes of so many KiB each, on a disk with sectors of this size.
    fn writes_of_kib(kib: u32, sector_bytes: u32) -> Self {
        let block_bytes = kib << 10;
        if sector_bytes > block_bytes {
            return Self::Missing(NO_DIRECT);
        }
        Self::Writes {
            block_bytes,
            writes: 16 / kib,
            sync: OPEN_SYNC,
            cache: Direct,
        }
    }
}

/// The rows of all tests, on a disk with sectors of this size.
fn rows(sector_bytes: u32) -> Vec<TestRow> {
    let mut rows = Vec::new();
    add_table(&mut rows, ONE_WRITE, sync_methods(1, ""));
    add_table(&mut rows, TWO_WRITES, sync_methods(2, "-2"));
    add_table(&mut rows, SIZES, write_sizes(sector_bytes));
    add_table(&mut rows, DESCRIPTORS, descriptors());
    let write = RowContent::pages(1, SyncPolicy::None, Cached);
    let unsynced = TestRow::new("write", "unsynced", write);
    add_table(&mut rows, UNSYNCED, vec![unsynced]);
    rows
}

fn add_table(rows: &mut Vec<TestRow>, heading: &'static str, mut table: Vec<TestRow>) {
    if let Some(first) = table.first_mut() {
        first.heading = heading;
    }
    rows.append(&mut table);
}

/// The methods of wal_sync_method, with so many writes to an operation.
fn sync_methods(writes: u32, name_end: &str) -> Vec<TestRow> {
    let open_datasync = RowContent::pages(writes, OPEN_DSYNC, Direct);
    let fdatasync = RowContent::pages(writes, sync_every(writes, SyncCall::Fdatasync), Cached);
    let fsync = RowContent::pages(writes, sync_every(writes, SyncCall::Fsync), Cached);
    let writethrough = RowContent::Missing(NOT_MEASURED);
    let open_sync = RowContent::pages(writes, OPEN_SYNC, Direct);
    let mut rows = vec![
        TestRow::new("open_datasync", "open_datasync", open_datasync),
        TestRow::new("fdatasync", "fdatasync", fdatasync),
        TestRow::new("fsync", "fsync", fsync),
        TestRow::new("fsync_writethrough", "fsync_writethrough", writethrough),
        TestRow::new("open_sync", "open_sync", open_sync),
    ];
    for row in &mut rows {
        row.name += name_end;
    }
    rows
}

fn write_sizes(sector_bytes: u32) -> Vec<TestRow> {
    let labels = [
        (16, " 1 * 16kB open_sync write"),
        (8, " 2 *  8kB open_sync writes"),
        (4, " 4 *  4kB open_sync writes"),
        (2, " 8 *  2kB open_sync writes"),
        (1, "16 *  1kB open_sync writes"),
    ];
    let mut rows = Vec::new();
    for (kib, label) in labels {
        let name = format!("open_sync-{}x{kib}k", 16 / kib);
        let content = RowContent::writes_of_kib(kib, sector_bytes);
        rows.push(TestRow::new(label, &name, content));
    }
    rows
}

fn descriptors() -> Vec<TestRow> {
    let call = SyncCall::Fsync;
    let same = RowContent::pages(1, sync_every(1, call), Cached);
    let other = RowContent::pages(1, SyncPolicy::OtherDescriptor { call }, Cached);
    vec![
        TestRow::new("write, fsync, close", "write-fsync", same),
        TestRow::new("write, close, fsync", "fsync-elsewhere", other),
    ]
}

impl TestRow {
    /// A row in the middle of a table.
    fn new(label: &'static str, name: &str, content: RowContent) -> Self {
        Self {
            heading: "",
            label,
            name: name.to_owned(),
            content,
        }
    }

    /// The workload of the row, for this many seconds; `None` where nothing is measured.
    fn workload(&self, seconds: u32) -> Option<Workload> {
        let RowContent::Writes {
            block_bytes,
            writes,
            sync,
            cache,
        } = self.content
        else {
            return None;
        };
        Some(Workload {
            streams: Streams::with_reads(0),
            // The same blocks, repeatedly.
            span: span_of(0, u64::from(block_bytes) * u64::from(writes)),
            stop: until_ns(u64::from(seconds) * SECOND),
            sync,
            cache,
            ..blocking_workload(&self.name, Access::Sequential, block_bytes)
        })
    }

    /// Operations per second, or the sign for why there are none.
    fn rate(&self, measurement: &Measurement) -> Result<f64, &'static str> {
        let (writes, sync, cache) = match self.content {
            RowContent::Writes {
                writes,
                sync,
                cache,
                ..
            } => (writes, sync, cache),
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
        let ops = ops_of_kind(measurement, kind) as f64;
        let operations = match kind {
            OpKind::Sync => ops,
            _ => ops / f64::from(writes),
        };
        // It looks at the clock after the operation that the alarm interrupted.
        let rate = per_second(operations, measurement.time_to_last_done_ns());
        if rate > 0.0 {
            Ok(rate)
        } else {
            Err(NOT_MEASURED)
        }
    }
}
