//! Tells a filesystem that the kernel made read-only after an error from one that its
//! administrator mounted so.

use crate::kernel::container::container;
use crate::kernel::mounts::{MountEntry, find_mount, read_mounts};
use crate::kernel::sysroot::{SysRoot, read_number, read_text};
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
    let view = match container(root, Path::new("/")) {
        Some(_) => MountView::OfContainer,
        None => MountView::OfMachine,
    };
    let real_path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    is_stopped_in(root, view, &real_path, OVERLAYS_MAX)
}

/// The mounts that this process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MountView {
    /// Those of the machine, or of a service on it.
    OfMachine,
    /// Those of a container: where the machine has remounted the filesystem read-only, the mounts
    /// of the container stay writable.
    OfContainer,
}

/// An overlay may lie on another one, as in a container within a container.
const OVERLAYS_MAX: u32 = 4;

fn is_stopped_in(root: &SysRoot, view: MountView, path: &Path, overlays_left: u32) -> bool {
    let mut mounts = read_mounts(root, "self");
    let Some(mount) = find_mount(&mounts, "", path).cloned() else {
        return false;
    };
    if STOPPED_OPTIONS.iter().any(|option| mount.has(option)) {
        return true;
    }
    // What is written to an overlay goes to a directory of another filesystem.
    if let Some(upper) = mount.option("upperdir")
        && overlays_left > 0
    {
        return is_stopped_in(root, view, Path::new(upper), overlays_left - 1);
    }
    // The options of the mount stay writable, and only those of the filesystem become read-only. A
    // user who mounts it read-only, or remounts it so, changes those of a mount, which may be one
    // that only the first process sees.
    mounts.extend(read_mounts(root, "1"));
    let is_wanted = mounts
        .iter()
        .any(|other| other.device == mount.device && is_mounted_read_only(other));
    let has_errors = match counts_errors(root, &mount) {
        Some(has_errors) => has_errors,
        None => view == MountView::OfMachine,
    };
    mount.has("ro") && !is_wanted && STOPPING_KINDS.contains(&mount.kind.as_str()) && has_errors
}

/// Returns `true` if the options of the mount, which come first, say so.
fn is_mounted_read_only(mount: &MountEntry) -> bool {
    mount.options.first().map(String::as_str) == Some("ro")
}

/// Returns `true` if ext4 has counted errors; `None` of a filesystem without such a count. The
/// count lasts until the filesystem is checked: an error before the machine started, by the wall
/// clock, has stopped nothing since.
fn counts_errors(root: &SysRoot, mount: &MountEntry) -> Option<bool> {
    let device = root.block_device(&mount.device)?;
    let counts = root.sys.join("fs/ext4").join(device.file_name()?);
    let errors: u64 = read_number(&counts.join("errors_count"))?;
    let last_s: Option<u64> = read_number(&counts.join("last_error_time"));
    let is_old = match (last_s, started_s(root)) {
        // Filesystems of other versions keep no time.
        (Some(last_s), Some(started_s)) => last_s > 0 && last_s < started_s,
        _ => false,
    };
    Some(errors > 0 && !is_old)
}

/// When the machine started, in seconds since 1970 (`btime` of proc_stat(5)).
fn started_s(root: &SysRoot) -> Option<u64> {
    let text = read_text(&root.proc.join("stat"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use std::path::PathBuf;

    fn stopped(mounts: &str, errors: &str) -> bool {
        stopped_beside(mounts, "", MountView::OfMachine, errors)
    }

    /// With the mounts that the first process sees.
    fn stopped_beside(mounts: &str, of_first: &str, view: MountView, errors: &str) -> bool {
        let sysfs = FakeSysfs::new();
        sysfs.write_attribute("proc/self/mountinfo", mounts);
        sysfs.write_attribute("proc/1/mountinfo", of_first);
        sysfs.add_block_device("sdx", "7:1", &[]);
        sysfs.write_attribute("fs/ext4/sdx/errors_count", errors);
        let path = PathBuf::from("/data/db");
        is_stopped_in(&sysfs.root(), view, &path, OVERLAYS_MAX)
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

    /// The machine has remounted the filesystem; the mounts of a container do not show that.
    #[test]
    fn container_believes_counted_errors_only() {
        let bound = |kind: &str| format!("9 1 7:1 /db /data rw - {kind} /dev/sdx ro\n");
        let of_container = MountView::OfContainer;
        for (kind, errors, view, is_stopped) in [
            ("ext4", "2", of_container, true),
            ("ext4", "0", of_container, false),
            ("btrfs", "", of_container, false),
            ("vfat", "", of_container, false),
            ("btrfs", "", MountView::OfMachine, true),
        ] {
            let found = stopped_beside(&bound(kind), "", view, errors);
            assert_eq!(found, is_stopped, "{kind} {errors}");
        }
        // A service with mounts of its own sees those of the first process.
        let remounted = "8 1 7:1 / /srv ro - vfat /dev/sdx ro\n";
        let of_machine = MountView::OfMachine;
        assert!(!stopped_beside(&bound("vfat"), remounted, of_machine, ""));
    }

    /// A check was never run after an error of last year; the administrator of the machine has
    /// remounted the filesystem read-only.
    #[test]
    fn error_before_the_machine_started_has_stopped_nothing() {
        let stopped = |last_s: &str, stat: &str| {
            let sysfs = FakeSysfs::new();
            let mount = "9 1 7:1 /db /data rw - ext4 /dev/sdx ro\n";
            sysfs.write_attribute("proc/self/mountinfo", mount);
            sysfs.write_attribute("proc/1/mountinfo", "");
            sysfs.write_attribute("proc/stat", stat);
            sysfs.add_block_device("sdx", "7:1", &[]);
            sysfs.write_attribute("fs/ext4/sdx/errors_count", "2");
            sysfs.write_attribute("fs/ext4/sdx/last_error_time", last_s);
            let path = PathBuf::from("/data/db");
            is_stopped_in(&sysfs.root(), MountView::OfContainer, &path, OVERLAYS_MAX)
        };
        let stat = "cpu  1 2 3\nbtime 1760000000\nprocesses 7\n";
        assert!(!stopped("1750000000", stat));
        assert!(stopped("1760000001", stat));
        // Unknown times.
        assert!(stopped("0", stat));
        assert!(stopped("1750000000", "cpu  1 2 3\n"));
    }

    #[test]
    fn overlay_stops_with_the_filesystem_of_its_upper_directory() {
        let mounts = |own: &str| {
            format!(
                "8 1 7:1 / /srv {own} - ext4 /dev/sdx ro\n\
                 9 1 0:40 / /data rw - overlay overlay rw,lowerdir=/a,upperdir=/srv/up,workdir=/w\n"
            )
        };
        assert!(stopped(&mounts("rw"), "2"));
        assert!(!stopped(&mounts("rw"), "0"));
        assert!(!stopped(&mounts("ro"), "2"));
    }
}
