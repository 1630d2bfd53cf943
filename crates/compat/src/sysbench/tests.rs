use super::*;
use crate::drop_in::Started;
use crate::fixture::{directory, load, measurement, plan, text_of, words};
use crate::load::PrimeRequest;
use crate::printer::{ResultsSoFar, ToolResult};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{OpKind, OpMeasurement};
use diskproof_model::plan::{CachePolicy, Layout, Plan, SyncCall, SyncPolicy};
use diskproof_model::primes::{PrimeInterval, PrimeResult, PrimeThread};
use std::collections::BTreeSet;

fn plan_of(line: &str) -> Plan {
    plan(load(&DROP_IN, line).as_ref(), &directory())
}

#[test]
fn published_command_lines_of_both_spellings_are_read() {
    let old = plan_of(
        "--test=fileio --num-threads=1 --file-num=4 --file-total-size=4G --file-block-size=8K \
         --file-test-mode=rndrd --file-fsync-freq=0 --file-fsync-end=no run",
    );
    let workload = &old.workloads[0];
    assert_eq!(old.scratch_bytes, Some(4 << 30));
    assert_eq!(
        (
            workload.block_bytes,
            workload.streams.permille(OpKind::Read)
        ),
        (8192, 1000)
    );
    assert_eq!(
        (workload.sync, workload.cache),
        (SyncPolicy::None, CachePolicy::Cached)
    );
    assert_eq!(workload.stop.time_ns, Some(10_000_000_000));
    let new = plan_of(
        "fileio --threads=4 --file-total-size=64M --file-test-mode=rndrw --time=2 \
         --file-extra-flags=direct run",
    );
    let workload = &new.workloads[0];
    assert_eq!(
        (workload.workers, workload.streams.permille(OpKind::Read)),
        (4, 600)
    );
    let call = SyncCall::Fsync;
    assert_eq!(workload.sync, SyncPolicy::Every { writes: 40, call });
    assert_eq!(workload.cache, CachePolicy::Direct);
    let commits = plan_of(
        "fileio --file-num=1 --file-total-size=16384 --file-test-mode=rndwr --file-fsync-all=on \
         --file-fsync-mode=fdatasync --events=100 --time=0 run",
    );
    let call = SyncCall::Fdatasync;
    assert_eq!(
        commits.workloads[0].sync,
        SyncPolicy::Every { writes: 1, call }
    );
    assert_eq!(commits.workloads[0].stop.bytes, Some(100 * 16_384));
    let create = plan_of("fileio --file-total-size=64M --file-test-mode=seqwr run");
    assert_eq!(create.workloads[0].layout, Layout::Provides);
}

#[test]
fn sequential_tests_go_on_until_their_limit() {
    for mode in ["seqrd", "seqwr", "seqrewr"] {
        let stop = |limits: &str| {
            let size = "--file-num=1 --file-total-size=64M --file-block-size=1M";
            let plan = plan_of(&format!(
                "fileio {size} --file-test-mode={mode} {limits} run"
            ));
            plan.workloads[0].stop
        };
        let by_time = stop("--time=2");
        assert_eq!(
            (by_time.time_ns, by_time.bytes),
            (Some(2_000_000_000), None),
            "{mode}"
        );
        // More events than the files have blocks.
        let by_events = stop("--time=0 --events=1000");
        assert_eq!(
            (by_events.time_ns, by_events.bytes),
            (None, Some(1000 << 20)),
            "{mode}"
        );
    }
}

#[test]
fn other_tests_and_endless_runs_are_refused() {
    for (line, text) in [
        ("memory run", "measures no disk"),
        ("oltp_read_write run", "measures no disk"),
        ("fileio run", "--file-test-mode"),
        ("fileio --file-test-mode=rndrd --time=0 run", "never ends"),
        ("fileio --file-test-mode=seqrd --time=0 run", "never ends"),
        (
            "fileio --validate=on --file-test-mode=rndrd run",
            "diskproof run --verify",
        ),
        (
            "fileio --file-fsync-end=perhaps --file-test-mode=rndwr run",
            "invalid option",
        ),
        ("fileio", "The 'fileio' test requires a command argument"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().contains(text), "{line}: {}", error.text()),
            _ => panic!("{line}: no usage error"),
        }
    }
}

