//! Maps the parts of one layer to their places on another. For a mapped device the map is the table
//! of device mapper, as `dmsetup table` prints it (dmsetup(8) and
//! Documentation/admin-guide/device-mapper). Keys never appear: only --showkeys prints them.

use crate::programs::external_program::{find_program, output_of};
use diskproof_model::units::SECTOR_BYTES;
use std::process::Command;
use std::time::Duration;

/// Spans begin and end at multiples of this: PostgreSQL's page, and a multiple of every sector.
pub(super) const UNIT_BYTES: u64 = 8192;

/// The place of a layer's blocks on the layer right below.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlockMap {
    /// Parts of which the place is known, in any order; blocks outside of them lie elsewhere.
    pub segments: Vec<Segment>,
    /// The layer below holds ciphertext, so its content differs.
    pub is_encrypted: bool,
}

impl BlockMap {
    /// A map of blocks whose content is the same below.
    pub(super) fn plain(segments: Vec<Segment>) -> Self {
        Self {
            segments,
            is_encrypted: false,
        }
    }
}

/// A part that lies in one piece on both layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// First byte on the upper layer.
    pub upper_start: u64,
    /// First byte on the lower layer.
    pub lower_start: u64,
    /// Length in bytes.
    pub length: u64,
}

impl Segment {
    /// First byte behind it on the upper layer.
    pub(super) fn end(&self) -> u64 {
        self.upper_start.saturating_add(self.length)
    }
}

/// Joins two maps to one of the layer two levels below: `above` leads to the layer that `below`
/// starts from.
pub(super) fn compose(above: &[Segment], below: &[Segment]) -> Vec<Segment> {
    let mut segments = Vec::new();
    for upper in above {
        for lower in below {
            let low = upper.lower_start.max(lower.upper_start);
            let high = upper
                .lower_start
                .saturating_add(upper.length)
                .min(lower.end());
            if low < high {
                segments.push(Segment {
                    upper_start: upper.upper_start + (low - upper.lower_start),
                    lower_start: lower.lower_start.saturating_add(low - lower.upper_start),
                    length: high - low,
                });
            }
        }
    }
    join_neighbours(segments)
}

/// Joins parts that are neighbours on both layers.
fn join_neighbours(mut segments: Vec<Segment>) -> Vec<Segment> {
    segments.sort_unstable_by_key(|segment| segment.upper_start);
    let mut joined: Vec<Segment> = Vec::new();
    for next in segments {
        match joined.last_mut() {
            Some(last)
                if last.end() == next.upper_start
                    && last.lower_start + last.length == next.lower_start =>
            {
                last.length += next.length;
            }
            _ => joined.push(next),
        }
    }
    joined
}

/// The longest part, cut to whole units of the upper layer.
pub(super) fn longest(segments: &[Segment]) -> Option<Segment> {
    let cut = segments.iter().map(|segment| {
        let upper_start = segment.upper_start.next_multiple_of(UNIT_BYTES);
        let skipped = upper_start - segment.upper_start;
        Segment {
            upper_start,
            lower_start: segment.lower_start + skipped,
            length: segment.length.saturating_sub(skipped) / UNIT_BYTES * UNIT_BYTES,
        }
    });
    cut.filter(|segment| segment.length > 0)
        .max_by_key(|segment| segment.length)
}

/// dmsetup queries the kernel once, which takes milliseconds; one that hangs does not hold up the
/// test. Chosen, not measured.
const DMSETUP_LIMIT: Duration = Duration::from_secs(5);

/// Maps the blocks of a mapped device to the device with this number (`major:minor`), by the table
/// that dmsetup prints; an error says what is missing or what kind of target hides the place.
pub(super) fn device_mapper_map(
    name: Option<String>,
    number: Option<String>,
) -> Result<BlockMap, String> {
    let (Some(name), Some(number)) = (name, number) else {
        return Err("sysfs does not show the name of the mapped device".to_owned());
    };
    let search_path = std::env::var_os("PATH");
    let Some(program) = find_program("dmsetup", search_path.as_deref()) else {
        return Err("the device mapper table is unknown; install dmsetup".to_owned());
    };
    let mut command = Command::new(program);
    command.args(["table", &name]);
    let text = output_of(command, DMSETUP_LIMIT)
        .map_err(|_| "dmsetup does not show the device mapper table".to_owned())?;
    read_table(&text, &number)
}

/// A number of sectors in bytes.
fn parse_sectors(sectors: &str) -> Option<u64> {
    sectors.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)
}

