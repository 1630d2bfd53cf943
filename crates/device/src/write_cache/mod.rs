//! Reads and switches the volatile write cache of disks, by the programs that can: hdparm for ATA
//! disks, nvme for NVMe, sdparm for SCSI. The state is what the disk itself reports.

pub(crate) mod guard;
#[cfg(test)]
mod tests;

use crate::health::{no_node, verified_node};
use crate::identity::link::NvmeController;
use crate::kernel::naming::is_character_device;
use crate::kernel::sysroot::SysRoot;
use crate::programs::external_program::{NoAnswer, find_program, output_with_input};
use diskproof_model::shell::quoted;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, WriteCache};
use rustix::fs::stat;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The reason why the write cache of a disk is not switched. Nothing was changed, unless the
/// message says so.
#[derive(Debug, thiserror::Error)]
pub enum WriteCacheError {
    /// No tool switches it.
    #[error("{disk}: its write cache cannot be switched from here: {why}")]
    NoSwitch {
        /// Kernel name of the disk.
        disk: String,
        /// A clause with what to do instead.
        why: String,
    },
    /// The disk does not report the state, so that nothing could be restored.
    #[error(
        "{disk}: '{command}' does not report the state of the write cache{said}. Nothing was \
         changed, because the state could not be restored later"
    )]
    UnknownState {
        /// Kernel name of the disk.
        disk: String,
        /// The query, as a user would type it.
        command: String,
        /// The program printed this; it ends a clause.
        said: String,
    },
    /// The disk did not take the new state.
    #[error("{disk}: the write cache could not be switched {state}: {why}")]
    NotSwitched {
        /// Kernel name of the disk.
        disk: String,
        /// `on` or `off`.
        state: &'static str,
        /// A clause with what the tool or the disk said.
        why: String,
    },
    /// The state that was found is not restored.
    #[error(
        "the write cache was NOT restored: {why}. Restore it now: {}",
        commands.join(" && ")
    )]
    NotRestored {
        /// A clause with what the tool or the disk said.
        why: String,
        /// These restore the caches, one for each disk, as a user would type them.
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
    pub(crate) initial_state: WriteCache,
}

/// The switch of the write caches of all disks below a target.
#[derive(Debug, Clone)]
pub struct WriteCacheSwitch {
    pub(crate) disks: Vec<SwitchedDisk>,
}

impl WriteCacheSwitch {
    /// Finds the tools and reads the states. `search_path` lists the directories of programs, as
    /// PATH does. Changes nothing.
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
    pub fn initial_states(&self) -> impl Iterator<Item = (&str, WriteCache)> {
        self.disks
            .iter()
            .map(|disk| (disk.name.as_str(), disk.initial_state))
    }

    /// The commands that restore the states that were found.
    pub fn restoring_commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        for disk in &self.disks {
            commands.push(disk.tool.change_text(&disk.node, disk.initial_state));
        }
        commands
    }
}

/// The states of the disks below a target by their own report. Disks without a tool, and disks that
/// report nothing, are missing.
pub fn reported_write_caches(
    identity: &TargetIdentity,
    search_path: Option<&OsStr>,
) -> Vec<(String, WriteCache)> {
    let mut caches = Vec::new();
    for layer in identity.disks() {
        if let Ok(disk) = switched_disk(layer, search_path) {
            caches.push((disk.name, disk.initial_state));
        }
    }
    caches
}

/// Finds the tool of a disk, and reads the state of its cache. Changes nothing.
fn switched_disk(
    disk: &Layer,
    search_path: Option<&OsStr>,
) -> Result<SwitchedDisk, WriteCacheError> {
    let name = disk.name.clone();
    let CacheSwitch {
        tool,
        node,
        program,
    } = match cache_switch(disk, search_path) {
        Ok(switch) => switch,
        Err(why) => return Err(WriteCacheError::NoSwitch { disk: name, why }),
    };
    match tool.state(&program, &node) {
        Ok(initial_state) => Ok(SwitchedDisk {
            name,
            node,
            tool,
            program,
            initial_state,
        }),
        Err(said) => Err(WriteCacheError::UnknownState {
            disk: name,
            command: tool.query_text(&node),
            said,
        }),
    }
}

