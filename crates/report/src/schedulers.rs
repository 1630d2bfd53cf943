//! Settings for the schedulers of other systems: Linux' I/O cost controller (blk-iocost,
//! io.cost.model and io.cost.qos of Documentation/admin-guide/cgroup-v2.rst), Seastar (ScyllaDB,
//! Redpanda: doc/io-properties-file.md, as its iotune writes them), Ceph's mClock and CockroachDB's
//! admission control.
//!
//! Rays give two rates. A system that states the most that a disk can do gets the rate that was
//! served when more was offered. A scheduler that keeps latencies low gets the rate that kept the
//! promise.

use crate::capacity::{
    DiskCapacity, RayCapacity, RayDirection, rays, rays_of_pages, reads, swept_doubt, writes,
};
use crate::text::clean;
use diskproof_model::record::Record;
use diskproof_model::sweep::size_word;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// The largest percentile below 100 in the two decimals of io.cost.qos. With 100 a single late
/// request makes the kernel throttle (blk-iocost.c, `ioc_timer_fn`: the share of misses that it
/// allows is 100 less this).
const LATENCY_PERCENT_MAX: f64 = 99.99;

/// Writes the settings of blk-iocost: a shell script with one line for each setting, and what it
/// follows from.
pub(crate) fn write_iocost(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    if let Some(capacity) = rays_of_pages(record) {
        return write_iocost_of_rays(record, &capacity, out);
    }
    let Some(reads) = reads(record) else {
        return Ok(());
    };
    let write_capacity = writes(record);
    write_script_head(record, out)?;
    if let Some(doubt) = swept_doubt(record) {
        writeln!(out, "# {doubt}")?;
    }
    let mut model = model_text('r', &reads);
    let mut latencies = Vec::from_iter(latency_text('r', &reads));
    let mut is_guessed = reads.sequential_iops.is_none();
    if let Some(writes) = &write_capacity {
        model += &format!(" {}", model_text('w', writes));
        latencies.extend(latency_text('w', writes));
        is_guessed |= writes.sequential_iops.is_none();
    }
    if is_guessed {
        writeln!(
            out,
            "# Some sequential operations of 4 KiB were not measured, so random ones are used. Add \
             --rw randread,randwrite,read,write."
        )?;
    }
    let device = device_or_placeholder(record, out)?;
    write_model(device, &model, out)?;
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
    write_qos(device, &latencies, out)
}

/// Writes the first lines of a shell script.
fn write_script_head(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "#!/bin/sh")?;
    writeln!(out, "# {}", origin_text(record))
}

/// Returns `major:minor` of the disk for the lines that follow. Where it is not one disk, first
/// writes a comment that explains the placeholder which it then returns.
fn device_or_placeholder<'a>(record: &'a Record, out: &mut dyn Write) -> io::Result<&'a str> {
    match disk_number(record) {
        Some(device) => Ok(device),
        None => {
            writeln!(
                out,
                "# Replace MAJ:MIN with the numbers of the disk (lsblk)."
            )?;
            Ok("MAJ:MIN")
        }
    }
}

fn write_model(device: &str, model: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "echo '{device} ctrl=user model=linear {model}' > /sys/fs/cgroup/io.cost.model"
    )
}

/// Writes the settings of blk-iocost from rays. The model is what the disk serves at most. The
/// latency of the promise is that from which on the kernel counts the disk as busy.
fn write_iocost_of_rays(
    record: &Record,
    capacity: &RayCapacity,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (Some(served_reads), Some(served_writes)) = (
        capacity.reads.saturated_iops,
        capacity.writes.saturated_iops,
    ) else {
        return Ok(());
    };
    write_script_head(record, out)?;
    let device = device_or_placeholder(record, out)?;
    let model = format!(
        "{} {}",
        ray_model_text('r', &capacity.reads, served_reads),
        ray_model_text('w', &capacity.writes, served_writes)
    );
    write_model(device, &model, out)?;
    writeln!(
        out,
        "# The promise that was searched, in µs. enable=1 enables the controller."
    )?;
    let percent = capacity.promise.percent.min(LATENCY_PERCENT_MAX);
    let limit_us = capacity.promise.limit_ns.div_ceil(1000);
    let latencies: Vec<String> = ['r', 'w']
        .iter()
        .map(|letter| format!("{letter}pct={percent:.2} {letter}lat={limit_us}"))
        .collect();
    write_qos(device, &latencies, out)
}

/// The cost model of one direction of saturated rays; `letter` is `r` or `w`.
fn ray_model_text(letter: char, direction: &RayDirection, saturated_iops: f64) -> String {
    format!(
        "{letter}bps={:.0} {letter}seqiops={:.0} {letter}randiops={saturated_iops:.0}",
        direction.bytes_per_second, direction.sequential_iops
    )
}

