//! From the command line to the printed page, exact to the last digit: check's own plan, on a
//! simulated disk, in virtual time.

use crate::program::Unwatched;
use clap::Parser as _;
use diskproof::commands::{Args, Verb};
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::data::RunData;
use diskproof_model::measurement::{DeviceUse, EngineUse, Measurement, OpKind};
use diskproof_model::plan::{
    ByteLimit, EngineChoice, EngineKind, Origin, Plan, Scratch, Stop, Task, Workload, Workloads,
};
use diskproof_model::record::{ClockFacts, Record, Tool};
use diskproof_model::target::{
    Filesystem, HostFacts, Layer, LayerKind, Link, TargetIdentity, TargetKind, WriteCache,
};
use diskproof_report::style::{Color, Style};
use diskproof_report::{html, json, terminal};

const GIB: u64 = 1 << 30;

/// Eight requests at a time, each 80 µs and 2 ns per byte, and up to half as much again.
fn fake_disk(block_bytes: u32) -> FakeDisk {
    let service_ns = 80_000 + 2 * u64::from(block_bytes);
    FakeDisk {
        service_ns,
        jitter_ns: service_ns / 2,
        channels: 8,
        size_bytes: GIB,
    }
}

fn disk() -> Layer {
    Layer {
        name: "nvme0n1".to_owned(),
        kind: LayerKind::Disk,
        device: "259:0".to_owned(),
        below: Vec::new(),
        size_bytes: 400 * GIB,
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        model: Some("FAKE DISK 8".to_owned()),
        serial: Some("F00D".to_owned()),
        firmware: Some("1.0".to_owned()),
        rotational: Some(false),
        scheduler: Some("none".to_owned()),
        queue_requests: Some(1023),
        request_bytes_max: Some(1 << 20),
        read_ahead_bytes: Some(128 << 10),
        write_cache: Some(WriteCache::WriteThrough),
        link: Some(Link {
            bus: "PCIe".to_owned(),
            speed: Some("8.0 GT/s PCIe x4".to_owned()),
            speed_max: None,
            bytes_per_second_max: None,
            device_bytes_per_second_max: None,
        }),
        discard: Some(true),
        ..Layer::default()
    }
}

fn target() -> TargetIdentity {
    TargetIdentity {
        path: "/srv/data".to_owned(),
        kind: TargetKind::Directory,
        size_bytes: 400 * GIB,
        free_bytes: Some(300 * GIB),
        device: "259:0".to_owned(),
        inode: 2,
        filesystem: Some(Filesystem {
            kind: "ext4".to_owned(),
            mount_point: "/srv".to_owned(),
            source: "/dev/nvme0n1".to_owned(),
            options: vec!["rw".to_owned(), "relatime".to_owned()],
            size_bytes: 400 * GIB,
            free_bytes: 300 * GIB,
            kept_free_bytes: None,
        }),
        layers: vec![disk()],
        unresolved: None,
    }
}

fn check_plan(flags: &[&str]) -> Plan {
    let words = ["diskproof", "check", "/srv/data", "--seed", "42"]
        .iter()
        .chain(flags);
    let Verb::Check(check) = Args::try_parse_from(words.clone()).unwrap().verb else {
        panic!("check was asked for")
    };
    let argv = words.map(|word| (*word).to_owned()).collect();
    Plan {
        origin: Origin::new("check", argv),
        ..diskproof::commands::check::check_plan(&check, &target()).unwrap()
    }
}

/// As a real run would have it: io_uring, and counters that agree.
fn measure(plan: &Plan) -> Vec<Measurement> {
    let mut start_ns = 0;
    let run = |workload| {
        let mut seen = simulate(
            workload,
            fake_disk(workload.block_bytes),
            plan.seed,
            &mut Unwatched,
        )
        .unwrap();
        (seen.start_ns, start_ns) = (
            start_ns + workload.warmup_ns,
            start_ns + workload.warmup_ns + seen.wall_ns,
        );
        let (asked, used) = (EngineChoice::Auto, EngineKind::Uring);
        seen.engine = EngineUse {
            asked,
            used,
            fallbacks: Vec::new(),
            features: vec!["fixed-buffers".to_owned()],
            depth: None,
            done_before_wait: None,
        };
        let (read_bytes, write_bytes) = (seen.asked.read_bytes, seen.asked.write_bytes);
        seen.device = DeviceUse {
            disks: vec!["nvme0n1".to_owned()],
            read_bytes,
            write_bytes,
            accounted: Some(1.0),
            ..DeviceUse::default()
        };
        seen.punted = Some(false);
        seen
    };
    plan.workloads().iter().map(run).collect()
}

fn record(flags: &[&str]) -> Record {
    record_of(check_plan(flags))
}

