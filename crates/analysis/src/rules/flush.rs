//! Whether what makes a commit durable reached the medium: `flush-not-sent`, `implausible-flush`
//! and `sync-method-differs`; and what it costs: `slow-flush`.

use super::disturbed::is_disturbed;
use super::rule::*;
use crate::mechanics::is_said_to_rotate;
use diskproof_model::plan::{SyncCall, WriteFlag};
use diskproof_model::record::positive_interval;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "flush-not-sent",
        check: Check::Workloads(flush_not_sent),
        says: Meaning::NotTheDisk {
            cause: Cause::NotDurable,
        },
        #[cfg(test)]
        examples: Examples::of(tests::without_flushes, tests::with_flushes),
    },
    Rule {
        code: "implausible-flush",
        check: Check::Workloads(implausible_flush),
        says: Meaning::NotTheDisk {
            cause: Cause::NotDurable,
        },
        #[cfg(test)]
        examples: Examples::of(|| tests::turning(500.0), || tests::turning(119.0)),
    },
    Rule {
        code: "sync-method-differs",
        check: Check::Workloads(sync_method_differs),
        says: Meaning::NotTheDisk {
            cause: Cause::NotDurable,
        },
        #[cfg(test)]
        examples: Examples::of(|| tests::methods(9000.0), || tests::methods(900.0)),
    },
    Rule {
        code: "slow-flush",
        check: Check::Workloads(slow_flush),
        says: Meaning::Disk,
        #[cfg(test)]
        examples: Examples::of(|| tests::flash(1_600_000.0), || tests::flash(90_000.0)),
    },
];

/// Fewer commits decide nothing.
const COMMITS_MIN: u64 = 50;
/// The kernel sends a flush for each sync of one session. A part of the measured time may lack
/// those that lie at its edges.
const SENT_MIN: f64 = 0.5;
/// Disks with request queues, whose flushes the kernel counts (blk_account_io_flush() in Linux's
/// block/blk-flush.c). NVMe disks with several paths have none, and count no flush at all.
const COUNTED: [&str; 6] = ["sd", "vd", "xvd", "loop", "nbd", "mmcblk"];
/// A log that advances needs a whole revolution for the next page; short ones let a page that comes
/// right behind pass.
const REVOLUTIONS_MAX: f64 = 1.5;
/// The fastest disks that were built, for one that does not report how fast it turns.
const RPM_MAX: u32 = 15_000;
/// One of two equal methods may use FUA writes and the other flushes, which differ by less.
const METHODS_APART: f64 = 4.0;
/// Flash with protection answers a flush in less than 0.1 ms; consumer flash needs 1 to 4 ms (609
/// commits a second of a Samsung 990 Pro).
const SLOW_FLUSH_NS: f64 = 700_000.0;

/// Commits of one session without other load, with their operations.
fn single_commits(record: &Record) -> impl Iterator<Item = (Measured<'_>, OpRow<'_>)> {
    real(record).filter_map(|(index, m)| {
        let w = &m.data.workload;
        let is_single = w.depth * w.workers == 1
            && w.streams.is_only(OpKind::Write)
            && w.rate.is_none()
            && m.figures.together_with.is_empty();
        let commits = m.op(OpKind::Commit)?;
        (is_single && commits.data.count >= COMMITS_MIN).then_some(((index, m), commits))
    })
}

/// Whether the write cache was off for it, whatever the kernel takes it for.
fn is_switched_off(m: &Row) -> bool {
    m.data.workload.write_cache == Some(WriteCache::WriteThrough)
}

/// The disks below a measurement.
fn disks<'a>(record: &'a Record, m: &Row) -> Vec<&'a Layer> {
    let target = record.targets.get(m.data.target);
    target.map_or_else(Vec::new, |target| target.disks().collect())
}

fn names(disks: &[&Layer]) -> String {
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    names.join(", ")
}

