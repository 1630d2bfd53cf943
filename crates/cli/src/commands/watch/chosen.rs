//! The devices that the user names: block devices, kernel names, or directories for the disks below
//! them.

use crate::failure::Failure;
use crate::stderr::Verbosity;
use crate::targets::{identify, resolve_target};
use diskproof_device::{WatchedDevice, watched_device};
use diskproof_model::target::{TargetIdentity, TargetKind};
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
    let named = path
        .to_str()
        .filter(|_| !path.exists())
        .and_then(watched_device);
    if let Some(device) = named {
        return Ok(vec![device]);
    }
    let identity = identify(&resolve_target(path, verbosity), verbosity).map_err(Failure::Probe)?;
    let names = names_of(&identity);
    let devices: Vec<WatchedDevice> = names
        .iter()
        .filter_map(|name| watched_device(name))
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

fn names_of(identity: &TargetIdentity) -> Vec<String> {
    match identity.kind {
        TargetKind::BlockDevice => identity
            .layers
            .first()
            .map(|layer| layer.name.clone())
            .into_iter()
            .collect(),
        TargetKind::Directory | TargetKind::File => {
            identity.disks().map(|layer| layer.name.clone()).collect()
        }
    }
}
