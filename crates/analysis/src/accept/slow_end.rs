//! Whether a device is many times slower beyond a border, told from noise.
//!
//! A busy machine, stalls and repeated requests only make parts slower, and as the pass goes in
//! random order they hit parts anywhere. So the fastest parts of a region show what it can do, and
//! fast parts that are all on one side show a border, however slow the others of that side are.
//!
//! Where nothing was as fast as the disk, this says nothing: a disk that needs 1 ms a part, and 40
//! beyond its end, took 54 and 101 on a machine at a load of 10. Noise adds the same to both sides,
//! so their difference is the disk's, and may be many times what the disk itself needs.

use super::cells::cell_offset;
use super::rates::{Direction, cell_rates, cliff, quantile, sorted};
use diskproof_model::accept::AcceptMeasurement;

/// What is beyond the border is at least so many times slower.
const SLOWER: f64 = 4.0;
/// The zones of a rotating disk differ by this factor: a part before the border counts as fast only
/// where it would still be fast in the slowest zone.
const ZONES: f64 = 2.0;
/// Parts on each side of a border.
const SIDE_MIN: usize = 4;
/// At most this share of the parts beyond a border is fast.
const FAST_BEYOND_MAX: f64 = 0.1;
/// The share of the parts that show what a region can do.
const FASTEST: f64 = 0.9;
/// A border is certain from this evidence on: chance puts the fast parts so in one of e^12 orders.
const CERTAIN: f64 = 12.0;
/// A border is not excluded from this evidence on: chance puts the fast parts so in one of e^7
/// orders, about one of a thousand.
const POSSIBLE: f64 = 7.0;
/// Where fewer of all parts are nearly as fast as the fastest, the slow ones could all lie beyond a
/// border.
const FAST_MIN: f64 = 0.25;
/// A part within the factor of zones from the fastest was hardly delayed. Where fewer of all parts
/// were not, even the fastest may have been.
const HARDLY_DELAYED_MIN: f64 = 0.1;
/// The inner half of a rotating disk takes longer than the outer one by half of what its fastest
/// part takes. A difference beyond this share is no zone's.
const ZONES_DIFFER: f64 = 0.75;
/// Standard deviations of a rank sum: of a hundred borders that are looked at, chance makes none.
const RANKS_DIFFER: f64 = 4.5;
/// The step between two rates that are tried as the least of a fast part.
const STEP: f64 = std::f64::consts::SQRT_2;

/// What the rates by position tell of a slow end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlowEnd {
    /// The device has none.
    Absent,
    /// It begins at this address.
    From(u64),
    /// The rates vary so much that they would hide one.
    Hidden,
}

/// A border, and how certain it is that it is none by chance.
#[derive(Debug, Clone, Copy)]
struct Border {
    /// The first part beyond it.
    first: usize,
    /// The logarithm of the likelihood of two shares of fast parts over that of one.
    evidence: f64,
}

/// Whether the device has a slow end, by its writes or by its reads.
pub(super) fn slow_end(measured: &AcceptMeasurement) -> SlowEnd {
    let mut is_hidden = false;
    let mut uneven = 0;
    for direction in [Direction::Write, Direction::Read] {
        let Some(rates) = cell_rates(measured, direction) else {
            continue;
        };
        match slow_part(&rates, noise_of(measured, direction)) {
            SlowPart::Certain(first) => return SlowEnd::From(cell_offset(measured, first)),
            SlowPart::Possible => is_hidden = true,
            SlowPart::Absent => {}
        }
        uneven += u32::from(is_uneven(&rates));
    }
    // A full cache makes writes uneven, and a busy machine all.
    if is_hidden || uneven == 2 {
        SlowEnd::Hidden
    } else {
        SlowEnd::Absent
    }
}

/// What makes parts slower, besides the disk itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noise {
    /// The machine: it adds the same time on average to parts anywhere.
    Added,
    /// A cache was full after some writes: the later ones took many times as long.
    FullCache,
}