/// Only where a sync was called: a write with O_DSYNC may carry the request itself (FUA).
fn flush_not_sent(record: &Record) -> Option<Diagnosis> {
    let hits = single_commits(record).filter_map(|((index, m), commits)| {
        let (disks, flushes) = (disks(record, m), m.data.device.flush_ops?);
        let is_counted =
            |disk: &Layer| flushes > 0 || COUNTED.iter().any(|kind| disk.name.starts_with(kind));
        let is_volatile =
            |disk: &&Layer| disk.write_cache == Some(WriteCache::WriteBack) && is_counted(disk);
        let is_synced = matches!(
            m.data.workload.sync,
            SyncPolicy::Every { .. } | SyncPolicy::OtherDescriptor { .. }
        );
        let is_hit = !disks.is_empty()
            && disks.iter().all(is_volatile)
            && is_synced
            && !is_switched_off(m)
            && (flushes as f64) < commits.data.count as f64 * SENT_MIN;
        is_hit.then(|| (index, flushes, commits.data.count, names(&disks)))
    });
    let hits: Vec<(usize, u64, u64, String)> = hits.collect();
    let (first, flushes, commits, _) = hits.first()?;
    let on = hits.last().map_or("", |(.., on)| on);
    Some(Diagnosis::new(
        Severity::Failure,
        format!(
            "{} reached {on}, whose write cache is volatile, for {} in {}. A power cut loses \
             acknowledged transactions and may damage the database.",
            match flushes {
                1 => "1 flush".to_owned(),
                n => format!("{n} flushes"),
            },
            counted(*commits, "commit"),
            record.measurements[*first].data.workload.name,
        ),
        hits.iter().map(|(index, flushes, commits, _)| {
            let (seen, least) = (*flushes as f64, *commits as f64 * SENT_MIN);
            evidence(*index, "data/device/flush_ops", seen, least, "flushes")
        }),
    ))
}

fn implausible_flush(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<(usize, f64, f64)> = Vec::new();
    let mut turns = String::new();
    for ((index, m), commits) in single_commits(record) {
        let disks = disks(record, m);
        let [disk] = disks.as_slice() else { continue };
        let health = record.health.iter().find(|one| one.disk == disk.name);
        let (rpm, how) = match health.and_then(|one| one.rotation_rpm) {
            Some(0) => continue,
            Some(rpm) => (rpm, format!("{} turns {rpm} times per minute", disk.name)),
            None if is_said_to_rotate(record, disk) => (
                RPM_MAX,
                format!(
                    "{} rotates, and no disk turns more than {RPM_MAX} times per minute",
                    disk.name
                ),
            ),
            None => continue,
        };
        let most = f64::from(rpm) / 60.0;
        let least = commits.figures.iops.value - commits.figures.iops.half_width_95.unwrap_or(0.0);
        if least > most * REVOLUTIONS_MAX {
            turns = how;
            hits.push((index, commits.figures.iops.value, most));
        }
    }
    let &(first, _, most) = hits.first()?;
    let m = &record.measurements[first];
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{turns}, so it can make at most {most:.0} commits per second durable, but {} made {}. \
             A cache acknowledged them; they survive a power cut only if it is protected.",
            m.data.workload.name,
            m.figures.ops[&OpKind::Commit].iops.value_text(),
        ),
        hits.iter().map(|&(index, rate, most)| {
            let limit = most * REVOLUTIONS_MAX;
            evidence(index, "figures/ops/commit/iops/value", rate, limit, "1/s")
        }),
    ))
}

fn guarantee(sync: SyncPolicy) -> Option<SyncCall> {
    match sync {
        SyncPolicy::Every {
            writes: 0 | 1,
            call,
        }
        | SyncPolicy::OtherDescriptor { call } => Some(call),
        SyncPolicy::WithWrite { flag } => Some(match flag {
            WriteFlag::OpenDsync | WriteFlag::RwfDsync => SyncCall::Fdatasync,
            WriteFlag::OpenSync => SyncCall::Fsync,
        }),
        _ => None,
    }
}

