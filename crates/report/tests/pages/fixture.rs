//! Records as runs make them, built in code: a healthy disk, a read-only device, a run that broke
//! off, a hostile one.

mod surveyed;
mod verdict;

pub use surveyed::{depths, surveyed};
pub use verdict::graded;

use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::health::{DiskHealth, SelfTest};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::*;
use diskproof_model::plan::*;
use diskproof_model::record::*;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::target::*;
use std::collections::BTreeMap;

const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

/// What distinguishes one workload of the fixture from another.
struct Spec {
    name: &'static str,
    block_bytes: u32,
    depth: u32,
    read_permille: u16,
    is_random: bool,
    /// Per kind of operation: operations per second and median latency in nanoseconds.
    rates: &'static [(OpKind, f64, u64)],
}

const MIB: u32 = 1 << 20;
const EIGHT: [Spec; 8] = [
    spec(
        "sequential-write",
        MIB,
        8,
        0,
        false,
        &[(OpKind::Write, 1234.0, 6_120_000)],
    ),
    spec(
        "sequential-read",
        MIB,
        8,
        1000,
        false,
        &[(OpKind::Read, 2310.4, 3_400_000)],
    ),
    spec(
        "random-read-d1",
        8192,
        1,
        1000,
        true,
        &[(OpKind::Read, 8213.0, 118_000)],
    ),
    spec(
        "random-read-d32",
        8192,
        32,
        1000,
        true,
        &[(OpKind::Read, 98_120.0, 310_000)],
    ),
    spec(
        "random-write-d32",
        8192,
        32,
        0,
        true,
        &[(OpKind::Write, 61_300.0, 480_000)],
    ),
    spec(
        "mixed-sequential",
        MIB,
        32,
        500,
        false,
        &[
            (OpKind::Read, 702.0, 21_000_000),
            (OpKind::Write, 698.0, 22_000_000),
        ],
    ),
    spec(
        "mixed-random",
        8192,
        32,
        500,
        true,
        &[
            (OpKind::Read, 35_100.0, 410_000),
            (OpKind::Write, 35_090.0, 450_000),
        ],
    ),
    spec(
        "commit-fdatasync",
        8192,
        1,
        0,
        false,
        &[
            (OpKind::Write, 1520.0, 90_000),
            (OpKind::Sync, 1520.0, 550_000),
            (OpKind::Commit, 1520.0, 645_000),
        ],
    ),
];

const fn spec(
    name: &'static str,
    block_bytes: u32,
    depth: u32,
    read_permille: u16,
    is_random: bool,
    rates: &'static [(OpKind, f64, u64)],
) -> Spec {
    Spec {
        name,
        block_bytes,
        depth,
        read_permille,
        is_random,
        rates,
    }
}

impl Spec {
    fn access(&self) -> Access {
        if self.is_random {
            Access::Random {
                distribution: Distribution::Uniform,
            }
        } else {
            Access::Sequential
        }
    }

    fn sync(&self) -> SyncPolicy {
        match self.name {
            "commit-fdatasync" => SyncPolicy::Every {
                writes: 1,
                call: SyncCall::Fdatasync,
            },
            "sequential-write" => SyncPolicy::AtEnd,
            _ => SyncPolicy::None,
        }
    }
}

fn op(rate: f64, median_ns: u64, block_bytes: u32) -> OpRecord {
    // Seven seconds of operations with a long tail: the k-th of a hundred takes up to 25 medians.
    let count = (rate * 7.0) as u64;
    let mut latency = LatencyHistogram::new();
    for k in 0..count {
        let place = (k * 7919 % count) as f64 / count as f64;
        latency.record((median_ns as f64 * (0.6 + 0.8 * place + place.powi(200) * 23.0)) as u64);
    }
    let bytes = count * u64::from(block_bytes);
    let estimate = |value: f64, unit: &str| Estimate {
        n: 31,
        value,
        half_width_95: Some(value * 0.0123),
        unit: unit.to_owned(),
    };
    let mut series = TimeSeries::new(100_000_000);
    series.add(
        0,
        &Cell {
            ops: count,
            bytes,
            errors: 0,
            latency_max_ns: latency.max_ns(),
        },
        100,
    );
    OpRecord {
        count,
        bytes,
        errors: BTreeMap::new(),
        short: 0,
        iops: estimate(rate, "1/s"),
        throughput: estimate(rate * f64::from(block_bytes), "B/s"),
        latency: LatencySummary::of(&latency),
        latency_intended: None,
        series,
    }
}

