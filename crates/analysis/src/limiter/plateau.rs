//! Finds the plateaus of a limiter: even ends of stretches, after a higher rate.
//!
//! Thresholds without a source of their own were chosen, and are checked by `bucket/tests.rs` on
//! simulated volumes with a credit and on healthy disks.

use super::stretch::{Role, Stretch, Unit, per_second};
use crate::estimate::{EVEN_SCATTER_MAX, LIMITER_FALL_MIN, is_of_limiter, scatter, step_down};

/// Plateaus of one limiter differ by less than this share, or by two requests.
pub(super) const LEVEL_DIFFERENCE_MAX: f64 = 0.01;
/// With fewer requests even cells may be chance.
const REQUESTS_MIN: f64 = 40.0;
/// If cells are too few for a deviation, their running count may lie in a range of so many requests
/// around a straight line.
const LINE_REQUESTS_MAX: f64 = 2.0;
/// The least fall to a plateau ([`LIMITER_FALL_MIN`]) where the earlier rate had fewer requests in
/// flight: a disk may answer a deeper queue a little slower.
pub(super) const SHALLOWER_FALL_MIN: f64 = 1.3;
/// Two stretches of one rate may differ by this many standard errors of their counts.
const CHANCE_ERRORS: f64 = 3.0;
/// All plateaus together must last at least this long. Where they are all of one row, one of them
/// must. A single one is a [`PLATEAU_NS_MIN`] at least.
pub(super) const TOTAL_PLATEAU_NS_MIN: f64 = 1e9;
/// A shorter even end of a stretch is not a plateau.
pub(super) const PLATEAU_NS_MIN: f64 = 200e6;
/// A shorter stretch does not show a rate.
pub(super) const RATE_NS_MIN: f64 = 100e6;
/// The rest of a burst after a pause may hide in the first part of an even whole: one cell of this
/// many, which does not count towards the level. Chosen, not measured.
const UNSETTLED_DIVISOR: usize = 5;
/// A rate above this multiple of the base uses credit.
pub(super) const CREDIT_RATE_RATIO: f64 = 1.02;

/// The even end of a stretch: the rate of the limiter once its credit is used up.
#[derive(Debug, Clone)]
pub(super) struct Plateau<'a> {
    pub(super) stretch: &'a Stretch,
    /// The index of the plateau's first cell.
    pub(super) first_cell: usize,
    /// The mean rate per second.
    pub(super) level: f64,
    /// The counts of its cells, in requests.
    pub(super) counts: Vec<f64>,
    pub(super) requests: f64,
    /// The rate before it in the same stretch; `None` where all of it is even.
    pub(super) earlier_rate: Option<f64>,
}

impl Plateau<'_> {
    pub(super) fn start_ns(&self) -> f64 {
        self.stretch.start_ns + self.first_cell as f64 * self.stretch.cell_ns
    }

    pub(super) fn length_ns(&self) -> f64 {
        self.stretch.length_ns() - self.first_cell as f64 * self.stretch.cell_ns
    }

    /// Returns `true` if its rate is this level, but for chance.
    pub(super) fn is_at(&self, level: f64) -> bool {
        (self.level / level - 1.0).abs() <= LEVEL_DIFFERENCE_MAX.max(2.0 / self.requests)
    }
}

/// The even end of a stretch, or all of it; `None` where it does not end evenly.
pub(super) fn plateau(stretch: &Stretch, unit: Unit) -> Option<Plateau<'_>> {
    if stretch.role != Role::Closed {
        return None;
    }
    // The last cell may not be full.
    let full_cells = stretch.requests.len().checked_sub(1)?;
    let counts = stretch.evenness_counts(unit);
    let requests = &counts[..full_cells];
    let cells_min = (PLATEAU_NS_MIN / stretch.cell_ns).ceil() as usize;
    // The step comes first: a short burst hardly makes the whole uneven.
    let step = step_down(requests, cells_min.max(2), LIMITER_FALL_MIN)
        .filter(|step| is_even(&requests[step.tail..], stretch.cell_ns));
    let (first_cell, earlier_rate) = match step {
        Some(step) => {
            let rate = per_second(&stretch.moved(unit)[..step.head], stretch.cell_ns);
            (step.tail, Some(rate))
        }
        None if is_even(requests, stretch.cell_ns) => (0, None),
        None => return None,
    };
    let plateau_requests = &requests[first_cell..];
    let settled = first_cell + plateau_requests.len() / UNSETTLED_DIVISOR;
    let level = per_second(&stretch.moved(unit)[settled..full_cells], stretch.cell_ns);
    if level <= 0.0 {
        return None;
    }
    Some(Plateau {
        stretch,
        first_cell,
        level,
        counts: counts[first_cell..].to_vec(),
        requests: plateau_requests.iter().sum(),
        earlier_rate,
    })
}

