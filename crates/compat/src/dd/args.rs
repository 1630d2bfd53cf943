//! Operands of dd to a plan.

use super::human::{counts_bytes, parse_bytes};
use super::operands::OPERANDS;
use super::print::{CopyPrinter, StatusLevel};
use crate::drop_in::{DropInOption, Started, Treatment};
use crate::error::DropInError;
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::plan_of;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Layout, Plan, Span, Stop, SyncPolicy, Workload,
    WriteFlag,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

pub(super) const NAME: &str = "dd";
pub(super) const EMULATES: &str = "dd (coreutils) 9.1";
const BLOCK_BYTES: u64 = 512;
const BLOCK_BYTES_MAX: u64 = 1 << 30;
const SOURCES: [&str; 3] = ["/dev/zero", "/dev/urandom", "/dev/random"];
const SINK: &str = "/dev/null";

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyDirection {
    Read,
    Write,
}

/// What the operands say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CopyLoad {
    path: String,
    direction: CopyDirection,
    block_bytes: u64,
    /// Bytes to move; `None`: to the end.
    bytes: Option<u64>,
    start: u64,
    flags: BTreeSet<String>,
    status: StatusLevel,
    /// Whether the tool would write zeros.
    writes_zeros: bool,
    notes: Vec<String>,
}

/// The operands by name.
#[derive(Debug, Default)]
struct GivenOperands {
    input: Option<String>,
    output: Option<String>,
    values: Vec<(String, String)>,
    flags: BTreeSet<String>,
    notes: Vec<String>,
}

/// Reads the operands.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    match arguments.first().map(String::as_str) {
        Some("--help") => {
            return Ok(Started::Text(ToolText {
                stdout: help(),
                stderr: String::new(),
            }));
        }
        Some("--version") => return Ok(Started::version(EMULATES)),
        _ => {}
    }
    let load = read(arguments).map_err(|text| DropInError::Usage(format!("dd: {text}\n")))?;
    Ok(Started::Load(Box::new(load)))
}

fn help() -> String {
    let mut text = "Usage: dd [OPERAND]...\n  or:  dd OPTION\n\n".to_owned();
    for operand in OPERANDS {
        let form = format!("{}{}", operand.short, operand.value);
        let limit = match operand.treatment {
            Treatment::Carried => "",
            Treatment::Ignored(_) => " (no effect)",
            Treatment::Refused(_) => " (refused)",
        };
        let _ = writeln!(text, "  {form:<20}{}{limit}", operand.help);
    }
    text
}

fn operands(arguments: &[String]) -> Result<GivenOperands, String> {
    let mut given = GivenOperands::default();
    for argument in arguments.iter().filter(|argument| *argument != "--") {
        let unknown = || format!("unrecognized operand '{argument}'");
        let (key, value) = argument.split_once('=').ok_or_else(unknown)?;
        match key {
            "conv" | "iflag" | "oflag" => {
                for symbol in value.split(',') {
                    let name = format!("{key}={symbol}");
                    let unknown = || match key {
                        "conv" => format!("invalid conversion: '{symbol}'"),
                        _ => format!("invalid {key}: '{symbol}'"),
                    };
                    admit(known(&name).ok_or_else(unknown)?, &mut given.notes)?;
                    given.flags.insert(name);
                }
            }
            _ => {
                let operand = known(&format!("{key}=")).ok_or_else(unknown)?;
                admit(operand, &mut given.notes)?;
                match key {
                    "if" => given.input = Some(value.to_owned()),
                    "of" => given.output = Some(value.to_owned()),
                    _ => given.values.push((key.to_owned(), value.to_owned())),
                }
            }
        }
    }
    Ok(given)
}

fn known(name: &str) -> Option<&'static DropInOption> {
    OPERANDS.iter().find(|operand| operand.short == name)
}

fn admit(operand: &DropInOption, notes: &mut Vec<String>) -> Result<(), String> {
    let name = operand.short;
    match operand.treatment {
        Treatment::Carried => {}
        Treatment::Ignored(why) => notes.push(format!("{name} has no effect: {why}")),
        Treatment::Refused(instead) => {
            return Err(format!("{name} is not supported; {instead}"));
        }
    }
    Ok(())
}

