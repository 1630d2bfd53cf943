//! Finds everything that uses a device or a file: mounts in every namespace, swap, holders (device
//! mapper, MD, bcache), loop devices, exports to other machines, processes. Each use becomes a
//! reason with the command that ends it.
//!
//! Reads /proc and /sys, and opens loop devices ([`loop_devices`]), but nothing else.

mod exports;
mod holders;
mod mounted;

use super::loop_devices;
use super::openers;
use super::permit::{HiddenBy, VisibilityGaps};
use super::reasons::RefusalReasons;
use super::subject::Subject;
use crate::kernel::mounts;
use crate::kernel::steps;
use crate::kernel::sysroot::SysRoot;
use exports::judge_exports;
use holders::judge_holders;
use mounted::{judge_btrfs, judge_mounts, judge_swaps};
use std::path::Path;
use std::time::Duration;

/// `PROC_PID_INIT_INO` of linux/proc_ns.h: the namespace that all others are inside of.
const PID_NAMESPACE_OF_ALL: &str = "pid:[4026531836]";

/// Returns what keeps processes out of this /proc; `None` where it lists all of the machine.
fn hidden_by(root: &SysRoot) -> Option<HiddenBy> {
    if let Ok(namespace) = std::fs::read_link(root.proc.join("self/ns/pid"))
        && namespace != Path::new(PID_NAMESPACE_OF_ALL)
    {
        return Some(HiddenBy::Namespace);
    }
    let mounts = mounts::read_mounts(root, "self");
    // The last one mounted there is the one that is seen.
    let proc = mounts
        .iter()
        .rev()
        .find(|mount| mount.kind == "proc" && Path::new(&mount.point) == Path::new("/proc"))?;
    match proc.option("hidepid") {
        None | Some("0" | "off") => None,
        Some(_) if rustix::process::geteuid().is_root() => None,
        Some(_) => Some(HiddenBy::MountOption),
    }
}

/// Adds a reason for each use of the subject. Returns which processes could not be looked at.
pub(crate) fn judge(
    root: &SysRoot,
    subject: Subject<'_>,
    reasons: &mut RefusalReasons,
) -> VisibilityGaps {
    judge_mounts(root, subject, reasons);
    judge_btrfs(root, subject, reasons);
    judge_swaps(root, subject, reasons);
    for member in subject.members() {
        judge_holders(root, &member.name, &member.sysfs, reasons);
    }
    judge_passed_on(root, subject, reasons);
    judge_openers(root, subject, reasons)
}

/// Adds a reason for each loop device and export that passes the subject on: no process needs to
/// have it open.
pub(super) fn judge_passed_on(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    loop_devices::judge(root, subject, reasons);
    judge_exports(root, subject, reasons);
}

/// udev, losetup and smartd open a disk in passing: a process that has closed it after half a
/// second does not use it. Chosen, not measured.
const OPENERS_LOOKS: u32 = 6;
/// The pause between two of these looks.
const OPENERS_PAUSE: Duration = Duration::from_millis(100);

