//! `volatile-write-cache`: what is acknowledged without a flush may be lost when the power fails.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "volatile-write-cache",
    title: "The disk has a volatile write cache",
    meaning: "The disk acknowledges writes before they are on the medium. A power failure loses \
              writes without a subsequent flush. A mount option that disables flushes makes every \
              commit unsafe.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Mount options that switch flushes off: ext4(5), xfs(5) before Linux 4.19, btrfs(5).
const WITHOUT_FLUSHES: [&str; 2] = ["nobarrier", "barrier=0"];

/// A disk with a volatile cache.
struct VolatileDisk<'a> {
    path: String,
    disk: &'a Layer,
    /// The mount option that switches flushes off.
    option: Option<&'a str>,
}

/// Only records with commits: other loads promise no durability.
fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<VolatileDisk<'_>> = Vec::new();
    for (index, target) in record.targets.iter().enumerate() {
        if has_commits(record, index) {
            hits.extend(volatile_disks(index, target));
        }
    }
    let first = hits.first()?;
    let never_flushed = hits
        .iter()
        .find(|hit| hit.disk.write_cache == Some(WriteCache::WriteThrough));
    let mounted_without = hits.iter().find(|hit| hit.option.is_some());
    let found = if let Some(hit) = never_flushed {
        never_flushed_by_kernel(hit)
    } else if let Some(hit) = mounted_without
        && let Some(option) = hit.option
    {
        mounted_without_flushes(hit, option)
    } else {
        flushed_at_each_commit(first)
    };
    Some(Diagnosis {
        evidence: hits
            .iter()
            .map(|hit| evidence_at(&hit.path, 1.0, 0.0, "write back"))
            .collect(),
        ..found
    })
}

fn never_flushed_by_kernel(hit: &VolatileDisk<'_>) -> Diagnosis {
    let name = &hit.disk.name;
    let claim = format!(
        "{name} reports that its volatile write cache is on, but the kernel treats it as \
         write-through and sends no flushes. A power cut loses acknowledged commits."
    );
    Diagnosis::new(Severity::Warning, claim, []).with_remedy(format!(
        "Make the kernel send flushes (echo 'write back' > /sys/block/{name}/queue/write_cache), \
         or switch the cache off."
    ))
}

fn mounted_without_flushes(hit: &VolatileDisk<'_>, option: &str) -> Diagnosis {
    let claim = format!(
        "{} has a volatile write cache, but the filesystem is mounted with {option}, which \
         disables flushes. A power cut loses acknowledged commits and may damage the filesystem.",
        hit.disk.name
    );
    Diagnosis::new(Severity::Warning, claim, [])
        .with_remedy(format!("Mount the filesystem without {option}."))
}

fn flushed_at_each_commit(hit: &VolatileDisk<'_>) -> Diagnosis {
    let claim = format!(
        "{} acknowledges writes from a volatile cache. Commits are durable because each one \
         flushes the cache; a power failure loses writes without a sync.",
        hit.disk.name
    );
    Diagnosis::new(Severity::Note, claim, []).with_remedy(
        "Leave fsync on in the database. 'diskproof powercut' tests whether the disk keeps \
         flushed data.",
    )
}

fn has_commits(record: &Record, target: usize) -> bool {
    real_rows(record).any(|measured| {
        let data = &measured.row.data;
        data.target == target && data.ops.contains_key(&OpKind::Commit)
    })
}

fn volatile_disks(index: usize, target: &TargetIdentity) -> Vec<VolatileDisk<'_>> {
    let option = option_without_flushes(target);
    let mut found = Vec::new();
    for (layer_index, disk) in target.layers.iter().enumerate() {
        let cache = disk.reported_write_cache.or(disk.write_cache);
        if disk.kind == LayerKind::Disk && cache == Some(WriteCache::WriteBack) {
            let path = format!("/targets/{index}/layers/{layer_index}/write_cache");
            found.push(VolatileDisk { path, disk, option });
        }
    }
    found
}

fn option_without_flushes(target: &TargetIdentity) -> Option<&str> {
    let options = &target.filesystem.as_ref()?.options;
    options
        .iter()
        .map(String::as_str)
        .find(|option| WITHOUT_FLUSHES.contains(option))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || cached(WriteCache::WriteBack, None),
        || cached(WriteCache::WriteThrough, Some("barrier=0")),
    );

    fn cached(cache: WriteCache, option: Option<&str>) -> Record {
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

    #[test]
    fn volatile_cache_is_a_note_and_without_flushes_a_warning() {
        let note = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(note.severity, Severity::Note);
        let without = cached(WriteCache::WriteBack, Some("barrier=0"));
        let warning = check(&without).unwrap();
        assert_eq!(warning.severity, Severity::Warning);
        states(&warning.claim, &["barrier=0"]);
    }

    #[test]
    fn disk_s_own_report_counts_more_than_the_kernel_s_view() {
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        for (kernel, disk, severity) in [
            (on, off, None),
            (on, on, Some(Severity::Note)),
            // The kernel sends no flushes.
            (off, on, Some(Severity::Warning)),
        ] {
            let mut record = cached(kernel, None);
            for layer in record
                .targets
                .iter_mut()
                .flat_map(|target| &mut target.layers)
            {
                layer.reported_write_cache = Some(disk);
            }
            let found = check(&record).map(|finding| finding.severity);
            assert_eq!(found, severity, "{kernel:?} {disk:?}");
        }
    }

    #[test]
    fn record_without_commits_is_silent() {
        let mut record = (EXAMPLES.fires)();
        for measurement in &mut record.measurements {
            measurement.data.ops.remove(&OpKind::Commit);
        }
        assert_eq!(check(&record), None);
    }
}
