//! The documented limits of cloud volumes by type, and the roundness of a figure, which tells a
//! limit that somebody chose. Sources:
//! docs.aws.amazon.com/ebs (volume types), learn.microsoft.com/azure (managed disk types),
//! cloud.google.com/compute/docs/disks/performance; read in November 2026.

use diskproof_model::target::{Layer, TargetIdentity};

/// A measured rate is that of a documented limit if it differs by at most this share: the rate of a
/// token bucket is exact.
const LIMIT_SHARE: f64 = 0.002;
/// A rate is round if it differs from a round figure by at most this share. It is smaller, since
/// there are many round figures.
const ROUND_SHARE: f64 = 0.001;
/// A gibibyte in bytes.
const GIB: f64 = (1u64 << 30) as f64;
/// A mebibyte in bytes.
const MIB: f64 = (1u64 << 20) as f64;

/// Usual bandwidths with three digits, in MB or MiB per second.
const USUAL_BANDWIDTHS: [f64; 5] = [64.0, 125.0, 128.0, 256.0, 512.0];

/// A type of volume with fixed limits.
struct VolumeType {
    /// Its name in a finding.
    name: &'static str,
    /// The limits that its volumes have in operations per second.
    iops: &'static [f64],
    bytes_per_second: &'static [f64],
}

const EBS: [VolumeType; 2] = [
    VolumeType {
        name: "EBS gp3 as delivered",
        iops: &[3000.0],
        bytes_per_second: &[125.0 * MIB],
    },
    VolumeType {
        name: "EBS gp2",
        iops: &[3000.0, 16_000.0],
        bytes_per_second: &[128.0 * MIB, 250.0 * MIB],
    },
];
const AZURE: [VolumeType; 1] = [VolumeType {
    name: "an Azure premium SSD tier (P4 to P80)",
    iops: &[
        120.0, 240.0, 500.0, 1100.0, 2300.0, 5000.0, 7500.0, 16_000.0, 18_000.0, 20_000.0,
    ],
    bytes_per_second: &[
        25e6, 50e6, 100e6, 125e6, 150e6, 200e6, 250e6, 500e6, 750e6, 900e6,
    ],
}];
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
/// Operations per second and GiB of a gp2 volume.
const GP2_IOPS_PER_GIB: f64 = 3.0;

/// The name of the volume type whose documented limit this rate is; `None` where there is none, or
/// the disk below does not name its provider. `unit` is that of the rate: `1/s` or `B/s`.
pub(crate) fn documented_type(target: &TargetIdentity, rate: f64, unit: &str) -> Option<String> {
    let disks: Vec<&Layer> = target.disks().collect();
    let [disk] = disks.as_slice() else {
        return None;
    };
    let size_gib = disk.size_bytes as f64 / GIB;
    if is_named(disk, "Amazon Elastic Block Store") {
        if let Some(found) = type_with_limit(&EBS, rate, unit) {
            return Some(found.to_owned());
        }
        let is_gp2 = unit == "1/s" && is_near(rate, GP2_IOPS_PER_GIB * size_gib, LIMIT_SHARE);
        if is_gp2 {
            return Some(format!("EBS gp2 with {size_gib:.0} GiB"));
        }
    } else if is_named(disk, "Msft") {
        return type_with_limit(&AZURE, rate, unit).map(str::to_owned);
    } else if is_named(disk, "Google") || is_named(disk, "nvme_card-pd") {
        for one in &GOOGLE {
            let limit = one.base + one.per_gib * size_gib;
            if unit == "1/s" && is_near(rate, limit, LIMIT_SHARE) {
                return Some(one.name.to_owned());
            }
        }
    }
    None
}

/// Returns `true` if the vendor or the model of a disk contains these words.
fn is_named(disk: &Layer, words: &str) -> bool {
    let names = [&disk.vendor, &disk.model];
    names.into_iter().flatten().any(|name| name.contains(words))
}

/// Returns `true` if volumes of a documented type may have a burst credit: small ones of gp2 do.
pub(crate) fn has_credit(volume: &str) -> bool {
    volume.contains("gp2")
}

/// The name of the first type that has this limit.
fn type_with_limit(types: &[VolumeType], rate: f64, unit: &str) -> Option<&'static str> {
    for one in types {
        let limits = match unit {
            "1/s" => one.iops,
            _ => one.bytes_per_second,
        };
        if limits
            .iter()
            .any(|limit| is_near(rate, *limit, LIMIT_SHARE))
        {
            return Some(one.name);
        }
    }
    None
}

fn is_near(rate: f64, limit: f64, share: f64) -> bool {
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

fn is_usual_bandwidth(megabytes: f64) -> bool {
    USUAL_BANDWIDTHS
        .iter()
        .any(|usual| is_near(megabytes, *usual, ROUND_SHARE))
}

fn has_two_digits(rate: f64) -> bool {
    let step = 10f64.powf((rate.max(1.0)).log10().floor() - 1.0);
    is_near(rate, (rate / step).round() * step, ROUND_SHARE)
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

    #[test]
    fn documented_limits_are_recognised_by_maker_and_size() {
        let ebs = volume("Amazon Elastic Block Store", "", 400);
        let of = |rate, unit| documented_type(&ebs, rate, unit);
        assert_eq!(of(3000.4, "1/s").unwrap(), "EBS gp3 as delivered");
        assert_eq!(of(1200.1, "1/s").unwrap(), "EBS gp2 with 400 GiB");
        assert_eq!(of(128.0 * MIB, "B/s").unwrap(), "EBS gp2");
        assert_eq!(of(1300.0, "1/s"), None);
        let azure = volume("Virtual Disk", "Msft", 128);
        let premium = documented_type(&azure, 500.0, "1/s").unwrap();
        assert!(premium.contains("P4 to P80"), "{premium}");
        assert!(documented_type(&azure, 100.1e6, "B/s").is_some());
        let google = volume("PersistentDisk", "Google", 100);
        let balanced = documented_type(&google, 3600.0, "1/s").unwrap();
        assert!(balanced.contains("balanced"), "{balanced}");
        let own = volume("SAMSUNG MZ7LH960", "ATA", 100);
        assert_eq!(documented_type(&own, 3000.0, "1/s"), None);
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
