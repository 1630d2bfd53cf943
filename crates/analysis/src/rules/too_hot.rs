//! `too-hot`: a disk near or over the temperature at which it slows down to save itself. Knows
//! temperatures only.

use super::health::{Complaint, Disk, evidence, finding, is_flash};
use super::{Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "too-hot",
    title: "The disk is near its temperature limit",
    meaning: "The disk was near or over its temperature limit when the measuring began, where \
              disks slow down to cool off.",
    check: |record| find(&record.health),
};

/// Load adds 5 to 20 °C to what a disk has at rest, and it is asked before the load.
const MARGIN_CELSIUS: i32 = 5;
/// Where the disk does not tell its limit. Data sheets of rotating disks end at 60 °C (Seagate
/// Exos, WD Ultrastar, Toshiba MG), those of SATA and SAS flash at 70 °C (Intel D3-S4510, Samsung
/// PM883, Micron 5300).
const ROTATING_LIMIT_CELSIUS: i32 = 60;
const FLASH_LIMIT_CELSIUS: i32 = 70;

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "See to the airflow (fans, dust, a heat sink) and measure again: what a hot disk \
                  does is not what it can.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let health = disk.1;
    if health.temperature_alarm == Some(true) {
        let degrees = health
            .temperature_celsius
            .map_or_else(String::new, |degrees| format!(" at {degrees} °C"));
        let seen = Evidence {
            threshold: 0.0,
            ..evidence(disk, "temperature_alarm", 1.0, 0.0, "1")
        };
        return Some(Complaint {
            severity: Severity::Warning,
            says: format!("says itself that it is too hot{degrees}"),
            evidence: vec![seen],
        });
    }
    let (degrees, limit) = (health.temperature_celsius?, limit(health)?);
    if degrees < limit - MARGIN_CELSIUS {
        return None;
    }
    let (severity, place) = if degrees >= limit {
        (Severity::Warning, "at or over")
    } else {
        (Severity::Note, "near")
    };
    Some(Complaint {
        severity,
        says: format!("has {degrees} °C, {place} its limit of {limit} °C"),
        evidence: vec![evidence(
            disk,
            "temperature_celsius",
            degrees,
            limit - MARGIN_CELSIUS,
            "°C",
        )],
    })
}

/// The disk's own, else what is usual. NVMe has no usual limit (70 to 85 °C), but raises an alarm
/// of its own.
fn limit(health: &DiskHealth) -> Option<i32> {
    let usual = || match health.protocol.as_deref() {
        Some("NVMe") => None,
        _ if is_flash(health) => Some(FLASH_LIMIT_CELSIUS),
        _ => Some(ROTATING_LIMIT_CELSIUS),
    };
    health.temperature_limit_celsius.or_else(usual)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk, spoilt_rotating};
    use diskproof_model::record::Record;

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_disk(|disk| disk.temperature_celsius = Some(71))
    }

    #[test]
    fn heat_over_the_limit_warns_and_near_it_is_a_note() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (found.severity, found.evidence[0].observed),
            (Severity::Warning, 71.0)
        );
        assert!(
            found.claim.contains("71 °C, at or over its limit of 70 °C"),
            "{}",
            found.claim
        );
        assert_eq!(
            find(&spoilt_disk(|disk| disk.temperature_celsius = Some(66)).health)
                .unwrap()
                .severity,
            Severity::Note
        );
        assert!(
            find(&spoilt_rotating(|disk| disk.temperature_celsius = Some(60)).health).is_some(),
            "a usual limit"
        );
        let alarm = find(&spoilt_disk(|disk| disk.temperature_alarm = Some(true)).health).unwrap();
        assert!(
            alarm
                .claim
                .contains("says itself that it is too hot at 34 °C"),
            "{}",
            alarm.claim
        );
    }

    #[test]
    fn a_warm_disk_is_no_finding() {
        let mut health = sound();
        health[0].temperature_celsius = Some(54);
        health[1].temperature_celsius = Some(64);
        assert_eq!(find(&health), None);
        health[1] = DiskHealth {
            protocol: Some("NVMe".to_owned()),
            temperature_limit_celsius: None,
            temperature_celsius: Some(75),
            ..health[1].clone()
        };
        assert_eq!(find(&health), None, "no limit of its own, and no alarm");
    }
}