fn record_of(plan: Plan) -> Record {
    let measurements = measure(&plan);
    let facts = RunFacts {
        tool: Tool {
            name: "diskproof".to_owned(),
            version: "0.0.0".to_owned(),
        },
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        failed: None,
        note: None,
        host: HostFacts {
            name: "db1".to_owned(),
            kernel: "6.18.0".to_owned(),
            cpus: 8,
            memory_bytes: 64 * GIB,
            ..HostFacts::default()
        },
        silences: Vec::new(),
        first_answers: Vec::new(),
        clock: ClockFacts {
            source: "CLOCK_MONOTONIC".to_owned(),
            resolution_ns: 1,
            cost_ns: 21.5,
            wall: None,
        },
        plan,
        targets: vec![target()],
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    };
    let expected = [
        "random-read-d32.iops>=50000".parse().unwrap(),
        "commit-fdatasync.p99<=1us".parse().unwrap(),
    ];
    judge(facts, &RunData::from_measurements(measurements), &expected)
}

fn printed(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What is sent by mail and kept for years.
#[test]
fn record_of_a_whole_check_and_its_page_are_small() {
    let check = record(&["--time", "40s"]);
    let json = printed(|out| json::write_record(&check, out)).len();
    let page = printed(|out| html::write_record(&check, out)).len();
    assert!(json <= 170_000 && page <= 600_000, "{json} and {page}");
}

#[test]
fn record_of_a_check() {
    let figures = record(&["--time", "1s"]).figures_only();
    insta::assert_snapshot!(printed(|out| json::write_record(&figures, out)));
}

#[test]
fn page_of_a_check() {
    let style = Style {
        width: 80,
        color: Color::Plain,
    };
    insta::assert_snapshot!(terminal::record_page(
        &record(&["--quick"]),
        terminal::Detail::Short,
        &style
    ));
}

#[test]
fn commands_of_a_check() {
    let style = Style {
        width: 80,
        color: Color::Plain,
    };
    insta::assert_snapshot!(printed(|out| terminal::write_commands(
        &record(&["--time", "1s"]),
        &style,
        out
    )));
}

#[test]
fn equal_seeds_give_equal_records() {
    assert_eq!(record(&["--time", "1s"]), record(&["--time", "1s"]));
}

#[test]
fn paces_keep_their_promises() {
    for (flags, seconds, scratch_bytes) in [
        (&[][..], 60, 4 * GIB),
        (&["--quick"], 19, GIB),
        (&["--thorough"], 290, 16 * GIB),
        (&["--time", "12s"], 12, GIB),
    ] {
        let plan = check_plan(flags);
        let time_ns = plan.time_ns_max().unwrap();
        let first_write_ns = plan.first_write_ns().unwrap();
        assert_eq!(plan.time_limit_ns, Some(seconds * 1_000_000_000));
        assert!(
            time_ns + first_write_ns <= seconds * 1_000_000_000 && time_ns > seconds * 750_000_000,
            "{flags:?}: {time_ns} and {first_write_ns}"
        );
        let scratch = Scratch::of_size(scratch_bytes).filled_within(GIB, first_write_ns);
        assert_eq!(plan.scratch, Some(scratch));
        // What is written has a limit.
        assert_ne!(plan.write_limit(), ByteLimit::Unlimited);
    }
}

#[test]
fn read_only_leaves_the_writing_workloads_out() {
    let plan = check_plan(&["--read-only"]);
    let names: Vec<&str> = plan.workloads().iter().map(|w| w.name.as_str()).collect();
    assert_eq!(
        names,
        ["sequential-read", "random-read-d1", "random-read-d32"]
    );
    assert_eq!(plan.skipped.len(), 5);
}

/// The series of a record are for charts: an hour needs no more of it than two minutes do.
#[test]
fn an_hour_leaves_a_small_record_with_its_longest_latency() {
    let hour = Stop {
        time_ns: Some(3600 * 1_000_000_000),
        ..Stop::default()
    };
    let workload = Workload {
        depth: 4,
        rate: Some(500.0),
        stop: hour,
        ..Workload::named("random-read-d32")
    };
    let record = record_of(Plan {
        tasks: vec![Task::Workloads(Workloads::as_planned(vec![workload]))],
        ..check_plan(&[])
    });
    let read = &record.measurements[0].data.ops[&OpKind::Read];
    assert_eq!(read.count, 3600 * 500);
    assert!(
        read.series.cells.len() <= 1200 && read.series.total().ops == read.count,
        "{}",
        read.series.cells.len()
    );
    assert_eq!(
        read.series
            .cells
            .iter()
            .map(|cell| cell.latency_max_ns)
            .max(),
        Some(read.latency.max_ns())
    );
    let bytes = printed(|out| json::write_record(&record, out)).len();
    assert!(bytes < 400_000, "{bytes}");
}