/// The installed tool for the cache of a disk.
struct CacheSwitch {
    tool: CacheTool,
    /// The argument of the tool: the disk, or the controller of an NVMe disk.
    node: PathBuf,
    /// Path of the tool's program.
    program: PathBuf,
}

/// Finds what switches the cache of a disk; the error says why that cannot be done.
fn cache_switch(disk: &Layer, search_path: Option<&OsStr>) -> Result<CacheSwitch, String> {
    let tool = choose_tool(disk)?;
    let node = node_for(tool, disk).ok_or_else(|| no_node(disk))?;
    let by_hand = tool.change_text(&node, WriteCache::WriteThrough);
    if !rustix::process::geteuid().is_root() {
        return Err(format!("root is required; as root: {by_hand}"));
    }
    let CacheToolWords {
        program, package, ..
    } = tool.words();
    let program = find_program(program, search_path).ok_or_else(|| {
        format!("{program} is not installed; install {package} and use: {by_hand}")
    })?;
    Ok(CacheSwitch {
        tool,
        node,
        program,
    })
}

/// The node that the tool opens. The cache of NVMe belongs to the controller: some refuse the
/// feature for a namespace.
fn node_for(tool: CacheTool, disk: &Layer) -> Option<PathBuf> {
    let node = verified_node(disk)?;
    if tool != CacheTool::Nvme {
        return Some(node);
    }
    let directory = SysRoot::default().block_device(&disk.device)?;
    controller_node(&NvmeController::of_disk(&directory)?, Path::new("/dev"))
}

/// The node of a controller in this directory; `None` where there is none, or where the name
/// belongs to another device: a container has its own /dev.
fn controller_node(controller: &NvmeController, directory: &Path) -> Option<PathBuf> {
    let node = directory.join(&controller.name);
    if is_character_device(&stat(&node).ok()?, &controller.number) {
        Some(node)
    } else {
        None
    }
}

/// The tool of a disk, or why it has none.
pub(super) fn choose_tool(disk: &Layer) -> Result<CacheTool, &'static str> {
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
        LayerKind::Partition
        | LayerKind::DeviceMapper
        | LayerKind::Md
        | LayerKind::Zram
        | LayerKind::RamDisk => Err("it is in memory, or is not a disk"),
    }
}

/// The longest wait for one call of a tool. A disk whose cache is switched off writes it out first,
/// which takes seconds where it is busy. Chosen, not measured.
const TOOL_TIME_LIMIT: Duration = Duration::from_secs(30);
/// Longer text is no answer worth quoting.
const QUOTE_CHARS_MAX: usize = 200;

/// The program that reads and switches the write cache of a kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheTool {
    /// ATA: SET FEATURES 02h and 82h.
    Hdparm,
    /// NVMe: feature 6.
    Nvme,
    /// SCSI: bit WCE of the caching mode page, the current value only.
    Sdparm,
}

/// The command line of a tool: words are separated by one space, and the node follows them.
struct CacheToolWords {
    program: &'static str,
    /// The package that has the program, named where it is not installed.
    package: &'static str,
    query: &'static str,
    switch_on: &'static str,
    switch_off: &'static str,
}

impl CacheTool {
    pub(crate) const ALL: [Self; 3] = [Self::Hdparm, Self::Nvme, Self::Sdparm];

    fn words(self) -> CacheToolWords {
        match self {
            Self::Hdparm => CacheToolWords {
                program: "hdparm",
                package: "hdparm",
                query: "-W",
                switch_on: "-W1",
                switch_off: "-W0",
            },
            Self::Nvme => CacheToolWords {
                program: "nvme",
                package: "nvme-cli",
                query: "get-feature --feature-id=6",
                switch_on: "set-feature --feature-id=6 --value=1",
                switch_off: "set-feature --feature-id=6 --value=0",
            },
            Self::Sdparm => CacheToolWords {
                program: "sdparm",
                package: "sdparm",
                query: "--get=WCE",
                switch_on: "--set=WCE",
                switch_off: "--clear=WCE",
            },
        }
    }

