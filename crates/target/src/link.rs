//! How a disk is attached, from its place in the device tree: PCIe, SATA, USB or virtio, and what that link can carry. Knows nothing of
//! the disk itself.

use crate::sysroot::{SysRoot, list, read_number, read_text};
use diskproof_model::target::Link;
use std::path::{Path, PathBuf};

/// The link of the disk whose directory in the device tree is `disk`; `None` for buses that tell nothing.
pub(crate) fn link_of(root: &SysRoot, disk: &Path) -> Option<Link> {
    sata(root, disk).or_else(|| usb(disk)).or_else(|| virtio(disk)).or_else(|| pcie(disk)).or_else(|| pcie(&nvme_controller(disk)?))
}

/// SATA hangs below `ataN`; its speed is told by the class `ata_link`, device `linkN` (Documentation/ABI/testing/sysfs-ata).
fn sata(root: &SysRoot, disk: &Path) -> Option<Link> {
    let port = components(disk).find_map(|name| numbered(name, "ata"))?;
    let link = root.sys.join(format!("class/ata_link/link{port}"));
    // A port without a disk, or one behind a controller that does not tell, says "<unknown>".
    let speed = read_text(&link.join("sata_spd")).filter(|speed| gigabits(speed).is_some());
    let speed_max = read_text(&link.join("sata_spd_limit")).filter(|speed| gigabits(speed).is_some());
    // All SATA generations code 8 bits in 10.
    let bytes_per_second_max = speed.as_deref().and_then(gigabits).map(|gigabits| (gigabits * 1e9 * 0.8 / 8.0).round() as u64);
    Some(Link { bus: "SATA".into(), speed, speed_max, bytes_per_second_max })
}

/// The first number of `6.0 Gbps`.
fn gigabits(speed: &str) -> Option<f64> {
    speed.strip_suffix("Gbps")?.trim().parse().ok().filter(|value| *value > 0.0 && *value < 1e6)
}

/// The USB device is the nearest directory above that has a bus number; its `speed` is in Mbit/s (Documentation/ABI/stable/sysfs-bus-usb).
fn usb(disk: &Path) -> Option<Link> {
    let device = disk.ancestors().find(|at| at.join("busnum").exists())?;
    let megabits: Option<f64> = read_number(&device.join("speed")).filter(|speed: &f64| *speed > 0.0 && *speed < 1e6);
    let bytes_per_second_max = megabits.map(|megabits| {
        // USB 2 has no block code; 5 Gbit/s codes 8 bits in 10, 10 Gbit/s and more 128 in 132 (USB 3.2, 6.3.1 and 6.3.2).
        let share = match megabits {
            m if m < 5_000.0 => 1.0,
            m if m < 10_000.0 => 0.8,
            _ => 128.0 / 132.0,
        };
        (megabits * 1e6 * share / 8.0).round() as u64
    });
    Some(Link { bus: "USB".into(), speed: megabits.map(|m| format!("{m} Mb/s")), speed_max: None, bytes_per_second_max })
}

fn virtio(disk: &Path) -> Option<Link> {
    components(disk).find_map(|name| numbered(name, "virtio"))?;
    Some(Link { bus: "virtio".into(), speed: None, speed_max: None, bytes_per_second_max: None })
}

/// NVMe: its PCI function is the nearest directory above that tells a link speed.
fn pcie(disk: &Path) -> Option<Link> {
    components(disk).find(|name| name.starts_with("nvme"))?;
    let function = disk.ancestors().find(|at| at.join("current_link_speed").exists())?;
    let read = |kind: &str| {
        let speed = read_text(&function.join(format!("{kind}_link_speed")))?;
        let width: u32 = read_number(&function.join(format!("{kind}_link_width")))?;
        pcie_speed(&speed, width)
    };
    let (current, fastest) = (read("current"), read("max"));
    Some(Link {
        bus: "PCIe".into(),
        bytes_per_second_max: current.as_ref().map(|(_, bytes)| *bytes),
        speed: current.map(|(text, _)| text),
        speed_max: fastest.map(|(text, _)| text),
    })
}

/// `16.0 GT/s PCIe` and 4 lanes → `16.0 GT/s PCIe x4` and its bytes per second.
fn pcie_speed(speed: &str, lanes: u32) -> Option<(String, u64)> {
    let number = speed.split_whitespace().next()?;
    let transfers: f64 = number.parse().ok().filter(|value| *value > 0.0 && *value < 1e6)?;
    if !speed.contains("GT/s") || !(1..=32).contains(&lanes) {
        return None;
    }
    // Generations 1 and 2 (2.5 and 5 GT/s) code 8 bits in 10, later ones 128 in 130 (PCIe base specification, 4.2).
    let share = if transfers <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    let bytes = transfers * 1e9 * f64::from(lanes) * share / 8.0;
    Some((format!("{number} GT/s PCIe x{lanes}"), bytes.round() as u64))
}

/// With native multipath an NVMe disk hangs below its subsystem, which names the controllers; the first one stands for all.
fn nvme_controller(disk: &Path) -> Option<PathBuf> {
    let subsystem = disk.join("device").canonicalize().ok()?;
    let name = list(&subsystem).into_iter().find(|name| numbered(name, "nvme").is_some())?;
    subsystem.join(name).canonicalize().ok()
}

fn components(path: &Path) -> impl Iterator<Item = &str> {
    path.iter().filter_map(|part| part.to_str())
}

/// The number of `ata12` after `ata`; `None` when anything else follows.
fn numbered(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pcie_carries_what_the_specification_says() {
        assert_eq!(pcie_speed("16.0 GT/s PCIe", 4), Some(("16.0 GT/s PCIe x4".into(), 7_876_923_077)));
        assert_eq!(pcie_speed("8 GT/s", 4), Some(("8 GT/s PCIe x4".into(), 3_938_461_538)));
        assert_eq!(pcie_speed("5.0 GT/s PCIe", 2), Some(("5.0 GT/s PCIe x2".into(), 1_000_000_000)));
        for (speed, lanes) in [("Unknown", 4), ("Unknown speed", 0), ("8.0 GT/s PCIe", 0), ("8.0 GT/s PCIe", 255)] {
            assert_eq!(pcie_speed(speed, lanes), None);
        }
    }

    #[test]
    fn sata_speeds_read() {
        assert_eq!(gigabits("6.0 Gbps"), Some(6.0));
        assert_eq!(gigabits("<unknown>"), None);
        assert_eq!((numbered("ata3", "ata"), numbered("ata_port", "ata"), numbered("ata", "ata")), (Some(3), None, None));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC*", lanes: u32) {
            let _ = (gigabits(&text), pcie_speed(&text, lanes), pcie_speed(&format!("{text} GT/s"), lanes), numbered(&text, "ata"));
        }
    }
}
