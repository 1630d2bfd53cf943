//! `served-from-cache`: the disks did clearly less than was asked of them, so something in between answered.

use super::{Measured, Rule, evidence, heaviest, percent, real, scope};
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;
use diskproof_model::target::LayerKind;
use diskproof_model::units::format_bytes;

pub(super) const RULE: Rule = Rule {
    code: "served-from-cache",
    meaning: "The disks moved clearly fewer bytes than were asked for, so a cache above them answered: the figure is not the disk's.",
    check,
};

/// Least share of the bytes asked that the disks must have moved: their counters are exact, but a few blocks may lie in a cache for honest
/// reasons (a block that was just written, the tail of a read-ahead).
const SHARE_MIN: f64 = 0.95;
/// Below this share most of the figure is the cache's.
const SHARE_FAILURE: f64 = 0.5;
/// Fewer bytes than this prove nothing.
const ASKED_BYTES_MIN: u64 = 1 << 20;

struct Hit {
    index: usize,
    share: f64,
    words: String,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Finding> {
    let hits: Vec<Hit> = real(record).flat_map(hits).collect();
    let worst = hits.iter().min_by(|a, b| a.share.total_cmp(&b.share))?;
    let (cause, remedy) = cause(record, &hits);
    let severity = |hit: &Hit| if hit.share < SHARE_FAILURE { Severity::Failure } else { Severity::Warning };
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: heaviest(hits.iter().map(severity)),
        claim: format!(
            "A cache answered in {}: the disks {} ({} in {}). {cause}",
            scope(record, hits.iter().map(|h| h.index)),
            worst.words,
            percent(worst.share),
            record.measurements[worst.index].workload.name,
        ),
        evidence: hits.iter().map(|h| h.evidence.clone()).collect(),
        remedy,
        reproduce: Some(record.measurements[worst.index].reproduce.clone()),
    })
}

/// Reads and writes are held apart: what others wrote must not hide that our reads never came through.
fn hits((index, m): Measured) -> Vec<Hit> {
    if m.workload.cache == CachePolicy::Cached || m.device.unresolved.is_some() || m.device.accounted.is_none() {
        return Vec::new();
    }
    let holes = m.unwritten_bytes.unwrap_or(0) as f64 / m.workload.span_bytes.max(1) as f64;
    // On a device there is no telling holes, but what is read from them is zero.
    let unwritten = holes.max(m.zero_blocks.zero as f64 / m.zero_blocks.sampled.max(1) as f64);
    // Blocks that were never written are answered without the disk; they have a finding of their own.
    let read_min = SHARE_MIN - if m.workload.read_permille == 1000 { unwritten } else { 0.0 };
    let directions = [
        ("read", "device/read_bytes", m.asked.read_bytes, m.device.read_bytes, read_min),
        ("wrote", "device/write_bytes", m.asked.write_bytes, m.device.write_bytes, SHARE_MIN),
    ];
    let hit = |(verb, place, asked, did, share_min): (&str, &str, u64, u64, f64)| {
        let share = did as f64 / asked as f64;
        (asked >= ASKED_BYTES_MIN && share < share_min).then(|| Hit {
            index,
            share,
            words: format!("{verb} only {} of the {} asked for", format_bytes(did), format_bytes(asked)),
            evidence: evidence(index, place, did as f64, share_min * asked as f64, "B"),
        })
    };
    directions.into_iter().filter_map(hit).collect()
}

/// What answered, as far as the layers tell, and what to do about it.
fn cause(record: &Record, hits: &[Hit]) -> (String, String) {
    let targets: Vec<usize> = hits.iter().map(|h| record.measurements[h.index].target).collect();
    let layers = record.targets.iter().enumerate().filter(|(i, _)| targets.contains(i)).flat_map(|(_, t)| &t.layers);
    if let Some(layer) = layers.clone().find(|l| l.kind == LayerKind::Loop && l.backing_direct == Some(false)) {
        return (
            format!("{} passes its I/O through the page cache of the filesystem that holds its file.", layer.name),
            format!("Turn that off with losetup --direct-io=on /dev/{}, and measure again.", layer.name),
        );
    }
    if hits.iter().any(|h| record.measurements[h.index].workload.cache == CachePolicy::Buffered) {
        return (
            "These workloads went through the kernel's page cache.".to_owned(),
            "Measure a filesystem or a device that takes O_DIRECT, or use a --size of several times the memory.".to_owned(),
        );
    }
    (
        "Direct I/O was on, so a layer below it keeps a cache: the filesystem, a cache device, or compression.".to_owned(),
        "Do not compare these figures with a disk's. Measure the block device below the cache, or use a --size larger than it.".to_owned(),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;

    pub(in crate::rules) fn spoilt() -> Record {
        healthy::all_spoilt(|m| (m.device.read_bytes, m.device.write_bytes) = (m.asked.read_bytes / 10, m.asked.write_bytes * 9 / 10))
    }

    #[test]
    fn fires_once_for_all_workloads() {
        let finding = check(&spoilt()).unwrap();
        assert_eq!((finding.severity, finding.evidence.len()), (Severity::Failure, 10));
        assert!(finding.claim.starts_with("A cache answered in all 8 workloads: the disks read only"), "{}", finding.claim);
    }

    #[test]
    fn a_loop_device_through_the_page_cache_is_named() {
        let mut run = healthy::run();
        let mut layer = healthy::layer("loop3", LayerKind::Loop, &["sda1"]);
        layer.backing_direct = Some(false);
        run.0.targets[0].layers.insert(0, layer);
        run.1[3].device.read_bytes /= 2;
        run.1[3].device.read_bytes += 100;
        let finding = check(&healthy::judge(run)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.claim.contains("loop3") && finding.remedy.contains("losetup --direct-io=on /dev/loop3"), "{finding:?}");
    }

    #[test]
    fn silent_where_it_must_not_judge() {
        assert_eq!(check(&healthy::record()), None);
        let nothing = |m: &mut diskproof_model::measurement::Measurement| (m.device.read_bytes, m.device.write_bytes) = (0, 0);
        let spared: [fn(&mut diskproof_model::measurement::Measurement); 4] = [
            |m| m.cache.used = CachePolicy::Cached,
            |m| m.device.unresolved = Some("overlayfs".to_owned()),
            |m| m.engine.used = diskproof_model::plan::EngineKind::Null,
            |m| (m.asked.read_bytes, m.asked.write_bytes) = (1 << 19, 1 << 19),
        ];
        for spare in spared {
            let record = healthy::all_spoilt(|m| {
                nothing(m);
                spare(m);
            });
            assert_eq!(check(&record), None);
        }
    }

    #[test]
    fn holes_have_their_own_finding() {
        let record = healthy::spoilt("random-read-d32", |m| {
            m.unwritten_bytes = Some(healthy::SPAN_BYTES);
            m.device.read_bytes = 0;
        });
        assert_eq!(check(&record), None);
    }
}
