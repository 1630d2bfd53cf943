//! Defines the flags by which the user releases what may be destroyed, and what they permit.
//! Whether a target may be written to is the gate's decision.

use crate::failure::Failure;
use diskproof_device::{Consent, Overwriting, UnknownContent};
use diskproof_model::plan::Skipped;
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

/// Why no workload may write to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteBan {
    /// The user gave `--read-only`.
    ReadOnlyFlag,
    /// No flag releases the target: the reason, one clause.
    Unreleased(&'static str),
}

impl WriteBan {
    /// The flag or the clause, as records show it.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::ReadOnlyFlag => "--read-only",
            Self::Unreleased(why) => why,
        }
    }

    /// The workload of this name as one that the ban skips. `advice` follows the reason of an
    /// unreleased target.
    pub(crate) fn skipped(self, workload: String, advice: &str) -> Skipped {
        match self {
            Self::ReadOnlyFlag => Skipped::by_flag(workload, self.why()),
            Self::Unreleased(why) => Skipped::new(workload, format!("{why}{advice}")),
        }
    }
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

    /// Why workloads that write are skipped on a target of this kind; `None` where they may run.
    /// `read_only` is the verb's own flag of that name.
    pub(crate) fn write_ban(&self, read_only: bool, kind: TargetKind) -> Option<WriteBan> {
        if read_only {
            Some(WriteBan::ReadOnlyFlag)
        } else {
            self.why_only_read(kind).map(WriteBan::Unreleased)
        }
    }

    /// What the user releases, for the gate. A flag that fits none of the targets is an error: the
    /// mistake might cost the wrong disk next time.
    pub fn consent(&self, identities: &[TargetIdentity]) -> Result<Consent, Failure> {
        if !self.destroy.is_empty() && !has_kind(identities, TargetKind::BlockDevice) {
            return Err(releases_nothing("--destroy", "a block device", identities));
        }
        if self.overwrite && !has_kind(identities, TargetKind::File) {
            return Err(releases_nothing(
                "--overwrite",
                "a regular file",
                identities,
            ));
        }
        let overwriting = if self.overwrite {
            Overwriting::Allowed
        } else if self.own_files {
            Overwriting::Own
        } else {
            Overwriting::Forbidden
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

fn has_kind(identities: &[TargetIdentity], kind: TargetKind) -> bool {
    identities.iter().any(|identity| identity.kind == kind)
}

fn releases_nothing(flag: &str, kind: &str, identities: &[TargetIdentity]) -> Failure {
    let paths: Vec<&str> = identities
        .iter()
        .map(|identity| identity.path.as_str())
        .collect();
    Failure::Usage(format!(
        "{flag} releases {kind}, and {} is not one; omit {flag}",
        paths.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(kind: TargetKind) -> TargetIdentity {
        let mut identity = diskproof_device::probe(std::path::Path::new("/")).unwrap();
        identity.kind = kind;
        identity
    }

    /// The flags that these words set.
    fn released(words: &str) -> DestructiveFlags {
        let mut flags = DestructiveFlags::default();
        for word in words.split_whitespace() {
            match word {
                "--destroy" => flags.destroy.push("loop3".to_owned()),
                "--wipe-unknown" => flags.wipe_unknown = true,
                "--overwrite" => flags.overwrite = true,
                _ => panic!("{word}"),
            }
        }
        flags
    }

    #[test]
    fn each_kind_of_target_is_released_by_its_own_flag() {
        use TargetKind::{BlockDevice, Directory, File};
        for (words, kind, is_released) in [
            ("", BlockDevice, false),
            ("--overwrite", BlockDevice, false),
            ("--destroy", BlockDevice, true),
            ("", File, false),
            ("--destroy", File, false),
            ("--overwrite", File, true),
            ("", Directory, true),
        ] {
            let flags = released(words);
            assert_eq!(
                flags.write_ban(false, kind).is_none(),
                is_released,
                "{words} {kind:?}"
            );
            assert_eq!(flags.write_ban(true, kind), Some(WriteBan::ReadOnlyFlag));
        }
    }

    /// The mistake might cost the wrong disk next time.
    #[test]
    fn flag_that_releases_none_of_the_targets_is_refused() {
        use TargetKind::{BlockDevice, Directory, File};
        for (words, kinds, is_accepted) in [
            ("", vec![Directory], true),
            ("--destroy", vec![BlockDevice], true),
            ("--destroy", vec![Directory, BlockDevice], true),
            ("--destroy", vec![File], false),
            ("--overwrite", vec![File], true),
            ("--overwrite", vec![BlockDevice, Directory], false),
            ("--destroy --overwrite", vec![BlockDevice], false),
        ] {
            let identities: Vec<TargetIdentity> = kinds.iter().copied().map(identity).collect();
            let consent = released(words).consent(&identities);
            assert_eq!(consent.is_ok(), is_accepted, "{words} {kinds:?}");
            if let Err(error) = consent {
                assert_eq!(error.exit(), crate::failure::Exit::Usage);
            }
        }
    }

    #[test]
    fn consent_is_no_wider_than_the_flags() {
        let device = [identity(TargetKind::BlockDevice)];
        let consent = released("--destroy").consent(&device).unwrap();
        assert_eq!(consent.destroy, ["loop3"]);
        assert!(matches!(consent.overwriting, Overwriting::Forbidden));
        assert!(matches!(consent.unknown, UnknownContent::Refuse));
        let wiped = released("--destroy --wipe-unknown");
        let consent = wiped.consent(&device).unwrap();
        assert!(matches!(consent.unknown, UnknownContent::Wipe));
        let file = [identity(TargetKind::File)];
        for (overwrite, own_files, expected) in [
            (false, false, "Forbidden"),
            (false, true, "Own"),
            (true, true, "Allowed"),
        ] {
            let flags = DestructiveFlags {
                overwrite,
                own_files,
                ..DestructiveFlags::default()
            };
            let overwriting = flags.consent(&file).unwrap().overwriting;
            assert_eq!(format!("{overwriting:?}"), expected);
        }
    }
}
