//! Random numbers for tests: the same for the same seed, on every machine.

/// A small generator of random numbers, repeatable by its seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub u64);

impl Dice {
    /// Evenly from 0 to 1.
    pub fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly between two values.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// One of the whole numbers from `low` to `high`.
    pub fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + (self.share() * (high - low + 1) as f64) as u64
    }

    /// Normally distributed with standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.share()).ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }
}
