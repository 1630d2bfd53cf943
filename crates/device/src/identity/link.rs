//! Finds the link by which a disk is attached (PCIe, SATA, USB or virtio), and the rate that it can
//! carry, from the disk's place in the device tree. Does not read the disk itself.

use crate::kernel::sysroot::{SysRoot, list, read_number, read_text};
use diskproof_model::target::Link;
use std::path::{Path, PathBuf};

/// The link of the disk whose directory in the device tree is `disk`; `None` for buses that report
/// none.
pub(crate) fn find_link(root: &SysRoot, disk: &Path) -> Option<Link> {
    sata(root, disk)
        .or_else(|| usb(disk))
        .or_else(|| virtio(disk))
        .or_else(|| pcie(disk))
        .or_else(|| pcie(&nvme_controller(disk)?))
}

/// SATA hangs below `ataN`; its speed stands in the class `ata_link`, device `linkN`, and what the
/// disk itself can by the cached IDENTIFY of `ata_device`, device `devN.0`
/// (Documentation/ABI/testing/sysfs-ata). `sata_spd_limit` is what libata or the port allows, so it
/// says nothing of the disk.
fn sata(root: &SysRoot, disk: &Path) -> Option<Link> {
    let port = components(disk).find_map(|name| numbered(name, "ata"))?;
    let class = root.sys.join(format!("class/ata_link/link{port}"));
    // "<unknown>" on a port without a disk, or behind a controller that does not report it.
    let current = match read_text(&class.join("sata_spd")) {
        Some(speed) => sata_speed(&speed),
        None => None,
    };
    let identify = root.sys.join(format!("class/ata_device/dev{port}.0/id"));
    let fastest = match read_text(&identify) {
        Some(words) => sata_generation(&words).and_then(sata_speed),
        None => None,
    };
    Some(link("SATA", current, fastest))
}

/// The share of data in a line code of 8 bits in 10.
const CODED_8_IN_10: f64 = 0.8;
/// No link is as fast: a number from here on, in megabits or gigabits, is not a speed.
const SPEED_MAX: f64 = 1e6;

/// A speed of a link.
#[derive(Debug, PartialEq, Eq)]
struct LinkSpeed {
    /// The speed in the words of the bus.
    words: String,
    /// The rate of data, which line coding makes lower than that of bits.
    bytes_per_second: u64,
}

/// A speed in the words of `sata_spd`. All generations code 8 bits in 10.
fn sata_speed(words: &str) -> Option<LinkSpeed> {
    let bytes_per_second = gigabits(words)? * 1e9 * CODED_8_IN_10 / 8.0;
    Some(LinkSpeed {
        words: words.to_owned(),
        bytes_per_second: bytes_per_second.round() as u64,
    })
}

/// A link that runs at one speed and could run at another.
fn link(bus: &str, current: Option<LinkSpeed>, fastest: Option<LinkSpeed>) -> Link {
    Link {
        bus: bus.to_owned(),
        bytes_per_second_max: current.as_ref().map(|speed| speed.bytes_per_second),
        speed: current.map(|speed| speed.words),
        device_bytes_per_second_max: fastest.as_ref().map(|speed| speed.bytes_per_second),
        speed_max: fastest.map(|speed| speed.words),
    }
}

/// The fastest generation in the words of `sata_spd`, from the 256 hexadecimal words of IDENTIFY
/// DEVICE: word 76, bits 1 to 3 (ATA8-ACS, 7.16.7.31).
fn sata_generation(identify: &str) -> Option<&'static str> {
    let word = identify.split_whitespace().nth(76)?;
    match u16::from_str_radix(word, 16).ok()? {
        // Both mean that the word is not in use.
        0 | 0xFFFF => None,
        bits if bits & 0b1000 != 0 => Some("6.0 Gbps"),
        bits if bits & 0b0100 != 0 => Some("3.0 Gbps"),
        bits if bits & 0b0010 != 0 => Some("1.5 Gbps"),
        _ => None,
    }
}

/// The first number of `6.0 Gbps`.
fn gigabits(speed: &str) -> Option<f64> {
    let number = speed.strip_suffix("Gbps")?.trim().parse().ok()?;
    if number > 0.0 && number < SPEED_MAX {
        Some(number)
    } else {
        None
    }
}

