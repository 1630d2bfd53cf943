//! Identifies targets as the user names them, and reads the health of the disks below them. `sda`
//! stands for /dev/sda where no file of that name exists. Only chooses the path: the gate decides
//! whether it may be measured or written.

use crate::document_files::refuse_document;
use crate::failure::Failure;
use crate::input_files::{InputRole, register, register_target};
use crate::stdio::Verbosity;
use diskproof_device::{
    CountersOfDisk, PathError, ProbeError, TrustedPath, disk_counters, disk_health, probe,
    reported_write_caches,
};
use diskproof_model::finding::Severity;
use diskproof_model::health::{CountedDisk, DiskHealth};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The folder of device nodes.
const DEVICES: &str = "/dev";

/// The path to measure. A note on stderr names it where it is not the given one.
pub(crate) fn resolve_target(given: &Path, verbosity: Verbosity) -> PathBuf {
    match device_named(given, Path::new(DEVICES)) {
        Some(device) => {
            verbosity.note(&format!(
                "there is no file {} here, so the target is {}",
                given.display(),
                device.display()
            ));
            device
        }
        None => given.to_owned(),
    }
}

/// Identifies what a path names. The time until the first request is limited from here on.
pub(crate) fn identify(path: &Path, verbosity: Verbosity) -> Result<TargetIdentity, ProbeError> {
    crate::inspection::begin(path, verbosity);
    let identity = probe(path)?;
    register_target(&identity);
    Ok(identity)
}

/// Lets no output be this target from now on, or a file in which it lies. Why it cannot be
/// identified is reported when it is measured.
pub(crate) fn keep_from_outputs(given: &Path) {
    let path = resolve_target(given, Verbosity::Quiet);
    register(&path, InputRole::Target);
    let _ = identify(&path, Verbosity::Quiet);
}

/// Identifies a target, whose filesystem keeps `keep_free` bytes free. Fails for a document.
pub(crate) fn probe_target(
    given: &Path,
    keep_free: Option<u64>,
    verbosity: Verbosity,
) -> Result<TargetIdentity, Failure> {
    let path = resolve_target(given, verbosity);
    let identity = identify_with_reserve(&path, keep_free, verbosity)?;
    if identity.kind == TargetKind::File {
        refuse_document(given)?;
    }
    Ok(identity)
}

/// Identifies what a path names, on a filesystem that keeps `keep_free` bytes free.
pub(crate) fn identify_with_reserve(
    path: &Path,
    keep_free: Option<u64>,
    verbosity: Verbosity,
) -> Result<TargetIdentity, ProbeError> {
    let mut identity = identify(path, verbosity)?;
    if let Some(filesystem) = &mut identity.filesystem {
        filesystem.kept_free_bytes = keep_free;
    }
    Ok(identity)
}

/// Refuses a path whose symlinks another user made or may exchange, for a target that is written:
/// the content of any file of root's could be behind it.
pub(crate) fn refuse_foreign_link(path: &Path) -> Result<(), Failure> {
    match TrustedPath::walk(path) {
        Err(error @ PathError::ForeignLink(_)) => Err(Failure::Path(error)),
        // The gate decides about the file itself.
        Ok(_) | Err(PathError::Kernel { .. }) => Ok(()),
    }
}

/// Notes what the disks below a target report of their write caches, where a tool can tell.
pub(crate) fn note_write_caches(identity: &mut TargetIdentity) {
    let path = std::env::var_os("PATH");
    for (disk, state) in reported_write_caches(identity, path.as_deref()) {
        for layer in &mut identity.layers {
            if layer.name == disk {
                layer.reported_write_cache = Some(state);
            }
        }
    }
}

/// The block device of this name, where nothing else has the name.
fn device_named(given: &Path, devices: &Path) -> Option<PathBuf> {
    let is_plain_name = given.file_name() == Some(given.as_os_str());
    // Also a dangling symlink has the name.
    let is_free = std::fs::symlink_metadata(given)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if !is_plain_name || !is_free {
        return None;
    }
    let device = devices.join(given);
    let metadata = std::fs::metadata(&device).ok()?;
    if metadata.file_type().is_block_device() {
        Some(device)
    } else {
        None
    }
}

/// Refuses a target that is named twice: it would compete with itself. A device has several nodes,
/// so its number counts, not the inode of a node.
pub(crate) fn refuse_duplicates(identities: &[TargetIdentity]) -> Result<(), Failure> {
    for (index, identity) in identities.iter().enumerate() {
        if let Some(other) = identities[..index]
            .iter()
            .find(|other| other.is_same(identity))
        {
            let also = if other.path == identity.path {
                String::new()
            } else {
                format!(", also as {}", identity.path)
            };
            return Err(Failure::Usage(format!(
                "{} is named twice{also}; use --jobs or --depth for more requests on one target",
                other.path
            )));
        }
    }
    Ok(())
}

/// The health that the disks below these targets report.
pub(crate) fn read_health(identities: &[TargetIdentity]) -> Vec<DiskHealth> {
    disk_health(identities, std::env::var_os("PATH").as_deref())
}

/// The counters of load of the disks below these targets, whose health was just read; none where it
/// was not.
pub(crate) fn read_counters(
    identities: &[TargetIdentity],
    health: &[DiskHealth],
) -> Vec<CountersOfDisk> {
    if health.is_empty() {
        return Vec::new();
    }
    disk_counters(identities, health, std::env::var_os("PATH").as_deref())
}

/// The counters of disks before and after a run, of those that are known at both times.
pub(crate) fn counted_disks(
    before: Vec<CountersOfDisk>,
    after: &[CountersOfDisk],
) -> Vec<CountedDisk> {
    let mut counted = Vec::new();
    for earlier in before {
        if let Some(later) = after.iter().find(|later| later.disk == earlier.disk) {
            counted.push(CountedDisk {
                disk: earlier.disk,
                before: earlier.counters,
                after: later.counters.clone(),
            });
        }
    }
    counted
}

/// Warns of failing disks before the run: its load may be the last one that they take.
pub(crate) fn warn_of_failing(health: &[DiskHealth], verbosity: Verbosity) {
    for finding in diskproof_analysis::rules::health_findings(health) {
        if finding.severity == Severity::Failure {
            verbosity.note(&format!(
                "warning: {}: {} {}",
                finding.code, finding.claim, finding.remedy
            ));
        }
    }
}

/// Refuses `--overwrite` for targets that only a plan or a saved run names: a file that the user
/// did not write must not decide what is overwritten.
pub(crate) fn refuse_planned_overwrite(path: &Path, targets: &[PathBuf]) -> Result<(), Failure> {
    if targets.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = targets.iter().map(|path| path.to_string_lossy()).collect();
    let planned = path.display();
    Err(Failure::Usage(format!(
        "--overwrite releases only files on the command line, but {} is named only in {planned}. \
         Name it on the command line, after {planned}",
        names.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_without_a_file_become_devices() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("plain"), "").unwrap();
        let dev = Path::new(DEVICES);
        for given in ["null", "nothing-of-this-name", ".", "..", "a/b", "src", ""] {
            assert_eq!(device_named(Path::new(given), dev), None, "{given}");
        }
        // A regular file in the folder of devices is no device.
        assert_eq!(device_named(Path::new("plain"), place.path()), None);
        let block = std::fs::read_dir(dev).unwrap().find_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            kind.is_block_device().then(|| entry.file_name())
        });
        let Some(name) = block else {
            eprintln!("SKIPPED: only_plain_names_without_a_file_become_devices: a block device");
            return;
        };
        assert_eq!(device_named(Path::new(&name), dev), Some(dev.join(&name)));
    }
}
