//! An uneven surface: the time per byte differs from one cell of the disk to the next, always in
//! the same way.

use std::ops::Range;

/// The numbers of an uneven surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ragged {
    /// Width of a cell.
    pub cell_bytes: u64,
    /// The most that a cell adds to each byte, in picoseconds; each cell has its own share of it,
    /// from none to all.
    pub extra_ps_per_byte: u64,
}

impl Ragged {
    /// Nanoseconds that a request over `span` loses.
    pub fn extra_ns(&self, span: &Range<u64>) -> u64 {
        let mut extra_ps = 0u128;
        let mut start = span.start;
        while start < span.end {
            let cell = start / self.cell_bytes.max(1);
            let end = ((cell + 1) * self.cell_bytes.max(1)).min(span.end);
            let cell_ps_max = u128::from(end - start) * u128::from(self.extra_ps_per_byte);
            extra_ps += cell_ps_max * u128::from(share(cell)) / 1000;
            start = end;
        }
        (extra_ps / 1000) as u64
    }
}

/// The cell's share, 0 to 1000, scattered but fixed: a multiplicative hash by the golden ratio
/// (Knuth, The Art of Computer Programming 3, 6.4).
fn share(cell: u64) -> u64 {
    (cell.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 1001
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAGGED: Ragged = Ragged {
        cell_bytes: 1 << 20,
        extra_ps_per_byte: 1000,
    };

    #[test]
    fn ragged_cells_differ_and_stay_constant() {
        let cells: Vec<u64> = (0..200)
            .map(|c| RAGGED.extra_ns(&(c << 20..(c + 1) << 20)))
            .collect();
        let mean = cells.iter().sum::<u64>() / 200;
        assert!(
            mean.abs_diff(1 << 19) < 1 << 16,
            "half of the most, on average: {mean}"
        );
        assert!(cells.iter().any(|c| *c > mean * 3 / 2) && cells.iter().any(|c| *c < mean / 2));
        assert_eq!(
            RAGGED
                .extra_ns(&(0..200 << 20))
                .abs_diff(cells.iter().sum())
                / 200,
            0
        );
    }
}
