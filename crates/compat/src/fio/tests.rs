use super::normal::shortened;
use super::values::Base;
use super::*;
use crate::drop_in::Started;
use crate::fixture::{measurement, result, words};
use crate::jobs::{
    DescribedJob, DescribedJobs, JobAction, JobOption, JobRequest, JobSource, JobWorkload,
    SizeRange, StartFailure, WorkloadFile,
};
use crate::printer::{DropInError, ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{DiskTimes, DiskTotals, Measurement, OpKind, StopReason};
use diskproof_model::plan::{SyncCall, SyncPolicy, Workload};
use diskproof_model::request_log::{LOGGED_MAX, LoggedCall, LoggedRequest, RequestLog};
use diskproof_model::shape::LatencyTarget;
use diskproof_model::window::{Window, WindowLatency};
use std::path::Path;

fn request(line: &str) -> JobRequest {
    match (DROP_IN.start)(&words(line)) {
        Ok(Started::Jobs(request)) => *request,
        Ok(_) => panic!("{line}: no jobs"),
        Err(error) => panic!("{line}: {}", error.text()),
    }
}

fn option(key: &str, value: Option<&str>) -> JobOption {
    JobOption {
        key: key.to_owned(),
        value: value.map(str::to_owned),
    }
}

#[test]
fn options_before_the_first_name_apply_to_every_job() {
    let read = request("--rw=read --bs 8k --name=a --time_based --name b --numjobs=2 x.fio -");
    let JobSource::Options { global, jobs } = &read.sources[0] else {
        panic!("{:?}", read.sources)
    };
    assert_eq!(
        *global,
        [option("rw", Some("read")), option("bs", Some("8k"))]
    );
    assert_eq!(jobs[0].options, [option("time_based", None)]);
    assert_eq!((jobs[1].name.as_str(), read.sources.len()), ("b", 3));
    assert_eq!(read.action, JobAction::Run);
    assert_eq!(request("--showcmd x.fio").action, JobAction::ShowCommand);
}

/// As fio 3.33: their values stand only behind `=`.
#[test]
fn options_of_engines_need_no_value() {
    let line = "--name=a --ioengine=io_uring --hipri --fixedbufs --registerfiles --sqthread_poll \
                --rw=read";
    let read = request(line);
    let JobSource::Options { jobs, .. } = &read.sources[0] else {
        panic!("{:?}", read.sources)
    };
    let keys: Vec<&str> = jobs[0]
        .options
        .iter()
        .map(|option| &option.key[..])
        .collect();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert!(
        jobs[0].options[1..5]
            .iter()
            .all(|option| option.value.is_none())
    );
}

/// As fio 3.33: the engine that stands before an option decides.
#[test]
fn option_of_another_engine_is_none() {
    for line in [
        "--ioengine=pvsync2 --name=a --hipri --rw=read",
        "--name=a --ioengine=libaio --userspace_reap --ioengine=psync --rw=read",
        "--name=a --ioengine=libaio --userspace_reap=0 --rw=read",
    ] {
        request(line);
    }
    for (line, option) in [
        ("--name=a --hipri --ioengine=io_uring", "--hipri"),
        ("--hipri --name=a", "--hipri"),
        ("--name=a --ioengine=libaio --fixedbufs=1", "--fixedbufs=1"),
        (
            "--ioengine=libaio --name=a --ioengine=psync --userspace_reap",
            "--userspace_reap",
        ),
        (
            "--name=a --ioengine=libaio --name=b --userspace_reap",
            "--userspace_reap",
        ),
        ("--name=a --nowait=0", "--nowait=0"),
    ] {
        let Err(DropInError::Usage(text)) = (DROP_IN.start)(&words(line)) else {
            panic!("{line}");
        };
        let expected = format!("unrecognized option '{option}'");
        assert!(text.contains(&expected), "{line}: {text}");
    }
}

#[test]
fn wrong_command_lines_are_refused() {
    for (line, text) in [
        ("", "No job(s) defined"),
        ("--output-format=xml --name=a", "normal, json, json+"),
        ("--client=host x.fio", "start diskproof on each machine"),
        ("--name", "requires an argument"),
        ("--bogus", "unrecognized option '--bogus'"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().contains(text), "{line}: {}", error.text()),
            Ok(_) => panic!("{line}"),
        }
    }
}

#[test]
fn numbers_are_shortened_as_fio_does_it() {
    let binary = |number| shortened(number, 4, Base::Binary, "B");
    assert_eq!(binary(8_118_272), "7928KiB");
    assert_eq!(binary(100_139_008), "95.5MiB");
    assert_eq!(shortened(1_048_576, 4, Base::Decimal, "B"), "1049kB");
    assert_eq!(shortened(100_139_008, 4, Base::Decimal, "B"), "100MB");
    assert_eq!(shortened(24_436, 4, Base::Decimal, ""), "24.4k");
    assert_eq!(shortened(4_764_400, 6, Base::Decimal, ""), "4764.4k");
    assert_eq!(shortened(3096, 4, Base::Decimal, ""), "3096");
}

/// Two seconds of 1000 reads per second, each of 100 or 200 us.
fn reads(name: &str) -> Measurement {
    let workload = Workload {
        block_bytes: 4096,
        ..Workload::named(name)
    };
    let mut read = measurement(&workload, OpKind::Read, 2000, 2_000_000_000);
    let op = read.ops.get_mut(&OpKind::Read).unwrap();
    op.latency.record_many(100_000, 1000);
    op.latency.record_many(200_000, 1000);
    let cell = diskproof_model::series::Cell {
        ops: 10,
        bytes: 40_960,
        latency_sum_ns: 1_500_000,
        ..Default::default()
    };
    for index in 0..200 {
        op.series.add(index * 10_000_000, &cell, 8192);
    }
    read
}

/// The printer of two jobs.
fn printer(line: &str) -> Box<dyn ToolPrinter> {
    let job = |name: &str| DescribedJob {
        name: name.to_owned(),
        workloads: vec![JobWorkload {
            name: name.to_owned(),
            target: 0,
            files: Vec::new(),
        }],
        copies: 1,
        options: [
            ("rw", Some("randread")),
            ("group_reporting", None),
            ("write_lat_log", Some("x")),
            ("log_avg_msec", Some("1000")),
            ("write_hist_log", Some("x")),
            ("log_hist_msec", Some("2000")),
            ("log_hist_coarseness", Some("6")),
        ]
        .map(|(key, value)| option(key, value))
        .to_vec(),
        ..DescribedJob::default()
    };
    let described = DescribedJobs {
        global: Vec::new(),
        jobs: vec![job("a"), job("b")],
    };
    (request(line).printer)(described)
}

