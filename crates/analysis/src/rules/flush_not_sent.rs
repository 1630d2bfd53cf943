//! `flush-not-sent`: commits did not reach the medium, because the disk received fewer flushes than
//! there were syncs.

use super::commits::*;
use super::rule::*;
use diskproof_model::plan::WriteFlag;

pub(super) const RULE: Rule = Rule {
    code: "flush-not-sent",
    title: "Syncs did not reach the disk",
    summary: "The disk has a volatile write cache, but received fewer flushes than there were \
              commits. A power cut loses acknowledged transactions and may damage the database.",
    remedy: Remedy::Always(
        "Look for mount options that disable flushes (nobarrier, barrier=0), and for a layer or \
         hypervisor setting that ignores them (cache=unsafe).",
    ),
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::NotDurable,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The kernel sends a flush for each sync of one session, and at least one for each round of
/// several, whose syncs a journal may join. A part of the measured time may lack those that lie at
/// its edges.
const FLUSHES_PER_ROUND_MIN: f64 = 0.5;
/// Disks with request queues, whose flushes the kernel counts (blk_account_io_flush() in Linux's
/// block/blk-flush.c). NVMe disks with several paths have none, and count no flush at all.
const FLUSH_COUNTING_DISKS: [&str; 6] = ["sd", "vd", "xvd", "loop", "nbd", "mmcblk"];

/// Commits on volatile disks that received too few flushes.
struct UnflushedCommits<'a> {
    measured: Measured<'a>,
    flushes: u64,
    commits: u64,
    /// The fewest flushes that make so many commits durable.
    flushes_min: f64,
    /// The names of the disks.
    disks: String,
}

impl UnflushedCommits<'_> {
    /// Flushes for each commit.
    fn share(&self) -> f64 {
        self.flushes as f64 / self.commits as f64
    }
}

/// Returns `true` if commits reached no medium, so that no other rule may call them durable.
pub(super) fn lacks_flushes(record: &Record) -> bool {
    !all_unflushed(record).is_empty()
}

fn all_unflushed(record: &Record) -> Vec<UnflushedCommits<'_>> {
    let mut hits: Vec<UnflushedCommits<'_>> = Vec::new();
    let mut undecided = Vec::new();
    for session in all_sessions(record) {
        let row = session.measured.row;
        match flush_need(record, row) {
            FlushNeed::Certain => hits.extend(unflushed_commits(record, session)),
            FlushNeed::Unknown => undecided.push(session),
            FlushNeed::Absent => {}
        }
    }
    // What drops the flushes of one method drops those of the others.
    for session in undecided {
        let target = session.measured.row.data.target;
        if hits
            .iter()
            .any(|hit| hit.measured.row.data.target == target)
        {
            hits.extend(unflushed_commits(record, session));
        }
    }
    hits
}

/// Whether the kernel has to send flushes that make the commits of a row durable.
enum FlushNeed {
    Certain,
    /// The record does not say whether its writes were forced unit accesses.
    Unknown,
    /// Its writes may be forced unit accesses, or they are not made durable one by one.
    Absent,
}

fn flush_need(record: &Record, row: &Row) -> FlushNeed {
    let data = &row.data;
    match data.workload.sync {
        SyncPolicy::Every { .. }
        | SyncPolicy::OtherDescriptor { .. }
        | SyncPolicy::Shared { .. } => FlushNeed::Certain,
        SyncPolicy::None | SyncPolicy::AtEnd => FlushNeed::Absent,
        SyncPolicy::WithWrite { flag } => {
            let Some(target) = record.targets.get(data.target) else {
                return FlushNeed::Absent;
            };
            // Only a direct write carries the request itself, and in a filesystem only one that
            // asks for its data alone (iomap_dio_bio_iter() in Linux's fs/iomap/direct-io.c). Every
            // other one is followed by the filesystem's own sync.
            let syncs_file = flag == WriteFlag::OpenSync && target.kind != TargetKind::BlockDevice;
            if data.cache.used != CachePolicy::Direct || syncs_file {
                return FlushNeed::Certain;
            }
            flush_need_of_flagged_writes(target)
        }
    }
}

/// The need of direct writes whose flag makes them durable. The kernel sends a flush after such a
/// write to a device without forced unit access. One such layer above the disks sends flushes to
/// all of them.
fn flush_need_of_flagged_writes(target: &TargetIdentity) -> FlushNeed {
    for layer in &target.layers {
        if !layer.below.is_empty() && layer.forced_unit_access == Some(false) {
            return FlushNeed::Certain;
        }
    }
    let mut need = FlushNeed::Certain;
    for disk in target.disks() {
        match disk.forced_unit_access {
            Some(false) => {}
            Some(true) => return FlushNeed::Absent,
            None => need = FlushNeed::Unknown,
        }
    }
    need
}

/// The row with the fewest flushes for each commit is the one that the claim names.
fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits = all_unflushed(record);
    hits.sort_by(|one, other| one.share().total_cmp(&other.share()));
    let worst = hits.first()?;
    let flushes = match worst.flushes {
        1 => "1 flush".to_owned(),
        n => format!("{n} flushes"),
    };
    Some(Diagnosis::new(
        Severity::Failure,
        format!(
            "{flushes} reached {}, whose write cache is volatile, for {} in {}. A power cut loses \
             acknowledged transactions and may damage the database.",
            worst.disks,
            counted(worst.commits, "commit"),
            worst.measured.row.data.workload.name,
        ),
        hits.iter().map(|hit| {
            let flushes = hit.flushes as f64;
            hit.measured
                .evidence("data/device/flush_ops", flushes, hit.flushes_min, "flushes")
        }),
    ))
}

