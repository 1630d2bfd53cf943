//! `disturbed`: others used the disk meanwhile. Journals, copy-on-write and redundancy write more
//! than was asked without anybody's help, so bytes written count only where a process is seen that
//! wrote them; bytes read count by themselves.

use super::evidence::{Measured, SURVEY, heaviest, places, real, together, workload_name};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use diskproof_model::digits::rounded;
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::measurement::{ByteCount, DeviceUse, OtherProcess};
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;
use diskproof_model::target::{LayerKind, TargetIdentity};
use diskproof_model::units::{format_bytes, format_percent};
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "disturbed",
    title: "Other programs used the disk",
    meaning: "Other processes used the disk during the measurement, so the figures show less than \
              the disk can do.",
    taints: Some(Taint {
        from: Severity::Note,
        why: "other programs used the disk during",
    }),
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Smallest share of the bytes requested that counts as a disturbance.
const SHARE_MIN: f64 = 0.05;
/// From this share on the figures may be wrong by more than their error bars.
const SHARE_WARNING: f64 = 0.1;
/// From this share on a factor reads better than percents.
const TIMES_MIN: f64 = 10.0;
/// Fewer bytes than this are the background of any machine.
const EXCESS_BYTES_MIN: u64 = 1 << 20;
/// Filesystems that write whole trees anew, and read them for that.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];
/// Kernel threads that move other processes' data, ours among it.
const KERNEL_WORKERS: [&str; 12] = [
    "jbd2/", "kworker/", "xfs", "btrfs-", "loop", "flush-", "dmcrypt", "kcryptd", "md", "txg_sync",
    "z_", "iou-wrk-",
];
/// The kernel thread that writes the inode tables of a new ext4 filesystem.
const INITIALISER: &str = "ext4lazyinit";
/// Where all other disks together moved at most this share of what the processes did, the processes
/// used this disk.
const ELSEWHERE_SHARE_MAX: f64 = 0.1;
/// Processes that are named; the busiest.
const NAMED_MAX: usize = 3;

/// What was requested from a target's disks and what they did: of a workload or of the survey.
pub(super) struct Traffic<'a> {
    index: Option<usize>,
    name: String,
    target: &'a TargetIdentity,
    /// Smallest request, in bytes.
    block_bytes: u32,
    /// What the disks may have read on top because small requests are rounded up, in bytes.
    rounded_bytes: u64,
    cache: CachePolicy,
    asked: ByteCount,
    device: &'a DeviceUse,
}

impl<'a> Traffic<'a> {
    /// Of a workload, with the workloads that ran at the same time.
    pub(super) fn of_workload(record: &'a Record, (index, m): Measured<'a>) -> Option<Self> {
        Some(Self {
            index: Some(index),
            name: workload_name(record, m),
            target: record.targets.get(m.target)?,
            block_bytes: together(record, m).map(|m| m.workload.block_bytes).min()?,
            rounded_bytes: 0,
            // What one of them reads ahead, the disk reads for all of them.
            cache: together(record, m)
                .map(|m| m.workload.cache)
                .find(|cache| *cache != CachePolicy::Direct)
                .unwrap_or(m.workload.cache),
            asked: m.asked,
            device: &m.device,
        })
    }

    /// The accesses are too few and too small for their rounding to hide the rest.
    fn of_survey(record: &'a Record) -> Option<Self> {
        let surface = record.surface.as_ref()?;
        let target = record.targets.get(surface.target)?;
        let sector_bytes = target
            .layers
            .iter()
            .filter_map(|layer| layer.physical_block_bytes)
            .max()
            .unwrap_or(0);
        Some(Self {
            index: None,
            name: SURVEY.to_owned(),
            target,
            block_bytes: u32::MAX,
            rounded_bytes: record.access.len() as u64 * u64::from(sector_bytes),
            cache: surface.cache,
            asked: surface.asked,
            device: &surface.device,
        })
    }

    fn path(&self) -> String {
        self.index.map_or("/surface/device".to_owned(), |index| {
            format!("/measurements/{index}/device")
        })
    }
}

