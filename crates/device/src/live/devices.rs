//! Which block devices there are to watch, and where the requests of each appear in the kernel's
//! tracing. Reads sysfs only: a device needs no node in /dev.

use crate::layers;
use crate::mounts;
use crate::probe::block_identity;
use crate::sysroot::{SysRoot, list, read_number, read_text};
use diskproof_model::target::TargetIdentity;
use std::ops::Range;

/// A block device that can be watched.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedDevice {
    /// Kernel name, such as `sda1`.
    pub name: String,
    /// What it is.
    pub identity: TargetIdentity,
    /// Major and minor number of the whole disk, which is what tracing reports.
    pub disk: (u32, u32),
    /// Its sectors of 512 bytes on that disk.
    pub sectors: Range<u64>,
    /// Whether hardware or a hypervisor provides it, unlike loop devices and layers.
    pub is_disk: bool,
}

/// Kernel names of all whole block devices that have a size, in order.
pub fn whole_devices() -> Vec<String> {
    let root = SysRoot::default();
    let block = root.sys.join("block");
    let has_size = |name: &String| {
        read_number::<u64>(&block.join(name).join("size")).is_some_and(|size| size > 0)
    };
    list(&block).into_iter().filter(has_size).collect()
}

/// The device of a kernel name; `None` where sysfs does not show it.
pub fn watched_device(name: &str) -> Option<WatchedDevice> {
    watched_device_in(&SysRoot::default(), name)
}

fn watched_device_in(root: &SysRoot, name: &str) -> Option<WatchedDevice> {
    // The kernel gives no device such a name; it would lead to another folder.
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return None;
    }
    let at = root.named_device(name)?;
    let device = read_text(&at.join("dev"))?;
    let size: u64 = read_number(&at.join("size")).unwrap_or(0);
    let is_partition = at.join("partition").exists();
    let (disk, first) = if is_partition {
        (
            read_text(&at.parent()?.join("dev"))?,
            read_number::<u64>(&at.join("start")).unwrap_or(0),
        )
    } else {
        (device.clone(), 0)
    };
    let stack = layers::below_device(root, &mounts::read(root, "self"), &device);
    Some(WatchedDevice {
        name: name.to_owned(),
        identity: block_identity(root, format!("/dev/{name}"), device, 0, stack),
        disk: numbers(&disk)?,
        sectors: first..first.saturating_add(size),
        is_disk: !is_partition && at.join("device").exists(),
    })
}

/// `8:16` as two numbers.
fn numbers(device: &str) -> Option<(u32, u32)> {
    let (major, minor) = device.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_kernel_are_devices() {
        for name in ["", ".", "..", "../block", "a/b", "no-such-disk"] {
            assert_eq!(watched_device(name), None, "{name}");
        }
        assert_eq!(numbers("8:16"), Some((8, 16)));
        assert_eq!(numbers("8"), None);
    }
}