/// Lines without their figures, trimmed.
fn layout(text: &str) -> Vec<String> {
    let is_figure = |c: char| c.is_ascii_digit() || ".%".contains(c);
    text.lines()
        .skip(1)
        .filter(|line| !line.starts_with("[ ") && !line.starts_with("Report intermediate"))
        .map(|line| {
            line.replace(is_figure, "")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

#[test]
fn report_has_the_layout_of_the_tool() {
    let line = "fileio --file-num=2 --file-total-size=64M --file-block-size=8K \
                --file-test-mode=rndrw --time=2 run";
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let mut one = measurement(&plan.workloads[0], OpKind::Read, 10_843, 2_000_000_000);
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
    let mut text = printer.begin();
    let end = printer.end(&ToolResult {
        measurements: &[one],
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    });
    text.push_str(&end.stdout);
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

#[test]
fn cpu_is_read_in_both_spellings() {
    let old = primes_of("--test=cpu --num-threads=2 --max-time=3 --max-requests=7 run").load;
    assert_eq!((old.threads, old.max_prime), (2, 10_000));
    assert_eq!((old.time_ns, old.events), (Some(3_000_000_000), Some(7)));
    let new = primes_of("cpu --cpu-max-prime=20000 --time=0 --events=5 --report-interval=2 run");
    assert_eq!((new.load.max_prime, new.load.time_ns), (20_000, None));
    assert_eq!(new.load.interval_ns, Some(2_000_000_000));
    for (line, text) in [
        ("cpu", "requires a command"),
        ("cpu prepare", "does not implement"),
        ("cpu start", "Unknown command: start"),
        ("cpu --time=0 run", "never ends"),
        ("cpu --rate=5 run", "omit it"),
        ("cpu --file-num=5 run", "invalid option: --file-num"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().contains(text), "{line}: {}", error.text()),
            _ => panic!("{line}: no usage error"),
        }
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
    let text = [
        printer.begin(),
        printer.interval(&interval),
        printer.end(&result),
    ]
    .concat();
    let wanted = format!(
        "sysbench 1.0.20 (emulated by diskproof {})\n{}",
        env!("CARGO_PKG_VERSION"),
        text_of("sysbench-cpu.out")
    );
    assert_eq!(text, wanted);
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
    let second = 1_000_000_000;
    let reads = |count, ns| {
        let mut one = measurement(&plan.workloads[0], OpKind::Read, count, ns);
        let op = one.ops.get_mut(&OpKind::Read).unwrap();
        op.latency = latencies(&[(100_000, 100), (900_000, count - 100)]);
        one
    };
    let first = printer.so_far(&ResultsSoFar {
        measurements: &[reads(100, second)],
        elapsed_ns: second,
        unix_ns: 0,
    });
    assert_eq!(
        first,
        "[ 1s ] reads: 1.56 MiB/s writes: 0.00 MiB/s fsyncs: 0.00/s latency (ms,95%): 0.100\n"
    );
    let whole = reads(300, 2 * second);
    assert_eq!(
        printer.measured(&whole),
        "[ 2s ] reads: 3.12 MiB/s writes: 0.00 MiB/s fsyncs: 0.00/s latency (ms,95%): 0.900\n"
    );
    assert_eq!(printer.measured(&whole), "");
    let end = printer.end(&ToolResult {
        measurements: &[whole],
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    });
    let wanted = "Latency histogram (values are in milliseconds)\n       value  ------------- \
                  distribution ------------- count\n";
    assert!(end.stdout.starts_with(wanted), "{}", end.stdout);
}

#[test]
fn head_shows_rate_and_syncs_as_the_tool_does() {
    let begin = |line: &str| {
        let (load, target) = (load(&DROP_IN, line), directory());
        let plan = plan(load.as_ref(), &target);
        load.printer(&plan, &target).begin()
    };
    let limited = begin("fileio --file-test-mode=rndrd --rate=100 --file-io-mode=mmap run");
    assert!(
        limited.contains("Number of threads: 1\nTarget transaction rate: 100/sec\nInit"),
        "{limited}"
    );
    assert!(limited.contains("Using fast mmaped I/O mode"), "{limited}");
    let synced = begin("fileio --file-test-mode=rndwr --file-fsync-all=on run");
    assert!(!synced.contains("end of test"), "{synced}");
}
