//! Derives the offset between the clocks of two runs, with a bound of its error, from the fences of
//! their launcher, or from what each host knows of its wall clock.
//!
//! A *fence* is a barrier that all runs of one launch enter and leave together.

use diskproof_model::fleet_sum::ClockBasis;
use diskproof_model::together::Fence;
use diskproof_model::wall_clock::WallClock;

/// Two clocks may drift apart by one of this many parts of the time since they were compared. The
/// crystals of both are good to 50 millionths, as data sheets of computer clocks state.
const DRIFT_PARTS: u64 = 10_000;

/// The clock of a run.
#[derive(Debug, Clone)]
pub(super) struct RunClock {
    /// Start of the run on its wall clock, in nanoseconds since 1970.
    pub started_ns: i128,
    /// The fences of its launcher, in order; empty without a launcher that has them.
    pub fences: Vec<Fence>,
    /// What its host knows of its wall clock; `None` where it does not know anything.
    pub wall: Option<WallClock>,
}

/// The offset of the clock of a run from another clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockOffset {
    /// A time of the run plus this is the time of the other clock, in nanoseconds.
    pub offset_ns: i128,
    /// The largest possible error of the offset when the clocks were compared, in nanoseconds.
    pub bound_ns: u64,
    /// When the clocks were compared, in nanoseconds after the start of the run. From then on they
    /// drift, and the error may grow. `None` where the bound holds for the whole run.
    compared_ns: Option<u64>,
    /// The source of the offset.
    pub basis: ClockBasis,
}

impl ClockOffset {
    /// The offset of a clock from itself.
    pub(super) const ITSELF: Self = Self {
        offset_ns: 0,
        bound_ns: 0,
        compared_ns: None,
        basis: ClockBasis::SameClock,
    };

    /// The same offset, as if it had no error.
    pub(super) fn without_bound(self) -> Self {
        Self {
            bound_ns: 0,
            compared_ns: None,
            ..self
        }
    }

    /// The largest possible error of the offset at a time of the run, in nanoseconds.
    pub(super) fn bound_at(&self, run_ns: u64) -> u64 {
        let drifting_ns = match self.compared_ns {
            Some(compared_ns) => run_ns.saturating_sub(compared_ns),
            None => 0,
        };
        self.bound_ns.saturating_add(drifting_ns / DRIFT_PARTS)
    }
}

impl RunClock {
    /// The shortest time that a fence took, in nanoseconds; `None` without fences.
    pub(super) fn shortest_fence_ns(&self) -> Option<u64> {
        self.fences
            .iter()
            .map(|fence| fence.left_ns.saturating_sub(fence.entered_ns))
            .min()
    }

    /// The largest error of the wall clock that its host states, in nanoseconds; `None` where the
    /// host states none.
    pub(super) fn stated_bound_ns(&self) -> Option<u64> {
        self.wall.as_ref()?.bound_ns
    }

    /// The distance of the wall clock from that of the kernel, in nanoseconds; `None` where the
    /// host states nothing of its clock.
    pub(super) fn distance_from_kernel_ns(&self) -> Option<u64> {
        Some(self.wall.as_ref()?.apart_ns)
    }

    /// A time after the start of the run, in nanoseconds since 1970 on this clock.
    pub(super) fn unix_ns(&self, ns: u64) -> i128 {
        self.started_ns + i128::from(ns)
    }

    /// The offset from this clock to another one; `None` where it is unknown. Of fences and wall
    /// clocks the more exact ones count: fences of Slurm take up to 8 ms, and one kernel has one
    /// clock. Where fences contradict what the hosts state of their clocks, the fences count.
    pub(super) fn offset_to(&self, other: &Self) -> Option<ClockOffset> {
        let by_fences = self.offset_by_fences(other);
        let by_wall_clocks = self.offset_by_wall_clocks(other);
        let (Some(fences), Some(wall_clocks)) = (by_fences, by_wall_clocks) else {
            return by_fences.or(by_wall_clocks);
        };
        let apart_ns = (fences.offset_ns - wall_clocks.offset_ns).unsigned_abs();
        let possible_ns = u128::from(fences.bound_ns) + u128::from(wall_clocks.bound_ns);
        if wall_clocks.bound_ns < fences.bound_ns && apart_ns <= possible_ns {
            Some(wall_clocks)
        } else {
            Some(fences)
        }
    }

    /// The offset by what both hosts state of their wall clocks; `None` where one states nothing.
    /// One kernel has one clock even where its error is unknown.
    fn offset_by_wall_clocks(&self, other: &Self) -> Option<ClockOffset> {
        let wall = self.wall.as_ref()?;
        let other_wall = other.wall.as_ref()?;
        if wall.boot_id.is_some() && wall.boot_id == other_wall.boot_id {
            return Some(ClockOffset {
                offset_ns: 0,
                bound_ns: wall.apart_ns.saturating_add(other_wall.apart_ns),
                compared_ns: None,
                basis: ClockBasis::SameClock,
            });
        }
        Some(ClockOffset {
            offset_ns: 0,
            bound_ns: wall_bound_ns(wall)?.saturating_add(wall_bound_ns(other_wall)?),
            compared_ns: None,
            basis: ClockBasis::WallClocks,
        })
    }