impl GivenOperands {
    /// The last value of one of these operands, in bytes or blocks as written.
    fn number(&self, names: &[&str]) -> Result<Option<(u64, bool)>, String> {
        let mut all = self.values.iter().rev();
        let Some((_, text)) = all.find(|(key, _)| names.contains(&key.as_str())) else {
            return Ok(None);
        };
        let number = parse_bytes(text).ok_or_else(|| format!("invalid number: '{text}'"))?;
        Ok(Some((number, counts_bytes(text))))
    }

    fn block_bytes(&self) -> Result<u64, String> {
        let of = |name| {
            let number = self.number(&[name]);
            number.map(|number| number.map(|(bytes, _)| bytes))
        };
        let (bs, ibs, obs) = (of("bs")?, of("ibs")?, of("obs")?);
        let bytes = match (bs, ibs, obs) {
            (Some(bytes), _, _) => bytes,
            (None, Some(ibs), Some(obs)) if ibs != obs => {
                return Err("ibs= and obs= differ, but a request has one size; use bs=".to_owned());
            }
            (None, ibs, obs) => ibs.or(obs).unwrap_or(BLOCK_BYTES),
        };
        match (1..=BLOCK_BYTES_MAX).contains(&bytes) {
            true => Ok(bytes),
            false => Err(format!(
                "invalid number: '{bytes}'; a block has from 1 to {BLOCK_BYTES_MAX} bytes"
            )),
        }
    }

    /// A number of blocks or bytes, in bytes.
    fn bytes(
        &self,
        names: &[&str],
        in_bytes: &str,
        block_bytes: u64,
    ) -> Result<Option<u64>, String> {
        let Some((number, counts_bytes)) = self.number(names)? else {
            return Ok(None);
        };
        if counts_bytes || self.flags.contains(in_bytes) {
            return Ok(Some(number));
        }
        let bytes = number.checked_mul(block_bytes);
        bytes
            .map(Some)
            .ok_or_else(|| format!("invalid number: '{number}': too large"))
    }
}

fn read(arguments: &[String]) -> Result<CopyLoad, String> {
    let mut given = operands(arguments)?;
    let block_bytes = given.block_bytes()?;
    let is_source = |path: &str| SOURCES.contains(&path);
    let writes_zeros = given.input.as_deref() == Some(SOURCES[0]);
    let (path, direction) = match (given.input.take(), given.output.take()) {
        (Some(input), Some(output)) if is_source(&input) && output != SINK => {
            (output, CopyDirection::Write)
        }
        (Some(input), Some(output)) if output == SINK && !is_source(&input) => {
            (input, CopyDirection::Read)
        }
        (input, output) => return Err(no_disk_test(input.as_deref(), output.as_deref())),
    };
    let skip = given.bytes(&["skip", "iseek"], "iflag=skip_bytes", block_bytes)?;
    let seek = given.bytes(&["seek", "oseek"], "oflag=seek_bytes", block_bytes)?;
    let bytes = given.bytes(&["count"], "iflag=count_bytes", block_bytes)?;
    let start = match direction {
        CopyDirection::Read => skip,
        CopyDirection::Write => seek,
    };
    if bytes == Some(0) {
        return Err("count=0 moves no data, so there is nothing to measure".to_owned());
    }
    let status = given.values.iter().rev().find(|(key, _)| key == "status");
    let status = match status.map(|(_, level)| level.as_str()) {
        None | Some("progress") => StatusLevel::All,
        Some("noxfer") => StatusLevel::Records,
        Some("none") => StatusLevel::None,
        Some(other) => return Err(format!("invalid status level: '{other}'")),
    };
    let mut load = CopyLoad {
        path,
        direction,
        block_bytes,
        bytes,
        start: start.unwrap_or(0),
        flags: given.flags,
        status,
        writes_zeros,
        notes: given.notes,
    };
    load.add_notes();
    Ok(load)
}

fn no_disk_test(input: Option<&str>, output: Option<&str>) -> String {
    let shown = |path: Option<&str>, std: &str| path.unwrap_or(std).to_owned();
    format!(
        "copying {} to {} is not supported; use if=/dev/zero of=FILE to write or if=FILE \
         of=/dev/null to read, and the real dd to copy",
        shown(input, "standard input"),
        shown(output, "standard output")
    )
}

