//! Finds earlier runs in the history: those that repeat a run, and so show how much figures vary,
//! and those that show the capacity or the access time of a disk. Their absence is never an error.

use super::document::judged_quietly;
use super::document::saved_record;
use super::place::{Destination, HistoryEnvironment, history_place, open_if_there};
use crate::failure::Failure;
use crate::provenance::machine_of;
use diskproof_analysis::watch::disk_capacity;
use diskproof_device::host_facts;
use diskproof_history::{Filter, History, HistoryError, HistoryPlace, StoredRun, TargetFilter};
use diskproof_model::observed::MeasuredCapacity;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::surface::SeekPattern;
use diskproof_model::target::{HostFacts, Layer, TargetIdentity, TargetKind};
use diskproof_model::trend::DiskAccess;
use std::path::Path;

/// The most earlier runs of one target and plan that are read: more change Student's t by less than
/// 5 %, and an old disk is another disk.
const EARLIER_RUNS_MAX: usize = 20;
/// The newest runs of the history, which are searched for them. Chosen, not measured.
const SEARCHED_MAX: u64 = 1000;

/// The facts that a run shares with its repetitions, as far as the short form of a saved run has
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKey {
    verb: String,
    method: u32,
    host: String,
    /// The digest of the machine, where it is known.
    machine: Option<String>,
    paths: Vec<String>,
}

impl RunKey {
    /// The key of a run that has ended just now, or is recorded.
    pub(crate) fn new(
        plan: &Plan,
        method: u32,
        host: &HostFacts,
        targets: &[TargetIdentity],
    ) -> Self {
        Self {
            verb: plan.origin.verb.clone(),
            method,
            host: host.name.clone(),
            machine: host.machine.clone(),
            paths: targets.iter().map(|target| target.path.clone()).collect(),
        }
    }

    fn is_repeated_by(&self, run: &SavedRun) -> bool {
        run.verb == self.verb
            && run.method == self.method
            && self.is_of_same_machine(run)
            && run.targets == self.paths
    }
}

impl RunKey {
    /// True if a run is of the same machine. Where the digest of this one is unknown, its name
    /// decides.
    fn is_of_same_machine(&self, run: &SavedRun) -> bool {
        match &self.machine {
            Some(machine) => run.is_of_machine(&self.host, Some(machine)),
            None => run.host == self.host,
        }
    }
}

/// Runs of the history that did the same as one of `records` on the same target, newest first.
/// `compare` decides which of them count. Without a history there are none.
pub(crate) fn earlier_runs(records: &[&Record], history: Option<&Path>) -> Vec<StoredRun> {
    let Ok(place) = history_place(history) else {
        return Vec::new();
    };
    let mut keys: Vec<RunKey> = Vec::new();
    let mut ids = Vec::new();
    for record in records {
        let key = RunKey::new(&record.plan, record.method, &record.host, &record.targets);
        if !keys.contains(&key) {
            keys.push(key);
        }
        ids.push(record.run_id.as_str());
    }
    match repetitions_at(&place, &keys, &ids) {
        Ok(runs) => runs,
        Err(why) => {
            crate::stdio::eprint_line(&format!(
                "warning: the comparison ignores earlier runs: {why}"
            ));
            Vec::new()
        }
    }
}

/// The repetitions in the history at a place, which need not exist.
fn repetitions_at(
    place: &HistoryPlace,
    keys: &[RunKey],
    without: &[&str],
) -> Result<Vec<StoredRun>, Failure> {
    match open_if_there(place)? {
        Some(history) => Ok(repetitions(keys, without, &history)?),
        None => Ok(Vec::new()),
    }
}

/// Earlier runs of the history that did the same as the one that has just ended. Without a history
/// there are none; one that cannot be read is reported when the run is saved.
pub(crate) fn runs_before(key: &RunKey, history: Option<&Path>) -> Vec<Record> {
    let Destination::At(place) = HistoryEnvironment::real().place(history) else {
        return Vec::new();
    };
    let keys = std::slice::from_ref(key);
    repetitions_at(&place, keys, &[])
        .unwrap_or_default()
        .into_iter()
        .map(|run| run.record)
        .collect()
}

