//! Counts latencies in nanoseconds by length, with 3 significant digits: in HdrHistogram's own
//! log-linear layout, but in a plain array that the hot loop can bump. The array has the bucket
//! boundaries of `HdrHistogram(1, MAX, 3)`, so export to its V2 format loses nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::collections::BTreeSet;

mod buckets;
mod part;
mod text;
mod wire;

use buckets::{LEN, VALUE_MAX, bucket_values, index_of};

pub use part::{LatencyPart, StoredLatencies};

/// Buckets of a page of memory.
const PAGE_BUCKETS: usize = 512;

/// A bucket of a distribution that holds at least one latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledBucket {
    /// The lowest latency that it counts, in nanoseconds.
    pub low_ns: u64,
    /// Nanoseconds from its lowest latency to that of the next bucket.
    pub width_ns: u64,
    /// The number of latencies in it.
    pub count: u64,
}

/// The filled buckets of a distribution, ascending. A type with a name is compiled in this crate,
/// which is optimised in builds for tests, too.
pub struct FilledBuckets<'a> {
    counts: &'a [u64],
    next_index: usize,
}

impl Iterator for FilledBuckets<'_> {
    type Item = FilledBucket;

    fn next(&mut self) -> Option<FilledBucket> {
        let remaining = &self.counts[self.next_index..];
        let index = self.next_index + remaining.iter().position(|count| *count > 0)?;
        self.next_index = index + 1;
        let values = bucket_values(index);
        Some(FilledBucket {
            low_ns: values.low_ns,
            width_ns: values.width_ns,
            count: self.counts[index],
        })
    }
}

/// A latency distribution. Merging is exact; percentiles are within 0.1 %.
pub struct LatencyHistogram {
    counts: Box<[u64]>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// Touches only the pages where the original has latencies: 66 in all, most of them empty.
impl Clone for LatencyHistogram {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.merge(self);
        copy
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "LatencyHistogram {{ count: {}, min: {}, max: {} }}",
            self.count, self.min_ns, self.max_ns
        )
    }
}

impl Eq for LatencyHistogram {}

impl PartialEq for LatencyHistogram {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
            && self.sum_ns == other.sum_ns
            && self.max_ns == other.max_ns
            && self.counts == other.counts
    }
}

