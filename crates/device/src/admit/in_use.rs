//! Finds everything that uses a device or a file: mounts in every namespace, swap, holders (device
//! mapper, MD, bcache), loop devices, exports to other machines, processes. Each use becomes a
//! reason with the command that ends it.
//!
//! Reads /proc and /sys, and opens loop devices ([`loop_devices`]), but nothing else.

use super::ancestry::find_places;
use super::loop_devices;
use super::openers;
use super::permit::{HiddenBy, VisibilityGaps};
use super::reasons::{RefusalReasons, Step};
use super::subject::{Node, NodeKind, Subject};
use crate::identity::exports::{Export, Exported, exports};
use crate::identity::layers::is_served;
use crate::kernel::mounts::{self, MountEntry};
use crate::kernel::namespaces::{MountTables, Namespace};
use crate::kernel::naming::{device_number, errno_name, node};
use crate::kernel::steps;
use crate::kernel::sysroot::{SysRoot, devices_in, list, read_text};
use diskproof_model::shell::quoted;
use diskproof_model::target::TargetKind;
use rustix::fs::stat;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
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
        judge_holders(root, &member.name, &member.sysfs, reasons, 0);
    }
    loop_devices::judge(root, subject, reasons);
    judge_exports(root, subject, reasons);
    judge_openers(root, subject, reasons)
}

/// The step where this process has no descriptors left.
const RAISE_LIMIT: &str = "raise the limit on open files (ulimit -n)";

fn judge_mounts(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let namespaces = MountTables::read(root);
    let own_mounts: &[MountEntry] = match namespaces.tables.first() {
        Some(table) => &table.mounts,
        None => &[],
    };
    if own_mounts.is_empty() {
        reasons.add(
            "/proc/self/mountinfo cannot be read, so the mounts are unknown",
            Step::clause("mount /proc"),
        );
    }
    let mut files = Vec::new();
    for file in subject.files() {
        // More places than these are a reason to refuse, which the check of the ancestry adds.
        let places = find_places(own_mounts, file.path, TargetKind::File, file.id);
        files.extend(places.list);
    }
    for table in &namespaces.tables {
        for mount in &table.mounts {
            if let Some(what) = mounted_device(subject, mount) {
                add_mounted_device(&what, mount, &table.namespace, reasons);
            }
            if files.iter().any(|file| file.is_mounted_by(mount)) {
                add_mounted_file(mount, &table.namespace, reasons);
            }
        }
    }
    for table in &namespaces.unreadable {
        // A user without rights sees no other namespace either, which is said elsewhere.
        if !matches!(table.errno, Errno::PERM | Errno::ACCESS) {
            let (path, errno) = (table.path.display(), errno_name(table.errno));
            let step = match table.errno {
                Errno::MFILE | Errno::NFILE => RAISE_LIMIT.to_owned(),
                _ if table.path.starts_with(&root.proc) => {
                    "try again, or end that process".to_owned()
                }
                _ => format!("umount {}", quoted(&path.to_string())),
            };
            reasons.add(
                format!("the mounts of the namespace at {path} cannot be read ({errno})"),
                Step::clause(step),
            );
        }
    }
}

/// The part of the subject that is mounted there as a device.
fn mounted_device(subject: Subject<'_>, mount: &MountEntry) -> Option<String> {
    if let Some(what) = subject.find_device(&mount.device) {
        return Some(what);
    }
    let mut sources = vec![mount.source.as_str()];
    // bcachefs names all its devices, with colons between. What follows the colon of NFS is a path
    // on another machine: here it may lead to anything, such as a mount whose server hangs.
    if mount.kind == "bcachefs" {
        sources.extend(mount.source.split(':'));
    }
    for source in sources {
        let path = Path::new(source);
        if !path.is_absolute() {
            continue;
        }
        let owned = match stat(path) {
            Ok(stat) => subject.find_node(&Node::from(&stat)),
            Err(_) => subject.find_by_node_path(path),
        };
        if owned.is_some() {
            return owned;
        }
    }
    None
}

