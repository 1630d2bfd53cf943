//! The places of /sys and /proc, so that tests can use their own tree. Reads text files without
//! interpreting them.

use crate::kernel::steps;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The two trees in which the kernel describes itself.
#[derive(Debug, Clone)]
pub(crate) struct SysRoot {
    pub(crate) sys: PathBuf,
    pub(crate) proc: PathBuf,
}

impl Default for SysRoot {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
        }
    }
}

impl SysRoot {
    /// The directory of a block device (`major:minor`) in the device tree, symlinks resolved.
    pub(crate) fn block_device(&self, device: &str) -> Option<PathBuf> {
        self.sys.join("dev/block").join(device).canonicalize().ok()
    }

    /// The directory of a block device (kernel name) in the device tree, symlinks resolved.
    pub(crate) fn named_device(&self, name: &str) -> Option<PathBuf> {
        self.sys.join("class/block").join(name).canonicalize().ok()
    }

    /// The pids of all processes but our own; none where /proc cannot be read.
    pub(crate) fn other_processes(&self) -> Vec<u32> {
        self.try_other_processes().unwrap_or_default()
    }

    /// The pids of all processes but our own.
    pub(crate) fn try_other_processes(&self) -> std::io::Result<Vec<u32>> {
        let mut pids = Vec::new();
        for name in try_list(&self.proc)? {
            if let Ok(pid) = name.parse()
                && pid != std::process::id()
                && steps::is_seen(pid)
            {
                pids.push(pid);
            }
        }
        Ok(pids)
    }
}

/// The text of a small file without surrounding blanks; `None` when it is missing, unreadable, or
/// empty.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let content = String::from_utf8_lossy(&bytes);
    let text = content.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    if text.is_empty() {
        return None;
    }
    Some(text.to_owned())
}

/// The text of the first of these files that has one.
pub(crate) fn first_text(directory: &Path, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| read_text(&directory.join(name)))
}

/// The value of a key in a text with a key and a value a line, such as /proc/cpuinfo.
pub(crate) fn value_of<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    for line in text.lines() {
        if let Some((name, value)) = line.split_once(separator)
            && name.trim() == key
        {
            return Some(value.trim());
        }
    }
    None
}

/// The number that a small file holds; `None` when it is missing or holds something else.
pub(crate) fn read_number<N: FromStr>(path: &Path) -> Option<N> {
    read_text(path)?.parse().ok()
}

/// `major:minor` of the block devices whose entries are in a directory, by name.
pub(crate) fn devices_in(path: &Path) -> Vec<String> {
    let mut devices = Vec::new();
    for name in list(path) {
        devices.extend(read_text(&path.join(name).join("dev")));
    }
    devices
}

/// Names in a directory, sorted; empty when it cannot be read.
pub(crate) fn list(path: &Path) -> Vec<String> {
    try_list(path).unwrap_or_default()
}

/// Names in a directory, sorted; an error where it cannot be opened.
pub(crate) fn try_list(path: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)?.flatten() {
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
