//! Schedules the idle time before each request, to measure the cost of waking a disk up.
//!
//! Every round has each idle time once, in random order. A change over time, or the effect of a
//! long idle time on later requests, then does not look like the effect of one idle time. A second
//! request follows each of these at once. It shows the latency of an awake disk, and makes sure
//! that the disk is awake before the next idle time.

use super::random_order::RandomOrder;

/// The idle times, in nanoseconds: 1, 2 and 5 of each decade. The shortest is about the exit
/// latency of a processor's deep idle state. The longest lets a disk with a short timer spin down.
pub const IDLE_TIMES_NS: [u64; 13] = [
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// The idle time of a whole round, in nanoseconds.
pub fn gap_round_ns() -> u64 {
    IDLE_TIMES_NS.iter().sum()
}

/// The idle time before each request in nanoseconds, in order. 0 means that the request follows at
/// once. The first request only wakes the disk up.
pub fn gap_schedule(rounds: u64, seed: u64) -> Vec<u64> {
    let mut order = RandomOrder::new(seed);
    let mut schedule = vec![0];
    for _ in 0..rounds {
        let mut round = IDLE_TIMES_NS;
        order.shuffle(&mut round);
        for idle_ns in round {
            schedule.push(idle_ns);
            schedule.push(0);
        }
    }
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_holds_each_idle_time_once_in_an_order_of_its_own() {
        let schedule = gap_schedule(2, 7);
        assert_eq!(schedule.len(), 1 + 2 * 2 * IDLE_TIMES_NS.len());
        assert_eq!(schedule.iter().sum::<u64>(), 2 * gap_round_ns());
        let rounds: Vec<Vec<u64>> = schedule[1..]
            .chunks(2 * IDLE_TIMES_NS.len())
            .map(|round| round.iter().copied().filter(|ns| *ns > 0).collect())
            .collect();
        assert_ne!(rounds[0], rounds[1]);
        for mut round in rounds {
            round.sort_unstable();
            assert_eq!(round, IDLE_TIMES_NS);
        }
        assert!(
            schedule[1..]
                .chunks(2)
                .all(|pair| pair[0] > 0 && pair[1] == 0)
        );
        assert_eq!(schedule, gap_schedule(2, 7));
    }
}
