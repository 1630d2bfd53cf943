//! The access time across a whole rotating disk, from a run of the history that surveyed it. A file
//! covers a small part of a disk only. Its absence is never an error.

use super::judged::judged_quietly;
use diskproof_history::{Filter, History};
use diskproof_model::disk_access::DiskAccess;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::surface::SeekPattern;
use diskproof_model::target::{Layer, TargetIdentity, TargetKind};

/// Runs of the disk that are searched, the newest.
const SEARCHED_MAX: u64 = 50;

/// The one rotating disk below a directory or file.
pub(super) fn rotating_disk(target: &TargetIdentity) -> Option<&Layer> {
    let disks: Vec<&Layer> = target.disks().collect();
    let [disk] = disks.as_slice() else {
        return None;
    };
    let is_part = target.kind != TargetKind::BlockDevice;
    (is_part && disk.rotational == Some(true)).then_some(*disk)
}

/// The newest measurement of this disk.
pub(super) fn find_disk_access(disk: &Layer, history: &History) -> Option<DiskAccess> {
    let filter = Filter {
        target: Some(format!("/dev/{}", disk.name)),
        limit: Some(SEARCHED_MAX),
        ..Filter::default()
    };
    let listed = history.list(&filter).ok()?;
    let has_access = |run: &&SavedRun| run.figures.iter().any(|of| of.workload == "access");
    let surveys = listed.runs.iter().filter(has_access);
    surveys
        .filter_map(|run| history.get(&run.run_id).ok()?)
        .find_map(|stored| access_of(&judged_quietly(stored).record, disk))
}

/// The access time in a record of the same disk.
fn access_of(record: &Record, disk: &Layer) -> Option<DiskAccess> {
    let surface = record.surface.as_ref()?;
    let surveyed = record.targets.get(surface.target)?;
    let is_same = |other: &Layer| {
        (&other.serial, &other.model, other.size_bytes)
            == (&disk.serial, &disk.model, disk.size_bytes)
    };
    let below: Vec<&Layer> = surveyed.disks().collect();
    let is_whole =
        surveyed.kind == TargetKind::BlockDevice && surface.span_bytes == disk.size_bytes;
    if !is_whole || below.len() != 1 || !is_same(below[0]) {
        return None;
    }
    Some(DiskAccess {
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        disk: disk.name.clone(),
        mean: surface.seeks.get(&SeekPattern::Random)?.mean.clone(),
    })
}
