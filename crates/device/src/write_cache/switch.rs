//! Which disks below a target have a switch, and the states that they report. Changes nothing.

use super::tool::CacheTool;
use crate::external_program::find_program;
use crate::health::node_of;
use crate::link::nvme_controller_name;
use crate::sysroot::SysRoot;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, WriteCache};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Why the write cache of a disk is not switched. Nothing was changed, unless the message says so.
#[derive(Debug, thiserror::Error)]
pub enum WriteCacheError {
    /// No tool switches it.
    #[error("{disk}: its write cache cannot be switched from here: {why}")]
    NoSwitch {
        /// The disk.
        disk: String,
        /// A clause with what to do instead.
        why: String,
    },
    /// The disk does not tell the state, so that nothing could be restored.
    #[error(
        "{disk}: '{command}' does not report the state of the write cache{said}. Nothing was \
         changed, because the state could not be restored later"
    )]
    UnknownState {
        /// The disk.
        disk: String,
        /// The query.
        command: String,
        /// What it printed, as the end of a clause.
        said: String,
    },
    /// The disk did not take the new state.
    #[error("{disk}: the write cache could not be switched {state}: {why}")]
    NotSwitched {
        /// The disk.
        disk: String,
        /// `on` or `off`.
        state: &'static str,
        /// A clause.
        why: String,
    },
    /// The state that was found is not restored.
    #[error(
        "the write cache was NOT restored: {why}. Restore it now: {}",
        commands.join(" && ")
    )]
    NotRestored {
        /// A clause.
        why: String,
        /// What restores it.
        commands: Vec<String>,
    },
    /// The guard does not run.
    #[error("the process that restores the write cache {0}")]
    Guard(String),
}

/// A disk whose write cache can be switched, and the state that it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SwitchedDisk {
    pub(crate) name: String,
    pub(crate) node: PathBuf,
    pub(crate) tool: CacheTool,
    pub(crate) program: PathBuf,
    pub(crate) found: WriteCache,
}

/// The switch of the write caches of all disks below a target.
#[derive(Debug, Clone)]
pub struct WriteCacheSwitch {
    pub(super) disks: Vec<SwitchedDisk>,
}

impl WriteCacheSwitch {
    /// Finds the tools and reads the states. `search_path` is where programs are looked for, as in
    /// PATH. Changes nothing.
    pub fn find(
        identity: &TargetIdentity,
        search_path: Option<&OsStr>,
    ) -> Result<Self, WriteCacheError> {
        let mut disks: Vec<SwitchedDisk> = Vec::new();
        for disk in identity.disks() {
            if disks.iter().all(|known| known.name != disk.name) {
                disks.push(switched_disk(disk, search_path)?);
            }
        }
        if disks.is_empty() {
            Err(WriteCacheError::NoSwitch {
                disk: identity.path.clone(),
                why: "no local disk is known below it".to_owned(),
            })
        } else {
            Ok(Self { disks })
        }
    }

    /// The disks and the states that they were found in.
    pub fn found(&self) -> impl Iterator<Item = (&str, WriteCache)> {
        self.disks
            .iter()
            .map(|disk| (disk.name.as_str(), disk.found))
    }

    /// The commands that restore the states that were found.
    pub fn restoring_commands(&self) -> Vec<String> {
        let each = self.disks.iter();
        each.map(|disk| disk.tool.change_text(&disk.node, disk.found))
            .collect()
    }
}

/// The states of the disks below a target by their own report. Those that have no tool, or tell
/// nothing, are missing.
pub fn reported_write_caches(
    identity: &TargetIdentity,
    search_path: Option<&OsStr>,
) -> Vec<(String, WriteCache)> {
    let of = |disk: &Layer| {
        let disk = switched_disk(disk, search_path).ok()?;
        Some((disk.name, disk.found))
    };
    identity.disks().filter_map(of).collect()
}

fn switched_disk(
    disk: &Layer,
    search_path: Option<&OsStr>,
) -> Result<SwitchedDisk, WriteCacheError> {
    let no_switch = |why: String| WriteCacheError::NoSwitch {
        disk: disk.name.clone(),
        why,
    };
    let tool = tool_of(disk).map_err(|why| no_switch(why.to_owned()))?;
    let node = node_for(tool, disk).ok_or_else(|| {
        no_switch(format!(
            "/dev has no node of {} here; run outside the container",
            disk.name
        ))
    })?;
    let by_hand = tool.change_text(&node, WriteCache::WriteThrough);
    if !rustix::process::geteuid().is_root() {
        return Err(no_switch(format!("root is required; as root: {by_hand}")));
    }
    let program = find_program(tool.program(), search_path).ok_or_else(|| {
        no_switch(format!(
            "{} is not installed; install {} and use: {by_hand}",
            tool.program(),
            tool.package()
        ))
    })?;
    let found = tool
        .state(&program, &node)
        .map_err(|said| WriteCacheError::UnknownState {
            disk: disk.name.clone(),
            command: tool.query_text(&node),
            said,
        })?;
    Ok(SwitchedDisk {
        name: disk.name.clone(),
        node,
        tool,
        program,
        found,
    })
}

/// What the tool opens. The cache of NVMe belongs to the controller: some refuse the feature for a
/// namespace.
fn node_for(tool: CacheTool, disk: &Layer) -> Option<PathBuf> {
    let node = node_of(disk)?;
    if tool != CacheTool::Nvme {
        return Some(node);
    }
    let controller = nvme_controller_name(&SysRoot::default().block_device(&disk.device)?)?;
    Some(Path::new("/dev").join(controller))
}

/// The tool of a disk, or why it has none.
pub(super) fn tool_of(disk: &Layer) -> Result<CacheTool, &'static str> {
    let bus = disk.link.as_ref().map_or("", |link| link.bus.as_str());
    match disk.kind {
        LayerKind::Disk if disk.name.starts_with("nvme") => Ok(CacheTool::Nvme),
        LayerKind::Disk if bus == "SATA" => Ok(CacheTool::Hdparm),
        LayerKind::Disk if disk.name.starts_with("sd") => Ok(CacheTool::Sdparm),
        LayerKind::Disk if bus == "virtio" => Err(
            "the hypervisor controls it; change the cache mode of the disk there, or try as root: \
             echo 'write through' > /sys/block/DISK/cache_type",
        ),
        LayerKind::Disk => Err("no tool is known for a disk of this kind"),
        LayerKind::Network => Err("the disk is on another machine; switch it there"),
        LayerKind::Loop => Err("a loop device has no write cache; switch that of the disk below"),
        _ => Err("it is in memory, or is not a disk"),
    }
}
