//! Decides which requests of a device are seeks. A traced request is sequential where it continues
//! one of the latest streams of its device, forwards or backwards. Without tracing, sizes and
//! merges give an estimate.

use diskproof_model::watch::{DirectionStep, IssuedRequest};
use std::collections::VecDeque;
use std::ops::Range;

/// Where a request lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// It continues another one.
    Sequential,
    /// It lies elsewhere.
    Random,
}

/// The numbers of requests by where they lie.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TracedCounts {
    pub(super) random: u64,
    pub(super) sequential: u64,
}

impl TracedCounts {
    pub(super) fn total(self) -> u64 {
        self.random + self.sequential
    }

    /// The share of the random ones; 0 without requests.
    pub(super) fn random_share(self) -> f64 {
        self.random as f64 / self.total().max(1) as f64
    }

    pub(super) fn add(&mut self, placement: Placement) {
        match placement {
            Placement::Random => self.random += 1,
            Placement::Sequential => self.sequential += 1,
        }
    }
}

/// Streams of one device that are followed at a time. A random request starts a stream, too, so
/// that this many random requests in a row end a sequential one. Chosen, not measured.
const STREAMS_MAX: usize = 128;

/// The streams of one device.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestStreams {
    /// The latest request of each stream; the latest stream first.
    latest: VecDeque<Range<u64>>,
}

impl RequestStreams {
    /// Where this request lies; `None` for the first one, which has no predecessor. It becomes the
    /// latest of its stream, or begins one.
    pub(super) fn place(&mut self, request: &IssuedRequest) -> Option<Placement> {
        let start = request.sector;
        let end = start.saturating_add(u64::from(request.sectors));
        let is_first = self.latest.is_empty();
        // Two requests of a stream may be sent in reverse order.
        let own_stream = self
            .latest
            .iter()
            .position(|latest| latest.end == start || latest.start == end);
        match own_stream {
            Some(index) => {
                self.latest.remove(index);
            }
            None => self.latest.truncate(STREAMS_MAX - 1),
        }
        self.latest.push_front(start..end);
        match own_stream {
            Some(_) => Some(Placement::Sequential),
            None if is_first => None,
            None => Some(Placement::Random),
        }
    }

    /// Forgets all streams, because requests are missing.
    pub(super) fn forget(&mut self) {
        self.latest.clear();
    }
}

/// Requests up to this size are taken for seeks: pages of databases and filesystems.
const RANDOM_BYTES: f64 = 16384.0;
/// Requests from this size on are taken for sequential: read-ahead (128 KiB) merges into them.
const SEQUENTIAL_BYTES: f64 = 262_144.0;

/// The estimated share of seeks among the requests of one direction; zero without requests.
pub(super) fn estimated_share(step: &DirectionStep) -> f64 {
    if step.ops == 0 {
        return 0.0;
    }
    let bytes = (step.bytes as f64 / step.ops as f64).max(1.0);
    let by_size = (SEQUENTIAL_BYTES / bytes).log2() / (SEQUENTIAL_BYTES / RANDOM_BYTES).log2();
    // A merge joins neighbours, so what was merged was sequential.
    let alone = step.ops as f64 / (step.ops.saturating_add(step.merges)) as f64;
    by_size.clamp(0.0, 1.0) * alone
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::watch::RequestDirection;

    fn request(sector: u64) -> IssuedRequest {
        IssuedRequest {
            device: (7, 0),
            direction: RequestDirection::Read,
            sector,
            sectors: 8,
            pid: 1,
            name: "x".to_owned(),
        }
    }

    fn random_among(sectors: &[u64]) -> usize {
        let mut streams = RequestStreams::default();
        let placed = sectors
            .iter()
            .filter_map(|sector| streams.place(&request(*sector)));
        placed.filter(|placed| *placed == Placement::Random).count()
    }

    #[test]
    fn several_streams_at_a_time_are_sequential() {
        let streams = |count: u64, length: u64| -> Vec<u64> {
            let step = |at: u64| (0..count).map(move |stream| stream * 1_000_000 + at * 8);
            (0..length).flat_map(step).collect()
        };
        // Each stream but the first begins with a seek.
        assert_eq!(random_among(&streams(1, 100)), 0);
        assert_eq!(random_among(&streams(16, 100)), 15);
        let scattered: Vec<u64> = (0..100).map(|at| at * 7919 * 16).collect();
        assert_eq!(random_among(&scattered), 99);
    }

    #[test]
    fn stream_sent_in_reverse_pairs_or_backward_is_sequential() {
        let backward: Vec<u64> = (0..50).rev().map(|at| at * 8).collect();
        assert_eq!(random_among(&backward), 0);
        let swapped: Vec<u64> = (0..20).flat_map(|at| [at * 16 + 8, at * 16]).collect();
        assert!(random_among(&swapped) <= 20, "{}", random_among(&swapped));
    }

    #[test]
    fn streams_begin_anew_after_a_loss() {
        let mut streams = RequestStreams::default();
        streams.place(&request(0));
        streams.forget();
        assert_eq!(streams.place(&request(8)), None);
    }

    #[test]
    fn estimate_follows_sizes_and_merges() {
        let share = |ops: u64, bytes: u64, merges: u64| {
            estimated_share(&DirectionStep {
                ops,
                bytes: ops * bytes,
                merges,
                ..DirectionStep::default()
            })
        };
        assert_eq!(share(0, 0, 0), 0.0);
        assert_eq!(share(10, 8192, 0), 1.0);
        assert_eq!(share(10, 1 << 20, 0), 0.0);
        assert!((share(10, 65536, 0) - 0.5).abs() < 1e-9);
        assert!((share(10, 8192, 30) - 0.25).abs() < 1e-9);
    }
}
