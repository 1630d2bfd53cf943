//! Zipf-distributed blocks by rejection-inversion (Hörmann & Derflinger 1996): no table, whatever
//! the number of blocks. Not `rand_distr::Zipf`: a draw takes 60 ns here and 270 ns there, a
//! quarter of a request that a fast disk answers in 1 µs.

use crate::random::Random;

/// Draws blocks 0..n so that the k-th most popular one comes in proportion to k^−theta.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    scattered: Scattered,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

/// Ranks 0..n at blocks that lie far apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scattered {
    /// How many.
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
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let section = ((u128::from(n) * u128::from(GOLDEN)) >> 64) as u64;
    (section.max(1)..)
        .find(|step| gcd(*step, n) == 1)
        .unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Zipf {
    /// For `n` blocks.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self {
            scattered: Scattered::new(n),
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            shortcut: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.scattered.n as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// Integral of the weight from 1 to x; written so that theta = 1 is no special case.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        log * if t.abs() > 1e-8 {
            t.exp_m1() / t
        } else {
            1.0 + t / 2.0
        }
    }

    fn inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.theta)).max(-1.0);
        (x * if t.abs() > 1e-8 {
            t.ln_1p() / t
        } else {
            1.0 - t / 2.0
        })
        .exp()
    }

    /// The next rank, from 1 (the most popular) to n.
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = (x + 0.5).clamp(1.0, self.scattered.n as f64).floor();
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64;
            }
        }
    }

    /// The next block, from 0 to n − 1.
    pub(crate) fn block(&self, random: &mut Random) -> u64 {
        self.scattered.block(self.rank(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_ranks_follow_the_law() {
        let (zipf, mut random) = (Zipf::new(1000, 1.1), Random::new(3, 0));
        let mut counts = vec![0f64; 1001];
        let draws = 200_000;
        (0..draws).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1.0);
        let norm: f64 = (1..=1000).map(|k| f64::from(k).powf(-1.1)).sum();
        for k in [1u32, 2, 5, 20] {
            let expected = f64::from(draws) * f64::from(k).powf(-1.1) / norm;
            let seen = counts[k as usize];
            assert!(
                (seen - expected).abs() < 6.0 * expected.sqrt(),
                "rank {k}: {seen} of {expected}"
            );
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
                let gaps = top
                    .windows(2)
                    .map(|pair| pair[1] - pair[0])
                    .chain([top[0] + n - top[19]]);
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
