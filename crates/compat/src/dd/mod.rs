//! dd of the GNU coreutils, in the forms that are used to test disks.
//!
//! Operands of dd to a plan.

mod print;
#[cfg(test)]
mod tests;

use crate::command::{GivenArguments, GivenOption};
use crate::drop_in::{DropIn, DropInOption, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, blocking, part, until_bytes};
use crate::printer::{DropInError, ToolPrinter};
use diskproof_model::plan::{Access, CachePolicy, Layout, Plan, SyncPolicy, Workload};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::SECTOR_BYTES;
use print::{CopyPrinter, StatusLevel, counts_bytes, parse_bytes};
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("dd.txt"), start));

const BLOCK_BYTES: u64 = 512;
const BLOCK_BYTES_MAX: u64 = 1 << 30;
const SOURCES: [&str; 3] = ["/dev/zero", "/dev/urandom", "/dev/random"];
const SINK: &str = "/dev/null";

/// What the operands say.
#[derive(Debug, Clone, PartialEq)]
struct CopyLoad {
    head: LoadHead,
    block_bytes: u64,
    /// Bytes to move; `None`: to the end.
    bytes: Option<u64>,
    start: u64,
    /// The operands, and each symbol of a list such as `conv=fsync` by itself.
    given: GivenArguments,
    status: StatusLevel,
}

/// Reads the operands.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    match arguments.first().map(String::as_str) {
        Some("--help") => return Ok(Started::help(&DROP_IN.help(22, form))),
        Some("--version") => return Ok(Started::version(DROP_IN.emulates)),
        _ => {}
    }
    let load = read(arguments).map_err(|why| DROP_IN.usage_error(&why, ""))?;
    Ok(Started::Load(Box::new(load)))
}

fn form(operand: &DropInOption) -> String {
    format!("  {}{}", operand.written(), operand.value)
}

fn operands(arguments: &[String]) -> Result<GivenArguments, String> {
    let mut given = GivenArguments::default();
    let mut add = |name: &str, value: Option<&str>, unknown: String| {
        let mut all = DROP_IN.options.iter();
        let operand = all.find(|operand| operand.short == name);
        let operand = operand.ok_or(unknown)?;
        operand.admit(&mut given.notes)?;
        let name = match operand.short.trim_end_matches('=') {
            "iseek" => "skip",
            "oseek" => "seek",
            name => name,
        };
        let value = value.map(str::to_owned);
        given.options.push(GivenOption { name, value });
        Ok::<_, String>(())
    };
    for argument in arguments.iter().filter(|argument| *argument != "--") {
        let unknown = || format!("unrecognized operand '{argument}'");
        let (key, value) = argument.split_once('=').ok_or_else(unknown)?;
        if !matches!(key, "conv" | "iflag" | "oflag") {
            add(&format!("{key}="), Some(value), unknown())?;
            continue;
        }
        for symbol in value.split(',') {
            let what = if key == "conv" { "conversion" } else { key };
            let unknown = format!("invalid {what}: '{symbol}'");
            add(&format!("{key}={symbol}"), None, unknown)?;
        }
    }
    Ok(given)
}

/// A number as written, in bytes or blocks, and whether it counts bytes.
fn number(given: &GivenArguments, name: &str) -> Result<Option<(u64, bool)>, String> {
    given.read(name, |text| {
        let number = parse_bytes(text).ok_or_else(|| format!("invalid number: '{text}'"))?;
        Ok((number, counts_bytes(text)))
    })
}

fn block_bytes(given: &GivenArguments) -> Result<u64, String> {
    let of = |name| Ok::<_, String>(number(given, name)?.map(|(bytes, _)| bytes));
    let (bs, ibs, obs) = (of("bs")?, of("ibs")?, of("obs")?);
    let bytes = match (bs, ibs, obs) {
        (Some(bytes), _, _) => bytes,
        (None, Some(ibs), Some(obs)) if ibs != obs => {
            return Err("ibs= and obs= differ, but a request has one size; use bs=".to_owned());
        }
        (None, ibs, obs) => ibs.or(obs).unwrap_or(BLOCK_BYTES),
    };
    let is_allowed = (1..=BLOCK_BYTES_MAX).contains(&bytes);
    is_allowed.then_some(bytes).ok_or_else(|| {
        format!("invalid number: '{bytes}'; a block has from 1 to {BLOCK_BYTES_MAX} bytes")
    })
}

