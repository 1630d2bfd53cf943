//! Reads `--write-cache`: the states in which the disk's write cache is measured, and the consent
//! to switch it.

use crate::agreement::{Agreement, agree};
use crate::failure::Failure;
use crate::stdio::Verbosity;
use diskproof_device::WriteCacheSwitch;
use diskproof_model::plan::{OFF_SUFFIX, Plan, Workload};
use diskproof_model::target::{TargetIdentity, WriteCache};

/// The states to measure in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CacheStates {
    /// Switched on
    On,
    /// Switched off
    Off,
    /// Alternately on and off: each method with one session, and 16 sessions
    Both,
}

/// The states in which the workloads of a plan are measured; `None` where no workload names one.
pub(crate) fn planned_states(plan: &Plan) -> Option<CacheStates> {
    let mut has_on = false;
    let mut has_off = false;
    for workload in plan.workloads() {
        has_on |= workload.write_cache == Some(WriteCache::WriteBack);
        has_off |= workload.write_cache == Some(WriteCache::WriteThrough);
    }
    if has_on && has_off {
        Some(CacheStates::Both)
    } else if has_on {
        Some(CacheStates::On)
    } else if has_off {
        Some(CacheStates::Off)
    } else {
        None
    }
}

/// The flags `--write-cache` and `--yes`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WriteCacheFlags {
    /// Switch the disk's volatile write cache for the run and restore it afterwards, even after
    /// Ctrl-C or a crash; needs root and hdparm (ATA), nvme (NVMe) or sdparm (SCSI)
    #[arg(long, value_name = "STATE", conflicts_with_all = ["postgres", "fit_for"])]
    pub write_cache: Option<CacheStates>,
    /// Switch the write cache without asking first
    #[arg(long, requires = "write_cache", conflicts_with_all = ["postgres", "fit_for"])]
    pub yes: bool,
}

impl WriteCacheFlags {
    /// The switch of the disks below the target, where one was requested.
    pub(crate) fn switch(
        &self,
        identity: &TargetIdentity,
    ) -> Result<Option<WriteCacheSwitch>, Failure> {
        if self.write_cache.is_none() {
            return Ok(None);
        }
        let path = std::env::var_os("PATH");
        let switch = WriteCacheSwitch::find(identity, path.as_deref())?;
        Ok(Some(switch))
    }

    /// The workload in the states that were requested.
    pub(crate) fn states_of(&self, workload: Workload) -> Vec<Workload> {
        let Some(states) = self.write_cache else {
            return vec![workload];
        };
        let on = Workload {
            write_cache: Some(WriteCache::WriteBack),
            ..workload.clone()
        };
        let mut off = Workload {
            write_cache: Some(WriteCache::WriteThrough),
            ..workload
        };
        match states {
            CacheStates::On => vec![on],
            CacheStates::Off => vec![off],
            CacheStates::Both => {
                off.name.push_str(OFF_SUFFIX);
                vec![on, off]
            }
        }
    }

    /// Has the user agree to the switch: by `--yes`, else by an answer on the terminal.
    pub(crate) fn ask(
        &self,
        switch: &WriteCacheSwitch,
        verbosity: Verbosity,
    ) -> Result<(), Failure> {
        agree(
            &self.notice(switch),
            "Switch it?",
            Agreement::from_yes_flag(self.yes),
            verbosity,
        )
    }

    /// Tells the user which disks are switched, and the consequence.
    pub(crate) fn notice(&self, switch: &WriteCacheSwitch) -> String {
        let mut disks = Vec::new();
        for (disk, state) in switch.initial_states() {
            disks.push(match state {
                WriteCache::WriteBack => format!("{disk} (now on)"),
                WriteCache::WriteThrough => format!("{disk} (now off)"),
            });
        }
        let (direction, consequence) = match self.write_cache {
            Some(CacheStates::On) => ("on", LOSES),
            Some(CacheStates::Off) | None => ("off", SLOWER),
            Some(CacheStates::Both) => ("off and on alternately", SLOWER),
        };
        format!(
            "The write cache of {} is switched {direction} during the run and restored at its \
             end, even after Ctrl-C or a crash. {consequence}",
            disks.join(", ")
        )
    }
}

/// The consequence of switching the cache off.
const SLOWER: &str = "While it is off, all writes to the disk are slower, including those of other \
                      programs.";
/// The consequence of switching the cache on.
const LOSES: &str = "While it is on, a power failure loses data written without a flush.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_in_both_states_has_a_name_for_each() {
        let names_in = |write_cache| {
            let flags = WriteCacheFlags {
                write_cache,
                yes: false,
            };
            let mut names = Vec::new();
            for workload in flags.states_of(Workload::named("commit")) {
                names.push(workload.name);
            }
            names
        };
        let off_name = format!("commit{OFF_SUFFIX}");
        assert_eq!(names_in(None), ["commit"]);
        assert_eq!(names_in(Some(CacheStates::Off)), ["commit"]);
        assert_eq!(
            names_in(Some(CacheStates::Both)),
            ["commit", off_name.as_str()]
        );
    }
}
