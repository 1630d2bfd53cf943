//! Draws blocks of which some are more popular than others, by three laws that fio knows. Each law
//! draws a rank; the blocks of popular ranks are scattered over the extent.
//!
//! Zipf by rejection-inversion (Hörmann & Derflinger 1996): no table, whatever the number of
//! blocks. Not `rand_distr::Zipf`: a draw takes 60 ns here and 270 ns there, a quarter of a request
//! that a fast disk answers in 1 µs.

use crate::random::Random;
use diskproof_model::plan::Distribution;

/// fio adds so many uniform numbers for a normal one: their mean has a standard deviation of a
/// twelfth of the range.
const UNIFORM_TERMS: u64 = 12;

/// Draws blocks 0..n by a law.
#[derive(Debug, Clone)]
pub(crate) enum SkewedBlocks {
    /// In proportion to a power of the rank.
    Zipf(Zipf),
    /// A power of a uniform number.
    Pareto { scattered: Scattered, power: f64 },
    /// The mean of uniform numbers, moved by up to half of `spread` either way.
    Normal { scattered: Scattered, spread: u64 },
}

impl SkewedBlocks {
    /// For `n` blocks; `None` where no block is more popular because of its rank.
    pub(crate) fn new(distribution: Distribution, n: u64) -> Option<Self> {
        let scattered = Scattered::new(n);
        Some(match distribution {
            Distribution::Zipf { theta } => Self::Zipf(Zipf::new(n, theta)),
            Distribution::Pareto { share } => Self::Pareto {
                scattered,
                power: share.ln() / (1.0 - share).ln(),
            },
            Distribution::Normal { spread_percent } => Self::Normal {
                scattered,
                spread: ((n as f64 * spread_percent / 100.0).ceil() as u64).min(n / 2),
            },
            Distribution::Uniform | Distribution::HotCold { .. } => return None,
        })
    }

    /// The next block, from 0 to n − 1. Not inlined: the other walks share the loop that calls it.
    #[inline(never)]
    pub(crate) fn block(&self, random: &mut Random) -> u64 {
        match self {
            Self::Zipf(zipf) => zipf.block(random),
            Self::Pareto { scattered, power } => {
                scattered.block(pareto(scattered.n, *power, random))
            }
            Self::Normal { scattered, spread } => {
                scattered.block(normal(scattered.n, *spread, random))
            }
        }
    }
}

fn pareto(n: u64, power: f64, random: &mut Random) -> u64 {
    ((n - 1) as f64 * random.unit().powf(power)) as u64
}

fn normal(n: u64, spread: u64, random: &mut Random) -> u64 {
    let sum: u128 = (0..UNIFORM_TERMS)
        .map(|_| u128::from(random.below(n + 1)))
        .sum();
    let mean = sum.div_ceil(u128::from(UNIFORM_TERMS)) as i128;
    let drawn = if spread == 0 { 0 } else { random.below(spread) };
    let mut moved = i128::from(drawn) - i128::from(spread / 2);
    // As in fio, a move beyond either end is halved until it is not.
    while !(0..i128::from(n)).contains(&(mean + moved)) && moved != 0 {
        moved /= 2;
    }
    (mean + moved).clamp(0, i128::from(n - 1)) as u64
}

/// Draws blocks 0..n so that the k-th most popular one comes in proportion to k^−theta. The
/// constants (1.5, 2.5 and 0.5, the borders between ranks) are those of the paper.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    scattered: Scattered,
    law: PowerLaw,
    /// The integral that belongs to the most popular rank.
    integral_first: f64,
    /// The integral up to the border behind the last rank.
    integral_last: f64,
    /// A number that is at most so far below its rank needs no test: `s` of the paper.
    shortcut: f64,
}

impl Zipf {
    /// For `n` blocks.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        let scattered = Scattered::new(n);
        let law = PowerLaw { theta };
        Self {
            integral_first: law.integral(1.5) - 1.0,
            integral_last: law.integral(scattered.n as f64 + 0.5),
            shortcut: 2.0 - law.inverse_integral(law.integral(2.5) - law.weight(2.0)),
            scattered,
            law,
        }
    }

    /// The next block, from 0 to n − 1.
    pub(crate) fn block(&self, random: &mut Random) -> u64 {
        self.scattered.block(self.rank(random))
    }

    /// The next rank, from 1 (the most popular) to n.
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.law.inverse_integral(u);
            let k = (x + 0.5).clamp(1.0, self.scattered.n as f64).floor();
            if k - x <= self.shortcut || u >= self.law.integral(k + 0.5) - self.law.weight(k) {
                return k as u64;
            }
        }
    }
}

/// Below this size of its argument, (exp(t) − 1) / t and its inverse are as exact by the first two
/// terms of their series: the next one is of the order of t², the rounding error of a float.
const SERIES_ARGUMENT_MAX: f64 = 1e-8;

/// The weight x^−theta of a rank, for ranks that are no whole numbers, too.
#[derive(Debug, Clone, Copy)]
struct PowerLaw {
    theta: f64,
}

impl PowerLaw {
    fn weight(self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// Integral of the weight from 1 to x, in a form that has no special case for theta = 1.
    fn integral(self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        log * if t.abs() > SERIES_ARGUMENT_MAX {
            t.exp_m1() / t
        } else {
            1.0 + t / 2.0
        }
    }

    /// The x up to which the integral has this value.
    fn inverse_integral(self, integral: f64) -> f64 {
        let t = (integral * (1.0 - self.theta)).max(-1.0);
        (integral
            * if t.abs() > SERIES_ARGUMENT_MAX {
                t.ln_1p() / t
            } else {
                1.0 - t / 2.0
            })
        .exp()
    }
}

/// Ranks 0..n at blocks that lie far apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scattered {
    /// The number of blocks.
    pub n: u64,
    /// From one rank's block to the next one's, modulo `n`.
    step: u64,
}

