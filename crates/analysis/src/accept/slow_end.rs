//! Decides whether a device has a slow end: a border beyond which it is many times slower, as
//! distinct from noise.
//!
//! A busy machine, stalls and repeated requests only make parts slower. The pass goes in random
//! order, so that they hit parts anywhere. The fastest parts of a region therefore show what it can
//! do. Fast parts that are all on one side show a border, however slow the others of that side are.
//!
//! Where noise delayed all parts, the fastest ones show nothing: a disk that needs 1 ms a part, and
//! 40 ms beyond its end, took 54 ms and 101 ms on a machine at a load of 10. Noise adds the same
//! time to both sides, so that their difference is the disk's. It may be many times what the disk
//! needs.
//!
//! The thresholds were chosen, and are checked on simulated disks with noise and without it
//! (`tests.rs`): no honest disk is accused, and no slow end is accepted.

use super::rates::{Direction, cell_rates, cliff, quantile, sorted};
use diskproof_model::accept::AcceptMeasurement;

/// The parts beyond the border are at least this many times slower.
const SLOWER_TIMES: f64 = 4.0;
/// The zones of a rotating disk differ by this factor: a part before the border counts as fast only
/// where it would still be fast in the slowest zone.
const ZONES_TIMES: f64 = 2.0;
/// A border has at least this many parts on each side: fewer have no usual rate.
const SIDE_MIN: usize = 4;
/// At most this share of the parts beyond a border is fast: a cache of the disk may answer some.
const FAST_BEYOND_MAX: f64 = 0.1;
/// The rate that this share of the parts does not exceed shows what a region can do.
const FASTEST_QUANTILE: f64 = 0.9;
/// A border is certain from this evidence on: by chance the fast parts lie so in one of e^12
/// orders.
const EVIDENCE_CERTAIN: f64 = 12.0;
/// A border is possible from this evidence on: by chance the fast parts lie so in one of e^7
/// orders, about one of a thousand.
const EVIDENCE_POSSIBLE: f64 = 7.0;
/// Where fewer of all parts are nearly as fast as the fastest, the slow ones could all lie beyond a
/// border.
const FAST_SHARE_MIN: f64 = 0.25;
/// A part within the factor of zones from the fastest was hardly delayed. Where a smaller share of
/// the parts was hardly delayed, even the fastest may have been delayed.
const HARDLY_DELAYED_SHARE_MIN: f64 = 0.1;
/// The inner half of a rotating disk takes longer than the outer one by half of what its fastest
/// part takes. Zones do not explain a difference beyond this share.
const ZONES_DIFFERENCE_MAX: f64 = 0.75;
/// A rank sum is off by more than this many standard deviations beyond a real border: chance makes
/// none of a hundred borders that are examined.
const RANK_DEVIATIONS_MIN: f64 = 4.5;
/// The factor between two rates that are tried as the lowest rate of a fast part.
const TRIED_RATE_FACTOR: f64 = std::f64::consts::SQRT_2;

/// The slow end by the rates at all positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlowEnd {
    /// The device has none.
    Absent,
    /// It begins at this address.
    From(u64),
    /// The rates vary so much that they would hide one.
    Hidden,
}

/// A border, with the evidence that it is not due to chance.
#[derive(Debug, Clone, Copy)]
struct Border {
    /// The first part beyond it.
    first: usize,
    /// The log-likelihood of a share of fast parts on each side, less that of one share for both.
    evidence: f64,
}

/// The slow end of a device by its writes and by its reads: a certain one of either counts. A
/// device that was not moved whole in a direction has none by it.
pub(super) fn slow_end(measured: &AcceptMeasurement) -> SlowEnd {
    let mut is_hidden = false;
    let mut uneven_directions = 0;
    for direction in [Direction::Write, Direction::Read] {
        let Some(rates) = cell_rates(measured, direction) else {
            continue;
        };
        match slow_region(&rates, noise_of(measured, direction)) {
            SlowRegion::From(first) => return SlowEnd::From(measured.cell_offset(first)),
            SlowRegion::Possible => is_hidden = true,
            SlowRegion::Absent => {}
        }
        if is_uneven(&rates) {
            uneven_directions += 1;
        }
    }
    // A full cache makes only writes uneven. A busy machine makes both directions uneven.
    if is_hidden || uneven_directions == 2 {
        SlowEnd::Hidden
    } else {
        SlowEnd::Absent
    }
}