fn printed(line: &str) -> ToolText {
    let mut printer = printer(line);
    let begin = printer.begin();
    let end = printer.end(&ToolResult {
        unix_ns: 1_700_000_000_000_000_000,
        ..result(&[reads("a"), reads("b")])
    });
    ToolText {
        stdout: begin + &end.stdout,
        ..end
    }
}

#[test]
fn layout_of_a_new_file_is_a_line_of_the_normal_output() {
    let line = "a: Laying out IO file (1 file / 16MiB)\n";
    let printed = |more: &str| {
        let mut printer = printer(&format!("--name=a {more}"));
        let (begin, line) = (printer.begin(), printer.laying_out("a", 16 << 20));
        (begin + &line, printer.end(&result(&[])).stdout)
    };
    assert!(printed("").0.ends_with(line));
    assert_eq!(printed("--output-format=json").0, "");
    let (live, saved) = printed("--output=x");
    assert!(live.is_empty() && saved.contains(line), "{saved}");
}

#[test]
fn normal_output_has_the_lines_of_fio() {
    let text = printed("--name=a").stdout;
    for line in [
        "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
         ioengine=psync, iodepth=1\n",
        "fio-3.33\nStarting 2 processes\n\n",
        "a: (groupid=0, jobs=2): err= 0: pid=",
        "\n  read: IOPS=2000, BW=8000KiB/s (8192kB/s)(15.6MiB/2000msec)\n",
        "\n    clat (usec): min=100, max=200, avg=150.00, stdev=50.01\n",
        "\n    clat percentiles (usec):\n     |  1.00th=[  100],  5.00th=[  100], ",
        "\n   bw (  KiB/s): min= 8000, max= 8000, per=100.00%, avg=8000.00, stdev= 0.00, \
         samples=8\n   iops        : min= 2000, max= 2000, avg=2000.00, stdev= 0.00, samples=8\n",
        "\n  lat (usec)   : 250=100.00%\n",
        "\n     issued rwts: total=4000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n",
        "\nRun status group 0 (all jobs):\n   READ: bw=8000KiB/s (8192kB/s), \
         4000KiB/s-4000KiB/s (4096kB/s-4096kB/s), io=15.6MiB (16.4MB), run=2000-2000msec\n",
    ] {
        assert!(text.contains(line), "{line}\n---\n{text}");
    }
}

#[test]
fn json_and_terse_have_the_same_figures() {
    let text = printed("--name=a --output-format=json+,terse").stdout;
    let (terse, json) = text.split_once('\n').unwrap();
    let fields: Vec<&str> = terse.split(';').collect();
    assert_eq!(
        fields[..9].join(";"),
        "3;fio-3.33;a;0;0;16000;8000;2000;2000"
    );
    // Without a disk: 5 before the directions, 41 for each, and 34 behind them.
    assert_eq!(fields.len(), 5 + 2 * 41 + 5 + 7 + 22);
    for line in [
        "\"jobname\" : \"a\"",
        "\"io_bytes\" : 16384000,\n        \"io_kbytes\" : 16000",
        "\"iops\" : 2000.000000",
        "\"50.000000\" : 99840",
        "\"bins\" : {\n            \"99840\" : 2000,",
    ] {
        assert!(json.contains(line), "{line}\n---\n{json}");
    }
}

#[test]
fn output_so_far_has_finished_jobs_too() {
    let mut printer = printer("--status-interval=500ms --output-format=terse --name=a");
    assert_eq!(printer.interval_ns(), Some(500_000_000));
    let running = [reads("b")];
    let results = ResultsSoFar {
        disks: &[],
        measurements: &running,
        elapsed_ns: 2_000_000_000,
        unix_ns: 0,
    };
    let kib = |text: &str| text.split(';').nth(5).map(str::to_owned);
    assert_eq!(kib(&printer.so_far(&results)), Some("8000".to_owned()));
    assert_eq!(printer.measured(&reads("a")), "");
    let both = printer.so_far(&results);
    assert_eq!(kib(&both), Some("16000".to_owned()));
    assert_eq!(both.lines().count(), 1);
    for (line, text) in [
        ("--status-interval=0", "at least 100 ms"),
        ("--status-interval=1x", "as in 1s"),
    ] {
        let error = (DROP_IN.start)(&words(&format!("{line} --name=a")));
        assert!(error.is_err_and(|error| error.text().contains(text)));
    }
}

#[test]
fn output_so_far_comes_first_in_a_file() {
    let mut printer = printer("--status-interval=1 --output=x --output-format=terse --name=a");
    let measurements = [reads("a"), reads("b")];
    let so_far = printer.so_far(&ResultsSoFar {
        disks: &[],
        measurements: &measurements[..1],
        elapsed_ns: 1_000_000_000,
        unix_ns: 0,
    });
    assert_eq!(so_far, "");
    let end = printer.end(&result(&measurements));
    let of_line = |line: &str| line.split(';').nth(5).map(str::to_owned);
    let found: Vec<_> = end.stdout.lines().filter_map(of_line).collect();
    assert_eq!(found, ["8000", "16000"]);
}

#[test]
fn the_error_field_has_the_number_of_what_ended_a_job() {
    let error = |measurements: &[Measurement], error| {
        let end = printer("--output-format=terse --name=a").end(&ToolResult {
            error,
            ..result(measurements)
        });
        let field = end.stdout.split(';').nth(4).unwrap();
        field.parse::<u32>().unwrap()
    };
    // Before its first request, and during the run.
    assert_eq!(error(&[], Some("EDQUOT")), 122);
    let mut failed = reads("a");
    let read = failed.ops.get_mut(&OpKind::Read).unwrap();
    read.errors.insert("EREMOTEIO".to_owned(), 1);
    assert_eq!(error(&[failed], Some("EREMOTEIO")), 121);
    assert_eq!(error(&[reads("a")], None), 0);
    // Another job failed.
    assert_eq!(error(&[reads("a")], Some("EIO")), 0);
}

