//! The fate of acknowledged writes when the power fails.

/// The honesty of the cache about durable data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheModel {
    /// Every acknowledged write is durable.
    #[default]
    Durable,
    /// Writes are durable after the next flush. Before it, a share of the sectors is.
    Honest {
        /// Share of written sectors that reach the medium at once, in thousandths.
        destaged_per_mille: u32,
    },
    /// Flushes are acknowledged and ignored.
    Lying {
        /// Share of written sectors that reach the medium at once, in thousandths.
        destaged_per_mille: u32,
    },
}

/// Bytes that reach the medium whole or not at all.
pub const SECTOR_BYTES: u64 = 512;

impl CacheModel {
    /// True if writes go to the medium at once.
    pub fn is_durable(self) -> bool {
        self == Self::Durable
    }

    /// True if a flush makes them durable.
    pub fn obeys_flush(self) -> bool {
        !matches!(self, Self::Lying { .. })
    }

    /// True if this sector, written as the `sequence`-th, reaches the medium at once: scattered,
    /// but the same in each run.
    pub fn destages(self, sector: u64, sequence: u64) -> bool {
        let per_mille = match self {
            Self::Durable => return true,
            Self::Honest { destaged_per_mille } | Self::Lying { destaged_per_mille } => {
                destaged_per_mille
            }
        };
        // Two multipliers and the last step of splitmix64, whose bits are scattered well enough.
        let mut hash = sector.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ sequence.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ (hash >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (hash >> 33) % 1000 < u64::from(per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destaged_share_matches_setting() {
        let share = |per_mille| {
            let cache = CacheModel::Honest {
                destaged_per_mille: per_mille,
            };
            (0..10_000)
                .filter(|n| cache.destages(n % 100, n / 100))
                .count()
        };
        assert_eq!((share(0), share(1000)), (0, 10_000));
        assert!(share(300).abs_diff(3000) < 200, "{}", share(300));
    }

    #[test]
    fn only_lying_cache_ignores_flush() {
        assert!(
            CacheModel::Honest {
                destaged_per_mille: 0
            }
            .obeys_flush()
        );
        assert!(
            !CacheModel::Lying {
                destaged_per_mille: 1000
            }
            .obeys_flush()
        );
        assert!(CacheModel::Durable.is_durable() && CacheModel::Durable.destages(1, 1));
    }
}