struct Disturbance<'a> {
    counted: Traffic<'a>,
    /// What others did more of: read or wrote.
    did: &'static str,
    excess: u64,
    share: f64,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let measured = real(record).filter_map(|measured| Traffic::of_workload(record, measured));
    let hits: Vec<Disturbance> = measured
        .chain(Traffic::of_survey(record))
        .filter_map(hit)
        .collect();
    let worst = hits.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    let severity = |hit: &Disturbance| {
        if hit.share >= SHARE_WARNING {
            Severity::Warning
        } else {
            Severity::Note
        }
    };
    let initialises = hits.iter().any(|hit| is_initialised(&hit.counted));
    Some(Diagnosis {
        severity: heaviest(hits.iter().map(severity)),
        claim: format!(
            "Other programs used the disk during {}: in {} the disk {} {} more than requested \
             ({}). {}{}",
            places(record, hits.iter().map(|h| h.counted.index)),
            worst.counted.name,
            worst.did,
            format_bytes(worst.excess),
            share_text(worst.share),
            match initialises {
                true => {
                    "The kernel is still writing the inode tables of a new ext4 filesystem \
                     (ext4lazyinit). "
                }
                false => "",
            },
            culprits(record, &hits)
        ),
        evidence: hits.iter().map(|h| h.evidence.clone()).collect(),
        remedy: match initialises {
            true => {
                "Measure again after the thread ext4lazyinit has ended (ps -C ext4lazyinit), or \
                 make the filesystem with mkfs.ext4 -E lazy_itable_init=0."
            }
            false => {
                "Stop the other processes, or measure when they are idle. The figures show what \
                 they left of the disk's performance."
            }
        }
        .to_owned(),
        reproduce: None,
    })
}

/// `38 %`, `27 times as much`.
fn share_text(share: f64) -> String {
    if share < TIMES_MIN {
        format_percent(share)
    } else {
        format!("{} times as much", rounded(share, None))
    }
}

/// Bytes that the disks moved in addition to those requested.
pub(super) struct Excess {
    /// Read.
    pub reads: u64,
    /// Written.
    pub writes: u64,
}

/// The excess of the disks: what other processes moved, where that is seen, and the rest; `None`
/// where nothing was counted.
fn shares_of(counted: &Traffic<'_>) -> Option<(Excess, Excess)> {
    let Traffic {
        target,
        asked,
        device,
        ..
    } = counted;
    if device.unresolved.is_some() || device.accounted.is_none() {
        return None;
    }
    let named = |bytes: fn(&OtherProcess) -> u64| {
        device
            .others
            .iter()
            .filter(|p| !is_kernel_worker(&p.name))
            .map(bytes)
            .sum::<u64>()
    };
    let reads = device
        .read_bytes
        .saturating_sub(asked.read_bytes + counted.rounded_bytes);
    let writes = device.write_bytes.saturating_sub(asked.write_bytes);
    // The bytes of a process count as far as the disk shows an excess. Where the disk shows less
    // than half of them, the process worked mostly on another disk.
    let shown = |excess: u64, named: u64| {
        if excess >= named / 2 {
            excess.min(named)
        } else {
            0
        }
    };
    let read_by_others = if reads_only_what_is_asked(counted) {
        reads
    } else {
        shown(reads, named(|p| p.read_bytes))
    };
    let initialises = is_initialised(counted);
    let is_by_others = asked.write_bytes == 0 && !multiplies_writes(target);
    let written_by_others = if initialises || is_by_others {
        writes
    } else {
        shown(writes, named(|p| p.write_bytes))
    };
    let rest = Excess {
        reads: reads - read_by_others,
        writes: writes - written_by_others,
    };
    Some((
        Excess {
            reads: read_by_others,
            writes: written_by_others,
        },
        rest,
    ))
}

/// Whether the kernel may be writing the inode tables of the filesystem.
fn is_initialised(counted: &Traffic<'_>) -> bool {
    let filesystem = counted.target.filesystem.as_ref();
    filesystem.is_some_and(|f| f.kind == "ext4")
        && counted.device.others.iter().any(|p| p.name == INITIALISER)
}

/// The excess that no other process is seen to cause; `None` where nothing was counted.
pub(super) fn excess_of(counted: &Traffic<'_>) -> Option<Excess> {
    shares_of(counted).map(|(_, rest)| rest)
}

/// Whether others used so much of the disk during a workload that its figure may be wrong by more
/// than its error bars.
pub(super) fn is_disturbed(record: &Record, measured: Measured<'_>) -> bool {
    let hit = Traffic::of_workload(record, measured).and_then(hit);
    hit.is_some_and(|hit| hit.share >= SHARE_WARNING)
}