/// The USB device is the nearest directory above that has a bus number; its `speed` is in Mbit/s
/// (Documentation/ABI/stable/sysfs-bus-usb). What it could do on a better port stands in its BOS
/// descriptor, which kernels show since 6.9 (Documentation/ABI/testing/sysfs-bus-usb).
fn usb(disk: &Path) -> Option<Link> {
    let device = disk
        .ancestors()
        .find(|ancestor| ancestor.join("busnum").exists())?;
    let current = match read_number::<f64>(&device.join("speed")) {
        Some(megabits) if megabits > 0.0 && megabits < SPEED_MAX => Some(usb_speed(megabits)),
        _ => None,
    };
    let fastest = match std::fs::read(device.join("bos_descriptors")) {
        Ok(bos) => usb_megabits_max(&bos).map(usb_speed),
        Err(_) => None,
    };
    Some(link("USB", current, fastest))
}

fn usb_speed(megabits: f64) -> LinkSpeed {
    LinkSpeed {
        words: format!("{megabits} Mb/s"),
        bytes_per_second: usb_bytes_per_second(megabits),
    }
}

/// USB 2 has no block code; 5 Gbit/s codes 8 bits in 10, 10 Gbit/s and more 128 in 132 (USB 3.2,
/// 6.3.1 and 6.3.2).
fn usb_bytes_per_second(megabits: f64) -> u64 {
    let coded_share = if megabits < 5_000.0 {
        1.0
    } else if megabits < 10_000.0 {
        CODED_8_IN_10
    } else {
        128.0 / 132.0
    };
    (megabits * 1e6 * coded_share / 8.0).round() as u64
}

/// The fastest lane in a Binary Object Store: device capabilities SuperSpeed (type 3, 5 Gbit/s is
/// bit 3 of its speeds) and SuperSpeedPlus (type 10, a list of lane speeds); USB 3.2, 9.6.2.2 and
/// 9.6.2.5. `None` for a device that has neither, and for a broken descriptor.
fn usb_megabits_max(bos: &[u8]) -> Option<f64> {
    let mut fastest: Option<f64> = None;
    let mut entries = bos;
    while let [length, ..] = *entries {
        let (entry, later_entries) = entries.split_at_checked(usize::from(length).max(1))?;
        let speeds = match entry {
            [_, 0x10, 0x03, _, low, ..] if low & 0b1000 != 0 => vec![5_000.0],
            [_, 0x10, 0x0A, ..] => entry
                .get(12..)?
                .chunks_exact(4)
                .map(lane_megabits)
                .collect(),
            _ => Vec::new(),
        };
        fastest = speeds.into_iter().chain(fastest).max_by(f64::total_cmp);
        entries = later_entries;
    }
    if fastest? > 0.0 { fastest } else { None }
}

/// A sublink speed attribute: bits 16 to 31 times 1000 to the power of bits 4 and 5, in bits per
/// second.
fn lane_megabits(attribute: &[u8]) -> f64 {
    let value = attribute
        .iter()
        .rev()
        .fold(0u32, |value, byte| value << 8 | u32::from(*byte));
    f64::from(value >> 16) * 1000f64.powi((value >> 4 & 3) as i32) / 1e6
}

fn virtio(disk: &Path) -> Option<Link> {
    components(disk).find_map(|name| numbered(name, "virtio"))?;
    Some(link("virtio", None, None))
}

/// NVMe: its PCI function is the nearest directory above that shows a link speed.
fn pcie(disk: &Path) -> Option<Link> {
    components(disk).find(|name| name.starts_with("nvme"))?;
    let function = disk
        .ancestors()
        .find(|ancestor| ancestor.join("current_link_speed").exists())?;
    let current = pcie_link(function, "current");
    Some(link("PCIe", current, pcie_link(function, "max")))
}

/// The speed that a function has now (`current`), or could have (`max`).
fn pcie_link(function: &Path, kind: &str) -> Option<LinkSpeed> {
    let speed = read_text(&function.join(format!("{kind}_link_speed")))?;
    let lanes = read_number(&function.join(format!("{kind}_link_width")))?;
    pcie_speed(&speed, lanes)
}

