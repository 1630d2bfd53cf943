//! A fast write cache with an end: the first bytes written are fast, all later ones slow (an SSD's
//! SLC share). It never recovers: a test that wants it fresh starts a new disk.

use super::timing::transfer_ns;

/// The numbers of a cliff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cliff {
    /// Bytes written before it.
    pub after_bytes: u64,
    /// Bytes per second behind it.
    pub bytes_per_s: u64,
}

/// Counts what was written, to find the edge.
#[derive(Debug, Clone)]
pub struct CliffEdge {
    cliff: Cliff,
    left_bytes: u64,
}

impl CliffEdge {
    /// Nothing is written yet.
    pub fn new(cliff: Cliff) -> Self {
        Self {
            cliff,
            left_bytes: cliff.after_bytes,
        }
    }

    /// The time that a write of `bytes` takes, when the rate before the cliff is `fast_bytes_per_s`
    /// (`None`: no time at all).
    pub fn write_ns(&mut self, bytes: u64, fast_bytes_per_s: Option<u64>) -> u64 {
        let fast = bytes.min(self.left_bytes);
        self.left_bytes -= fast;
        fast_bytes_per_s.map_or(0, |rate| transfer_ns(fast, rate))
            + transfer_ns(bytes - fast, self.cliff.bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cliff_starts_at_set_volume_within_a_write() {
        let mut edge = CliffEdge::new(Cliff {
            after_bytes: 1_500_000,
            bytes_per_s: 100_000_000,
        });
        let fast = Some(1_000_000_000);
        assert_eq!(edge.write_ns(1_000_000, fast), 1_000_000);
        assert_eq!(edge.write_ns(1_000_000, fast), 500_000 + 5_000_000);
        assert_eq!(edge.write_ns(1_000_000, fast), 10_000_000);
        assert_eq!(edge.write_ns(1_000_000, None), 10_000_000);
    }
}
