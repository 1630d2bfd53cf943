//! Describes one block device as a [`Layer`], from what sysfs shows of it.

use crate::identity::link::find_link;
use crate::kernel::sysroot::{SysRoot, first_text, read_number, read_text};
use diskproof_model::target::{Layer, LayerKind, MAPPER_USERS, OTHER_MAPPER_USER, WriteCache};
use diskproof_model::units::SECTOR_BYTES;
use std::path::Path;

/// The kind of the block device whose directory in sysfs is `sysfs`.
pub(crate) fn layer_kind(sysfs: &Path, name: &str) -> LayerKind {
    if sysfs.join("partition").exists() {
        return LayerKind::Partition;
    }
    if sysfs.join("dm").is_dir() {
        return LayerKind::DeviceMapper;
    }
    if sysfs.join("md").is_dir() {
        return LayerKind::Md;
    }
    // The driver's part of the name, before the number of the device.
    let Some(number) = name.find(|c: char| c.is_ascii_digit()) else {
        return LayerKind::Disk;
    };
    match &name[..number] {
        "loop" => LayerKind::Loop,
        "zram" => LayerKind::Zram,
        "ram" => LayerKind::RamDisk,
        "nbd" | "rbd" | "drbd" => LayerKind::Network,
        _ => LayerKind::Disk,
    }
}

/// Everything that sysfs shows about the block device whose directory there is `sysfs`.
pub(crate) fn describe(
    root: &SysRoot,
    sysfs: &Path,
    name: &str,
    device: &str,
    below: Vec<String>,
) -> Layer {
    let kind = layer_kind(sysfs, name);
    // A partition has no queue of its own: its blocks are those of the whole disk.
    let queue = match sysfs.parent() {
        Some(whole) if kind == LayerKind::Partition => whole.join("queue"),
        _ => sysfs.join("queue"),
    };
    let layer = Layer {
        name: name.to_owned(),
        kind,
        device: device.to_owned(),
        below,
        size_bytes: size_bytes(sysfs).unwrap_or(0),
        logical_block_bytes: read_number(&queue.join("logical_block_size")),
        physical_block_bytes: read_number(&queue.join("physical_block_size")),
        read_only: read_number::<u32>(&sysfs.join("ro")) == Some(1),
        ..Layer::default()
    };
    if kind == LayerKind::Partition {
        return layer;
    }
    Layer {
        model: model(sysfs, kind),
        vendor: read_text(&sysfs.join("device/vendor")).filter(|vendor| !vendor.starts_with("0x")),
        serial: serial(sysfs),
        firmware: first_text(sysfs, &["device/firmware_rev", "device/rev"]),
        link: find_link(root, sysfs),
        backing_file: read_text(&sysfs.join("loop/backing_file")),
        backing_direct: read_number::<u32>(&sysfs.join("loop/dio")).map(|direct| direct == 1),
        rotational: read_number::<u32>(&queue.join("rotational")).map(|rotational| rotational == 1),
        scheduler: active_scheduler(&read_text(&queue.join("scheduler")).unwrap_or_default()),
        queue_requests: read_number(&queue.join("nr_requests")),
        request_bytes_max: read_kib(&queue.join("max_sectors_kb")),
        read_ahead_bytes: read_kib(&queue.join("read_ahead_kb")),
        write_cache: write_cache(&read_text(&queue.join("write_cache")).unwrap_or_default()),
        forced_unit_access: read_number::<u32>(&queue.join("fua")).map(|fua| fua == 1),
        discard: read_number::<u64>(&queue.join("discard_max_bytes")).map(|bytes| bytes > 0),
        discard_granularity_bytes: read_number(&queue.join("discard_granularity"))
            .filter(|bytes| *bytes > 0),
        ..layer
    }
}

/// The bytes of a file that holds a number of KiB.
fn read_kib(path: &Path) -> Option<u64> {
    read_number::<u64>(path)?.checked_mul(1024)
}

/// Size of a block device in bytes.
pub(crate) fn size_bytes(sysfs: &Path) -> Option<u64> {
    read_number::<u64>(&sysfs.join("size"))?.checked_mul(SECTOR_BYTES)
}

/// The model of a disk; of device mapper and MD, what made the device.
fn model(sysfs: &Path, kind: LayerKind) -> Option<String> {
    match kind {
        LayerKind::DeviceMapper => {
            let uuid = read_text(&sysfs.join("dm/uuid")).unwrap_or_default();
            Some(mapper_model(&read_text(&sysfs.join("dm/name"))?, &uuid))
        }
        LayerKind::Md => read_text(&sysfs.join("md/level")).map(|level| format!("MD {level}")),
        LayerKind::Disk
        | LayerKind::Partition
        | LayerKind::Loop
        | LayerKind::Zram
        | LayerKind::RamDisk
        | LayerKind::Network => read_text(&sysfs.join("device/model")),
    }
}

