//! Names, parts and claims: what the gate and the opening make of one device, on real loop devices.

use crate::support::{Disk, MIB, Process, admitted, consent, run, shell};
use diskproof_device::{Consent, Intent, OpenError, OpenTarget, Overwriting, admit, probe};
use diskproof_simdisk::testbed::can_run;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn gate_accepts_only_the_name_in_full() {
    if !can_run("gate_accepts_only_the_name_in_full", &["losetup"]) {
        return;
    }
    let (disk, other) = (Disk::new(16 * MIB), Disk::new(16 * MIB));
    let name = disk.device.name();
    for wrong in [
        "",
        " ",
        "loop",
        &name[..name.len() - 1],
        &format!("{name}0"),
        &format!("{name} "),
        &format!(" {name}"),
        &name.to_uppercase(),
        disk.node(),
        other.device.name(),
        "*",
    ] {
        let reasons = admitted(&disk.device.node, &consent(wrong)).unwrap_err();
        assert!(
            reasons.len() == 1
                && reasons[0].contains("does not name it → ")
                && reasons[0].contains("kernel name in full"),
            "{wrong}: {reasons:?}"
        );
    }
    let nothing = admitted(
        &disk.device.node,
        &Consent {
            overwriting: Overwriting::Allowed,
            ..Consent::default()
        },
    )
    .unwrap_err();
    assert!(
        nothing.len() == 1 && nothing[0].contains("is only read unless you release it"),
        "{nothing:?}"
    );
    assert!(
        admitted(
            &disk.device.node,
            &Consent {
                destroy: vec!["x".into(), name.into()],
                ..Consent::default()
            }
        )
        .is_ok()
    );
    disk.assert_writable();
}

/// Such as the member of a RAID of the firmware, or of md with its superblock at the end: the
/// partitions that show on it are those of the volume.
#[test]
fn gate_refuses_partition_of_array_member() {
    if !can_run(
        "gate_refuses_partition_of_array_member",
        &["losetup", "sfdisk", "partx", "pvcreate", "wipefs"],
    ) {
        return;
    }
    let divide = |disk: &Disk| {
        shell(&format!(
            "echo '2048,32768,L' | sfdisk -q --wipe never --no-reread --no-tell-kernel --label \
             dos {}",
            disk.node()
        ));
        run("partx", &["--add", disk.node()]);
        let part = disk.device.partition(1);
        let name = part.file_name().unwrap().to_str().unwrap().to_owned();
        (part, consent(&name))
    };
    for mark in ["LVM", "Intel RAID"] {
        let disk = Disk::new(64 * MIB);
        if mark == "LVM" {
            let node = disk.node();
            run(
                "pvcreate",
                &["-qq", "-ffy", "--devices", node, "--labelsector", "3", node],
            );
        } else {
            let end = 64 * MIB - 1024;
            std::fs::File::options()
                .write(true)
                .open(&disk.device.node)
                .unwrap()
                .write_all_at(b"Intel Raid ISM Cfg Sig. ", end)
                .unwrap();
        }
        let (part, inner) = divide(&disk);
        let before = disk.checksum();
        let reasons = admitted(&part, &inner).unwrap_err();
        assert!(
            reasons.len() == 1 && reasons[0].contains(&format!("holds a signature: {mark}")),
            "{reasons:#?}"
        );
        assert_eq!(disk.checksum(), before);
        let (mut last, mut opened) = (Vec::new(), None);
        for _ in 0..6 {
            let reasons = match admitted(&part, &inner) {
                Ok(admission) => {
                    opened = Some(OpenTarget::open(admission).unwrap());
                    break;
                }
                Err(reasons) => reasons,
            };
            let step = reasons[0].split_once("what it holds: ").unwrap().1;
            let (first, second) = step.split_once("; where that finds nothing: ").unwrap();
            shell(&format!(
                "{} 2>&1",
                if last == reasons { second } else { first }
            ));
            last = reasons;
        }
        assert!(opened.is_some(), "{last:?}");
        drop(opened);
        // The partition table is still there, for others may need their partitions.
        assert!(
            disk.reasons()
                .iter()
                .any(|reason| reason.contains("MBR partition table"))
        );
        assert!(run("sfdisk", &["--dump", disk.node()]).contains("start=        2048"));
        run("partx", &["--delete", disk.node()]);
    }
}

