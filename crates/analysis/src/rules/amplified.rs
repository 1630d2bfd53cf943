//! `amplified`: the disk moved much more than was requested, and no other process is seen to cause
//! it. `disturbed` reports what other processes moved.

use super::disturbed::is_disturbed;
use super::rule::*;
use super::traffic::{Direction, Traffic, has_whole_pages, syncs_as_it_writes};

pub(super) const RULE: Rule = Rule {
    code: "amplified",
    title: "The disk moved more bytes than requested",
    summary: "The disk read or wrote far more than was requested. This lowers the figure, and an \
              application with the same requests is slowed equally.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Least excess as a share of the bytes requested: journals, allocation and the last window of
/// read-ahead stay below.
const SHARE_MIN: f64 = 0.5;

/// From this share on most of what the disk did was not requested.
const SHARE_WARNING: f64 = 1.0;

/// Fewer bytes than this are metadata, and the background of any machine. Chosen, not measured.
const EXCESS_BYTES_MIN: u64 = 4 << 20;

/// Read-ahead that a worker may not have used when its time was over, in windows of the kernel: the
/// one in use and the next, doubled where sequential reads were announced
/// (POSIX_FADV_SEQUENTIAL in posix_fadvise(2)).
const READ_AHEAD_WINDOWS_MAX: u64 = 4;

/// A workload for which the disk moved too much.
struct AmplifiedWorkload<'a> {
    measured: Measured<'a>,
    target: &'a TargetIdentity,
    direction: Direction,
    /// The bytes that the disk moved, without those of other programs.
    own_bytes: u64,
    /// All that the disk moved.
    moved_bytes: u64,
    /// The bytes that the workload requested in this direction.
    asked_bytes: u64,
    /// From this many bytes on, the disk moved too much.
    threshold_bytes: f64,
    /// Excess over all bytes requested.
    share: f64,
}

impl AmplifiedWorkload<'_> {
    /// `it read 8 MiB, 2.0 times the 4 MiB that were requested`
    fn clause(&self) -> String {
        let verb = self.direction.past_tense();
        let moved = format_bytes(self.own_bytes);
        if self.asked_bytes == 0 {
            return format!("it {verb} {moved}, although no such operation was requested");
        }
        format!(
            "it {verb} {moved}, {:.1} times the {} that were requested",
            self.own_bytes as f64 / self.asked_bytes as f64,
            format_bytes(self.asked_bytes)
        )
    }

    fn evidence(&self) -> Evidence {
        let path = format!("data/device/{}", self.direction.counter());
        self.measured
            .evidence(&path, self.moved_bytes as f64, self.threshold_bytes, "B")
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<AmplifiedWorkload<'_>> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(amplified_workload(record, measured));
    }
    let worst = largest_by(&hits, |hit| hit.share)?;
    let Explanation { cause, remedy } = explanation(record, worst);
    let claim = format!(
        "The disk moved more than requested in {}: in {} {}. {cause}",
        workload_names(record, hits.iter().map(|hit| hit.measured.index)),
        workload_name(record, worst.measured.row),
        worst.clause(),
    );
    let severity = warning_if(worst.share >= SHARE_WARNING);
    let observations = hits.iter().map(AmplifiedWorkload::evidence);
    Some(Diagnosis::new(severity, claim, observations).with_remedy(remedy))
}