/// A method and one that gives the same guarantee, but is far slower.
struct MethodPair {
    fast: usize,
    slow: usize,
    /// The least factor between them that their intervals allow.
    ratio: f64,
}

/// Rows that differ in the method alone: each that is far faster than another, with the slowest.
/// A row during which others used the disk is slow for another reason.
fn far_apart(record: &Record) -> Vec<MethodPair> {
    let known: Vec<(Measured<'_>, [f64; 2])> = single_commits(record)
        .filter(|(measured, _)| !is_disturbed(record, *measured))
        .filter_map(|(measured, commits)| {
            let rate = &commits.figures.iops;
            let interval = positive_interval(rate.value, rate.half_width_95?);
            Some((measured, interval))
        })
        .collect();
    let slowest = |(fast, m): Measured<'_>, low: f64| {
        let a = &m.data.workload;
        let pairs = known.iter().filter_map(|((slow, other), [_, high])| {
            let b = &other.data.workload;
            let are_alike = guarantee(a.sync).is_some()
                && guarantee(a.sync) == guarantee(b.sync)
                && m.data.target == other.data.target
                && a.block_bytes == b.block_bytes
                && m.data.cache.used == other.data.cache.used
                && a.write_cache == b.write_cache
                && m.data.span_start_bytes == other.data.span_start_bytes
                && m.data.span_bytes == other.data.span_bytes;
            let (slow, ratio) = (*slow, low / high.max(f64::MIN_POSITIVE));
            (are_alike && ratio >= METHODS_APART).then_some(MethodPair { fast, slow, ratio })
        });
        largest_by(pairs, |pair| pair.ratio)
    };
    let all = known.iter();
    all.filter_map(|(measured, [low, _])| slowest(*measured, *low))
        .collect()
}

fn sync_method_differs(record: &Record) -> Option<Diagnosis> {
    let pairs = far_apart(record);
    let widest = largest_by(&pairs, |pair| pair.ratio)?;
    let commits = |index: usize| &record.measurements[index].figures.ops[&OpKind::Commit].iops;
    let text = |index: usize| {
        let name = &record.measurements[index].data.workload.name;
        format!("{name} makes {}", commits(index).text())
    };
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{} and {}, a factor of {:.0} or more. Both guarantee the same, so the faster one may \
             return before the data is durable.",
            text(widest.fast),
            text(widest.slow),
            widest.ratio,
        ),
        pairs.iter().map(|pair| {
            let threshold = commits(pair.slow).value * METHODS_APART;
            let rate = commits(pair.fast).value;
            evidence(
                pair.fast,
                "figures/ops/commit/iops/value",
                rate,
                threshold,
                "1/s",
            )
        }),
    ))
}