fn measurement(index: usize, spec: &Spec) -> MeasurementRecord {
    let engine = if spec.depth == 1 {
        EngineKind::Sync
    } else {
        EngineKind::Uring
    };
    MeasurementRecord {
        target: 0,
        workload: WorkloadRecord {
            name: spec.name.to_owned(),
            together_with: Vec::new(),
            read_permille: spec.read_permille,
            access: spec.access(),
            block_bytes: spec.block_bytes,
            block_mix: Vec::new(),
            depth: spec.depth,
            workers: 1,
            engine,
            cache: CachePolicy::Direct,
            sync: spec.sync(),
            rate: None,
            span_start_bytes: 0,
            span_bytes: 4 * GIB,
        },
        start_ns: (index as u64 * 7_250 + 250) * 1_000_000,
        wall_ns: 7 * SECOND,
        settling_ns: 120_000_000,
        settled: Some(true),
        cpu: CpuTime {
            user_ns: 90_000_000,
            system_ns: 230_000_000 * (1 + u64::from(spec.depth) / 16),
        },
        ops: spec
            .rates
            .iter()
            .map(|(kind, rate, median)| (*kind, op(*rate, *median, spec.block_bytes)))
            .collect(),
        asked: ByteCount {
            read_bytes: 17 * GIB,
            write_bytes: 0,
        },
        device: DeviceUse {
            disks: vec!["vda".to_owned()],
            accounted: Some(0.996 + index as f64 * 0.001),
            ..DeviceUse::default()
        },
        cache: CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        },
        engine: EngineUse {
            asked: EngineChoice::Auto,
            used: engine,
            fallbacks: Vec::new(),
            features: Vec::new(),
            done_before_wait: None,
        },
        achieved_depth: f64::from(spec.depth) * 0.98,
        dead_time_ns: (spec.depth == 1).then_some(412.5),
        starved: Starvation::default(),
        ceiling_iops: None,
        zero_blocks: ZeroSample {
            sampled: 64,
            zero: 0,
        },
        unwritten_bytes: Some(0),
        missed_starts: None,
        punted: Some(false),
        verify: None,
        hang: None,
        interruptions: Vec::new(),
        stopped: StopReason::Precision,
        reproduce: format!(
            "fio --name={} --filename=/var/lib/postgresql/fio.tmp --size=4g --bs={} --iodepth={} \
             --direct=1 --ioengine=io_uring --runtime=10 --time_based --unlink=1",
            spec.name, spec.block_bytes, spec.depth
        ),
    }
}

fn workload(spec: &Spec) -> Workload {
    Workload {
        name: spec.name.to_owned(),
        start: Start::AfterPrevious,
        read_permille: spec.read_permille,
        access: spec.access(),
        block_bytes: spec.block_bytes,
        block_mix: Vec::new(),
        depth: spec.depth,
        workers: 1,
        span: Span::default(),
        stop: Stop {
            precision: Some(0.02),
            time_ns: Some(7 * SECOND),
            bytes: Some(4 * GIB),
            ops: None,
        },
        warmup_ns: 250_000_000,
        rate: None,
        sync: spec.sync(),
        cache: CachePolicy::Direct,
        engine: EngineChoice::Auto,
        layout: if spec.name == "sequential-write" {
            Layout::Provides
        } else {
            Layout::Needed
        },
        verify: Verify::Off,
    }
}

/// The plan of `check` on a directory.
pub fn plan() -> Plan {
    Plan {
        schema: PLAN_SCHEMA.to_owned(),
        method: METHOD_VERSION,
        seed: 42,
        targets: vec!["/var/lib/postgresql".to_owned()],
        scratch_bytes: Some(4 * GIB),
        workloads: EIGHT.iter().map(workload).collect(),
        survey: None,
        data_sheet: None,
        skipped: Vec::new(),
        origin: Origin::Native {
            verb: "check".to_owned(),
            argv: vec!["diskproof".to_owned(), "check".to_owned()],
        },
    }
}

/// A plan that only reads a device.
pub fn read_only_plan() -> Plan {
    let mut plan = plan();
    plan.targets = vec!["/dev/sdb".to_owned()];
    plan.scratch_bytes = None;
    let (reading, writing): (Vec<Workload>, Vec<Workload>) =
        plan.workloads.into_iter().partition(|w| !w.writes());
    plan.workloads = reading;
    let skip = |w: Workload| Skipped {
        workload: w.name,
        why: "a device is only read unless --destroy names it".to_owned(),
    };
    plan.skipped = writing.into_iter().map(skip).collect();
    plan
}