fn read(arguments: &[String]) -> Result<CopyLoad, String> {
    let given = operands(arguments)?;
    let block_bytes = block_bytes(&given)?;
    let is_source = |path: &str| SOURCES.contains(&path);
    let (input, output) = (given.value("if"), given.value("of"));
    let (path, writes) = match (input, output) {
        (Some(input), Some(output)) if is_source(input) && output != SINK => (output, true),
        (Some(input), Some(output)) if output == SINK && !is_source(input) => (input, false),
        (input, output) => return Err(no_disk_test(input, output)),
    };
    // A number of blocks or bytes, in bytes.
    let bytes_of = |name: &str, in_bytes: &str| {
        let Some((number, counts_bytes)) = number(&given, name)? else {
            return Ok(None);
        };
        if counts_bytes || given.has(in_bytes) {
            return Ok(Some(number));
        }
        let bytes = number.checked_mul(block_bytes);
        bytes
            .map(Some)
            .ok_or_else(|| format!("invalid number: '{number}': too large"))
    };
    let skip = bytes_of("skip", "iflag=skip_bytes")?;
    let seek = bytes_of("seek", "oflag=seek_bytes")?;
    let bytes = bytes_of("count", "iflag=count_bytes")?;
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
            writes,
            ..LoadHead::new(target, given.notes.clone())
        },
        block_bytes,
        bytes,
        start: if writes { seek } else { skip }.unwrap_or(0),
        status,
        given,
    };
    load.add_notes();
    Ok(load)
}

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

    fn add_notes(&mut self) {
        if !self.head.writes {
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
        match self.head.writes {
            true if self.has("oflag=sync") => OPEN_SYNC,
            true if self.has("oflag=dsync") => OPEN_DSYNC,
            true if self.has("conv=fsync") || self.has("conv=fdatasync") => SyncPolicy::AtEnd,
            _ => SyncPolicy::None,
        }
    }

    fn cache(&self) -> CachePolicy {
        let flag = if self.head.writes { "oflag" } else { "iflag" };
        let has = |mode: &str| self.has(&format!("{flag}={mode}"));
        match (has("direct"), has("nocache")) {
            (true, _) => CachePolicy::Direct,
            (false, true) => CachePolicy::Buffered,
            (false, false) => CachePolicy::Cached,
        }
    }

    /// The bytes to move on a target of this kind.
    fn bytes(&self, target: &TargetIdentity) -> Result<u64, DropInError> {
        let path = self.head.path();
        let error = |text: &str| Err(DROP_IN.target_error(&format!("'{path}'{text}")));
        let is_new = target.kind == TargetKind::Directory;
        let there = target.size_bytes.saturating_sub(self.start);
        let bytes = match self.bytes {
            None if is_new => {
                return error(": without count= it would fill the filesystem; add count=N");
            }
            None => there,
            Some(bytes) if is_new || self.head.writes => bytes,
            Some(bytes) => bytes.min(there),
        };
        if !is_new && bytes > there {
            return error(&format!(
                " ends at {} bytes and an existing target keeps its size; use a smaller count=, \
                 or remove the file",
                target.size_bytes
            ));
        }
        let is_cut = !is_new && self.head.writes && self.bytes == Some(0);
        if is_cut && !self.has("conv=notrunc") && target.size_bytes != self.start {
            return error(" is not truncated: an existing target keeps its size; remove the file");
        }
        match (bytes, self.bytes) {
            // The file is made, or there, and that is all.
            (0, Some(0)) => Ok(0),
            (0, _) => error(" has no data to move"),
            (bytes, _) => Ok(bytes),
        }
    }
}

impl DropInLoad for CopyLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let is_new = context.target.kind == TargetKind::Directory;
        if !is_new && self.has("conv=excl") {
            let text = format!("failed to open '{}': File exists", self.head.path());
            return Err(DROP_IN.target_error(&text));
        }
        let bytes = self.bytes(context.target)?;
        let rest = bytes % self.block_bytes;
        // The end of a file that direct I/O cannot reach.
        let rest = match self.cache() {
            CachePolicy::Direct if bytes > rest => rest / SECTOR_BYTES * SECTOR_BYTES,
            _ => rest,
        };
        let whole = bytes / self.block_bytes * self.block_bytes;
        let parts = [
            ("copy", self.start, whole, self.block_bytes),
            ("last-block", self.start + whole, rest, rest),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|part| part.2 > 0).collect();
        let last = parts.len().saturating_sub(1);
        let workload = |(index, (name, start, bytes, block_bytes))| Workload {
            streams: Streams::with_reads(if self.head.writes { 0 } else { 1000 }),
            span: part(start, bytes),
            stop: until_bytes(bytes),
            sync: match self.sync() {
                SyncPolicy::AtEnd if index < last => SyncPolicy::None,
                sync => sync,
            },
            cache: self.cache(),
            layout: if is_new {
                Layout::Provides
            } else {
                Layout::Needed
            },
            ..blocking(name, Access::Sequential, block_bytes as u32)
        };
        let workloads = parts.into_iter().enumerate().map(workload).collect();
        // A file without content needs no space, but the gate asks for some.
        let end = if bytes > 0 {
            self.start + whole + rest
        } else {
            BLOCK_BYTES
        };
        let scratch_bytes = is_new.then_some(end);
        Ok(DROP_IN.plan(context, scratch_bytes, workloads))
    }

    fn empty_file_bytes(&self) -> u64 {
        self.start
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(CopyPrinter {
            status: self.status,
            block_bytes: self.block_bytes,
        })
    }
}
