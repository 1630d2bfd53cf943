//! A device that claims more than it holds: where the bytes beyond its real size go.

use std::ops::Range;

/// What a counterfeit does beyond its real size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// Bytes land lower, by multiples of the real size.
    Wraps,
    /// Writes are lost, and reads return zeros.
    Drops,
}

/// A device that claims more than it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counterfeit {
    /// Bytes that it really holds.
    pub real_bytes: u64,
    /// What happens beyond them.
    pub beyond: Beyond,
}

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its bytes in the buffer of the request.
    pub buffer: Range<usize>,
    /// Where they are on the medium; `None` where they are lost.
    pub offset_bytes: Option<u64>,
}

impl Counterfeit {
    /// The parts of a request, in order.
    pub fn parts(self, offset_bytes: u64, length: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut done = 0;
        while done < length {
            let at = offset_bytes + done as u64;
            let left = (length - done) as u64;
            let (offset_bytes, part_bytes) = match self.beyond {
                Beyond::Drops if at >= self.real_bytes => (None, left),
                Beyond::Drops => (Some(at), left.min(self.real_bytes - at)),
                Beyond::Wraps => {
                    let place = at % self.real_bytes;
                    (Some(place), left.min(self.real_bytes - place))
                }
            };
            parts.push(Part {
                buffer: done..done + part_bytes as usize,
                offset_bytes,
            });
            done += part_bytes as usize;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(beyond: Beyond, offset_bytes: u64, length: usize) -> Vec<(usize, Option<u64>)> {
        let counterfeit = Counterfeit {
            real_bytes: 100,
            beyond,
        };
        counterfeit
            .parts(offset_bytes, length)
            .into_iter()
            .map(|part| (part.buffer.len(), part.offset_bytes))
            .collect()
    }

    #[test]
    fn counterfeit_splits_request_at_its_real_size() {
        assert_eq!(parts(Beyond::Drops, 10, 20), [(20, Some(10))]);
        assert_eq!(parts(Beyond::Drops, 90, 20), [(10, Some(90)), (10, None)]);
        assert_eq!(parts(Beyond::Drops, 150, 20), [(20, None)]);
        assert_eq!(
            parts(Beyond::Wraps, 90, 20),
            [(10, Some(90)), (10, Some(0))]
        );
        assert_eq!(parts(Beyond::Wraps, 350, 20), [(20, Some(50))]);
    }
}
