//! Lists what this machine's kernel exports to other machines and guests as disks: by its SCSI,
//! NVMe, USB and RDMA targets, by SCST, and to domains of Xen. Such a driver opens a disk without
//! claiming it, and not from a process. Reads configfs and sysfs.

use crate::kernel::sysroot::{SysRoot, list, read_text};
use std::path::{Path, PathBuf};

/// A driver that exports disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportDriver {
    /// Linux's SCSI target, LIO (target_core_configfs.c).
    Scsi,
    /// Linux's NVMe target (drivers/nvme/target/configfs.c).
    Nvme,
    /// Mass storage of a USB gadget (f_mass_storage.c).
    Usb,
    /// The network block device over RDMA (rnbd-srv-sysfs.c).
    Rdma,
    /// The block backend of Xen (xen-blkback/xenbus.c).
    Xen,
    /// The SCSI target SCST, which is no part of Linux (scst_vdisk.c).
    Scst,
}

impl ExportDriver {
    /// The driver in words, with an article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scsi => "the SCSI target (LIO)",
            Self::Nvme => "the NVMe target (nvmet)",
            Self::Usb => "the USB gadget",
            Self::Rdma => "the RDMA block server (rnbd)",
            Self::Xen => "the Xen backend",
            Self::Scst => "the SCSI target (SCST)",
        }
    }
}

/// The thing that is exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exported {
    /// The path of a file or node, which the administrator wrote.
    Path(PathBuf),
    /// `major:minor` of a block device.
    Device(String),
}

/// One disk that other machines or guests see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) driver: ExportDriver,
    pub(crate) exported: Exported,
    /// The directory of the kernel in which it is configured.
    pub(crate) place: PathBuf,
    /// False where it is configured, but not open.
    pub(crate) is_open: bool,
}

/// Everything that is exported, or configured to be.
pub(crate) fn exports(root: &SysRoot) -> Vec<Export> {
    let config = root.sys.join("kernel/config");
    let mut exports = Vec::new();
    for device in below(&config.join("target/core"), 2) {
        add_scsi(device, &mut exports);
    }
    for subsystem in below(&config.join("nvmet/subsystems"), 1) {
        let mut places = below(&subsystem.join("namespaces"), 1);
        places.push(subsystem.join("passthru"));
        for place in places {
            add_path(ExportDriver::Nvme, place, "device_path", &mut exports);
        }
    }
    // The functions of all kinds, of which only mass storage has such units.
    for gadget in below(&config.join("usb_gadget"), 1) {
        for unit in below(&gadget.join("functions"), 2) {
            add_path(ExportDriver::Usb, unit, "file", &mut exports);
        }
    }
    for place in below(&root.sys.join("class/rnbd-server/ctl/devices"), 1) {
        let number = read_text(&place.join("block_dev/dev"));
        add_device(ExportDriver::Rdma, place, number, &mut exports);
    }
    for place in below(&root.sys.join("bus/xen-backend/devices"), 1) {
        let number = read_text(&place.join("physical_device"));
        let decimal = number.and_then(|hexadecimal| decimal_number(&hexadecimal));
        add_device(ExportDriver::Xen, place, decimal, &mut exports);
    }
    for place in below(&root.sys.join("kernel/scst_tgt/devices"), 1) {
        add_scst(place, &mut exports);
    }
    exports
}

/// The entries so many levels below a directory.
fn below(directory: &Path, levels: u32) -> Vec<PathBuf> {
    let mut places = vec![directory.to_owned()];
    for _ in 0..levels {
        let mut next = Vec::new();
        for place in &places {
            next.extend(list(place).iter().map(|name| place.join(name)));
        }
        places = next;
    }
    places
}

/// A disk of the SCSI target. The path that a tool noted may be missing; the driver states the file
/// that it has opened, such as `TCM FILEIO ID: 0        File: /dev/sdb  Size: …`.
fn add_scsi(place: PathBuf, exports: &mut Vec<Export>) {
    if let Some(info) = read_text(&place.join("info"))
        && let Some((_, behind)) = info.split_once("  File: ")
        && let Some((path, _)) = behind.rsplit_once("  Size: ")
    {
        exports.push(Export {
            driver: ExportDriver::Scsi,
            exported: Exported::Path(PathBuf::from(path)),
            is_open: is_enabled(&place),
            place: place.clone(),
        });
    }
    add_path(ExportDriver::Scsi, place, "udev_path", exports);
}

