//! hdparm: its two timings, from the arguments to the lines with a label before each timing and the
//! figures after it.

#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments};
use crate::drop_in::{DropIn, DropInOption, Started};
use crate::figures::{as_seconds, bytes_of_kind, per_second};
use crate::load::{DropInLoad, LoadHead, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::{SECOND, blocking_workload, span_of, until_ns};
use crate::printer::{DropInError, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{Access, CachePolicy, Plan, Stop, Workload};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::collections::VecDeque;
use std::sync::LazyLock;

/// The entry of hdparm in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("hdparm.txt"), start));

/// The exit code of hdparm where an offset lies behind the end of the device: EINVAL.
const UNSEEKABLE_CODE: u8 = 22;

/// Bytes of a read, as `TIMING_BUF_MB` in hdparm.c has them.
const BLOCK_BYTES: u32 = 2 << 20;
/// Name of the workload of -T.
const CACHED_READS: &str = "cached-reads";
/// Name of the workload of -t.
const DEVICE_READS: &str = "device-reads";
/// The time that hdparm measures with -T.
const CACHE_NS: u64 = 2 * SECOND;
/// The time that hdparm measures with -t.
const DEVICE_NS: u64 = 3 * SECOND;
const GIB: u64 = 1 << 30;
/// The largest offset: 2^63 bytes, beyond which the kernel has none.
const OFFSET_GIB_MAX: u64 = 1 << 33;
/// Bytes of what hdparm calls a MB.
const MIB: f64 = 1_048_576.0;

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TimingLoad {
    head: LoadHead,
    /// The devices that follow.
    others: Vec<String>,
    /// True if the name of the device is not printed (-q).
    is_quiet: bool,
    /// True if reads from the page cache are timed (-T).
    times_cache: bool,
    /// True if reads from the device are timed (-t).
    times_device: bool,
    direct: DirectReads,
    /// The reads from the device begin here, in GiB (--offset).
    offset_gib: Option<u64>,
}

/// The way of the reads around the page cache (--direct).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectReads {
    On,
    Off,
}

impl DirectReads {
    /// Direct I/O, or this policy where it is off.
    fn cache_or(self, policy: CachePolicy) -> CachePolicy {
        match self {
            Self::On => CachePolicy::Direct,
            Self::Off => policy,
        }
    }
}

/// Turns the arguments into a load, or into the text or error that hdparm prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let help = DROP_IN.help(19, |option: &DropInOption| format!(" {}", option.written()));
    if arguments.is_empty() {
        return Err(DropInError::Usage(help));
    }
    DROP_IN.start_load(arguments, CommandLine::new(&help), read)
}

fn read(given: &GivenArguments) -> Result<TimingLoad, String> {
    let (times_cache, times_device) = (given.has("T"), given.has("t"));
    if !times_cache && !times_device {
        return Err(
            "only -t and -T are supported; use 'diskproof info DEVICE' to identify a disk, and the \
             real hdparm for its settings"
                .to_owned(),
        );
    }
    let Some((path, others)) = given.operands.split_first() else {
        return Err("no device specified".to_owned());
    };
    Ok(TimingLoad {
        head: LoadHead::new(LoadTarget::Existing(path.into()), given.notes.clone()),
        others: others.to_vec(),
        is_quiet: given.has("q"),
        times_cache,
        times_device,
        direct: if given.has("direct") {
            DirectReads::On
        } else {
            DirectReads::Off
        },
        offset_gib: given.number("offset", 0..=OFFSET_GIB_MAX)?,
    })
}