/// The cause that makes parts slower, besides the disk itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noise {
    /// The machine: it adds the same time on average to parts anywhere.
    Added,
    /// A cache was full after some writes: the later ones took many times as long.
    FullCache,
}

/// The noise of one direction: a cliff over the writes is that of a full cache.
fn noise_of(measured: &AcceptMeasurement, direction: Direction) -> Noise {
    if direction == Direction::Write && cliff(&measured.write_course).is_some() {
        Noise::FullCache
    } else {
        Noise::Added
    }
}

/// The slow region at the end of a device by the rates of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlowRegion {
    /// There is none.
    Absent,
    /// It surely begins with the part of this index.
    From(usize),
    /// There may be one.
    Possible,
}

/// The slow region by where the fast parts lie; where they show none, by the ranks of all parts.
fn slow_region(rates: &[f64], noise: Noise) -> SlowRegion {
    let by_fast_parts = match likeliest_border(rates) {
        Some(border) => judge_border(rates, border),
        None => SlowRegion::Absent,
    };
    let is_absent = by_fast_parts == SlowRegion::Absent;
    if is_absent && noise == Noise::Added && differs_behind_noise(rates) {
        SlowRegion::Possible
    } else {
        by_fast_parts
    }
}

/// The slow region beyond a border, by the rates on both sides.
fn judge_border(rates: &[f64], border: Border) -> SlowRegion {
    let before = sorted(&rates[..border.first]);
    let beyond = sorted(&rates[border.first..]);
    let usual = quantile(&before, 0.5);
    let fastest = quantile(&before, FASTEST_QUANTILE);
    let fastest_beyond = quantile(&beyond, FASTEST_QUANTILE);
    let is_slower = fastest >= SLOWER_TIMES * fastest_beyond;
    let is_usual = usual >= ZONES_TIMES * fastest_beyond;
    if is_slower && is_usual && border.evidence >= EVIDENCE_CERTAIN {
        return SlowRegion::From(border.first);
    }
    // Noise that halves the usual rate may be in the fastest parts, too.
    let delay_factor = fastest / usual.max(1.0);
    if fastest * delay_factor >= SLOWER_TIMES * fastest_beyond
        && border.evidence >= EVIDENCE_POSSIBLE
    {
        SlowRegion::Possible
    } else {
        SlowRegion::Absent
    }
}

/// The border that separates fast parts from the others best; `None` where no border does.
fn likeliest_border(rates: &[f64]) -> Option<Border> {
    let all = sorted(rates);
    let (slowest, fastest) = (all.first()?, all.last()?);
    let mut best: Option<Border> = None;
    let mut fast_rate = slowest.max(1.0) * ZONES_TIMES;
    while fast_rate <= *fastest {
        if let Some(border) = border_of_rate(rates, fast_rate)
            && best.is_none_or(|known| known.evidence < border.evidence)
        {
            best = Some(border);
        }
        fast_rate *= TRIED_RATE_FACTOR;
    }
    best
}

/// The best border where parts from this rate on are fast; beyond it those from half of it on.
fn border_of_rate(rates: &[f64], fast_rate: f64) -> Option<Border> {
    let mut beyond = FastParts::default();
    for rate in rates {
        beyond.add(*rate >= fast_rate / ZONES_TIMES);
    }
    let mut before = FastParts::default();
    let mut best: Option<Border> = None;
    for (index, rate) in rates.iter().enumerate() {
        before.add(*rate >= fast_rate);
        beyond.remove(*rate >= fast_rate / ZONES_TIMES);
        if before.count < SIDE_MIN || beyond.count < SIDE_MIN {
            continue;
        }
        if beyond.share() > FAST_BEYOND_MAX || before.share() <= beyond.share() {
            continue;
        }
        let evidence = before.log_likelihood() + beyond.log_likelihood()
            - before.joined(beyond).log_likelihood();
        if best.is_none_or(|known| known.evidence < evidence) {
            best = Some(Border {
                first: index + 1,
                evidence,
            });
        }
    }
    best
}

