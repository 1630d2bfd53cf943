//! Decides whether a measured rate is a documented limit of a cloud volume, and whether it is
//! round, as limits that somebody chose are. Sources: docs.aws.amazon.com/ebs (volume types),
//! learn.microsoft.com/azure (managed disk types), cloud.google.com/compute/docs/disks/performance;
//! read in November 2026.

use crate::estimate::LIMITER_FALL_MIN;
use diskproof_model::target::{Layer, TargetIdentity};

/// A measured rate is that of a documented limit if it differs by at most this share: the rate of a
/// token bucket is exact. Chosen, not measured.
const LIMIT_SHARE: f64 = 0.002;
/// A rate is round if it differs from a round figure by at most this share. It is smaller than that
/// of documented limits, because there are many round figures. With it, about one rate
/// in ten is round, of rates in bytes one in seven.
const ROUND_SHARE: f64 = 0.001;
/// A gibibyte in bytes.
const GIB: f64 = (1u64 << 30) as f64;
/// A mebibyte in bytes.
const MIB: f64 = (1u64 << 20) as f64;

/// Usual bandwidths that are powers of two, or have three digits, in MB or MiB per second.
const USUAL_BANDWIDTHS: [f64; 7] = [32.0, 64.0, 125.0, 128.0, 256.0, 512.0, 1024.0];
/// The words by which disks of providers name themselves, in their vendor or model.
const PROVIDERS: [&str; 4] = [
    "Amazon Elastic Block Store",
    "Msft",
    "Google",
    "nvme_card-pd",
];

/// A type of volume with fixed limits.
struct VolumeType {
    /// Its name in a finding.
    name: &'static str,
    /// The limits that its volumes have in operations per second.
    iops: &'static [f64],
    /// The limits that its volumes have in bytes per second.
    bytes_per_second: &'static [f64],
}

impl VolumeType {
    fn has_limit(&self, rate: f64, unit: &str) -> bool {
        let limits = match unit {
            "1/s" => self.iops,
            _ => self.bytes_per_second,
        };
        limits
            .iter()
            .any(|limit| are_near(rate, *limit, LIMIT_SHARE))
    }
}

/// The limits of a gp3 volume for which nothing more is provisioned.
const GP3: VolumeType = VolumeType {
    name: "EBS gp3 as delivered",
    iops: &[3000.0],
    bytes_per_second: &[125.0 * MIB],
};
/// The limits of all sizes, which the size of the disk does not separate: tiers can be raised.
const AZURE: VolumeType = VolumeType {
    name: "an Azure premium SSD tier (P4 to P80)",
    iops: &[
        120.0, 240.0, 500.0, 1100.0, 2300.0, 5000.0, 7500.0, 16_000.0, 18_000.0, 20_000.0,
    ],
    bytes_per_second: &[
        25e6, 50e6, 100e6, 125e6, 150e6, 200e6, 250e6, 500e6, 750e6, 900e6,
    ],
};

/// A type of volume whose limit grows with its size, in operations per second.
struct SizedType {
    /// Its name in a finding.
    name: &'static str,
    /// The limit of a volume without a size.
    base: f64,
    /// The limit grows by this with each GiB.
    per_gib: f64,
}

/// Types of Compute Engine.
const GOOGLE: [SizedType; 4] = [
    SizedType {
        name: "a Google balanced persistent disk of this size",
        base: 3000.0,
        per_gib: 6.0,
    },
    SizedType {
        name: "a Google SSD persistent disk of this size",
        base: 6000.0,
        per_gib: 30.0,
    },
    SizedType {
        name: "a Google standard persistent disk of this size",
        base: 0.0,
        per_gib: 0.75,
    },
    SizedType {
        name: "a Google standard persistent disk of this size",
        base: 0.0,
        per_gib: 1.5,
    },
];