/// As fio 3.33 with `--name=a --max_latency=1 --numjobs=3`.
#[test]
fn exit_code_of_a_failed_run_is_the_number_of_failed_jobs() {
    let mut printer = printer("--name=a");
    let mut failed = reads("a");
    failed.stopped = StopReason::TooSlow;
    failed.workload.workers = 3;
    printer.end(&result(&[failed, reads("b")]));
    assert_eq!(printer.failed_code(), Some(3));
    printer.end(&result(&[reads("a")]));
    assert_eq!(printer.failed_code(), None);
}

#[test]
fn failed_job_counts_once_whatever_the_number_of_its_files() {
    let workload = |target: usize| JobWorkload {
        name: "a".to_owned(),
        target,
        files: Vec::new(),
    };
    let failed = |target: usize| {
        let mut failed = reads("a");
        failed.stopped = StopReason::TooSlow;
        failed.target = target;
        failed
    };
    // The copies of a job in two directories are two jobs to fio.
    for (files, jobs) in [(2, 1), (1, 2)] {
        let job = DescribedJob {
            name: "a".to_owned(),
            workloads: vec![workload(0), workload(1)],
            copies: 2 / files as u64,
            files,
            ..DescribedJob::default()
        };
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![job],
        };
        let mut printer = (request("--name=a").printer)(described);
        printer.end(&result(&[failed(0), failed(1)]));
        assert_eq!(printer.failed_code(), Some(jobs), "{files}");
    }
}

fn disk(name: &str, members: &[&str], reads: u64) -> DiskTotals {
    DiskTotals {
        name: name.to_owned(),
        members: members.iter().map(|&member| member.to_owned()).collect(),
        read_ops: reads,
        write_ops: 3,
        times: DiskTimes {
            read_merges: 1,
            write_merges: 2,
            read_ms: 621,
            write_ms: 4,
            queued_ms: 625,
            busy_ms: 638,
            elapsed_ms: 1000,
        },
    }
}

#[test]
fn disk_stats_have_the_counts_and_the_busy_share() {
    let text = |disks: &[DiskTotals], line: &str| {
        let result = ToolResult {
            disks,
            ..result(&[])
        };
        printer(line).end(&result).stdout
    };
    let sda = [disk("sda", &[], 12_617)];
    let normal = text(&sda, "--name=a");
    let lines = "\n\nDisk stats (read/write):\n  sda: ios=12617/3, merge=1/2, ticks=621/4, \
                 in_queue=625, util=63.80%\n";
    assert!(normal.ends_with(lines), "{normal}");
    assert!(!text(&[], "--name=a").contains("Disk stats"));
    let terse = text(&sda, "--minimal --name=a");
    let end = ";sda;12617;3;1;2;621;4;625;63.80%\n";
    assert!(terse.ends_with(end), "{terse}");
    assert!(!text(&sda, "--minimal --terse-version=2 --name=a").contains("sda"));
    let json = text(&sda, "--output-format=json --name=a");
    assert!(json.contains("\"read_ticks\" : 621"), "{json}");
    assert!(!text(&[], "--output-format=json --name=a").contains("disk_util"));
}

/// As fio prints it for a mirror of two disks.
#[test]
fn disk_stats_of_a_volume_have_the_means_of_its_members() {
    let disks = [
        disk("dm-0", &["sda", "sdb"], 30),
        disk("sda", &[], 10),
        disk("sdb", &[], 21),
    ];
    let result = ToolResult {
        disks: &disks,
        ..result(&[])
    };
    let normal = printer("--name=a").end(&result).stdout;
    let line = "    dm-0: ios=30/3, merge=1/2, ticks=621/4, in_queue=625, util=63.80%, \
                aggrios=15/3, aggrmerge=1/2, aggrticks=621/4, aggrin_queue=625, \
                aggrutil=63.80%\n  sda: ios=10/3";
    assert!(normal.contains(line), "{normal}");
    let terse = printer("--name=a --minimal").end(&result).stdout;
    assert!(terse.contains(";63.80%;slaves;15;3;1;2;621;4;625;63.80%;sda;"));
    let json = printer("--name=a --output-format=json").end(&result).stdout;
    assert_eq!(json.matches("\"aggr_read_ios\" : 15,").count(), 1);
    assert!(json.contains("\"aggr_write_merge\" : 2,"));
}

/// The numbers of fields of fio 3.33, without a disk.
#[test]
fn terse_lines_have_as_many_fields_as_those_of_fio() {
    for (version, unified, fields) in [
        ("2", "none", 161),
        ("2", "mixed", 79),
        ("2", "both", 202),
        ("3", "none", 121),
        ("3", "mixed", 80),
        ("3", "both", 162),
        ("4", "none", 162),
        ("4", "mixed", 80),
        ("4", "both", 203),
        ("5", "none", 180),
        ("5", "mixed", 86),
        ("5", "both", 227),
    ] {
        let job = DescribedJob {
            name: "a".to_owned(),
            workloads: vec![JobWorkload {
                name: "a".to_owned(),
                target: 0,
                files: Vec::new(),
            }],
            copies: 1,
            options: vec![option("unified_rw_reporting", Some(unified))],
            ..DescribedJob::default()
        };
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![job],
        };
        let line = format!("--name=a --minimal --terse-version={version}");
        let text = (request(&line).printer)(described).end(&result(&[reads("a")]));
        let found = text.stdout.trim_end().split(';').count();
        assert_eq!(found, fields, "{version} {unified}");
    }
}

