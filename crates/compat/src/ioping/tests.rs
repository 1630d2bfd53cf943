use super::*;
use crate::fixture::{device, directory, load, plan, text_of, words};
use crate::printer::{DropInError, ToolPrinter, ToolResult};
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{IgnoredBecause, SingleRequest};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Plan, SyncCall, SyncPolicy, WriteFlag,
};
use diskproof_model::target::TargetIdentity;
use std::collections::BTreeSet;

const SECOND: u64 = 1_000_000_000;

fn plan_of(line: &str, target: &TargetIdentity) -> Plan {
    plan(load(&DROP_IN, line).as_ref(), target)
}

fn error(line: &str) -> String {
    match (DROP_IN.start)(&words(line)) {
        Err(error) => error.text().to_owned(),
        Ok(_) => panic!("{line}: no error"),
    }
}

#[test]
fn default_reads_a_small_file_through_the_dropped_cache_each_second() {
    let plan = plan_of(".", &directory());
    let (workload, ping) = (&plan.workloads[0], plan.ping.as_ref().unwrap());
    assert_eq!(plan.scratch_bytes, Some(1 << 20));
    assert_eq!(
        (
            workload.block_bytes,
            workload.streams.permille(OpKind::Read)
        ),
        (4096, 1000)
    );
    assert_eq!(workload.cache, CachePolicy::Buffered);
    assert_eq!((ping.interval_ns, ping.warmup_requests), (SECOND, 1));
    assert_eq!(workload.stop.ops, None);
}

#[test]
fn published_command_lines_are_read() {
    let disk = device(1 << 40);
    let rapid = plan_of("-R /dev/sda3 -s 8k -w 30", &disk);
    assert_eq!(rapid.workloads[0].block_bytes, 8192);
    assert_eq!(rapid.workloads[0].stop.time_ns, Some(30 * SECOND));
    assert_eq!(rapid.ping.unwrap().interval_ns, 0);
    let pong = plan_of("-G /tmp/ -D -s 8k", &directory());
    let workload = &pong.workloads[0];
    assert_eq!(
        (workload.streams.permille(OpKind::Read), workload.cache),
        (500, CachePolicy::Direct)
    );
    let call = SyncCall::Fdatasync;
    assert_eq!(workload.sync, SyncPolicy::Every { writes: 1, call });
    let linear = plan_of("-RL /dev/sda", &disk);
    assert_eq!(linear.workloads[0].access, Access::Sequential);
    assert_eq!(linear.workloads[0].block_bytes, 256 << 10);
    let cached = plan_of("-C -W -c 10 -i 1ms .", &directory());
    let workload = &cached.workloads[0];
    assert_eq!(
        (workload.sync, workload.cache),
        (SyncPolicy::None, CachePolicy::Cached)
    );
    assert_eq!(workload.stop.bytes, Some(10 * 4096));
    let spelt = plan_of(
        "-count 3 -interval 200ms -size 8k -work-size 64m .",
        &directory(),
    );
    assert_eq!(spelt.scratch_bytes, Some(64 << 20));
    assert_eq!(spelt.workloads[0].stop.ops, Some(3));
}

#[test]
fn options_of_pace_engine_and_durability_reach_the_plan() {
    let all = plan_of("-A -y -W -r 50 -e 9 -o 1m -S 2m -c5 .", &directory());
    let workload = &all.workloads[0];
    assert_eq!(workload.engine, EngineChoice::Fixed(EngineKind::Aio));
    let flag = WriteFlag::OpenDsync;
    assert_eq!(workload.sync, SyncPolicy::WithWrite { flag });
    assert_eq!(all.ping.unwrap().interval_ns, 20_000_000);
    assert_eq!((all.seed, all.scratch_bytes), (9, Some(3 << 20)));
    assert_eq!(workload.span.start_bytes, 1 << 20);
    let slow = plan_of("-l 1m -s 4k .", &directory());
    assert_eq!(slow.ping.unwrap().interval_ns, 3_906_250);
}

#[test]
fn writing_to_a_device_needs_three_times_w() {
    let load_twice = load(&DROP_IN, "-WW /dev/sda");
    let disk = device(1 << 30);
    let context = crate::load::PlanContext {
        target: &disk,
        seed: 1,
        argv: &[],
    };
    let Err(DropInError::Target(text)) = load_twice.plan(&context) else {
        panic!("no error");
    };
    assert!(text.contains("think twice, then use -WWW to shred this target"));
    let plan = plan_of("-WWW -c 3 /dev/sda", &disk);
    assert_eq!(plan.workloads[0].streams.permille(OpKind::Read), 0);
}

#[test]
fn usage_errors_are_those_of_the_tool() {
    assert_eq!(error("-c 5"), "ioping: no destination specified\n");
    assert_eq!(
        error("a b"),
        "ioping: more than one destination specified\n"
    );
    assert_eq!(error("-s 4x ."), "ioping: invalid suffix: \"x\"\n");
    assert!(error("-c").starts_with("ioping: option requires an argument -- 'c'\n"));
    assert!(error("-Z .").starts_with("ioping: unrecognized option '-Z'\n"));
    assert!(error("-N .").contains("-N is not supported"));
    assert!(error("-b 5 .").contains("use -i 0 -c COUNT"));
}

