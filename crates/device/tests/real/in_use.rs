//! Devices in use, on real loop devices: mounted, swapped to, held, or open somewhere. Each must be
//! refused with the user and the command that ends it.

use crate::support::{Disk, MIB, Process, admitted, consent, follow, run, shell};
use diskproof_device::OpenTarget;
use diskproof_simdisk::testbed::{Loop, Mount, can_run, place};
use std::process::{Command, Stdio};

#[test]
fn gate_refuses_mounted_disk_on_every_path() {
    if !can_run(
        "gate_refuses_mounted_disk_on_every_path",
        &["losetup", "mkfs.ext4", "mknod", "unshare", "mkfs.btrfs"],
    ) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    run("mkfs.ext4", &["-q", disk.node()]);
    let at = |name: &str| disk.place.path().join(name);
    {
        let mount = Mount::new("ext4", disk.node(), &at("a place"), "ro");
        let parts = [
            &format!(
                "is mounted at {} (ext4) → umount '{0}'",
                mount.point.display()
            )[..],
            "ext2/3/4 filesystem",
        ];
        disk.assert_refused("node", &parts);
        std::os::unix::fs::symlink(&disk.device.node, at("link")).unwrap();
        let number = disk.device.name().strip_prefix("loop").unwrap();
        run("mknod", &[at("node").to_str().unwrap(), "b", "7", number]);
        for other in ["link", "node"] {
            let reasons = admitted(&at(other), &disk.consent()).unwrap_err();
            assert!(
                reasons.iter().any(|reason| reason.contains(parts[0])),
                "{other}: {reasons:#?}"
            );
        }
        std::fs::create_dir(at("bound")).unwrap();
        run(
            "mount",
            &[
                "--bind",
                mount.point.to_str().unwrap(),
                at("bound").to_str().unwrap(),
            ],
        );
        let bound = Mount { point: at("bound") };
        disk.assert_refused("bind", &[&format!("umount {}", bound.point.display())]);
    }
    {
        let inside = format!(
            "unshare --mount sh -c 'mount -o ro {} {}; echo there; read line'",
            disk.node(),
            at("bound").display()
        );
        let process = Process::start(&inside);
        disk.assert_refused(
            "namespace",
            &["in the mount namespace of process ", "--mount umount "],
        );
        drop(process);
    }
    follow(&disk, "unmounted");
    disk.assert_writable();

    // Both members of a btrfs, though mountinfo names one of them only.
    let (one, two) = (Disk::new(128 * MIB), Disk::new(128 * MIB));
    run("mkfs.btrfs", &["-q", one.node(), two.node()]);
    let mount = Mount::new("btrfs", one.node(), &one.place.path().join("mnt"), "ro");
    for member in [&one, &two] {
        member.assert_refused("btrfs", &["belongs to the mounted btrfs filesystem"]);
    }
    drop(mount);
}

#[test]
fn gate_refuses_disk_with_mounted_partition() {
    if !can_run(
        "gate_refuses_disk_with_mounted_partition",
        &["losetup", "mkfs.ext4", "sfdisk", "partx"],
    ) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    shell(&format!(
        "printf '2048,32768,L\\n40960,32768,L\\n' | sfdisk -q --no-reread --no-tell-kernel \
         --label dos {}",
        disk.node()
    ));
    run("partx", &["--add", disk.node()]);
    let (part, free) = (disk.device.partition(1), disk.device.partition(2));
    run("mkfs.ext4", &["-q", part.to_str().unwrap()]);
    let mount = Mount::new(
        "ext4",
        part.to_str().unwrap(),
        &disk.place.path().join("mnt"),
        "ro",
    );
    disk.assert_refused(
        "disk",
        &[
            &format!("{} is mounted at ", part.display()),
            "MBR partition table",
        ],
    );
    // Its neighbour is free.
    let neighbour = consent(free.file_name().unwrap().to_str().unwrap());
    let target = OpenTarget::open(admitted(&free, &neighbour).unwrap()).unwrap();
    // And is held: a second claim fails, on the disk too.
    let again = admitted(&free, &neighbour).unwrap_err();
    assert!(
        again.iter().any(|reason| reason.contains("EBUSY")),
        "{again:?}"
    );
    let locked = Command::new("flock")
        .args(["--nonblock", disk.node(), "true"])
        .status()
        .unwrap();
    assert!(!locked.success(), "the whole disk is locked against udev");
    drop((target, mount));
    run("partx", &["--delete", disk.node()]);
}

