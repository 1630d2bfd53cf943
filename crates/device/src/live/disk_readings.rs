//! /proc/diskstats (Documentation/admin-guide/iostats.rst): one line per block device, with all
//! counters since boot.

use crate::sysroot::SysRoot;
use diskproof_model::watch::{DirectionCounters, DiskReading};
use std::io;

/// Major and minor number, name, and eleven counters; later kernels append more.
const FIELDS_MIN: usize = 14;
/// Of flushes, since Linux 5.5.
const FLUSHES: usize = 18;

/// The counters of all block devices, partitions included.
pub fn read_disks() -> io::Result<Vec<DiskReading>> {
    read_disks_in(&SysRoot::default())
}

fn read_disks_in(root: &SysRoot) -> io::Result<Vec<DiskReading>> {
    let bytes = std::fs::read(root.proc.join("diskstats"))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(parse_line).collect())
}

/// One line of diskstats; `None` where it lacks fields.
fn parse_line(line: &str) -> Option<DiskReading> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if fields.len() < FIELDS_MIN {
        return None;
    }
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let direction = |first: usize| {
        Some(DirectionCounters {
            ops: number(first)?,
            merges: number(first + 1)?,
            sectors: number(first + 2)?,
            ms: number(first + 3)?,
        })
    };
    Some(DiskReading {
        name: fields[2].to_owned(),
        device: (fields[0].parse().ok()?, fields[1].parse().ok()?),
        read: direction(3)?,
        write: direction(7)?,
        in_flight: number(11)?,
        busy_ms: number(12)?,
        queued_ms: number(13)?,
        flush_ops: number(FLUSHES),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
