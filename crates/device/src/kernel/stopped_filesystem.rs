//! Tells a filesystem that the kernel made read-only after an error from one that its
//! administrator mounted so.

use crate::kernel::mounts::{MountEntry, find_mount, read_mounts};
use crate::kernel::sysroot::{SysRoot, read_number};
use std::path::Path;

/// Options that say it: of ext4 since Linux 6.14, and of ext4, f2fs and others after a shutdown.
const STOPPED_OPTIONS: [&str; 2] = ["emergency_ro", "shutdown"];
/// Filesystems that the kernel makes read-only after an error. Others may be read-only by nature.
const STOPPING_KINDS: [&str; 10] = [
    "ext2", "ext3", "ext4", "btrfs", "f2fs", "vfat", "exfat", "jfs", "nilfs2", "ocfs2",
];

/// Returns `true` if the kernel made the filesystem of this path read-only after an error. `false`
/// where an administrator may have done it.
pub(crate) fn is_stopped(root: &SysRoot, path: &Path) -> bool {
    let mounts = read_mounts(root, "self");
    let real_path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(mount) = find_mount(&mounts, "", &real_path) else {
        return false;
    };
    if STOPPED_OPTIONS.iter().any(|option| mount.has(option)) {
        return true;
    }
    // The options of the mount stay writable, and only those of the filesystem become read-only. A
    // user who mounts it read-only, or remounts it so, changes those of a mount.
    let is_wanted = mounts
        .iter()
        .any(|other| other.device == mount.device && is_mounted_read_only(other));
    mount.has("ro")
        && !is_wanted
        && STOPPING_KINDS.contains(&mount.kind.as_str())
        && counts_errors(root, mount) != Some(false)
}

/// Returns `true` if the options of the mount, which come first, say so.
fn is_mounted_read_only(mount: &MountEntry) -> bool {
    mount.options.first().map(String::as_str) == Some("ro")
}

/// Returns `true` if ext4 has counted errors; `None` of a filesystem without such a count.
fn counts_errors(root: &SysRoot, mount: &MountEntry) -> Option<bool> {
    let device = root.block_device(&mount.device)?;
    let counts = root.sys.join("fs/ext4").join(device.file_name()?);
    let errors: u64 = read_number(&counts.join("errors_count"))?;
    Some(errors > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use std::path::PathBuf;

    fn stopped(mounts: &str, errors: &str) -> bool {
        let sysfs = FakeSysfs::new();
        sysfs.write_attribute("proc/self/mountinfo", mounts);
        sysfs.add_block_device("sdx", "7:1", &[]);
        sysfs.write_attribute("fs/ext4/sdx/errors_count", errors);
        is_stopped(&sysfs.root(), &PathBuf::from("/data/db"))
    }

    #[test]
    fn filesystem_that_the_kernel_stopped_is_told_from_one_mounted_read_only() {
        let mount = |own: &str, kind: &str, whole: &str| {
            format!("9 1 7:1 / /data {own},relatime - {kind} /dev/sdx {whole}\n")
        };
        for (mounts, errors, is_stopped) in [
            (mount("rw", "ext4", "rw,emergency_ro"), "0", true),
            (mount("rw", "ext4", "ro,errors=remount-ro"), "2", true),
            (mount("rw", "btrfs", "ro,space_cache=v2"), "", true),
            (mount("ro", "ext4", "ro"), "2", false),
            (mount("ro", "ext4", "rw"), "2", false),
            (mount("rw", "ext4", "ro"), "0", false),
            (mount("rw", "squashfs", "ro"), "", false),
            (mount("rw", "ext4", "rw"), "2", false),
        ] {
            assert_eq!(stopped(&mounts, errors), is_stopped, "{mounts}");
        }
        // Remounted read-only at one place, and seen through another one.
        let both = "8 1 7:1 / /mnt ro - ext4 /dev/sdx ro\n".to_owned() + &mount("rw", "ext4", "ro");
        assert!(!stopped(&both, "2"));
    }
}
