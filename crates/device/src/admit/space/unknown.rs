//! Names the space below a target of which nothing shows how much is free.

use crate::admit::snapshots;
use crate::identity::files_behind::images_of_nbd;
use crate::kernel::sysroot::{SysRoot, read_text};
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};

/// Ends of the UUIDs of device mapper pools, whose volumes together may be larger than the pool:
/// LVM's thin pools, its pools of VDO, and the pools of Stratis.
const POOL_ENDS: [&str; 3] = ["-tpool", "-vpool", "-thinpool-pool"];

/// Prefixes of the kernel names of disks that a program, a filesystem or another machine serves:
/// nbd, ublk and the volumes of ZFS, which may be sparse.
const SERVED_PREFIXES: [&str; 3] = ["nbd", "ublkb", "zd"];

/// Says which space below a target is not known, a clause each: of pools, whose use only an ioctl
/// of the device mapper reports, of snapshots, and of disks that a server provides.
pub(crate) fn unknown_space(target: &TargetIdentity) -> Vec<String> {
    unknown_space_in(&SysRoot::default(), target)
}

fn unknown_space_in(root: &SysRoot, target: &TargetIdentity) -> Vec<String> {
    let mut unknown = snapshots::notes(root, target);
    for layer in &target.layers {
        if let Some(pool) = pool_name(root, layer) {
            unknown.push(format!(
                "the free space of the pool {pool} is not known and may not suffice for what is \
                 written; see 'lvs'"
            ));
        }
        if is_disk_served(layer) && images_of_nbd(root, layer).is_empty() {
            unknown.push(format!(
                "what serves {} is not known, and may have too little space for what is written",
                layer.name
            ));
        }
    }
    unknown
}

/// True for a whole disk that a server provides.
fn is_disk_served(layer: &Layer) -> bool {
    layer.kind != LayerKind::Partition
        && SERVED_PREFIXES
            .iter()
            .any(|prefix| layer.name.starts_with(prefix))
}

/// The name of a pool of the device mapper; `None` of any other device.
fn pool_name(root: &SysRoot, layer: &Layer) -> Option<String> {
    let device = root.named_device(&layer.name)?;
    let uuid = read_text(&device.join("dm/uuid"))?;
    if POOL_ENDS.iter().any(|end| uuid.ends_with(end)) {
        read_text(&device.join("dm/name"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MIB, above, image_of};
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;

    #[test]
    fn space_of_pools_and_of_served_disks_is_said_to_be_unknown() {
        let sysfs = FakeSysfs::new();
        let volume = [("dm/name", "vg0-data"), ("dm/uuid", "LVM-abc")];
        sysfs.add_block_device("virtual/dm-0", "253:0", &volume);
        let pool = [("dm/name", "vg0-pool-tpool"), ("dm/uuid", "LVM-abd-tpool")];
        sysfs.add_block_device("virtual/dm-1", "253:1", &pool);
        // The program that attached it is no server: it has a socket.
        sysfs.add_block_device("virtual/nbd1", "43:32", &[("pid", "78")]);
        let mut target = above(&sysfs, image_of(64 * MIB).path(), 64 * MIB);
        let served = unknown_space_in(&sysfs.root(), &target);
        assert_eq!(served.len(), 1, "its image is gone: {served:?}");
        target.layers.clear();
        let pool = [
            ("dm/uuid", "stratis-1-private-abc-thinpool-pool"),
            ("dm/name", "st"),
        ];
        sysfs.add_block_device("virtual/dm-2", "253:2", &pool);
        for name in ["dm-0", "dm-1", "nbd1", "dm-2", "zd0", "ublkb7", "nbd1p1"] {
            target.layers.push(Layer {
                name: name.to_owned(),
                kind: match name {
                    "nbd1p1" => LayerKind::Partition,
                    _ => LayerKind::Disk,
                },
                ..Layer::default()
            });
        }
        let unknown = unknown_space_in(&sysfs.root(), &target);
        assert_eq!(unknown.len(), 5, "{unknown:?}");
        assert!(unknown[0].contains("vg0-pool-tpool"), "{unknown:?}");
        assert!(unknown[1].contains("nbd1"), "{unknown:?}");
    }
}