fn hit(counted: Traffic<'_>) -> Option<Disturbance<'_>> {
    let Traffic { asked, device, .. } = counted;
    let (
        Excess {
            reads: read_by_others,
            writes: written_by_others,
        },
        _,
    ) = shares_of(&counted)?;
    let is_real = |excess: u64| {
        excess >= EXCESS_BYTES_MIN && excess as f64 >= SHARE_MIN * asked.with_trims() as f64
    };
    let (did, place, all, ours, excess) = if read_by_others >= written_by_others {
        (
            "read",
            "read_bytes",
            device.read_bytes,
            asked.read_bytes,
            read_by_others,
        )
    } else {
        (
            "wrote",
            "write_bytes",
            device.write_bytes,
            asked.write_bytes,
            written_by_others,
        )
    };
    let threshold =
        ours as f64 + (SHARE_MIN * asked.with_trims() as f64).max(EXCESS_BYTES_MIN as f64);
    let evidence = Evidence {
        path: format!("{}/{place}", counted.path()),
        observed: all as f64,
        threshold,
        unit: "B".to_owned(),
    };
    is_real(excess).then(|| Disturbance {
        did,
        excess,
        share: excess as f64 / asked.with_trims().max(1) as f64,
        evidence,
        counted,
    })
}

/// Whether every read at the disks is ours or another process's: no read-ahead, no small block
/// rounded up to a large one, no old data read because new data changes its parity or its tree.
fn reads_only_what_is_asked(counted: &Traffic<'_>) -> bool {
    let target = counted.target;
    let rounds_up = |block: Option<u32>| block.is_some_and(|b| counted.block_bytes < b);
    let rounded = target
        .layers
        .iter()
        .any(|l| rounds_up(l.logical_block_bytes) || rounds_up(l.physical_block_bytes));
    let buffered = counted.cache != CachePolicy::Direct || target.has_buffered_loop();
    let rewrites = counted.asked.write_bytes > 0 && multiplies_writes(target);
    !rounded && !buffered && !rewrites
}

/// Whether one byte written may become several at the disks.
fn multiplies_writes(target: &TargetIdentity) -> bool {
    let copy_on_write = target
        .filesystem
        .as_ref()
        .is_some_and(|f| COPY_ON_WRITE.contains(&f.kind.as_str()));
    copy_on_write || target.layers.iter().any(|l| l.kind == LayerKind::Md)
}

/// A name of the table, with nothing or a number or the rest of a kernel thread's name behind it.
fn is_kernel_worker(name: &str) -> bool {
    let continues = |rest: &str| {
        rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || "/-_".contains(c))
    };
    KERNEL_WORKERS.iter().any(|start| {
        name.strip_prefix(start)
            .is_some_and(|rest| start.ends_with(['/', '-', '_']) || continues(rest))
    })
}

