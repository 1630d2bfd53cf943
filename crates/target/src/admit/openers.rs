//! Which processes hold something open, from /proc/PID/fd, and for files from their memory mappings too. Knows nothing of what follows.

use super::in_use::{Node, Subject};
use crate::sysroot::{SysRoot, list, read_text};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};
use std::io::ErrorKind;
use std::path::Path;

/// A process that has it open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opener {
    pub(super) pid: u32,
    pub(super) name: String,
    /// Which of the subject's parts.
    pub(super) what: String,
    /// `held open` or `mapped into memory`.
    pub(super) how: &'static str,
}

/// All of them, one per process and part, and how many processes could not be looked into.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Openers {
    pub(super) openers: Vec<Opener>,
    pub(super) hidden: u32,
}

/// Every process but ourselves.
pub(super) fn find(root: &SysRoot, subject: &Subject<'_>) -> Openers {
    let mut found = Openers::default();
    for pid in list(&root.proc).iter().filter_map(|name| name.parse::<u32>().ok()).filter(|pid| *pid != std::process::id()) {
        let directory = root.proc.join(pid.to_string());
        let mut add = |what: String, how: &'static str| {
            let name = read_text(&directory.join("comm")).unwrap_or_default();
            let opener = Opener { pid, name, what, how };
            if !found.openers.contains(&opener) {
                found.openers.push(opener);
            }
        };
        match std::fs::read_dir(directory.join("fd")) {
            Ok(descriptors) => {
                descriptors.flatten().filter_map(|fd| owns(subject, &fd.path())).for_each(|what| add(what, "held open"));
                if let Subject::File { path, id } = subject {
                    let maps = std::fs::read(directory.join("maps")).unwrap_or_default();
                    if maps_file(&String::from_utf8_lossy(&maps), path, *id) {
                        add((*path).to_owned(), "mapped into memory");
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => found.hidden += 1,
            // It has just ended.
            Err(_) => {}
        }
    }
    found
}

/// What a descriptor leads to. Without asking a server: a hanging NFS must not hang us.
fn owns(subject: &Subject<'_>, descriptor: &Path) -> Option<String> {
    let told = statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
    subject.owns(&Node {
        is_block: FileType::from_raw_mode(told.stx_mode.into()) == FileType::BlockDevice,
        device: makedev(told.stx_rdev_major, told.stx_rdev_minor),
        id: (makedev(told.stx_dev_major, told.stx_dev_minor), told.stx_ino),
    })
}

/// Whether a list of mappings (proc_pid_maps(5)) has the file: by device and inode, or by inode and path, because btrfs reports another device there.
fn maps_file(maps: &str, path: &str, id: (u64, u64)) -> bool {
    maps.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let (Some(device), Some(inode)) = (fields.next(), fields.next()) else { return false };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let number = device.split_once(':').and_then(|(major, minor)| Some(makedev(hex(major)?, hex(minor)?)));
        id.1 != 0 && inode.parse() == Ok(id.1) && (number == Some(id.0) || line.ends_with(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_told_by_inode_and_device_or_path() {
        let maps = "7f00-7f10 r-xp 00000000 08:01 42                 /usr/lib/libx.so\n7f10-7f20 rw-p 00000000 00:00 0\n\
                    7f20-7f30 r--s 00000000 00:1f 43                 /data/my file\ngarbage\n";
        assert!(maps_file(maps, "/elsewhere", (makedev(8, 1), 42)));
        assert!(maps_file(maps, "/data/my file", (makedev(0, 0x2a), 43)), "btrfs");
        assert!(!maps_file(maps, "/elsewhere", (makedev(8, 2), 42)) && !maps_file(maps, "/x", (0, 0)));
    }
}