/// The options in the help of the real one: `-A, -async`.
#[test]
fn options_are_those_of_the_help() {
    let help = text_of("ioping-1.3.help");
    let real: BTreeSet<(String, String)> = help
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('-'))
        .filter_map(|line| line.split_once(", -"))
        .map(|(short, rest)| {
            let long = rest.split_whitespace().next().unwrap_or_default();
            (format!("-{short}"), long.to_owned())
        })
        .collect();
    let options = DROP_IN.options.iter();
    let ours = options.map(|option| (option.short.to_owned(), option.long.to_owned()));
    assert_eq!(ours.collect::<BTreeSet<_>>(), real);
}

fn request(number: u64, at_ms: u64, latency_ns: u64) -> SingleRequest {
    SingleRequest {
        number,
        at_ns: at_ms * 1_000_000,
        op: OpKind::Read,
        offset_bytes: 4096 * number,
        latency_ns,
        idle_ns: None,
        error: None,
        ignored: (number == 1).then_some(IgnoredBecause::Warmup),
    }
}

fn printed(line: &str, requests: &[SingleRequest]) -> String {
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let mut printer: Box<dyn ToolPrinter> = load.printer(&plan, &target);
    let mut text = printer.begin();
    for request in requests {
        text.push_str(&printer.request(request, 1_700_000_000_500_000_000));
    }
    let end = printer.end(&ToolResult {
        measurements: &[],
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 1_700_000_001_000_000_000,
        host_name: "vm",
    });
    text + &end.stdout + &end.stderr
}

fn five() -> Vec<SingleRequest> {
    [
        (1, 0, 96_300),
        (2, 50, 119_100),
        (3, 100, 145_900),
        (4, 150, 131_300),
        (5, 200, 131_300),
    ]
    .into_iter()
    .map(|(number, at, ns)| request(number, at, ns))
    .collect()
}

#[test]
fn lines_and_statistics_have_the_layout_of_the_tool() {
    insta::assert_snapshot!(printed("-c 5 -i 50ms .", &five()));
}

#[test]
fn raw_lines_have_ten_columns() {
    let batch = printed("-B -c 5 -i 50ms .", &five());
    assert_eq!(
        batch,
        "4 527600 7582 31053829 119100 131900 145900 9494 5 200131300\n"
    );
    let periods = printed("-p 2 -q -c 5 -i 50ms .", &five());
    let columns: Vec<usize> = periods
        .lines()
        .map(|line| line.split(' ').count())
        .collect();
    assert_eq!(columns, [10, 10]);
    assert!(periods.starts_with("2 265000 "), "{periods}");
}

/// As in ioping 1.3, which looks ahead to the next request.
#[test]
fn a_period_ends_with_the_last_request_in_it() {
    let totals = |line: &str| -> Vec<String> {
        let text = printed(line, &five());
        let lines = text.lines().map(|line| line.split(' ').nth(8));
        lines.map(|total| total.unwrap().to_owned()).collect()
    };
    assert_eq!(totals("-P 100ms -q -i 50ms ."), ["2", "2"]);
    assert_eq!(totals("-P 40ms -q -i 50ms ."), ["1"; 5]);
}

#[test]
fn an_interrupted_wait_counts_as_time() {
    let (load, target) = (load(&DROP_IN, "-B -i 50ms ."), directory());
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    for request in five() {
        printer.request(&request, 1_000_000_000);
    }
    let end = printer.end(&ToolResult {
        measurements: &[],
        surface: None,
        interrupted: true,
        error: None,
        unix_ns: 1_040_000_000,
        host_name: "vm",
    });
    assert!(end.stdout.ends_with(" 5 240131300\n"), "{}", end.stdout);
}

#[test]
fn json_is_one_array_with_requests_and_statistics() {
    let text = printed("-J -c 5 -i 50ms .", &five());
    insta::assert_snapshot!(text);
}

#[test]
fn times_outside_the_valid_range_do_not_count() {
    let text = printed("-t 120us -T 140us -c 5 .", &five());
    assert!(text.contains("time=119.1 us (too fast)"), "{text}");
    assert!(text.contains("time=145.9 us (too slow)"), "{text}");
    assert!(
        text.contains("\n1 too fast, 1 too slow, generated 5 requests in"),
        "{text}"
    );
}

#[test]
fn a_run_without_a_request_prints_no_statistics() {
    assert_eq!(printed("-c 5 .", &[]), "");
    assert_eq!(printed("-J -c 5 .", &[]), "[]\n");
}

#[test]
fn failed_request_is_an_error_of_the_run() {
    let mut requests = five();
    requests[2].error = Some("EIO".to_owned());
    let text = printed("-c 5 .", &requests);
    assert!(text.ends_with("ioping: request failed: EIO\n"), "{text}");
}
