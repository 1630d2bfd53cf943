//! `--write-cache`: which states the disk's write cache is measured in, and the consent to switch
//! it.

use crate::agreement::agree;
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
    let has = |state| {
        plan.workloads()
            .iter()
            .any(|workload| workload.write_cache == Some(state))
    };
    match (has(WriteCache::WriteBack), has(WriteCache::WriteThrough)) {
        (true, true) => Some(CacheStates::Both),
        (true, false) => Some(CacheStates::On),
        (false, true) => Some(CacheStates::Off),
        (false, false) => None,
    }
}

/// `--write-cache` and `--yes`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WriteCacheFlags {
    /// Switch the disk's volatile write cache for the run and restore it afterwards, even after
    /// Ctrl-C or a crash; needs root and hdparm (ATA), nvme (NVMe) or sdparm (SCSI)
    #[arg(long, value_name = "STATE", conflicts_with_all = ["postgres", "fit_for"])]
    pub write_cache: Option<CacheStates>,
    /// Switch the write cache without asking first
    #[arg(long, requires = "write_cache")]
    pub yes: bool,
}

impl WriteCacheFlags {
    /// The switch of the disks below the target, where one was requested.
    pub(crate) fn switch(
        &self,
        identity: &TargetIdentity,
    ) -> Result<Option<WriteCacheSwitch>, Failure> {
        let path = std::env::var_os("PATH");
        let find = |_| WriteCacheSwitch::find(identity, path.as_deref());
        Ok(self.write_cache.map(find).transpose()?)
    }

    /// The workload in the states that were requested.
    pub(crate) fn states_of(&self, workload: Workload) -> Vec<Workload> {
        let with = |state, suffix: &str| Workload {
            name: format!("{}{suffix}", workload.name),
            write_cache: Some(state),
            ..workload.clone()
        };
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        match self.write_cache {
            None => vec![workload],
            Some(CacheStates::On) => vec![with(on, "")],
            Some(CacheStates::Off) => vec![with(off, "")],
            Some(CacheStates::Both) => vec![with(on, ""), with(off, OFF_SUFFIX)],
        }
    }

    /// Has the user agree to the switch: by `--yes`, else by an answer on the terminal.
    pub(crate) fn ask(
        &self,
        switch: &WriteCacheSwitch,
        verbosity: Verbosity,
    ) -> Result<(), Failure> {
        agree(&self.notice(switch), "Switch it?", self.yes, verbosity)
    }

    /// What is going to happen to which disk.
    pub(crate) fn notice(&self, switch: &WriteCacheSwitch) -> String {
        let now = |(disk, found)| match found {
            WriteCache::WriteBack => format!("{disk} (now on)"),
            WriteCache::WriteThrough => format!("{disk} (now off)"),
        };
        let disks: Vec<String> = switch.found().map(now).collect();
        let (how, what) = match self.write_cache {
            Some(CacheStates::On) => ("on", LOSES),
            Some(CacheStates::Off) | None => ("off", SLOWER),
            Some(CacheStates::Both) => ("off and on alternately", SLOWER),
        };
        format!(
            "The write cache of {} is switched {how} during the run and restored at its end, even \
             after Ctrl-C or a crash. {what}",
            disks.join(", ")
        )
    }
}

/// What the user has to know.
const SLOWER: &str = "While it is off, all writes to the disk are slower, including those of other \
                      programs.";
const LOSES: &str = "While it is on, a power failure loses data written without a flush.";
