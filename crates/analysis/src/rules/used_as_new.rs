//! `used-as-new`: the disk has run longer than its power-on counter says.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "used-as-new",
    title: "The disk is older than its hour counter",
    summary: "Another counter of the disk contradicts its power-on hours, so these were reset, \
              have overflowed or are not counted. Used disks have been sold as new after such a \
              reset.",
    remedy: Remedy::Always(
        "If the disk was sold as new, ask the seller and the vendor's warranty check about its \
         serial number. smartctl -x and smartctl -l farm show the counters.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "Its wear is unknown, so expect it to fail earlier than a new disk.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Counters that agree differ by an hour at most in reported disks, because each is rounded and
/// saved at its own time. Resold disks had run 10,000 hours and more (heise, January 2025).
const HOURS_APART_MIN: u64 = 48;
/// The same as a share of the larger counter.
const SHARE_APART_MIN: f64 = 0.02;
/// A counter of minutes or seconds that is read as one of hours. Near such a ratio the counters may
/// agree.
const UNIT_RATIOS: [f64; 2] = [60.0, 3600.0];
/// A ratio is near another one within this share of it.
const RATIO_SHARE: f64 = 0.05;
/// A counter of 16 bits, as in self-test logs, overflows here: beyond it neither the log nor the
/// hours are certain.
const LOGGED_HOURS_MAX: u64 = (1 << 16) - 1;
/// Written bytes need this many times the claimed hours: some counters are in other units than
/// smartctl's database says, and the last hour is not yet counted.
const WRITING_TIMES_MIN: f64 = 2.0;
/// No disk writes faster than its link: SATA carries 600 MB/s, which no rotating disk exceeds on
/// any link; two ports of SAS-4 carry 4.8 GB/s; four lanes of PCIe 6.0 carry 32
/// GB/s.
const SATA_BYTES_PER_SECOND: f64 = 600e6;
const SAS_BYTES_PER_SECOND: f64 = 4.8e9;
const NVME_BYTES_PER_SECOND: f64 = 32e9;

/// A counter that contradicts the power-on hours.
struct Contradiction {
    claim: String,
    evidence: Evidence,
}

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let claimed_hours = disk.power_on_hours?;
    let mut claims = Vec::new();
    let mut evidence = Vec::new();
    let contradictions = [
        farm_log(disk, claimed_hours),
        self_test_log(disk, claimed_hours),
        written_bytes(disk, claimed_hours),
    ];
    for contradiction in contradictions.into_iter().flatten() {
        claims.push(contradiction.claim);
        evidence.push(contradiction.evidence);
    }
    if claims.is_empty() {
        return None;
    }
    let claimed = counted(claimed_hours, "power-on hour");
    let claim = format!("reports {claimed}, but {}", claims.join(", and "));
    Some(Diagnosis::new(Severity::Warning, claim, evidence))
}

/// A reset of the SMART counters does not reach Seagate's FARM log.
fn farm_log(disk: &DiskHealth, claimed_hours: u64) -> Option<Contradiction> {
    let farm_hours = disk.farm_power_on_hours?;
    if !is_older(farm_hours, claimed_hours) {
        return None;
    }
    Some(Contradiction {
        claim: format!("its FARM log counts {farm_hours}"),
        evidence: counted_at("farm_power_on_hours", farm_hours, claimed_hours),
    })
}

/// A self-test cannot have ended at an hour that the disk has not reached.
fn self_test_log(disk: &DiskHealth, claimed_hours: u64) -> Option<Contradiction> {
    let logged_hours = disk.self_test.as_ref()?.hours?;
    if logged_hours >= LOGGED_HOURS_MAX || !is_older(logged_hours, claimed_hours) {
        return None;
    }
    Some(Contradiction {
        claim: format!("logged a self-test at hour {logged_hours}"),
        evidence: counted_at("self_test/hours", logged_hours, claimed_hours),
    })
}

/// Writing takes time, even at the highest rate of the link.
fn written_bytes(disk: &DiskHealth, claimed_hours: u64) -> Option<Contradiction> {
    let written_bytes = disk.written_bytes?;
    let bytes_per_hour = 3600.0 * bytes_per_second_max(disk)?;
    let counted_hours = claimed_hours as f64 + 1.0;
    let bytes_max = WRITING_TIMES_MIN * counted_hours * bytes_per_hour;
    if written_bytes as f64 <= bytes_max {
        return None;
    }
    let hours = written_bytes as f64 / bytes_per_hour;
    Some(Contradiction {
        claim: format!(
            "has written {}, for which its link needs {hours:.0} hours",
            format_bytes(written_bytes)
        ),
        evidence: seen_at("written_bytes", written_bytes as f64, bytes_max, "B"),
    })
}

