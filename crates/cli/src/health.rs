//! Whether and where the disks are asked of their health: the flag, PATH, and a word before a
//! failing disk is put under load. What they say is the crate device's matter, what it means
//! analysis'.

use crate::output::Voice;
use diskproof_analysis::rules::health_findings;
use diskproof_device::disk_health;
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;
use diskproof_model::target::TargetIdentity;

/// Flags on health.
#[derive(Debug, clap::Args)]
pub struct HealthFlags {
    /// Do not ask the disks of their health (smartctl)
    #[arg(long)]
    pub no_health: bool,
}

/// What the disks below these targets say, unless the user wants them left alone.
pub fn ask_health(identities: &[TargetIdentity], flags: &HealthFlags) -> Vec<DiskHealth> {
    if flags.no_health {
        Vec::new()
    } else {
        disk_health(identities, std::env::var_os("PATH").as_deref())
    }
}

/// Warns before the measuring begins: a load may be the last thing that a failing disk does.
pub fn warn_of_failing(health: &[DiskHealth], voice: Voice) {
    for finding in health_findings(health)
        .iter()
        .filter(|finding| finding.severity == Severity::Failure)
    {
        voice.say(&format!(
            "warning: {}: {} {}",
            finding.code, finding.claim, finding.remedy
        ));
    }
}
