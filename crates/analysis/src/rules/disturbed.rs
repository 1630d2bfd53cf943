//! `disturbed`: other programs used the disk during the measurement. `traffic` decides which bytes
//! are theirs; this rule decides whether they are too many, and names the processes.

use super::rule::*;
use super::traffic::{Direction, Traffic};
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OtherProcess;
use std::collections::BTreeMap;

pub(super) const RULE: Rule = Rule {
    code: "disturbed",
    title: "Other programs used the disk",
    summary: "Other processes used the disk during the measurement, so the figures show less than \
              the disk can do.",
    remedy: Remedy::Always(
        "Stop the other processes, or measure when they are idle. The figures show what they left \
         of the disk's performance.",
    ),
    check: Check::Run(check),
    says: Meaning::OtherLoad {
        used: SharedResource::Disk,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Smallest share of the bytes requested that counts as a disturbance: less changes a figure by
/// less than what `imprecise` remarks on.
const SHARE_MIN: f64 = 0.05;

/// From this share on the figures may be wrong by more than their error bars. Chosen, not measured.
const SHARE_WARNING: f64 = 0.1;

/// From this share on a factor reads better than percents.
const TIMES_MIN: f64 = 10.0;

/// Fewer bytes than this are the background of any machine: logs, and metadata of the filesystem.
/// Chosen, not measured.
const EXCESS_BYTES_MIN: u64 = 1 << 20;

/// Where all other disks together moved at most this share of what the processes did, the processes
/// used this disk. Chosen, not measured.
const ELSEWHERE_SHARE_MAX: f64 = 0.1;

/// The claim names so many processes, the busiest: to stop these is what a reader tries first.
const NAMED_MAX: usize = 3;

/// A workload or survey during which others moved too much.
struct Disturbance<'a> {
    traffic: Traffic<'a>,
    /// The direction in which others moved more.
    direction: Direction,
    /// The bytes that they moved, in this direction.
    excess_bytes: u64,
    /// The same over all bytes that were requested; infinite where none were.
    share: f64,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<Disturbance<'_>> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(workload_disturbance(record, measured));
    }
    if let Some(traffic) = Traffic::from_survey(record) {
        hits.extend(disturbance(traffic));
    }
    let worst = largest_by(&hits, |hit| hit.share)?;
    Some(Diagnosis::new(
        warning_if(worst.share >= SHARE_WARNING),
        format!(
            "Other programs used the disk during {}: in {} the disk {} {} more than requested \
             ({}). {}",
            places(record, hits.iter().map(|hit| hit.traffic.index)),
            worst.traffic.name,
            worst.direction.past_tense(),
            format_bytes(worst.excess_bytes),
            share_text(worst.share),
            culprits(record, &hits)
        ),
        hits.iter().map(|hit| hit.evidence.clone()),
    ))
}

/// `38 %`, `27 times all that was requested`.
fn share_text(share: f64) -> String {
    if share < TIMES_MIN {
        format_percent(share)
    } else if share.is_finite() {
        format!("{} times all that was requested", rounded(share, None))
    } else {
        "nothing was requested".to_owned()
    }
}

/// True if others used so much of the disk during a workload that its figure may be wrong by more
/// than its error bars.
pub(super) fn is_disturbed(record: &Record, measured: Measured<'_>) -> bool {
    match workload_disturbance(record, measured) {
        Some(hit) => hit.share >= SHARE_WARNING,
        None => false,
    }
}

/// The disturbance of a workload by others; `None` where it was too small, or was not counted.
fn workload_disturbance<'a>(record: &'a Record, measured: Measured<'a>) -> Option<Disturbance<'a>> {
    disturbance(Traffic::from_workload(record, measured)?)
}

