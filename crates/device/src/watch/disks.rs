//! Lists the block devices of the machine for `watch`, with the numbers and sectors by which the
//! kernel's tracing (request_trace.rs) names their requests, and reads the counters of all of them
//! from /proc/diskstats. A device needs no node in /dev; none is opened.

use crate::counters::snapshot::DiskCounters;
use crate::identity::layers;
use crate::identity::probe::block_identity;
use crate::kernel::mounts;
use crate::kernel::sysroot::{SysRoot, list, read_number, read_text};
use diskproof_model::target::TargetIdentity;
use diskproof_model::watch::DiskReading;
use std::io;
use std::ops::Range;

/// A block device that can be watched.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedDevice {
    /// Kernel name, such as `sda1`.
    pub name: String,
    /// Size, kind and layers of the device.
    pub identity: TargetIdentity,
    /// Major and minor number of the whole disk, which is what tracing reports.
    pub disk: (u32, u32),
    /// The device occupies these sectors of 512 bytes on that disk.
    pub sectors: Range<u64>,
    /// True where hardware or a hypervisor provides it, unlike loop devices and layers.
    pub is_disk: bool,
}

/// Kernel names of all whole block devices that have a size, in order.
pub fn whole_devices() -> Vec<String> {
    let root = SysRoot::default();
    let block = root.sys.join("block");
    let mut devices = Vec::new();
    for name in list(&block) {
        if let Some(1_u64..) = read_number(&block.join(&name).join("size")) {
            devices.push(name);
        }
    }
    devices
}

/// True if sysfs lists block devices, of whatever size; without sysfs there are none.
pub fn lists_block_devices() -> bool {
    !list(&SysRoot::default().sys.join("block")).is_empty()
}

/// The device of a kernel name; `None` where sysfs does not show it.
pub fn watched_device(name: &str) -> Option<WatchedDevice> {
    watched_device_in(&SysRoot::default(), name)
}

fn watched_device_in(root: &SysRoot, name: &str) -> Option<WatchedDevice> {
    // The kernel gives no device such a name; it would lead to another folder.
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return None;
    }
    let sysfs = root.named_device(name)?;
    let device = read_text(&sysfs.join("dev"))?;
    let size: u64 = read_number(&sysfs.join("size")).unwrap_or(0);
    let is_partition = sysfs.join("partition").exists();
    let (disk, first) = if is_partition {
        (
            read_text(&sysfs.parent()?.join("dev"))?,
            read_number::<u64>(&sysfs.join("start")).unwrap_or(0),
        )
    } else {
        (device.clone(), 0)
    };
    let stack = layers::layers_below_device(root, &mounts::read_mounts(root, "self"), &device);
    Some(WatchedDevice {
        name: name.to_owned(),
        identity: block_identity(root, format!("/dev/{name}"), device, 0, stack),
        disk: numbers(&disk)?,
        sectors: first..first.saturating_add(size),
        is_disk: !is_partition && sysfs.join("device").exists(),
    })
}

/// The number of the disk that has this kernel name now, or a partition of it: another disk that
/// takes the name has another number, as has another medium in a drive. `None` before Linux 5.15.
pub fn disk_sequence(name: &str) -> Option<u64> {
    let sysfs = SysRoot::default().named_device(name)?;
    let own = read_number(&sysfs.join("diskseq"));
    match own {
        Some(sequence) => Some(sequence),
        None => read_number(&sysfs.parent()?.join("diskseq")),
    }
}

/// `8:16` as two numbers.
fn numbers(device: &str) -> Option<(u32, u32)> {
    let (major, minor) = device.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The counters of all block devices since boot, partitions included: the lines of /proc/diskstats
/// (Documentation/admin-guide/iostats.rst).
pub fn read_disks() -> io::Result<Vec<DiskReading>> {
    let bytes = std::fs::read(SysRoot::default().proc.join("diskstats"))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(parse_line).collect())
}

/// One line of diskstats: major and minor number, name and counters; `None` where it lacks fields.
fn parse_line(line: &str) -> Option<DiskReading> {
    let mut words = line.split_ascii_whitespace();
    let device = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = words.next()?;
    Some(DiskCounters::parse(words)?.reading(name, device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::watch::DirectionCounters;

    #[test]
    fn only_names_of_the_kernel_are_devices() {
        for name in ["", ".", "..", "../block", "a/b", "no-such-disk"] {
            assert_eq!(watched_device(name), None, "{name}");
        }
        assert_eq!(numbers("8:16"), Some((8, 16)));
        assert_eq!(numbers("8"), None);
    }

    #[test]
    fn line_of_diskstats_is_read_with_and_without_flushes() {
        let line = " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        let reading = parse_line(line).unwrap();
        assert_eq!((reading.name.as_str(), reading.device), ("vda", (254, 0)));
        let write = DirectionCounters {
            ops: 5,
            merges: 6,
            sectors: 7,
            ms: 8,
        };
        assert_eq!((reading.read.ops, reading.write), (1, write));
        assert_eq!((reading.in_flight, reading.queued_ms), (9, 11));
        assert_eq!(reading.flush_ops, Some(16));
        let old = parse_line("8 0 sda 1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(old.flush_ops, None);
    }
}
