//! dd of the GNU coreutils, in the forms that are used to test disks: its operands, and the plan
//! that they stand for.

mod print;
#[cfg(test)]
mod tests;

use crate::command::{GivenArguments, GivenOption};
use crate::drop_in::{DropIn, DropInOption, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, blocking_workload, span_of, until_bytes};
use crate::printer::{DropInError, ToolPrinter};
use diskproof_model::plan::{Access, CachePolicy, Layout, Plan, SyncPolicy, Workload};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::SECTOR_BYTES;
use print::{CopyPrinter, StatusLevel, counts_bytes, parse_bytes};
use std::sync::LazyLock;

/// The entry of dd in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("dd.txt"), start));

/// The block of dd without bs=, ibs= and obs=, in bytes.
const BLOCK_BYTES: u64 = 512;
/// The largest block that is accepted here, which has to fit into a buffer; dd accepts larger ones.
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Inputs of a copy that writes a disk.
const SOURCES: [&str; 3] = ["/dev/zero", "/dev/urandom", "/dev/random"];
/// Output of a copy that reads a disk.
const SINK: &str = "/dev/null";

/// A copy as the operands describe it.
#[derive(Debug, Clone, PartialEq)]
struct CopyLoad {
    head: LoadHead,
    block_bytes: u64,
    /// Bytes to move; `None`: to the end.
    bytes: Option<u64>,
    /// The first byte of the target that is read or written (skip= or seek=).
    start_bytes: u64,
    /// The operands, and each symbol of a list such as `conv=fsync` by itself.
    given: GivenArguments,
    status: StatusLevel,
}

/// Reads a command line.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    match arguments.first().map(String::as_str) {
        Some("--help") => return Ok(Started::help(&DROP_IN.help(22, form))),
        Some("--version") => return Ok(Started::version(DROP_IN.emulates)),
        _ => {}
    }
    match read_copy(arguments) {
        Ok(load) => Ok(Started::Load(Box::new(load))),
        Err(why) => Err(DROP_IN.usage_error(&why, "")),
    }
}

fn form(operand: &DropInOption) -> String {
    format!("  {}{}", operand.written(), operand.value)
}

/// Reads the operands, and each symbol of their lists.
fn operands(arguments: &[String]) -> Result<GivenArguments, String> {
    let mut given = GivenArguments {
        known: DROP_IN.options,
        ..GivenArguments::default()
    };
    for argument in arguments {
        if argument == "--" {
            continue;
        }
        let unknown = format!("unrecognized operand '{argument}'");
        let Some((key, value)) = argument.split_once('=') else {
            return Err(unknown);
        };
        if matches!(key, "conv" | "iflag" | "oflag") {
            add_symbols(&mut given, key, value)?;
            continue;
        }
        let Some(operand) = known_operand(&format!("{key}=")) else {
            return Err(unknown);
        };
        add_operand(&mut given, operand, Some(value))?;
    }
    Ok(given)
}

/// The operand that is written like this, such as `bs=` or `conv=fsync`.
fn known_operand(written: &str) -> Option<&'static DropInOption> {
    DROP_IN
        .options
        .iter()
        .find(|operand| operand.short == written)
}

/// Adds each symbol of a list such as `conv=fsync,notrunc` by itself.
fn add_symbols(given: &mut GivenArguments, key: &str, list: &str) -> Result<(), String> {
    for symbol in list.split(',') {
        let Some(operand) = known_operand(&format!("{key}={symbol}")) else {
            let what = if key == "conv" { "conversion" } else { key };
            return Err(format!("invalid {what}: '{symbol}'"));
        };
        add_operand(given, operand, None)?;
    }
    Ok(())
}

fn add_operand(
    given: &mut GivenArguments,
    operand: &'static DropInOption,
    value: Option<&str>,
) -> Result<(), String> {
    operand.admit(&mut given.notes)?;
    let name = match operand.key() {
        "iseek" => "skip",
        "oseek" => "seek",
        name => name,
    };
    given.options.push(GivenOption {
        name,
        value: value.map(str::to_owned),
    });
    Ok(())
}

/// A number of bytes or of blocks.
fn read_number(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Some(number) => Ok(number),
        None => Err(format!("invalid number: '{text}'")),
    }
}

/// The bytes that an operand such as `count=` names, in bytes or in blocks of this size. A number
/// of blocks is one of bytes after `bytes_flag`.
fn bytes_of_operand(
    given: &GivenArguments,
    name: &str,
    bytes_flag: &str,
    block_bytes: u64,
) -> Result<Option<u64>, String> {
    let Some(text) = given.value(name) else {
        return Ok(None);
    };
    let number = read_number(text)?;
    if counts_bytes(text) || given.has(bytes_flag) {
        return Ok(Some(number));
    }
    match number.checked_mul(block_bytes) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(format!("invalid number: '{number}': too large")),
    }
}