    /// The offset by the fences of both runs; `None` without fences, and where they contradict each
    /// other because they are of different launches.
    ///
    /// No run leaves a fence before the last one has entered it. Each pair of fences therefore
    /// limits the offset from both sides, however long a message takes.
    fn offset_by_fences(&self, other: &Self) -> Option<ClockOffset> {
        let (mut least_ns, mut most_ns) = (i128::MIN, i128::MAX);
        let mut compared_ns = None;
        for (fence, other_fence) in self.fences.iter().zip(&other.fences) {
            let entered_ns = self.unix_ns(fence.entered_ns);
            let left_ns = self.unix_ns(fence.left_ns);
            least_ns = least_ns.max(other.unix_ns(other_fence.entered_ns) - left_ns);
            most_ns = most_ns.min(other.unix_ns(other_fence.left_ns) - entered_ns);
            compared_ns = Some(fence.left_ns);
        }
        if compared_ns.is_none() || least_ns > most_ns {
            return None;
        }
        let width_ns = most_ns - least_ns;
        Some(ClockOffset {
            offset_ns: least_ns + width_ns / 2,
            bound_ns: u64::try_from(width_ns / 2 + 1).unwrap_or(u64::MAX),
            compared_ns,
            basis: ClockBasis::Fences,
        })
    }
}

/// The largest error of a wall clock during a run, in nanoseconds; `None` where its host states
/// none. A clock that was set or corrected meanwhile was wrong by that much before.
fn wall_bound_ns(wall: &WallClock) -> Option<u64> {
    let gained_ns = wall.gained_ns.unwrap_or(0).unsigned_abs();
    Some(
        wall.bound_ns?
            .saturating_add(gained_ns)
            .saturating_add(wall.paired_within_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::wall_clock::WallSource;

    /// A clock that is wrong by so much, which entered and left fences at these true times.
    fn clock(wrong_ns: i128, fences: &[(u64, u64)]) -> RunClock {
        RunClock {
            started_ns: 1_800_000_000_000_000_000 + wrong_ns,
            fences: fences
                .iter()
                .map(|(entered_ns, left_ns)| Fence {
                    entered_ns: *entered_ns,
                    left_ns: *left_ns,
                })
                .collect(),
            wall: None,
        }
    }

    fn wall(bound_ns: Option<u64>, boot_id: &str) -> WallClock {
        WallClock {
            bound_ns,
            source: WallSource::Adjtimex,
            paired_within_ns: 40,
            gained_ns: Some(0),
            apart_ns: 0,
            boot_id: Some(boot_id.to_owned()),
        }
    }

    #[test]
    fn fences_find_a_clock_that_is_three_seconds_wrong() {
        let right = clock(0, &[(100_000, 190_000), (200_000, 255_000)]);
        let wrong = clock(3_000_000_000, &[(150_000, 170_000), (210_000, 290_000)]);
        let offset = wrong.offset_to(&right).unwrap();
        let error_ns = (offset.offset_ns + 3_000_000_000).unsigned_abs();
        assert!(error_ns <= u128::from(offset.bound_ns), "{offset:?}");
        assert!(offset.bound_ns <= 56_000, "{offset:?}");
        assert_eq!(offset.basis, ClockBasis::Fences);
        // After a minute both may have drifted by 6 ms.
        let later_ns = 60_000_290_000;
        assert_eq!(offset.bound_at(later_ns), offset.bound_ns + 6_000_000);
        let back = right.offset_to(&wrong).unwrap();
        assert!((back.offset_ns + offset.offset_ns).abs() <= 1);
    }

    #[test]
    fn wall_clocks_count_where_they_are_better_than_fences() {
        let mut one = clock(0, &[(0, 8_000_000)]);
        let mut other = clock(0, &[(5_000_000, 8_000_000)]);
        assert_eq!(one.offset_to(&other).unwrap().basis, ClockBasis::Fences);
        one.wall = Some(wall(Some(100_000), "a"));
        other.wall = Some(wall(Some(100_000), "b"));
        let offset = one.offset_to(&other).unwrap();
        assert_eq!(offset.basis, ClockBasis::WallClocks);
        assert_eq!((offset.offset_ns, offset.bound_ns), (0, 200_080));
        other.wall = Some(wall(None, "a"));
        let same = one.offset_to(&other).unwrap();
        assert_eq!((same.bound_ns, same.basis), (0, ClockBasis::SameClock));
        // A clock that is 3 s wrong, and does not know it.
        one.started_ns += 3_000_000_000;
        one.wall = Some(wall(Some(100_000), "b"));
        other.wall = Some(wall(Some(100_000), "a"));
        let offset = one.offset_to(&other).unwrap();
        assert_eq!(offset.basis, ClockBasis::Fences);
        let error_ns = (offset.offset_ns + 3_000_000_000).unsigned_abs();
        assert!(error_ns <= u128::from(offset.bound_ns), "{offset:?}");
    }

    #[test]
    fn fences_of_another_launch_give_no_offset() {
        let first = clock(0, &[(1_000, 2_000), (3_000, 4_000)]);
        let other = clock(0, &[(1_000, 2_000), (9_000, 9_500)]);
        assert_eq!(other.offset_to(&first), None);
        assert_eq!(clock(0, &[]).offset_to(&first), None);
    }

    #[test]
    fn wall_clocks_are_as_good_as_both_bounds() {
        let mut one = clock(0, &[]);
        let mut other = clock(0, &[]);
        one.wall = Some(wall(Some(1_000), "a"));
        other.wall = Some(wall(Some(2_000), "b"));
        let offset = one.offset_to(&other).unwrap();
        assert_eq!(offset.bound_ns, 3_080);
        assert_eq!(offset.basis, ClockBasis::WallClocks);
        other.wall = Some(wall(None, "b"));
        assert_eq!(one.offset_to(&other), None);
        // The same kernel has one clock, whoever keeps it.
        one.wall = Some(wall(None, "b"));
        let same = one.offset_to(&other).unwrap();
        assert_eq!((same.bound_ns, same.basis), (0, ClockBasis::SameClock));
        if let Some(faked) = &mut one.wall {
            faked.apart_ns = 3_000_000_000;
        }
        assert_eq!(one.offset_to(&other).unwrap().bound_ns, 3_000_000_000);
    }
}
