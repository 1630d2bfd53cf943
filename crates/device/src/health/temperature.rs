//! Reads the temperature of disks from the kernel's sensors (hwmon), which need no other program.

use diskproof_model::target::TargetIdentity;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

/// The highest temperature of the disks below these targets, in °C; `None` where none has a sensor.
/// Each reading is a command to the disk.
pub fn disk_temperature(targets: &[TargetIdentity]) -> Option<f64> {
    let mut highest: Option<f64> = None;
    for target in targets {
        for disk in target.disks() {
            let device = Path::new("/sys/block").join(&disk.name).join("device");
            if let Some(celsius) = sensor_of(&device) {
                highest = Some(highest.unwrap_or(celsius).max(celsius));
            }
        }
    }
    highest
}

/// The first sensor of a device. That of an NVMe controller (nvme-hwmon) lies in its own folder,
/// that of a SATA disk (drivetemp) in the folder `hwmon` of it.
fn sensor_of(device: &Path) -> Option<f64> {
    for folder in [device.to_owned(), device.join("hwmon")] {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let is_sensor = entry.file_name().to_string_lossy().starts_with("hwmon");
            if is_sensor && let Some(celsius) = reading(&entry.path().join("temp1_input")) {
                return Some(celsius);
            }
        }
    }
    None
}

/// Temperatures that a disk can report, in thousandths of a degree. A sensor that does not know its
/// temperature reports 0 K, or -128 °C.
const PLAUSIBLE: RangeInclusive<i32> = -100_000..=200_000;

/// Thousandths of a degree (Documentation/hwmon/sysfs-interface.rst), as degrees; `None` of what no
/// disk can have.
fn reading(path: &Path) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let thousandths: i32 = text.trim().parse().ok()?;
    if PLAUSIBLE.contains(&thousandths) {
        Some(f64::from(thousandths) / 1000.0)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensor_lies_in_the_device_of_nvme_and_in_a_folder_of_sata() {
        let device = tempfile::tempdir().unwrap();
        assert_eq!(sensor_of(device.path()), None);
        for (folder, text, celsius) in [
            ("hwmon/hwmon3", "41000\n", 41.0),
            ("hwmon1", "38850\n", 38.85),
            ("hwmon1", "-5000\n", -5.0),
        ] {
            let folder = device.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("temp1_input"), text).unwrap();
            assert_eq!(sensor_of(device.path()), Some(celsius));
        }
    }

    #[test]
    fn temperature_that_no_disk_has_is_unknown() {
        let device = tempfile::tempdir().unwrap();
        let folder = device.path().join("hwmon1");
        fs::create_dir_all(&folder).unwrap();
        for text in ["-273150\n", "-128000\n", "65535000\n", "\n", "hot", ""] {
            fs::write(folder.join("temp1_input"), text).unwrap();
            assert_eq!(sensor_of(device.path()), None, "{text}");
        }
    }
}