#[test]
fn gate_refuses_swap_device() {
    if !can_run(
        "gate_refuses_swap_device",
        &["losetup", "mkswap", "swapon", "swapoff"],
    ) {
        return;
    }
    struct Swap(String);
    impl Drop for Swap {
        fn drop(&mut self) {
            let _ = Command::new("swapoff").arg(&self.0).status();
        }
    }
    let disk = Disk::new(64 * MIB);
    run("mkswap", &["-q", disk.node()]);
    {
        run("swapon", &["--priority", "0", disk.node()]);
        let _swap = Swap(disk.node().to_owned());
        // Not compared with its hash before: the kernel may swap to it at any time.
        let reasons = disk.admit().err().unwrap_or_default();
        let parts = [
            format!("{0} is in use as swap space → swapoff {0}", disk.node()),
            "swap space (byte 4086)".to_owned(),
        ];
        assert!(
            parts
                .iter()
                .all(|part| reasons.iter().any(|reason| reason.contains(part))),
            "{reasons:#?}"
        );
    }
    run("wipefs", &["--all", "--quiet", disk.node()]);
    disk.assert_writable();
}

#[test]
fn gate_refuses_loop_open_and_read_only_device() {
    if !can_run("gate_refuses_loop_open_and_read_only_device", &["losetup"]) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    {
        let above = Loop::over(&disk.device.node, &[]);
        disk.assert_refused(
            "loop above",
            &[&format!(
                "is the file behind {0} → losetup --detach {0}",
                above.node.display()
            )],
        );
        // From above the disk below belongs to it.
        admitted(&above.node, &consent(above.name()))
            .unwrap_or_else(|reasons| panic!("{reasons:#?}"));
        let reader = Process::start(&format!("exec 3<{}; echo there; read line", disk.node()));
        let reasons = admitted(&above.node, &consent(above.name())).unwrap_err();
        assert!(
            reasons[0].contains(&format!("{} is held open by process ", disk.node())),
            "{reasons:?}"
        );
        drop(reader);
    }
    {
        let twin = Loop::over(&disk.image, &[]);
        disk.assert_refused(
            "the same file behind another",
            &[&format!("losetup --detach {}", twin.node.display())],
        );
    }
    for how in ["<", ">>"] {
        let process = Process::start(&format!(
            "exec 3{how}{}; echo there; read line",
            disk.node()
        ));
        disk.assert_refused(
            how,
            &[&format!(
                "{} is held open by process {} (sh) → ",
                disk.node(),
                process.0.id()
            )],
        );
    }
    run("blockdev", &["--setro", disk.node()]);
    disk.assert_refused("read-only", &["is read-only → blockdev --setrw"]);
    run("blockdev", &["--setrw", disk.node()]);
    disk.assert_writable();
}

/// A path in sysfs is the one that the loop device was set up with, wherever that leads by now.
#[test]
fn gate_finds_loop_file_by_its_driver() {
    if !can_run(
        "gate_finds_loop_file_by_its_driver",
        &["losetup", "unshare", "mount"],
    ) {
        return;
    }
    let place = place();
    let (folder, hidden) = (place.path().join("folder"), place.path().join("hidden"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(&hidden).unwrap();
    let image = folder.join("image");
    let disk = Loop::sparse(&image, 16 * MIB, &[]);
    drop(OpenTarget::open(admitted(&disk.node, &consent(disk.name())).unwrap()).unwrap());
    // Another file of this name now stands where the path leads to.
    let cover = Mount::new("tmpfs", "tmpfs", &folder, "size=64M");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(16 * MIB)
        .unwrap();
    let reasons = admitted(&disk.node, &consent(disk.name())).unwrap_err();
    assert!(
        reasons.len() == 1 && reasons[0].contains("cannot be inspected: it has no name here"),
        "{reasons:?}"
    );
    drop(cover);
    // The same file by a path that exists in another mount namespace only.
    std::fs::write(hidden.join("empty"), "").unwrap();
    let (from, at) = (image.display(), hidden.join("empty"));
    let inside = format!(
        "unshare --mount sh -c 'mount --bind {from} {0}; losetup --find --show {0}; read line'",
        at.display()
    );
    let mut child = Command::new("sh")
        .args(["-c", &inside])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut node = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
        &mut node,
    )
    .unwrap();
    let twin = Loop {
        node: node.trim().into(),
    };
    let process = Process(child);
    let reasons = admitted(&disk.node, &consent(disk.name())).unwrap_err();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains(&format!("losetup --detach {}", twin.node.display()))),
        "{reasons:?}"
    );
    drop((twin, process));
}