/// `16.0 GT/s PCIe` and 4 lanes → `16.0 GT/s PCIe x4`.
fn pcie_speed(speed: &str, lanes: u32) -> Option<LinkSpeed> {
    let number = speed.split_whitespace().next()?;
    let transfers: f64 = number.parse().ok()?;
    // A link has at most 32 lanes (PCIe base specification).
    let is_plausible = transfers > 0.0 && transfers < SPEED_MAX && (1..=32).contains(&lanes);
    if !is_plausible || !speed.contains("GT/s") {
        return None;
    }
    // Generations 1 and 2 (2.5 and 5 GT/s) code 8 bits in 10, later ones 128 in 130 (PCIe base
    // specification, 4.2).
    let share = if transfers <= 5.0 {
        CODED_8_IN_10
    } else {
        128.0 / 130.0
    };
    let bytes = transfers * 1e9 * f64::from(lanes) * share / 8.0;
    Some(LinkSpeed {
        words: format!("{number} GT/s PCIe x{lanes}"),
        bytes_per_second: bytes.round() as u64,
    })
}

/// With native multipath an NVMe disk hangs below its subsystem, which names the controllers; the
/// first one stands for all.
fn nvme_controller(disk: &Path) -> Option<PathBuf> {
    let subsystem = disk.join("device").canonicalize().ok()?;
    let name = list(&subsystem)
        .into_iter()
        .find(|name| numbered(name, "nvme").is_some())?;
    subsystem.join(name).canonicalize().ok()
}

/// The character device of an NVMe controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NvmeController {
    /// Its name, such as `nvme0`.
    pub(crate) name: String,
    /// Its number, `major:minor`.
    pub(crate) number: String,
}

impl NvmeController {
    /// The controller of the disk with this directory in sysfs.
    pub(crate) fn of_disk(disk: &Path) -> Option<Self> {
        let above = disk
            .ancestors()
            .find(|directory| controller_name(directory).is_some());
        let directory = match above {
            Some(directory) => directory.to_owned(),
            None => nvme_controller(disk)?,
        };
        let number = std::fs::read_to_string(directory.join("dev")).ok()?;
        Some(Self {
            name: controller_name(&directory)?,
            number: number.trim().to_owned(),
        })
    }
}

/// The name of a directory, where it is that of a controller.
fn controller_name(directory: &Path) -> Option<String> {
    let name = directory.file_name()?.to_str()?;
    numbered(name, "nvme")?;
    Some(name.to_owned())
}

fn components(path: &Path) -> impl Iterator<Item = &str> {
    path.iter().filter_map(|part| part.to_str())
}

