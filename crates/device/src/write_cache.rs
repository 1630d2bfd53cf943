//! The volatile write cache of disks, by their own report, and its switch: hdparm for ATA disks,
//! nvme for NVMe, sdparm for SCSI.

#[cfg(test)]
mod tests;

use crate::external_program::{NoAnswer, find_program, output_of};
use crate::health::{no_node, verified_node};
use crate::link::nvme_controller_name;
use crate::sysroot::SysRoot;
use diskproof_model::shell::quoted;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, WriteCache};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
        /// The program printed this; it ends a clause.
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
        /// This command restores the cache.
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
    pub(crate) disks: Vec<SwitchedDisk>,
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
    let mut caches = Vec::new();
    for layer in identity.disks() {
        if let Ok(disk) = switched_disk(layer, search_path) {
            caches.push((disk.name, disk.found));
        }
    }
    caches
}

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
        Ok(found) => Ok(SwitchedDisk {
            name,
            node,
            tool,
            program,
            found,
        }),
        Err(said) => Err(WriteCacheError::UnknownState {
            disk: name,
            command: tool.query_text(&node),
            said,
        }),
    }
}

/// What switches the cache of a disk.
struct CacheSwitch {
    tool: CacheTool,
    /// What the tool opens.
    node: PathBuf,
    /// Where it is installed.
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
    let [name, package, ..] = tool.words();
    let program = find_program(name, search_path)
        .ok_or_else(|| format!("{name} is not installed; install {package} and use: {by_hand}"))?;
    Ok(CacheSwitch {
        tool,
        node,
        program,
    })
}

/// What the tool opens. The cache of NVMe belongs to the controller: some refuse the feature for a
/// namespace.
fn node_for(tool: CacheTool, disk: &Layer) -> Option<PathBuf> {
    let node = verified_node(disk)?;
    if tool != CacheTool::Nvme {
        return Some(node);
    }
    let controller = nvme_controller_name(&SysRoot::default().block_device(&disk.device)?)?;
    Some(Path::new("/dev").join(controller))
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
        _ => Err("it is in memory, or is not a disk"),
    }
}

/// A disk that is switched off writes its cache out first.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Longer text is no answer worth quoting.
const QUOTE_CHARS_MAX: usize = 200;

/// What reads and switches the write cache of a kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheTool {
    /// ATA: SET FEATURES 02h and 82h.
    Hdparm,
    /// NVMe: feature 6.
    Nvme,
    /// SCSI: bit WCE of the caching mode page, the current value only.
    Sdparm,
}

impl CacheTool {
    pub(crate) const ALL: [Self; 3] = [Self::Hdparm, Self::Nvme, Self::Sdparm];

    /// Its program, the package that has it, and the words that query the state and that switch the
    /// cache on and off.
    fn words(self) -> [&'static str; 5] {
        match self {
            Self::Hdparm => ["hdparm", "hdparm", "-W", "-W1", "-W0"],
            Self::Nvme => [
                "nvme",
                "nvme-cli",
                "get-feature --feature-id=6",
                "set-feature --feature-id=6 --value=1",
                "set-feature --feature-id=6 --value=0",
            ],
            Self::Sdparm => ["sdparm", "sdparm", "--get=WCE", "--set=WCE", "--clear=WCE"],
        }
    }

    pub(crate) fn program(self) -> &'static str {
        self.words()[0]
    }

    fn query(self) -> &'static str {
        self.words()[2]
    }

    fn change(self, state: WriteCache) -> &'static str {
        match state {
            WriteCache::WriteBack => self.words()[3],
            WriteCache::WriteThrough => self.words()[4],
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
        let text = run(program, self.query(), node)?;
        self.parse(&text).ok_or_else(|| quote(&text))
    }

    /// Switches, and has the disk confirm it. The error is a clause.
    pub(crate) fn switch(
        self,
        program: &Path,
        node: &Path,
        state: WriteCache,
    ) -> Result<(), String> {
        let command = self.change_text(node, state);
        let said = run(program, self.change(state), node)
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

    /// ` write-caching =  1 (on)`, `... Current value:0x00000001`, `WCE           1  [cha: y, ...`.
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

/// What a command printed. The error is what happened, as the end of a clause.
fn run(program: &Path, words: &str, node: &Path) -> Result<String, String> {
    // Through a shell without a script of ours, for its stderr among its stdout.
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec 2>&1; exec \"$0\" \"$@\""])
        .arg(program)
        .args(words.split(' '))
        .arg(node)
        .env("LC_ALL", "C");
    output_of(command, TIME_LIMIT).map_err(|silence| match silence {
        NoAnswer::Late => format!(": no answer within {} s", TIME_LIMIT.as_secs()),
        NoAnswer::Failed(error) => format!(": {error}"),
    })
}

/// Quotes what a tool printed, as the end of a clause.
fn quote(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join("; ");
    let text: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    match text.as_str() {
        "" => " (it printed nothing)".to_owned(),
        text => format!(" (it printed: {text})"),
    }
}