/// The bytes of a request, from bs=, ibs= and obs=.
fn block_bytes(given: &GivenArguments) -> Result<u64, String> {
    let bs = given.read("bs", read_number)?;
    let ibs = given.read("ibs", read_number)?.unwrap_or(BLOCK_BYTES);
    let obs = given.read("obs", read_number)?.unwrap_or(BLOCK_BYTES);
    let bytes = match bs {
        Some(bytes) => bytes,
        None if ibs == obs => ibs,
        None => {
            return Err(format!(
                "ibs= and obs= differ ({ibs} and {obs} bytes), but a request has one size; use bs="
            ));
        }
    };
    if !(1..=BLOCK_BYTES_MAX).contains(&bytes) {
        return Err(format!(
            "invalid number: '{bytes}'; a block has from 1 to {BLOCK_BYTES_MAX} bytes"
        ));
    }
    Ok(bytes)
}

fn read_copy(arguments: &[String]) -> Result<CopyLoad, String> {
    let given = operands(arguments)?;
    let block_bytes = block_bytes(&given)?;
    for side in ["iflag", "oflag"] {
        if given.has(&format!("{side}=direct")) && given.has(&format!("{side}=nocache")) {
            return Err("cannot combine direct and nocache".to_owned());
        }
    }
    let (path, writes) = match (given.value("if"), given.value("of")) {
        (Some(input), Some(output)) if is_source(input) && output != SINK => (output, true),
        (Some(input), Some(output)) if output == SINK && !is_source(input) => (input, false),
        (input, output) => return Err(no_disk_test(input, output)),
    };
    let skip = bytes_of_operand(&given, "skip", "iflag=skip_bytes", block_bytes)?;
    let seek = bytes_of_operand(&given, "seek", "oflag=seek_bytes", block_bytes)?;
    let bytes = bytes_of_operand(&given, "count", "iflag=count_bytes", block_bytes)?;
    let status = match given.value("status") {
        None | Some("progress") => StatusLevel::All,
        Some("noxfer") => StatusLevel::Records,
        Some("none") => StatusLevel::None,
        Some(other) => return Err(format!("invalid status level: '{other}'")),
    };
    let target = if writes && !given.has("conv=nocreat") {
        LoadTarget::Output(path.into())
    } else {
        LoadTarget::Existing(path.into())
    };
    let mut load = CopyLoad {
        head: LoadHead {
            writes_target: writes,
            ..LoadHead::new(target, given.notes.clone())
        },
        block_bytes,
        bytes,
        start_bytes: if writes { seek } else { skip }.unwrap_or(0),
        status,
        given,
    };
    load.add_notes();
    Ok(load)
}

/// True of an input that makes data, with which a copy tests the writes of its output.
fn is_source(path: &str) -> bool {
    SOURCES.contains(&path)
}

/// The error for a copy that tests no disk.
fn no_disk_test(input: Option<&str>, output: Option<&str>) -> String {
    format!(
        "copying {} to {} is not supported; use if=/dev/zero of=FILE to write or if=FILE \
         of=/dev/null to read, and the real dd to copy",
        input.unwrap_or("standard input"),
        output.unwrap_or("standard output")
    )
}

impl CopyLoad {
    fn has(&self, flag: &str) -> bool {
        self.given.has(flag)
    }

    /// Adds the differences of a copy that writes from that of dd.
    fn add_notes(&mut self) {
        if !self.head.writes_target {
            return;
        }
        if self.given.value("if") == Some(SOURCES[0]) {
            let text = "writes random data instead of zeros, so it cannot be compressed";
            self.head.notes.push(text.to_owned());
        }
        if self.sync() == SyncPolicy::None && self.cache() == CachePolicy::Cached {
            let text = "without conv=fsync the rate is mostly that of memory; add conv=fsync";
            self.head.notes.push(text.to_owned());
        }
    }

    fn sync(&self) -> SyncPolicy {
        if !self.head.writes_target {
            SyncPolicy::None
        } else if self.has("oflag=sync") {
            OPEN_SYNC
        } else if self.has("oflag=dsync") {
            OPEN_DSYNC
        } else if self.has("conv=fsync") || self.has("conv=fdatasync") {
            SyncPolicy::AtEnd
        } else {
            SyncPolicy::None
        }
    }

    fn cache(&self) -> CachePolicy {
        let (direct, nocache) = if self.head.writes_target {
            ("oflag=direct", "oflag=nocache")
        } else {
            ("iflag=direct", "iflag=nocache")
        };
        if self.has(direct) {
            CachePolicy::Direct
        } else if self.has(nocache) {
            CachePolicy::Buffered
        } else {
            CachePolicy::Cached
        }
    }

    /// An error that begins with the path of the target.
    fn target_error(&self, text: &str) -> DropInError {
        let path = self.head.path();
        DROP_IN.target_error(&format!("'{path}'{text}"))
    }

