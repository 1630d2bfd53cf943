//! Finds the bucket that a latency falls into, and the latencies that a bucket holds.

/// Sub-buckets of the first, linear bucket: 2 × 10³ rounded up to a power of two gives 3
/// significant digits.
const SUB_BUCKETS: usize = 2048;
/// A latency below 2 to the power of this has a bucket of its own.
const SUB_BUCKET_BITS: u32 = SUB_BUCKETS.trailing_zeros();
/// Buckets of each octave: the lower half of the sub-buckets would repeat the octave below.
const HALF: usize = SUB_BUCKETS / 2;
/// Octaves above the linear bucket; 2^(11+31) ns is 73 minutes, longer than any I/O that a user
/// waits for.
const OCTAVES: usize = 31;
/// Number of buckets.
pub(super) const LEN: usize = SUB_BUCKETS + OCTAVES * HALF;
/// Largest value with a bucket; larger ones count in it, and `max_ns` still holds them exactly.
pub(super) const VALUE_MAX: u64 = (1 << (SUB_BUCKET_BITS + OCTAVES as u32)) - 1;
/// Most latencies in one distribution that is read back, so that sums over many fit into 64 bits.
pub(super) const COUNT_MAX: u64 = 1 << 50;

/// The index of the bucket that counts a latency, which is at most [`VALUE_MAX`].
#[inline(always)]
pub(super) fn index_of(ns: u64) -> usize {
    // Octave 0 is linear; octave k ≥ 1 holds values of 11+k bits in HALF buckets of 2^k.
    let bits = 64 - (ns | (HALF as u64)).leading_zeros();
    let octave = bits.saturating_sub(SUB_BUCKET_BITS);
    ((octave as usize) << (SUB_BUCKET_BITS - 1)) + (ns >> octave) as usize
}

/// The values that a bucket counts: so many from the lowest on.
pub(super) struct BucketValues {
    pub(super) low_ns: u64,
    pub(super) width_ns: u64,
}

impl BucketValues {
    /// The longest of them.
    pub(super) fn high_ns(&self) -> u64 {
        self.low_ns + self.width_ns - 1
    }
}

/// The values of the bucket at `index`.
pub(super) fn bucket_values(index: usize) -> BucketValues {
    if index < SUB_BUCKETS {
        return BucketValues {
            low_ns: index as u64,
            width_ns: 1,
        };
    }
    let octave = (index - HALF) / HALF;
    let sub = index - octave * HALF;
    BucketValues {
        low_ns: (sub as u64) << octave,
        width_ns: 1 << octave,
    }
}