impl CopyLoad {
    fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    fn add_notes(&mut self) {
        if self.direction != CopyDirection::Write {
            return;
        }
        if self.writes_zeros {
            self.notes
                .push("writes random data instead of zeros, so it cannot be compressed".to_owned());
        }
        if self.sync() == SyncPolicy::None && self.cache() == CachePolicy::Cached {
            self.notes.push(
                "without conv=fsync the rate is mostly that of memory; add conv=fsync".to_owned(),
            );
        }
    }

    fn sync(&self) -> SyncPolicy {
        let is_write = self.direction == CopyDirection::Write;
        if is_write && self.has("oflag=sync") {
            SyncPolicy::WithWrite {
                flag: WriteFlag::OpenSync,
            }
        } else if is_write && self.has("oflag=dsync") {
            SyncPolicy::WithWrite {
                flag: WriteFlag::OpenDsync,
            }
        } else if is_write && (self.has("conv=fsync") || self.has("conv=fdatasync")) {
            SyncPolicy::AtEnd
        } else {
            SyncPolicy::None
        }
    }

    fn cache(&self) -> CachePolicy {
        let flags = match self.direction {
            CopyDirection::Read => ["iflag=direct", "iflag=nocache"],
            CopyDirection::Write => ["oflag=direct", "oflag=nocache"],
        };
        match flags.map(|flag| self.has(flag)) {
            [true, _] => CachePolicy::Direct,
            [false, true] => CachePolicy::Buffered,
            [false, false] => CachePolicy::Cached,
        }
    }

    /// Whole blocks to move on a target of this kind.
    fn bytes(&self, target: &TargetIdentity) -> Result<u64, DropInError> {
        let error = |text: String| DropInError::Target(format!("dd: {text}\n"));
        let is_new = target.kind == TargetKind::Directory;
        let there = target.size_bytes.saturating_sub(self.start);
        let bytes = match (self.bytes, is_new) {
            (Some(bytes), true) => bytes,
            (None, true) => {
                return Err(error(format!(
                    "'{}': without count= it would fill the filesystem; add count=N",
                    self.path
                )));
            }
            (bytes, false) => bytes.map_or(there, |bytes| match self.direction {
                CopyDirection::Read => bytes.min(there),
                CopyDirection::Write => bytes,
            }),
        };
        if !is_new && bytes > there {
            return Err(error(format!(
                "'{}' ends at {} bytes and an existing target keeps its size; use a smaller \
                 count=, or remove the file",
                self.path, target.size_bytes
            )));
        }
        match bytes / self.block_bytes * self.block_bytes {
            0 => Err(error(format!(
                "'{}' has no whole block of {} bytes to move; use a smaller bs=",
                self.path, self.block_bytes
            ))),
            bytes => Ok(bytes),
        }
    }
}

impl DropInLoad for CopyLoad {
    fn target(&self) -> LoadTarget {
        let path = PathBuf::from(&self.path);
        let may_create = self.direction == CopyDirection::Write && !self.has("conv=nocreat");
        match may_create {
            true => LoadTarget::Output(path),
            false => LoadTarget::Existing(path),
        }
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let is_new = context.target.kind == TargetKind::Directory;
        if !is_new && self.has("conv=excl") {
            return Err(DropInError::Target(format!(
                "dd: failed to open '{}': File exists\n",
                self.path
            )));
        }
        let bytes = self.bytes(context.target)?;
        let workload = Workload {
            read_permille: match self.direction {
                CopyDirection::Read => 1000,
                CopyDirection::Write => 0,
            },
            access: Access::Sequential,
            block_bytes: self.block_bytes as u32,
            span: Span {
                start_bytes: self.start,
                length_bytes: Some(bytes),
            },
            stop: Stop {
                bytes: Some(bytes),
                ..Stop::default()
            },
            sync: self.sync(),
            cache: self.cache(),
            engine: EngineChoice::Fixed(EngineKind::Sync),
            layout: match is_new {
                true => Layout::Provides,
                false => Layout::Needed,
            },
            ..Workload::named("copy")
        };
        let scratch_bytes = is_new.then_some(self.start + bytes);
        Ok(plan_of(NAME, context, scratch_bytes, vec![workload]))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn writes(&self) -> bool {
        self.direction == CopyDirection::Write
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(CopyPrinter::new(self.status))
    }
}
