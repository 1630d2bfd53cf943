//! Decides whether an accepted direct write survives a reset of the machine. Some layers
//! acknowledge a write that they only have in memory: a reset loses it, while the disk keeps its
//! power. Reads only sysfs.

use crate::kernel::sysroot::{SysRoot, read_text};
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};

/// Drivers of disks, where an accepted write has left the machine. Letters follow in a disk's name.
/// ZFS volumes (`zd`), bcache and ublk look like disks, too, and keep writes in memory.
const LETTERED_DRIVERS: [&str; 5] = ["sd", "hd", "vd", "xvd", "dasd"];
/// Drivers of disks whose numbers follow in a disk's name.
const NUMBERED_DRIVERS: [&str; 2] = ["nvme", "mmcblk"];

/// Levels of MD that pass each write on. Those with parity have a cache of stripes.
const PASSING_LEVELS: [&str; 4] = ["linear", "raid0", "raid1", "raid10"];

/// The beginnings of the UUIDs of mapped devices that pass each write on. Others of `CRYPT-` are
/// dm-integrity (`CRYPT-INTEGRITY-`, and `CRYPT-SUBDEV-` below LUKS), whose journal is in memory
/// until a flush, as are the metadata of dm-cache and dm-writecache and the data of dm-vdo
/// (Documentation/admin-guide/device-mapper).
const PASSING_MAPPERS: [&str; 8] = [
    "LVM-",
    "CRYPT-LUKS1-",
    "CRYPT-LUKS2-",
    "CRYPT-PLAIN-",
    "CRYPT-BITLK-",
    "CRYPT-TCRYPT-",
    "mpath-",
    // Partitions that kpartx makes.
    "part",
];

/// Returns true if no layer below the target is known to lose an accepted direct write in a reset,
/// and every layer is known. The filesystem is not looked at.
pub fn keeps_writes_across_reset(identity: &TargetIdentity) -> bool {
    keeps_writes_in(&SysRoot::default(), identity)
}

fn keeps_writes_in(root: &SysRoot, identity: &TargetIdentity) -> bool {
    !identity.layers.is_empty()
        && identity.unresolved.is_none()
        && identity
            .layers
            .iter()
            .all(|layer| passes_writes_on(root, layer, &identity.layers))
}

/// True if a layer acknowledges a write only after the devices below have, or is a disk.
fn passes_writes_on(root: &SysRoot, layer: &Layer, layers: &[Layer]) -> bool {
    match layer.kind {
        LayerKind::Disk => {
            is_name_of_disk(&layer.name)
                && !layer.is_of_software()
                && !is_served_by_program(root, layer)
        }
        LayerKind::Partition => true,
        LayerKind::DeviceMapper => mapper_passes_writes_on(root, layer, layers),
        LayerKind::Md => {
            let level = attribute(root, layer, "md/level");
            PASSING_LEVELS.contains(&level.as_str())
        }
        // The page cache of the file below, the memory itself, or a server that may be a program
        // of this machine.
        LayerKind::Loop | LayerKind::Zram | LayerKind::RamDisk | LayerKind::Network => false,
    }
}

/// True of a virtio disk that a program of this machine serves (VDUSE), such as
/// qemu-storage-daemon.
fn is_served_by_program(root: &SysRoot, layer: &Layer) -> bool {
    root.block_device(&layer.device)
        .is_some_and(|sysfs| sysfs.iter().any(|part| part == "vduse"))
}

/// True of a linear or striped volume, an encrypted device, and the paths to a disk. A volume of
/// LVM that is more (a cache, VDO, integrity) lies on other volumes of LVM, and LUKS with integrity
/// on another device of cryptsetup.
fn mapper_passes_writes_on(root: &SysRoot, layer: &Layer, layers: &[Layer]) -> bool {
    let uuid = attribute(root, layer, "dm/uuid");
    if !PASSING_MAPPERS.iter().any(|known| uuid.starts_with(known)) {
        return false;
    }
    layers
        .iter()
        .filter(|below| below.kind == LayerKind::DeviceMapper && layer.below.contains(&below.name))
        .all(|below| mapper_user(&attribute(root, below, "dm/uuid")) != mapper_user(&uuid))
}

/// The program that made a mapped device: the word that begins its UUID.
fn mapper_user(uuid: &str) -> &str {
    uuid.split('-').next().unwrap_or_default()
}

/// True if a kernel name is that of a disk.
fn is_name_of_disk(name: &str) -> bool {
    for driver in LETTERED_DRIVERS {
        if let Some(letters) = name.strip_prefix(driver)
            && !letters.is_empty()
            && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            return true;
        }
    }
    for driver in NUMBERED_DRIVERS {
        if let Some(numbers) = name.strip_prefix(driver)
            && numbers.starts_with(|first: char| first.is_ascii_digit())
        {
            return true;
        }
    }
    false
}

