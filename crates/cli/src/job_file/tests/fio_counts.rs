//! Jobs make as many requests as the real fio counted for them.

use super::*;
use diskproof_engine::Extent;
use diskproof_engine::pattern::{Pattern, PatternAction};
use diskproof_model::plan::Workload;
use std::collections::BTreeSet;

/// A line of the table: the options of a job, and what fio counted.
struct CountedJob {
    options: &'static str,
    /// Reads and their bytes, then writes and theirs.
    moved: [(u64, u64); 2],
    fsyncs: u64,
}

fn counted_jobs() -> Vec<CountedJob> {
    let mut jobs = Vec::new();
    for line in include_str!("fio_counts.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let [options, reads, writes, fsyncs] = cells[..] else {
            panic!("{line}");
        };
        let moved = [reads, writes].map(|cell| {
            let (ops, bytes) = cell.split_once(' ').unwrap();
            (ops.parse().unwrap(), bytes.parse().unwrap())
        });
        jobs.push(CountedJob {
            options,
            moved,
            fsyncs: fsyncs.parse().unwrap(),
        });
    }
    jobs
}

/// What a workload in the order of fio makes.
struct MadeRequests {
    /// Reads and their bytes, then writes and theirs.
    moved: [(u64, u64); 2],
    syncs: u64,
    /// Where writes began.
    written: BTreeSet<u64>,
}

fn made(flags: &WorkloadFlags, run_seed: u64) -> MadeRequests {
    let mut workload = Workload::named("counted");
    workload.shape.order.fio = flags.shape.order.fio.clone();
    let extent = Extent {
        start: 0,
        length: 1 << 40,
    };
    let mut pattern = Pattern::new(&workload, extent, run_seed, 0);
    let mut made = MadeRequests {
        moved: [(0, 0); 2],
        syncs: 0,
        written: BTreeSet::new(),
    };
    for _ in 0..flags.ops.unwrap().0 {
        let PatternAction::Step(step) = pattern.next_action() else {
            made.syncs += 1;
            continue;
        };
        if step.kind == OpKind::Write {
            made.written.insert(step.offset);
        }
        let counted = &mut made.moved[usize::from(step.kind == OpKind::Write)];
        counted.0 += 1;
        counted.1 += u64::from(step.len);
    }
    made
}

#[test]
fn jobs_make_the_requests_that_fio_counts() {
    let mut ordered = 0;
    for job in counted_jobs() {
        let options = job.options.replace(' ', "\n");
        let text = format!("[a]\ndirectory=/data\n{options}\n");
        let file = translated(&text, AS_FIO).unwrap_or_else(|why| panic!("{text}{why}"));
        let flags = &file.plan.workloads[0].flags;
        if let Some(order) = &flags.shape.order.fio {
            let rw = flags.rw.unwrap();
            let makes_all = order.kinds.iter().all(|kind| rw.makes(kind.does));
            assert!(makes_all, "{}", job.options);
        }
        if flags.shape.order.fio.is_none() {
            // One kind and one size: the limit says all.
            let (ops, bytes) = job.moved[0].max(job.moved[1]);
            let limits = (flags.ops.map(|ops| ops.0), flags.bytes.map(|bytes| bytes.0));
            assert!(
                limits.0 == Some(ops) || limits.1 == Some(bytes),
                "{limits:?}: {}",
                job.options
            );
            continue;
        }
        ordered += 1;
        let MadeRequests {
            mut moved,
            syncs,
            written,
        } = made(flags, 1);
        if flags.verify == Some(true) {
            // The bytes of a read follow when it is made.
            let reads = flags.shape.content.verified_reads;
            let verified = reads.unwrap_or(written.len() as u64);
            moved[0] = (moved[0].0 + verified, job.moved[0].1);
        }
        assert_eq!(moved, job.moved, "{}", job.options);
        if !job.options.contains("fdatasync") {
            assert_eq!(syncs, job.fsyncs, "{}", job.options);
        }
    }
    assert!(ordered > 60, "{ordered}");
}

/// Where the requests are others in each run, the syncs between them are, too.
#[test]
fn job_without_repeated_numbers_moves_its_bytes_in_each_run() {
    let text = "[a]\ndirectory=/data\nrw=randrw\nsize=512k\nrandrepeat=0\nfsync=8\nfdatasync=3\n";
    let mut sync_counts = BTreeSet::new();
    for seed in 1..9 {
        let overrides = CliOverrides { seed, ..AS_FIO };
        let plan = translated(text, overrides).unwrap().plan;
        assert_eq!(plan.seed, Some(seed));
        let MadeRequests { moved, syncs, .. } = made(&plan.workloads[0].flags, seed);
        let [(_, read_bytes), (_, written_bytes)] = moved;
        assert_eq!(read_bytes + written_bytes, 512 << 10, "{seed}");
        sync_counts.insert(syncs);
    }
    assert!(sync_counts.len() > 1, "{sync_counts:?}");
}

/// The reads and their bytes, then the writes and theirs, of each copy by fio 3.33.
#[test]
fn copies_with_a_seed_have_the_places_of_fio() {
    let second_and_third = [
        [(224, 917_504), (221, 1_810_432)],
        [(251, 1_028_096), (304, 2_490_368)],
    ];
    let of_all = [
        [(289, 1_183_744), (289, 2_367_488)],
        [(161, 659_456), (167, 1_368_064)],
    ];
    for (options, first, others) in [
        (
            "randseed=1234",
            [(273, 1_118_208), (244, 1_998_848)],
            second_and_third,
        ),
        (
            "randseed=1234\nrandrepeat=0",
            [(310, 1_269_760), (288, 2_359_296)],
            second_and_third,
        ),
        (
            "randseed=7\nallrandrepeat=1",
            [(298, 1_220_608), (296, 2_424_832)],
            of_all,
        ),
        (
            "allrandrepeat=1\nrandrepeat=0",
            [(327, 1_339_392), (324, 2_654_208)],
            of_all,
        ),
    ] {
        let text =
            format!("[a]\ndirectory=/data\nrw=randrw\nsize=4m\nbs=4k,8k\nnumjobs=3\n{options}\n");
        let plan = translated(&text, AS_FIO).unwrap().plan;
        let mut moved = Vec::new();
        for workload in &plan.workloads {
            moved.push(made(&workload.flags, 1).moved);
        }
        assert_eq!(moved, [first, others[0], others[1]], "{options}");
    }
}
