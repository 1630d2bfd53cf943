//! What the rules on health share: how a disk is named, and where in the record its figures stand.
//! Holds no threshold.

use super::Diagnosis;
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::health::DiskHealth;

/// A disk and its place in the record.
pub(super) type Disk<'a> = (usize, &'a DiskHealth);

/// What one rule has against one disk.
pub(super) struct Complaint {
    pub(super) severity: Severity,
    /// What is said of it, after its name: `has 8 pending sectors`.
    pub(super) says: String,
    pub(super) evidence: Vec<Evidence>,
}

/// An observation at `/health/INDEX/PLACE`.
pub(super) fn evidence(
    disk: Disk<'_>,
    place: &str,
    observed: impl Into<f64>,
    threshold: impl Into<f64>,
    unit: &str,
) -> Evidence {
    let path = format!("/health/{}/{place}", disk.0);
    Evidence {
        path,
        observed: observed.into(),
        threshold: threshold.into(),
        unit: unit.to_owned(),
    }
}

/// One finding on all disks that a rule has something against; `None` when there is none.
pub(super) fn finding(
    remedy: &str,
    health: &[DiskHealth],
    complain: impl Fn(Disk<'_>) -> Option<Complaint>,
) -> Option<Diagnosis> {
    let found: Vec<(&DiskHealth, Complaint)> = health
        .iter()
        .enumerate()
        .filter_map(|disk| Some((disk.1, complain(disk)?)))
        .collect();
    let severity = found
        .iter()
        .map(|(_, complaint)| complaint.severity)
        .max()?;
    let claims: Vec<String> = found
        .iter()
        .map(|(disk, complaint)| format!("{} {}", name(disk), complaint.says))
        .collect();
    Some(Diagnosis {
        severity,
        claim: format!("{}.", claims.join("; ")),
        evidence: found
            .into_iter()
            .flat_map(|(_, complaint)| complaint.evidence)
            .collect(),
        remedy: remedy.to_owned(),
        reproduce: None,
    })
}

/// `sda (Hitachi HDS721050DLE630)`: what is written on the disk, for whoever goes and pulls it out.
fn name(disk: &DiskHealth) -> String {
    let label: Vec<&str> = disk
        .model
        .as_deref()
        .into_iter()
        .chain(disk.serial.as_deref())
        .collect();
    if label.is_empty() {
        disk.disk.clone()
    } else {
        format!("{} ({})", disk.disk, label.join(", "))
    }
}

/// Whether it has no moving parts.
pub(super) fn is_flash(disk: &DiskHealth) -> bool {
    disk.rotation_rpm == Some(0)
}

/// `1 sector`, `8 sectors`.
pub(super) fn counted(count: u64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;
    use diskproof_model::record::Record;

    /// Healthy disks: one that rotates, one of flash.
    pub(in crate::rules) fn sound() -> Vec<DiskHealth> {
        let disk = DiskHealth {
            disk: "sda".to_owned(),
            source: Some("smartctl 7.3".to_owned()),
            model: Some("WDC WD20EFRX".to_owned()),
            rotation_rpm: Some(5400),
            passed: Some(true),
            temperature_celsius: Some(34),
            temperature_alarm: Some(false),
            reallocated_sectors: Some(0),
            pending_sectors: Some(0),
            uncorrectable_sectors: Some(0),
            media_errors: Some(0),
            link_errors: Some(0),
            ..DiskHealth::default()
        };
        let flash = DiskHealth {
            disk: "nvme0n1".to_owned(),
            model: Some("Micron_7450".to_owned()),
            rotation_rpm: Some(0),
            wear_percent: Some(12),
            spare_percent: Some(100),
            spare_threshold_percent: Some(10),
            temperature_limit_celsius: Some(70),
            ..disk.clone()
        };
        vec![disk, flash, DiskHealth::unknown("vda", "a virtual disk")]
    }

    /// A healthy run whose second disk is spoilt.
    pub(in crate::rules) fn spoilt(spoil: impl Fn(&mut DiskHealth)) -> Record {
        let mut run = healthy::run();
        run.0.health = sound();
        spoil(&mut run.0.health[1]);
        healthy::judge(run)
    }

    /// The same, whose first disk is spoilt, which rotates.
    pub(in crate::rules) fn spoilt_rotating(spoil: impl Fn(&mut DiskHealth)) -> Record {
        let mut run = healthy::run();
        run.0.health = sound();
        spoil(&mut run.0.health[0]);
        healthy::judge(run)
    }

    #[test]
    fn sound_disks_and_unknown_ones_are_no_finding() {
        assert_eq!(spoilt(|_| ()).findings, []);
    }

    #[test]
    fn a_disk_is_named_by_what_is_written_on_it() {
        let disk = DiskHealth {
            serial: Some("S1".to_owned()),
            ..sound().swap_remove(0)
        };
        assert_eq!(name(&disk), "sda (WDC WD20EFRX, S1)");
        assert_eq!(name(&DiskHealth::unknown("vda", "")), "vda");
    }
}
