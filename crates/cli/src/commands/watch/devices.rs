//! Finds the devices that the user names on the command line of `watch`.

use crate::failure::Failure;
use crate::stdio::Verbosity;
use crate::targets::{identify, keep_from_outputs, resolve_target};
use diskproof_device::{WatchedDevice, watched_device};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::path::{Path, PathBuf};

/// The devices of paths and kernel names, each once. A directory or a file stands for the disks
/// below it. Fails where one of them has no device.
pub(super) fn resolve_devices(
    given: &[PathBuf],
    verbosity: Verbosity,
) -> Result<Vec<WatchedDevice>, Failure> {
    let mut devices: Vec<WatchedDevice> = Vec::new();
    for path in given {
        for device in resolve_path(path, verbosity)? {
            if !devices.iter().any(|known| known.name == device.name) {
                devices.push(device);
            }
        }
    }
    Ok(devices)
}

/// The devices that one path or kernel name stands for, at least one. No output file replaces the
/// path from here on.
fn resolve_path(path: &Path, verbosity: Verbosity) -> Result<Vec<WatchedDevice>, Failure> {
    // A kernel name needs no node in /dev.
    if !path.exists()
        && let Some(name) = path.to_str()
        && let Some(device) = watched_device(name)
    {
        keep_from_outputs(path);
        return Ok(vec![device]);
    }
    let identity = identify(&resolve_target(path, verbosity), verbosity)?;
    let devices = devices_with_names(&kernel_names(&identity));
    if devices.is_empty() {
        let why = match &identity.unresolved {
            Some(why) => why,
            None => "sysfs does not show one",
        };
        return Err(Failure::Usage(format!(
            "{}: no block device is known below it ({why}); name one, such as sda",
            identity.path
        )));
    }
    Ok(devices)
}

/// The kernel name of a block device, or those of the disks below a directory or file.
fn kernel_names(identity: &TargetIdentity) -> Vec<&str> {
    match identity.kind {
        TargetKind::BlockDevice => match identity.layers.first() {
            Some(device) => vec![&device.name],
            None => Vec::new(),
        },
        TargetKind::Directory | TargetKind::File => {
            identity.disks().map(|disk| disk.name.as_str()).collect()
        }
    }
}

/// The devices with these kernel names. A name whose device has gone is skipped.
pub(super) fn devices_with_names(names: &[impl AsRef<str>]) -> Vec<WatchedDevice> {
    let mut devices = Vec::new();
    for name in names {
        devices.extend(watched_device(name.as_ref()));
    }
    devices
}