fn noise_of(measured: &AcceptMeasurement, direction: Direction) -> Noise {
    if direction == Direction::Write && cliff(&measured.write_course).is_some() {
        Noise::FullCache
    } else {
        Noise::Added
    }
}

/// What the rates of one direction tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlowPart {
    Absent,
    /// From this part on.
    Certain(usize),
    Possible,
}

fn slow_part(rates: &[f64], noise: Noise) -> SlowPart {
    let by_fast_parts = match likeliest_border(rates) {
        Some(border) => judged(rates, border),
        None => SlowPart::Absent,
    };
    let is_absent = by_fast_parts == SlowPart::Absent;
    if is_absent && noise == Noise::Added && differs_behind_noise(rates) {
        SlowPart::Possible
    } else {
        by_fast_parts
    }
}

/// What a border by the fast parts says.
fn judged(rates: &[f64], border: Border) -> SlowPart {
    let before = sorted(&rates[..border.first]);
    let beyond = sorted(&rates[border.first..]);
    let usual = quantile(&before, 0.5);
    let fastest = quantile(&before, FASTEST);
    let fastest_beyond = quantile(&beyond, FASTEST);
    let is_slower = fastest >= SLOWER * fastest_beyond;
    let is_usual = usual >= ZONES * fastest_beyond;
    if is_slower && is_usual && border.evidence >= CERTAIN {
        return SlowPart::Certain(border.first);
    }
    // Noise that halves the usual rate may be in the fastest parts, too.
    let noise = fastest / usual.max(1.0);
    if fastest * noise >= SLOWER * fastest_beyond && border.evidence >= POSSIBLE {
        SlowPart::Possible
    } else {
        SlowPart::Absent
    }
}

/// The border that parts the fast parts from the others best.
fn likeliest_border(rates: &[f64]) -> Option<Border> {
    let all = sorted(rates);
    let (slowest, fastest) = (all.first()?, all.last()?);
    let mut best: Option<Border> = None;
    let mut fast_rate = slowest.max(1.0) * ZONES;
    while fast_rate <= *fastest {
        if let Some(border) = border_of_rate(rates, fast_rate)
            && best.is_none_or(|known| known.evidence < border.evidence)
        {
            best = Some(border);
        }
        fast_rate *= STEP;
    }
    best
}

/// The best border where parts from this rate on are fast; beyond it those from half of it on.
fn border_of_rate(rates: &[f64], fast_rate: f64) -> Option<Border> {
    let mut beyond = FastParts::default();
    for rate in rates {
        beyond.add(*rate >= fast_rate / ZONES);
    }
    let mut before = FastParts::default();
    let mut best: Option<Border> = None;
    for (index, rate) in rates.iter().enumerate() {
        before.add(*rate >= fast_rate);
        beyond.remove(*rate >= fast_rate / ZONES);
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

/// Whether so few parts are nearly as fast as the fastest that the others could hide anything.
fn is_uneven(rates: &[f64]) -> bool {
    let fastest = best_rate(&sorted(rates));
    let (mut fast, mut hardly_delayed) = (FastParts::default(), FastParts::default());
    for rate in rates {
        fast.add(rate * SLOWER >= fastest);
        hardly_delayed.add(rate * ZONES >= fastest);
    }
    fast.share() < FAST_MIN || hardly_delayed.share() < HARDLY_DELAYED_MIN
}

/// The rate that two parts reach: a single one may have come from a cache of the disk.
fn best_rate(sorted: &[f64]) -> f64 {
    let place = sorted.len().saturating_sub(2);
    sorted.get(place).copied().unwrap_or(0.0)
}

/// Whether the parts beyond a border take longer by more than zones explain, while noise hides how
/// long the disk itself takes.
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
    // As much as the usual part was delayed, the fastest one may have been.
    let own = least - (usual - least);
    difference > ZONES_DIFFER * least && own + difference >= SLOWER * own
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
    let mut most_distance = RANKS_DIFFER;
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

/// How many parts are fast, of how many.
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

    /// That of their own share, a Bernoulli variable.
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