fn amplified_workload<'a>(
    record: &'a Record,
    measured: Measured<'a>,
) -> Option<AmplifiedWorkload<'a>> {
    let row = measured.row;
    let target = record.targets.get(row.data.target)?;
    if is_redundant(target) {
        return None;
    }
    let excess = Traffic::from_workload(record, measured)?.excess()?;
    let total_bytes = row.data.asked.total();
    let mut own_writes = excess
        .own
        .writes
        .saturating_sub(pending_bytes(record, row.data.target));
    // Others that wrote through the page cache wrote more than is seen yet, to whichever disk: such
    // bytes are not laid on this one. Parts of pages are ours to explain in any case.
    if has_whole_pages(row)
        && (is_disturbed(record, measured) || written_by_others(row) >= own_writes)
    {
        own_writes = 0;
    }
    // What others may have read is not laid on the disk, even where it may have been another's.
    let read_by_others: u64 = row
        .data
        .device
        .others
        .iter()
        .map(|process| process.read_bytes)
        .sum();
    // What the disk was seen to read for them is not among the own reads.
    let unseen_reads = read_by_others.saturating_sub(excess.foreign.reads);
    let own_reads = excess.own.reads.saturating_sub(unseen_reads);
    let moved_by_direction = [
        written_bytes(record, row, own_writes),
        read_bytes(record, row, target, own_reads),
    ];
    let mut amplified: Option<&MovedBytes> = None;
    for moved in &moved_by_direction {
        let is_larger = match amplified {
            Some(other) => moved.excess_bytes > other.excess_bytes,
            None => true,
        };
        if moved.is_amplified(total_bytes) && is_larger {
            amplified = Some(moved);
        }
    }
    let moved = amplified?;
    Some(AmplifiedWorkload {
        measured,
        target,
        direction: moved.direction,
        own_bytes: moved.asked_bytes + moved.excess_bytes,
        moved_bytes: moved.moved_bytes,
        asked_bytes: moved.asked_bytes,
        threshold_bytes: moved.asked_bytes as f64 + moved.excess_min(total_bytes),
        share: moved.excess_bytes as f64 / total_bytes.max(1) as f64,
    })
}

/// Bytes that other programs wrote during a row, to any disk.
fn written_by_others(row: &Row) -> u64 {
    let others = &row.data.device.others;
    others.iter().map(|one| one.write_bytes).sum()
}

/// Bytes that other programs wrote during the run, and that the disk counted during no workload.
/// The kernel may write them back during this one.
fn pending_bytes(record: &Record, target: usize) -> u64 {
    let (mut written_bytes, mut shown_bytes) = (0, 0);
    for measured in real_rows(record) {
        if measured.row.data.target != target {
            continue;
        }
        let Some(traffic) = Traffic::from_workload(record, measured) else {
            continue;
        };
        written_bytes += traffic.others_on_these_disks().writes;
        if let Some(excess) = traffic.excess() {
            shown_bytes += excess.foreign.writes;
        }
    }
    written_bytes.saturating_sub(shown_bytes)
}

/// The bytes beyond those requested that the disk wrote for the row with this index, without those
/// of other programs. `None` where the counters do not tell, and where more is written on purpose.
pub(crate) fn own_excess_write_bytes(record: &Record, index: usize) -> Option<u64> {
    let row = record.measurements.get(index)?;
    if is_redundant(record.targets.get(row.data.target)?) {
        return None;
    }
    let excess = Traffic::from_workload(record, Measured { index, row })?.excess()?;
    Some(excess.own.writes)
}

/// True if more is moved on purpose: copies are what redundancy is for, and the old data that a
/// parity is computed from is its price.
fn is_redundant(target: &TargetIdentity) -> bool {
    let has_raid = target
        .layers
        .iter()
        .any(|layer| layer.kind == LayerKind::Md);
    has_raid || target.disks().count() > 1
}

/// The bytes that the disks read, or those that they wrote, for a workload.
struct MovedBytes {
    direction: Direction,
    moved_bytes: u64,
    asked_bytes: u64,
    /// Bytes beyond the request that are not another program's.
    excess_bytes: u64,
    /// A smaller excess is usual in this direction; `None` where an excess of any size is.
    usual_bytes: Option<u64>,
}

impl MovedBytes {
    /// The least excess that counts, of a workload that requested so much in all.
    fn excess_min(&self, total_bytes: u64) -> f64 {
        let usual_bytes = self.usual_bytes.unwrap_or(u64::MAX);
        (SHARE_MIN * total_bytes as f64).max(usual_bytes as f64)
    }

