//! A healthy run of the eight workloads of `check`, for tests to spoil. No finding may fire on it.

use crate::judge::{RunFacts, judge as judge_run};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::*;
use diskproof_model::plan::*;
use diskproof_model::record::{ClockFacts, Record, Tool};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::target::*;

/// Measured time of each workload.
pub(crate) const WALL_NS: u64 = 5_000_000_000;
/// Size of the scratch file.
pub(crate) const SPAN_BYTES: u64 = 4 << 30;
const PAGE: u32 = 8192;
const LARGE: u32 = 1 << 20;

/// What was asked and measured, to be spoilt before the judgement.
pub(crate) type Run = (RunFacts, Vec<Measurement>);

/// A healthy run.
pub(crate) fn run() -> Run {
    let sequential = || Access::Sequential;
    let random = || Access::Random {
        distribution: Distribution::Uniform,
    };
    let measurements = vec![
        measurement("sequential-write", 0, sequential(), (LARGE, 8), 200),
        measurement("sequential-read", 1000, sequential(), (LARGE, 8), 400),
        measurement("random-read-d1", 1000, random(), (PAGE, 1), 2000),
        measurement("random-read-d32", 1000, random(), (PAGE, 32), 10_000),
        measurement("random-write-d32", 0, random(), (PAGE, 32), 8_000),
        measurement("mixed-sequential", 500, sequential(), (LARGE, 8), 300),
        measurement("mixed-random", 500, random(), (PAGE, 32), 10_000),
        commit(),
    ];
    let plan = Plan {
        schema: PLAN_SCHEMA.to_owned(),
        method: METHOD_VERSION,
        seed: 1,
        targets: vec!["/data".to_owned()],
        scratch_bytes: Some(SPAN_BYTES),
        workloads: measurements.iter().map(|m| m.workload.clone()).collect(),
        survey: None,
        data_sheet: None,
        skipped: Vec::new(),
        origin: Origin::Native {
            verb: "check".to_owned(),
            argv: vec!["diskproof".to_owned(), "check".to_owned()],
        },
    };
    let facts = RunFacts {
        tool: Tool {
            name: "diskproof".to_owned(),
            version: "0.1.0".to_owned(),
        },
        run_id: "test".to_owned(),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        note: None,
        host: HostFacts {
            name: "db1".to_owned(),
            cpus: 8,
            uid: 1000,
            ..HostFacts::default()
        },
        clock: ClockFacts {
            source: "CLOCK_MONOTONIC".to_owned(),
            resolution_ns: 1,
            cost_ns: 21.0,
        },
        plan,
        targets: vec![target()],
        health: Vec::new(),
    };
    (facts, measurements)
}

/// A healthy run in which these neighbours of the plan ran at the same time, on disks that counted
/// them as one.
pub(crate) fn together(names: &[&str]) -> Run {
    let mut run = run();
    let is_member = |name: &str| names.contains(&name);
    run.0
        .plan
        .workloads
        .iter_mut()
        .filter(|w| is_member(&w.name))
        .skip(1)
        .for_each(|w| w.start = Start::WithPrevious);
    let members = || run.1.iter().filter(|m| is_member(&m.workload.name));
    let sum = |of: fn(&Measurement) -> u64| members().map(of).sum::<u64>();
    let asked = ByteCount {
        read_bytes: sum(|m| m.asked.read_bytes),
        write_bytes: sum(|m| m.asked.write_bytes),
    };
    let (read_bytes, write_bytes) = (sum(|m| m.device.read_bytes), sum(|m| m.device.write_bytes));
    for m in run.1.iter_mut().filter(|m| is_member(&m.workload.name)) {
        m.asked = asked;
        (m.device.read_bytes, m.device.write_bytes) = (read_bytes, write_bytes);
    }
    run
}

/// The judgement on a run.
pub(crate) fn judge(run: Run) -> Record {
    judge_run(run.0, &run.1, None, &[])
}

/// The record of a healthy run.
pub(crate) fn record() -> Record {
    judge(run())
}

/// The record of a run with one workload spoilt.
pub(crate) fn spoilt(name: &str, spoil: impl Fn(&mut Measurement)) -> Record {
    let mut run = run();
    run.1
        .iter_mut()
        .filter(|m| m.workload.name == name)
        .for_each(spoil);
    judge(run)
}

/// The record of a run with every workload spoilt.
pub(crate) fn all_spoilt(spoil: impl Fn(&mut Measurement)) -> Record {
    let mut run = run();
    run.1.iter_mut().for_each(spoil);
    judge(run)
}

