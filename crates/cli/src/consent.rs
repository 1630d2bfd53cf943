//! What the user gives up: the two flags without which nothing that exists is written to. Whether
//! the target is the one that was meant, and whether anything speaks against it, is for the gate to
//! say.

use crate::failure::Failure;
use diskproof_device::{Consent, Overwriting};
use diskproof_model::target::{TargetIdentity, TargetKind};

/// `--destroy` and `--overwrite`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GivingUp {
    /// Let writing workloads destroy the block device of this name: its serial or model in full,
    /// or its kernel name (loop3) where it has neither; refused while anything uses it or
    /// stands on it (repeatable)
    #[arg(long, value_name = "NAME")]
    pub destroy: Vec<String>,
    /// Let writing workloads overwrite the regular file that is the target; its size stays
    #[arg(long)]
    pub overwrite: bool,
}

impl GivingUp {
    /// For the gate. A flag that fits none of the targets is a mistake that might cost the wrong
    /// disk next time.
    pub fn consent(&self, identities: &[TargetIdentity]) -> Result<Consent, Failure> {
        let misses = |kind: TargetKind| identities.iter().all(|identity| identity.kind != kind);
        let paths = || {
            identities
                .iter()
                .map(|identity| identity.path.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        if !self.destroy.is_empty() && misses(TargetKind::BlockDevice) {
            return Err(Failure::Usage(format!(
                "--destroy gives up a block device, and {} is none; leave it out",
                paths()
            )));
        }
        if self.overwrite && misses(TargetKind::File) {
            return Err(Failure::Usage(format!(
                "--overwrite gives up a regular file, and {} is none; leave it out",
                paths()
            )));
        }
        let overwriting = if self.overwrite {
            Overwriting::Allowed
        } else {
            Overwriting::Forbidden
        };
        Ok(Consent {
            destroy: self.destroy.clone(),
            overwriting,
        })
    }
}