/// A group has the options of its last job, and the name and description of its first.
#[test]
fn group_shows_the_options_of_its_last_job() {
    let job = |name: &str, percent: &str| DescribedJob {
        name: name.to_owned(),
        workloads: vec![JobWorkload {
            name: name.to_owned(),
            target: 0,
            files: Vec::new(),
        }],
        copies: 1,
        options: vec![
            option("ba", Some("8k")),
            option("group_reporting", None),
            option("description", Some(name)),
            option("percentile_list", Some(percent)),
            option("continue_on_error", Some("all")),
        ],
        ..DescribedJob::default()
    };
    let described = DescribedJobs {
        global: Vec::new(),
        jobs: vec![job("a", "50"), job("b", "90")],
    };
    let mut failed = reads("a");
    let read = failed.ops.get_mut(&OpKind::Read).unwrap();
    read.errors.insert("EIO".to_owned(), 3);
    let all = [failed, reads("b")];
    let print = |form: &str| {
        let line = format!("--name=a --output-format={form}");
        (request(&line).printer)(described.clone())
            .end(&result(&all))
            .stdout
    };
    let json: serde_json::Value = serde_json::from_str(&print("json")).unwrap();
    let only = &json["jobs"][0];
    assert_eq!(json["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&only["jobname"], &only["desc"]),
        (&"a".into(), &"a".into())
    );
    assert_eq!(only["job options"]["percentile_list"], "90");
    assert_eq!(only["job options"]["ba"], "8k");
    assert_eq!(only["job options"].get("name"), None);
    let percentiles = only["read"]["clat_ns"]["percentile"].as_object().unwrap();
    assert_eq!(Vec::from_iter(percentiles.keys()), ["90.000000"]);
    assert_eq!(
        (&only["total_err"], &only["first_error"]),
        (&3.into(), &5.into())
    );
    assert!(print("terse").ends_with(";3;5;a\n"));
    assert!(print("normal").contains("     errors    : total=3, first_error=5/<EIO>\n"));
}

#[test]
fn syncs_are_counted_as_by_fio() {
    let syncs = |policy: SyncPolicy| {
        let mut one = reads("a");
        one.workload.sync = policy;
        let mut sync = one.ops[&OpKind::Read].clone();
        sync.latency = LatencyHistogram::new();
        sync.latency.record(5000);
        one.ops.insert(OpKind::Sync, sync);
        let end = printer("--name=a --output-format=json").end(&result(&[one]));
        let json: serde_json::Value = serde_json::from_str(&end.stdout).unwrap();
        json["jobs"][0]["sync"]["total_ios"].as_u64().unwrap()
    };
    assert_eq!(syncs(SyncPolicy::AtEnd), 0);
    let call = SyncCall::Fsync;
    assert_eq!(syncs(SyncPolicy::Every { writes: 32, call }), 1);
    let call = SyncCall::Fdatasync;
    assert_eq!(syncs(SyncPolicy::Every { writes: 32, call }), 0);
}

/// The real fio counts 5 fsyncs in `rw=write fsync=4 fdatasync=6 size=96k`, which has 7 syncs.
#[test]
fn calls_of_fdatasync_beside_fsync_are_not_counted() {
    let mut one = reads("a");
    let mut counted = one.ops[&OpKind::Read].clone();
    for (kind, count) in [(OpKind::Write, 24), (OpKind::Sync, 7)] {
        counted.latency = LatencyHistogram::new();
        for _ in 0..count {
            counted.latency.record(5000);
        }
        one.ops.insert(kind, counted.clone());
    }
    let order = serde_json::json!({
        "draws": {"job": 1},
        "kinds": [],
        "read_percent": 0,
        "unit_bytes": 4096,
        "places": {"is_random": false, "is_mapped": false, "gap_bytes": 0},
        "files": {
            "count": 1, "part_start": 0, "part_bytes": 98304, "first_start": 0, "start": 0,
            "lap_bytes": 98304, "file_bytes": 98304, "service": "round-robin", "turn_ops": 1,
            "open_max": 1,
        },
        "syncs": [{"call": "fsync", "writes": 4}, {"call": "fdatasync", "writes": 6}],
    });
    one.workload.shape.order.fio = Some(serde_json::from_value(order).unwrap());
    let end = printer("--name=a --output-format=json").end(&result(&[one]));
    let json: serde_json::Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(json["jobs"][0]["sync"]["total_ios"], 5);
}

#[test]
fn times_of_syncs_are_hidden_with_those_of_completions() {
    let printed = |options: Vec<JobOption>, line: &str| {
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![DescribedJob {
                name: "a".to_owned(),
                workloads: vec![JobWorkload {
                    name: "a".to_owned(),
                    target: 0,
                    files: Vec::new(),
                }],
                copies: 1,
                options,
                ..DescribedJob::default()
            }],
        };
        let mut one = reads("a");
        one.workload.sync = SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fsync,
        };
        let sync = one.ops[&OpKind::Read].clone();
        one.ops.insert(OpKind::Sync, sync);
        (request(line).printer)(described)
            .end(&result(&[one]))
            .stdout
    };
    let text = |options: Vec<JobOption>| printed(options, "--name=a");
    assert!(text(Vec::new()).contains("    sync (usec): "));
    let has_percentiles = |options: Vec<JobOption>| {
        let json = printed(options, "--name=a --output-format=json");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["jobs"][0]["sync"]["lat_ns"]
            .get("percentile")
            .is_some()
    };
    let without = || option("clat_percentiles", Some("0"));
    assert!(has_percentiles(Vec::new()));
    assert!(!has_percentiles(vec![without()]));
    assert!(has_percentiles(vec![
        without(),
        option("lat_percentiles", Some("1"))
    ]));
    let hidden = text(vec![option("disable_clat", Some("1"))]);
    // The number stays.
    assert!(!hidden.contains("    sync ("), "{hidden}");
    assert!(
        hidden.contains("issued rwts: total=2000,0,0,2000 "),
        "{hidden}"
    );
}

