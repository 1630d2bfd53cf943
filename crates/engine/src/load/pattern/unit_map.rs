//! Remembers which units of an extent a lap has visited, with a bit for each.

/// Units in a word of the map.
const BITS: u64 = u64::BITS as u64;
/// 512 MiB of bits; a larger extent has no map.
pub(super) const UNITS_MAX: u64 = 1 << 32;

/// The units that a lap has visited.
#[derive(Debug, Clone)]
pub(super) struct UnitMap {
    units: u64,
    taken: Vec<u64>,
    /// Words of `taken` in which the bit of every unit is set.
    full: Vec<u64>,
    /// True if the rest of the last word can be taken, too. As in fio, none of it is ever found.
    has_open_end: bool,
}

impl UnitMap {
    /// A map of so many units, none of which is visited.
    pub(super) fn new(units: u64) -> Self {
        let words = units.div_ceil(BITS);
        let mut map = Self {
            units,
            taken: vec![0; words as usize],
            full: vec![0; words.div_ceil(BITS) as usize],
            has_open_end: false,
        };
        map.clear();
        map
    }

    /// A map in which a run of units may also take what lies behind the last one in its word.
    pub(super) fn with_open_end(units: u64) -> Self {
        let mut map = Self::new(units);
        map.has_open_end = true;
        map.clear();
        map
    }

    /// Forgets the visits. What lies behind the last unit counts as visited, unless the end is
    /// open.
    pub(super) fn clear(&mut self) {
        self.taken.fill(0);
        self.full.fill(0);
        if !self.has_open_end
            && let Some(last) = self.taken.len().checked_sub(1)
        {
            self.taken[last] = self.bits_of_no_unit(last as u64);
        }
        for word in self.taken.len() as u64..self.full.len() as u64 * BITS {
            self.full[(word / BITS) as usize] |= 1 << (word % BITS);
        }
    }

    /// The bits of a word that are those of no unit.
    fn bits_of_no_unit(&self, word: u64) -> u64 {
        match self.units.saturating_sub(word * BITS) {
            units @ 0..BITS => u64::MAX << units,
            BITS.. => 0,
        }
    }

    /// True if a unit was visited.
    pub(super) fn is_taken(&self, unit: u64) -> bool {
        match self.taken.get((unit / BITS) as usize) {
            Some(word) => word >> (unit % BITS) & 1 == 1,
            None => true,
        }
    }

    /// Marks a unit. Returns false where it was visited before, or is none of the map.
    pub(super) fn take(&mut self, unit: u64) -> bool {
        let word = unit / BITS;
        let bit = 1 << (unit % BITS);
        let unused_bits = self.bits_of_no_unit(word);
        let Some(taken) = self.taken.get_mut(word as usize) else {
            return false;
        };
        if *taken & bit != 0 {
            return false;
        }
        *taken |= bit;
        if *taken | unused_bits == u64::MAX {
            self.full[(word / BITS) as usize] |= 1 << (word % BITS);
        }
        true
    }

    /// The first unit from `unit` on that is not visited, or else from the first one on; `None`
    /// where all are. `unit` must be one of the map.
    pub(super) fn next_free(&self, unit: u64) -> Option<u64> {
        let word = unit / BITS;
        let rest = self.free_bits(word) & (u64::MAX << (unit % BITS));
        if rest != 0 {
            return Some(word * BITS + u64::from(rest.trailing_zeros()));
        }
        let free = free_word(&self.full, word + 1).or_else(|| free_word(&self.full, 0))?;
        let bits = self.free_bits(free);
        Some(free * BITS + u64::from(bits.trailing_zeros()))
    }

    /// The units in a word that are not visited.
    fn free_bits(&self, word: u64) -> u64 {
        !(self.taken[word as usize] | self.bits_of_no_unit(word))
    }
}

/// The first word from `word` on that is not full.
fn free_word(full: &[u64], word: u64) -> Option<u64> {
    let first = (word / BITS) as usize;
    let mut mask = u64::MAX << (word % BITS);
    for (index, bits) in full.iter().enumerate().skip(first) {
        let rest = !bits & mask;
        if rest != 0 {
            return Some(index as u64 * BITS + u64::from(rest.trailing_zeros()));
        }
        mask = u64::MAX;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_end_is_taken_once_and_never_found() {
        let mut closed = UnitMap::new(70);
        assert!(closed.take(69) && !closed.take(70));
        let mut open = UnitMap::with_open_end(70);
        assert!(open.take(69) && open.take(70) && !open.take(70) && open.take(127));
        assert!(!open.take(128));
        for unit in 0..69 {
            assert_eq!(open.next_free(69), Some(unit));
            assert!(open.take(unit));
        }
        assert_eq!(open.next_free(0), None);
        open.clear();
        assert!(open.take(70));
    }
}
