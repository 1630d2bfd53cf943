//! `volatile-write-cache`: what is acknowledged without a flush may be lost when the power fails.

use super::evidence::{evidence_at, real};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, WriteCache};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "volatile-write-cache",
    title: "The disk has a volatile write cache",
    meaning: "The disk acknowledges writes before they are on the medium. A power failure loses \
              writes without a subsequent flush. A mount option that disables flushes makes every \
              commit unsafe.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::volatile,
        silent: tests::write_through,
    },
}];

/// Mount options that switch flushes off: ext4(5), xfs(5) before Linux 4.19, btrfs(5).
const WITHOUT_FLUSHES: [&str; 2] = ["nobarrier", "barrier=0"];

/// A disk whose cache is volatile.
struct VolatileCache<'a> {
    target: usize,
    layer: usize,
    disk: &'a Layer,
    /// The mount option that switches flushes off.
    option: Option<&'a String>,
}

/// Only records with commits: other loads promise no durability.
fn check(record: &Record) -> Option<Diagnosis> {
    let has_commits = |target: usize| {
        real(record).any(|(_, m)| m.target == target && m.ops.contains_key(&OpKind::Commit))
    };
    let targets = record.targets.iter().enumerate();
    let hits: Vec<VolatileCache<'_>> = targets
        .filter(|(index, _)| has_commits(*index))
        .flat_map(|(index, target)| volatile_disks(index, target))
        .collect();
    let worst = hits.iter().find(|hit| hit.option.is_some());
    let worst = worst.or(hits.first())?;
    let name = &worst.disk.name;
    let has_no_flushes =
        |hit: &&VolatileCache<'_>| hit.disk.write_cache == Some(WriteCache::WriteThrough);
    let unflushed = hits.iter().find(has_no_flushes);
    let (severity, claim, remedy) = match (unflushed, worst.option) {
        (Some(hit), _) => (
            Severity::Warning,
            format!(
                "{0} reports that its volatile write cache is on, but the kernel treats it as \
                 write-through and sends no flushes. A power cut loses acknowledged commits.",
                hit.disk.name
            ),
            format!(
                "Make the kernel send flushes (echo 'write back' > \
                 /sys/block/{}/queue/write_cache), or switch the cache off.",
                hit.disk.name
            ),
        ),
        (None, Some(option)) => (
            Severity::Warning,
            format!(
                "{name} has a volatile write cache, but the filesystem is mounted with {option}, \
                 which disables flushes. A power cut loses acknowledged commits and may damage the \
                 filesystem."
            ),
            format!("Mount the filesystem without {option}."),
        ),
        (None, None) => (
            Severity::Note,
            format!(
                "{name} acknowledges writes from a volatile cache. Commits are durable because \
                 each one flushes the cache; a power failure loses writes without a sync."
            ),
            "Leave fsync on in the database. 'diskproof powercut' tests whether the disk keeps \
             flushed data."
                .to_owned(),
        ),
    };
    Some(Diagnosis::new(
        severity,
        claim,
        hits.iter().map(evidence),
        remedy,
    ))
}

fn volatile_disks(index: usize, target: &TargetIdentity) -> Vec<VolatileCache<'_>> {
    let mut options = target.filesystem.iter().flat_map(|f| &f.options);
    let option = options.find(|option| WITHOUT_FLUSHES.contains(&option.as_str()));
    let layers = target.layers.iter().enumerate();
    layers
        .filter(|(_, layer)| {
            let cache = layer.reported_write_cache.or(layer.write_cache);
            layer.kind == LayerKind::Disk && cache == Some(WriteCache::WriteBack)
        })
        .map(|(layer, disk)| VolatileCache {
            target: index,
            layer,
            disk,
            option,
        })
        .collect()
}

fn evidence(hit: &VolatileCache<'_>) -> Evidence {
    let path = format!("/targets/{}/layers/{}/write_cache", hit.target, hit.layer);
    evidence_at(path, 1.0, 0.0, "write back")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn with(cache: WriteCache, option: Option<&str>) -> Record {
        let mut record = fixture::record();
        for target in &mut record.targets {
            for layer in &mut target.layers {
                layer.write_cache = Some(cache);
            }
            if let Some(filesystem) = &mut target.filesystem {
                filesystem.options.extend(option.map(str::to_owned));
            }
        }
        record
    }

    pub(super) fn volatile() -> Record {
        with(WriteCache::WriteBack, None)
    }

    pub(super) fn write_through() -> Record {
        with(WriteCache::WriteThrough, Some("barrier=0"))
    }

    #[test]
    fn volatile_cache_is_a_note_and_without_flushes_a_warning() {
        let note = check(&volatile()).unwrap();
        assert_eq!(note.severity, Severity::Note);
        let warning = check(&with(WriteCache::WriteBack, Some("barrier=0"))).unwrap();
        assert_eq!(warning.severity, Severity::Warning);
        assert!(
            warning.claim.contains("mounted with barrier=0"),
            "{}",
            warning.claim
        );
    }

    #[test]
    fn disk_s_own_report_counts_more_than_the_kernel_s_view() {
        let reported = |kernel, disk| {
            let mut record = with(kernel, None);
            let targets = record.targets.iter_mut();
            targets
                .flat_map(|target| &mut target.layers)
                .for_each(|layer| layer.reported_write_cache = Some(disk));
            check(&record)
        };
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        assert!(reported(on, off).is_none());
        assert_eq!(reported(on, on).unwrap().severity, Severity::Note);
        let unflushed = reported(off, on).unwrap();
        assert_eq!(unflushed.severity, Severity::Warning);
        assert!(
            unflushed.claim.contains("sends no flushes"),
            "{}",
            unflushed.claim
        );
    }

    #[test]
    fn record_without_commits_is_silent() {
        let mut record = volatile();
        for m in &mut record.measurements {
            m.ops.remove(&OpKind::Commit);
        }
        assert!(check(&record).is_none());
    }
}
