//! Finds a collapse: a load ran at an even rate, as a limiter allows it, and at the end all that
//! runs makes a fraction of that, in too few requests to show whether it is even.

use super::late_fall::LateFall;
use super::plateau::{Plateau, plateau};
use super::stretch::{Role, Stretch, Unit, per_second, request_amount};
use crate::estimate::is_of_limiter;

/// What runs at the end has collapsed at this share of the even rate. Chosen, not measured: loads
/// of one disk differ by as much, which is why one of them must have fallen while it ran.
const COLLAPSED_SHARE_MAX: f64 = 0.1;
/// A shorter end may be a pause of the disk.
const COLLAPSED_NS_MIN: f64 = 500e6;
/// With fewer requests at the end, the disk hangs.
const REQUESTS_MIN: f64 = 5.0;
/// The end is looked at in parts of this length, in nanoseconds.
const PART_NS: f64 = 200e6;
/// A part may have so many requests by chance.
const CHANCE_REQUESTS: f64 = 2.0;
/// Where only one load ran at the even rate, which may be chance, so many loads have collapsed.
const COLLAPSED_LOADS_MIN: usize = 3;
/// The load that fell ran at this share of the even rate before.
const BEFORE_SHARE_MIN: f64 = 0.5;

/// The collapse at the end of these stretches, which are in order; `None` where there is none.
pub(super) fn collapse(stretches: &[Stretch]) -> Option<LateFall> {
    let mut closed = stretches.to_vec();
    closed.retain(|stretch| stretch.role == Role::Closed && !stretch.requests.is_empty());
    for unit in Unit::ALL {
        for level in even_levels(&closed, unit) {
            let fall = collapse_from(&closed, &level, unit);
            if fall.is_some() {
                return fall;
            }
        }
    }
    None
}

/// An even rate.
struct EvenLevel {
    /// In requests or bytes per second.
    rate: f64,
    /// True if loads of at least two families ran at it.
    is_shared: bool,
}

/// The even rates of these stretches.
fn even_levels(stretches: &[Stretch], unit: Unit) -> Vec<EvenLevel> {
    let even: Vec<Plateau<'_>> = stretches
        .iter()
        .filter_map(|stretch| plateau(stretch, unit))
        .filter(|plateau| is_of_limiter(&plateau.counts))
        .collect();
    let mut levels = Vec::new();
    for one in &even {
        let is_shared = even
            .iter()
            .any(|other| other.stretch.family != one.stretch.family && other.is_at(one.level));
        levels.push(EvenLevel {
            rate: one.level,
            is_shared,
        });
    }
    levels
}

/// The collapse from this even rate. The stretches before the end are looked at backwards, until
/// one was not slow: that one must have fallen, or be the same load as the one after it.
fn collapse_from(stretches: &[Stretch], level: &EvenLevel, unit: Unit) -> Option<LateFall> {
    let (mut amount, mut requests, mut lasted_ns) = (0.0, 0.0, 0.0);
    let mut rows: Vec<usize> = Vec::new();
    let mut families: Vec<&str> = Vec::new();
    let mut has_fallen = false;
    for stretch in stretches.iter().rev() {
        let fast_cells = stretch.requests.len() - slow_cells_at_end(stretch, level.rate, unit);
        let is_slow_at_end = fast_cells < stretch.requests.len();
        if is_slow_at_end {
            amount += stretch.moved(unit)[fast_cells..].iter().sum::<f64>();
            let slow_requests = &stretch.requests[fast_cells..];
            requests += slow_requests.iter().sum::<f64>();
            lasted_ns += slow_requests.len() as f64 * stretch.cell_ns;
            rows.push(stretch.row);
        }
        if fast_cells > 0 {
            let before = per_second(&stretch.moved(unit)[..fast_cells], stretch.cell_ns);
            let is_same_load = is_slow_at_end || families.last() == Some(&stretch.family.as_str());
            has_fallen = is_same_load && before >= BEFORE_SHARE_MIN * level.rate;
        }
        if is_slow_at_end {
            families.push(&stretch.family);
        }
        if fast_cells > 0 {
            break;
        }
    }
    families.sort_unstable();
    families.dedup();
    let after = amount * 1e9 / lasted_ns;
    let is_collapse = (level.is_shared || families.len() >= COLLAPSED_LOADS_MIN)
        && has_fallen
        && lasted_ns >= COLLAPSED_NS_MIN
        && requests >= REQUESTS_MIN
        && after <= COLLAPSED_SHARE_MAX * level.rate;
    if !is_collapse {
        return None;
    }
    rows.sort_unstable();
    rows.dedup();
    Some(LateFall {
        unit,
        after,
        limit: Some(level.rate),
        lasted_ns,
        rows,
    })
}