/// Operations per second that a gp2 volume has for ever, for each GiB.
const GP2_IOPS_PER_GIB: f64 = 3.0;
/// The least that a gp2 volume has for ever, however small it is.
const GP2_IOPS_MIN: f64 = 100.0;
/// The most that a gp2 volume has, however large it is.
const GP2_IOPS_MAX: f64 = 16_000.0;
/// Operations per second of a smaller gp2 volume until its credit ends.
const GP2_IOPS_BURST: f64 = 3000.0;
/// The size of gp2 volumes up to which the smaller bandwidth is their limit.
const GP2_SMALL_GIB: f64 = 170.0;
/// The bandwidth of small gp2 volumes.
const GP2_SMALL_BYTES_PER_SECOND: f64 = 128.0 * MIB;
/// The bandwidth of all other gp2 volumes.
const GP2_BYTES_PER_SECOND: f64 = 250.0 * MIB;
/// The largest request that counts as one operation. A volume that reaches its bandwidth with such
/// requests by credit only loses that bandwidth with the credit.
const GP2_OPERATION_BYTES: f64 = 256.0 * 1024.0;

/// A documented limit of a volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DocumentedLimit {
    /// The name of the volume's type, or of the types that it may be, in a finding.
    pub(crate) volume: String,
    /// True if the volume has it for ever, false if it may be that of a burst.
    pub(crate) lasts: bool,
}

impl DocumentedLimit {
    fn lasting(volume: impl Into<String>) -> Self {
        Self {
            volume: volume.into(),
            lasts: true,
        }
    }
}

/// The documented limit that this rate equals; `None` where it equals none, or where the disk below
/// does not name its provider. `unit` is that of the rate: `1/s` or `B/s`.
pub(crate) fn documented_limit(
    target: &TargetIdentity,
    rate: f64,
    unit: &str,
) -> Option<DocumentedLimit> {
    let disk = only_disk(target)?;
    let size_gib = disk.size_bytes as f64 / GIB;
    if is_named(disk, "Amazon Elastic Block Store") {
        return ebs_limit(size_gib, rate, unit);
    }
    if is_named(disk, "Msft") && AZURE.has_limit(rate, unit) {
        return Some(DocumentedLimit::lasting(AZURE.name));
    }
    if unit == "1/s" && (is_named(disk, "Google") || is_named(disk, "nvme_card-pd")) {
        let found = GOOGLE
            .iter()
            .find(|one| are_near(rate, one.base + one.per_gib * size_gib, LIMIT_SHARE))?;
        return Some(DocumentedLimit::lasting(found.name));
    }
    None
}

/// The disk below a target; `None` where there are several.
fn only_disk(target: &TargetIdentity) -> Option<&Layer> {
    let mut disks = target.disks();
    let disk = disks.next()?;
    match disks.next() {
        Some(_) => None,
        None => Some(disk),
    }
}

/// The limit of an EBS volume, which does not report its type: what gp3 has for ever, a smaller gp2
/// volume has until its credit ends.
fn ebs_limit(size_gib: f64, rate: f64, unit: &str) -> Option<DocumentedLimit> {
    let gp2 = gp2_limit(size_gib, rate, unit);
    if !GP3.has_limit(rate, unit) {
        return gp2;
    }
    match gp2 {
        Some(burst) if !burst.lasts => Some(DocumentedLimit {
            volume: format!("{}, or of {}", GP3.name, burst.volume),
            lasts: false,
        }),
        _ => Some(DocumentedLimit::lasting(GP3.name)),
    }
}

/// The rate that a volume falls back to when its credit ends, if this rate is documented as that of
/// its burst; `None` where it is not, or where the base is hardly lower: a smaller fall cannot be
/// distinguished from chance, so no test would show it.
pub(crate) fn base_of_burst(target: &TargetIdentity, rate: f64, unit: &str) -> Option<f64> {
    gp2_base_of_burst(target, rate, unit).filter(|base| rate >= LIMITER_FALL_MIN * base)
}

/// True if a rate is documented as that of a burst whose end is no fall that a test would show.
pub(crate) fn is_hardly_a_burst(target: &TargetIdentity, rate: f64, unit: &str) -> bool {
    match gp2_base_of_burst(target, rate, unit) {
        Some(base) => rate < LIMITER_FALL_MIN * base,
        None => false,
    }
}