#[test]
fn heading_has_the_names_and_sizes_of_fio() {
    let heading = |rw: &str, sizes: [(u64, u64); 3], base: Base| {
        let described = DescribedJobs {
            global: vec![option("bs", Some("64k"))],
            jobs: vec![DescribedJob {
                name: "a".to_owned(),
                copies: 1,
                options: vec![option("readwrite", Some(rw))],
                block_sizes: sizes.map(|(least, most)| SizeRange { least, most }),
                base,
                ..DescribedJob::default()
            }],
        };
        (request("--name=a").printer)(described).begin()
    };
    let default = (4096, 4096);
    let text = heading("randread:8", [default; 3], Base::Binary);
    assert!(text.contains("rw=randread, bs=(R) 4096B-4096B, "), "{text}");
    let sizes = [(65_536, 65_536), (4096, 16_384), (1 << 20, 1 << 20)];
    let text = heading("readwrite", sizes, Base::Binary);
    let wanted = "rw=rw, bs=(R) 64.0KiB-64.0KiB, (W) 4096B-16.0KiB, (T) 1024KiB-1024KiB, ";
    assert!(text.contains(wanted), "{text}");
    let sizes = [(4000, 16_000), default, (1 << 20, 1 << 20)];
    let text = heading("read", sizes, Base::Decimal);
    let wanted = "bs=(R) 4000B-16.0kB, (W) 4096B-4096B, (T) 1049kB-1049kB, ";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn heading_counts_threads_and_processes() {
    let starting = |threads: &[(bool, u64)]| {
        let mut jobs = Vec::new();
        for (is_thread, copies) in threads {
            jobs.push(DescribedJob {
                name: "a".to_owned(),
                copies: *copies,
                options: is_thread
                    .then(|| option("thread", None))
                    .into_iter()
                    .collect(),
                ..DescribedJob::default()
            });
        }
        let described = DescribedJobs {
            global: Vec::new(),
            jobs,
        };
        let text = (request("--name=a").printer)(described).begin();
        text.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(starting(&[(false, 1)]), "Starting 1 process");
    assert_eq!(starting(&[(true, 3)]), "Starting 3 threads");
    assert_eq!(
        starting(&[(true, 2), (false, 1)]),
        "Starting 2 threads and 1 process"
    );
}

#[test]
fn jobs_of_a_group_show_the_same_latencies() {
    let error = |options: &[(&str, Option<&str>)], group: usize| {
        let first = DescribedJob {
            name: "a".to_owned(),
            ..DescribedJob::default()
        };
        let second = DescribedJob {
            name: "b".to_owned(),
            group,
            options: options
                .iter()
                .map(|(key, value)| option(key, *value))
                .collect(),
            ..DescribedJob::default()
        };
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![first, second],
        };
        described.group_error()
    };
    let shown = ("lat_percentiles", Some("1"));
    let together = ("group_reporting", None);
    let wanted = "lat_percentiles in job: b differs from group";
    assert_eq!(error(&[shown, together], 0).as_deref(), Some(wanted));
    assert_eq!(error(&[shown, together], 1), None);
    assert_eq!(error(&[shown], 0), None);
    // As fio 3.33; without a duration no job ends so.
    let steady = ("ss", Some("iops:5%"));
    let lasting = ("steadystate_duration", Some("1"));
    let rejected = error(&[steady, lasting], 0).unwrap_or_default();
    assert!(
        rejected.starts_with("job rejected: steadystate"),
        "{rejected}"
    );
    assert_eq!(error(&[steady, lasting], 1), None);
    assert_eq!(error(&[steady], 0), None);
    assert_eq!(
        error(&[shown, together, ("disable_lat", Some("1"))], 0),
        None
    );
}

#[test]
fn job_that_did_not_run_has_no_depth() {
    let text = |measurements: &[Measurement]| {
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![DescribedJob {
                name: "a".to_owned(),
                workloads: vec![JobWorkload {
                    name: "a".to_owned(),
                    target: 0,
                    files: Vec::new(),
                }],
                copies: 1,
                ..DescribedJob::default()
            }],
        };
        let line = "--name=a --output-format=json";
        (request(line).printer)(described)
            .end(&result(measurements))
            .stdout
    };
    assert!(text(&[reads("a")]).contains("\"latency_depth\" : 1"));
    let created = text(&[]);
    assert!(created.contains("\"jobname\" : \"a\""), "{created}");
    assert!(!created.contains("latency_target"), "{created}");
}

/// The real fio then ends with error 110.
#[test]
fn request_above_the_latency_target_at_depth_1_is_an_error() {
    for (depth, percent, error) in [(1, 100.0, 110), (1, 99.0, 0), (2, 100.0, 0)] {
        let mut one = reads("a");
        one.workload.depth = depth;
        one.workload.shape.latency_target = Some(LatencyTarget {
            latency_ns: 1,
            percent,
            window_ns: 1,
        });
        let end = printer("--name=a --output-format=json").end(&result(&[one]));
        let json: serde_json::Value = serde_json::from_str(&end.stdout).unwrap();
        assert_eq!(json["jobs"][0]["error"], error, "{depth} {percent}");
    }
}

/// The real fio leaves them of a job with create_only, and of one whose opendir finds nothing.
#[test]
fn copies_that_move_nothing_have_empty_logs() {
    let job = |name: &str| DescribedJob {
        name: name.to_owned(),
        options: vec![
            option("write_bw_log", Some("x")),
            option("write_hist_log", Some("x")),
        ],
        copies: 2,
        ..DescribedJob::default()
    };
    let described = DescribedJobs {
        global: Vec::new(),
        jobs: vec![job("a"), job("b")],
    };
    let mut printer = (request("--name=a").printer)(described);
    let mut names = Vec::new();
    for file in printer.files(&result(&[])) {
        assert_eq!(file.text, "");
        names.push(file.path.to_string_lossy().into_owned());
    }
    let mut wanted = Vec::new();
    for number in 1..=4 {
        wanted.push(format!("x_bw.{number}.log"));
        wanted.push(format!("x_clat_hist.{number}.log"));
    }
    assert_eq!(names, wanted);
}

#[test]
fn job_that_finds_no_file_has_its_depth() {
    let described = DescribedJobs {
        global: Vec::new(),
        jobs: vec![DescribedJob {
            name: "a".to_owned(),
            options: vec![option("opendir", Some("sub")), option("iodepth", Some("4"))],
            copies: 1,
            ..DescribedJob::default()
        }],
    };
    let end = (request("--name=a --output-format=json").printer)(described).end(&result(&[]));
    let json: serde_json::Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(json["jobs"][0]["latency_depth"], 4);
    assert_eq!(json["jobs"][0]["latency_percentile"], 100.0);
}

/// `significant_figures=3` of fio 3.33.
#[test]
fn numbers_have_the_digits_that_a_job_asks_for() {
    let described = || DescribedJobs {
        global: vec![option("significant_figures", Some("3"))],
        jobs: vec![DescribedJob {
            name: "a".to_owned(),
            workloads: vec![JobWorkload {
                name: "a".to_owned(),
                target: 0,
                files: Vec::new(),
            }],
            copies: 1,
            block_sizes: [SizeRange {
                least: 4096,
                most: 65_536,
            }; 3],
            ..DescribedJob::default()
        }],
    };
    let heading = (request("--name=a").printer)(described()).begin();
    assert!(heading.contains("(R) 4.0KiB-64KiB, "), "{heading}");
    let text = (request("--name=a").printer)(described()).end(&result(&[reads("a")]));
    let text = text.stdout;
    assert!(text.contains("BW=3.9MiB/s (4.1MB/s)(7.8MiB/"), "{text}");
    assert!(text.contains("io=7.8MiB (8.2MB)"), "{text}");
}

