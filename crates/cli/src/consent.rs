//! What the user releases: the flags without which diskproof writes to nothing that exists. Whether
//! the target is the one that was meant, and whether anything speaks against it, the gate decides.

use crate::failure::Failure;
use diskproof_device::{Consent, Overwriting, UnknownContent};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::parse_size;

/// `--destroy`, `--wipe-unknown`, `--overwrite` and `--keep-free`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DestructiveFlags {
    /// Release the block device of this name: writing workloads destroy its content. NAME is its
    /// serial or model in full, or its kernel name (loop3) where it has neither; refused while
    /// anything uses the device or a format is recognised on it (repeatable)
    #[arg(long, value_name = "NAME")]
    pub destroy: Vec<String>,
    /// With --destroy: accept data of an unknown format, and zero the first and last MiB before the
    /// first workload
    #[arg(long, requires = "destroy")]
    pub wipe_unknown: bool,
    /// Release the regular file that is the target: writing workloads overwrite its content; its
    /// size stays
    #[arg(long)]
    pub overwrite: bool,
    /// Free space that files in a directory leave on its filesystem [default: 2GiB, or 10 % of a
    /// filesystem below 20 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub keep_free: Option<u64>,
    /// Releases the files that diskproof made itself, and that nothing has changed since: tools
    /// that keep their files write to them again.
    #[arg(skip)]
    pub own_files: bool,
}

impl DestructiveFlags {
    /// Why a target of this kind is not written to; `None` for a released one and a directory.
    pub(crate) fn why_only_read(&self, kind: TargetKind) -> Option<&'static str> {
        match kind {
            TargetKind::BlockDevice if self.destroy.is_empty() => {
                Some("a device is only read unless --destroy releases it")
            }
            TargetKind::File if !self.overwrite => {
                Some("a file is only read unless --overwrite releases it")
            }
            _ => None,
        }
    }

    /// For the gate. A flag that fits none of the targets is a mistake that might cost the wrong
    /// disk next time.
    pub fn consent(&self, identities: &[TargetIdentity]) -> Result<Consent, Failure> {
        let (device, file) = (TargetKind::BlockDevice, TargetKind::File);
        for (is_given, kind, flag, what) in [
            (
                !self.destroy.is_empty(),
                device,
                "--destroy",
                "a block device",
            ),
            (self.overwrite, file, "--overwrite", "a regular file"),
        ] {
            if is_given && identities.iter().all(|identity| identity.kind != kind) {
                let paths: Vec<&str> = identities.iter().map(|one| one.path.as_str()).collect();
                return Err(Failure::Usage(format!(
                    "{flag} releases {what}, and {} is not one; omit {flag}",
                    paths.join(", ")
                )));
            }
        }
        let overwriting = match (self.overwrite, self.own_files) {
            (true, _) => Overwriting::Allowed,
            (false, true) => Overwriting::Own,
            (false, false) => Overwriting::Forbidden,
        };
        let unknown = if self.wipe_unknown {
            UnknownContent::Wipe
        } else {
            UnknownContent::Refuse
        };
        Ok(Consent {
            destroy: self.destroy.clone(),
            overwriting,
            unknown,
        })
    }
}