/// Runs of the history with one of the keys, newest first, but not those of the ids in `without`.
fn repetitions(
    keys: &[RunKey],
    without: &[&str],
    history: &History,
) -> Result<Vec<StoredRun>, HistoryError> {
    let listed = history.list(&Filter {
        limit: Some(SEARCHED_MAX),
        ..Filter::default()
    })?;
    let mut earlier = Vec::new();
    for key in keys {
        let repeating = listed
            .runs
            .iter()
            .filter(|run| key.is_repeated_by(run))
            .filter(|run| !without.contains(&run.run_id.as_str()))
            .take(EARLIER_RUNS_MAX);
        for run in repeating {
            // A run that cannot be read, or that another process removed, shows nothing.
            if let Ok(Some(stored)) = history.get(&run.run_id) {
                let judged = judged_quietly(stored);
                earlier.push(StoredRun {
                    record: judged.record.figures_only(),
                    page: None,
                    label: judged.label,
                });
            }
        }
    }
    Ok(earlier)
}

/// Verbs that measure the capacity of a disk.
const CAPACITY_VERBS: [&str; 2] = ["check", "sweep"];
/// At most so many records, the newest, are read for the capacity of one device. Chosen, not
/// measured.
const CAPACITY_RECORDS_MAX: usize = 10;

/// The history, where it can be read.
fn open_readable(history: Option<&Path>) -> Option<History> {
    open_if_there(&history_place(history).ok()?).ok()?
}

/// The capacity of each device, as far as the history knows it.
pub(crate) fn capacities(
    devices: &[&TargetIdentity],
    history: Option<&Path>,
) -> Vec<Option<MeasuredCapacity>> {
    let Some(history) = open_readable(history) else {
        return vec![None; devices.len()];
    };
    let machine = Machine::this();
    let mut runs: Vec<SavedRun> = Vec::new();
    for verb in CAPACITY_VERBS {
        let filter = Filter {
            verb: Some(verb.to_owned()),
            ..Filter::default()
        };
        if let Ok(listed) = history.list(&filter) {
            runs.extend(listed.runs);
        }
    }
    // The newest first.
    runs.sort_by(|run, other| other.started.cmp(&run.started));
    devices
        .iter()
        .map(|device| newest_capacity(device, &runs, &machine, &history))
        .collect()
}

/// The capacity of a device by the newest of the runs that shows it.
fn newest_capacity(
    device: &TargetIdentity,
    runs: &[SavedRun],
    machine: &Machine,
    history: &History,
) -> Option<MeasuredCapacity> {
    let layer = device.layers.first()?;
    let candidates = runs
        .iter()
        .filter(|run| machine.has_disk_of(run, layer))
        .filter(|run| may_concern(run, device, layer))
        .take(CAPACITY_RECORDS_MAX);
    for run in candidates {
        if let Some(record) = saved_record(history, &run.run_id)
            && let Some(capacity) = disk_capacity(&record, device)
        {
            return Some(capacity);
        }
    }
    None
}

/// A machine, as runs are told apart by it.
struct Machine {
    host: String,
    /// Its digest; `None` in a container, and where it has none.
    digest: Option<String>,
}

impl Machine {
    /// The machine of this process.
    fn this() -> Self {
        let host = host_facts();
        Self {
            digest: machine_of(&host),
            host: host.name,
        }
    }

    /// True if the disk of a run can be this one: without a serial number any machine has a disk of
    /// its name, model and size. In a container the machine is unknown, and its name may be new
    /// each time: there only an imported run is of another machine.
    fn has_disk_of(&self, run: &SavedRun, disk: &Layer) -> bool {
        disk.serial.is_some()
            || run.is_of_machine(&self.host, self.digest.as_deref())
            || (self.digest.is_none() && !run.imported)
    }
}