#[test]
fn base_of_units_decides_which_one_is_shown_first() {
    let text = |base: Base| {
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![DescribedJob {
                name: "a".to_owned(),
                workloads: vec![JobWorkload {
                    name: "a".to_owned(),
                    target: 0,
                    files: Vec::new(),
                }],
                copies: 1,
                base,
                ..DescribedJob::default()
            }],
        };
        let text = (request("--name=a").printer)(described).end(&result(&[reads("a")]));
        text.stdout
    };
    let (binary, decimal) = (text(Base::Binary), text(Base::Decimal));
    assert!(
        binary.contains("BW=4000KiB/s (4096kB/s)(8000KiB/"),
        "{binary}"
    );
    assert!(binary.contains("io=8000KiB (8192kB)"), "{binary}");
    assert!(
        decimal.contains("BW=4096kB/s (4000KiB/s)(8192kB/"),
        "{decimal}"
    );
    assert!(decimal.contains("   bw (   kB/s): "), "{decimal}");
    assert!(decimal.contains("io=8192kB (8000KiB)"), "{decimal}");
}

#[test]
fn percentiles_have_the_order_and_the_columns_of_fio() {
    let described = DescribedJobs {
        global: Vec::new(),
        jobs: vec![DescribedJob {
            name: "a".to_owned(),
            workloads: vec![JobWorkload {
                name: "a".to_owned(),
                target: 0,
                files: Vec::new(),
            }],
            copies: 1,
            options: vec![option("lat_percentiles", Some("1"))],
            ..DescribedJob::default()
        }],
    };
    let mut read = reads("a");
    let op = read.ops.get_mut(&OpKind::Read).unwrap();
    op.latency = LatencyHistogram::new();
    op.latency.record_many(600, 1000);
    op.latency.record_many(7_700_000, 1000);
    let text = (request("--name=a").printer)(described)
        .end(&result(&[read]))
        .stdout;
    let completed = text.find("    clat percentiles (nsec):\n").unwrap();
    assert!(completed < text.find("    lat percentiles (nsec):\n").unwrap());
    // Seven digits leave room for three of them.
    let first = text[completed..].lines().nth(1).unwrap();
    assert!(first.starts_with("     |  1.00th=[    "), "{first}");
    assert_eq!(first.matches("th=[").count(), 3, "{first}");
}

/// The questions of test suites (blktests, xfstests) and of scripts.
#[test]
fn probes_of_scripts_are_answered_as_by_fio() {
    let answer = |line: &str| match (DROP_IN.start)(&words(line)) {
        Ok(Started::Text(text)) => (0, text),
        Ok(_) => panic!("{line}"),
        Err(DropInError::Code(code, text)) => (code, text),
        Err(error) => (DROP_IN.exits.usage, error.printed()),
    };
    for line in [
        "--parse-only --terse-version=4",
        "--parse-only",
        "--showcmd",
    ] {
        assert_eq!(answer(line), (0, ToolText::default()), "{line}");
    }
    assert_eq!(answer("--parse-only --terse-version=9").0, 1);
    assert_eq!(answer("--terse-version=4").0, 1);
    assert_eq!(answer("-v").1.stdout, "fio-3.33\n");
    assert_eq!(answer("--version -v").1.stdout, "fio-3.33\nfio-3.33\n");
    assert!(
        answer("--help")
            .1
            .stdout
            .starts_with("fio-3.33\nfio [options]")
    );
    assert!(answer("--cmdhelp=zonemode").1.stdout.contains("zbd"));
    assert!(answer("--cmdhelp").1.stdout.contains("\nzonemode "));
    assert_eq!(answer("--cmdhelp=nosuch").0, 0);
    assert!(answer("--enghelp").1.stdout.contains("\n\tio_uring\n"));
    assert!(
        answer("--enghelp=libaio")
            .1
            .stdout
            .contains("cmdprio_bssplit ")
    );
    assert_eq!(answer("--enghelp=nosuch").0, 1);
}

#[test]
fn logs_of_latencies_have_the_columns_of_fio() {
    let mut read = reads("a");
    let op = read.ops[&OpKind::Read].latency.clone();
    let latency = WindowLatency {
        latency: LatencyHistogram::new().take_since(&op),
        ..WindowLatency::default()
    };
    read.windows.push(Window {
        end_ns: 2_000_000_000,
        ops: [(OpKind::Read, latency)].into(),
        ..Window::default()
    });
    let files = printer("--name=a").files(&result(&[read]));
    let text = |name: &str| {
        let file = files.iter().find(|file| file.path == Path::new(name));
        file.map(|file| file.text.clone()).unwrap_or_default()
    };
    for name in ["x_lat.1.log", "x_clat.1.log"] {
        assert_eq!(text(name), "1000, 150000, 0, 0, 0\n2000, 150000, 0, 0, 0\n");
    }
    let bins = text("x_clat_hist.1.log");
    let columns = bins.trim_end().split(", ").map(|n| n.parse().unwrap());
    let columns: Vec<u64> = columns.collect();
    assert_eq!(
        (&columns[..3], columns.len()),
        (&[2000, 0, 4096][..], 3 + 29)
    );
    // 100 us are in the 11th octave from 64 ns on, 200 us in the next one.
    assert_eq!((columns[3 + 11], columns[3 + 12]), (1000, 1000));
}