/// The number of `ata12` after `ata`; `None` when anything else follows.
fn numbered(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controller_of_an_nvme_disk_is_found_with_and_without_multipath() {
        let sysfs = FakeSysfs::new();
        let below = "pci0000:00/0000:00:04.0/nvme/nvme3";
        sysfs.add_block_device(&format!("{below}/nvme3n1"), "259:0", &[]);
        sysfs.add_block_device("virtual/nvme-subsystem/nvme-subsys1/nvme1n1", "259:1", &[]);
        let subsystem = "devices/virtual/nvme-subsystem/nvme-subsys1";
        sysfs.add_link(&format!("{subsystem}/nvme1n1/device"), subsystem);
        sysfs.add_link(&format!("{subsystem}/nvme3"), &format!("devices/{below}"));
        sysfs.write_attribute(&format!("devices/{below}/dev"), "243:3");
        for device in ["259:0", "259:1"] {
            let disk = sysfs.root().block_device(device).unwrap();
            let controller = NvmeController::of_disk(&disk).unwrap();
            assert_eq!((&*controller.name, &*controller.number), ("nvme3", "243:3"));
        }
    }
    use crate::kernel::fake_sysfs::FakeSysfs;
    use proptest::prelude::*;

    /// What a disk says of itself, with this word about its generations.
    fn identify(word: &str) -> String {
        let words = [vec!["0000"; 76], vec![word], vec!["0000"; 179]].concat();
        words.chunks(8).map(|line| line.join(" ") + "\n").collect()
    }

    #[test]
    fn pcie_carries_what_the_specification_says() {
        for (speed, lanes, text, bytes_per_second) in [
            ("16.0 GT/s PCIe", 4, "16.0 GT/s PCIe x4", 7_876_923_077),
            ("8 GT/s", 4, "8 GT/s PCIe x4", 3_938_461_538),
            ("5.0 GT/s PCIe", 2, "5.0 GT/s PCIe x2", 1_000_000_000),
        ] {
            let expected = Some(LinkSpeed {
                words: text.to_owned(),
                bytes_per_second,
            });
            assert_eq!(pcie_speed(speed, lanes), expected);
        }
        for (speed, lanes) in [
            ("Unknown", 4),
            ("Unknown speed", 0),
            ("8.0 GT/s PCIe", 0),
            ("8.0 GT/s PCIe", 255),
        ] {
            assert_eq!(pcie_speed(speed, lanes), None);
        }
    }

    #[test]
    fn sata_speeds_read() {
        assert_eq!(gigabits("6.0 Gbps"), Some(6.0));
        assert_eq!(gigabits("<unknown>"), None);
        assert_eq!(numbered("ata3", "ata"), Some(3));
        assert_eq!(numbered("ata_port", "ata"), None);
        assert_eq!(numbered("ata", "ata"), None);
    }

    #[test]
    fn the_disk_says_which_sata_generations_it_knows() {
        for (word, speed) in [
            ("8d0e", Some("6.0 Gbps")),
            ("0706", Some("3.0 Gbps")),
            ("0002", Some("1.5 Gbps")),
            ("0000", None),
            ("ffff", None),
        ] {
            assert_eq!(sata_generation(&identify(word)), speed, "{word}");
        }
        assert_eq!(sata_generation("0040 3fff"), None);
    }

    #[test]
    fn a_usb_device_says_what_it_can_on_a_better_port() {
        let super_speed = [10, 0x10, 3, 0, 0x0e, 0, 1, 10, 0xff, 7];
        let header = [5, 0x0f, 42, 0, 3];
        let usb2_extension = [7, 0x10, 2, 2, 0, 0, 0];
        let plus = [
            20, 0x10, 10, 0, 1, 0, 0, 0, 0, 0x11, 0, 0, 0x30, 0x40, 10, 0, 0xb0, 0x40, 10, 0,
        ];
        let cases: [(&[&[u8]], Option<f64>); 4] = [
            (&[&header, &usb2_extension, &super_speed], Some(5_000.0)),
            (
                &[&header, &usb2_extension, &super_speed, &plus],
                Some(10_000.0),
            ),
            (&[&header, &usb2_extension], None),
            (&[&header, &super_speed[..6]], None),
        ];
        for (parts, megabits) in cases {
            assert_eq!(usb_megabits_max(&parts.concat()), megabits);
        }
        assert_eq!(usb_bytes_per_second(480.0), 60_000_000);
        assert_eq!(usb_bytes_per_second(5_000.0), 500_000_000);
    }

    #[test]
    fn a_disk_on_a_slower_port_than_it_could_use() {
        let sysfs = FakeSysfs::new();
        sysfs.write_attribute("class/ata_link/link3/sata_spd", "3.0 Gbps");
        sysfs.write_attribute("class/ata_link/link3/sata_spd_limit", "3.0 Gbps");
        sysfs.write_attribute("class/ata_device/dev3.0/id", &identify("8d0e"));
        let disk = "/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";
        let link = find_link(&sysfs.root(), Path::new(disk)).unwrap();
        assert_eq!(link.speed.as_deref(), Some("3.0 Gbps"));
        assert_eq!(link.speed_max.as_deref(), Some("6.0 Gbps"));
        assert_eq!(link.bytes_per_second_max, Some(300_000_000));
        assert_eq!(link.device_bytes_per_second_max, Some(600_000_000));
    }

    proptest! {
        #[test]
        fn descriptors_never_panic(bos: Vec<u8>) {
            let _ = usb_megabits_max(&bos);
        }
    }
}
