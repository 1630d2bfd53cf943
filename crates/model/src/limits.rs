//! The largest text, list and number of a saved document. serde refuses what has another type;
//! these limits keep memory and arithmetic bounded.

use crate::plan::WORKLOADS_MAX;

/// Largest text of a record, comparison or report page, in bytes. A check has 70 KB; the record of
/// a day with hundreds of workloads stays below 20 MB.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// Longest single string, in bytes: an encoded histogram with every bucket filled has 400 kB.
pub(crate) const STRING_BYTES_MAX: usize = 1 << 20;
/// Most values (numbers, strings, lists, objects …) in one document. A series cell has five in 65
/// bytes, so 64 MiB of ordinary record stay below this.
pub(crate) const VALUES_MAX: usize = 8_000_000;
/// Most pages of 4 KiB that the distributions of one document take when they are decoded. A
/// workload has 20 of them for each kind of operation; a small text can ask for 66.
pub(crate) const HISTOGRAM_PAGES_MAX: usize = 100_000;
/// Most cells of all packed series of one document: those of 2,600 workloads that read and write.
pub(crate) const PACKED_CELLS_MAX: u64 = 8_000_000;
/// Most elements of a list or members of an object whose key has no entry in [`LENGTHS`].
const LENGTH_MAX: usize = 10_000;

/// Most targets on which a plan with the most workloads can be measured, for its record to be read
/// back. Servers with the most drive bays have about 100.
const TARGETS_MAX: usize = 100;

/// Longest lists, by key. A packed series has at most 8192 cells, and the engine keeps 1000 blocks
/// of a scan.
const LENGTHS: [(&str, usize); 10] = [
    ("access", 1_000_000),
    ("cells", 20_000),
    ("curve", 1_000_000),
    ("examples", 4096),
    ("map", 20_000),
    ("measurements", WORKLOADS_MAX * TARGETS_MAX),
    ("metrics", 100_000),
    ("readings", 1000),
    ("rows", 100_000),
    ("workloads", 4096),
];

/// Most elements of the list or members of the object under `key`.
pub(crate) fn length_max(key: &str) -> usize {
    LENGTHS
        .iter()
        .find(|(known, _)| *known == key)
        .map_or(LENGTH_MAX, |(_, most)| *most)
}

/// Largest count, time or amount: 36 years in nanoseconds, so that sums of a few still fit 64 bits.
const AMOUNT_MAX: f64 = (1u64 << 60) as f64;
/// Largest position on a target: files and devices end at 2⁶³ bytes (loff_t).
const POSITION_MAX: f64 = (1u64 << 63) as f64;
/// Keys of numbers that are no amounts, and of sizes that a filesystem reports without a limit.
const UNLIMITED: [&str; 5] = ["free_bytes", "inode", "seed", "size_bytes", "times"];

/// The largest magnitude of a number under `key`.
pub(crate) fn number_max(key: &str) -> f64 {
    if UNLIMITED.contains(&key) {
        f64::MAX
    } else if key.ends_with("bytes") || key == "lba" {
        POSITION_MAX
    } else {
        AMOUNT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_of_the_longest_plan_on_many_targets_is_read_back() {
        assert!(length_max("measurements") >= 14 * WORKLOADS_MAX);
        assert!(length_max("workloads") >= WORKLOADS_MAX);
    }
}
