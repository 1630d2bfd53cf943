//! `volatile-write-cache`: a disk acknowledges writes from a volatile cache, so a power failure may
//! lose those that no flush followed.

use super::flush_not_sent::lacks_flushes;
use super::rule::*;
use crate::words::enumerated;

pub(super) const RULE: Rule = Rule {
    code: "volatile-write-cache",
    title: "The disk has a volatile write cache",
    summary: "The disk acknowledges writes before they are on the medium. A power failure loses \
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

/// Examines the targets with commits, because other loads promise no durability. The worst cause
/// comes first: a kernel that sends no flushes, then a mount option, then syncs that sent none,
/// which `flush-not-sent` reports.
fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<VolatileDisk<'_>> = Vec::new();
    for (index, target) in record.targets.iter().enumerate() {
        if has_commits(record, index) {
            hits.extend(volatile_disks(index, target));
        }
    }
    if hits.is_empty() {
        return None;
    }
    let never_flushed = names(&hits, |hit| {
        hit.disk.write_cache == Some(WriteCache::WriteThrough)
    });
    let option = hits.iter().find_map(|hit| hit.option);
    let diagnosis = if !never_flushed.is_empty() {
        never_flushed_by_kernel(&never_flushed)
    } else if let Some(option) = option {
        mounted_without_flushes(&names(&hits, |hit| hit.option == Some(option)), option)
    } else if lacks_flushes(record) {
        return None;
    } else {
        flushed_at_each_commit(&names(&hits, |_| true))
    };
    Some(Diagnosis {
        evidence: hits
            .iter()
            .map(|hit| evidence_at(&hit.path, 1.0, 0.0, "write back"))
            .collect(),
        ..diagnosis
    })
}

/// The names of the disks for which this holds, each once: targets may share disks.
fn names<'a>(hits: &[VolatileDisk<'a>], holds: impl Fn(&VolatileDisk<'a>) -> bool) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for hit in hits {
        if holds(hit) && !names.contains(&hit.disk.name.as_str()) {
            names.push(&hit.disk.name);
        }
    }
    names
}

fn never_flushed_by_kernel(names: &[&str]) -> Diagnosis {
    let disks = enumerated(names);
    let claim = match names {
        [_] => format!(
            "{disks} reports that its volatile write cache is on, but the kernel treats it as \
             write-through and sends no flushes. A power cut loses acknowledged commits."
        ),
        _ => format!(
            "{disks} report that their volatile write caches are on, but the kernel treats them \
             as write-through and sends no flushes. A power cut loses acknowledged commits."
        ),
    };
    let commands: Vec<String> = names
        .iter()
        .map(|name| format!("echo 'write back' > /sys/block/{name}/queue/write_cache"))
        .collect();
    Diagnosis::new(Severity::Warning, claim, []).with_remedy(format!(
        "Make the kernel send flushes ({}), or switch the cache off.",
        commands.join("; ")
    ))
}

fn mounted_without_flushes(names: &[&str], option: &str) -> Diagnosis {
    let have = match names {
        [_] => "has a volatile write cache",
        _ => "have volatile write caches",
    };
    let claim = format!(
        "{} {have}, but the filesystem is mounted with {option}, which disables flushes. A power \
         cut loses acknowledged commits and may damage the filesystem.",
        enumerated(names)
    );
    Diagnosis::new(Severity::Warning, claim, [])
        .with_remedy(format!("Mount the filesystem without {option}."))
}

fn flushed_at_each_commit(names: &[&str]) -> Diagnosis {
    let acknowledge = match names {
        [_] => "acknowledges writes from a volatile cache",
        _ => "acknowledge writes from volatile caches",
    };
    let claim = format!(
        "{} {acknowledge}. Commits are durable because each one flushes the cache; a power \
         failure loses writes without a sync.",
        enumerated(names)
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
    let mut volatile = Vec::new();
    for (layer_index, disk) in target.layers.iter().enumerate() {
        let cache = disk.reported_write_cache.or(disk.write_cache);
        if disk.kind == LayerKind::Disk && cache == Some(WriteCache::WriteBack) {
            let path = format!("/targets/{index}/layers/{layer_index}/write_cache");
            volatile.push(VolatileDisk { path, disk, option });
        }
    }
    volatile
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
            let diagnosis = check(&record).map(|finding| finding.severity);
            assert_eq!(diagnosis, severity, "{kernel:?} {disk:?}");
        }
    }

    #[test]
    fn all_members_of_an_array_are_named() {
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        for (kernel, parts) in [
            (on, ["sda and sdb acknowledge", "Leave fsync on"]),
            (off, ["sda and sdb report", "/sys/block/sdb/queue"]),
        ] {
            let mut record = cached(kernel, None);
            let layers = &mut record.targets[0].layers;
            let mut member = layers.pop().unwrap();
            member.reported_write_cache = Some(on);
            member.name = "sda".to_owned();
            let mirrored = Layer {
                name: "sdb".to_owned(),
                ..member.clone()
            };
            layers.extend([member, mirrored]);
            let diagnosis = check(&record).unwrap();
            let text = format!("{} {}", diagnosis.claim, diagnosis.remedy);
            states(&text, &parts);
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

    /// A kernel that sends no flushes at all comes before a mount option, and both before the
    /// harmless case.
    #[test]
    fn worst_cause_is_reported_first() {
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        for (kernel, option, severity, part) in [
            (
                off,
                Some("barrier=0"),
                Severity::Warning,
                "/sys/block/sda/queue/write_cache",
            ),
            (
                on,
                Some("nobarrier"),
                Severity::Warning,
                "without nobarrier",
            ),
            (
                on,
                Some("barrier=0"),
                Severity::Warning,
                "without barrier=0",
            ),
            (on, Some("barrier=1"), Severity::Note, "Leave fsync on"),
            (on, None, Severity::Note, "Leave fsync on"),
        ] {
            let mut record = cached(kernel, option);
            for layer in &mut record.targets[0].layers {
                layer.reported_write_cache = Some(on);
            }
            let diagnosis = check(&record).unwrap();
            assert_eq!(diagnosis.severity, severity, "{kernel:?} {option:?}");
            states(&diagnosis.remedy, &[part]);
        }
    }

    /// A partition has the cache of its disk, and no commit went to the second target.
    #[test]
    fn cache_is_that_of_the_disks_of_commits() {
        let mut record = (EXAMPLES.fires)();
        let mut other = record.targets[0].clone();
        other.path = "/other".to_owned();
        record.targets.push(other);
        let evidence = check(&record).unwrap().evidence;
        let paths: Vec<&str> = evidence.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/targets/0/layers/1/write_cache"]);
    }
}