#[test]
fn rest_of_a_job_has_a_line_of_latency() {
    // 2.25 s. fio 3.33 logs the latency of the rest, but not its rate.
    let mut read = reads("a");
    read.wall_ns = 2_250_000_000;
    let cell = diskproof_model::series::Cell {
        ops: 10,
        bytes: 40_960,
        latency_sum_ns: 3_000_000,
        ..Default::default()
    };
    let op = read.ops.get_mut(&OpKind::Read).unwrap();
    for index in 200..225 {
        op.series.add(index * 10_000_000, &cell, 8192);
    }
    let lines = |options: &[(&str, Option<&str>)]| {
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![DescribedJob {
                name: "a".to_owned(),
                workloads: vec![JobWorkload {
                    name: "a".to_owned(),
                    target: 0,
                    files: Vec::new(),
                }],
                options: options
                    .iter()
                    .map(|(key, value)| option(key, *value))
                    .collect(),
                copies: 1,
                ..DescribedJob::default()
            }],
        };
        super::logs::logs(&described, std::slice::from_ref(&read))
            .into_iter()
            .map(|file| file.text.lines().last().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let both = [("write_bw_log", Some("x")), ("write_lat_log", Some("x"))];
    let with_interval = [&both[..], &[("log_avg_msec", Some("1000"))]].concat();
    let latency = "2250, 300000, 0, 0, 0";
    let rate = "2000, 4000, 0, 0, 0";
    assert_eq!(lines(&with_interval), [rate, latency, latency, ""]);
    // Without an interval, lines of 100 ms stand for fio's lines of single requests.
    let rate = "2250, 4000, 0, 0, 0";
    assert_eq!(lines(&both), [rate, latency, latency, ""]);
    // The times of submission of an engine with a queue are not measured: its log is empty.
    let with_queue = [&both[..], &[("ioengine", Some("libaio"))]].concat();
    assert_eq!(lines(&with_queue), [rate, latency, latency, ""]);
    // Columns that fio adds, 0 of averages.
    for (columns, wanted) in [
        (&[("log_offset", Some("1"))][..], "2000, 4000, 0, 0, 0, 0"),
        (&[("log_prio", Some("1"))], "2000, 4000, 0, 0, 0x0000"),
        (
            &[("log_offset", Some("1")), ("log_prio", Some("1"))],
            "2000, 4000, 0, 0, 0, 0x0000",
        ),
    ] {
        let options = [&with_interval[..], columns].concat();
        assert_eq!(lines(&options)[0], wanted);
    }
}

/// As fio prints a job of two copies beside another one.
#[test]
fn jobs_that_only_make_files_have_an_entry_for_each_copy_or_group() {
    let described = |options: &[(&str, Option<&str>)]| {
        let job = |name: &str, copies: u64| DescribedJob {
            name: name.to_owned(),
            copies,
            options: options
                .iter()
                .map(|(key, value)| option(key, *value))
                .collect(),
            layout_workloads: vec![format!("{name}-layout")],
            ..DescribedJob::default()
        };
        DescribedJobs {
            global: Vec::new(),
            jobs: vec![job("a", 2), job("b", 1)],
        }
    };
    let names = |options| {
        let entries = super::entries::entries(&described(options), &[]);
        let mut shown = Vec::new();
        for entry in &entries {
            assert!(entry.depth_shares().iter().all(|(_, share)| *share == 0.0));
            shown.push((entry.name.clone(), entry.jobs));
        }
        shown
    };
    let entry = |name: &str, jobs: u64| (name.to_owned(), jobs);
    assert_eq!(names(&[]), [entry("a", 1), entry("a", 1), entry("b", 1)]);
    assert_eq!(names(&[("group_reporting", None)]), [entry("a", 3)]);
    let mut printer = (request("--name=a").printer)(described(&[]));
    assert_eq!(
        printer.laying_out("b-layout", 2 << 20),
        "b: Laying out IO file (1 file / 2MiB)\n"
    );
}

#[test]
fn layout_of_a_copy_has_the_name_of_its_job() {
    let described = DescribedJobs {
        global: Vec::new(),
        jobs: vec![DescribedJob {
            name: "a".to_owned(),
            workloads: vec![JobWorkload {
                name: "a-1".to_owned(),
                target: 0,
                files: Vec::new(),
            }],
            copies: 1,
            ..DescribedJob::default()
        }],
    };
    let mut printer = (request("--name=a").printer)(described);
    assert_eq!(
        printer.laying_out("a-1", 1 << 20),
        "a: Laying out IO file (1 file / 1MiB)\n"
    );
}

/// As fio 3.33: the job is in no figure, and a blank entry at the end stands for it.
#[test]
fn job_without_figures_is_in_no_output() {
    let job = |name: &str, stats: &str| DescribedJob {
        name: name.to_owned(),
        workloads: vec![JobWorkload {
            name: name.to_owned(),
            target: 0,
            files: Vec::new(),
        }],
        copies: 1,
        options: vec![option("stats", Some(stats))],
        ..DescribedJob::default()
    };
    let printed = |second: &str| {
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![job("a", "0"), job("b", second)],
        };
        let formats = "--name=a --output-format=normal,json,terse";
        let mut printer = (request(formats).printer)(described);
        printer.end(&result(&[reads("a"), reads("b")])).stdout
    };
    let text = printed("1");
    assert!(text.starts_with("3;fio-3.33;b;0;0;8000;"), "{text}");
    assert!(text.contains("\n3;fio-3.33;;-1;0;0;0;"), "{text}");
    assert!(!text.contains("\"jobname\" : \"a\""), "{text}");
    assert!(text.contains("\"groupid\" : 4294967295"), "{text}");
    assert!(text.contains("   READ: bw=4000KiB/s"), "{text}");
    let none = printed("0");
    assert_eq!(
        none.matches("\"groupid\" : 4294967295").count(),
        2,
        "{none}"
    );
    assert!(
        none.ends_with("\nRun status group 0 (all jobs):\n"),
        "{none}"
    );
}

/// As fio 3.33.
#[test]
fn ignored_errors_are_counted() {
    let continued_with = |options: &[(&str, &str)]| {
        let job = DescribedJob {
            name: "a".to_owned(),
            workloads: vec![JobWorkload {
                name: "a".to_owned(),
                target: 0,
                files: Vec::new(),
            }],
            copies: 1,
            options: options
                .iter()
                .map(|(key, value)| option(key, Some(value)))
                .collect(),
            ..DescribedJob::default()
        };
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![job],
        };
        let formats = "--name=a --output-format=json";
        let mut printer = (request(formats).printer)(described);
        let text = printer.end(&result(&[reads("a")])).stdout;
        text.contains("\"total_err\" : 0")
    };
    let continued = |key: &str, value: &str| continued_with(&[(key, value)]);
    let (ignored, none) = (("ignore_error", "EIO"), ("continue_on_error", "none"));
    assert!(!continued_with(&[ignored, none]));
    assert!(continued_with(&[none, ignored]));
    assert!(continued("ignore_error", "EIO"));
    assert!(continued("ignore_error", ",ENOSPC"));
    assert!(!continued("ignore_error", ":EIO"));
    assert!(continued("continue_on_error", "all"));
    assert!(!continued("continue_on_error", "none"));
}