    fn is_amplified(&self, total_bytes: u64) -> bool {
        self.usual_bytes.is_some() && self.excess_bytes as f64 >= self.excess_min(total_bytes)
    }
}

fn read_bytes(
    record: &Record,
    row: &Row,
    target: &TargetIdentity,
    excess_bytes: u64,
) -> MovedBytes {
    let read_ahead_bytes = unused_read_ahead_bytes(target, &concurrent_rows(record, row));
    MovedBytes {
        direction: Direction::Read,
        moved_bytes: row.data.device.read_bytes,
        asked_bytes: row.data.asked.read_bytes,
        excess_bytes,
        usual_bytes: Some(EXCESS_BYTES_MIN.max(read_ahead_bytes)),
    }
}

fn written_bytes(record: &Record, row: &Row, excess_bytes: u64) -> MovedBytes {
    // Every commit writes a block of the journal, which may be more than itself.
    let has_journal = concurrent_rows(record, row)
        .iter()
        .any(|row| syncs_as_it_writes(row));
    MovedBytes {
        direction: Direction::Write,
        moved_bytes: row.data.device.write_bytes,
        asked_bytes: row.data.asked.write_bytes,
        excess_bytes,
        // Reads write nothing: what a disk writes beside them alone are earlier writes that the
        // kernel still held, ours or another program's.
        usual_bytes: if has_journal || row.data.asked.write_bytes == 0 {
            None
        } else {
            Some(EXCESS_BYTES_MIN)
        },
    }
}

/// The most that all workers together may have read ahead and not used.
fn unused_read_ahead_bytes(target: &TargetIdentity, rows: &[&Row]) -> u64 {
    let mut window_bytes = 0;
    for layer in &target.layers {
        window_bytes = window_bytes.max(layer.read_ahead_bytes.unwrap_or(0));
    }
    let workers: u64 = rows
        .iter()
        .map(|row| u64::from(row.data.workload.workers))
        .sum();
    READ_AHEAD_WINDOWS_MAX * window_bytes * workers
}

/// The cause of the additional bytes, as far as the workload and its target show it.
fn explanation(record: &Record, hit: &AmplifiedWorkload<'_>) -> Explanation {
    let row = hit.measured.row;
    let is_buffered = row.data.cache.used != CachePolicy::Direct;
    let is_partial = !has_whole_pages(row);
    let is_sequential = row.data.workload.access == Access::Sequential;
    let (cause, remedy) = match hit.direction {
        Direction::Write if is_buffered && is_partial => (
            "Through the page cache the kernel writes whole pages of 4 KiB, and first reads the \
             missing parts.",
            "Write whole pages (--bs 4k or a multiple), or collect small writes first. Measure \
             without --buffered for the disk's own figure.",
        ),
        Direction::Read if hit.asked_bytes == 0 && is_buffered && is_partial => (
            "If a block does not fill a whole page or filesystem block, the kernel reads the rest \
             before it writes.",
            "Write whole blocks at multiples of their size (--bs 4k or a multiple).",
        ),
        Direction::Read if is_buffered && is_partial => (
            "Through the page cache the kernel reads whole pages of 4 KiB.",
            "Read whole pages (--bs 4k or a multiple). Measure without --buffered for the disk's \
             own figure.",
        ),
        Direction::Read if is_buffered && !is_sequential => (
            "The kernel reads ahead data that was not requested.",
            "Reduce the read-ahead (blockdev --setra), or announce random accesses (posix_fadvise \
             with POSIX_FADV_RANDOM). Measure without --buffered for the disk's own figure.",
        ),
        Direction::Read if is_buffered => (
            "The kernel read ahead data that the page cache dropped before it was used.",
            "Reduce the read-ahead (blockdev --setra), use fewer --jobs, or keep more memory free \
             for the page cache.",
        ),
        Direction::Read | Direction::Write if hit.target.has_buffered_loop() => (
            "The loop device uses the page cache of the file behind it, which reads ahead and \
             writes whole pages.",
            "Turn on direct I/O for the loop device: losetup --direct-io=on.",
        ),
        Direction::Read | Direction::Write => {
            let remedy = "Check the filesystem (data=journal, copy on write, block size) and other \
                          users of the disk (iotop, pidstat -d). If possible, measure the block \
                          device itself.";
            return Explanation::new(unknown_cause(record, row), remedy);
        }
    };
    Explanation::new(cause, remedy)
}