/// The commits of a session that too few flushes made durable; `None` where flushes were not
/// counted, and where a disk below has no volatile cache.
fn unflushed_commits<'a>(
    record: &Record,
    session: SessionCommits<'a>,
) -> Option<UnflushedCommits<'a>> {
    let row = session.measured.row;
    let flushes = row.data.device.flush_ops?;
    let commits = session.commits.data.count;
    let flushes_min = commits as f64 / wanted_depth(row).max(1.0) * FLUSHES_PER_ROUND_MIN;
    if has_cache_off(row) || flushes as f64 >= flushes_min {
        return None;
    }
    let disks = disks_below(record, row);
    let all_need_flushes = disks.iter().all(|disk| {
        disk.write_cache == Some(WriteCache::WriteBack) && (flushes > 0 || has_flush_counter(disk))
    });
    if disks.is_empty() || !all_need_flushes {
        return None;
    }
    Some(UnflushedCommits {
        measured: session.measured,
        flushes,
        commits,
        flushes_min,
        disks: disk_names(&disks),
    })
}

fn has_flush_counter(disk: &Layer) -> bool {
    FLUSH_COUNTING_DISKS
        .iter()
        .any(|kind| disk.name.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::commits::tests::{each_layer, volatile, with_flushes};

    pub(super) const EXAMPLES: Examples = Examples::new(without_flushes, with_flushes);

    fn without_flushes() -> Record {
        volatile(10)
    }

    #[test]
    fn missing_flushes_of_a_volatile_cache_are_a_failure() {
        let finding = check(&without_flushes()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["10 flushes", "sda"]);
        // A cache that needs no flush gets none, and an unknown one says nothing.
        let mut protected = without_flushes();
        for cache in [Some(WriteCache::WriteThrough), None] {
            each_layer(&mut protected, |layer| layer.write_cache = cache);
            assert_eq!(check(&protected), None);
        }
        // A journal may join the syncs of eight sessions, but not all of them in so few flushes.
        for (flushes, is_missing) in [(10, true), (400, false)] {
            let mut several = volatile(flushes);
            for row in &mut several.measurements {
                row.data.workload.depth = 8;
            }
            assert_eq!(check(&several).is_some(), is_missing, "{flushes}");
        }
        // The counter of a disk without a request queue counts no flush.
        let mut uncounted = volatile(0);
        assert!(check(&uncounted).is_some());
        each_layer(&mut uncounted, |layer| {
            layer.name = layer.name.replace("sda", "nvme0n1")
        });
        assert_eq!(check(&uncounted), None);
    }

    /// The number of rows in doubt where every write had this flag and no flush was sent.
    fn doubted(flag: WriteFlag, change: impl FnOnce(&mut Record)) -> usize {
        let mut record = volatile(0);
        for row in &mut record.measurements {
            row.data.workload.sync = SyncPolicy::WithWrite { flag };
        }
        change(&mut record);
        match check(&record) {
            Some(finding) => finding.evidence.len(),
            None => 0,
        }
    }

    #[test]
    fn writes_with_a_flag_need_flushes_unless_they_may_be_forced_unit_accesses() {
        for (fua, flag, expected) in [
            (Some(true), WriteFlag::OpenDsync, 0),
            (Some(false), WriteFlag::OpenDsync, 1),
            (Some(false), WriteFlag::RwfDsync, 1),
            (None, WriteFlag::OpenDsync, 0),
            // A filesystem syncs the whole file.
            (Some(true), WriteFlag::OpenSync, 1),
        ] {
            let count = doubted(flag, |record| {
                each_layer(record, |layer| layer.forced_unit_access = fua)
            });
            assert_eq!(count, expected, "{fua:?} {flag:?}");
        }
        let on_device = doubted(WriteFlag::OpenSync, |record| {
            record.targets[0].kind = TargetKind::BlockDevice;
            each_layer(record, |layer| layer.forced_unit_access = Some(true));
        });
        assert_eq!(on_device, 0);
        let through_the_cache = doubted(WriteFlag::OpenDsync, |record| {
            for row in &mut record.measurements {
                row.data.cache.used = CachePolicy::Buffered;
            }
        });
        assert_eq!(through_the_cache, 1);
    }

    #[test]
    fn a_layer_without_forced_unit_access_sends_flushes_to_a_disk_that_has_it() {
        let count = doubted(WriteFlag::OpenDsync, |record| {
            each_layer(record, |layer| layer.forced_unit_access = Some(true));
            let mut image = record.targets[0].layers[0].clone();
            image.below = vec![image.name.clone()];
            (image.name, image.forced_unit_access) = ("loop0".to_owned(), Some(false));
            record.targets[0].layers.insert(0, image);
        });
        assert_eq!(count, 1);
    }

    #[test]
    fn flushes_that_one_method_lacks_are_lacking_to_those_that_are_not_known_to_need_them() {
        for (fua, expected) in [(None, 2), (Some(true), 1)] {
            let mut record = volatile(0);
            each_layer(&mut record, |layer| layer.forced_unit_access = fua);
            let commits = record.measurements.last().unwrap().clone();
            record.measurements.push(commits);
            record.measurements.last_mut().unwrap().data.workload.sync = SyncPolicy::WithWrite {
                flag: WriteFlag::OpenDsync,
            };
            assert_eq!(check(&record).unwrap().evidence.len(), expected, "{fua:?}");
        }
    }
}
