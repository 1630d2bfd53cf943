//! Chooses the places at which an acceptance test writes and reads, and their order: all of it
//! follows from the salt, so that a run that was killed goes on, and a record can be judged again.
//! Pure.
//!
//! The orders must stay as they are, or a test that was stopped would look for its content at other
//! places and reject a good disk: `orders_are_those_of_saved_tests` holds them. The size of the
//! chunks may change: each measurement states its own.

use crate::scatter::scattered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tells the order of the writes from that of the reads: an ASCII `W`.
const SALT_WRITES: u64 = 0x57;
/// Tells the order of the reads from that of the writes: an ASCII `R`.
const SALT_READS: u64 = 0x52;
const MIB: u64 = 1 << 20;
/// A pass of larger chunks loses less to seeks. One seek of 15 ms in 64 MiB costs a disk of
/// 180 MB/s 4 %, so that a pass in random order takes at most 1.1 times as long as one in order.
const CHUNK_BYTES_MAX: u64 = 64 * MIB;
/// The chunks of a small device. A smaller chunk would be a single request.
const CHUNK_BYTES_MIN: u64 = MIB;
/// A device between 1 and 64 GiB is divided into this many chunks, or down to half as many: the
/// size of a chunk is a power of two. The chunks are the sample by which the test tells faults
/// apart: 97 of 100 beyond the real end have to be wrong, at most 1 of 100 is a defect, and rates
/// by position have 1024 parts. With a quarter of this number a hundredth is a chunk or two. With
/// four times as many, the seeks between chunks of a few MiB slow a rotating disk by half.
const CHUNKS_MAX: u64 = 1024;

/// Bytes of a block of the probe: what direct I/O takes on every disk.
pub const BLOCK_BYTES: u64 = 4096;

/// The size of the chunks in which a device of so many bytes is written.
pub fn chunk_bytes(size_bytes: u64) -> u64 {
    let wanted = (size_bytes / CHUNKS_MAX).max(1).next_power_of_two();
    wanted.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// A part of the device that is written or read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// The number of its write, which each of its sectors carries.
    pub order: u64,
}

/// Pieces that are written, or read and checked, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// All of them are written, or all of them read.
    pub pass: Pass,
    /// The pieces in the order in which they are written or read.
    pub pieces: Vec<Piece>,
}

/// Two different orders of one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// The order in which everything is written.
    Write,
    /// The order in which everything is read.
    Read,
}

/// The numbers below `count` in the random order that this salt gives to a pass.
pub fn shuffled(count: u64, salt: u64, pass: Pass) -> Vec<u64> {
    let key = match pass {
        Pass::Write => scattered(salt ^ SALT_WRITES),
        Pass::Read => scattered(salt ^ SALT_READS),
    };
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_by_cached_key(|number| scattered(key ^ scattered(*number)));
    numbers
}

/// The chunks of a device in the order in which they are written; each has its number in it.
pub fn chunks(size_bytes: u64, chunk_bytes: u64, salt: u64) -> Vec<Piece> {
    let count = size_bytes.div_ceil(chunk_bytes);
    let mut chunks = Vec::with_capacity(count as usize);
    for (order, number) in shuffled(count, salt, Pass::Write).into_iter().enumerate() {
        let offset_bytes = number * chunk_bytes;
        chunks.push(Piece {
            offset_bytes,
            length_bytes: chunk_bytes.min(size_bytes - offset_bytes),
            order: order as u64,
        });
    }
    chunks
}

/// A random number below `bound` that follows from a salt and a purpose.
pub fn salted(salt: u64, purpose: u64, bound: u64) -> u64 {
    let random = scattered(scattered(salt) ^ purpose);
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn chunks_cover_the_device_once_in_an_order_of_the_salt() {
        let size_bytes = 300 * MIB + 4096;
        let pieces = chunks(size_bytes, MIB, 7);
        let sum: u64 = pieces.iter().map(|piece| piece.length_bytes).sum();
        let offsets: BTreeSet<u64> = pieces.iter().map(|piece| piece.offset_bytes).collect();
        assert_eq!((sum, offsets.len()), (size_bytes, 301));
        assert_eq!(chunks(size_bytes, MIB, 7), pieces);
        assert_ne!(chunks(size_bytes, MIB, 8), pieces);
        let in_order = pieces.is_sorted_by_key(|piece| piece.offset_bytes);
        assert!(!in_order);
    }

    #[test]
    fn chunks_are_large_on_large_disks_and_many_on_small_ones() {
        assert_eq!(chunk_bytes(8_000_000_000_000), 64 * MIB);
        assert_eq!(chunk_bytes(32_000_000_000), 32 * MIB);
        assert_eq!(chunk_bytes(256 * MIB), MIB);
        assert_eq!(chunk_bytes(4096), MIB);
    }

    /// A test that was stopped by an earlier build goes on in these orders.
    #[test]
    fn orders_are_those_of_saved_tests() {
        assert_eq!(shuffled(10, 7, Pass::Write), [6, 0, 5, 3, 8, 4, 7, 2, 9, 1]);
        assert_eq!(shuffled(10, 7, Pass::Read), [3, 4, 9, 5, 1, 2, 7, 0, 8, 6]);
    }

    #[test]
    fn orders_of_writing_and_reading_differ() {
        let write = shuffled(100, 3, Pass::Write);
        assert_ne!(write, shuffled(100, 3, Pass::Read));
        assert_eq!(write.iter().copied().collect::<BTreeSet<u64>>().len(), 100);
        assert!(salted(1, 2, 10) < 10);
    }
}
