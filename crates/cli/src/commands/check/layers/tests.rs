//! The layers below a target, and the error where only one can be read.

use super::*;

fn device(name: &str, kind: LayerKind, below: &[&str]) -> Layer {
    let layer = serde_json::json!({
        "name": name, "kind": kind, "device": "1:1", "below": below, "size_bytes": 1u64 << 30,
        "read_only": false,
    });
    serde_json::from_value(layer).unwrap()
}

fn directory(layers: Vec<Layer>) -> TargetIdentity {
    TargetIdentity {
        path: "/srv/db".to_owned(),
        kind: TargetKind::Directory,
        size_bytes: 1 << 30,
        free_bytes: None,
        device: "253:0".to_owned(),
        inode: 2,
        filesystem: Some(Filesystem {
            kind: "xfs".to_owned(),
            mount_point: "/srv".to_owned(),
            source: "/dev/mapper/data".to_owned(),
            options: Vec::new(),
            size_bytes: 1 << 30,
            free_bytes: 1 << 29,
            kept_free_bytes: None,
        }),
        layers,
        unresolved: None,
    }
}

fn names(identity: &TargetIdentity) -> Vec<String> {
    layer_stack(identity)
        .into_iter()
        .map(|layer| layer.planned.name)
        .collect()
}

#[test]
fn stack_of_luks_on_a_partition() {
    let mut crypt = device("dm-0", LayerKind::DeviceMapper, &["nvme0n1p3"]);
    crypt.model = Some("crypt data".to_owned());
    let identity = directory(vec![
        crypt,
        device("nvme0n1p3", LayerKind::Partition, &["nvme0n1"]),
        device("nvme0n1", LayerKind::Disk, &[]),
    ]);
    assert_eq!(
        names(&identity),
        ["file on xfs", "dm-0 (crypt data)", "nvme0n1p3", "nvme0n1"]
    );
}

#[test]
fn stack_of_an_array_goes_on_with_its_first_disk() {
    let identity = directory(vec![
        device("md0", LayerKind::Md, &["sda", "sdb"]),
        device("sda", LayerKind::Disk, &[]),
        device("sdb", LayerKind::Disk, &[]),
    ]);
    assert_eq!(names(&identity), ["file on xfs", "md0", "sda"]);
    let one_of: Vec<u32> = layer_stack(&identity)
        .iter()
        .map(|layer| layer.planned.one_of)
        .collect();
    assert_eq!(one_of, [1, 1, 2]);
}

#[test]
fn stack_of_a_thin_pool_goes_on_with_its_data() {
    let mut metadata = device("dm-0", LayerKind::DeviceMapper, &["sda"]);
    metadata.size_bytes = 4 << 20;
    let identity = directory(vec![
        device("dm-4", LayerKind::DeviceMapper, &["dm-2"]),
        device("dm-2", LayerKind::DeviceMapper, &["dm-0", "dm-1"]),
        metadata,
        device("dm-1", LayerKind::DeviceMapper, &["sda"]),
        device("sda", LayerKind::Disk, &[]),
    ]);
    assert_eq!(
        names(&identity),
        ["file on xfs", "dm-4", "dm-2", "dm-1", "sda"]
    );
}

#[test]
fn stack_of_a_loop_device_names_the_file_behind_it() {
    let mut image = device("loop4", LayerKind::Loop, &["sda2"]);
    image.backing_file = Some("/no/such/disk.img".to_owned());
    let identity = directory(vec![
        image,
        device("sda2", LayerKind::Partition, &["sda"]),
        device("sda", LayerKind::Disk, &[]),
    ]);
    assert_eq!(
        names(&identity),
        [
            "file on xfs",
            "loop4",
            "disk.img on a filesystem",
            "sda2",
            "sda"
        ]
    );
}

#[test]
fn target_without_a_second_layer_is_refused_with_the_reason() {
    let OpenedLayers { layers, identities } = open_layers(&directory(vec![device(
        "no-such-disk",
        LayerKind::Disk,
        &[],
    )]));
    assert_eq!(identities.len(), 1);
    let text = too_few_layers_error(&layers, &identities[0]).to_string();
    assert!(text.contains("no-such-disk: /dev/no-such-disk"), "{text}");
}