/// A layer of which nothing is known but what every device has.
fn layer(name: &str, kind: LayerKind, below: &[&str]) -> Layer {
    Layer {
        name: name.to_owned(),
        kind,
        device: "254:0".to_owned(),
        below: below.iter().map(|&name| name.to_owned()).collect(),
        size_bytes: 256 * GIB,
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        model: None,
        vendor: None,
        serial: None,
        firmware: None,
        rotational: None,
        scheduler: None,
        queue_requests: None,
        request_bytes_max: None,
        read_ahead_bytes: None,
        write_cache: None,
        link: None,
        backing_file: None,
        backing_direct: None,
        discard: None,
        read_only: false,
    }
}

/// The machine.
pub fn host() -> HostFacts {
    HostFacts {
        name: "db1".to_owned(),
        kernel: "6.18.0".to_owned(),
        os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        cpu: Some("AMD EPYC 9B14".to_owned()),
        cpus: 2,
        memory_bytes: 23 * GIB + GIB / 2,
        hypervisor: Some("kvm".to_owned()),
        container: None,
        load_average: Some("0.12".to_owned()),
        governor: None,
        uid: 0,
    }
}

/// A directory on ext4 on a partition of a virtio disk.
pub fn directory() -> TargetIdentity {
    let mut disk = layer("vda", LayerKind::Disk, &[]);
    disk.rotational = Some(true);
    disk.scheduler = Some("mq-deadline".to_owned());
    disk.queue_requests = Some(256);
    disk.write_cache = Some(WriteCache::WriteBack);
    disk.link = Some(Link {
        bus: "virtio".to_owned(),
        speed: None,
        speed_max: None,
        bytes_per_second_max: None,
        device_bytes_per_second_max: None,
    });
    let options = ["rw", "relatime", "errors=remount-ro"]
        .map(str::to_owned)
        .to_vec();
    TargetIdentity {
        path: "/var/lib/postgresql".to_owned(),
        kind: TargetKind::Directory,
        size_bytes: 250 * GIB,
        free_bytes: Some(80 * GIB),
        device: "254:1".to_owned(),
        inode: 131_073,
        filesystem: Some(Filesystem {
            kind: "ext4".to_owned(),
            mount_point: "/".to_owned(),
            source: "/dev/vda1".to_owned(),
            options,
            size_bytes: 250 * GIB,
            free_bytes: 80 * GIB,
        }),
        layers: vec![layer("vda1", LayerKind::Partition, &["vda"]), disk],
        unresolved: None,
    }
}

/// A whole NVMe disk.
pub fn device() -> TargetIdentity {
    let mut disk = layer("nvme1n1", LayerKind::Disk, &[]);
    disk.model = Some("SAMSUNG MZQL23T8HCLS-00A07".to_owned());
    disk.serial = Some("S64HNE0T512345".to_owned());
    disk.firmware = Some("GDC5602Q".to_owned());
    disk.size_bytes = 3_840_755_982_336;
    disk.rotational = Some(false);
    disk.scheduler = Some("none".to_owned());
    disk.queue_requests = Some(1023);
    disk.request_bytes_max = Some(1 << 20);
    disk.read_ahead_bytes = Some(128 << 10);
    disk.write_cache = Some(WriteCache::WriteThrough);
    disk.discard = Some(true);
    disk.link = Some(Link {
        bus: "PCIe".to_owned(),
        speed: Some("8.0 GT/s x4".to_owned()),
        speed_max: Some("16.0 GT/s x4".to_owned()),
        bytes_per_second_max: Some(3_938_000_000),
        device_bytes_per_second_max: None,
    });
    TargetIdentity {
        path: "/dev/nvme1n1".to_owned(),
        kind: TargetKind::BlockDevice,
        size_bytes: disk.size_bytes,
        free_bytes: None,
        device: "259:3".to_owned(),
        inode: 412,
        filesystem: None,
        layers: vec![disk],
        unresolved: None,
    }
}

/// A finding of the given weight.
pub fn finding(severity: Severity, code: &str, claim: &str, remedy: &str) -> Finding {
    let path = "/measurements/3/device/accounted".to_owned();
    Finding {
        code: code.to_owned(),
        title: None,
        severity,
        claim: claim.to_owned(),
        evidence: vec![Evidence {
            path,
            observed: 0.31,
            threshold: 0.9,
            unit: "1".to_owned(),
        }],
        remedy: remedy.to_owned(),
        reproduce: None,
    }
}

