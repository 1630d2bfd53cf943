//! The SMART health of the disks below the targets, read before a run.

use crate::flags::HealthFlags;
use crate::stderr::Verbosity;
use diskproof_analysis::rules::health_findings;
use diskproof_device::disk_health;
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;
use diskproof_model::target::TargetIdentity;

/// What the disks below these targets report; nothing with `--no-health`.
pub(crate) fn read_health(identities: &[TargetIdentity], flags: &HealthFlags) -> Vec<DiskHealth> {
    if flags.no_health {
        Vec::new()
    } else {
        disk_health(identities, std::env::var_os("PATH").as_deref())
    }
}

/// Warns of failing disks before the run: its load may be the last one that they take.
pub(crate) fn warn_of_failing(health: &[DiskHealth], verbosity: Verbosity) {
    for finding in health_findings(health) {
        if finding.severity == Severity::Failure {
            verbosity.note(&format!(
                "warning: {}: {} {}",
                finding.code, finding.claim, finding.remedy
            ));
        }
    }
}