/// Returns `true` if requests completed more evenly than any medium answers them.
pub(super) fn is_even(requests: &[f64], cell_ns: f64) -> bool {
    let total: f64 = requests.iter().sum();
    if total < REQUESTS_MIN || (requests.len() as f64) * cell_ns < PLATEAU_NS_MIN {
        return false;
    }
    if let Some(scatter) = scatter(requests) {
        return scatter <= EVEN_SCATTER_MAX;
    }
    let per_cell = total / requests.len() as f64;
    // The distance of the running count from a straight line.
    let mut distance: f64 = 0.0;
    let (mut lowest, mut highest) = (0.0f64, 0.0f64);
    for cell in requests {
        distance += cell - per_cell;
        lowest = lowest.min(distance);
        highest = highest.max(distance);
    }
    highest - lowest <= LINE_REQUESTS_MAX
}

/// Returns `true` if the rate was higher before a plateau: earlier in its stretch, or in an earlier
/// stretch of the same family with at most as many requests in flight.
pub(super) fn has_fallen(
    stretches: &[Stretch],
    plateau: &Plateau<'_>,
    base: f64,
    unit: Unit,
) -> bool {
    if let Some(rate) = plateau.earlier_rate
        && rate >= LIMITER_FALL_MIN * base
    {
        return true;
    }
    let stretch = plateau.stretch;
    for earlier in stretches {
        let is_comparable = earlier.start_ns < stretch.start_ns
            && earlier.role == Role::Closed
            && earlier.family == stretch.family
            && earlier.length_ns() >= RATE_NS_MIN
            && earlier.depth <= stretch.depth;
        if !is_comparable {
            continue;
        }
        let fall_min = if earlier.depth < stretch.depth {
            SHALLOWER_FALL_MIN
        } else {
            LIMITER_FALL_MIN
        };
        // Few requests differ by chance.
        let requests: f64 = earlier.requests.iter().sum();
        let by_chance = CHANCE_ERRORS / requests.min(plateau.requests).max(1.0).sqrt();
        if earlier.rate(unit) >= (fall_min + by_chance) * base {
            return true;
        }
    }
    false
}

/// Returns `true` if a plateau is even for longer than chance explains.
pub(super) fn is_long(plateau: &Plateau<'_>) -> bool {
    let counts = &plateau.counts;
    plateau.length_ns() >= TOTAL_PLATEAU_NS_MIN
        && (is_of_limiter(counts) || scatter(counts).is_none() && plateau.requests >= REQUESTS_MIN)
}