fn add_mounted_device(
    what: &str,
    mount: &MountEntry,
    namespace: &Namespace,
    reasons: &mut RefusalReasons,
) {
    let MountEntry { kind, point, .. } = mount;
    let is_mounted = format!("{what} is mounted at {point} ({kind})");
    if point == "/" && *namespace == Namespace::Own {
        let step = "this is the disk of the running system: name another one";
        return reasons.add(is_mounted, Step::clause(step));
    }
    let step = Step::clause(unmounting(point, namespace));
    reasons.add(format!("{is_mounted}{}", namespace_phrase(namespace)), step);
}

/// A file that is mounted has that name, too, and a container or a server uses it there.
fn add_mounted_file(mount: &MountEntry, namespace: &Namespace, reasons: &mut RefusalReasons) {
    let point = &mount.point;
    let place = namespace_phrase(namespace);
    let umount = unmounting(point, namespace);
    reasons.add(
        format!("it is mounted at {point}{place} (bind mount of a file)"),
        Step::clause(format!("{umount}, or copy the file and name the copy")),
    );
}

/// ` in the mount namespace of process 77 (postgres)`; nothing for our own.
fn namespace_phrase(namespace: &Namespace) -> String {
    match namespace {
        Namespace::Own => String::new(),
        Namespace::Process { pid, name } => {
            format!(" in the mount namespace of process {pid} ({name})")
        }
        Namespace::Kept { path } => {
            format!(" in the mount namespace that {} keeps", path.display())
        }
    }
}

/// The command that ends a mount in a namespace.
fn unmounting(point: &str, namespace: &Namespace) -> String {
    let umount = format!("umount {}", quoted(point));
    match namespace {
        Namespace::Own => umount,
        Namespace::Process { pid, .. } => format!("nsenter --target {pid} --mount {umount}"),
        Namespace::Kept { path } => {
            let path = quoted(&path.display().to_string());
            format!("nsenter --mount={path} {umount}")
        }
    }
}

/// mountinfo names one device of a btrfs, and an anonymous number; sysfs lists all members of those
/// that are mounted.
fn judge_btrfs(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let filesystems = root.sys.join("fs/btrfs");
    for uuid in list(&filesystems) {
        for device in devices_in(&filesystems.join(&uuid).join("devices")) {
            if let Some(what) = subject.find_device(&device) {
                reasons.add(
                    format!("{what} belongs to the mounted btrfs filesystem {uuid}"),
                    Step::clause(format!(
                        "umount it (findmnt --types btrfs shows where), or btrfs device remove \
                         {what}"
                    )),
                );
            }
        }
    }
}

fn judge_swaps(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let text = match std::fs::read_to_string(root.proc.join("swaps")) {
        Ok(text) => text,
        // A kernel without swap has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            return reasons.add(
                format!("/proc/swaps cannot be read ({error}), so the swap devices are unknown"),
                Step::clause("run as root, outside a container"),
            );
        }
    };
    for line in text.lines().skip(1) {
        let Some(field) = line.split_whitespace().next() else {
            continue;
        };
        let path = PathBuf::from(mounts::unescape(field));
        let followed = match stat(&path) {
            Ok(stat) => subject.find_node(&Node::from(&stat)),
            Err(_) => None,
        };
        if let Some(what) = followed.or_else(|| subject.find_by_node_path(&path)) {
            reasons.add(
                format!("{what} is in use as swap space"),
                Step::clause(format!("swapoff {}", quoted(&path.display().to_string()))),
            );
        }
    }
}

/// Devices on top of each other are followed so far: a broken sysfs might have circles. Chosen, not
/// measured; the lowest holders are reasons in any case.
const HOLDERS_DEPTH_MAX: u32 = 16;

/// Adds a reason for each device on top of the device `name`, whose directory in sysfs is `sysfs`.
fn judge_holders(
    root: &SysRoot,
    name: &str,
    sysfs: &Path,
    reasons: &mut RefusalReasons,
    depth: u32,
) {
    if depth > HOLDERS_DEPTH_MAX {
        return;
    }
    for holder in list(&sysfs.join("holders")) {
        let above = sysfs
            .join("holders")
            .join(&holder)
            .canonicalize()
            .unwrap_or_else(|_| root.sys.join("class/block").join(&holder));
        // Top down is the order in which they have to go.
        judge_holders(root, &holder, &above, reasons, depth + 1);
        let holder = describe_holder(&holder, &above);
        let part = format!("{} is part of {}", node(name), holder.what);
        reasons.add(part, Step::clause(holder.release));
    }
}

