//! What disks can do, by the newest run of the history that measured each. Its absence is never an
//! error.

use super::judged::judged_quietly;
use diskproof_analysis::watch::disk_capacity;
use diskproof_history::{Filter, History};
use diskproof_model::observed::MeasuredCapacity;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::{Layer, TargetIdentity};

/// Verbs that measure what a disk can do.
const VERBS: [&str; 2] = ["check", "sweep"];
/// Records that are read for one device, the newest.
const READ_MAX: usize = 10;

/// The capacity of each device, as far as the history knows it.
pub(super) fn find_capacities(
    devices: &[&TargetIdentity],
    history: &History,
) -> Vec<Option<MeasuredCapacity>> {
    let mut runs: Vec<SavedRun> = Vec::new();
    for verb in VERBS {
        let filter = Filter {
            verb: Some(verb.to_owned()),
            ..Filter::default()
        };
        let listed = history.list(&filter);
        runs.extend(listed.into_iter().flat_map(|listing| listing.runs));
    }
    runs.sort_by(|one, other| other.started.cmp(&one.started));
    let devices = devices.iter();
    devices
        .map(|device| newest(device, &runs, history))
        .collect()
}

fn newest(
    device: &TargetIdentity,
    runs: &[SavedRun],
    history: &History,
) -> Option<MeasuredCapacity> {
    let layer = device.layers.first()?;
    let candidates = runs.iter().filter(|run| may_concern(run, device, layer));
    candidates.take(READ_MAX).find_map(|run| {
        let stored = history.get(&run.run_id).ok()??;
        disk_capacity(&judged_quietly(stored).record, device)
    })
}

/// By the short form of the run: its record decides.
fn may_concern(run: &SavedRun, device: &TargetIdentity, layer: &Layer) -> bool {
    let mut disks = run.disks.iter();
    let is_disk = disks.any(|disk| match (&disk.serial, &layer.serial) {
        (None, None) => disk.name == layer.name && disk.model == layer.model,
        (one, other) => one == other,
    });
    is_disk || run.targets.contains(&device.path)
}
