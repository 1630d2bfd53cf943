//! The devices that the user names: block devices, kernel names, or directories for the disks below
//! them.

use crate::failure::Failure;
use crate::stderr::Verbosity;
use crate::targets::{identify, resolve_target};
use diskproof_device::{WatchedDevice, watched_device};
use diskproof_model::target::TargetKind;
use std::path::{Path, PathBuf};

/// What to watch.
#[derive(Debug)]
pub(super) enum ChosenDevices {
    /// All whole devices, also those that appear later.
    All,
    /// These.
    Named(Vec<WatchedDevice>),
}

impl ChosenDevices {
    pub(super) fn of(given: &[PathBuf], verbosity: Verbosity) -> Result<Self, Failure> {
        if given.is_empty() {
            return Ok(Self::All);
        }
        let mut devices: Vec<WatchedDevice> = Vec::new();
        for path in given {
            for device in devices_of(path, verbosity)? {
                if !devices.iter().any(|known| known.name == device.name) {
                    devices.push(device);
                }
            }
        }
        Ok(Self::Named(devices))
    }
}

fn devices_of(path: &Path, verbosity: Verbosity) -> Result<Vec<WatchedDevice>, Failure> {
    // A kernel name needs no node in /dev.
    let name = path.to_str().filter(|_| !path.exists());
    if let Some(device) = name.and_then(watched_device) {
        return Ok(vec![device]);
    }
    let identity = identify(&resolve_target(path, verbosity), verbosity)?;
    let own = identity
        .layers
        .first()
        .filter(|_| identity.kind == TargetKind::BlockDevice);
    let below = identity
        .disks()
        .filter(|_| identity.kind != TargetKind::BlockDevice);
    let names = own.into_iter().chain(below);
    let devices: Vec<_> = names
        .filter_map(|layer| watched_device(&layer.name))
        .collect();
    if devices.is_empty() {
        let why = identity.unresolved.as_deref();
        return Err(Failure::Usage(format!(
            "{}: no block device is known below it ({}); name one, such as sda",
            identity.path,
            why.unwrap_or("sysfs does not show one")
        )));
    }
    Ok(devices)
}
