//! Parts of one layer and where they lie on another; pure.

/// Spans begin and end at multiples of this: PostgreSQL's page, and a multiple of every sector.
pub(super) const UNIT_BYTES: u64 = 8192;

/// How the blocks of a layer lie on the next one.
pub(super) enum BlockMap {
    /// In these segments.
    Segments(Vec<Segment>),
    /// In these, with other content: the layer encrypts.
    Encrypted(Vec<Segment>),
    /// Nothing says where: why, in a clause.
    Unknown(String),
}

/// A part that lies in one piece on both layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Start on the upper layer.
    pub from: u64,
    /// Start on the lower layer.
    pub to: u64,
    /// Length in bytes.
    pub length: u64,
}

impl Segment {
    /// End on the upper layer.
    pub(super) fn end(&self) -> u64 {
        self.from.saturating_add(self.length)
    }
}

/// Where parts lie two layers below: `above` leads to the layer that `below` starts from.
pub(super) fn compose(above: &[Segment], below: &[Segment]) -> Vec<Segment> {
    let mut found = Vec::new();
    for one in above {
        for next in below {
            let low = one.to.max(next.from);
            let high = one.to.saturating_add(one.length).min(next.end());
            if low < high {
                found.push(Segment {
                    from: one.from + (low - one.to),
                    to: next.to.saturating_add(low - next.from),
                    length: high - low,
                });
            }
        }
    }
    joined(found)
}

/// Neighbours on both layers become one part.
fn joined(mut segments: Vec<Segment>) -> Vec<Segment> {
    segments.sort_unstable_by_key(|segment| segment.from);
    let mut joined: Vec<Segment> = Vec::new();
    for next in segments {
        match joined.last_mut() {
            Some(last) if last.end() == next.from && last.to + last.length == next.to => {
                last.length += next.length;
            }
            _ => joined.push(next),
        }
    }
    joined
}

/// The longest part, cut to whole units of the upper layer.
pub(super) fn longest(segments: &[Segment]) -> Option<Segment> {
    let cut = segments.iter().map(|one| {
        let from = one.from.next_multiple_of(UNIT_BYTES);
        let skipped = from - one.from;
        Segment {
            from,
            to: one.to + skipped,
            length: one.length.saturating_sub(skipped) / UNIT_BYTES * UNIT_BYTES,
        }
    });
    cut.filter(|one| one.length > 0)
        .max_by_key(|one| one.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn segment(from: u64, to: u64, length: u64) -> Segment {
        Segment { from, to, length }
    }

    #[test]
    fn segments_of_two_layers_become_those_of_both() {
        let file = [
            segment(0, 10 * MIB, 4 * MIB),
            segment(4 * MIB, 30 * MIB, MIB),
        ];
        let partition = [segment(0, MIB, 100 * MIB)];
        let on_disk = compose(&file, &partition);
        let expected = [
            segment(0, 11 * MIB, 4 * MIB),
            segment(4 * MIB, 31 * MIB, MIB),
        ];
        assert_eq!(on_disk, expected);
        // A volume in two pieces cuts the file's first extent; the hole between is skipped.
        let volume = [segment(0, 0, 12 * MIB), segment(13 * MIB, 50 * MIB, MIB)];
        let expected = [
            segment(0, 10 * MIB, 2 * MIB),
            segment(3 * MIB, 50 * MIB, MIB),
        ];
        assert_eq!(compose(&file, &volume), expected);
    }

    #[test]
    fn segments_that_adjoin_on_both_layers_are_joined() {
        let extents = [
            segment(MIB, 11 * MIB, MIB),
            segment(0, 10 * MIB, MIB),
            segment(2 * MIB, 20 * MIB, MIB),
        ];
        let all = [segment(0, 0, 100 * MIB)];
        let expected = [
            segment(0, 10 * MIB, 2 * MIB),
            segment(2 * MIB, 20 * MIB, MIB),
        ];
        assert_eq!(compose(&extents, &all), expected);
    }

    #[test]
    fn longest_segment_has_whole_units() {
        let odd = [segment(4096, 512, 3 * 8192), segment(65_536, 0, 8192)];
        assert_eq!(longest(&odd), Some(segment(8192, 4608, 2 * 8192)));
        assert_eq!(longest(&[segment(1, 1, 8192)]), None);
    }
}