fn measurement(
    name: &str,
    read_permille: u16,
    access: Access,
    (block_bytes, depth): (u32, u32),
    iops: u64,
) -> Measurement {
    let shares = [
        (OpKind::Read, u64::from(read_permille)),
        (OpKind::Write, 1000 - u64::from(read_permille)),
    ];
    let latency_ns = u64::from(depth) * 1_000_000_000 / iops;
    let ops = shares
        .into_iter()
        .filter(|s| s.1 > 0)
        .map(|(kind, share)| (kind, op(iops * share / 1000, block_bytes, latency_ns)));
    let ops: std::collections::BTreeMap<_, _> = ops.collect();
    let bytes = |kind| ops.get(&kind).map_or(0, |op: &OpMeasurement| op.bytes);
    let asked = ByteCount {
        read_bytes: bytes(OpKind::Read),
        write_bytes: bytes(OpKind::Write),
    };
    let engine = if depth == 1 {
        EngineKind::Sync
    } else {
        EngineKind::Uring
    };
    Measurement {
        target: 0,
        workload: workload(name, read_permille, access, block_bytes, depth),
        span_start_bytes: 0,
        span_bytes: SPAN_BYTES,
        engine: EngineUse {
            asked: EngineChoice::Auto,
            used: engine,
            fallbacks: Vec::new(),
            features: Vec::new(),
            done_before_wait: None,
        },
        cache: CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        },
        start_ns: 0,
        wall_ns: WALL_NS,
        cpu: CpuTime {
            user_ns: 50_000_000,
            system_ns: 250_000_000,
        },
        asked,
        device: DeviceUse {
            disks: vec!["sda".to_owned()],
            read_bytes: asked.read_bytes,
            write_bytes: asked.write_bytes + asked.write_bytes / 1000,
            read_ops: 1,
            write_ops: 1,
            accounted: Some(1.0),
            ..DeviceUse::default()
        },
        ops,
        achieved_depth: f64::from(depth),
        dead_time_ns: None,
        starved: Starvation::default(),
        ceiling_iops: None,
        zero_blocks: ZeroSample {
            sampled: if read_permille > 0 { 1000 } else { 0 },
            zero: 0,
        },
        unwritten_bytes: Some(0),
        missed_starts: None,
        punted: Some(false),
        verify: None,
        hang: None,
        stopped: StopReason::Precision,
    }
}

fn commit() -> Measurement {
    let mut m = measurement("commit-fdatasync", 0, Access::Sequential, (PAGE, 1), 500);
    m.workload.sync = SyncPolicy::Every {
        writes: 1,
        call: SyncCall::Fdatasync,
    };
    m.ops.insert(OpKind::Sync, op(500, 0, 1_900_000));
    m.ops.insert(OpKind::Commit, op(500, PAGE, 2_000_000));
    // Every fdatasync writes a block of the journal beside the data.
    m.device.write_bytes = m.asked.write_bytes * 2;
    m
}

fn workload(
    name: &str,
    read_permille: u16,
    access: Access,
    block_bytes: u32,
    depth: u32,
) -> Workload {
    Workload {
        name: name.to_owned(),
        start: Start::AfterPrevious,
        read_permille,
        access,
        block_bytes,
        block_mix: Vec::new(),
        depth,
        workers: 1,
        span: Span::default(),
        stop: Stop {
            precision: Some(0.02),
            time_ns: Some(8_000_000_000),
            ..Stop::default()
        },
        warmup_ns: 500_000_000,
        rate: None,
        sync: SyncPolicy::None,
        cache: CachePolicy::Direct,
        engine: EngineChoice::Auto,
        layout: if name == "sequential-write" {
            Layout::Provides
        } else {
            Layout::Needed
        },
        verify: Verify::Off,
    }
}

/// Operations at an even rate.
fn op(iops: u64, block_bytes: u32, latency_ns: u64) -> OpMeasurement {
    let cells = WALL_NS / SERIES_INTERVAL_NS;
    let mut series = TimeSeries::new(SERIES_INTERVAL_NS);
    let mut latency = LatencyHistogram::new();
    for i in 0..cells {
        let before = iops * SERIES_INTERVAL_NS * i / 1_000_000_000;
        let ops = iops * SERIES_INTERVAL_NS * (i + 1) / 1_000_000_000 - before;
        series.cells.push(Cell {
            ops,
            bytes: ops * u64::from(block_bytes),
            errors: 0,
            latency_max_ns: latency_ns,
        });
        (0..ops).for_each(|_| latency.record(latency_ns));
    }
    let total = series.total();
    OpMeasurement {
        count: total.ops,
        bytes: total.bytes,
        latency,
        series,
        ..OpMeasurement::default()
    }
}

/// A directory on ext4 on a partition of a SATA disk.
pub(crate) fn target() -> TargetIdentity {
    TargetIdentity {
        path: "/data".to_owned(),
        kind: TargetKind::Directory,
        size_bytes: 1 << 40,
        free_bytes: Some(1 << 39),
        device: "8:1".to_owned(),
        inode: 2,
        filesystem: Some(Filesystem {
            kind: "ext4".to_owned(),
            mount_point: "/data".to_owned(),
            source: "/dev/sda1".to_owned(),
            options: vec!["rw".to_owned()],
            size_bytes: 1 << 40,
            free_bytes: 1 << 39,
        }),
        layers: vec![
            layer("sda1", LayerKind::Partition, &["sda"]),
            layer("sda", LayerKind::Disk, &[]),
        ],
        unresolved: None,
    }
}

/// A block device of the stack.
pub(crate) fn layer(name: &str, kind: LayerKind, below: &[&str]) -> Layer {
    Layer {
        name: name.to_owned(),
        kind,
        device: "8:0".to_owned(),
        below: below.iter().map(|b| (*b).to_owned()).collect(),
        size_bytes: 1 << 40,
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        model: Some("SAMSUNG MZ7LH960".to_owned()),
        vendor: Some("ATA".to_owned()),
        serial: None,
        firmware: None,
        rotational: Some(false),
        scheduler: None,
        queue_requests: None,
        request_bytes_max: None,
        read_ahead_bytes: None,
        write_cache: None,
        link: Some(Link {
            bus: "SATA".to_owned(),
            speed: None,
            speed_max: None,
            bytes_per_second_max: None,
            device_bytes_per_second_max: None,
        }),
        backing_file: None,
        backing_direct: None,
        discard: None,
        read_only: false,
    }
}