/// True if the short form of a run names the device. The record of the run decides.
fn may_concern(run: &SavedRun, device: &TargetIdentity, layer: &Layer) -> bool {
    if run.targets.contains(&device.path) {
        return true;
    }
    for disk in &run.disks {
        let is_same = if disk.serial.is_some() || layer.serial.is_some() {
            disk.serial == layer.serial
        } else {
            disk.name == layer.name && disk.model == layer.model
        };
        if is_same {
            return true;
        }
    }
    false
}

/// The newest runs of a disk, which are searched for its access time. Chosen, not measured.
const ACCESS_RUNS_MAX: u64 = 50;

/// The access time across the whole of the only disk below a directory or file, if it may rotate,
/// as far as the history knows it: a file covers a small part of a disk only.
pub(crate) fn disk_access(target: &TargetIdentity, history: Option<&Path>) -> Option<DiskAccess> {
    let disks: Vec<&Layer> = target.disks().collect();
    let [disk] = disks[..] else {
        return None;
    };
    if target.kind == TargetKind::BlockDevice || disk.rotates() == Some(false) {
        return None;
    }
    let history = open_readable(history)?;
    let machine = Machine::this();
    let filter = Filter {
        target: Some(TargetFilter::Path(format!("/dev/{}", disk.name))),
        limit: Some(ACCESS_RUNS_MAX),
        ..Filter::default()
    };
    for run in history.list(&filter).ok()?.runs {
        if run.figures.iter().any(|figure| figure.workload == "access")
            && machine.has_disk_of(&run, disk)
            && let Some(record) = saved_record(&history, &run.run_id)
            && let Some(access) = whole_disk_access(&record, disk)
        {
            return Some(access);
        }
    }
    None
}

/// The access time in a record of the same disk as a whole.
fn whole_disk_access(record: &Record, disk: &Layer) -> Option<DiskAccess> {
    let surface = record.surface()?;
    let surveyed = record.targets.get(surface.data.target)?;
    let disks_below: Vec<&Layer> = surveyed.disks().collect();
    let [only_disk] = disks_below[..] else {
        return None;
    };
    let is_same_disk = only_disk.serial == disk.serial
        && only_disk.model == disk.model
        && only_disk.size_bytes == disk.size_bytes;
    let is_whole =
        surveyed.kind == TargetKind::BlockDevice && surface.data.span_bytes == disk.size_bytes;
    if !is_same_disk || !is_whole {
        return None;
    }
    let seek = surface.figures.seeks.get(&SeekPattern::Random)?;
    Some(DiskAccess {
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        disk: disk.name.clone(),
        mean: seek.mean.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::RunKey;
    use crate::saved::{HistoryOptions, earlier_runs, keep, load_all, runs_before};
    use diskproof_analysis::fixture;
    use diskproof_model::record::Kept;

    /// Twenty runs of 39 workloads took 750 MB with their data.
    #[test]
    fn runs_beside_the_newest_one_are_read_without_their_data() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("history.db");
        let options = HistoryOptions {
            history: Some(path.clone()),
            ..HistoryOptions::default()
        };
        let record = fixture::checked(fixture::record());
        assert_eq!(record.kept, Kept::Whole);
        keep(&record, "", &options);
        let mut next = record.clone();
        next.run_id = "another".to_owned();
        let key = RunKey::new(&next.plan, next.method, &next.host, &next.targets);
        let before = runs_before(&key, Some(&path));
        let earlier = earlier_runs(&[&next], Some(&path));
        let earlier = earlier.into_iter().map(|run| run.record);
        let named = load_all("latest", Some(&path)).unwrap();
        for found in [before, earlier.collect(), named] {
            let [found] = &found[..] else {
                panic!("{found:?}");
            };
            assert_eq!(found.kept, Kept::FiguresOnly);
            for (row, whole) in found.measurements.iter().zip(&record.measurements) {
                assert_eq!(row.figures, whole.figures);
            }
        }
    }
}