fn disturbance(traffic: Traffic<'_>) -> Option<Disturbance<'_>> {
    let foreign = traffic.excess()?.foreign;
    let asked_bytes = traffic.asked.moved_or_trimmed();
    let excess_bytes = foreign.reads.max(foreign.writes);
    let excess_min = (SHARE_MIN * asked_bytes as f64).max(EXCESS_BYTES_MIN as f64);
    if (excess_bytes as f64) < excess_min {
        return None;
    }
    let direction = if foreign.reads >= foreign.writes {
        Direction::Read
    } else {
        Direction::Write
    };
    Some(Disturbance {
        direction,
        excess_bytes,
        share: excess_bytes as f64 / asked_bytes as f64,
        evidence: excess_evidence(&traffic, direction, excess_min),
        traffic,
    })
}

/// The counter of the disks that shows the excess. Its threshold is what was requested and the
/// least excess.
fn excess_evidence(traffic: &Traffic<'_>, direction: Direction, excess_min: f64) -> Evidence {
    let device = traffic.device;
    let asked = traffic.asked;
    let (moved_bytes, asked_bytes) = match direction {
        Direction::Read => (device.read_bytes, asked.read_bytes),
        Direction::Write => (device.write_bytes, asked.write_bytes),
    };
    let path = format!("{}/{}", traffic.path(), direction.counter());
    evidence_at(
        path,
        moved_bytes as f64,
        asked_bytes as f64 + excess_min,
        "B",
    )
}

/// The processes that caused it, as far as the kernel shows.
fn culprits(record: &Record, hits: &[Disturbance<'_>]) -> String {
    let counted_once = counted_once(hits);
    let processes = busiest_processes(&counted_once);
    if processes.is_empty() {
        return no_culprits(record, &counted_once);
    }
    let names: Vec<String> = processes
        .iter()
        .take(NAMED_MAX)
        .map(describe_process)
        .collect();
    let by_processes_bytes: u64 = processes.iter().map(moved_bytes).sum();
    let elsewhere_bytes: Option<u64> = counted_once
        .iter()
        .map(|traffic| traffic.device.elsewhere_bytes)
        .sum();
    let place = match elsewhere_bytes {
        Some(bytes) if bytes as f64 <= ELSEWHERE_SHARE_MAX * by_processes_bytes as f64 => {
            "on this disk"
        }
        _ => "on any disk (the kernel does not report which)",
    };
    format!(
        "Busiest {place}: {}.{}",
        names.join(", "),
        ended_text(&counted_once)
    )
}

/// The traffic without that of workloads that ran together with an earlier one, which were counted
/// once for all of them.
fn counted_once<'a>(hits: &'a [Disturbance<'a>]) -> Vec<&'a Traffic<'a>> {
    let mut distinct: Vec<&Traffic<'_>> = Vec::new();
    for hit in hits {
        let traffic = &hit.traffic;
        let is_counted = distinct
            .iter()
            .any(|other| other.target == traffic.target && other.device == traffic.device);
        if !is_counted {
            distinct.push(traffic);
        }
    }
    distinct
}

/// The bytes that each process moved, the busiest first. The background of any machine is left out.
fn busiest_processes(counted: &[&Traffic<'_>]) -> Vec<OtherProcess> {
    let mut sums: BTreeMap<(u32, &str), OtherProcess> = BTreeMap::new();
    for process in counted.iter().flat_map(|traffic| &traffic.device.others) {
        sums.entry((process.pid, &process.name))
            .and_modify(|sum| {
                sum.read_bytes += process.read_bytes;
                sum.write_bytes += process.write_bytes;
                sum.ended |= process.ended;
            })
            .or_insert_with(|| process.clone());
    }
    let mut processes: Vec<OtherProcess> = sums.into_values().collect();
    processes.retain(|process| moved_bytes(process) >= EXCESS_BYTES_MIN);
    processes.sort_by_key(|process| std::cmp::Reverse(moved_bytes(process)));
    processes
}

fn moved_bytes(process: &OtherProcess) -> u64 {
    process.read_bytes + process.write_bytes
}

/// Why no process is named.
fn no_culprits(record: &Record, counted: &[&Traffic<'_>]) -> String {
    let mut hidden = 0;
    // Even root cannot look into a few processes of a container's host.
    if record.host.uid != 0 {
        for traffic in counted {
            hidden = hidden.max(traffic.device.others_hidden);
        }
    }
    match hidden {
        0 => format!(
            "No process accounts for these bytes; the kernel itself may be the cause (RAID resync, \
             trim, swap).{}",
            ended_text(counted)
        ),
        1 => "One process of another user is hidden. Run as root to see it.".to_owned(),
        n => format!("{n} processes of other users are hidden. Run as root to see them."),
    }
}

/// Where the kernel did not report the processes that ended, a sentence on them.
fn ended_text(counted: &[&Traffic<'_>]) -> &'static str {
    if counted.iter().all(|traffic| traffic.device.exits_reported) {
        ""
    } else {
        " Processes that have ended are visible only to root, on Linux 5.19 or later."
    }
}

/// The bytes that a process moved while the disk was disturbed.
fn describe_process(process: &OtherProcess) -> String {
    let mut parts = Vec::new();
    if process.read_bytes > 0 {
        parts.push(format!("read {}", format_bytes(process.read_bytes)));
    }
    if process.write_bytes > 0 {
        parts.push(format!("wrote {}", format_bytes(process.write_bytes)));
    }
    let ended = if process.ended { ", ended" } else { "" };
    format!(
        "{} (pid {}{ended}) {}",
        process.name,
        process.pid,
        parts.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, codes};
    use crate::fixture::{self, process, states};
    use diskproof_model::measurement::{Measurement, OtherProcess};
    use diskproof_model::surface::SurfaceMeasurement;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::changed(|run| {
                // 80 MiB requested; another process reads 16 MiB.
                run.measurements[2].device.read_bytes += 16 << 20;
                run.measurements[2].device.others =
                    vec![process("pg_dump", 16 << 20, 0), process("systemd", 4096, 0)];
                // Another process writes during our writes.
                run.measurements[4].device.write_bytes += 100 << 20;
                run.measurements[4].device.others = vec![process("pg_dump", 0, 100 << 20)];
            })
        },
        || fixture::all_faulty(read_ahead),
    )
    .and_fires_on(&[|| by_tar(Some(1 << 20), true), || by_tar(Some(0), false)]);

    /// A process that has ended read as much as the disk, while another disk moved so much.
    fn by_tar(elsewhere_bytes: Option<u64>, exits_reported: bool) -> Record {
        fixture::faulty("random-read-d1", |measurement| {
            measurement.device.read_bytes += 16 << 20;
            measurement.device.others = vec![OtherProcess {
                ended: true,
                ..process("tar", 16 << 20, 0)
            }];
            (
                measurement.device.elsewhere_bytes,
                measurement.device.exits_reported,
            ) = (elsewhere_bytes, exits_reported);
        })
    }

    fn read_ahead(measurement: &mut Measurement) {
        (measurement.cache.used, measurement.device.read_bytes) =
            (CachePolicy::Buffered, measurement.asked.read_bytes * 2);
    }

    /// Whether others are blamed in a run on a filesystem of this kind and size, whose workload
    /// with this index had its counters changed.
    fn blamed(
        filesystem: &str,
        size_bytes: u64,
        workload: usize,
        change: impl FnOnce(&mut Measurement),
    ) -> Option<Diagnosis> {
        check(&fixture::changed(|run| {
            let at = run.facts.targets[0].filesystem.as_mut().unwrap();
            (at.kind, at.size_bytes) = (filesystem.to_owned(), size_bytes);
            change(&mut run.measurements[workload]);
        }))
    }

    /// How many workloads are blamed on others, with this process and so many bytes written.
    fn blamed_workloads(filesystem: &str, other: OtherProcess, during_reads: u64) -> Option<usize> {
        let record = fixture::changed(|run| {
            let at = run.facts.targets[0].filesystem.as_mut().unwrap();
            (at.kind, at.size_bytes) = (filesystem.to_owned(), 4 << 30);
            // Inode tables during reads, and the journal of commits.
            run.measurements[2].device.write_bytes += during_reads;
            run.measurements[7].device.write_bytes += run.measurements[7].asked.write_bytes * 3;
            run.measurements
                .iter_mut()
                .for_each(|measurement| measurement.device.others = vec![other.clone()]);
        });
        check(&record).map(|finding| finding.evidence.len())
    }

    fn initialiser() -> OtherProcess {
        process("ext4lazyinit", 0, 0)
    }

    #[test]
    fn thread_without_bytes_is_no_culprit() {
        for filesystem in ["ext4", "xfs"] {
            assert_eq!(blamed_workloads(filesystem, initialiser(), 16 << 20), None);
            // More than the inode tables have.
            assert_eq!(
                blamed_workloads(filesystem, initialiser(), 100 << 20),
                Some(1)
            );
            assert_eq!(
                blamed_workloads(filesystem, process("dd", 0, 16 << 20), 16 << 20),
                Some(2)
            );
        }
    }

    /// Of a run on btrfs while compilers used another disk, and with one that wrote here.
    #[test]
    fn metadata_of_own_syncs_is_not_laid_on_a_process_of_another_disk() {
        for (filesystem, elsewhere, expected, why) in [
            ("btrfs", 290 << 20, false, "bytes of another disk"),
            ("btrfs", 0, false, "explained by 2500 syncs"),
            ("ext4", 290 << 20, false, "bytes of another disk"),
            ("ext4", 10 << 20, true, "of this disk"),
        ] {
            let diagnosis = blamed(filesystem, 1 << 40, 7, |measurement| {
                measurement.device.write_bytes = measurement.asked.write_bytes + (298 << 20);
                measurement.device.others = vec![process("rustc", 0, 300 << 20)];
                measurement.device.elsewhere_bytes = Some(elsewhere);
            });
            assert_eq!(diagnosis.is_some(), expected, "{filesystem}: {why}");
        }
    }

    /// A loop device over a file on the first layer, in a filesystem of this kind.
    fn put_loop_above(layers: &mut Vec<Layer>, filesystem: Option<&str>) {
        let mut image = layers[0].clone();
        (image.name, image.kind) = ("loop0".to_owned(), LayerKind::Loop);
        image.below = vec![layers[0].name.clone()];
        image.backing_filesystem = filesystem.map(str::to_owned);
        layers.insert(0, image);
    }

    /// As measured with a loop device over a file on btrfs, while compilers used another disk.
    #[test]
    fn trees_of_the_filesystem_below_a_loop_device_are_not_of_others() {
        for (below, expected) in [(Some("btrfs"), false), (Some("ext4"), true), (None, true)] {
            let record = fixture::changed(|run| {
                put_loop_above(&mut run.facts.targets[0].layers, below);
                let measurement = &mut run.measurements[7];
                measurement.device.write_bytes = measurement.asked.write_bytes + (298 << 20);
                measurement.device.others = vec![process("rustc", 0, 300 << 20)];
            });
            assert_eq!(check(&record).is_some(), expected, "{below:?}");
        }
    }

    /// A loop device on a disk of 256 GiB, with a filesystem of this size.
    fn over_large_disk(
        size_bytes: u64,
        workload: usize,
        others: Vec<OtherProcess>,
        change: impl FnOnce(&mut Measurement),
    ) -> bool {
        let record = fixture::changed(|run| {
            let target = &mut run.facts.targets[0];
            target.filesystem.as_mut().unwrap().size_bytes = size_bytes;
            target.layers[0].size_bytes = 256 << 30;
            put_loop_above(&mut target.layers, None);
            let measurement = &mut run.measurements[workload];
            measurement.device.others = others;
            change(measurement);
        });
        check(&record).is_some()
    }

    fn reads_are_blamed(workload: usize, reads: u64, others: Vec<OtherProcess>) -> bool {
        over_large_disk(4 << 30, workload, others, |measurement| {
            measurement.device.read_bytes += reads
        })
    }

    fn compiler(read_bytes: u64) -> Vec<OtherProcess> {
        vec![process("rustc", read_bytes, 4 << 20)]
    }

    fn after_mount() -> Vec<OtherProcess> {
        vec![process("ext4lazyinit", 0, 0), process("rustc", 0, 2 << 20)]
    }

    /// As measured with a loop device over a file on a disk of 256 GiB.
    #[test]
    fn bitmaps_of_the_filesystem_below_a_loop_device_are_not_of_others() {
        let (reads, writes, bitmaps) = (2, 7, 8_302_592);
        assert!(
            !reads_are_blamed(writes, bitmaps, Vec::new()),
            "to find free blocks"
        );
        assert!(reads_are_blamed(writes, bitmaps * 4, Vec::new()));
        assert!(
            !reads_are_blamed(writes, bitmaps, compiler(3 << 20)),
            "of another disk"
        );
        assert!(reads_are_blamed(writes, bitmaps * 4, compiler(bitmaps * 3)));
        assert!(
            !reads_are_blamed(reads, bitmaps, after_mount()),
            "after the mount"
        );
        assert!(reads_are_blamed(reads, bitmaps, Vec::new()));
        assert!(reads_are_blamed(reads, bitmaps * 4, after_mount()));
    }

    /// ext4lazyinit may be at work on another disk: the size of the filesystem below a loop device
    /// hides nothing.
    #[test]
    fn inode_tables_are_those_of_the_target() {
        let others = vec![process("ext4lazyinit", 0, 0), process("rustc", 0, 2 << 30)];
        assert!(over_large_disk(256 << 20, 2, others, |measurement| {
            measurement.device.write_bytes += 300 << 20;
        }));
    }

    /// As measured on a new ext4 in memory, while compilers wrote to another disk.
    #[test]
    fn inode_tables_beside_commits_are_not_laid_on_processes() {
        for (tables, extra, expected) in [(24 << 20, 2 << 20, false), (300 << 20, 200 << 20, true)]
        {
            let diagnosis = blamed("ext4", 4 << 30, 7, |measurement| {
                measurement.device.write_bytes = measurement.asked.write_bytes * 3 + tables;
                measurement.device.others = vec![
                    process("ext4lazyinit", 0, 0),
                    process("dd", 0, 12 << 20),
                    process("rustc", 0, extra),
                ];
            });
            assert_eq!(diagnosis.is_some(), expected, "{tables}");
        }
    }

    #[test]
    fn reads_beside_pure_writes_are_of_others() {
        for block_bytes in [8192, 16384] {
            let record = fixture::faulty("commit-fdatasync", |measurement| {
                (measurement.workload.block_bytes, measurement.cache.used) =
                    (block_bytes, CachePolicy::Buffered);
                measurement.device.read_bytes += 64 << 20;
            });
            let codes = codes(&record);
            let blames = |code: &str| codes.contains(&code);
            assert_eq!((blames("disturbed"), blames("amplified")), (true, false));
        }
    }

    #[test]
    fn others_are_named_with_what_they_did() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 2)
        );
        states(&finding.claim, &["pg_dump (pid 812)", "16 MiB", "100 MiB"]);
        assert!(!finding.claim.contains("systemd"), "{}", finding.claim);
    }

    /// The diagnosis of two workloads that ran together.
    fn blamed_together(change: fn(&mut Measurement)) -> Option<Diagnosis> {
        let names = ["random-read-d1", "sequential-read"];
        let mut run = fixture::together(&names);
        let members = run
            .measurements
            .iter_mut()
            .filter(|measurement| names.contains(&measurement.workload.name.as_str()));
        members.for_each(change);
        check(&fixture::judge(run))
    }

    fn read_ahead_of_one(measurement: &mut Measurement) {
        measurement.device.read_bytes += measurement.asked.read_bytes / 2;
        if measurement.workload.name == "sequential-read" {
            measurement.cache.used = CachePolicy::Buffered;
        }
    }

    #[test]
    fn workloads_that_ran_together_do_not_disturb_each_other() {
        assert_eq!(blamed_together(|_| {}), None);
        assert_eq!(
            blamed_together(read_ahead_of_one),
            None,
            "what one of them reads ahead"
        );
        let busy = blamed_together(|measurement| {
            measurement.device.read_bytes += measurement.asked.read_bytes / 2;
            measurement.device.others = vec![process("pg_dump", 16 << 20, 0)];
        });
        states(
            &busy.unwrap().claim,
            &["2 of 8 workloads", "pg_dump (pid 812)", "16 MiB"],
        );
    }

    #[test]
    fn hidden_processes_are_a_matter_of_rights() {
        let mut record = fixture::faulty("random-read-d1", |measurement| {
            measurement.device.read_bytes += 8 << 20;
            measurement.device.others_hidden = 40;
        });
        states(&check(&record).unwrap().claim, &["40 processes", "as root"]);
        record.host.uid = 0;
        let claim = check(&record).unwrap().claim;
        assert!(
            !claim.contains("as root"),
            "root is not told to become root: {claim}"
        );
    }

    #[test]
    fn processes_are_on_this_disk_where_no_other_disk_moved_as_much() {
        for (elsewhere_bytes, exits_reported, parts) in [
            (
                Some(1 << 20),
                true,
                &["this disk", "tar (pid 812, ended)", "16 MiB"],
            ),
            (
                Some(16 << 20),
                true,
                &["any disk", "tar (pid 812, ended)", "16 MiB"],
            ),
            (None, true, &["any disk", "tar (pid 812, ended)", "16 MiB"]),
            (Some(0), false, &["root", "tar (pid 812, ended)", "16 MiB"]),
        ] {
            let record = by_tar(elsewhere_bytes, exits_reported);
            states(&check(&record).unwrap().claim, parts);
        }
    }

    fn blamed_survey(change: impl FnOnce(&mut SurfaceMeasurement)) -> Option<Diagnosis> {
        check(&surveyed::faulty(change))
    }

    /// The kernel counts the bytes of a request that fails.
    #[test]
    fn requests_that_failed_are_not_other_programs() {
        for (failed, expected) in [(18_053, false), (100, true)] {
            let record = fixture::faulty("random-read-d1", |measurement| {
                let reads = measurement.ops.get_mut(&OpKind::Read).unwrap();
                reads.errors.insert("EIO".to_owned(), failed);
                measurement.device.read_bytes += 18_053 * 8192;
            });
            assert_eq!(check(&record).is_some(), expected, "{failed}");
        }
        let survey = |errors| {
            blamed_survey(|survey| {
                survey.curve[0].errors = errors;
                survey.device.read_bytes += survey.asked.read_bytes / 5;
            })
        };
        assert_eq!(survey(1000), None);
        assert!(survey(0).is_some());
    }

    #[test]
    fn processes_during_a_survey_are_named() {
        let finding = blamed_survey(|s| {
            s.device.read_bytes += s.asked.read_bytes / 5;
            s.device.others = vec![process("pg_dump", s.asked.read_bytes / 5, 0)];
        });
        let finding = finding.unwrap();
        states(
            &finding.claim,
            &["the survey", "(20 %)", "any disk", "pg_dump"],
        );
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/data/device/read_bytes"
        );
        let rounded = blamed_survey(|s| {
            s.asked.read_bytes = s.access.len() as u64 * 512;
            s.device.read_bytes = s.access.len() as u64 * 4096;
        });
        assert_eq!((rounded, blamed_survey(|_| {})), (None, None));
    }

    /// The old data and parity that an array of the volume manager reads, and the chunks that a
    /// cache takes in, are not other programs'.
    #[test]
    fn mappings_over_several_devices_move_more_than_they_are_asked_for() {
        for (model, disks, expected) in [
            ("LVM data", 1, true),
            ("LVM data", 3, false),
            ("multipath san", 3, true),
            ("crypt data", 1, true),
        ] {
            let mut record = fixture::all_faulty(|measurement| {
                measurement.device.read_bytes += 2 * measurement.asked.write_bytes;
            });
            let target = &mut record.targets[0];
            target.kind = TargetKind::BlockDevice;
            target.filesystem = None;
            let names: Vec<String> = (0..disks).map(|disk| format!("sd{disk}")).collect();
            let below: Vec<&str> = names.iter().map(String::as_str).collect();
            target.layers = vec![Layer {
                model: Some(model.to_owned()),
                ..fixture::layer("dm-0", LayerKind::DeviceMapper, &below)
            }];
            for name in &below {
                target
                    .layers
                    .push(fixture::layer(name, LayerKind::Disk, &[]));
            }
            assert_eq!(check(&record).is_some(), expected, "{model} {disks}");
            record.targets[0].layers[0].kind = LayerKind::Md;
            assert_eq!(check(&record), None, "parity of {disks} disks");
        }
    }

    #[test]
    fn journals_redundancy_read_ahead_and_other_disks_are_not_reported() {
        let change: [fn(&mut Measurement); 3] = [
            // A journal and a mirror.
            |measurement| {
                measurement.device.write_bytes = measurement.asked.write_bytes * 4
                    + if measurement.asked.write_bytes > 0 {
                        1 << 30
                    } else {
                        0
                    }
            },
            // A busy process on another disk.
            |measurement| measurement.device.others = vec![process("pg_dump", 1 << 40, 1 << 30)],
            // Our own data, written by the kernel for us; and little.
            |measurement| {
                measurement.device.write_bytes += if measurement.asked.write_bytes > 0 {
                    1 << 30
                } else {
                    1 << 19
                }
            },
        ];
        for (i, change) in change.into_iter().enumerate() {
            assert_eq!(check(&fixture::all_faulty(change)), None, "{i}");
        }
    }
}