/// A disk of SCST: a second line, `[key]`, says that its settings are kept.
fn add_scst(place: PathBuf, exports: &mut Vec<Export>) {
    let Some(text) = read_text(&place.join("filename")) else {
        return;
    };
    if let Some(path) = text.lines().next() {
        exports.push(Export {
            driver: ExportDriver::Scst,
            exported: Exported::Path(PathBuf::from(path)),
            is_open: true,
            place,
        });
    }
}

/// Adds the disk that a path in this attribute names, where there is such an attribute.
fn add_path(driver: ExportDriver, place: PathBuf, attribute: &str, exports: &mut Vec<Export>) {
    let Some(path) = read_text(&place.join(attribute)) else {
        return;
    };
    exports.push(Export {
        driver,
        exported: Exported::Path(PathBuf::from(path)),
        is_open: is_enabled(&place),
        place,
    });
}

fn add_device(
    driver: ExportDriver,
    place: PathBuf,
    number: Option<String>,
    exports: &mut Vec<Export>,
) {
    if let Some(number) = number {
        exports.push(Export {
            driver,
            exported: Exported::Device(number),
            place,
            is_open: true,
        });
    }
}

/// False only where a switch of the place is off; a place without a switch is always enabled.
fn is_enabled(place: &Path) -> bool {
    read_text(&place.join("enable")).as_deref() != Some("0")
}

/// `major:minor` of a number that Xen prints in hexadecimal digits.
fn decimal_number(hexadecimal: &str) -> Option<String> {
    let (major_text, minor_text) = hexadecimal.split_once(':')?;
    let major = u32::from_str_radix(major_text, 16).ok()?;
    let minor = u32::from_str_radix(minor_text, 16).ok()?;
    Some(format!("{major}:{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;

    fn found(sysfs: &FakeSysfs) -> Vec<(ExportDriver, Exported, bool)> {
        exports(&sysfs.root())
            .into_iter()
            .map(|export| (export.driver, export.exported, export.is_open))
            .collect()
    }

    #[test]
    fn disks_of_all_drivers_are_exports() {
        let sysfs = FakeSysfs::new();
        assert_eq!(found(&sysfs), []);
        let config = |path: &str, text: &str| {
            sysfs.write_attribute(&format!("kernel/config/{path}"), text);
        };
        let info = "Status: ACTIVATED  Max Queue Depth: 0\n        TCM FILEIO ID: 0        File: \
                    /dev/my disk  Size: 1048576  Mode: O_DSYNC Async: 0";
        config("target/core/fileio_0/one/info", info);
        config("target/core/iblock_1/two/udev_path", "/dev/sdb");
        config("target/core/iblock_1/two/enable", "1");
        config("nvmet/subsystems/nqn/namespaces/1/device_path", "/dev/sdc");
        config("nvmet/subsystems/nqn/namespaces/1/enable", "0");
        config("nvmet/subsystems/nqn/passthru/device_path", "/dev/nvme0");
        config(
            "usb_gadget/g1/functions/mass_storage.0/lun.0/file",
            "/dev/sdd",
        );
        sysfs.add_block_device("x/sde", "8:64", &[]);
        sysfs.add_link(
            "class/rnbd-server/ctl/devices/sde/block_dev",
            "devices/x/sde",
        );
        let backend = "bus/xen-backend/devices/vbd-3-51712/physical_device";
        sysfs.write_attribute(backend, "fd:1a");
        sysfs.write_attribute("kernel/scst_tgt/devices/asm/filename", "/dev/sdf\n[key]");
        sysfs.write_attribute("kernel/scst_tgt/devices/asm2/handler", "dev_disk");
        let path = |text: &str| Exported::Path(PathBuf::from(text));
        let device = |text: &str| Exported::Device(text.to_owned());
        let expected = [
            (ExportDriver::Scsi, path("/dev/my disk"), true),
            (ExportDriver::Scsi, path("/dev/sdb"), true),
            (ExportDriver::Nvme, path("/dev/sdc"), false),
            (ExportDriver::Nvme, path("/dev/nvme0"), true),
            (ExportDriver::Usb, path("/dev/sdd"), true),
            (ExportDriver::Rdma, device("8:64"), true),
            (ExportDriver::Xen, device("253:26"), true),
            (ExportDriver::Scst, path("/dev/sdf"), true),
        ];
        assert_eq!(found(&sysfs), expected);
    }
}
