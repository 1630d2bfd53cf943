//! Finds the disks below the data of a PostgreSQL server on this machine.

use crate::commands::check::layers::highest_layers;
use diskproof_device::probe;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_postgres::WatchedServer;
use std::path::Path;
use std::time::Duration;

/// Time to find the devices of the data, which takes milliseconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The kernel names of the devices directly below the data, the log and the tablespaces. Fails
/// where they cannot be found within [`PROBE_TIMEOUT`], with a sentence for the user: a disk that
/// hangs is a reason to watch it, not to wait for it.
pub(super) fn find_data_devices(server: WatchedServer) -> Result<Vec<String>, String> {
    let search = Deferred::start_or_run("diskproof-probe", move || data_devices(&server));
    match search.wait(PROBE_TIMEOUT) {
        Waited::Done(devices) => devices,
        _ => Err("the disk of the data does not answer, so it is not compared".to_owned()),
    }
}

/// Does what [`find_data_devices`] does, without a limit of time.
fn data_devices(server: &WatchedServer) -> Result<Vec<String>, String> {
    if !server.is_local {
        return Err(
            "the server runs on another machine, so its bytes are not compared with these disks"
                .to_owned(),
        );
    }
    let Some(directory) = &server.data_directory else {
        return Err(
            "the role may not see where the data is, so the server is not compared with a disk; \
             GRANT pg_monitor to the role"
                .to_owned(),
        );
    };
    let mut devices = devices_below(directory)?;
    // The log and the tablespaces may be on other disks. Without root the log's directory is not
    // visible, and the log counts as being on the disk of the data.
    let mut places = vec![directory.join("pg_wal")];
    places.extend(server.tablespaces.clone());
    for place in places {
        if !place.exists() {
            continue;
        }
        for device in devices_below(&place)? {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    Ok(devices)
}

/// The kernel names of the highest layers below a path, at least one.
fn devices_below(path: &Path) -> Result<Vec<String>, String> {
    let resolved = path
        .canonicalize()
        .map_err(|error| format!("{}: the data is not visible here: {error}", path.display()))?;
    let identity = probe(&resolved).map_err(|error| error.to_string())?;
    let highest = highest_layers(&identity.layers);
    if highest.is_empty() {
        let why = match &identity.unresolved {
            Some(why) => why,
            None => "sysfs does not show one",
        };
        return Err(format!(
            "{}: no block device is known below the data ({why})",
            resolved.display()
        ));
    }
    Ok(highest
        .into_iter()
        .map(|layer| layer.name.clone())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn server_elsewhere_or_without_rights_has_no_devices() {
        let server = WatchedServer {
            address: String::new(),
            version: "18.4".to_owned(),
            is_local: false,
            data_directory: Some(PathBuf::from("/")),
            tablespaces: Vec::new(),
            missing: Vec::new(),
        };
        let why = data_devices(&server).unwrap_err();
        assert!(why.contains("another machine"), "{why}");
        let hidden = WatchedServer {
            is_local: true,
            data_directory: None,
            ..server.clone()
        };
        let why = data_devices(&hidden).unwrap_err();
        assert!(why.contains("GRANT pg_monitor"), "{why}");
        let absent = WatchedServer {
            is_local: true,
            data_directory: Some(PathBuf::from("/no-such-directory")),
            ..server
        };
        assert!(data_devices(&absent).is_err());
    }
}
