//! Zipf-distributed blocks by rejection-inversion (Hörmann & Derflinger 1996): no table, whatever the number of blocks.

use crate::random::Random;

/// Draws blocks 0..n so that the k-th most popular one comes in proportion to k^−theta.
#[derive(Debug, Clone)]
pub struct Zipf {
    n: u64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

/// A prime above any number of blocks of a device; a multiple of it modulo n is a permutation of 0..n, which scatters the popular blocks.
const SCATTER: u64 = 0xFFFF_FFFF_FFFF_FFC5;

impl Zipf {
    /// For `n` blocks.
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self { n: n.max(1), theta, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n as f64 + 0.5);
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
        log * if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 }
    }

    fn inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.theta)).max(-1.0);
        (x * if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 }).exp()
    }

    /// The next rank, from 1 (the most popular) to n.
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = (x + 0.5).clamp(1.0, self.n as f64).floor();
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64;
            }
        }
    }

    /// The next block, from 0 to n − 1.
    pub fn block(&self, random: &mut Random) -> u64 {
        let rank = self.rank(random);
        (u128::from(rank) * u128::from(SCATTER) % u128::from(self.n)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_law() {
        let (zipf, mut random) = (Zipf::new(1000, 1.1), Random::new(3, 0));
        let mut counts = vec![0f64; 1001];
        let draws = 200_000;
        (0..draws).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1.0);
        let norm: f64 = (1..=1000).map(|k| f64::from(k).powf(-1.1)).sum();
        for k in [1u32, 2, 5, 20] {
            let expected = f64::from(draws) * f64::from(k).powf(-1.1) / norm;
            let seen = counts[k as usize];
            assert!((seen - expected).abs() < 6.0 * expected.sqrt(), "rank {k}: {seen} of {expected}");
        }
    }

    #[test]
    fn every_block_can_be_drawn() {
        let (zipf, mut random) = (Zipf::new(7, 0.5), Random::new(3, 0));
        let mut seen = [false; 7];
        (0..2000).for_each(|_| seen[zipf.block(&mut random) as usize] = true);
        assert_eq!(seen, [true; 7]);
    }
}