impl LatencyHistogram {
    /// An empty histogram. Its pages are touched only where latencies fall.
    pub fn new() -> Self {
        Self {
            counts: vec![0; LEN].into_boxed_slice(),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one latency. Never allocates, never fails.
    #[inline(always)]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts a latency that several operations had.
    #[inline(always)]
    pub fn record_many(&mut self, ns: u64, times: u64) {
        let index = index_of(ns.min(VALUE_MAX));
        self.counts[index] += times;
        self.count += times;
        self.sum_ns += u128::from(ns) * u128::from(times);
        self.max_ns = self.max_ns.max(ns);
        self.min_ns = self.min_ns.min(ns);
    }

    /// The hot loop's half of [`Self::record`]: counts a latency `times` in its bucket. The caller
    /// keeps the totals and adds them by [`Self::add_totals`] before the histogram is read.
    #[inline(always)]
    pub fn bump(&mut self, ns: u64, times: u64) {
        self.counts[index_of(ns.min(VALUE_MAX))] += times;
    }

    /// The other half of [`Self::record`]: the totals of everything that was [bumped](Self::bump).
    #[inline]
    pub fn add_totals(&mut self, count: u64, sum_ns: u64, min_ns: u64, max_ns: u64) {
        self.count += count;
        self.sum_ns += u128::from(sum_ns);
        self.max_ns = self.max_ns.max(max_ns);
        self.min_ns = self.min_ns.min(min_ns);
    }

    /// Empties it, as a new one.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Becomes equal to `other`, of which it is an earlier state: only the buckets between the
    /// shortest and the longest latency are copied.
    #[inline]
    pub fn catch_up_with(&mut self, other: &Self) {
        if other.count > 0 {
            let filled =
                index_of(other.min_ns.min(VALUE_MAX))..=index_of(other.max_ns.min(VALUE_MAX));
            self.counts[filled.clone()].copy_from_slice(&other.counts[filled]);
        }
        (self.count, self.sum_ns, self.min_ns, self.max_ns) =
            (other.count, other.sum_ns, other.min_ns, other.max_ns);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        let pages = self.counts.chunks_mut(PAGE_BUCKETS);
        for (mine, theirs) in pages.zip(other.counts.chunks(PAGE_BUCKETS)) {
            if theirs.iter().any(|count| *count > 0) {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine += theirs;
                }
            }
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
    }

    /// The latencies that `now` has beyond this earlier state of it, which becomes equal to it. The
    /// ends of the part's range are known to their bucket only.
    pub fn take_since(&mut self, now: &Self) -> LatencyPart {
        let mut part = LatencyPart::default();
        if now.count == 0 {
            return part;
        }
        let filled = index_of(now.min_ns.min(VALUE_MAX))..=index_of(now.max_ns.min(VALUE_MAX));
        let first = *filled.start();
        let (mine, theirs) = (&mut self.counts[filled.clone()], &now.counts[filled]);
        for (index, (before, count)) in mine.iter_mut().zip(theirs).enumerate() {
            if before != count {
                part.buckets.push(((first + index) as u32, count - *before));
                *before = *count;
            }
        }
        part.count = now.count - self.count;
        part.sum_ns = now.sum_ns - self.sum_ns;
        if let (Some((low, _)), Some((high, _))) = (part.buckets.first(), part.buckets.last()) {
            let highest = bucket_values(*high as usize);
            part.min_ns = bucket_values(*low as usize).low_ns.max(now.min_ns);
            // Larger values than any bucket holds count in the last one.
            let is_last = *high as usize == index_of(VALUE_MAX);
            let end_ns = if is_last { u64::MAX } else { highest.high_ns() };
            part.max_ns = end_ns.min(now.max_ns);
        }
        (self.count, self.sum_ns, self.min_ns, self.max_ns) =
            (now.count, now.sum_ns, now.min_ns, now.max_ns);
        part
    }

    /// Adds the latencies of a part.
    pub fn add_part(&mut self, part: &LatencyPart) {
        for (index, count) in &part.buckets {
            self.counts[*index as usize] += count;
        }
        self.count += part.count;
        self.sum_ns += part.sum_ns;
        self.max_ns = self.max_ns.max(part.max_ns);
        self.min_ns = self.min_ns.min(part.min_ns);
    }

    /// The filled buckets alone.
    pub fn to_part(&self) -> LatencyPart {
        let filled = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        LatencyPart {
            buckets: filled.map(|(index, n)| (index as u32, *n)).collect(),
            count: self.count,
            sum_ns: self.sum_ns,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
        }
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all latencies in nanoseconds, exact.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Mean in nanoseconds, exact; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count as f64
        }
    }

    /// Standard deviation of the sample around this mean, in nanoseconds, from the middles of the
    /// buckets; 0 with fewer than two.
    pub fn deviation_ns(&self, mean_ns: f64) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let mut squares = 0.0;
        for bucket in self.buckets() {
            let middle_ns = bucket.low_ns as f64 + (bucket.width_ns - 1) as f64 / 2.0;
            squares += bucket.count as f64 * (middle_ns - mean_ns).powi(2);
        }
        (squares / (self.count - 1) as f64).sqrt()
    }

    /// Shortest latency in nanoseconds, exact; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Longest latency in nanoseconds, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The smallest recorded value (to 3 digits, upper end of its bucket) that at least `quantile`
    /// (0 to 1) of the latencies do not exceed.
    pub fn value_at(&self, quantile: f64) -> u64 {
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return bucket_values(index).high_ns().min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The value at `quantile`, or `None` when fewer than ten latencies lie beyond it: then it
    /// would be a guess.
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        if self.count < Self::count_for(quantile) {
            return None;
        }
        Some(self.value_at(quantile))
    }

    /// The least number of latencies of which ten lie beyond `quantile`.
    pub fn count_for(quantile: f64) -> u64 {
        // In doubles 10 / (1 − 0.9999) is a little more than 100,000, and would be rounded up.
        (10.0 / (1.0 - quantile) - 1e-6).ceil() as u64
    }

    /// The filled buckets, ascending.
    pub fn buckets(&self) -> FilledBuckets<'_> {
        FilledBuckets {
            counts: &self.counts,
            next_index: 0,
        }
    }

    /// HdrHistogram V2 (deflated) in base64, as its readers in other languages take it.
    pub fn to_hdr_base64(&self) -> String {
        let mut hdr = Histogram::<u64>::new_with_bounds(1, VALUE_MAX, 3)
            .expect("bounds are constant and valid");
        for bucket in self.buckets() {
            hdr.saturating_record_n(bucket.low_ns, bucket.count);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&hdr, &mut bytes)
            .expect("writing to memory cannot fail");
        BASE64.encode(bytes)
    }

    /// Reads back what [`Self::to_hdr_base64`] (or another HdrHistogram writer) made. Counts are
    /// exact; sum, min and max are those of the buckets.
    pub fn from_hdr_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = BASE64
            .decode(text)
            .map_err(|e| HistogramError(e.to_string()))?;
        let mut histogram = Self::new();
        wire::read(&bytes, |ns, n| histogram.record_many(ns, n))
            .map_err(|why| HistogramError(why.to_owned()))?;
        Ok(histogram)
    }

    /// The pages of memory that the decoded distribution touches; 0 where it cannot be decoded.
    pub fn pages_of_hdr(text: &str) -> usize {
        let mut pages = BTreeSet::new();
        if let Ok(bytes) = BASE64.decode(text) {
            // What cannot be read is refused where it is decoded.
            let _ = wire::read(&bytes, |ns, _| {
                pages.insert(index_of(ns.min(VALUE_MAX)) / PAGE_BUCKETS);
            });
        }
        pages.len()
    }
}

