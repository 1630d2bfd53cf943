//! Records as runs make them, built in code: a healthy disk, a read-only device, a partial run, a
//! hostile one.

mod identity;
mod surveyed;
mod verdict;
mod workloads;

pub(crate) use identity::{device, directory, health, host};
pub(crate) use surveyed::{depths, surveyed};
pub(crate) use verdict::graded;
pub(crate) use workloads::{plan, read_only_plan};

use diskproof_model::advice::Advice;
use diskproof_model::expectation::{Expectation, Promise};
use diskproof_model::finding::{Cause, Evidence, Finding, Meaning, RateLimit, Severity};
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::*;
use diskproof_model::plan::*;
use diskproof_model::record::*;
use diskproof_model::row::*;
use std::collections::{BTreeMap, BTreeSet};
use workloads::{EIGHT, measurement, op};

/// What the findings of the fixtures say.
fn says(code: &str) -> Meaning {
    match code {
        "served-from-cache" => Meaning::NotTheDisk {
            cause: Cause::Cache,
        },
        "rate-limited" | "burst-exhausted" => Meaning::Limit {
            limit: RateLimit::Cap,
        },
        _ => Meaning::Doubtful,
    }
}

/// A finding of the given severity.
pub(crate) fn finding(severity: Severity, code: &str, claim: &str, remedy: &str) -> Finding {
    let path = "/measurements/3/data/device/accounted".to_owned();
    Finding {
        code: code.to_owned(),
        title: None,
        severity,
        says: says(code),
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

fn advice() -> Vec<Advice> {
    let advice = |setting: &str, why: &str, from: &[&str]| Advice {
        setting: setting.to_owned(),
        value: None,
        range: None,
        why: why.to_owned(),
        from: from.iter().map(|&name| name.to_owned()).collect(),
        default: None,
        condition: None,
    };
    let cost = "one random 8 kB read costs as much as 34.3 sequential ones; with 90 to 99 % of \
                the pages found in memory that comes to this range";
    let reads = "32 reads in flight gave 11.9 times the rate of one";
    vec![
        Advice {
            range: Some([1.4, 3.1]),
            ..advice(
                "random_page_cost",
                cost,
                &["random-read-d1", "sequential-read"],
            )
        },
        Advice {
            value: Some("32".to_owned()),
            ..advice(
                "effective_io_concurrency",
                reads,
                &["random-read-d1", "random-read-d32"],
            )
        },
        advice(
            "full_page_writes",
            "no measurement can show that the disk never tears a page",
            &[],
        ),
    ]
}

/// A healthy run of `check` on a directory: all eight workloads, advice, no findings.
pub(crate) fn healthy() -> Record {
    graded(Record {
        results: Vec::new(),
        burst_credits: Vec::new(),
        schema: RECORD_SCHEMA.to_owned(),
        tool: Tool {
            name: "diskproof".to_owned(),
            version: "0.1.0".to_owned(),
        },
        judging: 1,
        kept: Kept::FiguresOnly,
        dropped: Vec::new(),
        method: METHOD_VERSION,
        run_id: "3f2a91c07d6e4b58".to_owned(),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        failed: None,
        note: None,
        host: host(),
        silences: Vec::new(),
        first_answers: Vec::new(),
        clock: ClockFacts {
            source: "CLOCK_MONOTONIC".to_owned(),
            resolution_ns: 1,
            cost_ns: 21.3,
            wall: None,
        },
        plan: plan(),
        targets: vec![directory()],
        measurements: (0..8)
            .map(|index| measurement(index, &EIGHT[index]))
            .collect(),
        moved: None,
        health: Vec::new(),
        verdict: None,
        findings: Vec::new(),
        advice: advice(),
        expectations: Vec::new(),
    })
}

/// A device that was only read.
pub(crate) fn read_only() -> Record {
    let mut record = healthy();
    record.plan = read_only_plan();
    record.plan.targets = vec!["/dev/nvme1n1".to_owned()];
    record.targets = vec![device()];
    let only_reads = |row: &Row| row.data.workload.streams.is_only(OpKind::Read);
    record.measurements.retain(only_reads);
    for measurement in &mut record.measurements {
        measurement.data.span_bytes = 3_840_755_982_336;
        measurement.data.device.disks = vec!["nvme1n1".to_owned()];
    }
    record.host.hypervisor = None;
    record.health = vec![health()];
    record.advice.clear();
    record
}

/// A partial run: interrupted, errors, buffered, unsettled, too short for intervals and
/// percentiles, thresholds missed.
pub(crate) fn partial() -> Record {
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
        measurement.data.cache.used = CachePolicy::Buffered;
        measurement.data.cache.used = CachePolicy::Buffered;
        measurement.data.cache.why = Some("the filesystem refuses O_DIRECT (EINVAL)".to_owned());
        measurement.data.device.accounted = None;
        measurement.data.device.unresolved =
            Some("overlayfs does not tell on which disk a file lies".to_owned());
    }
    record.targets[0].layers.clear();
    record.targets[0].unresolved =
        Some("overlayfs does not tell on which disk a file lies".to_owned());
    let failing = &mut record.measurements[2];
    let read = failing.data.ops.get_mut(&OpKind::Read).expect("it reads");
    read.errors = BTreeMap::from([("EIO".to_owned(), 12), ("EOF".to_owned(), 1)]);
    failing.data.stopped = StopReason::Errors;
    let cut = &mut record.measurements[3];
    cut.data.stopped = StopReason::Interrupted;
    cut.figures.settled = Some(false);
    let mut short = op(98_120.0, 310_000, 8192);
    short.data.count = 50;
    short.figures.iops.half_width_95 = None;
    let latency = &mut short.figures.latency;
    (latency.p50, latency.p90, latency.p99) = (Some(310_000), None, None);
    (latency.p99_9, latency.p99_99) = (None, None);
    cut.data.ops.insert(OpKind::Read, short.data);
    cut.figures.ops.insert(OpKind::Read, short.figures);
    record.expectations = expectations();
    record.findings = vec![finding(
        Severity::Failure,
        "device-errors",
        "13 of 57504 reads failed, 12 of them with EIO: the disk could not read its own data.",
        "Look at the kernel log and at the disk's health, and replace it.",
    )];
    record
}

fn expectations() -> Vec<Expectation> {
    let expectation = |text: &str, observed, met| Expectation {
        expression: text.to_owned(),
        observed,
        interval: None,
        observed_at_least: None,
        met,
        undecided: false,
        decided_by_ns: None,
        objection: None,
        threshold: None,
        promise: None,
    };
    vec![
        Expectation {
            interval: Some([96_000.0, 100_240.0]),
            promise: Some(promise()),
            ..expectation("random-read-d32.iops>=95000", Some(98_120.0), true)
        },
        expectation("random-read-d32.iops>=5000", Some(98_120.0), true),
        expectation("random-read-d1.p99<=100us", Some(163_000.0), false),
        expectation("commit-fdatasync.iops>=1000", None, false),
        Expectation {
            interval: Some([96_000.0, 100_240.0]),
            undecided: true,
            decided_by_ns: Some(42_000_000_000),
            ..expectation("random-read-d32.iops>=97k", Some(98_120.0), false)
        },
    ]
}

fn promise() -> Promise {
    Promise {
        name: "8 KiB random reads".to_owned(),
        promised: 100_000.0,
        passes: 95_000.0,
        unit: "1/s".to_owned(),
    }
}

/// Findings of every severity.
pub(crate) fn every_severity() -> Record {
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
pub(crate) fn two_targets() -> Record {
    let mut record = every_severity();
    let mut second = read_only();
    record.plan.targets.push("/dev/nvme1n1".to_owned());
    record.targets.append(&mut second.targets);
    for measurement in &mut second.measurements {
        measurement.data.target = 1;
    }
    record.measurements.truncate(3);
    record.measurements.append(&mut second.measurements);
    let mut names = BTreeSet::new();
    for measurement in &record.measurements {
        names.insert(measurement.data.workload.name.clone());
    }
    record
        .plan
        .workloads_mut()
        .retain(|workload| names.contains(&workload.name));
    record
}

/// Names that try to take over the terminal, very long paths, wide characters, absurd numbers.
pub(crate) fn hostile() -> Record {
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
        objection: None,
        expression: EVIL.to_owned(),
        observed: Some(f64::MAX),
        interval: Some([f64::MIN, f64::MAX]),
        observed_at_least: None,
        met: false,
        undecided: true,
        decided_by_ns: Some(u64::MAX),
        threshold: None,
        promise: None,
    }];
    record.advice[0].setting = "wide-设置-".repeat(20);
    record.measurements[0].data.workload.name = format!("{}{EVIL}", "w".repeat(90));
    record.plan.workloads_mut()[0].name = record.measurements[0].data.workload.name.clone();
    record.measurements[0].figures.reproduce = format!("fio --name={EVIL}");
    let huge = record.measurements[1]
        .figures
        .ops
        .get_mut(&OpKind::Read)
        .expect("it reads");
    huge.iops.value = 1e30;
    huge.throughput.value = 1e30;
    huge.latency.max = u64::MAX;
    record.measurements[2].data.ops.clear();
    record
}
