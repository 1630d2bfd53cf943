//! What schedulers of other systems are set by: Linux' I/O cost controller (blk-iocost,
//! io.cost.model and io.cost.qos of Documentation/admin-guide/cgroup-v2.rst) and Seastar (ScyllaDB,
//! Redpanda: doc/io-properties-file.md, as its iotune writes them).

use crate::capacity::{DiskCapacity, reads, writes};
use crate::text::clean;
use diskproof_model::record::Record;
use diskproof_model::sweep::size_word;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// Writes the settings of blk-iocost: a shell script with one line for each setting, and what it
/// follows from.
pub(crate) fn write_iocost(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let Some(reads) = reads(record) else {
        return Ok(());
    };
    let write_capacity = writes(record);
    writeln!(out, "#!/bin/sh")?;
    writeln!(out, "# {}", origin(record))?;
    let mut model = cost_model('r', &reads);
    let mut latencies = Vec::from_iter(latency_settings('r', &reads));
    let mut is_guessed = reads.sequential_iops.is_none();
    if let Some(writes) = &write_capacity {
        model += &format!(" {}", cost_model('w', writes));
        latencies.extend(latency_settings('w', writes));
        is_guessed |= writes.sequential_iops.is_none();
    }
    if is_guessed {
        writeln!(
            out,
            "# Some sequential operations of 4 KiB were not measured, so random ones are used. Add \
             --rw randread,randwrite,read,write."
        )?;
    }
    let device = match disk_number(record) {
        Some(device) => device,
        None => {
            let hint = "# Replace MAJ:MIN with the numbers of the disk (lsblk).";
            writeln!(out, "{hint}")?;
            "MAJ:MIN"
        }
    };
    let settings = format!("{device} ctrl=user model=linear {model}");
    writeln!(out, "echo '{settings}' > /sys/fs/cgroup/io.cost.model")?;
    write_qos(device, &latencies, out)
}

/// The target, the run and the program.
fn origin(record: &Record) -> String {
    let path = match record.targets.first() {
        Some(target) => clean(&target.path),
        None => String::new(),
    };
    let run = clean(&record.run_id);
    let version = clean(&record.tool.version);
    format!("{path}, run {run} of diskproof {version}")
}

fn cost_model(letter: char, capacity: &DiskCapacity<'_>) -> String {
    let sequential = capacity.sequential_iops.unwrap_or(capacity.random_iops);
    format!(
        "{letter}bps={:.0} {letter}seqiops={:.0} {letter}randiops={:.0}",
        capacity.bytes_per_second, sequential, capacity.random_iops
    )
}

/// The latency from which on the kernel counts the disk as busy: the 99th percentile beyond the
/// knee. `None` where no latency was measured there.
fn latency_settings(letter: char, capacity: &DiskCapacity<'_>) -> Option<String> {
    let busy_us = capacity.busy_p99_ns()? / 1000;
    Some(format!("{letter}pct=99.00 {letter}lat={busy_us}"))
}

/// Writes the latencies with the limits of the rate, which are those of the kernel's documentation.
fn write_qos(device: &str, latencies: &[String], out: &mut dyn Write) -> io::Result<()> {
    if latencies.is_empty() {
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
        latencies.join(" ")
    )
}

/// `major:minor` of the disk; `None` where it is not one disk.
fn disk_number(record: &Record) -> Option<&str> {
    let mut disks = record.targets.iter().flat_map(|target| target.disks());
    let first = disks.next()?;
    if disks.next().is_some() {
        return None;
    }
    let (major, minor) = first.device.split_once(':')?;
    if is_number(major) && is_number(minor) {
        Some(&first.device)
    } else {
        None
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// Writes the properties of the one disk of the record for Seastar.
pub(crate) fn write_seastar(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let (Some(reads), Some(writes)) = (reads(record), writes(record)) else {
        return Ok(());
    };
    let place = match record.targets.first() {
        Some(target) => mount_point(target),
        None => "",
    };
    writeln!(out, "disks:")?;
    // A JSON string is a YAML string, whatever it contains.
    writeln!(out, "  - mountpoint: {}", serde_json::to_string(place)?)?;
    write_properties("read", &reads, out)?;
    write_properties("write", &writes, out)
}

fn write_properties(
    name: &str,
    capacity: &DiskCapacity<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "    {name}_iops: {:.0}", capacity.random_iops)?;
    let rate = capacity.bytes_per_second;
    writeln!(out, "    {name}_bandwidth: {rate:.0}")?;
    if let Some(limit) = &capacity.random.bandwidth_limit {
        let size = size_word(u64::from(limit.block_bytes));
        writeln!(out, "    {name}_saturation_length: {size}")?;
    }
    Ok(())
}

fn mount_point(target: &TargetIdentity) -> &str {
    match &target.filesystem {
        Some(filesystem) => &filesystem.mount_point,
        None => &target.path,
    }
}