/// A device that lies on another one.
struct Holder {
    /// Words for the device, such as `the array /dev/md0 (raid1)`.
    what: String,
    /// The command with which it lets go.
    release: String,
}

/// Describes the holder of this name, whose directory in sysfs is `sysfs`.
fn describe_holder(name: &str, sysfs: &Path) -> Holder {
    let node = node(name);
    if let Some(mapped) = read_text(&sysfs.join("dm/name")) {
        let uuid = read_text(&sysfs.join("dm/uuid")).unwrap_or_default();
        let release = match uuid.split('-').next().unwrap_or_default() {
            "LVM" => format!("vgchange --activate n {}", quoted(&volume_group(&mapped))),
            "CRYPT" => format!("cryptsetup close {}", quoted(&mapped)),
            "mpath" => format!("multipath -f {}", quoted(&mapped)),
            _ => format!("dmsetup remove {}", quoted(&mapped)),
        };
        Holder {
            what: format!("{node} ({mapped})"),
            release,
        }
    } else if sysfs.join("md").is_dir() {
        let level = read_text(&sysfs.join("md/level")).unwrap_or_else(|| "RAID".to_owned());
        Holder {
            what: format!("the array {node} ({level})"),
            release: format!("mdadm --stop {node}"),
        }
    } else if sysfs.join("bcache").is_dir() {
        Holder {
            what: format!("the cache {node}"),
            release: format!("echo 1 > {}/bcache/stop", sysfs.display()),
        }
    } else {
        Holder {
            release: format!("take {node} down"),
            what: node,
        }
    }
}

/// The group's part of the mapped name `group-volume`; dashes within a name are doubled.
fn volume_group(mapped: &str) -> String {
    let hidden = mapped.replace("--", "\0");
    let group = hidden.split('-').next().unwrap_or_default();
    group.replace('\0', "-")
}

/// The kernel's own servers of disks, which are no processes and claim nothing.
fn judge_exports(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    for export in exports(root) {
        if let Some(what) = exported_part(root, subject, &export) {
            let driver = export.driver.name();
            reasons.add(
                format!("{what} is exported by {driver}: another machine or a guest may use it"),
                Step::clause(format!(
                    "end the export, which {} configures",
                    export.place.display()
                )),
            );
        }
    }
}

/// The part of the subject that is exported.
fn exported_part(root: &SysRoot, subject: Subject<'_>, export: &Export) -> Option<String> {
    if !export.is_open {
        return None;
    }
    let path = match &export.exported {
        Exported::Device(number) => return subject.find_device(number),
        Exported::Path(path) if path.is_absolute() => path,
        // A name that the driver was not given yet.
        Exported::Path(_) => return None,
    };
    // The server of a file may not answer: such a file is no node of a disk here.
    if is_on_server(root, path) {
        return None;
    }
    let Ok(stat) = stat(path) else {
        return subject.find_by_node_path(path);
    };
    let node = Node::from(&stat);
    if let Some(what) = subject.find_node(&node) {
        return Some(what);
    }
    // The NVMe target passes on whole controllers, too.
    if node.kind != NodeKind::Character {
        return None;
    }
    subject.find_controlled_disk(&device_number(node.device))
}

/// True if another machine or a program answers for the filesystem of a path.
fn is_on_server(root: &SysRoot, path: &Path) -> bool {
    let mounts = mounts::read_mounts(root, "self");
    let mount = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.len());
    mount.is_some_and(|mount| is_served(&mount.kind))
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
        if users.reasons.is_empty() && users.unseen.is_empty() {
            break;
        }
        steps::pause(OPENERS_PAUSE);
        let users_now = openers::find(root, &subject);
        // A message between two processes is read the next moment.
        users
            .unseen
            .retain(|process| users_now.unseen.contains(process));
        users.reasons = users_now.reasons;
        users.hidden = users_now.hidden;
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
