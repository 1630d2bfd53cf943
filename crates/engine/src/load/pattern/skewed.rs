//! Blocks of which some are more popular than others, by the laws that fio knows. All laws but
//! zones give a rank; popular ranks are scattered over the extent.

use super::zipf::{Scattered, Zipf};
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
    let mut moved = i128::from(match spread {
        0 => 0,
        spread => random.below(spread),
    }) - i128::from(spread / 2);
    // As in fio, a move beyond either end is halved until it is not.
    while !(0..i128::from(n)).contains(&(mean + moved)) && moved != 0 {
        moved /= 2;
    }
    (mean + moved).clamp(0, i128::from(n - 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    /// The shares of operations, most popular block first.
    fn popularity(distribution: Distribution, n: u64) -> Vec<f64> {
        let law = SkewedBlocks::new(distribution, n).unwrap();
        let (mut counts, mut random) = (vec![0u64; n as usize], Random::new(11, 0));
        (0..DRAWS).for_each(|_| counts[law.block(&mut random) as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
            .iter()
            .map(|count| *count as f64 / DRAWS as f64)
            .collect()
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
            let drawn: Vec<f64> = (0..DRAWS)
                .map(|_| normal(n, spread, random) as f64)
                .collect();
            let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
            let square = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            (mean / n as f64, square.sqrt() / n as f64)
        };
        let (mean, deviation) = ranks(0, &mut random);
        assert!((mean - 0.5).abs() < 0.001 && (deviation - 1.0 / 12.0).abs() < 0.001);
        // A uniform move of a tenth of the range adds a variance of 0.1² / 12.
        let (mean, deviation) = ranks(n / 10, &mut random);
        let wanted = (1.0 / 144.0 + 0.01 / 12.0_f64).sqrt();
        assert!(
            (mean - 0.5).abs() < 0.001 && (deviation - wanted).abs() < 0.001,
            "{deviation}"
        );
    }

    #[test]
    fn laws_stay_inside_the_smallest_extents() {
        for n in [1, 2, 3, 5] {
            for law in [
                Distribution::Pareto { share: 0.9 },
                Distribution::Normal {
                    spread_percent: 99.0,
                },
                Distribution::Normal {
                    spread_percent: 0.0,
                },
            ] {
                let law = SkewedBlocks::new(law, n).unwrap();
                let mut random = Random::new(1, n);
                assert!((0..1000).all(|_| law.block(&mut random) < n));
            }
        }
    }
}
