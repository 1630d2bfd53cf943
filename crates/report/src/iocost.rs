//! The settings of Linux' I/O cost controller (blk-iocost) that follow from a sweep, as a script:
//! io.cost.model and io.cost.qos of Documentation/admin-guide/cgroup-v2.rst.

use crate::capacity::{DiskCapacity, reads, writes};
use crate::format::{Format, Requires};
use crate::text::clean;
use diskproof_model::record::Record;
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format {
    requires: Requires::SweepOfReads,
    ..Format::new(
        ".iocost",
        "Linux' io.cost.model and io.cost.qos, from a sweep",
        write_record,
    )
};

/// Writes a shell script with one line for each setting, and what it follows from.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let Some(reads) = reads(record) else {
        return Ok(());
    };
    let (writes, device) = (writes(record), device(record));
    writeln!(out, "#!/bin/sh")?;
    let path = record.targets.first().map_or("", |target| &target.path);
    let (run, version) = (clean(&record.run_id), clean(&record.tool.version));
    writeln!(out, "# {}, run {run} of diskproof {version}", clean(path))?;
    let mut model = direction('r', &reads);
    if let Some(writes) = &writes {
        model += &format!(" {}", direction('w', writes));
    }
    let guessed = |one: &DiskCapacity<'_>| one.sequential_iops.is_none();
    if guessed(&reads) || writes.as_ref().is_some_and(guessed) {
        writeln!(
            out,
            "# Some sequential operations of 4 KiB were not measured, so random ones are used. Add \
             --rw randread,randwrite,read,write."
        )?;
    }
    if device.is_none() {
        writeln!(
            out,
            "# Replace MAJ:MIN with the numbers of the disk (lsblk)."
        )?;
    }
    let device = device.unwrap_or_else(|| "MAJ:MIN".to_owned());
    writeln!(
        out,
        "echo '{device} ctrl=user model=linear {model}' > /sys/fs/cgroup/io.cost.model"
    )?;
    write_qos(&device, [Some(&reads), writes.as_ref()], out)
}

fn direction(letter: char, capacity: &DiskCapacity<'_>) -> String {
    let sequential = capacity.sequential_iops.unwrap_or(capacity.random_iops);
    format!(
        "{letter}bps={:.0} {letter}seqiops={:.0} {letter}randiops={:.0}",
        capacity.bytes_per_second, sequential, capacity.random_iops
    )
}

/// The latency from which on the kernel counts the disk as busy: the 99th percentile beyond the
/// knee. The limits of the rate are those of the kernel's documentation.
fn write_qos(
    device: &str,
    capacities: [Option<&DiskCapacity<'_>>; 2],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut settings = Vec::new();
    for (letter, capacity) in ['r', 'w'].into_iter().zip(capacities) {
        if let Some(ns) = capacity.and_then(DiskCapacity::busy_p99_ns) {
            settings.push(format!("{letter}pct=99.00 {letter}lat={}", ns / 1000));
        }
    }
    if settings.is_empty() {
        return writeln!(
            out,
            "# No io.cost.qos: no latency was measured at twice the depth of the knee."
        );
    }
    writeln!(
        out,
        "# Latencies in µs at twice the depth of the knee. enable=1 enables the controller."
    )?;
    writeln!(
        out,
        "echo '{device} enable=1 ctrl=user {} min=50.00 max=150.00' > /sys/fs/cgroup/io.cost.qos",
        settings.join(" ")
    )
}

/// `major:minor` of the disk; `None` where it is not one disk.
fn device(record: &Record) -> Option<String> {
    let mut disks = record.targets.iter().flat_map(|target| target.disks());
    let (first, second) = (disks.next()?, disks.next());
    let (major, minor) = first.device.split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_plain = second.is_none() && is_number(major) && is_number(minor);
    is_plain.then(|| first.device.clone())
}
