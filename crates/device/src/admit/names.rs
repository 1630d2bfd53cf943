//! The names that identify one block device: the user types one of them to destroy it. Reads sysfs
//! only.

use crate::identity::disk::describe;
use crate::kernel::sysroot::{SysRoot, first_text, list, read_text};
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};

/// The names of a device that the user has to type, and the request for them, which does not
/// contain them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AcceptedNames {
    /// Any of these, in full.
    pub(super) accepted: Vec<String>,
    /// Such as `its serial or its model, as …`.
    pub(super) described: String,
}

impl AcceptedNames {
    /// True if one of the words is exactly one of the names.
    pub(super) fn match_any(&self, words: &[String]) -> bool {
        words.iter().any(|word| self.accepted.contains(word))
    }
}

/// The serial and the model of the disk, each only where no other disk of this machine has the
/// same; the kernel name where neither is left. A partition without a disk that has either goes by
/// its own kernel name.
pub(super) fn names(root: &SysRoot, identity: &TargetIdentity) -> AcceptedNames {
    let Some(target) = identity.layers.first() else {
        return AcceptedNames {
            accepted: Vec::new(),
            described: "its name".into(),
        };
    };
    let disk = disk_below(identity, target);
    let others = other_disks(root, disk);
    let has_own_serial =
        disk.serial.is_some() && others.iter().all(|other| other.serial != disk.serial);
    // The level of an array names no array.
    let has_own_model = disk.kind != LayerKind::Md
        && disk.model.is_some()
        && others.iter().all(|other| other.model != disk.model);
    let mut words = Vec::new();
    let mut accepted = Vec::new();
    if has_own_serial {
        words.push("its serial");
        accepted.extend(trimmed(disk.serial.as_deref()));
    }
    if has_own_model {
        words.push("its model");
        accepted.extend(trimmed(disk.model.as_deref()));
    }
    if words.is_empty() {
        return AcceptedNames {
            accepted: trimmed(Some(&target.name)).into_iter().collect(),
            described: "its kernel name in full (it has neither a serial nor a model of its own)"
                .to_owned(),
        };
    }
    AcceptedNames {
        accepted,
        described: format!(
            "{} in full, as `diskproof info {}` shows it",
            words.join(" or "),
            identity.path
        ),
    }
}

/// The name without spaces around it; `None` where nothing is left to be typed.
fn trimmed(name: Option<&str>) -> Option<String> {
    let text = name?.trim();
    if text.is_empty() {
        return None;
    }
    Some(text.to_owned())
}

/// The device itself, or the disk that a partition lies on.
pub(super) fn disk_below<'a>(identity: &'a TargetIdentity, target: &'a Layer) -> &'a Layer {
    if target.kind != LayerKind::Partition {
        return target;
    }
    let Some(name) = target.below.first() else {
        return target;
    };
    identity
        .layers
        .iter()
        .find(|layer| layer.name == *name)
        .unwrap_or(target)
}

/// The other whole disks of the machine, but for other paths to this one.
fn other_disks(root: &SysRoot, disk: &Layer) -> Vec<Layer> {
    let wwid = read_wwid(root, &disk.name);
    let mut others = Vec::new();
    for name in list(&root.sys.join("class/block")) {
        let Some(sysfs) = root.named_device(&name) else {
            continue;
        };
        let Some(device) = read_text(&sysfs.join("dev")) else {
            continue;
        };
        let is_path = wwid.is_some() && read_wwid(root, &name) == wwid;
        if name != disk.name && !is_path && !sysfs.join("partition").exists() {
            others.push(describe(root, &sysfs, &name, &device, Vec::new()));
        }
    }
    others
}

/// The name that a disk keeps on every path to it.
pub(super) fn read_wwid(root: &SysRoot, name: &str) -> Option<String> {
    let sysfs = root.sys.join("class/block").join(name);
    first_text(&sysfs, &["device/wwid", "wwid"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::layers::layers_below_device;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use diskproof_model::target::TargetKind;

    fn identity(sysfs: &FakeSysfs, device: &str) -> TargetIdentity {
        TargetIdentity {
            path: "/dev/x".into(),
            kind: TargetKind::BlockDevice,
            size_bytes: 1 << 30,
            free_bytes: None,
            device: device.into(),
            inode: 1,
            filesystem: None,
            layers: layers_below_device(&sysfs.root(), &[], device).layers,
            unresolved: None,
        }
    }

    fn accepts(sysfs: &FakeSysfs, device: &str, word: &str) -> bool {
        names(&sysfs.root(), &identity(sysfs, device)).match_any(&[word.to_owned()])
    }

    #[test]
    fn serial_and_model_in_full_and_nothing_else() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device(
            "x/sda",
            "8:0",
            &[
                ("size", "8"),
                ("device/model", "DISK 9000 "),
                ("device/serial", "  S123456"),
            ],
        );
        sysfs.add_block_device(
            "x/sdb",
            "8:16",
            &[
                ("size", "8"),
                ("device/model", "OTHER"),
                ("device/serial", "S654321"),
            ],
        );
        sysfs.add_partition("x/sda/sda1", "8:1", 4);
        for device in ["8:0", "8:1"] {
            for word in ["S123456", "DISK 9000"] {
                assert!(accepts(&sysfs, device, word), "{word}");
            }
            for word in [
                "",
                " ",
                " S123456",
                "S123456 ",
                "DISK 9000 ",
                "S12345",
                "S1234567",
                "s123456",
                "DISK",
                "disk 9000",
                "S654321",
                "OTHER",
                "sda",
                "sda1",
                "/dev/sda",
            ] {
                assert!(!accepts(&sysfs, device, word), "{word}");
            }
        }
    }

    #[test]
    fn what_two_disks_share_names_neither() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device(
            "x/sda",
            "8:0",
            &[
                ("size", "8"),
                ("device/model", "SAME"),
                ("device/serial", "A"),
            ],
        );
        sysfs.add_block_device(
            "x/sdb",
            "8:16",
            &[
                ("size", "8"),
                ("device/model", "SAME"),
                ("device/serial", "B"),
            ],
        );
        sysfs.add_block_device(
            "x/sdc",
            "8:32",
            &[
                ("size", "8"),
                ("device/model", "SAME"),
                ("device/serial", "0000"),
            ],
        );
        sysfs.add_block_device(
            "x/sdd",
            "8:48",
            &[
                ("size", "8"),
                ("device/model", "SAME"),
                ("device/serial", "0000"),
            ],
        );
        assert!(
            accepts(&sysfs, "8:0", "A")
                && !accepts(&sysfs, "8:0", "SAME")
                && !accepts(&sysfs, "8:0", "B")
        );
        assert!(
            accepts(&sysfs, "8:32", "sdc")
                && !accepts(&sysfs, "8:32", "0000")
                && !accepts(&sysfs, "8:32", "sdd")
        );
    }

    #[test]
    fn kernel_names_are_for_those_that_have_nothing_else() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("virtual/block/loop3", "7:3", &[("size", "8")]);
        sysfs.add_partition("virtual/block/loop3/loop3p1", "259:1", 4);
        sysfs.add_block_device(
            "virtual/block/md0",
            "9:0",
            &[("size", "8"), ("md/level", "raid1")],
        );
        assert!(accepts(&sysfs, "7:3", "loop3") && !accepts(&sysfs, "7:3", "loop"));
        assert!(accepts(&sysfs, "259:1", "loop3p1") && !accepts(&sysfs, "259:1", "loop3"));
        assert!(accepts(&sysfs, "9:0", "md0") && !accepts(&sysfs, "9:0", "MD raid1"));
    }
}