impl DropInLoad for TimingLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let target = context.target;
        if target.kind == TargetKind::Directory {
            return Err(self.unreadable("is a directory; name a device or a file"));
        }
        let block = u64::from(BLOCK_BYTES);
        // -T reads the beginning, wherever -t starts.
        let start_bytes = match self.offset_gib {
            Some(gib) if self.times_device => gib.saturating_mul(GIB),
            Some(_) | None => 0,
        };
        if start_bytes > target.size_bytes && target.kind == TargetKind::BlockDevice {
            return Err(self.unseekable());
        }
        let bytes = target.size_bytes.saturating_sub(start_bytes) / block * block;
        if bytes == 0 {
            return Err(self.unreadable("has fewer than 2 MiB to read"));
        }
        let mut workloads = Vec::new();
        if self.times_cache {
            workloads.push(Workload {
                cache: self.direct.cache_or(CachePolicy::Cached),
                span: span_of(0, block),
                stop: until_ns(CACHE_NS),
                ..blocking_workload(CACHED_READS, Access::Sequential, BLOCK_BYTES)
            });
        }
        if self.times_device {
            workloads.push(Workload {
                cache: self.direct.cache_or(CachePolicy::Buffered),
                span: span_of(start_bytes, bytes),
                stop: Stop {
                    bytes: Some(bytes),
                    ..until_ns(DEVICE_NS)
                },
                ..blocking_workload(DEVICE_READS, Access::Sequential, BLOCK_BYTES)
            });
        }
        Ok(DROP_IN.plan(context, None, workloads))
    }

    fn next(&self) -> Option<NextLoad> {
        let (path, others) = self.others.split_first()?;
        let load = Self {
            head: self.head.again_on(path),
            others: others.to_vec(),
            ..self.clone()
        };
        Some(NextLoad::new(load, NextPrinter::OwnPrinter))
    }

    fn printer(&self, plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let mut labels = VecDeque::new();
        for workload in plan.workloads() {
            labels.push_back(self.label(&workload.name));
        }
        Box::new(TimingPrinter {
            heading: self.heading(),
            labels,
        })
    }
}

impl TimingLoad {
    /// The line with the name of the device; empty with -q.
    fn heading(&self) -> String {
        if self.is_quiet {
            String::new()
        } else {
            format!("\n{}:\n", self.head.path())
        }
    }

    /// The words before the figures of a workload of this name.
    fn label(&self, name: &str) -> String {
        if name == CACHED_READS {
            let direct = match self.direct {
                DirectReads::On => "O_DIRECT ",
                DirectReads::Off => "",
            };
            return format!(" Timing {direct}cached reads:   ");
        }
        let how = match self.direct {
            DirectReads::On => "O_DIRECT",
            DirectReads::Off => "buffered",
        };
        match self.offset_gib {
            Some(gib) => format!(" Timing {how} disk reads (offset {gib} GB): "),
            None => format!(" Timing {how} disk reads: "),
        }
    }

    /// The error of a device that ends before the first block.
    fn unseekable(&self) -> DropInError {
        DropInError::Code(
            UNSEEKABLE_CODE,
            ToolText {
                stdout: self.heading() + &self.label(DEVICE_READS),
                stderr: "lseek() failed: Invalid argument\n".to_owned(),
            },
        )
    }

    /// The error of a target that cannot be read. hdparm opens any file, and its timings find out.
    /// That of the device ends with an error code, that of the cache with success.
    fn unreadable(&self, why: &str) -> DropInError {
        let path = self.head.path();
        let (code, label) = if self.times_device {
            (DROP_IN.exits.run, self.label(DEVICE_READS))
        } else {
            (0, String::new())
        };
        DropInError::Code(
            code,
            ToolText {
                stdout: self.heading() + &label,
                stderr: format!("{path}: {why}\n"),
            },
        )
    }
}

/// Prints a label before each timing, and its figures after it.
#[derive(Debug)]
struct TimingPrinter {
    heading: String,
    /// The labels that were not printed yet, in the order of the timings.
    labels: VecDeque<String>,
}

impl TimingPrinter {
    /// Takes the label of the next timing; empty after the last.
    fn next_label(&mut self) -> String {
        self.labels.pop_front().unwrap_or_default()
    }
}

impl ToolPrinter for TimingPrinter {
    fn begin(&mut self) -> String {
        self.heading.clone() + &self.next_label()
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        format!("{}{}", timing_text(measurement), self.next_label())
    }

    fn end(&mut self, _result: &ToolResult<'_>) -> ToolText {
        ToolText::default()
    }
}

/// The figures of a timing: `420 MB in  3.01 seconds = 139.43 MB/sec`, where a MB is 2²⁰ bytes.
fn timing_text(measurement: &Measurement) -> String {
    let mib = bytes_of_kind(measurement, OpKind::Read) as f64 / MIB;
    // It looks at the clock after each read, the last one included.
    let time = as_seconds(measurement.time_to_last_done_ns());
    if mib == 0.0 {
        return format!("  0 MB in {time:5.2} seconds = undecided\n");
    }
    let rate = per_second(mib, measurement.time_to_last_done_ns());
    if rate > 1.0 {
        format!("{mib:3.0} MB in {time:5.2} seconds = {rate:6.2} MB/sec\n")
    } else {
        let kib_rate = rate * 1024.0;
        format!("{mib:3.0} MB in {time:5.2} seconds = {kib_rate:6.2} kB/sec\n")
    }
}