/// Only of physical disks without moving parts: a hypervisor adds its own times.
fn slow_flush(record: &Record) -> Option<Diagnosis> {
    if record.host.hypervisor.is_some() {
        return None;
    }
    let hits = single_commits(record).filter_map(|((index, m), commits)| {
        let disks = disks(record, m);
        let is_flash = |disk: &&Layer| {
            disk.rotational == Some(false) && disk.write_cache == Some(WriteCache::WriteBack)
        };
        let width = commits.figures.iops.relative_half_width();
        let is_known = width.is_some_and(|width| width <= HALF_WIDTH_MAX);
        let mean_ns = m.op(OpKind::Sync)?.figures.latency.mean;
        let is_hit = !disks.is_empty()
            && disks.iter().all(is_flash)
            && is_known
            && !is_switched_off(m)
            && mean_ns >= SLOW_FLUSH_NS;
        is_hit.then(|| (index, mean_ns, names(&disks)))
    });
    let hits: Vec<(usize, f64, String)> = hits.collect();
    let &(first, mean_ns, _) = hits.first()?;
    let on = hits.last().map_or("", |(.., on)| on);
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "A flush of {on} takes {} on average in {}, so one session commits at most {:.0} times \
             per second. Flash with power-loss protection takes less than 0.1 ms.",
            format_latency(mean_ns as u64),
            record.measurements[first].data.workload.name,
            1e9 / mean_ns,
        ),
        hits.iter().map(|&(index, ns, _)| {
            evidence(
                index,
                "figures/ops/sync/latency/mean",
                ns,
                SLOW_FLUSH_NS,
                "ns",
            )
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, measured, process, states};
    use diskproof_model::health::DiskHealth;

    /// The record of a run on a disk with a volatile cache, whose commits came with so many
    /// flushes.
    fn volatile(flushes: u64) -> Record {
        let mut record = fixture::record();
        each_layer(&mut record, |layer| {
            layer.write_cache = Some(WriteCache::WriteBack)
        });
        for m in &mut record.measurements {
            m.data.device.flush_ops = Some(flushes);
        }
        record
    }

    fn each_layer(record: &mut Record, change: impl Fn(&mut Layer)) {
        record
            .targets
            .iter_mut()
            .flat_map(|target| &mut target.layers)
            .for_each(change);
    }

    pub(super) fn without_flushes() -> Record {
        volatile(10)
    }

    pub(super) fn with_flushes() -> Record {
        volatile(2510)
    }

    /// A disk that turns 7200 times a minute, with so many commits per second.
    pub(super) fn turning(rate: f64) -> Record {
        let mut record = fixture::record();
        record.health = vec![DiskHealth {
            disk: "sda".to_owned(),
            rotation_rpm: Some(7200),
            ..DiskHealth::default()
        }];
        set_rate(&mut record, "commit-fdatasync", rate);
        record
    }

    fn set_rate(record: &mut Record, name: &str, rate: f64) {
        let commits = measured(record, name)
            .figures
            .ops
            .get_mut(&OpKind::Commit)
            .unwrap();
        commits.iops.value = rate;
        commits.iops.half_width_95 = Some(rate / 100.0);
    }

    /// fdatasync at 300/s, and O_DSYNC at this rate.
    pub(super) fn methods(rate: f64) -> Record {
        let mut record = fixture::record();
        let mut other = measured(&mut record, "commit-fdatasync").clone();
        other.data.workload.name = "open_datasync".to_owned();
        other.data.workload.sync = SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        };
        record.measurements.push(other);
        set_rate(&mut record, "commit-fdatasync", 300.0);
        set_rate(&mut record, "open_datasync", rate);
        record
    }

    /// Commits on flash whose flushes take so long.
    pub(super) fn flash(flush_ns: f64) -> Record {
        let mut record = with_flushes();
        record.host.hypervisor = None;
        let commits = measured(&mut record, "commit-fdatasync");
        commits
            .figures
            .ops
            .get_mut(&OpKind::Sync)
            .unwrap()
            .latency
            .mean = flush_ns;
        record
    }

    #[test]
    fn missing_flushes_of_a_volatile_cache_are_a_failure() {
        let finding = flush_not_sent(&without_flushes()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["10 flushes", "sda"]);
        // A cache that needs no flush gets none, and an unknown one says nothing.
        let mut protected = without_flushes();
        for cache in [Some(WriteCache::WriteThrough), None] {
            each_layer(&mut protected, |layer| layer.write_cache = cache);
            assert_eq!(flush_not_sent(&protected), None);
        }
        // The counter of a disk without a request queue counts no flush.
        let mut uncounted = volatile(0);
        assert!(flush_not_sent(&uncounted).is_some());
        each_layer(&mut uncounted, |layer| {
            layer.name = layer.name.replace("sda", "nvme0n1")
        });
        assert_eq!(flush_not_sent(&uncounted), None);
        // A write with O_DSYNC may be a forced unit access, which is no flush.
        let mut written = without_flushes();
        for m in &mut written.measurements {
            m.data.workload.sync = SyncPolicy::WithWrite {
                flag: WriteFlag::OpenDsync,
            };
        }
        assert_eq!(flush_not_sent(&written), None);
    }

    #[test]
    fn no_disk_commits_more_often_than_it_turns() {
        let mut record = turning(500.0);
        states(&implausible_flush(&record).unwrap().claim, &["7200", "120"]);
        record.health[0].rotation_rpm = Some(0);
        assert_eq!(implausible_flush(&record), None, "flash");
    }

    #[test]
    fn no_rotating_disk_of_unknown_speed_commits_more_often_than_the_fastest_turns() {
        let unknown = |rotational: Option<bool>, hypervisor: Option<&str>, rate: f64| {
            let mut record = fixture::record();
            record.health.clear();
            record.host.hypervisor = hypervisor.map(str::to_owned);
            each_layer(&mut record, |layer| layer.rotational = rotational);
            set_rate(&mut record, "commit-fdatasync", rate);
            implausible_flush(&record)
        };
        let finding = unknown(Some(true), None, 500.0).unwrap();
        states(&finding.claim, &["15000", "250"]);
        // The fastest disk makes as many, flash makes more, and a virtual disk may be anything.
        assert_eq!(unknown(Some(true), None, 300.0), None);
        assert_eq!(unknown(Some(false), None, 500.0), None);
        assert_eq!(unknown(None, None, 500.0), None);
        assert_eq!(unknown(Some(true), Some("kvm"), 500.0), None);
    }

    #[test]
    fn methods_during_which_others_used_the_disk_are_not_compared() {
        let mut record = methods(9000.0);
        let slow = measured(&mut record, "commit-fdatasync");
        slow.data.device.read_bytes = slow.data.asked.read_bytes + (1 << 30);
        slow.data.device.others = vec![process("pg_dump", 1 << 30, 0)];
        assert_eq!(sync_method_differs(&record), None);
    }

    #[test]
    fn only_methods_with_the_same_promise_are_compared() {
        let last = |change: &dyn Fn(&mut Row)| {
            let mut record = methods(9000.0);
            change(record.measurements.last_mut().unwrap());
            sync_method_differs(&record)
        };
        let finding = last(&|_| ()).unwrap();
        states(&finding.claim, &["open_datasync makes 9000/s", "29"]);
        let changes: [fn(&mut Row); 4] = [
            |m| {
                m.data.workload.sync = SyncPolicy::WithWrite {
                    flag: WriteFlag::OpenSync,
                }
            },
            |m| m.data.workload.block_bytes = 65536,
            |m| m.data.cache.used = CachePolicy::Cached,
            |m| m.data.workload.depth = 16,
        ];
        for (row, change) in changes.iter().enumerate() {
            assert_eq!(last(change), None, "{row}");
        }
        // 9000/s against 300/s ± 1 %: the ends of the intervals decide.
        for (half_width, expected) in [(4500.0, true), (90_000.0, false)] {
            let found = last(&|m| {
                let commits = m.figures.ops.get_mut(&OpKind::Commit).unwrap();
                commits.iops.half_width_95 = Some(half_width);
            });
            assert_eq!(found.is_some(), expected, "{half_width}");
        }
    }

    #[test]
    fn slow_flushes_of_physical_flash_are_a_note() {
        let finding = slow_flush(&flash(1_600_000.0)).unwrap();
        states(&finding.claim, &["1.60 ms"]);
        assert_eq!(finding.severity, Severity::Note);
        let mut others = [flash(1_600_000.0), flash(1_600_000.0)];
        others[0].host.hypervisor = Some("kvm".to_owned());
        each_layer(&mut others[1], |layer| layer.rotational = Some(true));
        assert!(others.iter().all(|record| slow_flush(record).is_none()));
    }
}