/// Between its fork and its exec, every process that is being started shares the descriptors of
/// the process that starts it, claims among them.
#[test]
fn gate_ignores_claim_of_starting_process() {
    if !can_run("gate_ignores_claim_of_starting_process", &["losetup"]) {
        return;
    }
    let disk = Disk::new(MIB);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let starting = || {
            while !done.load(Relaxed) {
                let _ = Command::new("true").status();
            }
        };
        (0..4).for_each(|_| drop(scope.spawn(starting)));
        let opened: Vec<_> = (0..16)
            .map(|_| {
                disk.admit()
                    .map(|admission| OpenTarget::open(admission).map(drop))
            })
            .collect();
        done.store(true, Relaxed);
        let is_open = |opened: &&_| matches!(opened, Ok(Ok(())));
        // A stall of the machine can hold a process between fork and exec for longer than the gate
        // waits; it then refuses, which is the safe side.
        let count = opened.iter().filter(is_open).count();
        assert!(count >= 8, "{opened:?}");
    });
}

#[test]
fn opening_refuses_what_came_after_the_gate() {
    if !can_run(
        "opening_refuses_what_came_after_the_gate",
        &["losetup", "mkfs.ext4", "mkswap"],
    ) {
        return;
    }
    let refused = |disk: &Disk, change: &dyn Fn()| {
        let admission = disk.admit().unwrap_or_else(|reasons| panic!("{reasons:?}"));
        change();
        let before = disk.checksum();
        let Err(error) = OpenTarget::open(admission) else {
            panic!("opened")
        };
        assert_eq!(disk.checksum(), before);
        let OpenError::Refused(refusal) = error else {
            panic!("{error}")
        };
        refusal.reasons.join("\n")
    };
    let disk = Disk::new(64 * MIB);
    assert!(refused(&disk, &|| drop(run("mkswap", &["-q", disk.node()]))).contains("swap space"));
    run("wipefs", &["--all", "--quiet", disk.node()]);
    let disk_2 = Disk::new(64 * MIB);
    let process = std::cell::RefCell::new(None);
    let reasons = refused(&disk_2, &|| {
        *process.borrow_mut() = Some(Process::start(&format!(
            "exec 3<{}; echo there; read line",
            disk_2.node()
        )))
    });
    assert!(reasons.contains("is held open by process"), "{reasons}");
    let disk_3 = Disk::new(64 * MIB);
    let lock = std::cell::RefCell::new(None);
    let reasons = refused(&disk_3, &|| {
        let command = format!("exec 3<{}; flock 3; echo there; read line", disk_3.node());
        *lock.borrow_mut() = Some(Process::start(&command));
    });
    assert!(
        reasons.contains("another program holds a lock on it"),
        "{reasons}"
    );
    // Another disk under the same node.
    let disk_4 = Disk::new(64 * MIB);
    let admission = disk_4.admit().unwrap();
    run("losetup", &["--detach", disk_4.node()]);
    std::fs::File::options()
        .write(true)
        .open(&disk_4.image)
        .unwrap()
        .set_len(32 * MIB)
        .unwrap();
    let again = Command::new("losetup")
        .args([disk_4.node(), disk_4.image.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(again.success());
    assert!(matches!(
        OpenTarget::open(admission),
        Err(OpenError::Changed { .. } | OpenError::Refused(_))
    ));
}

/// Workloads that run at the same time use a description each: it opens no door that the first one
/// has not, and the device stays claimed until the last is gone.
#[test]
fn reopened_device_keeps_rights_and_claim() {
    if !can_run("reopened_device_keeps_rights_and_claim", &["losetup"]) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    let before = disk.checksum();
    let path = Path::new(disk.node());
    let reader = OpenTarget::open(admit(probe(path).unwrap(), Intent::Read).unwrap()).unwrap();
    let again = reader.reopen().unwrap();
    assert!(
        !again.is_writable()
            && rustix::io::pwrite(again.fd(), &[0xa5; 4096], 0) == Err(rustix::io::Errno::BADF)
    );
    drop((reader, again));
    assert_eq!(disk.checksum(), before);

    let target = OpenTarget::open(
        disk.admit()
            .unwrap_or_else(|reasons| panic!("{reasons:#?}")),
    )
    .unwrap();
    let mut again = target.reopen().unwrap();
    assert!(
        again.is_writable()
            && again.capacity_bytes() == target.capacity_bytes()
            && again.identity() == target.identity()
    );
    let used = again
        .set_cache(diskproof_model::plan::CachePolicy::Cached)
        .unwrap()
        .used;
    assert_eq!(used, diskproof_model::plan::CachePolicy::Cached);
    let claim = || {
        let flags =
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map(drop)
    };
    assert_eq!(claim(), Err(rustix::io::Errno::BUSY));
    drop(target);
    assert_eq!(
        claim(),
        Err(rustix::io::Errno::BUSY),
        "the first description lives as long as the second"
    );
    // A description of the second one keeps the claim, too, which only the first has.
    let third = again.reopen().unwrap();
    drop(again);
    assert_eq!(claim(), Err(rustix::io::Errno::BUSY));
    drop(third);
    // A process that another test is starting shares the claim until it has become another program.
    let is_free = (0..600).any(|_| {
        claim().is_ok() || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    });
    assert!(is_free);
}