/// The table of a device whose parts are linear or encrypted, and lie on one device.
fn read_table(text: &str, number: &str) -> Result<BlockMap, String> {
    let mut segments = Vec::new();
    let mut is_encrypted = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, length, kind, rest @ ..] = words.as_slice() else {
            return Err(unreadable(text));
        };
        let (device, start_below) = match (*kind, rest) {
            ("linear", [device, offset, ..]) => (device, offset),
            // A volume with snapshots: its own blocks stay where they are.
            ("snapshot-origin", [device, ..]) => (device, start),
            ("crypt", [_cipher, _key, _iv, device, offset, ..]) => {
                is_encrypted = true;
                (device, offset)
            }
            _ => {
                return Err(format!(
                    "a device mapper target of type {kind} does not reveal the position of a block"
                ));
            }
        };
        let (Some(upper_start), Some(length), Some(lower_start)) = (
            parse_sectors(start),
            parse_sectors(length),
            parse_sectors(start_below),
        ) else {
            return Err(unreadable(text));
        };
        // Parts on other devices are not measured.
        if *device == number {
            segments.push(Segment {
                upper_start,
                lower_start,
                length,
            });
        }
    }
    if segments.is_empty() {
        return Err(unreadable(text));
    }
    Ok(BlockMap {
        segments,
        is_encrypted,
    })
}

/// The error for a table that has no usable line.
fn unreadable(text: &str) -> String {
    match text.lines().next().unwrap_or_default() {
        "" => "dmsetup shows no table; run as root, outside a container".to_owned(),
        line => format!("the device mapper table has no usable line: {line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn segment(upper_start: u64, lower_start: u64, length: u64) -> Segment {
        Segment {
            upper_start,
            lower_start,
            length,
        }
    }

    #[test]
    fn segments_of_two_layers_become_those_of_both() {
        let file = [
            segment(0, 10 * MIB, 4 * MIB),
            segment(4 * MIB, 30 * MIB, MIB),
        ];
        let partition = [segment(0, MIB, 100 * MIB)];
        let on_disk = compose(&file, &partition);
        let expected = [
            segment(0, 11 * MIB, 4 * MIB),
            segment(4 * MIB, 31 * MIB, MIB),
        ];
        assert_eq!(on_disk, expected);
        // A volume in two pieces cuts the file's first extent; the hole between is skipped.
        let volume = [segment(0, 0, 12 * MIB), segment(13 * MIB, 50 * MIB, MIB)];
        let expected = [
            segment(0, 10 * MIB, 2 * MIB),
            segment(3 * MIB, 50 * MIB, MIB),
        ];
        assert_eq!(compose(&file, &volume), expected);
    }

    #[test]
    fn segments_that_adjoin_on_both_layers_are_joined() {
        let extents = [
            segment(MIB, 11 * MIB, MIB),
            segment(0, 10 * MIB, MIB),
            segment(2 * MIB, 20 * MIB, MIB),
        ];
        let all = [segment(0, 0, 100 * MIB)];
        let expected = [
            segment(0, 10 * MIB, 2 * MIB),
            segment(2 * MIB, 20 * MIB, MIB),
        ];
        assert_eq!(compose(&extents, &all), expected);
    }

    #[test]
    fn longest_segment_has_whole_units() {
        let odd = [segment(4096, 512, 3 * 8192), segment(65_536, 0, 8192)];
        assert_eq!(longest(&odd), Some(segment(8192, 4608, 2 * 8192)));
        assert_eq!(longest(&[segment(1, 1, 8192)]), None);
    }

    #[test]
    fn table_of_a_logical_volume_in_two_pieces() {
        let text = "0 8388608 linear 259:3 2048\n8388608 2097152 linear 259:3 20973568\n";
        let second = segment(4 << 30, 20_973_568 * 512, 1 << 30);
        let expected = vec![segment(0, 1 << 20, 4 << 30), second];
        assert_eq!(read_table(text, "259:3"), Ok(BlockMap::plain(expected)));
        assert!(read_table(text, "259:4").is_err());
    }

    #[test]
    fn table_of_a_volume_with_snapshots() {
        let expected = vec![segment(0, 0, 3 << 30)];
        let text = "0 6291456 snapshot-origin 253:6\n";
        assert_eq!(read_table(text, "253:6"), Ok(BlockMap::plain(expected)));
        let snapshot = "0 6291456 snapshot 253:6 253:7 P 8\n";
        assert!(read_table(snapshot, "253:6").is_err());
    }

    #[test]
    fn table_of_an_encrypted_device() {
        let text = "0 1953488896 crypt aes-xts-plain64 :64:logon:cryptsetup:6e2c-d0 0 8:3 32768 1 \
                    allow_discards\n";
        let encrypted = BlockMap {
            segments: vec![segment(0, 16 << 20, 1_953_488_896 * 512)],
            is_encrypted: true,
        };
        assert_eq!(read_table(text, "8:3"), Ok(encrypted));
    }

    #[test]
    fn tables_that_name_no_place_are_unknown() {
        let striped = "0 8388608 striped 2 128 8:3 2048 8:19 2048\n";
        let why = read_table(striped, "8:3").unwrap_err();
        assert!(why.contains("striped"), "{why}");
        for text in [
            "",
            "\n",
            "nonsense",
            "0 x linear 8:3 0",
            "0 1 linear 8:3 99999999999999999",
        ] {
            assert!(read_table(text, "8:3").is_err(), "{text:?}");
        }
    }
}