fn judge_openers(
    root: &SysRoot,
    subject: Subject<'_>,
    reasons: &mut RefusalReasons,
) -> VisibilityGaps {
    let mut users = openers::find(root, &subject);
    for _ in 1..OPENERS_LOOKS {
        if users.is_empty() {
            break;
        }
        steps::pause(OPENERS_PAUSE);
        users = users.confirmed_by(openers::find(root, &subject));
    }
    for reason in users.reasons {
        reasons.add(reason.text, reason.step);
    }
    VisibilityGaps {
        processes: users.hidden,
        hidden_by: hidden_by(root),
        unseen: users.unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::DeviceFamily;
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;

    /// A disk with one partition, and a /proc in which nothing uses it.
    fn quiet() -> FakeSysfs {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("x/zza", "240:0", &[("size", "8192")]);
        sysfs.add_block_device(
            "x/zza/zza1",
            "240:1",
            &[("partition", "1"), ("start", "0"), ("size", "4096")],
        );
        sysfs.write_attribute("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw");
        sysfs.write_attribute("proc/swaps", "Filename Type Size Used Priority");
        sysfs
    }

    fn reasons(sysfs: &FakeSysfs) -> Vec<String> {
        let root = sysfs.root();
        let family = DeviceFamily::read(&root, "240:0").unwrap();
        let mut reasons = RefusalReasons::default();
        judge(&root, Subject::Device(&family), &mut reasons);
        reasons.into_stepwise_refusal(String::new()).reasons
    }

    #[test]
    fn a_quiet_disk_is_free() {
        assert_eq!(reasons(&quiet()), [""; 0]);
    }

    #[test]
    fn without_proc_nothing_is_vouched_for() {
        let sysfs = quiet();
        std::fs::remove_file(sysfs.root().proc.join("self/mountinfo")).unwrap();
        assert!(reasons(&sysfs)[0].contains("the mounts are unknown"));
    }

    #[test]
    fn mounts_are_found_by_number_by_source_and_in_other_namespaces() {
        let sysfs = quiet();
        sysfs.write_attribute(
            "proc/self/mountinfo",
            "1 0 240:1 / /mnt/my\\040data rw - ext4 /dev/root rw\n2 0 0:40 / /b rw - btrfs \
             /dev/zza1 rw",
        );
        sysfs.write_attribute(
            "proc/77/mountinfo",
            "3 0 240:0 / /inside rw - xfs /dev/other rw",
        );
        sysfs.write_attribute("proc/77/comm", "postgres");
        let ns = sysfs.root().proc;
        for (who, name) in [("self", "mnt:[1]"), ("77", "mnt:[2]")] {
            std::fs::create_dir_all(ns.join(who).join("ns")).unwrap();
            std::os::unix::fs::symlink(name, ns.join(who).join("ns/mnt")).unwrap();
        }
        let found = reasons(&sysfs);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            found[0],
            "/dev/zza1 is mounted at /mnt/my data (ext4) → umount '/mnt/my data'"
        );
        assert!(
            found[1].starts_with("/dev/zza1 is mounted at /b (btrfs)"),
            "{found:?}"
        );
        assert!(
            found[2].contains(
                "namespace of process 77 (postgres) → nsenter --target 77 --mount umount /inside"
            ),
            "{found:?}"
        );
    }

    #[test]
    fn source_of_a_mount_is_divided_for_bcachefs_only() {
        let sysfs = quiet();
        let mounted = |kind: &str, source: &str| {
            let line = format!("1 0 0:40 / /mnt rw - {kind} {source} rw");
            sysfs.write_attribute("proc/self/mountinfo", &line);
            reasons(&sysfs).len()
        };
        assert_eq!(mounted("bcachefs", "/dev/zzb:/dev/zza1"), 1);
        assert_eq!(mounted("nfs4", "server:/dev/zza1"), 0);
    }

    #[test]
    fn members_of_btrfs_and_swap_are_in_use() {
        let sysfs = quiet();
        sysfs.add_link("fs/btrfs/1234/devices/zza1", "class/block/zza1");
        sysfs.write_attribute(
            "proc/swaps",
            "Filename Type Size Used Priority\n/dev/zza1 partition 1 0 -2",
        );
        let found = reasons(&sysfs);
        assert!(
            found[0].contains("/dev/zza1 belongs to the mounted btrfs filesystem 1234"),
            "{found:?}"
        );
        assert_eq!(
            found[1],
            "/dev/zza1 is in use as swap space → swapoff /dev/zza1"
        );
    }

    #[test]
    fn holders_are_followed_to_the_top_and_each_has_its_command() {
        let sysfs = quiet();
        let dm = |number: u32, name: &str, uuid: &str| {
            sysfs.add_block_device(
                &format!("virtual/block/dm-{number}"),
                &format!("253:{number}"),
                &[("dm/name", name), ("dm/uuid", uuid)],
            );
        };
        dm(0, "my--vg-data", "LVM-abc");
        dm(1, "secret", "CRYPT-LUKS2-abc");
        dm(2, "san", "mpath-abc");
        dm(3, "own", "");
        sysfs.add_block_device("virtual/block/md7", "9:7", &[("md/level", "raid1")]);
        sysfs.add_block_device(
            "virtual/block/bcache0",
            "252:0",
            &[("bcache/state", "clean")],
        );
        for (below, above) in [
            ("zza", "md7"),
            ("zza", "bcache0"),
            ("zza", "dm-2"),
            ("zza", "dm-3"),
            ("zza1", "dm-0"),
            ("dm-0", "dm-1"),
        ] {
            let device = if below == "zza1" {
                "x/zza/zza1".to_owned()
            } else if below == "zza" {
                "x/zza".into()
            } else {
                format!("virtual/block/{below}")
            };
            sysfs.add_link(
                &format!("devices/{device}/holders/{above}"),
                &format!("class/block/{above}"),
            );
        }
        let found = reasons(&sysfs).join("\n");
        for part in [
            "/dev/zza is part of the array /dev/md7 (raid1) → mdadm --stop /dev/md7",
            "/dev/zza is part of the cache /dev/bcache0 → echo 1 > ",
            "/dev/dm-2 (san) → multipath -f san",
            "/dev/dm-3 (own) → dmsetup remove own",
            "/dev/dm-0 is part of /dev/dm-1 (secret) → cryptsetup close secret\n/dev/zza1 is part \
             of /dev/dm-0 (my--vg-data) → vgchange --activate n my-vg",
        ] {
            assert!(found.contains(part), "{part}:\n{found}");
        }
    }

    /// None of these drivers claims the disk, or is a process.
    #[test]
    fn disk_that_the_kernel_exports_is_in_use() {
        for (path, text) in [
            ("nvmet/subsystems/nqn/namespaces/1/device_path", "/dev/zza1"),
            ("target/core/iblock_0/one/udev_path", "/dev/zza"),
            (
                "target/core/fileio_0/one/info",
                "TCM FILEIO ID: 0        File: /dev/zza1  Size: 8192  Mode: O_DSYNC Async: 0",
            ),
            (
                "usb_gadget/g1/functions/mass_storage.0/lun.0/file",
                "/dev/zza1",
            ),
        ] {
            let sysfs = quiet();
            sysfs.write_attribute(&format!("kernel/config/{path}"), text);
            assert_eq!(reasons(&sysfs).len(), 1, "{path}");
            sysfs.write_attribute(&format!("kernel/config/{path}"), "/dev/zzb");
            assert_eq!(reasons(&sysfs), [""; 0], "{path}");
        }
        let sysfs = quiet();
        let namespace = "kernel/config/nvmet/subsystems/nqn/namespaces/1";
        sysfs.write_attribute(&format!("{namespace}/device_path"), "/dev/zza1");
        sysfs.write_attribute(&format!("{namespace}/enable"), "0");
        assert_eq!(reasons(&sysfs), [""; 0], "it is not open");
        let backend = "bus/xen-backend/devices/vbd-3-51712/physical_device";
        sysfs.write_attribute(backend, "f0:1");
        assert_eq!(reasons(&sysfs).len(), 1, "240:1");
        let sysfs = quiet();
        sysfs.add_link(
            "class/rnbd-server/ctl/devices/zza/block_dev",
            "devices/x/zza",
        );
        assert_eq!(reasons(&sysfs).len(), 1);
    }

    #[test]
    fn controller_that_the_nvme_target_passes_on_has_its_disk_in_use() {
        let sysfs = quiet();
        let passed = "kernel/config/nvmet/subsystems/nqn/passthru/device_path";
        // The number of /dev/null stands for that of the controller.
        sysfs.write_attribute(passed, "/dev/null");
        assert_eq!(reasons(&sysfs), [""; 0]);
        sysfs.write_attribute("devices/x/zza/device/nvme0/dev", "1:3");
        assert_eq!(reasons(&sysfs).len(), 1);
        sysfs.write_attribute("devices/x/zza/device/nvme0/dev", "1:4");
        sysfs.write_attribute("devices/x/zza/device/dev", "1:3");
        assert_eq!(reasons(&sysfs).len(), 1);
    }

    /// A virtual machine with a disk of its host opens a node of another kind.
    #[test]
    fn disk_whose_character_device_is_open_is_in_use() {
        for (place, name) in [
            ("devices/x/zza/device/scsi_generic/sg2", "sg2"),
            ("devices/x/zza/device/bsg/0:0:0:0", "0:0:0:0"),
        ] {
            let sysfs = quiet();
            let process = sysfs.root().proc.join("77");
            sysfs.write_attribute("proc/77/comm", "qemu");
            sysfs.write_attribute("proc/77/maps", "");
            std::fs::create_dir_all(process.join("task")).unwrap();
            std::fs::create_dir_all(process.join("fd")).unwrap();
            std::os::unix::fs::symlink("/dev/null", process.join("fd/9")).unwrap();
            assert_eq!(reasons(&sysfs), [""; 0]);
            // The number of /dev/null stands for that of the node.
            sysfs.write_attribute(&format!("{place}/dev"), "1:3");
            let found = reasons(&sysfs);
            let part = format!("/dev/zza (as {name}) is held open by process 77 (qemu)");
            assert!(found.len() == 1 && found[0].contains(&part), "{found:?}");
        }
    }

    #[test]
    fn what_hides_processes_is_known() {
        let sysfs = quiet();
        assert_eq!(hidden_by(&sysfs.root()), None);
        std::fs::create_dir_all(sysfs.root().proc.join("self/ns")).unwrap();
        std::os::unix::fs::symlink(PID_NAMESPACE_OF_ALL, sysfs.root().proc.join("self/ns/pid"))
            .unwrap();
        assert_eq!(hidden_by(&sysfs.root()), None);
        let inside = quiet();
        std::fs::create_dir_all(inside.root().proc.join("self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[4026532001]", inside.root().proc.join("self/ns/pid"))
            .unwrap();
        assert_eq!(hidden_by(&inside.root()), Some(HiddenBy::Namespace));
        sysfs.write_attribute(
            "proc/self/mountinfo",
            "22 1 0:21 / /proc rw - proc proc rw,hidepid=invisible",
        );
        let expected = if rustix::process::geteuid().is_root() {
            None
        } else {
            Some(HiddenBy::MountOption)
        };
        assert_eq!(hidden_by(&sysfs.root()), expected);
    }
}
