//! `flush-not-sent`: commits did not reach the medium, because the disk received fewer flushes than
//! there were syncs.

use super::commits::*;
use super::rule::*;

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
    let mut hits = Vec::new();
    for session in all_sessions(record) {
        hits.extend(unflushed_commits(record, session));
    }
    hits
}

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

fn unflushed_commits<'a>(
    record: &Record,
    session: SessionCommits<'a>,
) -> Option<UnflushedCommits<'a>> {
    let row = session.measured.row;
    let flushes = row.data.device.flush_ops?;
    let commits = session.commits.data.count;
    // A write with O_DSYNC may carry the request itself (FUA).
    let is_synced = matches!(
        row.data.workload.sync,
        SyncPolicy::Every { .. } | SyncPolicy::OtherDescriptor { .. } | SyncPolicy::Shared { .. }
    );
    let flushes_min = commits as f64 / wanted_depth(row).max(1.0) * FLUSHES_PER_ROUND_MIN;
    if !is_synced || has_cache_off(row) || flushes as f64 >= flushes_min {
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
    use diskproof_model::plan::WriteFlag;

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
        // A write with O_DSYNC may be a forced unit access, which is no flush.
        let mut written = without_flushes();
        for measurement in &mut written.measurements {
            measurement.data.workload.sync = SyncPolicy::WithWrite {
                flag: WriteFlag::OpenDsync,
            };
        }
        assert_eq!(check(&written), None);
    }
}