    /// The bytes to move to a file that does not exist yet.
    fn bytes_of_new_file(&self) -> Result<u64, DropInError> {
        let text = ": without count= it would fill the filesystem; add count=N";
        self.bytes.ok_or_else(|| self.target_error(text))
    }

    /// The bytes to move on a target that keeps its size.
    fn bytes_of_existing(&self, size_bytes: u64) -> Result<u64, DropInError> {
        if self.would_truncate(size_bytes) {
            let text = " is not truncated: an existing target keeps its size; remove the file";
            return Err(self.target_error(text));
        }
        let available = size_bytes.saturating_sub(self.start_bytes);
        let bytes = match self.bytes {
            Some(bytes) if self.head.writes_target => bytes,
            Some(bytes) => bytes.min(available),
            None => available,
        };
        if bytes > available {
            return Err(self.target_error(&format!(
                " ends at {size_bytes} bytes and an existing target keeps its size; use a smaller \
                 count=, or remove the file"
            )));
        }
        // With count=0 the file is there, and that is all. So is a read that begins at the end.
        if bytes == 0 && self.head.writes_target && self.bytes != Some(0) {
            return Err(self.target_error(" has no data to move"));
        }
        Ok(bytes)
    }

    /// True if dd would cut the file off where it begins to write, and write nothing behind it.
    fn would_truncate(&self, size_bytes: u64) -> bool {
        self.head.writes_target
            && self.bytes == Some(0)
            && !self.has("conv=notrunc")
            && size_bytes != self.start_bytes
    }

    /// The bytes behind the last whole block that are moved. Direct I/O cannot reach the end of a
    /// file behind its last sector.
    fn rest_bytes(&self, bytes: u64) -> u64 {
        let rest = bytes % self.block_bytes;
        if self.cache() == CachePolicy::Direct && bytes > rest {
            rest / SECTOR_BYTES * SECTOR_BYTES
        } else {
            rest
        }
    }

    /// True if dd writes until the device has no more space, which ends it with an error. A file
    /// would grow.
    fn writes_to_the_end(&self, target: &TargetIdentity) -> bool {
        self.head.writes_target && self.bytes.is_none() && target.kind == TargetKind::BlockDevice
    }

    fn workload(&self, name: &str, start: u64, bytes: u64, block_bytes: u64) -> Workload {
        Workload {
            streams: Streams::with_reads(if self.head.writes_target { 0 } else { 1000 }),
            span: span_of(start, bytes),
            stop: until_bytes(bytes),
            sync: self.sync(),
            cache: self.cache(),
            ..blocking_workload(name, Access::Sequential, block_bytes as u32)
        }
    }
}

impl DropInLoad for CopyLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if let LoadTarget::Existing(_) = self.head.target {
            DROP_IN.refuse_directory(&self.head, context)?;
        }
        // A file to be made has its directory as target.
        let is_new = context.target.kind == TargetKind::Directory;
        if !is_new && self.has("conv=excl") {
            let text = format!("failed to open '{}': File exists", self.head.path());
            return Err(DROP_IN.target_error(&text));
        }
        let bytes = if is_new {
            self.bytes_of_new_file()?
        } else {
            self.bytes_of_existing(context.target.size_bytes)?
        };
        let whole = bytes / self.block_bytes * self.block_bytes;
        let rest = self.rest_bytes(bytes);
        let mut workloads = Vec::new();
        if whole > 0 {
            // Syncs at its end even where a last block follows: between two workloads the kernel
            // writes without anybody measuring it.
            workloads.push(self.workload("copy", self.start_bytes, whole, self.block_bytes));
        }
        if rest > 0 {
            workloads.push(self.workload("last-block", self.start_bytes + whole, rest, rest));
        }
        if !is_new {
            return Ok(DROP_IN.plan(context, None, workloads));
        }
        for workload in &mut workloads {
            workload.layout = Layout::Provides;
        }
        // A file without content needs no space, but the gate asks for some.
        let scratch_bytes = if bytes > 0 {
            self.start_bytes + whole + rest
        } else {
            BLOCK_BYTES
        };
        Ok(DROP_IN.plan(context, Some(scratch_bytes), workloads))
    }

    fn empty_file_bytes(&self) -> u64 {
        self.start_bytes
    }

    fn end_code(&self, target: &TargetIdentity) -> u8 {
        if self.writes_to_the_end(target) {
            DROP_IN.exits.run
        } else {
            0
        }
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let path = self.head.path();
        let end_error = if self.writes_to_the_end(target) {
            Some(format!(
                "dd: error writing '{path}': No space left on device\n"
            ))
        } else {
            None
        };
        let warning = if self.head.writes_target || self.start_bytes <= target.size_bytes {
            String::new()
        } else {
            format!("dd: '{path}': cannot skip to specified offset\n")
        };
        Box::new(CopyPrinter {
            status: self.status,
            block_bytes: self.block_bytes,
            warning,
            end_error,
            has_failed: false,
        })
    }
}
