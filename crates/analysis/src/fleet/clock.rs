//! How the clocks of two runs lie to each other, and how surely: by the fences of their launcher,
//! or by what each host knows of its wall clock.

use diskproof_model::fleet_sum::ClockBasis;
use diskproof_model::together::{Fence, WallClock};

/// Two clocks may drift apart by this part of the time since they were compared: crystals are good
/// to 50 millionths each.
const DRIFT_PARTS: u64 = 10_000;

/// The clock of a run.
#[derive(Debug, Clone)]
pub(super) struct RunClock {
    /// Start of the run on its wall clock, in nanoseconds since 1970.
    pub started_ns: i128,
    pub fences: Vec<Fence>,
    pub wall: Option<WallClock>,
}

/// Where the clock of a run lies by that of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockPlace {
    /// What is added to a time of the run to get that of the other clock, in nanoseconds.
    pub offset_ns: i128,
    /// The most by which that may be wrong.
    pub bound_ns: u64,
    /// From when on the bound grows, in nanoseconds after the start of the run; `None` where it
    /// does not.
    compared_ns: Option<u64>,
    pub basis: ClockBasis,
}

impl ClockPlace {
    /// The place of the clock that the others are compared with.
    pub(super) const OWN: Self = Self {
        offset_ns: 0,
        bound_ns: 0,
        compared_ns: None,
        basis: ClockBasis::SameClock,
    };

    /// The same, as if it were known for sure.
    pub(super) fn without_bound(self) -> Self {
        Self {
            bound_ns: 0,
            compared_ns: None,
            ..self
        }
    }

    /// The most by which a time of the run may be wrong.
    pub(super) fn bound_at(&self, ns: u64) -> u64 {
        let since_ns = match self.compared_ns {
            Some(compared_ns) => ns.saturating_sub(compared_ns),
            None => 0,
        };
        self.bound_ns.saturating_add(since_ns / DRIFT_PARTS)
    }
}

impl RunClock {
    /// The quickest of the fences, in nanoseconds; `None` without one.
    pub(super) fn quickest_fence_ns(&self) -> Option<u64> {
        let lengths = self.fences.iter();
        lengths
            .map(|fence| fence.left_ns.saturating_sub(fence.entered_ns))
            .min()
    }

    /// The most by which its host says that it may be wrong; the greatest number where it does not
    /// say.
    pub(super) fn stated_bound_ns(&self) -> u64 {
        match &self.wall {
            Some(wall) => wall.bound_ns.unwrap_or(u64::MAX),
            None => u64::MAX,
        }
    }

    /// A time after the start of the run, in nanoseconds since 1970 on this clock.
    pub(super) fn unix_ns(&self, ns: u64) -> i128 {
        self.started_ns + i128::from(ns)
    }

    /// Where this clock lies by another one; `None` where nothing tells.
    pub(super) fn place_by(&self, other: &Self) -> Option<ClockPlace> {
        if let Some(place) = self.place_by_fences(other) {
            return Some(place);
        }
        let (own, others) = (self.wall.as_ref()?, other.wall.as_ref()?);
        if own.boot_id.is_some() && own.boot_id == others.boot_id {
            return Some(ClockPlace {
                offset_ns: 0,
                bound_ns: own.apart_ns.saturating_add(others.apart_ns),
                compared_ns: None,
                basis: ClockBasis::SameClock,
            });
        }
        Some(ClockPlace {
            offset_ns: 0,
            bound_ns: wall_bound_ns(own)?.saturating_add(wall_bound_ns(others)?),
            compared_ns: None,
            basis: ClockBasis::WallClocks,
        })
    }

    /// Nobody leaves a fence before the last has entered it, so that each pair of fences limits the
    /// difference of the clocks from both sides, however long a message takes.
    fn place_by_fences(&self, other: &Self) -> Option<ClockPlace> {
        let (mut least_ns, mut most_ns) = (i128::MIN, i128::MAX);
        let mut compared_ns = None;
        for (own, others) in self.fences.iter().zip(&other.fences) {
            least_ns = least_ns.max(other.unix_ns(others.entered_ns) - self.unix_ns(own.left_ns));
            most_ns = most_ns.min(other.unix_ns(others.left_ns) - self.unix_ns(own.entered_ns));
            compared_ns = Some(own.left_ns);
        }
        // Fences of different launches contradict each other.
        if compared_ns.is_none() || least_ns > most_ns {
            return None;
        }
        let width_ns = most_ns - least_ns;
        Some(ClockPlace {
            offset_ns: least_ns + width_ns / 2,
            bound_ns: u64::try_from(width_ns / 2 + 1).unwrap_or(u64::MAX),
            compared_ns,
            basis: ClockBasis::Fences,
        })
    }
}

/// The most by which a wall clock may be wrong during a run. One that was set or corrected
/// meanwhile was wrong by that before.
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
    use diskproof_model::together::WallSource;

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
        let place = wrong.place_by(&right).unwrap();
        let error_ns = (place.offset_ns + 3_000_000_000).unsigned_abs();
        assert!(error_ns <= u128::from(place.bound_ns), "{place:?}");
        assert!(place.bound_ns <= 56_000, "{place:?}");
        assert_eq!(place.basis, ClockBasis::Fences);
        // After a minute both may have drifted by 6 ms.
        let later_ns = 60_000_290_000;
        assert_eq!(place.bound_at(later_ns), place.bound_ns + 6_000_000);
        let back = right.place_by(&wrong).unwrap();
        assert!((back.offset_ns + place.offset_ns).abs() <= 1);
    }

    #[test]
    fn fences_of_another_launch_tell_nothing() {
        let first = clock(0, &[(1_000, 2_000), (3_000, 4_000)]);
        let other = clock(0, &[(1_000, 2_000), (9_000, 9_500)]);
        assert_eq!(other.place_by(&first), None);
        assert_eq!(clock(0, &[]).place_by(&first), None);
    }

    #[test]
    fn wall_clocks_are_as_good_as_both_bounds() {
        let mut one = clock(0, &[]);
        let mut other = clock(0, &[]);
        one.wall = Some(wall(Some(1_000), "a"));
        other.wall = Some(wall(Some(2_000), "b"));
        let place = one.place_by(&other).unwrap();
        assert_eq!(place.bound_ns, 3_080);
        assert_eq!(place.basis, ClockBasis::WallClocks);
        other.wall = Some(wall(None, "b"));
        assert_eq!(one.place_by(&other), None);
        // The same kernel has one clock, whoever keeps it.
        one.wall = Some(wall(None, "b"));
        let same = one.place_by(&other).unwrap();
        assert_eq!((same.bound_ns, same.basis), (0, ClockBasis::SameClock));
        if let Some(faked) = &mut one.wall {
            faked.apart_ns = 3_000_000_000;
        }
        assert_eq!(one.place_by(&other).unwrap().bound_ns, 3_000_000_000);
    }
}