/// What a gp2 volume has for ever, if this rate is that of its burst.
fn gp2_base_of_burst(target: &TargetIdentity, rate: f64, unit: &str) -> Option<f64> {
    let disk = only_disk(target)?;
    let base = gp2_base_iops(disk.size_bytes as f64 / GIB);
    let is_burst = unit == "1/s"
        && is_named(disk, "Amazon Elastic Block Store")
        && base < GP2_IOPS_BURST
        && are_near(rate, GP2_IOPS_BURST, LIMIT_SHARE);
    if is_burst { Some(base) } else { None }
}

/// Operations per second that a gp2 volume of this size has for ever.
fn gp2_base_iops(size_gib: f64) -> f64 {
    (GP2_IOPS_PER_GIB * size_gib).clamp(GP2_IOPS_MIN, GP2_IOPS_MAX)
}

/// The documented limit of a gp2 volume of this size that the rate equals, as in
/// [`documented_limit`].
fn gp2_limit(size_gib: f64, rate: f64, unit: &str) -> Option<DocumentedLimit> {
    let base_iops = gp2_base_iops(size_gib);
    if unit == "1/s" {
        if are_near(rate, base_iops, LIMIT_SHARE) {
            let volume = format!("EBS gp2 with {size_gib:.0} GiB");
            return Some(DocumentedLimit::lasting(volume));
        }
        if base_iops < GP2_IOPS_BURST && are_near(rate, GP2_IOPS_BURST, LIMIT_SHARE) {
            return Some(DocumentedLimit {
                volume: "a burst of EBS gp2".to_owned(),
                lasts: false,
            });
        }
        return None;
    }
    let limit = if size_gib <= GP2_SMALL_GIB {
        GP2_SMALL_BYTES_PER_SECOND
    } else {
        GP2_BYTES_PER_SECOND
    };
    are_near(rate, limit, LIMIT_SHARE).then(|| DocumentedLimit {
        volume: "EBS gp2".to_owned(),
        lasts: base_iops * GP2_OPERATION_BYTES >= limit,
    })
}

/// Returns `true` if the vendor or the model of a disk contains these words.
fn is_named(disk: &Layer, words: &str) -> bool {
    let names = [&disk.vendor, &disk.model];
    names.into_iter().flatten().any(|name| name.contains(words))
}

/// True if a rate differs from a limit by at most this share of the limit.
fn are_near(rate: f64, limit: f64, share: f64) -> bool {
    limit > 0.0 && (rate / limit - 1.0).abs() <= share
}

/// Returns `true` if a rate has at most two digits that are not zero: in operations per second, or
/// in MB or MiB per second. Some usual bandwidths count as round, too.
pub(crate) fn is_round(rate: f64, unit: &str) -> bool {
    if unit == "1/s" {
        return has_two_digits(rate);
    }
    is_usual_bandwidth(rate / MIB)
        || is_usual_bandwidth(rate / 1e6)
        || has_two_digits(rate)
        || has_two_digits(rate / MIB * 1e6)
}

/// True if a disk below the target names the provider of a cloud: what limits it is its type.
pub(crate) fn names_provider(target: &TargetIdentity) -> bool {
    target
        .disks()
        .any(|disk| PROVIDERS.iter().any(|words| is_named(disk, words)))
}

/// True if somebody rather chose a rate in bytes per second than that a link has it: it is a usual
/// bandwidth, or has at most two digits in MB or MiB, the second of which is 0 or 5 unless the
/// first is 1. One rate of a link in twenty is near such a figure by chance.
pub(crate) fn is_chosen(rate: f64) -> bool {
    for megabytes in [rate / MIB, rate / 1e6] {
        if is_usual_bandwidth(megabytes) || has_coarse_step(megabytes) {
            return true;
        }
    }
    false
}

/// True near 10, 11, 12 to 20, 25, 30, 35 to 100 of each decade.
fn has_coarse_step(megabytes: f64) -> bool {
    let decade = 10f64.powf(megabytes.max(1.0).log10().floor());
    let share = if megabytes / decade < 2.0 { 0.1 } else { 0.5 };
    let step = share * decade;
    are_near(megabytes, (megabytes / step).round() * step, ROUND_SHARE)
}

/// True near a bandwidth that volumes are sold with.
fn is_usual_bandwidth(megabytes: f64) -> bool {
    USUAL_BANDWIDTHS
        .iter()
        .any(|usual| are_near(megabytes, *usual, ROUND_SHARE))
}