/// A healthy run of `check` on a directory: all eight workloads, advice, nothing found.
pub fn healthy() -> Record {
    graded(Record {
        schema: RECORD_SCHEMA.to_owned(),
        tool: Tool {
            name: "diskproof".to_owned(),
            version: "0.1.0".to_owned(),
        },
        method: METHOD_VERSION,
        run_id: "3f2a91c07d6e4b58".to_owned(),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        note: None,
        host: host(),
        clock: ClockFacts {
            source: "CLOCK_MONOTONIC".to_owned(),
            resolution_ns: 1,
            cost_ns: 21.3,
        },
        plan: plan(),
        targets: vec![directory()],
        measurements: EIGHT
            .iter()
            .enumerate()
            .map(|(index, spec)| measurement(index, spec))
            .collect(),
        curve: Vec::new(),
        access: Vec::new(),
        surface: None,
        health: Vec::new(),
        verdict: None,
        findings: Vec::new(),
        advice: vec![
            Advice {
                setting: "random_page_cost".to_owned(),
                value: None,
                range: Some([1.4, 3.1]),
                why: "one random 8 kB read costs as much as 34.3 sequential ones; with 90 to 99 % \
                      of the pages found in memory that comes to this range"
                    .to_owned(),
                from: vec!["random-read-d1".to_owned(), "sequential-read".to_owned()],
            },
            Advice {
                setting: "effective_io_concurrency".to_owned(),
                value: Some("32".to_owned()),
                range: None,
                why: "32 reads in flight gave 11.9 times the rate of one".to_owned(),
                from: vec!["random-read-d1".to_owned(), "random-read-d32".to_owned()],
            },
            Advice {
                setting: "full_page_writes".to_owned(),
                value: None,
                range: None,
                why: "no measurement can show that the disk never tears a page".to_owned(),
                from: Vec::new(),
            },
        ],
        expectations: Vec::new(),
    })
}

/// A device that was only read.
pub fn read_only() -> Record {
    let mut record = healthy();
    record.plan = read_only_plan();
    record.plan.targets = vec!["/dev/nvme1n1".to_owned()];
    record.targets = vec![device()];
    record
        .measurements
        .retain(|m| m.workload.read_permille == 1000);
    for measurement in &mut record.measurements {
        measurement.workload.span_bytes = 3_840_755_982_336;
        measurement.device.disks = vec!["nvme1n1".to_owned()];
    }
    record.host.hypervisor = None;
    record.health = vec![health()];
    record.advice.clear();
    record
}

/// The health of [`device`], with everything in it.
pub fn health() -> DiskHealth {
    DiskHealth {
        disk: "nvme1n1".to_owned(),
        source: Some("smartctl 7.4".to_owned()),
        protocol: Some("NVMe".to_owned()),
        model: Some("SAMSUNG MZQL23T8HCLS-00A07".to_owned()),
        rotation_rpm: Some(0),
        passed: Some(true),
        temperature_celsius: Some(38),
        temperature_limit_celsius: Some(70),
        power_on_hours: Some(31_400),
        wear_percent: Some(12),
        spare_percent: Some(100),
        spare_threshold_percent: Some(10),
        reallocated_sectors: Some(0),
        media_errors: Some(2),
        unsafe_shutdowns: Some(7),
        written_bytes: Some(2_345_678_000_000_000),
        self_test: Some(SelfTest {
            status: "Extended: Completed without error".to_owned(),
            passed: Some(true),
            hours: Some(31_200),
            remaining_percent: None,
        }),
        alarms: vec!["its reliability is degraded by media or internal errors".to_owned()],
        ..DiskHealth::default()
    }
}

/// A run that broke off: interrupted, errors, buffered, unsettled, too short for intervals and
/// percentiles, thresholds missed.
pub fn partial() -> Record {
    let mut record = healthy();
    record.partial = true;
    record.ended_early = Some(
        "interrupted after 31 s (Ctrl-C); run it again without interrupting to get the rest"
            .to_owned(),
    );
    record.note = Some("after the controller swap, ticket 4711".to_owned());
    record.advice.clear();
    record.measurements.truncate(4);
    for measurement in &mut record.measurements {
        measurement.workload.cache = CachePolicy::Buffered;
        measurement.cache.used = CachePolicy::Buffered;
        measurement.cache.why = Some("the filesystem refuses O_DIRECT (EINVAL)".to_owned());
        measurement.device.accounted = None;
        measurement.device.unresolved =
            Some("overlayfs does not tell on which disk a file lies".to_owned());
    }
    record.targets[0].layers.clear();
    record.targets[0].unresolved =
        Some("overlayfs does not tell on which disk a file lies".to_owned());
    let failing = &mut record.measurements[2];
    let read = failing.ops.get_mut(&OpKind::Read).expect("it reads");
    read.errors = BTreeMap::from([("EIO".to_owned(), 12), ("EOF".to_owned(), 1)]);
    failing.stopped = StopReason::Errors;
    let cut = &mut record.measurements[3];
    cut.stopped = StopReason::Interrupted;
    cut.settled = Some(false);
    let mut short = op(98_120.0, 310_000, 8192);
    short.count = 50;
    short.iops.half_width_95 = None;
    (
        short.latency.p50,
        short.latency.p90,
        short.latency.p99,
        short.latency.p99_9,
        short.latency.p99_99,
    ) = (Some(310_000), None, None, None, None);
    cut.ops.insert(OpKind::Read, short);
    let expectation = |text: &str, observed, met| Expectation {
        expression: text.to_owned(),
        observed,
        met,
    };
    record.expectations = vec![
        expectation("random-read-d32.iops>=5000", Some(98_120.0), true),
        expectation("random-read-d1.p99<=100us", Some(163_000.0), false),
        expectation("commit-fdatasync.iops>=1000", None, false),
    ];
    record.findings = vec![finding(
        Severity::Failure,
        "device-errors",
        "13 of 57504 reads failed, 12 of them with EIO: the disk could not read its own data.",
        "Look at the kernel log and at the disk's health, and replace it.",
    )];
    record
}