/// True if one counter of hours is so far above the other that they cannot both be right.
fn is_older(hours: u64, claimed_hours: u64) -> bool {
    let apart = hours.saturating_sub(claimed_hours);
    if apart < HOURS_APART_MIN || (apart as f64) < SHARE_APART_MIN * hours as f64 {
        return false;
    }
    let ratio = hours as f64 / claimed_hours as f64;
    UNIT_RATIOS
        .iter()
        .all(|unit| (ratio / unit - 1.0).abs() >= RATIO_SHARE)
}

/// The highest rate at which a disk can have been written; `None` where its link is not known.
fn bytes_per_second_max(disk: &DiskHealth) -> Option<f64> {
    match (disk.protocol.as_deref()?, disk.rotation_rpm) {
        ("ATA", _) | ("SCSI", Some(1..)) => Some(SATA_BYTES_PER_SECOND),
        ("SCSI", _) => Some(SAS_BYTES_PER_SECOND),
        ("NVMe", _) => Some(NVME_BYTES_PER_SECOND),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::disk_report::tests::{faulty, faulty_rotating, one, self_test};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| seagate(38, 21_934), || seagate(21_933, 21_934))
            .and_fires_on(&[|| tested(12, 4711), || written("ATA", 0, 5_000_000_000_000)]);

    fn seagate(smart_hours: u64, farm_hours: u64) -> Record {
        faulty_rotating(|disk| {
            disk.protocol = Some("ATA".to_owned());
            disk.model = Some("ST16000NM001G-2KK103".to_owned());
            disk.power_on_hours = Some(smart_hours);
            disk.farm_power_on_hours = Some(farm_hours);
        })
    }

    fn tested(hours: u64, logged_hours: u64) -> Record {
        faulty(|disk| {
            disk.power_on_hours = Some(hours);
            disk.self_test = self_test(Some(true), None);
            if let Some(test) = &mut disk.self_test {
                test.hours = Some(logged_hours);
            }
        })
    }

    fn written(protocol: &str, hours: u64, bytes: u64) -> Record {
        faulty(|disk| {
            disk.protocol = Some(protocol.to_owned());
            disk.power_on_hours = Some(hours);
            disk.written_bytes = Some(bytes);
        })
    }

    #[test]
    fn farm_hours_above_the_smart_hours_are_reported_with_both() {
        let finding = one(&seagate(38, 21_934), "used-as-new");
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["38 power-on hours", "21934"]);
        let figures = (finding.evidence[0].observed, finding.evidence[0].threshold);
        assert_eq!(figures, (21_934.0, 38.0));
    }

    #[test]
    fn counters_that_differ_by_rounding_or_unit_or_the_other_way_are_not_accused() {
        for (smart_hours, farm_hours) in [
            (0, 0),
            (0, 47),
            (771, 772),
            (33_091, 33_091),
            (30_000, 30_500),
            // The FARM log was reset with the rest, or is saved later.
            (21_934, 38),
            // In minutes, and in seconds.
            (100, 6_003),
            (100, 360_050),
        ] {
            let record = seagate(smart_hours, farm_hours);
            assert_eq!(record.findings, [], "{smart_hours} h, FARM {farm_hours} h");
        }
    }

    #[test]
    fn log_of_a_later_hour_proves_a_reset_unless_it_may_have_overflowed() {
        let finding = one(&tested(12, 4711), "used-as-new");
        states(&finding.claim, &["12 power-on hours", "hour 4711"]);
        for (hours, logged_hours) in [(4711, 12), (100, 100), (100, 101), (7, 65_535)] {
            assert_eq!(tested(hours, logged_hours).findings, [], "{logged_hours}");
        }
    }

    #[test]
    fn bytes_that_the_hours_allow_depend_on_the_link() {
        const TB: u64 = 1_000_000_000_000;
        // 600 MB/s make 2.16 TB an hour, and twice that is allowed.
        for (protocol, hours, bytes, is_found) in [
            ("ATA", 0, 5 * TB, true),
            ("ATA", 0, 4 * TB, false),
            ("ATA", 9, 44 * TB, true),
            ("ATA", 9, 43 * TB, false),
            ("SCSI", 0, 30 * TB, false),
            ("SCSI", 0, 40 * TB, true),
            ("NVMe", 0, 200 * TB, false),
            ("NVMe", 0, 240 * TB, true),
            // An HGST SN260 of the test data of smartctl_exporter: 830 MB/s for 20 days.
            ("NVMe", 482, 1446 * TB, false),
            ("USB", 0, 1446 * TB, false),
        ] {
            let findings = written(protocol, hours, bytes).findings;
            assert_eq!(
                !findings.is_empty(),
                is_found,
                "{protocol} {hours} h {bytes} B"
            );
        }
    }

    #[test]
    fn disk_without_hours_or_without_other_counters_is_not_accused() {
        for change in [
            |disk: &mut DiskHealth| disk.farm_power_on_hours = Some(21_934),
            |disk: &mut DiskHealth| disk.power_on_hours = Some(0),
        ] {
            assert_eq!(faulty_rotating(change).findings, []);
        }
    }
}