/// The processes that caused it, as far as the kernel shows.
fn culprits(record: &Record, hits: &[Disturbance<'_>]) -> String {
    let mut processes: BTreeMap<(u32, &str), Culprit> = BTreeMap::new();
    // Workloads that ran together were counted once, for all of them.
    let same = |a: &Disturbance<'_>, b: &Disturbance<'_>| {
        a.counted.target == b.counted.target && a.counted.device == b.counted.device
    };
    let hits = hits
        .iter()
        .enumerate()
        .filter(|(index, hit)| !hits[..*index].iter().any(|before| same(before, hit)));
    let hits: Vec<&Disturbance<'_>> = hits.map(|(_, hit)| hit).collect();
    for other in hits
        .iter()
        .flat_map(|h| &h.counted.device.others)
        .filter(|p| !is_kernel_worker(&p.name))
    {
        let culprit = processes.entry((other.pid, &other.name)).or_default();
        culprit.read_bytes += other.read_bytes;
        culprit.write_bytes += other.write_bytes;
        culprit.ended |= other.ended;
    }
    let mut processes: Vec<_> = processes
        .into_iter()
        .filter(|(_, culprit)| culprit.bytes() >= EXCESS_BYTES_MIN)
        .collect();
    processes.sort_by_key(|(_, culprit)| std::cmp::Reverse(culprit.bytes()));
    let names: Vec<String> = processes
        .iter()
        .take(NAMED_MAX)
        .map(|((pid, name), culprit)| describe(*pid, name, culprit))
        .collect();
    let hidden = hits
        .iter()
        .map(|h| h.counted.device.others_hidden)
        .max()
        .unwrap_or(0);
    // Even root cannot look into a few processes of a container's host.
    let hidden = if record.host.uid == 0 { 0 } else { hidden };
    let named: u64 = processes.iter().map(|(_, culprit)| culprit.bytes()).sum();
    let scope = match elsewhere(&hits) {
        Some(bytes) if bytes as f64 <= ELSEWHERE_SHARE_MAX * named as f64 => "on this disk",
        _ => "on any disk (the kernel does not report which)",
    };
    let seen_exits = hits.iter().all(|h| h.counted.device.exits_reported);
    let missing = if seen_exits {
        ""
    } else {
        " Processes that have ended are visible only to root."
    };
    match (names.is_empty(), hidden) {
        (false, _) => format!("Busiest {scope}: {}.{missing}", names.join(", ")),
        (true, 0) => format!(
            "No process accounts for these bytes; the kernel itself may be the cause (RAID resync, \
             trim, swap).{missing}"
        ),
        (true, 1) => "One process of another user is hidden. Run as root to see it.".to_owned(),
        (true, n) => format!("{n} processes of other users are hidden. Run as root to see them."),
    }
}

/// Bytes that other disks moved meanwhile; `None` where that was not counted.
fn elsewhere(hits: &[&Disturbance<'_>]) -> Option<u64> {
    hits.iter().map(|h| h.counted.device.elsewhere_bytes).sum()
}

/// What a process moved while the disk was disturbed.
#[derive(Default)]
struct Culprit {
    read_bytes: u64,
    write_bytes: u64,
    ended: bool,
}

impl Culprit {
    fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes
    }
}

fn describe(pid: u32, name: &str, culprit: &Culprit) -> String {
    let parts = [("read", culprit.read_bytes), ("wrote", culprit.write_bytes)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|p| p.1 > 0)
        .map(|(verb, bytes)| format!("{verb} {}", format_bytes(*bytes)))
        .collect();
    let ended = if culprit.ended { ", ended" } else { "" };
    format!("{name} (pid {pid}{ended}) {}", parts.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::measurement::Measurement;

    fn process(name: &str, read_bytes: u64, write_bytes: u64) -> OtherProcess {
        OtherProcess {
            pid: 812,
            name: name.to_owned(),
            read_bytes,
            write_bytes,
            ended: false,
        }
    }

    pub(super) fn fires() -> Record {
        let mut run = fixture::run();
        // 80 MiB requested; another process reads 16 MiB.
        run.1[2].device.read_bytes += 16 << 20;
        run.1[2].device.others = vec![process("pg_dump", 16 << 20, 0), process("systemd", 4096, 0)];
        // Another process writes during our writes.
        run.1[4].device.write_bytes += 100 << 20;
        run.1[4].device.others = vec![process("pg_dump", 0, 100 << 20)];
        fixture::judge(run)
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| {
            (m.cache.used, m.device.read_bytes) = (CachePolicy::Buffered, m.asked.read_bytes * 2)
        })
    }

    #[test]
    fn initialisation_of_a_new_ext4_is_named() {
        let with = |filesystem: &str| {
            let mut run = fixture::run();
            run.1[2].device.write_bytes += 16 << 20;
            run.1[2].device.others = vec![process(INITIALISER, 0, 0)];
            run.0.targets[0].filesystem.as_mut().unwrap().kind = filesystem.to_owned();
            check(&fixture::judge(run)).unwrap()
        };
        let found = with("ext4");
        assert!(
            found.claim.contains("a new ext4 filesystem"),
            "{}",
            found.claim
        );
        assert!(found.remedy.contains("lazy_itable_init=0"));
        assert!(!with("xfs").claim.contains("ext4"));
    }

    #[test]
    fn others_are_named_with_what_they_did() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 2)
        );
        assert!(
            finding
                .claim
                .contains("pg_dump (pid 812) read 16 MiB and wrote 100 MiB."),
            "{}",
            finding.claim
        );
        assert!(!finding.claim.contains("systemd"), "{}", finding.claim);
    }

    #[test]
    fn workloads_that_ran_together_do_not_disturb_each_other() {
        let (reads, scan) = ("random-read-d1", "sequential-read");
        let record = |change: fn(&mut Measurement)| {
            let mut run = fixture::together(&[reads, scan]);
            run.1
                .iter_mut()
                .filter(|m| [reads, scan].contains(&m.workload.name.as_str()))
                .for_each(change);
            fixture::judge(run)
        };
        assert_eq!(check(&record(|_| {})), None);
        let read_ahead = |m: &mut Measurement| {
            m.device.read_bytes += m.asked.read_bytes / 2;
            if m.workload.name == "sequential-read" {
                m.cache.used = CachePolicy::Buffered;
            }
        };
        assert_eq!(
            check(&record(read_ahead)),
            None,
            "what one of them reads ahead"
        );
        let busy = check(&record(|m| {
            m.device.read_bytes += m.asked.read_bytes / 2;
            m.device.others = vec![process("pg_dump", 16 << 20, 0)];
        }));
        let claim = busy.unwrap().claim;
        assert!(
            claim.contains("2 of 8 workloads") && claim.contains("pg_dump (pid 812) read 16 MiB."),
            "{claim}"
        );
    }

    #[test]
    fn hidden_processes_are_a_matter_of_rights() {
        let record = fixture::faulty("random-read-d1", |m| {
            m.device.read_bytes += 8 << 20;
            m.device.others_hidden = 40;
        });
        assert!(
            check(&record)
                .unwrap()
                .claim
                .contains("40 processes of other users are hidden. Run as root")
        );
        let mut as_root = record;
        as_root.host.uid = 0;
        assert!(
            check(&as_root)
                .unwrap()
                .claim
                .contains("No process accounts for these bytes"),
            "root is not told to become root"
        );
    }

    #[test]
    fn processes_are_on_this_disk_where_no_other_disk_moved_as_much() {
        let claim = |elsewhere_bytes: Option<u64>, exits_reported: bool| {
            let record = fixture::faulty("random-read-d1", |m| {
                m.device.read_bytes += 16 << 20;
                let mut cron = process("tar", 16 << 20, 0);
                cron.ended = true;
                m.device.others = vec![cron];
                (m.device.elsewhere_bytes, m.device.exits_reported) =
                    (elsewhere_bytes, exits_reported);
            });
            check(&record).unwrap().claim
        };
        let known = claim(Some(1 << 20), true);
        assert!(
            known.ends_with("Busiest on this disk: tar (pid 812, ended) read 16 MiB."),
            "{known}"
        );
        for unknown in [claim(Some(16 << 20), true), claim(None, true)] {
            assert!(
                unknown.contains("Busiest on any disk (the kernel does not report"),
                "{unknown}"
            );
        }
        let unseen = claim(Some(0), false);
        assert!(
            unseen.ends_with("Processes that have ended are visible only to root."),
            "{unseen}"
        );
    }

    #[test]
    fn processes_during_a_survey_are_named() {
        let surveyed = |change: fn(&mut diskproof_model::surface::SurfaceMeasurement)| {
            let mut run = SurveyedDisk::rotating().run(1);
            change(&mut run.1);
            check(&surveyed::judge(run))
        };
        let finding = surveyed(|s| {
            s.device.read_bytes += s.asked.read_bytes / 5;
            s.device.others = vec![process("pg_dump", s.asked.read_bytes / 5, 0)];
        });
        let finding = finding.unwrap();
        assert!(
            finding.claim.starts_with(
                "Other programs used the disk during the survey: in the survey the disk read 1."
            ),
            "{}",
            finding.claim
        );
        assert!(
            finding
                .claim
                .contains("(20 %). Busiest on any disk (the kernel does not report"),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence[0].path, "/surface/device/read_bytes");
        let rounded = surveyed(|s| {
            s.asked.read_bytes = s.access.len() as u64 * 512;
            s.device.read_bytes = s.access.len() as u64 * 4096;
        });
        assert_eq!((rounded, surveyed(|_| {})), (None, None));
    }

    #[test]
    fn journals_redundancy_read_ahead_and_other_disks_are_not_reported() {
        let change: [fn(&mut Measurement); 4] = [
            // A journal and a mirror.
            |m| {
                m.device.write_bytes =
                    m.asked.write_bytes * 4 + if m.asked.write_bytes > 0 { 1 << 30 } else { 0 }
            },
            // Read-ahead.
            |m| {
                (m.cache.used, m.device.read_bytes) =
                    (CachePolicy::Buffered, m.asked.read_bytes * 2)
            },
            // A busy process on another disk.
            |m| m.device.others = vec![process("pg_dump", 1 << 40, 1 << 30)],
            // Our own data, written by the kernel for us; and little.
            |m| {
                m.device.write_bytes += if m.asked.write_bytes > 0 {
                    1 << 30
                } else {
                    1 << 19
                };
                m.device.others = vec![
                    process("jbd2/sda1-8", 0, 1 << 30),
                    process("kworker/u4:1", 0, 1 << 30),
                    process("loop0", 0, 1 << 30),
                ];
            },
        ];
        for (i, change) in change.into_iter().enumerate() {
            assert_eq!(check(&fixture::all_faulty(change)), None, "{i}");
        }
        assert!(
            !is_kernel_worker("mdadm")
                && is_kernel_worker("md0_raid5")
                && !is_kernel_worker("xfsdump")
                && is_kernel_worker("xfs-conv/sda")
        );
    }
}
