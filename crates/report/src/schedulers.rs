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
    let path = match record.targets.first() {
        Some(target) => target.path.as_str(),
        None => "",
    };
    writeln!(
        out,
        "# {}, run {} of diskproof {}",
        clean(path),
        clean(&record.run_id),
        clean(&record.tool.version)
    )?;
    let mut model = cost_model('r', &reads);
    let mut is_guessed = reads.sequential_iops.is_none();
    if let Some(writes) = &write_capacity {
        model.push_str(&format!(" {}", cost_model('w', writes)));
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
        Some(number) => number,
        None => {
            let hint = "# Replace MAJ:MIN with the numbers of the disk (lsblk).";
            writeln!(out, "{hint}")?;
            "MAJ:MIN"
        }
    };
    let settings = format!("{device} ctrl=user model=linear {model}");
    writeln!(out, "echo '{settings}' > /sys/fs/cgroup/io.cost.model")?;
    write_qos(device, &reads, write_capacity.as_ref(), out)
}

fn cost_model(letter: char, capacity: &DiskCapacity<'_>) -> String {
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
    reads: &DiskCapacity<'_>,
    writes: Option<&DiskCapacity<'_>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut settings = Vec::new();
    if let Some(ns) = reads.busy_p99_ns() {
        settings.push(latency_setting('r', ns));
    }
    if let Some(writes) = writes
        && let Some(ns) = writes.busy_p99_ns()
    {
        settings.push(latency_setting('w', ns));
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

fn latency_setting(letter: char, ns: u64) -> String {
    format!("{letter}pct=99.00 {letter}lat={}", ns / 1000)
}

/// `major:minor` of the disk; `None` where it is not one disk.
fn disk_number(record: &Record) -> Option<&str> {
    let mut disks = record.targets.iter().flat_map(TargetIdentity::disks);
    let disk = disks.next()?;
    let (major, minor) = disk.device.split_once(':')?;
    if disks.next().is_none() && is_number(major) && is_number(minor) {
        Some(&disk.device)
    } else {
        None
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes the properties of the one disk of the record for Seastar.
pub(crate) fn write_seastar(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let (Some(reads), Some(writes)) = (reads(record), writes(record)) else {
        return Ok(());
    };
    let place = record.targets.first().map(mount_point).unwrap_or_default();
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
