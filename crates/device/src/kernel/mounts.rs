//! Reads the mounts in /proc/self/mountinfo, and finds the one that holds a path.

use crate::kernel::sysroot::SysRoot;
use std::path::{Path, PathBuf};

/// One line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountEntry {
    /// `major:minor` of the filesystem.
    pub(crate) device: String,
    /// The part of the filesystem that is mounted: `/`, or the source of a bind mount.
    pub(crate) root: String,
    /// The mount point.
    pub(crate) point: String,
    /// Type of the filesystem, such as `ext4`.
    pub(crate) kind: String,
    /// The source of the mount in the filesystem's own words, such as `/dev/sda1`.
    pub(crate) source: String,
    /// Options of the mount, then of the filesystem; each once.
    pub(crate) options: Vec<String>,
}

impl MountEntry {
    /// The value of an option `name=value`.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// True with this option, of the mount or of the filesystem.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }

    /// The path within the filesystem, without a leading slash, of a path below the mount point.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.point).ok()?;
        Some(Path::new(self.root.trim_start_matches('/')).join(below))
    }
}

/// The mounts that a process sees (`self` or its pid), oldest first; none where /proc does not show
/// them.
pub(crate) fn read_mounts(root: &SysRoot, process: &str) -> Vec<MountEntry> {
    let bytes = std::fs::read(root.proc.join(process).join("mountinfo")).unwrap_or_default();
    parse_mountinfo(&String::from_utf8_lossy(&bytes))
}

/// The mounts of a mountinfo, oldest first; lines that are no mounts are skipped.
pub(crate) fn parse_mountinfo(text: &str) -> Vec<MountEntry> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<MountEntry> {
    // A lone dash ends the optional fields: 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3
    // /dev/root rw,errors=continue
    let (before_dash, behind_dash) = line.split_once(" - ")?;
    let mount: Vec<&str> = before_dash.split(' ').collect();
    let filesystem: Vec<&str> = behind_dash.split(' ').collect();
    let mut options = Vec::new();
    for option in mount
        .get(5)?
        .split(',')
        .chain(filesystem.get(2).copied().unwrap_or_default().split(','))
    {
        let plain = unescape(option);
        if !plain.is_empty() && !options.contains(&plain) {
            options.push(plain);
        }
    }
    Some(MountEntry {
        device: (*mount.get(2)?).to_owned(),
        root: unescape(mount.get(3)?),
        point: unescape(mount.get(4)?),
        kind: unescape(filesystem.first()?),
        source: unescape(filesystem.get(1)?),
        options,
    })
}

/// Blank, tab, newline and backslash are written as three octal digits after a backslash.
pub(crate) fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match octal_byte(part) {
            Some(byte) => {
                plain.push(byte);
                plain.extend(&part.as_bytes()[3..]);
            }
            None => {
                plain.push(b'\\');
                plain.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The byte that three octal digits at the start of a text stand for.
fn octal_byte(text: &str) -> Option<u8> {
    let digits = text.get(..3)?;
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    u8::from_str_radix(digits, 8).ok()
}

/// The mount that holds `path`, a file on the filesystem with the numbers `device`: of the mounts
/// of that device, the one with the longest mount point above the path, and the last one where
/// several share it. Where no mount has the device, as of btrfs subvolumes and some overlays, it is
/// found by the path alone.
pub(crate) fn find_mount<'a>(
    mounts: &'a [MountEntry],
    device: &str,
    path: &Path,
) -> Option<&'a MountEntry> {
    let mounts_above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    mounts_above
        .clone()
        .filter(|mount| mount.device == device)
        .max_by_key(|mount| mount.point.len())
        .or_else(|| mounts_above.max_by_key(|mount| mount.point.len()))
}

/// Filesystems in memory.
pub(crate) const MEMORY_FILESYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Filesystems that are windows into the kernel, with nothing stored behind them.
// rustfmt would give each name a line.
#[rustfmt::skip]
pub(crate) const KERNEL_FILESYSTEMS: [&str; 20] = [
    "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "devpts", "mqueue",
    "bpf", "pstore", "configfs", "fusectl", "binfmt_misc", "selinuxfs", "efivarfs", "autofs",
    "nsfs", "rpc_pipefs", "resctrl",
];

/// True where files on a filesystem of this kind are only memory.
pub(crate) fn is_in_memory(kind: &str) -> bool {
    MEMORY_FILESYSTEMS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
40 27 8:1 / /mnt/my\\040disk rw,noatime - xfs /dev/sda1 rw,noquota
41 27 8:1 /sub /srv rw,relatime - xfs /dev/sda1 ro,noquota
42 27 0:50 / /mnt rw - tmpfs tmpfs rw
43 27 254:0 /x /mnt/bind rw,relatime - ext4 /dev/vda rw,discard
44 27 0:60 / /over rw,relatime - overlay overlay \
                        rw,lowerdir=/a:/b,upperdir=/data/up,workdir=/data/work
garbage
";

    fn point<'a>(mounts: &'a [MountEntry], device: &str, path: &str) -> Option<&'a str> {
        find_mount(mounts, device, Path::new(path)).map(|mount| mount.point.as_str())
    }

    #[test]
    fn lines_read_with_optional_fields_and_escapes() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(mounts.len(), 7);
        assert_eq!(mounts[1].kind, "ext4");
        assert_eq!(mounts[1].source, "/dev/vda");
        assert_eq!(mounts[1].options, ["rw", "relatime", "discard"]);
        assert_eq!(mounts[2].point, "/mnt/my disk");
        assert_eq!(mounts[3].options, ["rw", "relatime", "ro", "noquota"]);
        assert_eq!(mounts[6].option("upperdir"), Some("/data/up"));
        let inside = mounts[3].inside(Path::new("/srv/pg/x"));
        assert_eq!(inside, Some("sub/pg/x".into()));
    }

    #[test]
    fn the_mount_is_found_by_device_then_by_path() {
        let mounts = parse_mountinfo(TEXT);
        for (device, path, expected) in [
            ("254:0", "/home/x", Some("/")),
            // Hidden under a later /mnt, but its device tells.
            ("8:1", "/mnt/my disk/pg", Some("/mnt/my disk")),
            ("254:0", "/mnt/bind/f", Some("/mnt/bind")),
            // No mount has that device.
            ("0:99", "/over/f", Some("/over")),
            // A name that only begins alike is not below.
            ("254:0", "/mntx", Some("/")),
            ("8:1", "relative", None),
        ] {
            assert_eq!(point(&mounts, device, path), expected, "{device} {path}");
        }
    }

    #[test]
    fn of_two_mounts_on_one_point_the_last_counts() {
        let mounts = parse_mountinfo(
            "1 0 0:5 / /a rw - tmpfs first rw\n2 0 0:5 / /a rw - tmpfs second rw\n",
        );
        let mount = find_mount(&mounts, "0:5", Path::new("/a/b")).unwrap();
        assert_eq!(mount.source, "second");
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape("a\\134b\\011\\"), "a\\b\t\\");
        assert_eq!(unescape("\\777\\08x\\1"), "\\777\\08x\\1");
    }
}
