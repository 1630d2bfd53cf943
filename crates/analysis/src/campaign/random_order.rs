//! Shuffles what campaigns measure. The order follows from a seed, so that a run can be repeated,
//! by splitmix64 (Steele, Lea & Flood 2014). Another generator would change the order of saved
//! runs, from whose trials the answer of a search is derived again.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct RandomOrder {
    state: u64,
}

impl RandomOrder {
    /// The stream of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Shuffles the items. Every order has the same probability (Fisher & Yates 1938).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = last as u128 + 1;
            let chosen = ((u128::from(self.next_bits()) * bound) >> 64) as usize;
            items.swap(last, chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_order_holds_every_item_once_and_follows_from_the_seed() {
        let order = |seed: u64| {
            let mut items: Vec<u32> = (0..20).collect();
            RandomOrder::new(seed).shuffle(&mut items);
            items
        };
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn random_order_puts_each_of_two_first_equally_often() {
        let mut random = RandomOrder::new(7);
        let mut first = 0;
        for _ in 0..10_000 {
            let mut pair = [0, 1];
            random.shuffle(&mut pair);
            first += u32::from(pair[0] == 0);
        }
        // Four standard deviations of √(10,000/4).
        assert!((4800..=5200).contains(&first), "{first}");
    }
}
