//! Counts the latencies of a part of a distribution, such as those of one window of time: only its
//! filled buckets, because most are empty in a short time.

use super::buckets::{COUNT_MAX, LEN, VALUE_MAX, bucket_values, index_of};
use crate::packed::{Packed, Packer, Unpacker};

/// A latency distribution that holds its filled buckets only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyPart {
    /// The index of each filled bucket in the array of [`super::LatencyHistogram`], and its count;
    /// the indices ascend.
    pub(super) buckets: Vec<(u32, u64)>,
    pub(super) count: u64,
    pub(super) sum_ns: u128,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Default for LatencyPart {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl LatencyPart {
    /// True without any latency.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all latencies in nanoseconds, exact.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The longest latency in nanoseconds; 0 without any.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Number of latencies in buckets that lie wholly above `ns`.
    pub fn count_above(&self, ns: u64) -> u64 {
        let mut above = 0;
        for (index, count) in &self.buckets {
            if bucket_values(*index as usize).low_ns > ns {
                above += count;
            }
        }
        above
    }

    /// Replaces the ends of the range, known to their bucket only, by the exact ones.
    pub fn with_range(mut self, min_ns: u64, max_ns: u64) -> Self {
        if self.count > 0 {
            (self.min_ns, self.max_ns) = (min_ns, max_ns);
        }
        self
    }

    /// Adds a latency that several operations had.
    pub fn record_many(&mut self, ns: u64, times: u64) {
        let index = index_of(ns.min(VALUE_MAX)) as u32;
        match self.buckets.binary_search_by_key(&index, |bucket| bucket.0) {
            Ok(place) => self.buckets[place].1 += times,
            Err(place) => self.buckets.insert(place, (index, times)),
        }
        self.count += times;
        self.sum_ns += u128::from(ns) * u128::from(times);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut mine, mut theirs) = (
            self.buckets.iter().copied().peekable(),
            other.buckets.iter().copied().peekable(),
        );
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (None, None) => break,
                (Some(one), Some(two)) if one.0 == two.0 => {
                    let (index, count) = (one.0, one.1 + two.1);
                    mine.next();
                    theirs.next();
                    Some((index, count))
                }
                (Some(one), Some(two)) if one.0 < two.0 => mine.next(),
                (Some(_), None) => mine.next(),
                (_, Some(_)) => theirs.next(),
            };
            merged.extend(next);
        }
        self.buckets = merged;
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
    }
}

/// A latency distribution in about a fifth of the memory, for thousands that are kept at once and
/// read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLatencies(Box<[u8]>);

impl StoredLatencies {
    /// The stored form of a distribution, which loses nothing.
    pub fn new(part: &LatencyPart) -> Self {
        let mut packer = Packer::default();
        part.pack(&mut packer);
        Self(packer.bytes().into_boxed_slice())
    }

    /// The distribution, exactly.
    pub fn part(&self) -> LatencyPart {
        let mut numbers = Unpacker::from_bytes(&self.0);
        LatencyPart::unpack(&mut numbers).expect("what was packed can be unpacked")
    }
}

impl Packed for LatencyPart {
    /// The number of buckets, the sum, the shortest and the longest; then each bucket, as the
    /// distance from the one before and its count.
    fn pack(&self, packer: &mut Packer) {
        packer.push(self.buckets.len() as u64);
        packer.push(self.sum_ns);
        packer.push(self.min_ns);
        packer.push(self.max_ns);
        let mut before = 0;
        for (index, count) in &self.buckets {
            packer.push(index - before);
            packer.push(*count);
            before = *index;
        }
    }

    fn unpack(numbers: &mut Unpacker) -> Result<Self, &'static str> {
        let (filled, sum_ns) = (numbers.number()?, numbers.wide()?);
        let mut part = Self {
            buckets: Vec::new(),
            count: 0,
            sum_ns,
            min_ns: numbers.number()?,
            max_ns: numbers.number()?,
        };
        if filled > LEN as u64 || sum_ns > 1 << 100 {
            return Err("it has more buckets or time than a distribution");
        }
        let mut index = 0;
        for _ in 0..filled {
            index += numbers.amount()?;
            let count = numbers.amount()?;
            part.count = part.count.saturating_add(count);
            if index >= LEN as u64 || part.count > COUNT_MAX {
                return Err("a bucket in it does not exist, or counts too many");
            }
            part.buckets.push((index as u32, count));
        }
        Ok(part)
    }
}