/// The highest rate above the base, of a stretch or of its part before its plateau; `None` where no
/// rate is clearly above it.
pub(super) fn highest_rate(stretches: &[Stretch], base: f64, unit: Unit) -> Option<f64> {
    let mut highest = 0.0f64;
    for stretch in stretches {
        if stretch.role != Role::Closed {
            continue;
        }
        let cells = stretch.moved(unit);
        let cells_min = (RATE_NS_MIN / stretch.cell_ns).ceil().max(1.0) as usize;
        let fast_cells = cells
            .iter()
            .take_while(|cell| **cell * 1e9 / stretch.cell_ns > (CREDIT_RATE_RATIO * base))
            .count();
        let length = fast_cells.max(cells_min).min(cells.len());
        if length >= cells_min {
            highest = highest.max(per_second(&cells[..length], stretch.cell_ns));
        }
        highest = highest.max(match plateau(stretch, unit) {
            Some(plateau) => plateau.earlier_rate.unwrap_or(0.0),
            None => stretch.rate(unit),
        });
    }
    if highest >= LIMITER_FALL_MIN * base {
        Some(highest)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL_NS: f64 = 100e6;

    /// A stretch of one row that waits for the disk only, with these requests in its cells.
    fn stretch(requests: &[f64]) -> Stretch {
        Stretch {
            row: 0,
            family: "reads".to_owned(),
            depth: 8.0,
            has_writes: false,
            block_bytes: 4096.0,
            role: Role::Closed,
            is_in_row: true,
            start_ns: 10e9,
            cell_ns: CELL_NS,
            requests: requests.to_vec(),
            bytes: requests.iter().map(|count| count * 4096.0).collect(),
        }
    }

    /// Ten seconds at 1000/s.
    fn even() -> Stretch {
        stretch(&[100.0; 101])
    }

    fn fell_after(earlier: Stretch) -> bool {
        let stretches = [earlier, even()];
        let plateau = plateau(&stretches[1], Unit::Requests).unwrap();
        has_fallen(&stretches, &plateau, plateau.level, Unit::Requests)
    }

    /// An earlier stretch at this multiple of 1000/s.
    fn faster(ratio: f64) -> Stretch {
        Stretch {
            start_ns: 0.0,
            ..stretch(&[100.0 * ratio; 50])
        }
    }

    #[test]
    fn even_end_of_a_stretch_is_a_plateau_after_its_earlier_rate() {
        let requests = [[300.0; 30].as_slice(), &[100.0; 31]].concat();
        let falling = stretch(&requests);
        let plateau = plateau(&falling, Unit::Requests).unwrap();
        assert!((30..=31).contains(&plateau.first_cell), "{plateau:?}");
        assert_eq!(plateau.level, 1000.0);
        assert_eq!(plateau.earlier_rate, Some(3000.0));
        assert!(has_fallen(&[], &plateau, plateau.level, Unit::Requests));
    }

    #[test]
    fn only_a_stretch_that_waits_for_the_disk_has_a_plateau() {
        for (role, is_found) in [
            (Role::Closed, true),
            (Role::Shared, false),
            (Role::Unmeasured, false),
        ] {
            let stretch = Stretch { role, ..even() };
            assert_eq!(plateau(&stretch, Unit::Requests).is_some(), is_found);
        }
    }

    #[test]
    fn few_requests_are_even_by_chance() {
        assert!(is_even(&[10.0; 4], CELL_NS));
        assert!(!is_even(&[9.0; 4], CELL_NS));
        assert!(!is_even(&[50.0; 1], CELL_NS), "too short");
        // The running count of few cells stays within two requests of a line, or it does not.
        assert!(is_even(&[11.0, 10.0, 10.0, 11.0], CELL_NS));
        assert!(!is_even(&[13.0, 13.0, 9.0, 9.0], CELL_NS));
    }

    #[test]
    fn rate_was_higher_only_where_a_stretch_is_comparable() {
        assert!(fell_after(faster(1.5)));
        assert!(!fell_after(faster(1.05)));
        let other_family = Stretch {
            family: "writes".to_owned(),
            ..faster(1.5)
        };
        assert!(!fell_after(other_family));
        let deeper = Stretch {
            depth: 16.0,
            ..faster(1.5)
        };
        assert!(!fell_after(deeper));
        let later = Stretch {
            start_ns: 30e9,
            ..faster(1.5)
        };
        assert!(!fell_after(later));
        let warm_up = Stretch {
            role: Role::Unmeasured,
            ..faster(1.5)
        };
        assert!(!fell_after(warm_up));
    }

    /// A disk may answer a deeper queue a little slower, which is no limiter.
    #[test]
    fn shallower_stretch_must_have_been_much_faster() {
        for (ratio, is_fall) in [(1.25, false), (1.4, true)] {
            let shallower = Stretch {
                depth: 4.0,
                ..faster(ratio)
            };
            assert_eq!(fell_after(shallower), is_fall, "{ratio}");
            assert!(fell_after(faster(ratio)), "at the same depth");
        }
    }

    #[test]
    fn few_requests_of_an_earlier_stretch_are_faster_by_chance() {
        let few = Stretch {
            start_ns: 0.0,
            ..stretch(&[15.0; 2])
        };
        let slower = stretch(&[10.0; 101]);
        let stretches = [few, slower];
        let plateau = plateau(&stretches[1], Unit::Requests).unwrap();
        assert!(!has_fallen(&stretches, &plateau, 100.0, Unit::Requests));
    }

    #[test]
    fn plateau_is_long_if_it_is_even_for_more_than_a_second() {
        for (cells, per_cell, expected) in [(9, 100.0, false), (14, 100.0, true), (15, 3.0, true)] {
            let even = stretch(&vec![per_cell; cells]);
            let plateau = plateau(&even, Unit::Requests).unwrap();
            assert_eq!(is_long(&plateau), expected, "{cells} cells of {per_cell}");
        }
    }
}
