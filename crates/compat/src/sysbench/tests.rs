use super::*;
use crate::drop_in::Started;
use crate::fixture::{directory, load, measurement, plan, result, text_of, words};
use crate::load::PrimeRequest;
use crate::printer::ResultsSoFar;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{OpKind, OpMeasurement};
use diskproof_model::primes::{PrimeInterval, PrimeResult, PrimeThread};
use std::collections::BTreeSet;

#[test]
fn sequential_tests_go_on_until_their_limit() {
    for mode in ["seqrd", "seqwr", "seqrewr"] {
        for (limits, time_ns, bytes) in [
            ("--time=2", Some(2_000_000_000), None),
            // More events than the files have blocks.
            ("--time=0 --events=1000", None, Some(1000 << 20)),
        ] {
            let size = "--file-num=1 --file-total-size=64M --file-block-size=1M";
            let line = format!("fileio {size} --file-test-mode={mode} {limits} run");
            let stop = plan(load(&DROP_IN, &line).as_ref(), &directory()).workloads()[0].stop;
            assert_eq!((stop.time_ns, stop.bytes), (time_ns, bytes), "{line}");
        }
    }
}

/// Lines without their figures, trimmed.
fn layout(text: &str) -> Vec<String> {
    let is_figure = |c: char| c.is_ascii_digit() || ".%".contains(c);
    text.lines()
        .skip(1)
        .filter(|line| !line.starts_with("[ ") && !line.starts_with("Report intermediate"))
        .map(|line| line.replace(is_figure, ""))
        .map(|line| Vec::from_iter(line.split_whitespace()).join(" "))
        .collect()
}

#[test]
fn report_has_the_layout_of_the_tool() {
    let line = "fileio --file-num=2 --file-total-size=64M --file-block-size=8K \
                --file-test-mode=rndrw --time=2 run";
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let mut one = measurement(&plan.workloads()[0], OpKind::Read, 10_843, 2_000_000_000);
    let written = OpMeasurement {
        count: 7229,
        bytes: 7229 * 8192,
        ..OpMeasurement::default()
    };
    one.ops.insert(OpKind::Write, written);
    for op in one.ops.values_mut() {
        op.latency.record_many(100_000, op.count);
    }
    let mut printer = load.printer(&plan, &target);
    let text = printer.begin() + &printer.end(&result(&[one])).stdout;
    let real = text_of("sysbench-1.0.20-rndrw.out");
    assert_eq!(layout(&text), layout(&real));
    for line in [
        "    reads/s:                      5421.50",
        "    read, MiB/s:                  42.36",
        "    total time:                          2.0000s",
        "    total number of events:              18072",
        "         avg:                                    0.10",
        "         95th percentile:                        0.10",
        "    events (avg/stddev):           18072.0000/0.00",
    ] {
        assert!(
            text.lines().any(|printed| printed == line),
            "{line}\n{text}"
        );
    }
}