/// The text of an attribute of a layer in sysfs; empty where it has none.
fn attribute(root: &SysRoot, layer: &Layer, name: &str) -> String {
    root.block_device(&layer.device)
        .and_then(|sysfs| read_text(&sysfs.join(name)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::layers::layers_below_device;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use diskproof_model::target::TargetKind;

    /// A device of a test: path in sysfs, attributes, and names of the devices below.
    #[derive(Clone, Copy)]
    struct Device<'a> {
        path: &'a str,
        attribute: Option<(&'a str, &'a str)>,
        below: &'a [&'a str],
    }

    fn device<'a>(path: &'a str, below: &'a [&'a str]) -> Device<'a> {
        Device {
            path,
            attribute: None,
            below,
        }
    }

    fn mapped<'a>(path: &'a str, uuid: &'a str, below: &'a [&'a str]) -> Device<'a> {
        Device {
            attribute: Some(("dm/uuid", uuid)),
            ..device(path, below)
        }
    }

    fn array(level: &str) -> Device<'_> {
        Device {
            attribute: Some(("md/level", level)),
            ..device("virtual/block/md0", &["sda", "nvme0n1"])
        }
    }

    /// Judges the first of these devices, which lie on each other and on two disks.
    fn keeps(devices: &[Device<'_>]) -> bool {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("pci0/block/sda", "8:0", &[("size", "2048")]);
        sysfs.add_block_device("pci0/nvme0/nvme0n1", "259:0", &[("size", "2048")]);
        for (number, device) in devices.iter().enumerate() {
            let attributes: Vec<(&str, &str)> = device.attribute.into_iter().collect();
            sysfs.add_block_device(device.path, &format!("250:{number}"), &attributes);
            for below in device.below {
                let link = format!("devices/{}/slaves/{below}", device.path);
                sysfs.add_link(&link, &format!("class/block/{below}"));
            }
        }
        keeps_device(&sysfs, "250:0")
    }

    fn keeps_device(sysfs: &FakeSysfs, device: &str) -> bool {
        let stack = layers_below_device(&sysfs.root(), &[], device);
        let identity = TargetIdentity {
            path: "/dev/x".to_owned(),
            kind: TargetKind::BlockDevice,
            size_bytes: 0,
            free_bytes: None,
            device: device.to_owned(),
            inode: 1,
            filesystem: None,
            layers: stack.layers,
            unresolved: stack.unresolved,
        };
        keeps_writes_in(&sysfs.root(), &identity)
    }

    #[test]
    fn disk_of_a_program_of_this_machine_keeps_nothing() {
        let of_target = Device {
            attribute: Some(("device/vendor", "IET")),
            ..device("pci0/block/sdb", &[])
        };
        assert!(!keeps(&[of_target]));
        assert!(!keeps(&[device("vduse/disk1/virtio3/block/vdb", &[])]));
    }

    #[test]
    fn disk_keeps_what_it_accepted_and_memory_does_not() {
        for name in ["sdb", "sdaa", "vda", "xvdb", "nvme1n2", "mmcblk0", "dasda"] {
            assert!(
                keeps(&[device(&format!("pci0/block/{name}"), &[])]),
                "{name}"
            );
        }
        for name in [
            "loop0", "zd0", "zram0", "ram0", "nbd0", "rbd0", "drbd0", "bcache0", "ublkb0", "pmem0",
            "sr0", "sd", "nullb0",
        ] {
            let path = format!("virtual/block/{name}");
            assert!(!keeps(&[device(&path, &[])]), "{name}");
        }
        let backstore = Device {
            attribute: Some(("device/vendor", "LIO-ORG")),
            ..device("pci0/block/sdb", &[])
        };
        assert!(!keeps(&[backstore]), "its memory may be this machine's");
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("pci0/block/sda", "8:0", &[]);
        sysfs.add_partition("pci0/block/sda/sda1", "8:1", 2048);
        assert!(keeps_device(&sysfs, "8:1"));
        assert!(!keeps_device(&sysfs, "9:9"), "it is unknown");
    }

    #[test]
    fn array_keeps_writes_without_parity() {
        for level in ["linear", "raid0", "raid1", "raid10"] {
            assert!(keeps(&[array(level)]), "{level}");
        }
        for level in ["raid4", "raid5", "raid6", ""] {
            assert!(!keeps(&[array(level)]), "{level}");
        }
    }

    #[test]
    fn mapped_device_keeps_writes_if_it_only_maps() {
        let volume = |below| mapped("virtual/block/dm-0", "LVM-abc", below);
        assert!(keeps(&[volume(&["sda", "nvme0n1"])]));
        for (uuid, passes) in [
            ("CRYPT-LUKS2-abc-secret", true),
            ("CRYPT-PLAIN-secret", true),
            ("mpath-3600", true),
            ("part1-mpath-3600", true),
            ("CRYPT-INTEGRITY-abc-whole", false),
            ("CRYPT-SUBDEV-abc-secret_dif", false),
            ("VDO-abc", false),
            ("", false),
        ] {
            let lowest = mapped("virtual/block/dm-1", uuid, &["sda"]);
            assert_eq!(keeps(&[lowest]), passes, "{uuid}");
            // A volume on it.
            assert_eq!(keeps(&[volume(&["dm-1"]), lowest]), passes, "{uuid}");
        }
        // A cache on its parts, and LUKS on an integrity device of an older release.
        let part = mapped("virtual/block/dm-1", "LVM-abc-cdata", &["sda"]);
        assert!(!keeps(&[volume(&["dm-1"]), part]));
        let integrity = mapped("virtual/block/dm-1", "CRYPT-LUKS2-abc-x_dif", &["sda"]);
        let secret = mapped("virtual/block/dm-0", "CRYPT-LUKS2-abc-x", &["dm-1"]);
        assert!(!keeps(&[secret, integrity]));
    }

    #[test]
    fn disk_below_a_loop_device_does_not_count() {
        let volume = mapped("virtual/block/dm-0", "LVM-abc", &["loop3"]);
        assert!(!keeps(&[volume, device("virtual/block/loop3", &[])]));
    }
}