/// The cells at the end of a stretch in which it made a fraction of an even rate, or nothing.
fn slow_cells_at_end(stretch: &Stretch, level: f64, unit: Unit) -> usize {
    let cells_of_part = (PART_NS / stretch.cell_ns).ceil().max(1.0) as usize;
    let chance = CHANCE_REQUESTS * request_amount(stretch, unit);
    let mut slow_cells = 0;
    for part in stretch.moved(unit).rchunks(cells_of_part) {
        let part_s = part.len() as f64 * stretch.cell_ns / 1e9;
        let moved: f64 = part.iter().sum();
        if moved > COLLAPSED_SHARE_MAX * level * part_s + chance {
            break;
        }
        slow_cells += part.len();
    }
    slow_cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL_NS: f64 = 10e6;

    /// A load that made so many requests of 8 KiB in each cell, after the stretches so far.
    fn add(stretches: &mut Vec<Stretch>, family: &str, requests: Vec<f64>) {
        let start_ns = stretches.last().map_or(0.0, Stretch::end_ns);
        let bytes = requests.iter().map(|count| count * 8192.0).collect();
        stretches.push(Stretch {
            row: stretches.len(),
            family: family.to_owned(),
            depth: 32.0,
            has_writes: false,
            block_bytes: 8192.0,
            role: Role::Closed,
            is_in_row: true,
            start_ns,
            cell_ns: CELL_NS,
            requests,
            bytes,
        });
    }

    /// 2000/s, for so many cells.
    fn even(cells: usize) -> Vec<f64> {
        vec![20.0; cells]
    }

    /// 11/s, for so many cells.
    fn slow(cells: usize) -> Vec<f64> {
        (0..cells).map(|cell| f64::from(cell % 9 == 0)).collect()
    }

    /// Reads and writes at 2000/s, and a mix that falls after so many cells.
    fn limited(mix_cells: usize) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        add(&mut stretches, "reads", even(100));
        add(&mut stretches, "writes", even(100));
        add(&mut stretches, "mix", [even(mix_cells), slow(60)].concat());
        stretches
    }

    #[test]
    fn loads_after_an_even_rate_that_never_comes_back_have_collapsed() {
        let mut stretches = limited(40);
        add(&mut stretches, "random writes", slow(90));
        let fall = collapse(&stretches).unwrap();
        assert_eq!((fall.unit, fall.rows), (Unit::Requests, vec![2, 3]));
        assert!((fall.limit.unwrap() - 2000.0).abs() < 1.0);
        assert!((5.0..20.0).contains(&fall.after), "{}", fall.after);
        assert!(fall.lasted_ns >= 1.4e9);
    }

    #[test]
    fn rate_that_comes_back_and_short_end_are_no_collapse() {
        let mut back = limited(40);
        add(&mut back, "random writes", even(90));
        assert_eq!(collapse(&back), None);
        let mut short = limited(40);
        short[2].requests.truncate(70);
        short[2].bytes.truncate(70);
        assert_eq!(collapse(&short), None);
    }

    /// One load was even, and three have collapsed: the one that fell, and two more.
    #[test]
    fn three_loads_collapse_from_the_even_rate_of_one() {
        let mut stretches = Vec::new();
        add(&mut stretches, "reads", even(100));
        add(
            &mut stretches,
            "commits",
            [vec![14.0; 40], slow(60)].concat(),
        );
        add(&mut stretches, "mix", slow(90));
        assert_eq!(collapse(&stretches), None);
        add(&mut stretches, "random writes", slow(90));
        assert_eq!(collapse(&stretches).unwrap().rows, [1, 2, 3]);
    }

    /// A memory card: each load has its own rate, and random writes are slow from the start.
    #[test]
    fn load_that_is_slow_by_itself_is_no_collapse() {
        let mut stretches = Vec::new();
        add(&mut stretches, "reads", even(100));
        add(&mut stretches, "writes", even(100));
        add(&mut stretches, "random writes", slow(90));
        assert_eq!(collapse(&stretches), None);
        // Its cache is full after a moment; no other load had the same even rate.
        let mut card = Vec::new();
        add(&mut card, "reads", vec![37.0; 100]);
        add(&mut card, "writes", even(100));
        add(&mut card, "mix", [even(40), slow(90)].concat());
        assert_eq!(collapse(&card), None);
    }

    /// Nothing is answered any more: the disk hangs, which has findings of its own.
    #[test]
    fn silence_is_no_collapse() {
        let mut stretches = limited(40);
        stretches[2].requests[40..].fill(0.0);
        assert_eq!(collapse(&stretches), None);
    }
}