/// Returns `true` if so few parts are nearly as fast as the fastest that the others could hide
/// anything.
fn is_uneven(rates: &[f64]) -> bool {
    let fastest = best_rate(&sorted(rates));
    let (mut fast, mut hardly_delayed) = (FastParts::default(), FastParts::default());
    for rate in rates {
        fast.add(rate * SLOWER_TIMES >= fastest);
        hardly_delayed.add(rate * ZONES_TIMES >= fastest);
    }
    fast.share() < FAST_SHARE_MIN || hardly_delayed.share() < HARDLY_DELAYED_SHARE_MIN
}

/// The rate that two parts reach: a single one may have come from a cache of the disk.
fn best_rate(sorted: &[f64]) -> f64 {
    let place = sorted.len().saturating_sub(2);
    sorted.get(place).copied().unwrap_or(0.0)
}

/// Returns `true` if the parts beyond a border take longer by more than zones explain, while noise
/// hides the time that the disk itself takes.
fn differs_behind_noise(rates: &[f64]) -> bool {
    let Some(border) = border_of_ranks(rates) else {
        return false;
    };
    let before = sorted(&rates[..border]);
    let beyond = sorted(&rates[border..]);
    // Times that a part takes: noise adds to them.
    let usual = 1.0 / quantile(&before, 0.5).max(1.0);
    let usual_beyond = 1.0 / quantile(&beyond, 0.5).max(1.0);
    let least = 1.0 / best_rate(&before).max(1.0);
    let difference = usual_beyond - usual;
    // The fastest part may have been delayed by as much as the usual one.
    let own = least - (usual - least);
    difference > ZONES_DIFFERENCE_MAX * least && own + difference >= SLOWER_TIMES * own
}

/// The border beyond which parts are slower by the sum of their ranks (Mann and Whitney); `None`
/// where chance explains it.
fn border_of_ranks(rates: &[f64]) -> Option<usize> {
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by(|one, other| rates[*one].total_cmp(&rates[*other]));
    let mut ranks = vec![0.0; rates.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index] = rank as f64;
    }
    let count = rates.len() as f64;
    let mut most_distance = RANK_DEVIATIONS_MIN;
    let mut first_beyond = None;
    let mut sum = 0.0;
    for (index, rank) in ranks.iter().enumerate() {
        sum += rank;
        let before = (index + 1) as f64;
        let beyond = count - before;
        if before < SIDE_MIN as f64 || beyond < SIDE_MIN as f64 {
            continue;
        }
        let expected = before * (count - 1.0) / 2.0;
        let deviation = (before * beyond * (count + 1.0) / 12.0).sqrt();
        let distance = (sum - expected) / deviation;
        if distance > most_distance {
            most_distance = distance;
            first_beyond = Some(index + 1);
        }
    }
    first_beyond
}

/// The number of fast parts in a region.
#[derive(Debug, Clone, Copy, Default)]
struct FastParts {
    fast: usize,
    count: usize,
}

impl FastParts {
    fn add(&mut self, is_fast: bool) {
        self.fast += usize::from(is_fast);
        self.count += 1;
    }

    fn remove(&mut self, is_fast: bool) {
        self.fast -= usize::from(is_fast);
        self.count -= 1;
    }

    fn joined(self, other: Self) -> Self {
        Self {
            fast: self.fast + other.fast,
            count: self.count + other.count,
        }
    }

    fn share(self) -> f64 {
        self.fast as f64 / self.count.max(1) as f64
    }

    /// The log-likelihood of these parts if each is fast with the probability of their share.
    fn log_likelihood(self) -> f64 {
        let (fast, slow) = (self.fast as f64, (self.count - self.fast) as f64);
        let mut sum = 0.0;
        for part in [fast, slow] {
            if part > 0.0 {
                sum += part * (part / self.count as f64).ln();
            }
        }
        sum
    }
}