/// A histogram that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this histogram cannot be decoded: {0}. Copy the hdr string of the record unchanged")]
pub struct HistogramError(String);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        values.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    #[test]
    fn bumps_and_their_totals_equal_records() {
        let (mut recorded, mut bumped) = (LatencyHistogram::new(), LatencyHistogram::new());
        for ns in [5, 70_000, 1 << 50] {
            recorded.record(ns);
            bumped.bump(ns, 1);
        }
        bumped.add_totals(3, 5 + 70_000 + (1 << 50), 5, 1 << 50);
        assert_eq!(recorded, bumped);
    }

    #[test]
    fn percentiles_need_ten_samples_beyond() {
        let mut histogram = LatencyHistogram::new();
        (0..9_999).for_each(|_| histogram.record(5));
        assert_eq!(histogram.percentile(0.999), None);
        histogram.record(5);
        assert_eq!(histogram.percentile(0.999), Some(5));
    }

    #[test]
    fn the_deviation_is_that_of_the_sample() {
        let histogram = filled(&[2, 4, 4, 4, 5, 5, 7, 9]);
        let deviation = histogram.deviation_ns(histogram.mean_ns());
        assert!((deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-9);
        let one = filled(&[1_000_000]);
        assert_eq!(one.deviation_ns(one.mean_ns()), 0.0);
        assert_eq!(LatencyHistogram::new().deviation_ns(0.0), 0.0);
    }

    proptest! {
        #[test]
        fn buckets_hold_their_values_within_a_thousandth(ns in 0..VALUE_MAX) {
            let values = bucket_values(index_of(ns));
            let (low, width) = (values.low_ns, values.width_ns);
            prop_assert!(low <= ns && ns < low + width);
            prop_assert!(width == 1 || width as f64 / low as f64 <= 0.001);
        }

        #[test]
        fn merging_conserves_counts_and_sums(
            a in prop::collection::vec(0u64..1 << 50, 0..50),
            b in prop::collection::vec(0u64..1 << 50, 0..50),
        ) {
            let (one, two) = (filled(&a), filled(&b));
            let mut ab = one.clone();
            ab.merge(&two);
            let mut ba = two.clone();
            ba.merge(&one);
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &filled(&all));
        }

        #[test]
        fn hdr_round_trip_keeps_every_count(
            values in prop::collection::vec(0u64..1 << 40, 1..100),
        ) {
            let histogram = filled(&values);
            let back = LatencyHistogram::from_hdr_base64(&histogram.to_hdr_base64()).unwrap();
            prop_assert_eq!(back.counts, histogram.counts);
        }

        #[test]
        fn quantiles_match_the_sorted_samples(
            mut values in prop::collection::vec(1u64..1 << 40, 1..200),
            q in 0.0f64..1.0,
        ) {
            let histogram = filled(&values);
            values.sort_unstable();
            let exact = values[((q * values.len() as f64).ceil() as usize).max(1) - 1];
            let got = histogram.value_at(q);
            let most = exact as f64 * 1.001 + 1.0;
            prop_assert!(got >= exact && got as f64 <= most, "{} {}", got, exact);
        }
    }

    #[test]
    fn an_earlier_state_catches_up() {
        let (mut copy, mut now) = (LatencyHistogram::new(), LatencyHistogram::new());
        copy.catch_up_with(&now);
        for batch in [[700, 900, 50_000], [60, 700, 1 << 60], [0, 4096, 4095]] {
            batch.iter().for_each(|ns| now.record(*ns));
            copy.catch_up_with(&now);
            assert!(copy == now && copy.min_ns() == now.min_ns());
        }
    }

    /// Header of a plain histogram, and its payload.
    fn plain(claimed_bytes: u32, digits: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [0x1c84_9313, claimed_bytes, 0, digits] {
            bytes.extend(u32::to_be_bytes(number));
        }
        for number in [1, u64::MAX >> 1, 1.0f64.to_bits()] {
            bytes.extend(u64::to_be_bytes(number));
        }
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn hostile_histograms_are_refused_at_once() {
        let zeros = {
            use flate2::{Compression, write::ZlibEncoder};
            use std::io::Write as _;
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            let whole = plain(1 << 22, 3, &vec![0; 1 << 22]);
            encoder.write_all(&whole).unwrap();
            let deflated = encoder.finish().unwrap();
            [&0x1c84_9314u32.to_be_bytes()[..], &[0; 4], &deflated].concat()
        };
        let behind = [&[0xff; 8][..], &[0x7f, 2]].concat();
        let cases = [
            (Vec::new(), "truncated"),
            (vec![7; 40], "start"),
            (plain(u32::MAX, 3, &[]), "longer"),
            (plain(0, 9, &[]), "precision"),
            (plain(3, 3, &[2, 0x80, 0x80]), "truncated"),
            // A count of 2^62, and then one behind 2^62 empty buckets.
            (plain(9, 3, &[0x80; 9]), "operations"),
            (plain(10, 3, &behind), "2^63"),
            (zeros, "1 MiB"),
        ];
        for (bytes, part) in cases {
            let told = LatencyHistogram::from_hdr_base64(&BASE64.encode(bytes)).unwrap_err();
            assert!(told.to_string().contains(part), "{told}");
        }
    }

    #[test]
    fn histograms_of_other_writers_are_read_as_their_own_crate_reads_them() {
        use hdrhistogram::serialization::V2Serializer;
        for (lowest, digits) in [(1, 1), (1, 3), (1000, 2), (64, 5)] {
            let mut theirs = Histogram::<u64>::new_with_bounds(lowest, 1 << 45, digits).unwrap();
            let values = (0..45).map(|power| (1u64 << power) + 12_345);
            values.for_each(|value| theirs.record(value).unwrap());
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&theirs, &mut bytes).unwrap();
            let mut seen = Vec::new();
            wire::read(&bytes, |ns, n| seen.push((ns, n))).unwrap();
            let expected: Vec<(u64, u64)> = theirs
                .iter_recorded()
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect();
            assert_eq!(seen, expected, "{lowest} {digits}");
        }
    }

    proptest! {
        /// However a distribution is cut into parts, and in whatever groups they are merged, the
        /// parts add up to it.
        #[test]
        fn parts_add_up_to_the_whole(
            batches in prop::collection::vec(prop::collection::vec(0u64..1 << 50, 0..30), 1..8),
            grouped in 1usize..4,
        ) {
            let (mut now, mut seen) = (LatencyHistogram::new(), LatencyHistogram::new());
            let mut parts = Vec::new();
            for batch in &batches {
                batch.iter().for_each(|ns| now.record(*ns));
                let part = seen.take_since(&now);
                prop_assert_eq!(part.count(), batch.len() as u64);
                prop_assert_eq!(part.sum_ns(), batch.iter().map(|ns| u128::from(*ns)).sum());
                let range = (batch.iter().min(), batch.iter().max());
                if let (Some(min_ns), Some(max_ns)) = range {
                    prop_assert!(part.min_ns <= *min_ns && part.max_ns >= *max_ns);
                    parts.push(part.with_range(*min_ns, *max_ns));
                } else {
                    parts.push(part);
                }
            }
            prop_assert!(seen == now);
            let mut sum = LatencyHistogram::new();
            for group in parts.chunks(grouped) {
                let mut merged = LatencyPart::default();
                group.iter().for_each(|part| merged.merge(part));
                sum.add_part(&merged);
            }
            prop_assert!(sum == now && sum.min_ns() == now.min_ns());
        }
    }

    #[test]
    fn part_records_single_latencies() {
        let (mut part, mut whole) = (LatencyPart::default(), LatencyHistogram::new());
        part.record_many(70_000, 1);
        part.record_many(3, 1);
        whole.add_part(&part);
        assert_eq!(whole.count(), 2);
        assert_eq!(whole.min_ns(), 3);
        assert_eq!(whole.max_ns(), 70_000);
    }

    #[test]
    fn part_records_what_the_whole_does() {
        let (mut part, mut whole) = (LatencyPart::default(), LatencyHistogram::new());
        for ns in [70_000, 3, 1 << 40, 70_000, 500, 3, 1 << 40] {
            part.record_many(ns, 1 + ns % 5);
            whole.record_many(ns, 1 + ns % 5);
        }
        assert_eq!(part, whole.to_part());
    }
}