/// Device mapper's users begin the UUID with their own name: `LVM-…`, `CRYPT-LUKS2-…`, `mpath-…`.
fn mapper_model(name: &str, uuid: &str) -> String {
    let prefix = uuid.split('-').next().unwrap_or_default();
    match MAPPER_USERS.iter().find(|(word, _)| *word == prefix) {
        Some((_, user)) => format!("{user} {name}"),
        None => format!("{OTHER_MAPPER_USER} {name}"),
    }
}

/// The serial number. NVMe and MMC show it in sysfs, virtio alongside the queue, SCSI in the page
/// 0x80 of its vital product data. Without any of these a WWID takes its place.
fn serial(sysfs: &Path) -> Option<String> {
    first_text(sysfs, &["device/serial", "serial"])
        .or_else(|| unit_serial(&std::fs::read(sysfs.join("device/vpd_pg80")).ok()?))
        .or_else(|| first_text(sysfs, &["device/wwid", "wwid"]))
}

/// The unit serial number page of SPC-5, 7.7.19: type, page code 0x80, length (two bytes, big
/// endian), ASCII.
fn unit_serial(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let bytes = page.get(4..)?.get(..length).or(page.get(4..))?;
    let text = String::from_utf8_lossy(bytes);
    let serial = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    if page[1] == 0x80 && !serial.is_empty() {
        Some(serial.to_owned())
    } else {
        None
    }
}

/// `mq-deadline` of `none [mq-deadline] kyber`; `none` where that is all there is.
fn active_scheduler(text: &str) -> Option<String> {
    let mut name = text;
    if let Some((_, rest)) = text.split_once('[')
        && let Some((marked, _)) = rest.split_once(']')
    {
        name = marked;
    } else if text.contains(char::is_whitespace) {
        return None;
    }
    if name.is_empty() {
        return None;
    }
    Some(name.to_owned())
}

/// The state of the write cache, as queue/write_cache of sysfs names it.
fn write_cache(text: &str) -> Option<WriteCache> {
    match text {
        "write back" => Some(WriteCache::WriteBack),
        "write through" => Some(WriteCache::WriteThrough),
        _ => None,
    }
}

/// A disk of which only its name is known.
#[cfg(test)]
pub(crate) fn bare_layer(name: &str, device: &str) -> Layer {
    let root = SysRoot {
        sys: "/nonexistent".into(),
        proc: "/nonexistent".into(),
    };
    describe(&root, Path::new("/nonexistent"), name, device, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_read() {
        let active = active_scheduler("none [mq-deadline] kyber");
        assert_eq!(active.as_deref(), Some("mq-deadline"));
        assert_eq!(active_scheduler("none").as_deref(), Some("none"));
        assert_eq!(active_scheduler("none kyber"), None);
    }

    #[test]
    fn serials_of_scsi_read() {
        let pages: [(&[u8], Option<&str>); 4] = [
            (b"\x00\x80\x00\x08  S3Z9NB", Some("S3Z9NB")),
            (b"\x00\x80\x00\xffSHORT\0", Some("SHORT")),
            (b"\x00\x83\x00\x04ABCD", None),
            (b"\x00\x80", None),
        ];
        for (page, serial) in pages {
            assert_eq!(unit_serial(page).as_deref(), serial);
        }
    }

    #[test]
    fn mapper_devices_say_whose_they_are() {
        assert_eq!(mapper_model("vg0-data", "LVM-abc"), "LVM vg0-data");
        let crypt = mapper_model("luks-1", "CRYPT-LUKS2-abc-luks-1");
        assert_eq!(crypt, "crypt luks-1");
        assert_eq!(mapper_model("own", ""), "device mapper own");
    }

    #[test]
    fn disk_kind_follows_its_name() {
        for (name, kind) in [
            ("zram0", LayerKind::Zram),
            ("ram1", LayerKind::RamDisk),
            ("nbd0", LayerKind::Network),
            ("loop7", LayerKind::Loop),
            ("drbd1", LayerKind::Network),
            ("sda", LayerKind::Disk),
            ("vda", LayerKind::Disk),
        ] {
            assert_eq!(layer_kind(Path::new("/nonexistent"), name), kind, "{name}");
        }
    }
}