/// The options in the help of the real one.
#[test]
fn options_are_those_of_the_help() {
    let help = text_of("sysbench-1.0.20.help");
    let real: BTreeSet<&str> = help
        .lines()
        // The help of the test cpu.
        .chain(["--cpu-max-prime=N"])
        .filter_map(|line| line.trim_start().strip_prefix("--"))
        .filter_map(|rest| rest.split(['=', '[', ' ']).next())
        .collect();
    let ours = DROP_IN.options.iter().map(|option| option.long);
    // Those of databases, which are not in this excerpt of the help.
    let is_of_database = |name: &&str| {
        let prefixes = ["db-", "mysql-", "pgsql-"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let ours = ours.filter(|name| !is_of_database(name));
    // Deprecated, and no longer in the help.
    let ours: BTreeSet<&str> = ours.filter(|name| *name != "test").collect();
    assert_eq!(ours, real);
}

fn primes_of(line: &str) -> Box<PrimeRequest> {
    match (DROP_IN.start)(&words(line)) {
        Ok(Started::Primes(request)) => request,
        Ok(_) => panic!("{line}: another load"),
        Err(error) => panic!("{line}: {}", error.text()),
    }
}

fn latencies(ns: &[(u64, u64)]) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    for (ns, count) in ns {
        latency.record_many(*ns, *count);
    }
    latency
}

#[test]
fn cpu_report_has_the_layout_of_the_tool() {
    let request = primes_of("cpu --threads=2 --time=2 --report-interval=1 --histogram run");
    let interval = PrimeInterval {
        start_ns: 0,
        end_ns: 1_000_000_000,
        latency: latencies(&[(210_000, 2850), (7_040_000, 150)]),
    };
    let thread = |events, busy_ns| PrimeThread { events, busy_ns };
    let result = PrimeResult {
        wall_ns: 2_000_000_000,
        threads: vec![thread(2000, 900_000_000), thread(4000, 1_100_000_000)],
        latency: latencies(&[(206_000, 89), (214_000, 2965), (8_277_000, 171)]),
    };
    let printer = &request.printer;
    let text = printer.begin() + &printer.interval(&interval) + &printer.end(&result);
    let (version, wanted) = (env!("CARGO_PKG_VERSION"), text_of("sysbench-cpu.out"));
    let head = format!("sysbench 1.0.20 (emulated by diskproof {version})\n");
    assert_eq!(text, head + &wanted);
    let disabled = primes_of("cpu --percentile=0 --threads=1 run");
    let end = disabled.printer.end(&result);
    assert!(
        end.contains("         percentile stats:               disabled\n"),
        "{end}"
    );
}

#[test]
fn intervals_of_fileio_are_printed_while_it_runs() {
    let line = "fileio --file-total-size=64M --file-test-mode=rndrd --time=2 --report-interval=1 \
                --histogram=on run";
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    assert_eq!(printer.interval_ns(), Some(1_000_000_000));
    let tail = "MiB/s writes: 0.00 MiB/s fsyncs: 0.00/s latency (ms,95%):";
    let second = 1_000_000_000;
    let reads = |count, ns| {
        let mut one = measurement(&plan.workloads()[0], OpKind::Read, count, ns);
        let op = one.ops.get_mut(&OpKind::Read).unwrap();
        op.latency = latencies(&[(100_000, 100), (900_000, count - 100)]);
        one
    };
    let first = printer.so_far(&ResultsSoFar {
        disks: &[],
        measurements: &[reads(100, second)],
        elapsed_ns: second,
        unix_ns: 0,
    });
    assert_eq!(first, format!("[ 1s ] reads: 1.56 {tail} 0.100\n"));
    // The interval that ends with the run has no line, however late it is read.
    let whole = reads(300, 2 * second);
    for elapsed_ns in [2 * second, 2 * second + 30_000_000] {
        let last = printer.so_far(&ResultsSoFar {
            disks: &[],
            measurements: std::slice::from_ref(&whole),
            elapsed_ns,
            unix_ns: 0,
        });
        assert_eq!(last, "");
    }
    assert_eq!(printer.measured(&whole), "");
    let end = printer.end(&result(&[whole]));
    let wanted = "Latency histogram (values are in milliseconds)\n       value  ------------- \
                  distribution ------------- count\n";
    assert!(end.stdout.starts_with(wanted), "{}", end.stdout);
}

/// A request ends with its file, as strace shows it of 1.0.20.
#[test]
fn blocks_are_not_larger_than_their_file() {
    for (size, bytes, total) in [
        (
            "--file-num=1 --file-total-size=4096 --file-block-size=16384",
            4096,
            4096,
        ),
        (
            "--file-num=4 --file-total-size=16384 --file-block-size=1M",
            4096,
            16384,
        ),
        (
            "--file-num=1 --file-total-size=64K --file-block-size=16384",
            16384,
            65536,
        ),
    ] {
        let line = format!("fileio {size} --file-test-mode=rndwr --events=5 run");
        let (load, target) = (load(&DROP_IN, &line), directory());
        let plan = plan(load.as_ref(), &target);
        let workload = &plan.workloads()[0];
        assert_eq!(u64::from(workload.block_bytes), bytes, "{line}");
        assert_eq!(plan.scratch_bytes(), Some(total), "{line}");
        assert_eq!(workload.stop.bytes, Some(5 * bytes), "{line}");
        // The report has the size of the command line.
        let begin = load.printer(&plan, &target).begin();
        assert_eq!(
            begin.contains("Block size 16KiB"),
            size.contains("block-size=16384"),
            "{begin}"
        );
    }
}

/// In the order of the tool; a value that the old name has by default counts as none.
#[test]
fn old_names_come_first_and_with_a_warning() {
    let of = |line: &str| primes_of(&format!("cpu {line} run"));
    let old = of("--time=5 --max-time=1 --events=2 --max-requests=3 --threads=2 --num-threads=3");
    assert_eq!(
        (old.load.threads, old.load.time_ns, old.load.events),
        (3, Some(1_000_000_000), Some(3))
    );
    let begin = old.printer.begin();
    let wanted = "WARNING: --num-threads is deprecated, use --threads instead\n\
                  WARNING: --max-requests is deprecated, use --events instead\n\
                  WARNING: --max-time is deprecated, use --time instead\nsysbench 1.0.20 (";
    assert!(begin.starts_with(wanted), "{begin}");
    let defaults = of("--max-time=0 --max-requests=0 --num-threads=1 --threads=2");
    assert_eq!((defaults.load.threads, defaults.load.events), (2, None));
    assert!(defaults.printer.begin().starts_with("sysbench 1.0.20 ("));
    let last = PrimeInterval {
        start_ns: 9_000_000_000,
        end_ns: 10_000_000_000,
        latency: latencies(&[(1, 1)]),
    };
    assert_eq!(defaults.printer.interval(&last), "");
}

#[test]
fn ratio_of_reads_is_finite() {
    for ratio in ["inf", "nan", "-1"] {
        let line = format!("fileio --file-test-mode=rndrw --file-rw-ratio={ratio} run");
        match (DROP_IN.start)(&words(&line)) {
            Err(error) => assert!(error.text().contains("not a ratio"), "{line}"),
            Ok(_) => panic!("{line}"),
        }
    }
}

/// The report of writes with these latencies in ms, alone, with their syncs, and from the start
/// that the rate wants.
fn report_of_writes(line: &str, ms: [u64; 3]) -> String {
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let workload = &plan.workloads()[0];
    let mut one = measurement(workload, OpKind::Write, 100, 2_000_000_000);
    let [alone, with_sync, intended] = ms.map(|ms| latencies(&[(ms * 1_000_000, 100)]));
    let mut commit = one.ops[&OpKind::Write].clone();
    one.ops.get_mut(&OpKind::Write).unwrap().latency = alone;
    if workload.commits() {
        commit.latency = with_sync;
        if workload.rate.is_some() {
            let mut waited = intended;
            waited.record_many(5_000_000, 20);
            commit.latency_intended = Some(waited);
        }
        one.ops.insert(OpKind::Commit, commit);
    }
    load.printer(&plan, &target).end(&result(&[one])).stdout
}

fn figure_of(report: &str, label: &str) -> String {
    let line = report
        .lines()
        .find(|line| line.trim_start().starts_with(label))
        .unwrap_or_else(|| panic!("{label}: {report}"));
    line.split_whitespace().last().unwrap().to_owned()
}

/// As in sb_fileio.c, where the fsync of --file-fsync-all is part of the event, and in sb_timer.c,
/// which adds the time in the queue of --rate.
#[test]
fn latency_is_that_of_the_event() {
    let of = |options: &str| {
        let line = format!("fileio --file-test-mode=rndwr --time=2 {options} run");
        report_of_writes(&line, [1, 4, 5])
    };
    for (options, average) in [
        ("", "1.00"),
        ("--file-fsync-all=on", "4.00"),
        ("--file-fsync-all=on --rate=100", "5.00"),
    ] {
        let report = of(options);
        let avg: f64 = figure_of(&report, "avg:").parse().unwrap();
        assert!(
            (avg - average.parse::<f64>().unwrap()).abs() < 0.1,
            "{report}"
        );
        let sum: f64 = figure_of(&report, "sum:").parse().unwrap();
        assert!((sum - avg * 100.0).abs() < 1.0, "{report}");
        // Requests that never started are no events.
        assert_eq!(figure_of(&report, "total number of events:"), "100");
    }
}

/// A thread is not busy for longer than the run, however many requests it has in flight.
#[test]
fn execution_time_of_async_requests_is_that_of_a_thread() {
    let report = report_of_writes(
        "fileio --file-test-mode=rndwr --file-io-mode=async --file-async-backlog=10 \
         --file-fsync-freq=0 --time=2 run",
        [200, 0, 0],
    );
    let time = figure_of(&report, "execution time");
    let (mean, _) = time.split_once('/').unwrap();
    assert!(
        (1.9..2.1).contains(&mean.parse::<f64>().unwrap()),
        "{report}"
    );
}

/// A line about fsync() is printed only where it is called.
#[test]
fn report_announces_the_syncs_that_follow() {
    for (options, announced) in [
        ("", true),
        ("--file-fsync-all=on", true),
        ("--file-extra-flags=direct", true),
        ("--file-extra-flags=sync --file-fsync-all=on", false),
        ("--file-extra-flags=dsync", false),
    ] {
        let line = format!("fileio --file-test-mode=rndwr {options} run");
        let (load, target) = (load(&DROP_IN, &line), directory());
        let plan = plan(load.as_ref(), &target);
        let begin = load.printer(&plan, &target).begin();
        assert_eq!(begin.contains("alling fsync()"), announced, "{begin}");
        let sync = plan.workloads()[0].sync;
        assert_eq!(
            matches!(sync, SyncPolicy::Every { .. }),
            announced,
            "{line}"
        );
        let notes = load.head().notes.join("\n");
        assert_eq!(
            notes.contains("fsync() is not called"),
            !announced,
            "{notes}"
        );
    }
}

/// A total that is no multiple of a page: the file is filled in whole pages.
#[test]
fn scratch_file_has_whole_pages() {
    let line = "fileio --file-total-size=8m --file-num=1 --file-test-mode=rndrd \
                --file-block-size=1000 --events=10 run";
    let plan = plan(load(&DROP_IN, line).as_ref(), &directory());
    assert_eq!(plan.scratch_bytes(), Some(8 << 20));
    assert_eq!(plan.workloads()[0].span.length_bytes, Some(8_388_000));
}

#[test]
fn sizes_have_five_digits() {
    let line = "fileio --file-total-size=8m --file-num=3 --file-test-mode=rndrd run";
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let begin = load.printer(&plan, &target).begin();
    assert!(begin.contains("3 files, 2.6667MiB each"), "{begin}");
}

/// The timer of the tool stops after its last event.
#[test]
fn report_divides_by_the_time_of_the_last_event() {
    let line = "fileio --file-total-size=64M --file-test-mode=rndrd --time=4 run";
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let mut reads = measurement(&plan.workloads()[0], OpKind::Read, 2000, 4_000_000_000);
    reads.overrun_ns = 6_000_000_000;
    let text = load.printer(&plan, &target).end(&result(&[reads])).stdout;
    assert!(
        text.contains("reads/s:                      200.00"),
        "{text}"
    );
}
