//! The properties of a disk for Seastar (ScyllaDB, Redpanda), as its iotune writes them:
//! doc/io-properties-file.md of Seastar.

use crate::capacity::{DiskCapacity, reads, writes};
use crate::format::{Format, Requires};
use diskproof_model::record::Record;
use diskproof_model::sweep::size_word;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format {
    requires: Requires::SweepOfBoth,
    ..Format::new(
        ".yaml",
        "Seastar's io-properties.yaml, from a sweep",
        write_record,
    )
};

/// Writes the one disk of the record.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let (Some(reads), Some(writes)) = (reads(record), writes(record)) else {
        return Ok(());
    };
    let place = record.targets.first().map(mount_point).unwrap_or_default();
    writeln!(out, "disks:")?;
    // A JSON string is a YAML string, whatever it contains.
    writeln!(out, "  - mountpoint: {}", serde_json::to_string(place)?)?;
    write_direction("read", &reads, out)?;
    write_direction("write", &writes, out)
}

fn write_direction(name: &str, capacity: &DiskCapacity<'_>, out: &mut dyn Write) -> io::Result<()> {
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