/// True if a rate has at most two digits that are not zero, within [`ROUND_SHARE`].
fn has_two_digits(rate: f64) -> bool {
    let step = 10f64.powf((rate.max(1.0)).log10().floor() - 1.0);
    are_near(rate, (rate / step).round() * step, ROUND_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn volume(model: &str, vendor: &str, gib: u64) -> TargetIdentity {
        let mut target = fixture::target();
        for layer in &mut target.layers {
            layer.model = Some(model.to_owned());
            layer.vendor = Some(vendor.to_owned());
            layer.size_bytes = gib << 30;
        }
        target
    }

    /// The volume's name, and whether the rate lasts.
    fn limit_of(target: &TargetIdentity, rate: f64, unit: &str) -> Option<(String, bool)> {
        let limit = documented_limit(target, rate, unit)?;
        Some((limit.volume, limit.lasts))
    }

    #[test]
    fn documented_limits_are_recognised_by_maker_and_size() {
        let azure = volume("Virtual Disk", "Msft", 128);
        let (premium, lasts) = limit_of(&azure, 500.0, "1/s").unwrap();
        assert!(lasts && premium.contains("P4 to P80"), "{premium}");
        assert!(limit_of(&azure, 100.1e6, "B/s").is_some());
        let google = volume("PersistentDisk", "Google", 100);
        let (balanced, lasts) = limit_of(&google, 3600.0, "1/s").unwrap();
        assert!(lasts && balanced.contains("balanced"), "{balanced}");
        let own = volume("SAMSUNG MZ7LH960", "ATA", 100);
        assert_eq!(limit_of(&own, 3000.0, "1/s"), None);
    }

    /// 3000/s is the base of gp3 and the burst of gp2, whose base is 3/s for each GiB.
    #[test]
    fn burst_of_gp2_does_not_last_and_its_base_does() {
        let small = volume("Amazon Elastic Block Store", "", 100);
        let (either, lasts) = limit_of(&small, 3000.4, "1/s").unwrap();
        assert!(!lasts && either.contains("gp3") && either.contains("gp2"));
        let base = ("EBS gp2 with 100 GiB".to_owned(), true);
        assert_eq!(limit_of(&small, 300.1, "1/s"), Some(base));
        assert_eq!(limit_of(&small, 1300.0, "1/s"), None);
        assert_eq!(
            limit_of(&small, 128.0 * MIB, "B/s"),
            Some(("EBS gp2".to_owned(), false))
        );
        let tiny = volume("Amazon Elastic Block Store", "", 8);
        assert!(limit_of(&tiny, 100.0, "1/s").is_some_and(|(_, lasts)| lasts));
        let large = volume("Amazon Elastic Block Store", "", 2000);
        let gp3 = ("EBS gp3 as delivered".to_owned(), true);
        assert_eq!(limit_of(&large, 3000.0, "1/s"), Some(gp3));
        assert!(limit_of(&large, 6000.0, "1/s").is_some_and(|(_, lasts)| lasts));
        assert!(limit_of(&large, 250.0 * MIB, "B/s").is_some_and(|(_, lasts)| lasts));
    }

    #[test]
    fn chosen_rates_have_coarse_steps() {
        for rate in [30e6, 110e6, 250e6, 450e6, 32.0 * MIB, 999.9e6, 1024.0 * MIB] {
            assert!(is_chosen(rate), "{rate}");
        }
        for rate in [33e6, 118e6, 270e6, 430e6, 545e6, 520.0 * MIB] {
            assert!(!is_chosen(rate), "{rate}");
        }
    }

    #[test]
    fn round_figures_have_two_digits() {
        for rate in [300.0, 3000.5, 500.0, 16_000.0, 1100.0, 75.0] {
            assert!(is_round(rate, "1/s"), "{rate}");
        }
        for rate in [3070.0, 1234.0, 3005.0] {
            assert!(!is_round(rate, "1/s"), "{rate}");
        }
        for rate in [20e6, 120.0 * MIB, 125e6, 128.0 * MIB, 250e6] {
            assert!(is_round(rate, "B/s"), "{rate}");
        }
    }
}
