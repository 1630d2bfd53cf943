//! Detects blocks of a scan that take longer than their neighbours. Knows no disk.

use std::collections::VecDeque;

/// Number of neighbours, with the block in question in the middle: at 1 MiB each far less than a
/// zone of a rotating disk, and enough for a median that a few slow ones cannot move.
const WINDOW: usize = 65;
/// A block is slow when it takes twice as long as its neighbours, and at least this much longer:
/// more than one turn at 7200 rpm, so that a sector read at the second try shows, and on an SSD
/// more than any regular retry.
const LONGER_NS_MIN: u64 = 10_000_000;

/// The latency from which on a block among neighbours of this median is slow.
pub(crate) fn slow_from_ns(median_ns: u64) -> u64 {
    median_ns + median_ns.max(LONGER_NS_MIN)
}

/// A block with its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlowCandidate {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// How long it took.
    pub latency_ns: u64,
    /// The latency from which on it is slow.
    pub limit_ns: u64,
}

/// The last blocks that were read.
#[derive(Debug, Default)]
pub(crate) struct SlowBlockDetector {
    recent: VecDeque<SlowCandidate>,
    /// How many of them, from the front, have been judged.
    judged: usize,
}

impl SlowBlockDetector {
    /// Adds the next block; returns those that prove to be slow.
    pub(crate) fn add(&mut self, block: SlowCandidate) -> Vec<SlowCandidate> {
        self.recent.push_back(block);
        if self.recent.len() < WINDOW {
            return Vec::new();
        }
        let slow = self.judge(WINDOW / 2 + 1);
        self.recent.pop_front();
        self.judged -= 1;
        slow
    }

    /// Judges what is left, once there are no more blocks.
    pub(crate) fn take_rest(&mut self) -> Vec<SlowCandidate> {
        let slow = self.judge(self.recent.len());
        *self = Self::default();
        slow
    }

    /// The first block that was not judged yet.
    pub(crate) fn first_waiting(&self) -> Option<u64> {
        self.recent.get(self.judged).map(|block| block.offset)
    }

    fn judge(&mut self, upto: usize) -> Vec<SlowCandidate> {
        let mut latencies: Vec<u64> = self.recent.iter().map(|block| block.latency_ns).collect();
        if latencies.is_empty() {
            return Vec::new();
        }
        let middle = latencies.len() / 2;
        let limit_ns = slow_from_ns(*latencies.select_nth_unstable(middle).1);
        let new = self.recent.range(self.judged..upto.max(self.judged));
        let slow = new
            .filter(|block| block.latency_ns >= limit_ns)
            .map(|block| SlowCandidate { limit_ns, ..*block })
            .collect();
        self.judged = upto.max(self.judged);
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(index: u64, latency_ns: u64) -> SlowCandidate {
        SlowCandidate {
            offset: index << 20,
            len: 1 << 20,
            latency_ns,
            limit_ns: u64::MAX,
        }
    }

    #[test]
    fn slow_block_detector_finds_each_slow_block_once() {
        let slow = [0u64, 1, 31, 32, 33, 64, 65, 500, 998, 999];
        let mut detector = SlowBlockDetector::default();
        let mut found = Vec::new();
        for index in 0..1000 {
            let latency_ns = if slow.contains(&index) {
                40_000_000
            } else {
                11_000_000 + index * 5_000
            };
            found.extend(detector.add(block(index, latency_ns)));
            assert!(
                detector
                    .first_waiting()
                    .is_none_or(|first| first >= (index.saturating_sub(64)) << 20)
            );
        }
        found.extend(detector.take_rest());
        assert_eq!(
            found
                .iter()
                .map(|candidate| candidate.offset >> 20)
                .collect::<Vec<_>>(),
            slow
        );
    }

    #[test]
    fn slow_block_detector_ignores_slower_zone() {
        let mut detector = SlowBlockDetector::default();
        let zones =
            (0..400).map(|index| block(index, if index < 200 { 11_000_000 } else { 20_500_000 }));
        let found: Vec<SlowCandidate> = zones.flat_map(|block| detector.add(block)).collect();
        assert_eq!((found, detector.take_rest()), (Vec::new(), Vec::new()));
    }
}