fn unknown_cause(record: &Record, row: &Row) -> String {
    let hidden = row.data.device.others_hidden;
    if hidden == 0 || record.host.uid == 0 {
        return "No process accounts for these bytes. The cause is the filesystem (data journal, \
                copy on write), or the kernel, which writes back earlier writes of other programs."
            .to_owned();
    }
    format!(
        "The cause is the filesystem (data journal, copy on write), or one of {hidden} processes \
         of other users whose I/O is visible only to root."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, process, states, surveyed::codes, test_rng::TestRng};
    use diskproof_model::measurement::Measurement;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::faulty("random-write-d32", |measurement| {
                (measurement.workload.block_bytes, measurement.cache.used) =
                    (512, CachePolicy::Buffered);
                measurement.device.write_bytes = measurement.asked.write_bytes * 8;
            })
        },
        || fixture::all_faulty(|measurement| measurement.device.write_bytes += 3 << 20),
    );

    #[test]
    fn small_buffered_writes_are_reported_with_their_pages() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["1 of 8 workloads (random-write-d32)", "8.0 times", "4 KiB"],
        );
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/4/data/device/write_bytes"
        );
    }

    /// Commits of 1 KiB, during which the disk read 64 MiB.
    #[test]
    fn reads_that_another_program_may_have_made_are_no_amplification() {
        let found = |read_by_other: u64| {
            check(&fixture::faulty("commit-fdatasync", |measurement| {
                measurement.workload.block_bytes = 1024;
                measurement.device.read_bytes += 64 << 20;
                // Most of what processes moved went to another disk.
                measurement.device.elsewhere_bytes = Some(1 << 30);
                measurement.device.others = vec![process("hdparm", read_by_other, 0)];
            }))
        };
        assert!(found(0).is_some());
        assert_eq!(found(64 << 20), None);
    }

    /// Commits of 1 KiB, during which the disk read 128 MiB, half of it for another program.
    #[test]
    fn reads_of_others_are_taken_off_once() {
        let record = fixture::faulty("commit-fdatasync", |measurement| {
            measurement.workload.block_bytes = 1024;
            measurement.device.read_bytes += 128 << 20;
            measurement.device.others = vec![process("pg_dump", 64 << 20, 0)];
        });
        assert!(check(&record).is_some());
    }

    /// The kernel counts the bytes of a request that fails, and through the page cache those that
    /// it reads ahead for it.
    #[test]
    fn requests_that_failed_amplify_nothing() {
        let amplified = |errors: u64| {
            check(&fixture::faulty("random-read-d1", |measurement| {
                measurement.cache.used = CachePolicy::Buffered;
                let reads = measurement.ops.get_mut(&OpKind::Read).unwrap();
                reads.errors.insert("EIO".to_owned(), errors);
                measurement.device.read_bytes += 200_000 * 8192;
            }))
        };
        assert_eq!(amplified(200_000), None);
        assert!(amplified(0).is_some());
    }

    /// As measured beside three `cp` of 1 GiB.
    #[test]
    fn writes_of_others_that_the_kernel_still_holds_amplify_nothing() {
        for (copied, expected) in [(3 << 30, false), (500 << 20, true)] {
            let record = fixture::changed(|run| {
                let reads = &mut run.measurements[2].device;
                reads.others = vec![process("cp", 0, copied)];
                reads.write_bytes += 400 << 20;
                run.measurements[4].device.write_bytes += 429 << 20;
            });
            assert_eq!(check(&record).is_some(), expected, "{copied}");
        }
    }

    /// As measured beside programs that wrote 6.5 GiB through the page cache: the disk wrote 1.8
    /// GiB for 335 MiB that were requested.
    #[test]
    fn writes_of_others_that_may_be_of_any_disk_amplify_nothing() {
        let found = |by_other: u64, elsewhere: u64| {
            let record = fixture::faulty("mixed-random", |measurement| {
                let asked_bytes = measurement.asked.write_bytes;
                measurement.device.write_bytes += asked_bytes * 9 / 2;
                measurement.device.others = vec![process("fio", 0, asked_bytes * by_other)];
                measurement.device.elsewhere_bytes = Some(asked_bytes * elsewhere);
            });
            check(&record).is_some()
        };
        // Beside a disturbance that is too small for all of it, and beside another busy disk.
        assert!(!found(1, 0));
        assert!(!found(20, 19));
        assert!(found(1, 1));
        assert!(found(0, 0));
    }

    /// As measured on a buffered loop device, which held the writes that had filled the file, while
    /// other programs wrote to the disk below it.
    #[test]
    fn writes_beside_reads_alone_amplify_nothing() {
        let record = fixture::changed(|run| {
            let layers = &mut run.facts.targets[0].layers;
            let mut image = layers[0].clone();
            (image.name, image.kind) = ("loop0".to_owned(), LayerKind::Loop);
            (image.below, image.backing_direct) = (vec![layers[0].name.clone()], Some(false));
            layers.insert(0, image);
            let reads = &mut run.measurements[2];
            assert_eq!(reads.asked.write_bytes, 0);
            reads.device.write_bytes += 10 * reads.asked.read_bytes;
            reads.device.others = vec![process("cp", 0, 300 << 20)];
            reads.device.elsewhere_bytes = Some(300 << 20);
        });
        assert_eq!(check(&record), None);
    }

    fn buffered_reads(factor: u64) -> Option<Diagnosis> {
        check(&fixture::faulty("random-read-d32", |measurement| {
            (measurement.cache.used, measurement.device.read_bytes) =
                (CachePolicy::Buffered, measurement.asked.read_bytes * factor);
        }))
    }

    #[test]
    fn read_ahead_of_random_reads_is_reported() {
        let finding = buffered_reads(3).unwrap();
        states(&finding.claim, &["3.0 times"]);
        states(&finding.remedy, &["blockdev --setra"]);
        assert_eq!(buffered_reads(1), None);
        let before_writing = fixture::faulty("random-write-d32", |measurement| {
            measurement.workload.block_bytes = 6144;
            (measurement.cache.used, measurement.device.read_bytes) =
                (CachePolicy::Buffered, measurement.asked.write_bytes);
        });
        let evidence = check(&before_writing).unwrap().evidence;
        assert_eq!(evidence[0].path, "/measurements/4/data/device/read_bytes");
    }

    #[test]
    fn other_processes_are_reported_by_disturbed_alone() {
        type Case = (fn(&mut Measurement), &'static str);
        let changes: [Case; 3] = [
            (
                |measurement| {
                    measurement.device.write_bytes *= 4;
                    measurement.device.others =
                        vec![process("pg_dump", 0, measurement.asked.write_bytes * 3)];
                },
                "disturbed",
            ),
            (
                |measurement| measurement.device.write_bytes *= 4,
                "amplified",
            ),
            // Reads past the page cache are either ours or another process's.
            (
                |measurement| measurement.device.read_bytes += measurement.asked.write_bytes * 3,
                "disturbed",
            ),
        ];
        for (change, code) in changes {
            assert_eq!(codes(&fixture::faulty("random-write-d32", change)), [code]);
        }
    }

    #[test]
    fn journals_mirrors_read_ahead_left_over_and_small_counts_are_no_amplification() {
        let spared: [fn(&mut Measurement); 2] = [
            |measurement| measurement.device.write_bytes += measurement.asked.write_bytes * 2 / 5,
            |measurement| {
                (
                    measurement.device.read_bytes,
                    measurement.device.write_bytes,
                ) = (1 << 40, 1 << 40);
                measurement.device.unresolved = Some("nfs".to_owned());
            },
        ];
        for (i, spare) in spared.into_iter().enumerate() {
            assert_eq!(check(&fixture::all_faulty(spare)), None, "{i}");
        }
        // Each commit with its block of the journal, however small it is.
        let journal = fixture::faulty("commit-fdatasync", |measurement| {
            measurement.device.write_bytes = measurement.asked.write_bytes * 24;
        });
        let mirror = fixture::changed(|run| {
            let mirror = fixture::layer("md0", LayerKind::Md, &["sda1"]);
            run.facts.targets[0].layers.push(mirror);
            run.measurements.iter_mut().for_each(|measurement| {
                measurement.device.write_bytes = measurement.asked.write_bytes * 2
            });
        });
        let last_windows = read_ahead(16 << 20);
        for (i, record) in [journal, mirror, last_windows].iter().enumerate() {
            assert_eq!(check(record), None, "{i}");
        }
    }

    /// A scan of 4 MiB through the page cache, for which the disk read so many bytes. The kernel
    /// reads up to 4 MiB ahead.
    fn read_ahead(device_bytes: u64) -> Record {
        fixture::changed(|run| {
            for layer in &mut run.facts.targets[0].layers {
                layer.read_ahead_bytes = Some(4 << 20);
            }
            let scan = run
                .measurements
                .iter_mut()
                .find(|measurement| measurement.workload.name == "sequential-read")
                .unwrap();
            (scan.asked.read_bytes, scan.device.read_bytes) = (4 << 20, device_bytes);
            scan.cache.used = CachePolicy::Buffered;
        })
    }

    /// The evidence names the limit by which it was judged, read-ahead included.
    #[test]
    fn threshold_includes_what_may_be_read_ahead() {
        let evidence = &check(&read_ahead(100 << 20)).unwrap().evidence[0];
        assert_eq!(evidence.threshold, f64::from(20 << 20));
    }

    /// Healthy disks, with every variation that is no fault.
    #[test]
    fn a_hundred_runs_without_amplification_have_no_such_finding() {
        for seed in 0..100 {
            let mut rng = TestRng(seed + 1);
            let names = [
                "random-read-d1",
                "random-read-d32",
                "random-write-d32",
                "mixed-random",
            ];
            let company = rng.share() < 0.3;
            let mut run = if company {
                fixture::together(&names[..rng.whole(2, 4) as usize])
            } else {
                fixture::run()
            };
            let cache = [
                CachePolicy::Direct,
                CachePolicy::Buffered,
                CachePolicy::Cached,
            ][rng.whole(0, 2) as usize];
            let (read_ahead, uid) = (128 << rng.whole(10, 16), rng.whole(0, 1) as u32 * 1000);
            run.facts.targets[0]
                .layers
                .iter_mut()
                .for_each(|layer| layer.read_ahead_bytes = Some(read_ahead));
            run.facts.host.uid = uid;
            for measurement in &mut run.measurements {
                // Slow disks and fast ones.
                let scale = 10f64.powf(if company { 0.0 } else { rng.between(-2.0, 2.0) });
                let scaled = |bytes: u64| (bytes as f64 * scale) as u64;
                (measurement.asked.read_bytes, measurement.asked.write_bytes) = (
                    scaled(measurement.asked.read_bytes),
                    scaled(measurement.asked.write_bytes),
                );
                measurement.cache.used = cache;
                measurement.workload.workers = rng.whole(1, 8) as u32;
                // Allocation and journal, read-ahead left over, what the machine does anyway, and
                // what the page cache answers.
                let served = if cache == CachePolicy::Cached {
                    rng.share()
                } else {
                    1.0
                };
                let commits = !matches!(
                    measurement.workload.sync,
                    SyncPolicy::None | SyncPolicy::AtEnd
                );
                let journal = if commits {
                    rng.between(1.0, 20.0)
                } else {
                    rng.between(0.0, 0.2)
                };
                let ahead = if cache == CachePolicy::Direct {
                    0
                } else {
                    read_ahead * u64::from(measurement.workload.workers) * rng.whole(0, 2)
                };
                measurement.device.read_bytes = (measurement.asked.read_bytes as f64 * served)
                    as u64
                    + if measurement.asked.read_bytes > 0 {
                        ahead
                    } else {
                        0
                    };
                measurement.device.write_bytes = (measurement.asked.write_bytes as f64
                    * (1.0 + journal)) as u64
                    + rng.whole(0, 3 << 20);
                measurement.device.others_hidden = rng.whole(0, 400) as u32;
            }
            let record = fixture::judge(run);
            assert_eq!(check(&record), None, "seed {seed}");
        }
    }

    /// Random writes for which the disk wrote this many tenths of the bytes requested.
    fn written_tenths(tenths: u64) -> Record {
        fixture::faulty("random-write-d32", |measurement| {
            measurement.device.write_bytes = measurement.asked.write_bytes / 10 * tenths;
        })
    }

    #[test]
    fn excess_is_a_warning_from_the_whole_request_on() {
        for (tenths, severity) in [
            (14, None),
            (16, Some(Severity::Note)),
            (19, Some(Severity::Note)),
            (20, Some(Severity::Warning)),
        ] {
            let found = check(&written_tenths(tenths)).map(|finding| finding.severity);
            assert_eq!(found, severity, "{tenths}");
        }
    }

    /// A mix through the page cache, for which the disk moved too much in both directions.
    #[test]
    fn direction_with_the_larger_excess_is_named() {
        for (reads, writes, counter) in [(3, 6, "write_bytes"), (6, 3, "read_bytes")] {
            let record = fixture::faulty("mixed-random", |measurement| {
                measurement.cache.used = CachePolicy::Buffered;
                measurement.device.read_bytes = measurement.asked.read_bytes * reads;
                measurement.device.write_bytes = measurement.asked.write_bytes * writes;
            });
            let evidence = &check(&record).unwrap().evidence[0];
            let path = format!("/measurements/6/data/device/{counter}");
            assert_eq!(evidence.path, path);
        }
    }

    #[test]
    fn cause_names_a_buffered_loop_device_and_processes_that_are_hidden() {
        let mut record = written_tenths(80);
        states(&check(&record).unwrap().claim, &["No process"]);
        record.measurements[4].data.device.others_hidden = 7;
        states(&check(&record).unwrap().claim, &["7 processes"]);
        // To root nothing is hidden.
        record.host.uid = 0;
        states(&check(&record).unwrap().claim, &["No process"]);
        record.targets[0].layers[0].backing_direct = Some(false);
        let diagnosis = check(&record).unwrap();
        states(&diagnosis.remedy, &["losetup --direct-io=on"]);
    }

    /// Several disks below a target hold copies, also without a layer of the kernel's RAID.
    #[test]
    fn target_on_two_disks_moves_more_on_purpose() {
        let mut record = written_tenths(80);
        assert!(own_excess_write_bytes(&record, 4).is_some());
        let second = fixture::layer("sdb", LayerKind::Disk, &[]);
        record.targets[0].layers.push(second);
        assert_eq!(check(&record), None);
        assert_eq!(own_excess_write_bytes(&record, 4), None);
    }
}