    pub(crate) fn program(self) -> &'static str {
        self.words().program
    }

    fn query(self) -> &'static str {
        self.words().query
    }

    fn change(self, state: WriteCache) -> &'static str {
        match state {
            WriteCache::WriteBack => self.words().switch_on,
            WriteCache::WriteThrough => self.words().switch_off,
        }
    }

    /// The query for a shell.
    pub(crate) fn query_text(self, node: &Path) -> String {
        self.text(self.query(), node)
    }

    /// The change for a shell.
    pub(crate) fn change_text(self, node: &Path, state: WriteCache) -> String {
        self.text(self.change(state), node)
    }

    fn text(self, words: &str, node: &Path) -> String {
        let node = quoted(&node.display().to_string());
        format!("{} {words} {node}", self.program())
    }

    /// The state of a disk. The error is what the tool said, as the end of a clause.
    pub(crate) fn state(self, program: &Path, node: &Path) -> Result<WriteCache, String> {
        let text = run(program, self.query(), node, Stdio::null())?;
        self.parse(&text).ok_or_else(|| quote(&text))
    }

    /// Switches, and has the disk confirm it. The tool has `input` open until it ends, and reads
    /// nothing of it. The error is a clause.
    pub(crate) fn switch(
        self,
        program: &Path,
        node: &Path,
        state: WriteCache,
        input: Stdio,
    ) -> Result<(), String> {
        let command = self.change_text(node, state);
        let said = run(program, self.change(state), node, input)
            .map_err(|said| format!("'{command}' failed{said}"))?;
        match self.state(program, node) {
            Ok(now) if now == state => Ok(()),
            Ok(now) => Err(format!(
                "after '{command}' the disk reports that it is {}{}",
                state_text(now),
                quote(&said)
            )),
            Err(said) => Err(format!(
                "after '{command}', '{}' does not report its state{said}",
                self.query_text(node)
            )),
        }
    }

    /// Reads what the query printed: ` write-caching =  1 (on)`, `... Current value:0x00000001`,
    /// `WCE           1  [cha: y, ...`.
    pub(super) fn parse(self, text: &str) -> Option<WriteCache> {
        let value = match self {
            Self::Hdparm => number_after(text, "write-caching =")?,
            Self::Nvme => number_after(&text.to_lowercase(), "current value:")? & 1,
            Self::Sdparm => number_after(text, "WCE ")?,
        };
        match value {
            0 => Some(WriteCache::WriteThrough),
            1 => Some(WriteCache::WriteBack),
            _ => None,
        }
    }
}

/// `on` or `off`.
pub(crate) fn state_text(state: WriteCache) -> &'static str {
    match state {
        WriteCache::WriteBack => "on",
        WriteCache::WriteThrough => "off",
    }
}

/// The number, decimal or hexadecimal, behind a label.
fn number_after(text: &str, label: &str) -> Option<u64> {
    let rest = text.split(label).nth(1)?.trim_start();
    let word = rest
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or("");
    match word.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Runs the tool and returns what it printed. The error is what happened, as the end of a clause.
fn run(program: &Path, words: &str, node: &Path, input: Stdio) -> Result<String, String> {
    // Through a shell without a script of ours, for its stderr among its stdout.
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec 2>&1; exec \"$0\" \"$@\""])
        .arg(program)
        .args(words.split(' '))
        .arg(node)
        .env("LC_ALL", "C");
    output_with_input(command, input, TOOL_TIME_LIMIT).map_err(|silence| match silence {
        NoAnswer::Late => format!(": no answer within {} s", TOOL_TIME_LIMIT.as_secs()),
        NoAnswer::Failed(error) => format!(": {error}"),
    })
}

/// Quotes what a tool printed, as the end of a clause.
fn quote(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return " (it printed nothing)".to_owned();
    }
    let quotation: String = lines.join("; ").chars().take(QUOTE_CHARS_MAX).collect();
    format!(" (it printed: {quotation})")
}