/// Names the target, the run and the program.
fn origin_text(record: &Record) -> String {
    let path = match record.targets.first() {
        Some(target) => clean(&target.path),
        None => String::new(),
    };
    let run = clean(&record.run_id);
    let version = clean(&record.tool.version);
    format!("{path}, run {run} of diskproof {version}")
}

/// The cost model of one direction of a sweep; `letter` is `r` or `w`.
fn model_text(letter: char, capacity: &DiskCapacity<'_>) -> String {
    let sequential = capacity.sequential_iops.unwrap_or(capacity.random_iops);
    format!(
        "{letter}bps={:.0} {letter}seqiops={:.0} {letter}randiops={:.0}",
        capacity.bytes_per_second, sequential, capacity.random_iops
    )
}

/// The latency from which on the kernel counts the disk as busy: the 99th percentile beyond the
/// knee. `None` where no latency was measured there.
fn latency_text(letter: char, capacity: &DiskCapacity<'_>) -> Option<String> {
    let busy_us = capacity.busy_p99_ns()? / 1000;
    Some(format!("{letter}pct=99.00 {letter}lat={busy_us}"))
}

/// Writes the latencies, and between which percentages the controller may scale the rate: those of
/// the example in the kernel's documentation.
fn write_qos(device: &str, latencies: &[String], out: &mut dyn Write) -> io::Result<()> {
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
    if let Some(capacity) = rays_of_pages(record) {
        write_disk(record, None, out)?;
        write_ray_properties("read", &capacity.reads, out)?;
        return write_ray_properties("write", &capacity.writes, out);
    }
    let (Some(reads), Some(writes)) = (reads(record), writes(record)) else {
        return Ok(());
    };
    write_disk(record, swept_doubt(record), out)?;
    write_properties("read", &reads, out)?;
    write_properties("write", &writes, out)
}

/// Begins the only disk of the file. The first line also says why its figures are not final, where
/// they are not.
fn write_disk(record: &Record, doubt: Option<&'static str>, out: &mut dyn Write) -> io::Result<()> {
    let place = match record.targets.first() {
        Some(target) => mount_point(target),
        None => "",
    };
    write!(out, "# Start with --io-properties-file THIS_FILE")?;
    if let Some(doubt) = doubt {
        write!(out, ". {doubt}")?;
    }
    writeln!(out)?;
    writeln!(out, "disks:")?;
    // A JSON string is a YAML string, whatever it contains.
    writeln!(out, "  - mountpoint: {}", serde_json::to_string(place)?)
}

/// Writes the properties of one direction from rays. Seastar's scheduler keeps requests below these
/// rates so that latencies stay low, so the operations are those at which the promise was held.
fn write_ray_properties(
    name: &str,
    direction: &RayDirection,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rate = direction.bytes_per_second;
    writeln!(out, "    {name}_iops: {:.0}", direction.held_iops)?;
    writeln!(out, "    {name}_bandwidth: {rate:.0}")
}

/// Writes the capacity of an OSD as Ceph's mClock defines it: random writes of 4 KiB per second.
pub(crate) fn write_ceph(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let Some(capacity) = rays_of_pages(record) else {
        return Ok(());
    };
    let Some(saturated_iops) = capacity.writes.saturated_iops else {
        return Ok(());
    };
    write_script_head(record, out)?;
    writeln!(
        out,
        "# Replace N with the number of the OSD. This is the disk alone: 'ceph tell osd.N bench \
         12288000 4096 4194304 100' includes BlueStore."
    )?;
    writeln!(
        out,
        "ceph config set osd.N osd_mclock_max_capacity_iops_{} {:.0}",
        ceph_kind(record),
        saturated_iops
    )
}

/// The kind of device in the names of Ceph's settings: `hdd` for what rotates, else `ssd`. An OSD
/// takes the kernel's word, also of a virtio disk.
fn ceph_kind(record: &Record) -> &'static str {
    let mut disks = record.targets.iter().flat_map(|target| target.disks());
    if disks.any(|disk| disk.rotational == Some(true)) {
        "hdd"
    } else {
        "ssd"
    }
}

/// Writes the bandwidth of a store as CockroachDB's admission control defines it: bytes per second
/// that reads and writes move together.
pub(crate) fn write_cockroach(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let Some(capacity) = rays(record) else {
        return Ok(());
    };
    writeln!(out, "-- {}", origin_text(record))?;
    writeln!(
        out,
        "-- For all stores; of one, provisioned-rate in its --store overrides it."
    )?;
    writeln!(
        out,
        "SET CLUSTER SETTING kvadmission.store.provisioned_bandwidth = '{:.0}B';",
        capacity.mixed_bytes_per_second
    )
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