/// Findings of every weight.
pub fn every_severity() -> Record {
    let mut record = healthy();
    record.findings = vec![
        finding(
            Severity::Failure,
            "served-from-cache",
            "random-read-d32 asked for 5.2 GiB, but the disk vda read only 1.6 GiB of it (31 %): \
             a cache answered the rest, so the figure is not the disk's.",
            "Use a larger file (--size 64G), or a filesystem that honours O_DIRECT.",
        ),
        finding(
            Severity::Warning,
            "disturbed",
            "Other processes moved 1.9 GiB during random-write-d32; the busiest was postgres (pid \
             812) with 1.7 GiB written.",
            "Stop it, or run again when the machine is quiet.",
        ),
        finding(
            Severity::Note,
            "virtual-disk",
            "vda is a virtio disk under kvm: a cache of the host may answer, and nothing inside \
             the machine can see that.",
            "Ask who runs the host for its cache mode.",
        ),
    ];
    record.findings[1].reproduce = Some("pidstat -d 1".to_owned());
    record
}

/// Two targets in one run.
pub fn two_targets() -> Record {
    let mut record = every_severity();
    let mut second = read_only();
    record.plan.targets.push("/dev/nvme1n1".to_owned());
    record.targets.append(&mut second.targets);
    second.measurements.iter_mut().for_each(|m| m.target = 1);
    record.measurements.truncate(3);
    record.measurements.append(&mut second.measurements);
    record.plan.workloads.retain(|w| {
        record
            .measurements
            .iter()
            .any(|m| m.workload.name == w.name)
    });
    record
}

/// Names that try to take over the terminal, very long paths, wide characters, absurd numbers.
pub fn hostile() -> Record {
    const EVIL: &str =
        "\u{1b}[2J\u{1b}]0;owned\u{7}x\r\ndiskproof: all is well\u{9b}31m\u{202e}drow\u{200b}";
    let mut record = every_severity();
    let path = format!(
        "/srv/{}/数据库/{EVIL}",
        "a-very-long-directory-name/".repeat(8)
    );
    record.plan.targets = vec![path.clone()];
    record.targets[0].path = path;
    record.targets[0].layers[1].model = Some(EVIL.to_owned());
    record.targets[0].layers[1].serial = Some("序列号".repeat(30));
    let disk = record.targets[0].layers[1].name.clone();
    record.health = vec![
        DiskHealth {
            disk: disk.clone(),
            alarms: vec![EVIL.to_owned()],
            source: Some(EVIL.to_owned()),
            ..health()
        },
        DiskHealth::unknown(&disk, EVIL),
    ];
    record.note = Some(EVIL.to_owned());
    record.host.name = EVIL.to_owned();
    record.findings[0].claim = EVIL.to_owned();
    record.findings[0].code = "long-".repeat(40);
    record.expectations = vec![Expectation {
        expression: EVIL.to_owned(),
        observed: Some(f64::MAX),
        met: false,
    }];
    record.advice[0].setting = "wide-设置-".repeat(20);
    record.measurements[0].workload.name = format!("{}{EVIL}", "w".repeat(90));
    record.plan.workloads[0].name = record.measurements[0].workload.name.clone();
    record.measurements[0].reproduce = format!("fio --name={EVIL}");
    let huge = record.measurements[1]
        .ops
        .get_mut(&OpKind::Read)
        .expect("it reads");
    huge.iops.value = 1e30;
    huge.throughput.value = 1e30;
    huge.latency.max = u64::MAX;
    record.measurements[2].ops.clear();
    record
}