/// As fio 3.33 writes and reads it (`iolog_ver3`).
#[test]
fn iolog_names_the_file_of_each_request() {
    let file = |name: &str, target_start| WorkloadFile {
        name: name.to_owned(),
        target_start,
        file_start: 4096,
    };
    let described = DescribedJobs {
        global: vec![option("write_iolog", Some("log"))],
        jobs: vec![DescribedJob {
            name: "a".to_owned(),
            workloads: vec![JobWorkload {
                name: "a".to_owned(),
                target: 0,
                files: vec![file("a.0.0", 0), file("a.0.1", 8192)],
            }],
            copies: 1,
            ..DescribedJob::default()
        }],
    };
    let mut log = RequestLog::default();
    for (us, offset, len, call) in [
        (100, 0, 4096, LoggedCall::Write),
        (102, 8192, 512, LoggedCall::Write),
        (107, 0, 0, LoggedCall::SyncRange),
        (110, 4096, 4096, LoggedCall::Read),
    ] {
        let request = LoggedRequest {
            sent_ns: us * 1000,
            offset,
            len,
            call,
        };
        log.add(request, LOGGED_MAX);
    }
    log.left_out = 3;
    let mut measured = reads("a");
    measured.start_ns = 90_000;
    measured.wall_ns = 30_000;
    measured.request_log = Some(log.into());
    let measurements = [measured];
    let files = super::iolog::iologs(&described, &measurements);
    assert_eq!(files.len(), 1);
    let written = &files[0];
    assert_eq!(written.path, Path::new("log"));
    assert_eq!(
        written.text.lines().collect::<Vec<_>>(),
        [
            "fio version 3 iolog",
            "0 a.0.0 add",
            "0 a.0.1 add",
            "0 a.0.0 open",
            "0 a.0.0 write 4096 4096",
            "2 a.0.1 open",
            "2 a.0.1 write 4096 512",
            "7 a.0.1 sync_file_range 0 0",
            "10 a.0.0 read 8192 4096",
            "20 a.0.0 close",
            "20 a.0.1 close",
        ]
    );
    assert!(super::iolog::cut_notes(&measurements).contains(" 3 "));
    // The file is an output, before anything was measured.
    assert_eq!(super::iolog::iologs(&described, &[]).len(), 1);
}

/// As fio 3.33: the job has no error of its own, and the exit code counts its copies.
#[test]
fn job_that_may_not_make_its_file_fails_and_others_run() {
    let described = DescribedJobs {
        global: vec![option("write_bw_log", Some("x"))],
        jobs: vec![
            DescribedJob {
                name: "a".to_owned(),
                workloads: vec![JobWorkload {
                    name: "a".to_owned(),
                    target: 0,
                    files: Vec::new(),
                }],
                copies: 1,
                ..DescribedJob::default()
            },
            DescribedJob {
                name: "b".to_owned(),
                copies: 2,
                start_failure: Some(StartFailure::NoFileAllowed),
                ..DescribedJob::default()
            },
        ],
    };
    let mut printer = (request("--output-format=json --name=a").printer)(described);
    let text = printer.end(&result(&[reads("a")]));
    assert_eq!(printer.failed_code(), Some(2));
    let logs = printer.files(&result(&[reads("a")]));
    assert_eq!(logs.len(), 1, "only of the job that ran");
    assert_eq!(text.stderr.matches("allow_file_create=0").count(), 2);
    let printed: serde_json::Value = serde_json::from_str(&text.stdout).unwrap();
    let jobs = printed["jobs"].as_array().unwrap();
    let figures = |job: &serde_json::Value| (job["error"].as_i64(), job["read"]["total_ios"] != 0);
    assert_eq!(
        jobs.iter().map(figures).collect::<Vec<_>>(),
        [(Some(0), true), (Some(0), false), (Some(0), false)]
    );
}

/// As fio 3.33: a job without a size has EINVAL, and its copies count as failed.
#[test]
fn job_without_a_size_has_an_error_and_others_run() {
    for (option_name, entries, errors) in [
        ("thread", 3, vec![Some(22), Some(22), Some(0)]),
        ("group_reporting", 1, vec![Some(22)]),
    ] {
        let described = DescribedJobs {
            global: vec![option(option_name, None)],
            jobs: vec![
                DescribedJob {
                    name: "b".to_owned(),
                    copies: 2,
                    start_failure: Some(StartFailure::NoSize),
                    ..DescribedJob::default()
                },
                DescribedJob {
                    name: "a".to_owned(),
                    workloads: vec![JobWorkload {
                        name: "a".to_owned(),
                        target: 0,
                        files: Vec::new(),
                    }],
                    copies: 1,
                    ..DescribedJob::default()
                },
            ],
        };
        let mut printer = (request("--output-format=json --name=a").printer)(described);
        let text = printer.end(&result(&[reads("a")]));
        assert_eq!(printer.failed_code(), Some(2));
        assert_eq!(text.stderr.matches("specify size=").count(), 2);
        let printed: serde_json::Value = serde_json::from_str(&text.stdout).unwrap();
        let jobs = printed["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), entries, "{option_name}");
        let found: Vec<Option<i64>> = jobs.iter().map(|job| job["error"].as_i64()).collect();
        assert_eq!(found, errors);
    }
}

/// fio counts the files that `opendir` adds while it reads the option, before any output.
#[test]
fn files_of_opendir_are_counted_before_the_output() {
    for format in ["json", "normal", "terse"] {
        let described = DescribedJobs {
            global: Vec::new(),
            jobs: vec![DescribedJob {
                name: "a".to_owned(),
                copies: 2,
                opendir_files: Some(3),
                ..DescribedJob::default()
            }],
        };
        let arguments = format!("--output-format={format} --name=a");
        let mut printer = (request(&arguments).printer)(described);
        let text = printer.begin();
        assert!(text.starts_with("fio: opendir added 3 files\n"), "{text}");
        assert_eq!(text.lines().count() > 1, format == "normal", "{text}");
    }
}