impl Scattered {
    /// At least one block.
    pub(crate) fn new(n: u64) -> Self {
        let n = n.max(1);
        let step = scatter(n);
        Self { n, step }
    }

    /// The block of a rank.
    pub(crate) fn block(self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.step) % u128::from(self.n)) as u64
    }
}

/// Steps of the golden section of `n` spread any number of first steps evenly over 0..n (Knuth, The
/// Art of Computer Programming, 6.4): popular blocks must not lie side by side, where a disk's head
/// or cache would find them together. Without a common divisor with `n`, n steps reach every block
/// once.
fn scatter(n: u64) -> u64 {
    /// The larger part of the golden section, 0.618, as a fraction of 2⁶⁴.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let section = ((u128::from(n) * u128::from(GOLDEN)) >> 64) as u64;
    (section.max(1)..)
        .find(|step| gcd(*step, n) == 1)
        .unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    #[track_caller]
    fn near(value: f64, truth: f64, by: f64) {
        assert!((value - truth).abs() < by, "{value} is not {truth} ± {by}");
    }

    /// The shares of operations, most popular block first.
    fn popularity(distribution: Distribution, n: u64) -> Vec<f64> {
        let law = SkewedBlocks::new(distribution, n).unwrap();
        let (mut counts, mut random) = (vec![0u64; n as usize], Random::new(11, 0));
        (0..DRAWS).for_each(|_| counts[law.block(&mut random) as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = |count: &u64| *count as f64 / DRAWS as f64;
        counts.iter().map(share).collect()
    }

    #[test]
    fn pareto_gives_the_popular_share_the_rest_of_the_operations() {
        for share in [0.1, 0.2, 0.4] {
            let shares = popularity(Distribution::Pareto { share }, 1000);
            let hot: f64 = shares[..(share * 1000.0) as usize].iter().sum();
            assert!((hot - (1.0 - share)).abs() < 0.01, "{share}: {hot}");
        }
    }

    #[test]
    fn normal_has_the_deviation_of_twelve_uniform_numbers() {
        let (n, mut random) = (100_000u64, Random::new(5, 0));
        let ranks = |spread: u64, random: &mut Random| -> (f64, f64) {
            let mut draw = || normal(n, spread, random) as f64;
            let drawn: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
            let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
            let square = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            (mean / n as f64, square.sqrt() / n as f64)
        };
        let (mean, deviation) = ranks(0, &mut random);
        near(mean, 0.5, 0.001);
        near(deviation, 1.0 / 12.0, 0.001);
        // A uniform move of a tenth of the range adds a variance of 0.1² / 12.
        let (mean, deviation) = ranks(n / 10, &mut random);
        let wanted = (1.0 / 144.0 + 0.01 / 12.0_f64).sqrt();
        near(mean, 0.5, 0.001);
        near(deviation, wanted, 0.001);
    }

    #[test]
    fn laws_stay_inside_the_smallest_extents() {
        for n in [1, 2, 3, 5] {
            let [wide, narrow] =
                [99.0, 0.0].map(|spread_percent| Distribution::Normal { spread_percent });
            for law in [Distribution::Pareto { share: 0.9 }, wide, narrow] {
                let law = SkewedBlocks::new(law, n).unwrap();
                let mut random = Random::new(1, n);
                assert!((0..1000).all(|_| law.block(&mut random) < n));
            }
        }
    }

    #[test]
    fn zipf_ranks_follow_the_law() {
        let (zipf, mut random) = (Zipf::new(1000, 1.1), Random::new(3, 0));
        let mut counts = vec![0f64; 1001];
        let draws = 200_000;
        (0..draws).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1.0);
        let norm: f64 = (1..=1000).map(|k| f64::from(k).powf(-1.1)).sum();
        for k in [1u32, 2, 5, 20] {
            let expected = f64::from(draws) * f64::from(k).powf(-1.1) / norm;
            near(counts[k as usize], expected, 6.0 * expected.sqrt());
        }
    }

    #[test]
    fn zipf_scatters_popular_blocks_one_rank_each() {
        for n in [1, 2, 3, 7, 100, 4096, 131_072, 131_071, 1 << 28] {
            let zipf = Zipf::new(n, 1.1);
            let block = |rank: u64| zipf.scattered.block(rank);
            let mut first: Vec<u64> = (1..=n.min(5000)).map(block).collect();
            first.sort_unstable();
            first.dedup();
            assert_eq!(first.len() as u64, n.min(5000));
            // Of the twenty most popular, no two are nearer than a third of their mean distance,
            // and no gap is three times as wide.
            if n >= 4096 {
                let mut top: Vec<u64> = (1..=20).map(block).collect();
                top.sort_unstable();
                let gaps = top.windows(2).map(|pair| pair[1] - pair[0]);
                let gaps = gaps.chain([top[0] + n - top[19]]);
                gaps.for_each(|gap| assert!((n / 60..n * 3 / 20).contains(&gap), "{n}: {top:?}"));
            }
        }
    }

    #[test]
    fn zipf_reaches_every_block() {
        let (zipf, mut random) = (Zipf::new(7, 0.5), Random::new(3, 0));
        let mut seen = [false; 7];
        (0..2000).for_each(|_| seen[zipf.block(&mut random) as usize] = true);
        assert_eq!(seen, [true; 7]);
    }
}
