use super::frame::used_disks;
use super::normal::short;
use super::values::Base;
use super::*;
use crate::drop_in::Started;
use crate::fixture::{measurement, result, words};
use crate::jobs::{
    DescribedJob, DescribedJobs, JobAction, JobOption, JobRequest, JobSource, JobWorkload,
};
use crate::printer::{ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{DeviceUse, DiskTimes, Measurement, OpKind};
use diskproof_model::plan::Workload;
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

#[test]
fn wrong_command_lines_are_refused() {
    for (line, text) in [
        ("", "No job(s) defined"),
        ("--output-format=xml --name=a", "normal, json, json+"),
        ("--client=host x.fio", "start diskproof on each machine"),
        ("--name", "requires an argument"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().contains(text), "{line}: {}", error.text()),
            Ok(_) => panic!("{line}"),
        }
    }
}

#[test]
fn numbers_are_shortened_as_fio_does_it() {
    let binary = |number| short(number, 4, Base::Binary, "B");
    assert_eq!(binary(8_118_272), "7928KiB");
    assert_eq!(binary(100_139_008), "95.5MiB");
    assert_eq!(short(1_048_576, 4, Base::Decimal, "B"), "1049kB");
    assert_eq!(short(100_139_008, 4, Base::Decimal, "B"), "100MB");
    assert_eq!(short(24_436, 4, Base::Decimal, ""), "24.4k");
    assert_eq!(short(4_764_400, 6, Base::Decimal, ""), "4764.4k");
    assert_eq!(short(3096, 4, Base::Decimal, ""), "3096");
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

/// As fio prints them; a disk whose requests the kernel does not time has no line.
#[test]
fn disk_stats_have_the_counts_and_the_busy_share() {
    let text = |times: Option<DiskTimes>, line: &str| {
        let mut one = reads("a");
        one.device = DeviceUse {
            disks: vec!["vda".to_owned()],
            read_ops: 12_617,
            write_ops: 3,
            times,
            ..DeviceUse::default()
        };
        printer(line).end(&result(&[one])).stdout
    };
    let times = Some(DiskTimes {
        read_merges: 1,
        write_merges: 2,
        read_ms: 621,
        write_ms: 4,
        queued_ms: 625,
        busy_ms: 638,
        elapsed_ms: 1000,
    });
    let normal = text(times, "--name=a");
    let lines = "\n\nDisk stats (read/write):\n  vda: ios=12617/3, merge=1/2, ticks=621/4, \
                 in_queue=625, util=63.80%\n";
    assert!(normal.ends_with(lines), "{normal}");
    assert!(!text(None, "--name=a").contains("Disk stats"));
    let terse = text(times, "--minimal --name=a");
    assert!(
        terse.ends_with(";vda;12617;3;1;2;621;4;625;63.80%\n"),
        "{terse}"
    );
    assert!(!text(None, "--minimal --name=a").contains("vda"));
    let json = text(times, "--output-format=json --name=a");
    assert!(json.contains("\"read_ticks\" : 621"), "{json}");
}

/// Jobs that run together on several disks; two on one disk count its requests once.
#[test]
fn disk_stats_have_every_disk_of_concurrent_jobs() {
    let one = |name: &str, disk: &str, start_ns: u64| {
        let mut one = reads(name);
        one.start_ns = start_ns;
        one.device = DeviceUse {
            disks: vec![disk.to_owned()],
            read_ops: 100,
            ..DeviceUse::default()
        };
        one
    };
    let later_ns = reads("a").wall_ns;
    let all = [
        ("a", "vda", 0),
        ("b", "vdb", 0),
        ("c", "vda", 0),
        ("d", "vda", later_ns),
    ];
    let all = all.map(|(name, disk, start_ns)| one(name, disk, start_ns));
    let used = used_disks(&all).into_iter();
    let used: Vec<(String, u64)> = used.map(|disk| (disk.name, disk.read_ops)).collect();
    let wanted = [("vda".to_owned(), 200), ("vdb".to_owned(), 100)];
    assert_eq!(used, wanted);
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
