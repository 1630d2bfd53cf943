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
    let (writes, device) = (writes(record), disk_number(record));
    writeln!(out, "#!/bin/sh")?;
    let path = record.targets.first().map_or("", |target| &target.path);
    let (run, version) = (clean(&record.run_id), clean(&record.tool.version));
    writeln!(out, "# {}, run {run} of diskproof {version}", clean(path))?;
    let mut model = cost_model('r', &reads);
    if let Some(writes) = &writes {
        model += &format!(" {}", cost_model('w', writes));
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
        let hint = "# Replace MAJ:MIN with the numbers of the disk (lsblk).";
        writeln!(out, "{hint}")?;
    }
    let device = device.unwrap_or_else(|| "MAJ:MIN".to_owned());
    let settings = format!("{device} ctrl=user model=linear {model}");
    writeln!(out, "echo '{settings}' > /sys/fs/cgroup/io.cost.model")?;
    write_qos(&device, [Some(&reads), writes.as_ref()], out)
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
    capacities: [Option<&DiskCapacity<'_>>; 2],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut settings = Vec::new();
    for (letter, capacity) in ['r', 'w'].into_iter().zip(capacities) {
        let ns = capacity.and_then(DiskCapacity::busy_p99_ns);
        settings.extend(ns.map(|ns| format!("{letter}pct=99.00 {letter}lat={}", ns / 1000)));
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
fn disk_number(record: &Record) -> Option<String> {
    let mut disks = record.targets.iter().flat_map(|target| target.disks());
    let (first, second) = (disks.next()?, disks.next());
    let (major, minor) = first.device.split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_plain = second.is_none() && is_number(major) && is_number(minor);
    is_plain.then(|| first.device.clone())
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
